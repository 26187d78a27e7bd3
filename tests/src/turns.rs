//! Turns to register, and paths below their conversations.

use aws_lambda_events::sqs::SqsMessage;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};

use crate::engine::Engine;

/// The path of a turn in the project that tokens of tests hold.
#[must_use]
pub fn path(conversation: &str, turn: &str) -> String {
    format!("{}/turns/{turn}", conversation_path(conversation))
}

/// The path of a conversation.
#[must_use]
pub fn conversation_path(conversation: &str) -> String {
    format!("/conversations/acme/order-service/{conversation}")
}

/// The path of the report of a period.
pub const PERIOD: &str = "/conversations/acme/order-service/feedback/conversations-in-period";

/// A turn in which this was said.
#[must_use]
pub fn said(user: &str, assistant: &str) -> Value {
    json!({"user": {"text": user}, "assistant": {"text": assistant}})
}

/// The message that the pipe sends of a user's reaction as it stands in the table.
pub async fn reaction_message(engine: &Engine, conversation: &str, user: &str) -> SqsMessage {
    let key = |text: String| AttributeValue::S(text);
    let (pk, sk) = (
        format!("CONV#acme#order-service#{conversation}"),
        format!("REACTION#t#user#{user}"),
    );
    let found = engine
        .clients
        .dynamodb
        .get_item()
        .table_name(engine.names.table())
        .key("PK", key(pk.clone()))
        .key("SK", key(sk.clone()))
        .consistent_read(true)
        .send()
        .await
        .unwrap();
    let item = found.item.unwrap();
    let core = item["core"].as_s().unwrap();
    let record = json!({
        "eventName": "MODIFY",
        "dynamodb": {
            "Keys": {"PK": {"S": pk}, "SK": {"S": sk}}, "NewImage": {"core": {"S": core}}
        }
    });
    let mut message = SqsMessage::default();
    message.message_id = Some(uuid::Uuid::new_v4().to_string());
    message.body = Some(record.to_string());
    message
}
