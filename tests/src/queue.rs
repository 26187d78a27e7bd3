//! What a queue does with the messages of a consumer, one at a time and when a test says so.

use std::collections::HashMap;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::json;
use uuid::Uuid;

/// Hands one message to a consumer, and answers whether that failed; `None` if there is none. One that
/// failed comes again at once.
pub async fn step<F: Future<Output = SqsBatchResponse>>(
    sqs: &aws_sdk_sqs::Client,
    queue: &str,
    handle: impl FnOnce(SqsEvent) -> F,
) -> Option<bool> {
    let received = sqs.receive_message().queue_url(queue).send().await;
    let message = received.unwrap().messages?.into_iter().next()?;
    let mut record = SqsMessage::default();
    record.message_id.clone_from(&message.message_id);
    record.body.clone_from(&message.body);
    let mut batch = SqsEvent::default();
    batch.records = vec![record];
    let response = handle(batch).await;
    let failed = !response.batch_item_failures.is_empty();
    if failed {
        let change = sqs.change_message_visibility().queue_url(queue);
        let change = change.set_receipt_handle(message.receipt_handle);
        change.visibility_timeout(0).send().await.unwrap();
    } else {
        let delete = sqs.delete_message().queue_url(queue);
        let delete = delete.set_receipt_handle(message.receipt_handle);
        delete.send().await.unwrap();
    }
    Some(failed)
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
