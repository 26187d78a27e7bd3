//! What Lambda's SQS event source does: receives batches, hands them to the function, deletes what
//! was worked off, and leaves what was not to the queue's visibility and redrive.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage, SqsMessageAttribute};
use aws_sdk_sqs::types::{
    ChangeMessageVisibilityBatchRequestEntry, DeleteMessageBatchRequestEntry, Message,
    MessageSystemAttributeName,
};
use chrono::{DateTime, Utc};
use futures::FutureExt;
use hearback_batch::{Importer, Ingest};
use hearback_erasure::Eraser;
use hearback_lambda::aws::error_code;
use hearback_signals::Generator;
use tokio_util::sync::CancellationToken;

use crate::health::Pulse;
use crate::load::Load;

/// How long a receive waits for a message.
const WAIT_SECONDS: i32 = 20;
/// How long to wait when the queue cannot be reached.
const PAUSE: Duration = Duration::from_millis(500);
/// How long an import works before it hands the rest on.
const IMPORT_TIME: Duration = Duration::from_mins(1);

/// A function that a queue triggers.
pub trait Consumer: Send + Sync + 'static {
    /// Messages in a batch, as in the template.
    const BATCH: i32;
    /// Whether it waits for others to be done who take feedback in, or is itself one of them.
    const GIVES_WAY: bool;

    /// Works off a batch, and names the messages that must be delivered again.
    fn handle(&self, batch: SqsEvent) -> impl Future<Output = SqsBatchResponse> + Send;
}

impl Consumer for Generator {
    const BATCH: i32 = 10;
    const GIVES_WAY: bool = true;

    async fn handle(&self, batch: SqsEvent) -> SqsBatchResponse {
        Self::handle(self, batch).await
    }
}

impl Consumer for Ingest {
    const BATCH: i32 = 10;
    const GIVES_WAY: bool = false;

    async fn handle(&self, batch: SqsEvent) -> SqsBatchResponse {
        Self::handle(self, batch).await
    }
}

impl Consumer for Eraser {
    const BATCH: i32 = 1;
    const GIVES_WAY: bool = true;

    async fn handle(&self, batch: SqsEvent) -> SqsBatchResponse {
        Self::handle(self, batch, None).await
    }
}

impl Consumer for Importer {
    const BATCH: i32 = 1;
    const GIVES_WAY: bool = false;

    async fn handle(&self, batch: SqsEvent) -> SqsBatchResponse {
        Self::handle(self, batch, Some(Utc::now() + IMPORT_TIME)).await
    }
}

/// Feeds a function from its queue.
#[derive(Debug)]
pub struct EventSource<C> {
    /// Reads the queue.
    pub client: aws_sdk_sqs::Client,
    /// The queue.
    pub queue_url: String,
    /// The function.
    pub consumer: C,
    /// How long messages are kept from others without a sign of life. AWS keeps them for six times the
    /// longest that a function may take; here a process that died is started again at once, and what it
    /// had in hand is to come back soon.
    pub visibility: Duration,
    /// How busy the machine is.
    pub load: Load,
    /// Where it says whether it works.
    pub pulse: Pulse,
}

impl<C: Consumer> EventSource<C> {
    /// Feeds until `stop`. A batch that was begun is finished.
    pub async fn run(self, stop: CancellationToken) {
        let mut waited = Duration::ZERO;
        loop {
            if C::GIVES_WAY {
                self.load.give_way(waited).await;
            }
            let Some(received) = stop.run_until_cancelled(self.receive()).await else {
                return;
            };
            match received {
                Some(messages) => {
                    waited = longest_wait(&messages, Utc::now());
                    self.work_off(messages).await;
                }
                None => {
                    stop.run_until_cancelled(tokio::time::sleep(PAUSE)).await;
                }
            }
        }
    }

    async fn receive(&self) -> Option<Vec<Message>> {
        self.client
            .receive_message()
            .queue_url(&self.queue_url)
            .max_number_of_messages(C::BATCH)
            .wait_time_seconds(WAIT_SECONDS)
            .message_system_attribute_names(MessageSystemAttributeName::All)
            .message_attribute_names("All")
            .send()
            .await
            .map(|received| {
                self.pulse.works();
                received.messages.unwrap_or_default()
            })
            .map_err(|error| self.pulse.failed(error_code(&error), 0))
            .ok()
    }

    async fn work_off(&self, messages: Vec<Message>) {
        if messages.is_empty() {
            return;
        }
        let mut event = SqsEvent::default();
        event.records = messages.iter().map(lambda_message).collect();
        let _burst = (!C::GIVES_WAY).then(|| self.load.begin_burst());
        // A function that panics is started again by Lambda, and its messages come again.
        let work = AssertUnwindSafe(self.consumer.handle(event)).catch_unwind();
        let mut work = std::pin::pin!(work);
        let response = loop {
            tokio::select! {
                response = &mut work => break response,
                () = tokio::time::sleep(self.visibility / 2) => self.hold(&messages).await,
            }
        };
        if let Ok(response) = response {
            self.delete(&messages, &response).await;
        } else {
            tracing::warn!(messages = messages.len(), "the function panicked");
        }
    }

    /// Keeps messages from others for longer.
    async fn hold(&self, messages: &[Message]) {
        let seconds = i32::try_from(self.visibility.as_secs()).unwrap_or(i32::MAX);
        let entries = messages.iter().enumerate().filter_map(|(at, message)| {
            ChangeMessageVisibilityBatchRequestEntry::builder()
                .id(at.to_string())
                .receipt_handle(message.receipt_handle.clone()?)
                .visibility_timeout(seconds)
                .build()
                .ok()
        });
        let held = self
            .client
            .change_message_visibility_batch()
            .queue_url(&self.queue_url)
            .set_entries(Some(entries.collect()))
            .send()
            .await;
        // What is not held is delivered to somebody else too, and does no harm.
        if let Err(error) = held {
            tracing::warn!(error = error_code(&error), "messages not held");
        }
    }

    async fn delete(&self, messages: &[Message], response: &SqsBatchResponse) {
        let done = messages.iter().filter(|message| !failed(response, message));
        let entries: Vec<_> = done
            .enumerate()
            .filter_map(|(at, message)| {
                DeleteMessageBatchRequestEntry::builder()
                    .id(at.to_string())
                    .receipt_handle(message.receipt_handle.clone()?)
                    .build()
                    .ok()
            })
            .collect();
        if entries.is_empty() {
            return;
        }
        let deleted = self
            .client
            .delete_message_batch()
            .queue_url(&self.queue_url)
            .set_entries(Some(entries))
            .send()
            .await;
        // What was not deleted is delivered again, and changes nothing then.
        if let Err(error) = deleted {
            tracing::warn!(error = error_code(&error), "messages not deleted");
        }
    }
}

/// How long the message has waited that was sent first. It says how far behind the queue is.
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

/// A message in the shape in which Lambda hands it to a function.
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
    fn a_batch_has_waited_as_long_as_its_oldest_message() {
        let now = DateTime::from_timestamp_millis(10_000).unwrap();
        let waited = |messages: &[Message]| longest_wait(messages, now).as_millis();
        assert_eq!(waited(&[sent("9000"), sent("7500"), sent("9999")]), 2_500);
        assert_eq!(waited(&[sent("10001")]), 0, "a clock that is behind");
        assert_eq!(waited(&[Message::builder().build()]), 0);
        assert_eq!(waited(&[]), 0);
    }
}
