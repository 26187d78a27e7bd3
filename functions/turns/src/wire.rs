//! Responses to registrations.

use chrono::{DateTime, Utc};
use hearback_domain::feedback::follow_up::FollowUp;
use hearback_domain::turns::turn::{TurnCore, TurnState};
use serde::Serialize;
use utoipa::ToSchema;

/// A registered turn.
#[derive(Serialize, ToSchema)]
pub(crate) struct RegisteredTurn {
    conversation_id: String,
    turn_id: String,
    /// Whose turn it is.
    user_id: String,
    /// `open` until it has an answer.
    status: TurnState,
    /// The time of the turn.
    ts: DateTime<Utc>,
    /// Tags of the turn.
    tags: Vec<String>,
    /// Its feedback on the previous turn; `null` if there is none.
    #[schema(required = true)]
    detection: Option<FollowUp>,
}

impl RegisteredTurn {
    pub(crate) fn of(turn: &TurnCore, detection: Option<FollowUp>) -> Self {
        Self {
            conversation_id: turn.at.within.conversation.to_string(),
            turn_id: turn.at.turn.to_string(),
            user_id: turn.user_id.to_string(),
            status: TurnState::of(turn.open),
            ts: turn.ts,
            tags: turn.tags(),
            detection,
        }
    }
}
