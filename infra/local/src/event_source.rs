//! Replaces Lambda's SQS event source mapping: receives batches, passes them to the function, and deletes the processed
//! messages. The queue's visibility timeout and redrive policy handle the others.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage, SqsMessageAttribute};
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName};
use chrono::{DateTime, Utc};
use futures::FutureExt;
use hearback_batch::{Importer, Ingest};
use hearback_erasure::Eraser;
use hearback_insights::Counter;
use hearback_lambda::aws::error_code;
use hearback_lambda::visibility::{LARGEST_CALL, hide};
use hearback_relay::{Outlet, Relay};
use hearback_signals::Generator;
use hearback_stream::Fanout;
use tokio_util::sync::CancellationToken;

use crate::health::LoopStatus;
use crate::load::Load;

/// How long a receive waits for a message.
const WAIT_SECONDS: i32 = 20;
/// Pause after a failed receive.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// How long a message for an outlet may wait, as in the template's alarm.
pub const OUTLET_MAX_WAIT: Duration = Duration::from_mins(5);

/// A function that a queue triggers.
pub trait Consumer: Send + Sync + 'static {
    /// Messages in a batch, as in the template.
    const BATCH: usize;
    /// How long messages are gathered for a batch.
    const WINDOW: Duration = Duration::ZERO;
    /// Whether it yields to bursts of incoming feedback.
    const YIELDS: bool;
    /// Whether its batches count as such a burst. Imports do not: what users do must not wait for them.
    const IS_BURST: bool;
    /// Maximum duration of a batch, as the timeout in the template. A function that takes longer is stuck.
    const TIMEOUT: Duration;

    /// Processes a batch, and returns the messages that must be delivered again.
    fn handle(&self, batch: SqsEvent) -> impl Future<Output = SqsBatchResponse> + Send;
}

impl Consumer for Generator {
    const BATCH: usize = 10;
    const YIELDS: bool = true;
    const IS_BURST: bool = false;
    const TIMEOUT: Duration = Duration::from_secs(30);

    async fn handle(&self, batch: SqsEvent) -> SqsBatchResponse {
        Self::handle(self, batch).await
    }
}

impl Consumer for Ingest {
    const BATCH: usize = 10;
    const YIELDS: bool = false;
    const IS_BURST: bool = true;
    const TIMEOUT: Duration = Duration::from_mins(1);

    async fn handle(&self, batch: SqsEvent) -> SqsBatchResponse {
        Self::handle(self, batch).await
    }
}

impl Consumer for Eraser {
    const BATCH: usize = 1;
    const YIELDS: bool = true;
    const IS_BURST: bool = false;
    const TIMEOUT: Duration = Duration::from_mins(15);

    async fn handle(&self, batch: SqsEvent) -> SqsBatchResponse {
        Self::handle(self, batch, None).await
    }
}

impl Consumer for Fanout {
    const BATCH: usize = 10;
    const YIELDS: bool = true;
    const IS_BURST: bool = false;
    const TIMEOUT: Duration = Duration::from_secs(30);

    async fn handle(&self, batch: SqsEvent) -> SqsBatchResponse {
        Self::handle(self, batch).await
    }
}

impl Consumer for Counter {
    // An hour is counted once for all messages about it. Lambda accepts 10,000 messages; this many are received at once
    // in a second.
    const BATCH: usize = 1000;
    const WINDOW: Duration = Duration::from_secs(1);
    const YIELDS: bool = true;
    const IS_BURST: bool = false;
    const TIMEOUT: Duration = Duration::from_mins(2);

    async fn handle(&self, batch: SqsEvent) -> SqsBatchResponse {
        Self::handle(self, batch).await
    }
}

impl<O: Outlet> Consumer for Relay<O> {
    const BATCH: usize = 10;
    const YIELDS: bool = true;
    const IS_BURST: bool = false;
    const TIMEOUT: Duration = Duration::from_mins(1);

    async fn handle(&self, batch: SqsEvent) -> SqsBatchResponse {
        Self::handle(self, batch).await
    }
}

impl Consumer for Importer {
    const BATCH: usize = 1;
    const YIELDS: bool = true;
    const IS_BURST: bool = false;
    const TIMEOUT: Duration = Duration::from_mins(15);

    async fn handle(&self, batch: SqsEvent) -> SqsBatchResponse {
        Self::handle(self, batch, None).await
    }
}

/// Passes the messages of a queue to a function.
#[derive(Debug)]
pub struct EventSource<C> {
    /// Client of SQS.
    pub client: aws_sdk_sqs::Client,
    /// The URL of the queue.
    pub queue_url: String,
    /// The function.
    pub consumer: C,
    /// The visibility timeout, which is extended while a batch is processed. AWS recommends six times the function's
    /// timeout; here a crashed process is restarted at once, and its messages should be delivered again soon.
    pub visibility: Duration,
    /// How long a message may wait: the threshold of the queue's alarm in the template.
    pub max_wait: Duration,
    /// The load of the machine.
    pub load: Load,
    /// Records whether this loop works.
    pub status: LoopStatus,
}

impl<C: Consumer> EventSource<C> {
    /// Runs until `stop`, and finishes the batch in progress.
    pub async fn run(self, stop: CancellationToken) {
        let mut waited = Duration::ZERO;
        loop {
            if C::YIELDS {
                self.load.yield_to_burst(waited).await;
            }
            let Some(received) = stop.run_until_cancelled(self.receive()).await else {
                return;
            };
            match received {
                Some(messages) => {
                    waited = longest_wait(&messages, Utc::now());
                    self.status.set_late(waited > self.max_wait);
                    self.process(messages).await;
                }
                None => {
                    stop.run_until_cancelled(tokio::time::sleep(RETRY_PAUSE))
                        .await;
                }
            }
        }
    }

    /// Receives a batch: what there is, and what arrives until its window closes.
    async fn receive(&self) -> Option<Vec<Message>> {
        let mut batch = self.receive_within(WAIT_SECONDS, C::BATCH).await?;
        if batch.is_empty() || C::WINDOW.is_zero() {
            return Some(batch);
        }
        tokio::time::sleep(C::WINDOW).await;
        while batch.len() < C::BATCH {
            match self.receive_within(0, C::BATCH - batch.len()).await {
                Some(more) if !more.is_empty() => batch.extend(more),
                _ => break,
            }
        }
        Some(batch)
    }

    async fn receive_within(&self, seconds: i32, most: usize) -> Option<Vec<Message>> {
        self.client
            .receive_message()
            .queue_url(&self.queue_url)
            .max_number_of_messages(i32::try_from(most.min(LARGEST_CALL)).unwrap_or_default())
            .wait_time_seconds(seconds)
            .message_system_attribute_names(MessageSystemAttributeName::All)
            .message_attribute_names("All")
            .send()
            .await
            .map(|received| {
                self.status.succeeded();
                received.messages.unwrap_or_default()
            })
            .map_err(|error| self.status.failed(error_code(&error), 0))
            .ok()
    }

    async fn process(&self, messages: Vec<Message>) {
        if messages.is_empty() {
            return;
        }
        let mut event = SqsEvent::default();
        event.records = messages.iter().map(lambda_message).collect();
        let _burst = C::IS_BURST.then(|| self.load.begin_burst());
        self.status.begin_batch(C::TIMEOUT);
        // As in Lambda: after a panic, the function is restarted and its messages are delivered again.
        let work = AssertUnwindSafe(self.consumer.handle(event)).catch_unwind();
        let mut work = std::pin::pin!(work);
        let response = loop {
            tokio::select! {
                response = &mut work => break response,
                () = tokio::time::sleep(self.visibility / 2) => self.extend_visibility(&messages).await,
            }
        };
        self.status.end_batch();
        if let Ok(response) = response {
            self.delete(&messages, &response).await;
        } else {
            tracing::warn!(messages = messages.len(), "the function panicked");
        }
    }

    async fn extend_visibility(&self, messages: &[Message]) {
        let seconds = i32::try_from(self.visibility.as_secs()).unwrap_or(i32::MAX);
        let hidden = messages
            .iter()
            .filter_map(|message| Some((message.receipt_handle.as_deref()?, seconds)));
        let hidden: Vec<_> = hidden.collect();
        for hidden in hidden.chunks(LARGEST_CALL) {
            let extended = hide(&self.client, &self.queue_url, hidden.iter().copied()).await;
            // Otherwise the messages are delivered to another worker too, which is harmless.
            if let Err(error) = extended {
                tracing::warn!(
                    error = error_code(&error),
                    "the visibility of messages was not extended"
                );
            }
        }
    }

    async fn delete(&self, messages: &[Message], response: &SqsBatchResponse) {
        let done = messages.iter().filter(|message| !failed(response, message));
        let entries: Vec<_> = done
            .enumerate()
            .filter_map(|(index, message)| {
                DeleteMessageBatchRequestEntry::builder()
                    .id(index.to_string())
                    .receipt_handle(message.receipt_handle.clone()?)
                    .build()
                    .ok()
            })
            .collect();
        for entries in entries.chunks(LARGEST_CALL) {
            let deleted = self
                .client
                .delete_message_batch()
                .queue_url(&self.queue_url)
                .set_entries(Some(entries.to_vec()))
                .send()
                .await;
            // Otherwise the messages are delivered again, which changes nothing.
            if let Err(error) = deleted {
                tracing::warn!(
                    error = error_code(&error),
                    "processed messages were not deleted"
                );
            }
        }
    }
}

/// The age of the oldest message, which shows how far the queue lags.
fn longest_wait(messages: &[Message], now: DateTime<Utc>) -> Duration {
    let sent = messages.iter().filter_map(|message| {
        let sent = message.attributes.as_ref()?;
        let sent = sent.get(&MessageSystemAttributeName::SentTimestamp)?;
        DateTime::from_timestamp_millis(sent.parse().ok()?)
    });
    sent.filter_map(|sent| (now - sent).to_std().ok())
        .max()
        .unwrap_or_default()
}

fn failed(response: &SqsBatchResponse, message: &Message) -> bool {
    response
        .batch_item_failures
        .iter()
        .any(|failure| Some(&failure.item_identifier) == message.message_id.as_ref())
}

/// A message in the form in which Lambda passes it to a function.
fn lambda_message(message: &Message) -> SqsMessage {
    let mut record = SqsMessage::default();
    record.message_id.clone_from(&message.message_id);
    record.receipt_handle.clone_from(&message.receipt_handle);
    record.body.clone_from(&message.body);
    record.attributes = message
        .attributes
        .iter()
        .flatten()
        .map(|(name, value)| (name.as_str().to_owned(), value.clone()))
        .collect();
    record.message_attributes = message
        .message_attributes
        .iter()
        .flatten()
        .map(|(name, value)| {
            let mut attribute = SqsMessageAttribute::default();
            attribute.string_value.clone_from(&value.string_value);
            attribute.data_type = Some(value.data_type.clone());
            (name.clone(), attribute)
        })
        .collect();
    record.event_source = Some("aws:sqs".to_owned());
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(at: &str) -> Message {
        let sent = MessageSystemAttributeName::SentTimestamp;
        Message::builder().attributes(sent, at).build()
    }

    #[test]
    fn the_oldest_message_determines_how_long_a_batch_has_waited() {
        let now = DateTime::from_timestamp_millis(10_000).unwrap();
        let waited = |messages: &[Message]| longest_wait(messages, now).as_millis();
        assert_eq!(waited(&[sent("9000"), sent("7500"), sent("9999")]), 2_500);
        assert_eq!(
            waited(&[sent("10001")]),
            0,
            "a message from the future has not waited"
        );
        assert_eq!(waited(&[Message::builder().build()]), 0);
        assert_eq!(waited(&[]), 0);
    }
}
