//! The form of a reaction in reports and in the logs of turns.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::feedback::reaction::{Origin, Reaction, StoredReaction};
use crate::identity::identifier::TurnId;

/// A reaction in a report.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ReportedFeedback {
    /// The turn.
    #[schema(value_type = String)]
    pub turn_id: TurnId,
    /// The time of the reaction.
    pub ts: DateTime<Utc>,
    /// The user's text.
    pub text: String,
    /// The verdict.
    #[schema(required = true)]
    pub reaction: Option<Reaction>,
    /// The confidence, 0 to 1.
    pub confidence: f64,
    /// Who reacted.
    pub origin: Origin,
    /// The resource name of the reaction's artifact.
    pub rn: String,
}

impl ReportedFeedback {
    /// The form of a reaction in a report.
    #[must_use]
    pub fn of(reaction: &StoredReaction) -> Self {
        let core = &reaction.core;
        Self {
            turn_id: core.at.turn.clone(),
            ts: core.ts,
            text: reaction.text.clone(),
            reaction: core.reaction,
            confidence: core.confidence,
            origin: core.origin,
            rn: core.rn(),
        }
    }
}
