//! Bodies of turns, and paths of conversations.

use aws_lambda_events::sqs::SqsMessage;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::queue::pipe_message;

/// The path of a turn in the project of the tests' tokens.
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

/// The path of the list of rejected turns.
pub const BY_STATUS: &str = "/conversations/acme/order-service/turns?user_feedback_status=rejected";

/// The body of a turn.
#[must_use]
pub fn turn_body(user: &str, assistant: &str) -> Value {
    json!({"user": {"text": user}, "assistant": {"text": assistant}})
}

/// The same, with a message id.
#[must_use]
pub fn message(message_id: &str, user: &str, assistant: &str) -> Value {
    let mut turn = turn_body(user, assistant);
    turn["assistant"]["message_id"] = json!(message_id);
    turn
}

/// A line of an export of evaluations, about a turn of the conversation `c`.
#[must_use]
pub fn exported(turn: &str, message_id: &str) -> String {
    let row = json!({
        "id": "fb_1", "message_id": message_id, "conversation_id": "c", "turn_id": turn, "prompt": turn,
    });
    format!("{row}\n")
}

/// The feed.
pub const FEED: &str = "/v1/feedback/events";
/// The path of message signals.
pub const SIGNALS: &str = "/api/v1/feedback";

/// The message that the pipe sends for an event of the tenant `acme`.
pub async fn event_message(engine: &Engine, id: &Value) -> SqsMessage {
    let pk = format!("EVENT#acme#{}", id.as_str().unwrap());
    row_message(engine, (pk, "EVENT".to_owned()), "INSERT").await
}

/// The message that the pipe sends for a user's current reaction.
pub async fn reaction_message(engine: &Engine, conversation: &str, user: &str) -> SqsMessage {
    let pk = format!("CONV#acme#order-service#{conversation}");
    row_message(engine, (pk, format!("REACTION#t#user#{user}")), "MODIFY").await
}

/// The message that the pipe sends for a user's current message signal.
pub async fn signal_message(
    engine: &Engine,
    user: &str,
    message: &str,
    signal: &str,
) -> SqsMessage {
    let pk = format!("USER#acme#{user}");
    row_message(engine, (pk, format!("SIGNAL#{message}#{signal}")), "MODIFY").await
}

async fn row_message(engine: &Engine, (pk, sk): (String, String), event: &str) -> SqsMessage {
    let key = |text: &String| AttributeValue::S(text.clone());
    let found = engine
        .clients
        .dynamodb
        .get_item()
        .table_name(engine.names.table())
        .key("PK", key(&pk))
        .key("SK", key(&sk))
        .consistent_read(true)
        .send()
        .await
        .unwrap();
    pipe_message(&found.item.unwrap(), event)
}
