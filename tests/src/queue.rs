//! What a queue does with the messages of a consumer, one at a time and when a test says so.

use std::collections::HashMap;
use std::time::Duration;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage, SqsMessageAttribute};
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::types::QueueAttributeName;
use serde_json::json;
use uuid::Uuid;

use crate::engine::Engine;
use crate::stored::rows;

/// Messages that come to a consumer at once.
#[must_use]
pub fn batch(messages: impl IntoIterator<Item = SqsMessage>) -> SqsEvent {
    let mut batch = SqsEvent::default();
    batch.records = messages.into_iter().collect();
    batch
}

/// Hands one message to a consumer, and answers whether that failed; `None` if there is none. One that
/// failed comes again at once.
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
        // One that was held for too long is there again already.
        let _ = change.visibility_timeout(0).send().await;
    } else {
        let delete = sqs.delete_message().queue_url(queue);
        let delete = delete.set_receipt_handle(message.receipt_handle);
        delete.send().await.unwrap();
    }
    Some(failed)
}

/// Whether a queue has no message; or else waits a moment. One may be hidden, because a call received it whose
/// answer was lost: it comes again.
pub async fn is_empty(sqs: &aws_sdk_sqs::Client, queue: &str) -> bool {
    let told = sqs.get_queue_attributes().queue_url(queue);
    let told = told.attribute_names(QueueAttributeName::All).send().await;
    let told = told.unwrap().attributes.unwrap();
    let messages = [
        QueueAttributeName::ApproximateNumberOfMessages,
        QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
    ];
    let is_empty = messages.iter().all(|count| told[count] == "0");
    if !is_empty {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    is_empty
}

/// The message that the pipe sends of a row as it stands in the table.
#[must_use]
pub fn carried(row: &HashMap<String, AttributeValue>, event: &str) -> SqsMessage {
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

/// The messages that the pipe sends of the rows of a kind, in the order of their keys.
pub async fn submitted(engine: &Engine, kind: &str) -> Vec<SqsMessage> {
    let mut rows = rows(&engine.clients.dynamodb, &engine.names.table()).await;
    rows.retain(|row| row["SK"].as_s().unwrap().starts_with(kind) && row.contains_key("core"));
    rows.sort_by_key(|row| format!("{:?}{:?}", row["PK"], row["SK"]));
    rows.iter().map(|row| carried(row, "INSERT")).collect()
}
