//! What subscribers are told: the messages that stored outcomes become.
//!
//! In AWS this is the enrichment of a pipe, whose target is a topic with one queue for each
//! subject. One record that cannot be read harms no other of its batch: it is a dead letter.

use hearback_domain::carried;
use hearback_domain::publication::{Outcome, Subject, retracted};
use hearback_lambda::aws::{Aws, Service};
use hearback_lambda::dead_letters::{DeadLetters, NotSent};
use hearback_storage::Error;
use hearback_storage::stream::{self, Published};
use serde_json::Value;

/// The setting that names the URL of the queue for records that cannot be published. Without it such a record fails
/// its batch, which the pipe then divides.
pub const STREAM_DEAD_LETTERS_URL: &str = "HEARBACK_STREAM_DEAD_LETTERS_URL";

/// Makes messages of stream records.
#[derive(Debug, Clone)]
pub struct Publisher {
    dead_letters: Option<DeadLetters>,
}

/// Why nothing is published of a batch.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A record cannot be read, and there is no queue for it.
    #[error(transparent)]
    Unreadable(#[from] Error),
    /// A record cannot be read, and its dead letter was not sent.
    #[error("a dead letter was not sent: {0}")]
    NotSent(#[from] NotSent),
}

impl Publisher {
    /// Sends what cannot be read to this queue, if there is one.
    #[must_use]
    pub fn new(dead_letters: Option<DeadLetters>) -> Self {
        Self { dead_letters }
    }

    /// Reads the setting and builds the client, if it is set.
    #[must_use]
    pub fn from_env() -> Self {
        let url = std::env::var(STREAM_DEAD_LETTERS_URL).ok();
        Self::new(url.map(|url| {
            let sqs = aws_sdk_sqs::Client::new(&Aws::from_env(Service::Sqs).config());
            DeadLetters::new(sqs, url)
        }))
    }

    /// The messages of a batch of stream records, in order.
    pub async fn messages(&self, records: &[Value]) -> Result<Vec<Value>, Failure> {
        let mut messages = Vec::new();
        for record in records {
            match (addressed(record), &self.dead_letters) {
                (Ok(addressed), _) => {
                    messages.extend(addressed.into_iter().map(|(_, message)| message));
                }
                (Err(error), None) => return Err(error.into()),
                (Err(error), Some(dead_letters)) => {
                    let reason = error.to_string();
                    tracing::warn!(reason, "result not published");
                    let letter = stream::place(record).to_string();
                    dead_letters.bury(&letter, &reason).await?;
                }
            }
        }
        Ok(messages)
    }
}

/// The messages of one stream record, each with its subject. All of them can be carried: of what was stored before
/// identifiers had to be, the characters that cannot are replaced.
pub fn addressed(record: &Value) -> Result<Vec<(Subject, Value)>, Error> {
    let mut messages = match stream::result(record)? {
        Published::Outcome(Outcome::Processed(processed)) => processed.messages(),
        Published::Outcome(Outcome::Deduplicated { .. }) => Vec::new(),
        Published::Retraction(retraction) => vec![retracted(&retraction)],
    };
    for (_, message) in &mut messages {
        carry(message);
    }
    Ok(messages)
}

/// Replaces in all strings of a message what cannot be carried.
fn carry(message: &mut Value) {
    match message {
        Value::String(text) => {
            if let std::borrow::Cow::Owned(carried) = carried::text(text) {
                *text = carried;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(carry),
        Value::Object(members) => members.values_mut().for_each(carry),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
