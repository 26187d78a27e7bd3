//! A message before it is stored: the rules a body and its attributes have to meet.

use std::collections::BTreeMap;

use crate::{
    fault::Fault,
    message_attributes::{MessageAttributes, WireAttribute},
};

/// The most bytes of body and attributes in one message, or in one batch.
pub(crate) const MAX_SIZE: usize = 1_048_576;
/// The longest time a new message may be kept back, in seconds.
const MAX_DELAY: i64 = 900;

/// A message somebody wants to send. Whether it fits its queue is for the store to say.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) body: String,
    pub(crate) attributes: MessageAttributes,
    /// Seconds; `None` is the queue's own delay.
    pub(crate) delay: Option<i64>,
}

impl Draft {
    pub(crate) fn parse(
        body: String,
        attributes: BTreeMap<String, WireAttribute>,
        delay: Option<i64>,
    ) -> Result<Self, Fault> {
        if body.is_empty() {
            return Err(Fault::MissingParameter("MessageBody"));
        }
        if !body.chars().all(is_allowed) {
            return Err(Fault::InvalidMessageContents);
        }
        if let Some(delay) = delay
            && !(0..=MAX_DELAY).contains(&delay)
        {
            return Err(Fault::InvalidParameter(format!(
                "Value {delay} for parameter DelaySeconds is invalid. \
                 Reason: DelaySeconds must be >= 0 and <= {MAX_DELAY}."
            )));
        }
        Ok(Self {
            body,
            attributes: MessageAttributes::parse(attributes)?,
            delay,
        })
    }

    /// Bytes that count towards the limits: body, and names, types and values of attributes.
    pub(crate) fn size(&self) -> usize {
        self.body.len() + self.attributes.size()
    }
}

/// The characters of XML 1.0, section 2.2, which are those SQS takes.
pub(crate) fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'..)
}
