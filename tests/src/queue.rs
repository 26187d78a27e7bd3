//! A queue that delivers messages to a consumer one at a time.

use std::collections::HashMap;
use std::time::Duration;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage, SqsMessageAttribute};
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::types::QueueAttributeName;
use serde_json::json;
use uuid::Uuid;

use crate::engine::Engine;
use crate::rows::rows;

/// Messages that a consumer receives as one batch.
#[must_use]
pub fn batch(messages: impl IntoIterator<Item = SqsMessage>) -> SqsEvent {
    let mut batch = SqsEvent::default();
    batch.records = messages.into_iter().collect();
    batch
}

/// Delivers one message to a consumer, and returns whether it failed; `None` if the queue is empty. A failed message
/// is immediately visible again.
pub async fn step<F: Future<Output = SqsBatchResponse>>(
    sqs: &aws_sdk_sqs::Client,
    queue: &str,
    handle: impl FnOnce(SqsEvent) -> F,
) -> Option<bool> {
    let receive = sqs.receive_message().queue_url(queue);
    let received = receive.message_attribute_names("All").send().await;
    let message = received.unwrap().messages?.into_iter().next()?;
    let mut record = SqsMessage::default();
    record.message_id.clone_from(&message.message_id);
    record.body.clone_from(&message.body);
    for (name, value) in message.message_attributes.iter().flatten() {
        let mut attribute = SqsMessageAttribute::default();
        attribute.string_value.clone_from(&value.string_value);
        record.message_attributes.insert(name.clone(), attribute);
    }
    let response = handle(batch([record])).await;
    let failed = !response.batch_item_failures.is_empty();
    if failed {
        let change = sqs.change_message_visibility().queue_url(queue);
        let change = change.set_receipt_handle(message.receipt_handle);
        // A message whose visibility timeout has passed is visible already.
        let _ = change.visibility_timeout(0).send().await;
    } else {
        let delete = sqs.delete_message().queue_url(queue);
        let delete = delete.set_receipt_handle(message.receipt_handle);
        delete.send().await.unwrap();
    }
    Some(failed)
}

/// Receives and deletes every visible message of a queue.
pub async fn drain(sqs: &aws_sdk_sqs::Client, queue: &str) -> Vec<SqsMessage> {
    let mut drained = Vec::new();
    loop {
        let receive = sqs.receive_message().queue_url(queue);
        let received = receive.max_number_of_messages(10).send().await.unwrap();
        let Some(messages) = received.messages.filter(|messages| !messages.is_empty()) else {
            return drained;
        };
        for message in messages {
            let delete = sqs.delete_message().queue_url(queue);
            let delete = delete.set_receipt_handle(message.receipt_handle);
            delete.send().await.unwrap();
            let mut record = SqsMessage::default();
            record.message_id = message.message_id;
            record.body = message.body;
            drained.push(record);
        }
    }
}

/// The number of messages of a queue, hidden and delayed ones included.
pub async fn count(sqs: &aws_sdk_sqs::Client, queue: &str) -> usize {
    let attributes = sqs.get_queue_attributes().queue_url(queue);
    let attributes = attributes
        .attribute_names(QueueAttributeName::All)
        .send()
        .await;
    let attributes = attributes.unwrap().attributes.unwrap();
    let counts = [
        QueueAttributeName::ApproximateNumberOfMessages,
        QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
        QueueAttributeName::ApproximateNumberOfMessagesDelayed,
    ];
    let counts = counts
        .iter()
        .map(|count| attributes[count].parse::<usize>());
    counts.map(Result::unwrap).sum()
}

/// Whether a queue has no messages, visible or not; if it has, waits for 50 ms. A message is invisible after a
/// receive whose response was lost.
pub async fn is_empty(sqs: &aws_sdk_sqs::Client, queue: &str) -> bool {
    let is_empty = count(sqs, queue).await == 0;
    if !is_empty {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    is_empty
}

/// The message that the pipe sends for the current row.
#[must_use]
pub fn pipe_message(row: &HashMap<String, AttributeValue>, event: &str) -> SqsMessage {
    let text = |name: &str| row[name].as_s().unwrap();
    let record = json!({
        "eventName": event,
        "dynamodb": {
            "Keys": {"PK": {"S": text("PK")}, "SK": {"S": text("SK")}},
            "NewImage": {"core": {"S": text("core")}}
        }
    });
    let mut message = SqsMessage::default();
    message.message_id = Some(Uuid::new_v4().to_string());
    message.body = Some(record.to_string());
    message
}

/// The messages that the pipe sends for the rows of a kind, by key.
pub async fn submitted(engine: &Engine, kind: &str) -> Vec<SqsMessage> {
    let mut rows = rows(&engine.clients.dynamodb, &engine.names.table()).await;
    rows.retain(|row| row["SK"].as_s().unwrap().starts_with(kind) && row.contains_key("core"));
    rows.sort_by_key(|row| format!("{:?}{:?}", row["PK"], row["SK"]));
    rows.iter().map(|row| pipe_message(row, "INSERT")).collect()
}
