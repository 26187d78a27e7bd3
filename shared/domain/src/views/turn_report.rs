//! The report of a conversation: its turns with feedback.
//!
//! See docs/reference/reports.md.

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::events::retention::Retention;
use crate::feedback::reaction::{Origin, Reaction, StoredReaction};
use crate::identity::caller::Caller;
use crate::identity::identifier::{TurnId, UserId};
use crate::text::digest::digest;
use crate::text::page::{DEFAULT_LIMIT, PageLimit};
use hearback_wire::{Integer, List, request};

/// Maximum number of turn ids in a request.
pub const MAX_TURN_IDS: usize = 1000;
/// Default value of `days`.
pub const DEFAULT_DAYS: i64 = 365;

request! {
    /// A request for the report of a conversation.
    pub struct TurnReportRequest, closed {
        /// The turns to report; all turns of the conversation if left out.
        "turn_ids" => turn_ids: nullable List<TurnId, 0, MAX_TURN_IDS>,
        /// Maximum age of the feedback in days. If left out: 365, or unlimited with `turn_ids`.
        "days" => days: nullable Integer<1, { Retention::MAX_DAYS }>,
        /// Whether to return the logs of the turns.
        "include_turn_logs" => include_turn_logs: nullable bool = false,
        /// Maximum number of turns on the page.
        "limit" => limit: nullable PageLimit = DEFAULT_LIMIT,
        /// `next_cursor` of the previous page.
        "cursor" => cursor: nullable String,
        /// The user in whose view the report is made, with `feedback:on-behalf`; the caller if left out.
        "user_id" => user_id: nullable UserId,
    }
    example {"turn_ids": ["turn-1", "turn-2"], "include_turn_logs": true}
}

impl TurnReportRequest {
    /// The requested turns without duplicates; `None` for all turns of the conversation.
    #[must_use]
    pub fn distinct_turn_ids(&self) -> Option<Vec<TurnId>> {
        let mut seen = HashSet::new();
        let turn_ids = self.turn_ids.as_ref()?.iter();
        Some(
            turn_ids
                .filter(|turn| seen.insert(*turn))
                .cloned()
                .collect(),
        )
    }

    /// The maximum age of the feedback in days; `None` for no limit.
    #[must_use]
    pub fn days(&self) -> Option<i64> {
        let default = self.turn_ids.is_none().then_some(DEFAULT_DAYS);
        self.days.map(|days| days.0).or(default)
    }

    /// The time before which feedback is left out.
    #[must_use]
    pub fn since(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        self.days()
            .and_then(|days| now.checked_sub_signed(TimeDelta::days(days)))
            .unwrap_or(DateTime::<Utc>::MIN_UTC)
    }

    /// A digest that identifies the query. `whose` is the user whose feedback the caller sees.
    #[must_use]
    pub fn fingerprint(&self, conversation: [&str; 3], whose: &str) -> [u8; 32] {
        let days = self
            .days()
            .map_or_else(String::new, |days| days.to_string());
        let logs = if self.include_turn_logs { "logs" } else { "" };
        let [tenant, project, conversation] = conversation;
        let fixed = ["turns", tenant, project, conversation, whose, &days, logs];
        let turns = self.distinct_turn_ids().unwrap_or_default();
        digest(fixed.into_iter().chain(turns.iter().map(TurnId::as_str)))
    }
}

/// A reaction as an artifact.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ReactionArtifact {
    /// The reaction.
    pub reaction: ArtifactReaction,
    /// The metadata of the artifact.
    pub meta: ArtifactMeta,
    /// The user; `null` for a message signal or an event of another user.
    #[schema(required = true)]
    pub user_id: Option<String>,
    /// The conversation.
    pub conversation_id: String,
    /// The bundle that answered.
    #[schema(required = true)]
    pub bundle_id: Option<String>,
    /// The tags of the artifact.
    pub tags: Vec<String>,
}

/// The reaction of an artifact.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ArtifactReaction {
    /// The turn.
    pub turn_id: String,
    /// The user's text.
    pub text: String,
    /// The confidence, 0 to 1.
    pub confidence: f64,
    /// The time of the reaction.
    pub ts: DateTime<Utc>,
    /// The verdict.
    #[schema(required = true)]
    pub reaction: Option<Reaction>,
    /// Who reacted.
    pub origin: Origin,
}

/// The metadata of an artifact.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ArtifactMeta {
    /// The resource name.
    pub rn: String,
    /// The turn.
    pub turn_id: String,
    /// The track of the turn.
    #[schema(required = true)]
    pub track_id: Option<String>,
    /// The user type of the turn.
    #[schema(required = true)]
    pub user_type: Option<String>,
    /// Always `turn.log.reaction`.
    pub kind: &'static str,
}

impl ReactionArtifact {
    /// The artifact of a reaction, as the caller sees it.
    #[must_use]
    pub fn of(reaction: &StoredReaction, caller: &Caller) -> Self {
        let core = &reaction.core;
        let turn_id = core.at.turn.to_string();
        let visible = reaction.is_visible_to(caller);
        let mut tags = core.tags();
        if visible {
            tags.extend(core.kind_tag());
        }
        Self {
            reaction: ArtifactReaction {
                turn_id: turn_id.clone(),
                text: reaction.text.clone(),
                confidence: core.confidence,
                ts: core.ts,
                reaction: core.reaction,
                origin: core.origin,
            },
            meta: ArtifactMeta {
                rn: core.rn(),
                turn_id,
                track_id: core.track_id.as_ref().map(ToString::to_string),
                user_type: core.user_type.as_ref().map(ToString::to_string),
                kind: "turn.log.reaction",
            },
            user_id: visible.then(|| core.user_id.to_string()),
            conversation_id: core.at.within.conversation.to_string(),
            bundle_id: core.bundle_id.as_ref().map(ToString::to_string),
            tags,
        }
    }
}
