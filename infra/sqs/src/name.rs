//! A queue's name, and the URL and ARN made from it.

use std::fmt;

use crate::fault::Fault;

/// The one account of an engine.
pub(crate) const ACCOUNT: &str = "000000000000";

/// The name a queue is addressed by; on requests for an existing queue it is not checked beyond
/// being looked up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct QueueName(String);

impl QueueName {
    /// A name for a new queue: 1 to 80 letters, digits, hyphens or underscores.
    pub(crate) fn parse(name: &str) -> Result<Self, Fault> {
        if name.strip_suffix(".fifo").is_some() {
            return Err(Fault::Unsupported("A FIFO queue".to_owned()));
        }
        let valid = (1..=80).contains(&name.len())
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        if valid {
            Ok(Self(name.to_owned()))
        } else {
            Err(Fault::InvalidParameter(
                "Can only include alphanumeric characters, hyphens, or underscores. \
                 1 to 80 in length"
                    .to_owned(),
            ))
        }
    }

    /// The last path segment of a queue's URL; host, port and account are not looked at, since the
    /// same engine is reached under several names.
    pub(crate) fn of_url(url: &str) -> Self {
        let name = url
            .trim_end_matches('/')
            .rsplit('/')
            .next()
            .unwrap_or_default();
        Self(name.to_owned())
    }

    /// A name to look up, as the request has it.
    pub(crate) fn stored(name: String) -> Self {
        Self(name)
    }

    /// The URL under which a caller that reached us as `host` reaches this queue.
    pub(crate) fn url(&self, host: &str) -> String {
        format!("http://{host}/{ACCOUNT}/{}", self.0)
    }

    /// `arn:aws:sqs:<region>:000000000000:<name>`.
    pub(crate) fn arn(&self, region: &str) -> String {
        format!("arn:aws:sqs:{region}:{ACCOUNT}:{}", self.0)
    }

    /// The name in an ARN of this engine, `None` if it names another region, account or service.
    pub(crate) fn of_arn(arn: &str, region: &str) -> Option<Self> {
        let name = arn.strip_prefix(&format!("arn:aws:sqs:{region}:{ACCOUNT}:"))?;
        Some(Self(name.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
