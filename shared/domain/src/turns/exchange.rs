//! The prompt and the answer of a turn.

use serde_json::Value;

use crate::turns::turn::TurnLog;

/// The prompt and the answer of a turn, without the rest of its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptAndAnswer {
    /// The user's message.
    pub(crate) prompt: String,
    /// The answer, empty if the turn is open.
    pub(crate) answer: String,
}

impl From<TurnLog> for PromptAndAnswer {
    fn from(log: TurnLog) -> Self {
        Self {
            prompt: text_of(log.user),
            answer: log.assistant.map(text_of).unwrap_or_default(),
        }
    }
}

fn text_of(mut side: Value) -> String {
    match side.get_mut("text").map(Value::take) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}
