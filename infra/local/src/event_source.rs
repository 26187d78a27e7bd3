//! What Lambda's SQS event source does: receives batches, hands them to the function, deletes what
//! was worked off, and leaves what was not to the queue's visibility and redrive.

use std::time::Duration;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName};
use hearback_lambda::aws::error_code;
use hearback_signals::Generator;
use tokio_util::sync::CancellationToken;

use crate::load::Load;

/// Messages in a batch, as in the template.
const BATCH: i32 = 10;
/// How long a receive waits for a message.
const WAIT_SECONDS: i32 = 20;
/// How long to wait when the queue cannot be reached.
const PAUSE: Duration = Duration::from_millis(500);

/// Feeds the signal generator from its queue.
#[derive(Debug)]
pub struct EventSource {
    /// Reads the queue.
    pub client: aws_sdk_sqs::Client,
    /// The queue.
    pub queue_url: String,
    /// The function.
    pub generator: Generator,
    /// Requests, which go first.
    pub load: Load,
}

impl EventSource {
    /// Feeds until `stop`. A batch that was begun is finished.
    pub async fn run(self, stop: CancellationToken) {
        loop {
            self.load.give_way().await;
            let Some(received) = stop.run_until_cancelled(self.receive()).await else {
                return;
            };
            match received {
                Some(messages) => self.work_off(messages).await,
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
            .max_number_of_messages(BATCH)
            .wait_time_seconds(WAIT_SECONDS)
            .message_system_attribute_names(MessageSystemAttributeName::All)
            .send()
            .await
            .map(|received| received.messages.unwrap_or_default())
            .map_err(|error| tracing::warn!(error = error_code(&error), "queue not read"))
            .ok()
    }

    async fn work_off(&self, messages: Vec<Message>) {
        if messages.is_empty() {
            return;
        }
        let mut event = SqsEvent::default();
        event.records = messages.iter().map(lambda_message).collect();
        let response = self.generator.handle(event).await;
        let done = messages
            .iter()
            .filter(|message| !failed(&response, message));
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
    record.event_source = Some("aws:sqs".to_owned());
    record
}
