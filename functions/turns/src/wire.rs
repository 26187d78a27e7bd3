//! The shapes of a registration. The request is described here
//! and read by the domain, which reports every wrong member at once.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use hearback_domain::follow_up::FollowUp;
use hearback_domain::turn::{Status, TurnCore};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A turn as callers register it.
#[derive(Serialize, ToSchema)]
#[schema(examples(
    json!({
        "user": {"text": "How do I return an item?"},
        "assistant": {"text": "Within 30 days, with the receipt.", "message_id": "msg-1"},
        "track_id": "A",
        "task_type": "support"
    }),
    json!({"user": {"text": "Wie gebe ich etwas zurück?"}, "language": "de"})
))]
pub(crate) struct Registration {
    /// RFC 3339 with an offset; the time of receipt if left out.
    #[schema(format = DateTime)]
    ts: Option<String>,
    /// Whose turn it is: the caller's own, or with `feedback:on-behalf` anybody's.
    user_id: Option<String>,
    /// What the user said, and whatever is to be kept beside.
    user: Said,
    /// What was answered, and whatever is to be kept beside. Left out, the turn is open until a body with
    /// the answer completes it.
    assistant: Option<Answered>,
    /// Trace of the answer.
    trace_id: Option<String>,
    /// Span of the answer within its trace.
    span_id: Option<String>,
    /// Track that the turn is on.
    track_id: Option<String>,
    /// Bundle that answered.
    bundle_id: Option<String>,
    /// Kind of user.
    user_type: Option<String>,
    /// Kind of what was answered.
    artifact_type: Option<String>,
    /// Kind of task.
    task_type: Option<String>,
    /// Agent that answered.
    agent_id: Option<String>,
    /// Strategy by which it did.
    strategy: Option<String>,
    /// What a validation of the answer said.
    validation_outcome: Option<String>,
    /// How good the answer was held to be.
    #[schema(minimum = 0, maximum = 1)]
    quality_score: Option<f64>,
    /// What you compare answers by, inherited by every act on the turn: up to 16 keys of 1 to 64 characters
    /// (`A-Z`, `a-z`, `0-9`, `_`, `.`, `-`), each with a string of 1 to 256 characters. `model` and
    /// `prompt_version` are the well-known keys.
    #[schema(example = json!({"model": "gpt-5", "prompt_version": "v7"}))]
    labels: Option<BTreeMap<String, String>>,
    /// Embedding of the turn, 1 to 4096 numbers.
    embedding: Option<Vec<f32>>,
    /// Language of what the user said, as a BCP 47 tag such as `de` or `pt-BR`; guessed if left out.
    #[schema(max_length = 64, pattern = "^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$")]
    language: Option<String>,
    /// The caller's own log of the turn, into which feedback may be mirrored.
    #[schema(value_type = Option<Object>)]
    turn_log: Option<Value>,
}

#[derive(Serialize, ToSchema)]
struct Said {
    /// The message.
    text: String,
}

#[derive(Serialize, ToSchema)]
struct Answered {
    /// The answer.
    text: String,
    /// The answer's own name, one in the project.
    message_id: Option<String>,
}

/// A turn is registered.
#[derive(Serialize, ToSchema)]
pub(crate) struct Registered {
    conversation_id: String,
    turn_id: String,
    /// Whose turn it is.
    user_id: String,
    /// `open` until it has an answer.
    status: Status,
    /// When it was.
    ts: DateTime<Utc>,
    /// How it is found.
    tags: Vec<String>,
    /// What it says of the turn before it; `null` if it follows none.
    detection: Option<FollowUp>,
}

impl Registered {
    pub(crate) fn of(turn: &TurnCore, detection: Option<FollowUp>) -> Self {
        Self {
            conversation_id: turn.at.within.conversation.to_string(),
            turn_id: turn.at.turn.to_string(),
            user_id: turn.user_id.to_string(),
            status: Status::of(turn.open),
            ts: turn.ts,
            tags: turn.tags(),
            detection,
        }
    }
}
