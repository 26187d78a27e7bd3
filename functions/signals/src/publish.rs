//! Makes the messages to subscribers from stored outcomes.
//!
//! In AWS this is the enrichment of a pipe, whose target is a topic with one queue for each subject. A record that
//! cannot be read becomes a dead letter, and the others of its batch are published.

use hearback_domain::learning::publication::{Outcome, Subject, erased, retracted};
use hearback_domain::text::sqs_text;
use hearback_lambda::aws::{Aws, Service};
use hearback_lambda::dead_letters::{DeadLetters, NotSent};
use hearback_storage::Error;
use hearback_storage::stream::{self, ResultRecord};
use serde_json::Value;

/// The setting that names the URL of the queue for records that cannot be published. Without it such a record fails
/// its batch, which the pipe then divides.
pub const STREAM_DEAD_LETTERS_URL: &str = "HEARBACK_STREAM_DEAD_LETTERS_URL";

/// Makes messages from stream records.
#[derive(Debug, Clone)]
pub struct Publisher {
    dead_letters: Option<DeadLetters>,
}

/// Why a batch is not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishFailure {
    /// A record cannot be read, and there is no queue for it.
    #[error(transparent)]
    Unreadable(#[from] Error),
    /// A record cannot be read, and its dead letter was not sent.
    #[error("a dead letter was not sent: {0}")]
    NotSent(#[from] NotSent),
}

impl Publisher {
    /// A publisher with this queue for unreadable records, if there is one.
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
    pub async fn messages(&self, records: &[Value]) -> Result<Vec<Value>, PublishFailure> {
        let mut messages = Vec::new();
        for record in records {
            match (addressed(record), &self.dead_letters) {
                (
                    Ok(Published {
                        messages: addressed,
                        for_insights,
                    }),
                    _,
                ) => {
                    messages.extend(addressed.into_iter().map(|(_, message)| message));
                    messages.extend(for_insights);
                }
                (Err(error), None) => return Err(error.into()),
                (Err(error), Some(dead_letters)) => {
                    let reason = error.to_string();
                    tracing::warn!(reason, "result not published");
                    let position = stream::key_record(record).to_string();
                    dead_letters.send(&position, &reason).await?;
                }
            }
        }
        Ok(messages)
    }
}

/// What is published of a stream record.
#[derive(Debug, Default)]
pub struct Published {
    /// The messages, each with its subject.
    pub messages: Vec<(Subject, Value)>,
    /// A message for insights alone.
    pub for_insights: Option<Value>,
}

/// The messages of one stream record. Characters that a queue does not accept are replaced: older events may have them
/// in identifiers.
pub fn addressed(record: &Value) -> Result<Published, Error> {
    let mut published = Published::default();
    match stream::result(record)? {
        ResultRecord::Outcome(Outcome::Processed(processed)) => {
            published.messages = processed.messages();
        }
        ResultRecord::Outcome(Outcome::Deduplicated { .. }) | ResultRecord::Unchanged => {}
        ResultRecord::Retraction(retraction) => published.messages.push(retracted(&retraction)),
        ResultRecord::Erased(event) => published.for_insights = erased(&event),
        ResultRecord::Turn(turn) => published.for_insights = Some(turn.message()),
    }
    let messages = published.messages.iter_mut().map(|(_, message)| message);
    messages
        .chain(published.for_insights.as_mut())
        .for_each(replace_unsendable);
    Ok(published)
}

/// Replaces the characters of all strings that a queue does not accept.
fn replace_unsendable(message: &mut Value) {
    match message {
        Value::String(text) => {
            if let std::borrow::Cow::Owned(carried) = sqs_text::replace_unsupported(text) {
                *text = carried;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(replace_unsendable),
        Value::Object(members) => members.values_mut().for_each(replace_unsendable),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
