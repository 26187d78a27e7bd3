//! Messages on their way into queues: each by itself, however many a call sends. What a queue refuses is told from
//! what may be tried again.

use std::collections::BTreeMap;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use futures::future::{BoxFuture, FutureExt, join, join_all};
use hearback_lambda::aws::error_code;

/// Messages of one call.
const MESSAGES: usize = 10;
/// Bytes of one call.
const BYTES: usize = 1024 * 1024;
/// Errors of a call that come of what it sends: another try gets the same.
const OF_CONTENT: [&str; 8] = [
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
pub struct Outgoing {
    /// The queue's URL.
    pub queue: String,
    /// The body.
    pub body: String,
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// It is in the queue.
    Done,
    /// The queue does not take it, and never will.
    Refused(String),
    /// It was not taken this time.
    Failed(String),
}

/// A message with its place among those that are sent.
type Placed<'a> = (usize, &'a str);

/// Sends messages, as many with a call as it takes; answers what became of each, in their order.
pub async fn send(client: &Client, messages: &[Outgoing]) -> Vec<Sent> {
    let mut by_queue: BTreeMap<&str, Vec<Placed<'_>>> = BTreeMap::new();
    for (at, Outgoing { queue, body }) in messages.iter().enumerate() {
        by_queue.entry(queue).or_default().push((at, body));
    }
    let calls: Vec<_> = (by_queue.iter())
        .flat_map(|(queue, messages)| packed(messages).into_iter().map(|some| (*queue, some)))
        .collect();
    let calls = calls
        .iter()
        .map(|(queue, some)| send_some(client, queue, some));
    let mut sent = vec![Sent::Failed("not sent".to_owned()); messages.len()];
    for (at, became) in join_all(calls).await.into_iter().flatten() {
        if let Some(place) = sent.get_mut(at) {
            *place = became;
        }
    }
    sent
}

/// Divides messages into calls.
fn packed<'a>(messages: &[Placed<'a>]) -> Vec<Vec<Placed<'a>>> {
    let mut calls: Vec<Vec<Placed<'a>>> = Vec::new();
    let mut bytes = 0;
    for message in messages {
        let size = message.1.len();
        match calls.last_mut() {
            Some(call) if call.len() < MESSAGES && bytes + size <= BYTES => {
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

/// Sends messages with one call. If that fails because of what one of them is, they are halved until it is alone.
fn send_some<'a>(
    client: &'a Client,
    queue: &'a str,
    messages: &'a [Placed<'a>],
) -> BoxFuture<'a, Vec<(usize, Sent)>> {
    let each = |became: Sent| messages.iter().map(move |(at, _)| (*at, became.clone()));
    async move {
        let entries = messages.iter().map(|(at, body)| {
            SendMessageBatchRequestEntry::builder()
                .id(at.to_string())
                .message_body(*body)
                .build()
        });
        let entries: Vec<_> = match entries.collect() {
            Ok(entries) => entries,
            Err(_) => return each(Sent::Refused("no message".to_owned())).collect(),
        };
        let call = client.send_message_batch().queue_url(queue);
        let error = match call.set_entries(Some(entries)).send().await {
            Ok(answer) => {
                let mut sent: BTreeMap<usize, Sent> = each(Sent::Done).collect();
                for failed in answer.failed() {
                    let code = failed.code().to_owned();
                    let became = if failed.sender_fault() {
                        Sent::Refused(code)
                    } else {
                        Sent::Failed(code)
                    };
                    sent.extend(failed.id().parse().ok().map(|at: usize| (at, became)));
                }
                return sent.into_iter().collect();
            }
            Err(error) => error,
        };
        let code = error_code(&error).to_owned();
        if !is_of_content(&error) {
            return each(Sent::Failed(code)).collect();
        }
        if messages.len() <= 1 {
            return each(Sent::Refused(code)).collect();
        }
        let (first, second) = messages.split_at(messages.len() / 2);
        let halves = join(
            send_some(client, queue, first),
            send_some(client, queue, second),
        );
        let (first, second) = halves.await;
        first.into_iter().chain(second).collect()
    }
    .boxed()
}

/// Whether a call failed because of what it sent.
fn is_of_content<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> bool {
    let code = error
        .as_service_error()
        .and_then(ProvideErrorMetadata::code);
    code.is_some_and(|code| OF_CONTENT.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_ten_messages_and_a_mebibyte_at_most() {
        let small = "x".repeat(10);
        let large = "x".repeat(400 * 1024);
        let mut messages: Vec<Placed<'_>> = (0..25).map(|at| (at, small.as_str())).collect();
        messages.extend((25..30).map(|at| (at, large.as_str())));
        let calls = packed(&messages);
        let sizes: Vec<_> = calls.iter().map(Vec::len).collect();
        assert_eq!(sizes, [10, 10, 7, 2, 1]);
        let places: Vec<_> = calls.iter().flatten().map(|(at, _)| *at).collect();
        assert_eq!(places, (0..30).collect::<Vec<_>>());
    }
}
