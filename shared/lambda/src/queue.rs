//! Common parts of functions with a queue as event source: partial batch responses, the DLQ for
//! messages that fail permanently, and the limit of hops.
//!
//! SQS counts a receive even if Lambda throttles the function, which then never sees the message.
//! The receive count is therefore a weak sign of failures, and a message that may still succeed is
//! retried for long.

use std::fmt::Display;

use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage};
use aws_sdk_sqs::error::BuildError;
use aws_sdk_sqs::types::MessageAttributeValue;
use chrono::{DateTime, TimeDelta, Utc};
use hearback_storage::stream;
use serde_json::Value;
use tokio::task::JoinError;

use crate::dead_letters::DeadLetters;

/// Receives after which a message that probably fails by its content goes to the DLQ
/// ([`RetryLimit::Few`]).
pub const MAX_RECEIVES: u32 = 5;
/// Receives after which a message that fails by its environment goes to the DLQ
/// ([`RetryLimit::Many`]).
pub const LAST_RECEIVES: u32 = 90;
/// `maxReceiveCount` of the queue: higher, for a function that crashes or cannot send to the DLQ.
pub const REDRIVE_RECEIVES: u32 = 100;
/// `maxReceiveCount` of the queue of an outlet, whose messages are retried for [`RETRIED_FOR`]: the largest.
pub const OUTLET_RECEIVES: u32 = 1_000;
/// How long a message is retried if a target outside of the stack is unavailable ([`RetryLimit::Day`]).
pub const RETRIED_FOR: TimeDelta = TimeDelta::days(1);
/// The message attribute with the tenant of a back end's events.
pub const TENANT: &str = "tenant";
/// The message attribute with the recipient of a message that only one of several still has to receive.
pub const RECIPIENT: &str = "recipient";
/// The message attribute with the number of hops.
pub const HOPS: &str = "hops";
/// Largest number of hops. A hop with progress takes minutes, so this is about a week of work; a
/// loop without progress ends within minutes, after a thousand invocations.
pub const MAX_HOPS: u32 = 1_000;

/// How often a failed message is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryLimit {
    /// Not at all: a retry fails too.
    Once,
    /// A few times: it probably failed by its content. Another version of the function might accept
    /// it.
    Few,
    /// Many times: it failed by its environment, for example because the table was unavailable.
    Many,
    /// For [`RETRIED_FOR`]: a target outside of the stack is unavailable.
    Day,
}

impl RetryLimit {
    /// Whether a message is not retried any more.
    #[must_use]
    pub fn is_exhausted(self, message: &SqsMessage) -> bool {
        match self {
            Self::Once => true,
            Self::Few => receives(message) >= MAX_RECEIVES,
            Self::Many => receives(message) >= LAST_RECEIVES,
            Self::Day => age(message) >= RETRIED_FOR,
        }
    }
}

/// An error because of which a message was not processed.
pub trait MessageFailure: Display {
    /// How often the message is retried.
    fn tries(&self) -> RetryLimit;
}

impl MessageFailure for hearback_storage::Error {
    fn tries(&self) -> RetryLimit {
        match self {
            Self::Unavailable { .. } => RetryLimit::Many,
            Self::Unreadable { .. } => RetryLimit::Few,
            Self::TooLarge { .. } => RetryLimit::Once,
        }
    }
}

/// Why a message was not processed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The description, without data.
    pub text: String,
    /// How often the message is retried.
    pub tries: RetryLimit,
}

impl<F: MessageFailure> From<F> for Reason {
    fn from(failure: F) -> Self {
        Self {
            text: failure.to_string(),
            tries: failure.tries(),
        }
    }
}

/// The result of a task that processed a message. The message of a panic is left out, because it
/// may quote data.
pub fn task_result<F: MessageFailure>(
    task: Result<Result<(), F>, JoinError>,
) -> Result<(), Reason> {
    match task {
        Ok(result) => result.map_err(Reason::from),
        Err(_) => Err(Reason {
            text: "the function panicked".to_owned(),
            tries: RetryLimit::Few,
        }),
    }
}

/// Processes messages one after the other, each in its own task, so that a panic does not affect
/// the others. Returns the response of [`report`].
pub async fn one_by_one<F, E>(
    dead_letters: &DeadLetters,
    batch: SqsEvent,
    work: impl Fn(SqsMessage) -> F,
) -> SqsBatchResponse
where
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: MessageFailure + Send + 'static,
{
    let mut failed = Vec::new();
    for message in batch.records {
        if let Err(reason) = task_result(tokio::spawn(work(message.clone())).await) {
            failed.push((message, reason));
        }
    }
    report(dead_letters, failed).await
}

/// Returns the failed messages, which SQS delivers again. Those whose retries are exhausted are
/// sent to the DLQ instead, each with its reason.
pub async fn report(
    dead_letters: &DeadLetters,
    failed: Vec<(SqsMessage, Reason)>,
) -> SqsBatchResponse {
    let mut response = SqsBatchResponse::default();
    for (message, reason) in failed {
        let message_id = message.message_id.clone().unwrap_or_default();
        let receives = receives(&message);
        tracing::warn!(
            tenant = tenant_of(&message),
            message_id,
            receives,
            reason = reason.text,
            "message not processed"
        );
        if !(reason.tries.is_exhausted(&message)
            && send_to_dlq(dead_letters, &message, &reason).await)
        {
            response.batch_item_failures.push(item_failure(message_id));
        }
    }
    response
}

/// The attribute [`TENANT`] of a message.
#[must_use]
pub fn tenant_attribute(message: &SqsMessage) -> Option<&str> {
    attribute(message, TENANT)
}

/// The attribute [`RECIPIENT`] of a message.
#[must_use]
pub fn recipient(message: &SqsMessage) -> Option<&str> {
    attribute(message, RECIPIENT)
}

fn attribute<'a>(message: &'a SqsMessage, name: &str) -> Option<&'a str> {
    message
        .message_attributes
        .get(name)?
        .string_value
        .as_deref()
}

/// The tenant of a message: its attribute, a member of its body, or the tenant in the key of a record of the stream.
fn tenant_of(message: &SqsMessage) -> Option<String> {
    if let Some(tenant) = tenant_attribute(message) {
        return Some(tenant.to_owned());
    }
    let body: Value = serde_json::from_str(message.body.as_deref()?).ok()?;
    let member = body.get(TENANT).and_then(Value::as_str);
    member
        .or_else(|| stream::tenant_of(&body))
        .map(str::to_owned)
}

/// Sends a message to the DLQ. Returns `false` if that failed; the message is then delivered again.
async fn send_to_dlq(dead_letters: &DeadLetters, message: &SqsMessage, reason: &Reason) -> bool {
    let body = message.body.as_deref().unwrap_or_default();
    let recipient = recipient(message).map(|recipient| (RECIPIENT, recipient));
    // Boxed, because the type of an SDK call is so deep that the compiler cannot compute the layout
    // of its caller.
    match Box::pin(dead_letters.send_with(body, &reason.text, recipient.as_slice())).await {
        Ok(()) => true,
        Err(error) => {
            tracing::error!(reason = %error, "dead letter not sent");
            false
        }
    }
}

/// The item failure of a message whose task failed.
#[must_use]
pub fn item_failure_of_task<F: MessageFailure>(
    message: &SqsMessage,
    task: Result<Result<(), F>, JoinError>,
) -> Option<BatchItemFailure> {
    let reason = task_result(task).err()?;
    let message_id = message.message_id.clone().unwrap_or_default();
    tracing::warn!(
        tenant = tenant_of(message),
        message_id,
        reason = reason.text,
        "message not processed"
    );
    Some(item_failure(message_id))
}

fn item_failure(message_id: String) -> BatchItemFailure {
    let mut failure = BatchItemFailure::default();
    failure.item_identifier = message_id;
    failure
}

/// The receive count of a message, including this delivery.
#[must_use]
pub fn receives(message: &SqsMessage) -> u32 {
    let receives = message.attributes.get("ApproximateReceiveCount");
    receives.and_then(|count| count.parse().ok()).unwrap_or(1)
}

/// When a message was sent to its queue.
#[must_use]
pub fn sent_at(message: &SqsMessage) -> Option<DateTime<Utc>> {
    let sent = message.attributes.get("SentTimestamp")?;
    DateTime::from_timestamp_millis(sent.parse().ok()?)
}

/// How long a message has been in its queue.
#[must_use]
pub fn age(message: &SqsMessage) -> TimeDelta {
    sent_at(message).map_or_else(TimeDelta::zero, |sent| Utc::now() - sent)
}

/// The number of hops before a message. The recursive loop detection of Lambda would stop a
/// function after 16 by default; this limit replaces it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hops(u32);

/// The work has reached the limit of hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("handed on {MAX_HOPS} times without an end")]
pub struct Endless;

impl MessageFailure for Endless {
    fn tries(&self) -> RetryLimit {
        RetryLimit::Once
    }
}

impl Hops {
    /// The hops of the messages that are sent because of this one.
    pub fn after(message: &SqsMessage) -> Result<Self, Endless> {
        let hops = attribute(message, HOPS).and_then(|hops| hops.parse().ok());
        let hops: u32 = hops.unwrap_or_default();
        if hops < MAX_HOPS {
            Ok(Self(hops + 1))
        } else {
            Err(Endless)
        }
    }

    /// The attribute [`HOPS`] of the messages that are sent.
    pub fn attribute(self) -> Result<MessageAttributeValue, BuildError> {
        let hops = MessageAttributeValue::builder().data_type("Number");
        hops.string_value(self.0.to_string()).build()
    }
}

#[cfg(test)]
mod tests {
    use aws_lambda_events::sqs::SqsMessageAttribute;

    use super::*;

    #[test]
    fn a_message_names_its_tenant() {
        let mut sent = SqsMessage::default();
        let mut attribute = SqsMessageAttribute::default();
        attribute.string_value = Some("acme".to_owned());
        sent.message_attributes.insert(TENANT.to_owned(), attribute);
        assert_eq!(tenant_of(&sent).as_deref(), Some("acme"));
        for (body, tenant) in [
            (r#"{"tenant": "acme", "user": "ada"}"#, Some("acme")),
            (
                r#"{"dynamodb": {"Keys": {"PK": {"S": "EVENT#acme#1"}}}}"#,
                Some("acme"),
            ),
            (r#"{"dynamodb": {"Keys": {"PK": {"S": "EVENT"}}}}"#, None),
            ("{", None),
        ] {
            let mut message = SqsMessage::default();
            message.body = Some(body.to_owned());
            assert_eq!(tenant_of(&message).as_deref(), tenant, "{body}");
        }
    }
}
