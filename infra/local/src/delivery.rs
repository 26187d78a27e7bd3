//! Sends messages to queues in batches, and reports the outcome of each message: whether its queue rejects it, or it
//! may be sent again.

use std::collections::BTreeMap;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use futures::future::{BoxFuture, FutureExt, join, join_all};
use hearback_lambda::aws::error_code;

/// Messages in a call.
const MAX_MESSAGES: usize = 10;
/// Bytes in a call.
const MAX_BYTES: usize = 1024 * 1024;
/// Errors that the content of a call causes: a retry would fail in the same way.
const CONTENT_ERRORS: [&str; 8] = [
    "InvalidMessageContents",
    "InvalidParameterValue",
    "InvalidParameterValueException",
    "MissingParameter",
    "MissingRequiredParameterException",
    "BatchRequestTooLong",
    "AWS.SimpleQueueService.BatchRequestTooLong",
    "UnsupportedOperation",
];

/// A message for a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingMessage {
    /// The queue's URL.
    pub queue: String,
    /// The message body.
    pub body: String,
}

/// The outcome of sending a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendOutcome {
    /// It is in the queue.
    Sent,
    /// The queue rejects it because of its content; a retry is useless.
    Rejected(String),
    /// It was not sent; a retry may succeed.
    Failed(String),
}

/// A message body with its index among the messages to send.
type Indexed<'a> = (usize, &'a str);

/// Sends messages with as few calls as possible; returns their outcomes in order.
pub async fn send(client: &Client, messages: &[OutgoingMessage]) -> Vec<SendOutcome> {
    let mut by_queue: BTreeMap<&str, Vec<Indexed<'_>>> = BTreeMap::new();
    for (index, OutgoingMessage { queue, body }) in messages.iter().enumerate() {
        by_queue.entry(queue).or_default().push((index, body));
    }
    let calls: Vec<_> = (by_queue.iter())
        .flat_map(|(queue, messages)| batches(messages).into_iter().map(|batch| (*queue, batch)))
        .collect();
    let calls = calls
        .iter()
        .map(|(queue, batch)| send_batch(client, queue, batch));
    let mut outcomes = vec![SendOutcome::Failed("not sent".to_owned()); messages.len()];
    for (index, outcome) in join_all(calls).await.into_iter().flatten() {
        if let Some(slot) = outcomes.get_mut(index) {
            *slot = outcome;
        }
    }
    outcomes
}

/// Divides messages into calls.
fn batches<'a>(messages: &[Indexed<'a>]) -> Vec<Vec<Indexed<'a>>> {
    let mut calls: Vec<Vec<Indexed<'a>>> = Vec::new();
    let mut bytes = 0;
    for message in messages {
        let size = message.1.len();
        match calls.last_mut() {
            Some(call) if call.len() < MAX_MESSAGES && bytes + size <= MAX_BYTES => {
                call.push(*message);
                bytes += size;
            }
            _ => {
                calls.push(vec![*message]);
                bytes = size;
            }
        }
    }
    calls
}

/// Sends messages with one call. If the content of one makes the call fail, the batch is halved until that message is
/// alone.
fn send_batch<'a>(
    client: &'a Client,
    queue: &'a str,
    messages: &'a [Indexed<'a>],
) -> BoxFuture<'a, Vec<(usize, SendOutcome)>> {
    let each = |outcome: SendOutcome| {
        messages
            .iter()
            .map(move |(index, _)| (*index, outcome.clone()))
    };
    async move {
        let entries = messages.iter().map(|(index, body)| {
            SendMessageBatchRequestEntry::builder()
                .id(index.to_string())
                .message_body(*body)
                .build()
        });
        let entries: Vec<_> = match entries.collect() {
            Ok(entries) => entries,
            Err(_) => return each(SendOutcome::Rejected("no message".to_owned())).collect(),
        };
        let call = client.send_message_batch().queue_url(queue);
        let error = match call.set_entries(Some(entries)).send().await {
            Ok(response) => {
                let mut outcomes: BTreeMap<usize, SendOutcome> = each(SendOutcome::Sent).collect();
                for failed in response.failed() {
                    let code = failed.code().to_owned();
                    let outcome = if failed.sender_fault() {
                        SendOutcome::Rejected(code)
                    } else {
                        SendOutcome::Failed(code)
                    };
                    let index = failed.id().parse().ok();
                    outcomes.extend(index.map(|index: usize| (index, outcome)));
                }
                return outcomes.into_iter().collect();
            }
            Err(error) => error,
        };
        let code = error_code(&error).to_owned();
        if !is_content_error(&error) {
            return each(SendOutcome::Failed(code)).collect();
        }
        if messages.len() <= 1 {
            return each(SendOutcome::Rejected(code)).collect();
        }
        let (first, second) = messages.split_at(messages.len() / 2);
        let halves = join(
            send_batch(client, queue, first),
            send_batch(client, queue, second),
        );
        let (first, second) = halves.await;
        first.into_iter().chain(second).collect()
    }
    .boxed()
}

fn is_content_error<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> bool {
    let code = error
        .as_service_error()
        .and_then(ProvideErrorMetadata::code);
    code.is_some_and(|code| CONTENT_ERRORS.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_at_most_ten_messages_and_one_mebibyte() {
        let small = "x".repeat(10);
        let large = "x".repeat(400 * 1024);
        let mut messages: Vec<Indexed<'_>> = (0..25).map(|index| (index, small.as_str())).collect();
        messages.extend((25..30).map(|index| (index, large.as_str())));
        let calls = batches(&messages);
        let sizes: Vec<_> = calls.iter().map(Vec::len).collect();
        assert_eq!(sizes, [10, 10, 7, 2, 1]);
        let indexes: Vec<_> = calls.iter().flatten().map(|(index, _)| *index).collect();
        assert_eq!(indexes, (0..30).collect::<Vec<_>>());
    }
}
