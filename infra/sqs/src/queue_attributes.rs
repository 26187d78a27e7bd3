//! What can be set on a queue, with its ranges and defaults.

use std::{collections::BTreeMap, ops::RangeInclusive};

use serde::Deserialize;

use crate::{fault::Fault, message::MAX_SIZE};

/// Attributes of a queue that SQS knows and this engine has no behaviour for.
const UNSUPPORTED: [&str; 9] = [
    "ContentBasedDeduplication",
    "DeduplicationScope",
    "FifoQueue",
    "FifoThroughputLimit",
    "KmsDataKeyReusePeriodSeconds",
    "KmsMasterKeyId",
    "Policy",
    "RedriveAllowPolicy",
    "SqsManagedSseEnabled",
];

/// The settings of a queue; times in seconds, sizes in bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QueueAttributes {
    /// How long a received message stays hidden, 0 to 43,200.
    pub(crate) visibility_timeout: i64,
    /// How long a message is kept, counted from its sending, 60 to 1,209,600.
    pub(crate) retention: i64,
    /// How long a new message stays hidden, 0 to 900.
    pub(crate) delay: i64,
    /// How long a receive waits for a first message, 0 to 20.
    pub(crate) wait: i64,
    /// The largest message, 1,024 to 1,048,576.
    pub(crate) max_message_size: i64,
    /// Where messages go that were received too often.
    pub(crate) redrive: Option<RedrivePolicy>,
}

impl Default for QueueAttributes {
    fn default() -> Self {
        Self {
            visibility_timeout: 30,
            retention: 345_600,
            delay: 0,
            wait: 0,
            max_message_size: 1_048_576,
            redrive: None,
        }
    }
}

impl QueueAttributes {
    /// These attributes with one of them set from the wire.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Result<Self, Fault> {
        match name {
            "VisibilityTimeout" => self.visibility_timeout = number(name, value, 0..=43_200)?,
            "MessageRetentionPeriod" => self.retention = number(name, value, 60..=1_209_600)?,
            "DelaySeconds" => self.delay = number(name, value, 0..=900)?,
            "ReceiveMessageWaitTimeSeconds" => self.wait = number(name, value, 0..=20)?,
            "MaximumMessageSize" => {
                let largest = i64::try_from(MAX_SIZE).unwrap_or(i64::MAX);
                self.max_message_size = number(name, value, 1_024..=largest)?;
            }
            "RedrivePolicy" if value.is_empty() => self.redrive = None,
            "RedrivePolicy" => self.redrive = Some(RedrivePolicy::parse(value)?),
            _ if UNSUPPORTED.contains(&name) => {
                return Err(Fault::UnsupportedAttribute(name.to_owned()));
            }
            _ => return Err(Fault::InvalidAttributeName(name.to_owned())),
        }
        Ok(self)
    }

    /// These attributes with all of `settings` set.
    pub(crate) fn with_all(self, settings: &BTreeMap<String, String>) -> Result<Self, Fault> {
        settings.iter().try_fold(self, |attributes, (name, value)| {
            attributes.with(name, value)
        })
    }

    /// Whether SQS has a setting of this name. A setting without a value is left out of responses.
    pub(crate) fn knows(name: &str) -> bool {
        name == "RedrivePolicy"
            || UNSUPPORTED.contains(&name)
            || Self::default().to_wire().contains_key(name)
    }

    /// The settings as the wire has them.
    pub(crate) fn to_wire(&self) -> BTreeMap<&'static str, String> {
        let mut wire = BTreeMap::from([
            ("VisibilityTimeout", self.visibility_timeout.to_string()),
            ("MessageRetentionPeriod", self.retention.to_string()),
            ("DelaySeconds", self.delay.to_string()),
            ("ReceiveMessageWaitTimeSeconds", self.wait.to_string()),
            ("MaximumMessageSize", self.max_message_size.to_string()),
        ]);
        if let Some(policy) = &self.redrive {
            wire.insert("RedrivePolicy", policy.to_json());
        }
        wire
    }
}

/// After how many receives a message moves where.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RedrivePolicy {
    /// ARN of the dead-letter queue.
    pub(crate) target: String,
    /// 1 to 1,000.
    pub(crate) max_receives: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WirePolicy {
    dead_letter_target_arn: String,
    max_receive_count: Count,
}

/// A count as both spellings that callers use.
#[derive(Deserialize)]
#[serde(untagged)]
enum Count {
    Number(i64),
    Text(String),
}

impl RedrivePolicy {
    pub(crate) fn parse(json: &str) -> Result<Self, Fault> {
        let invalid = || Fault::InvalidAttributeValue("RedrivePolicy".to_owned());
        let wire: WirePolicy = serde_json::from_str(json).map_err(|_| invalid())?;
        let max_receives = match wire.max_receive_count {
            Count::Number(number) => number,
            Count::Text(text) => text.parse().map_err(|_| invalid())?,
        };
        if !(1..=1_000).contains(&max_receives) {
            return Err(invalid());
        }
        Ok(Self {
            target: wire.dead_letter_target_arn,
            max_receives,
        })
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::json!({
            "deadLetterTargetArn": self.target,
            "maxReceiveCount": self.max_receives,
        })
        .to_string()
    }
}

fn number(name: &str, value: &str, range: RangeInclusive<i64>) -> Result<i64, Fault> {
    value
        .parse()
        .ok()
        .filter(|number| range.contains(number))
        .ok_or_else(|| Fault::InvalidAttributeValue(name.to_owned()))
}
