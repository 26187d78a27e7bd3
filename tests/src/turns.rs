//! Turns to register, and paths below their conversations.

use serde_json::{Value, json};

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
