//! A message before it is stored, and the rules for its body and attributes.

use std::collections::BTreeMap;

use crate::{
    characters::is_allowed,
    fault::Fault,
    message_attributes::{MessageAttributes, WireAttribute},
};

/// The maximum size of body and attributes of one message, or of one batch, in bytes.
pub(crate) const MAX_SIZE: usize = 1_048_576;
/// The longest delay of a new message, in seconds.
const MAX_DELAY: i64 = 900;
/// The maximum number of characters of a group's name.
const MAX_GROUP: usize = 128;

/// A message to send. The store checks it against the limits of its queue.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) body: String,
    pub(crate) attributes: MessageAttributes,
    /// Seconds; `None` is the queue's own delay.
    pub(crate) delay: Option<i64>,
    /// The message group, for fair queues.
    pub(crate) group: Option<String>,
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
            group: None,
        })
    }

    /// Of a group, whose name has characters that SQS accepts.
    pub(crate) fn of_group(self, group: Option<String>) -> Result<Self, Fault> {
        if let Some(name) = &group
            && !((1..=MAX_GROUP).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            return Err(Fault::InvalidParameter(format!(
                "Value for parameter MessageGroupId is invalid. Reason: MessageGroupId can only \
                 include alphanumeric and punctuation characters. 1 to {MAX_GROUP} in length."
            )));
        }
        Ok(Self { group, ..self })
    }

    /// Bytes that count towards the limits: body, and names, types and values of attributes.
    pub(crate) fn size(&self) -> usize {
        self.body.len() + self.attributes.size()
    }
}
