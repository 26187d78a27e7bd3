//! The report of a conversation: its turns with feedback.
//!
//! Source: `Feedback System` (v2.2), "Turns With Feedbacks" and "Reaction artifact".

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::caller::Caller;
use crate::digest::digest;
use crate::identifier::{TurnId, UserId};
use crate::parse::{Errors, FieldError, Object, boolean, identifier, integer_in};
use crate::period::{cursor, limit};
use crate::reaction::{Origin, Reaction, StoredReaction};

/// Most turns that a request may name.
pub const MAX_TURN_IDS: usize = 1000;
/// Days that are looked back at most.
const MAX_DAYS: i64 = 3650;
/// Days that are looked back, unless the request says otherwise.
const DEFAULT_DAYS: i64 = 365;

/// What the report is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// These turns, or all of the conversation.
    pub turn_ids: Option<Vec<TurnId>>,
    /// Feedback of the last days only. Turns that are named have no such limit unless one is
    /// given.
    pub days: Option<i64>,
    /// Whether to read the turns' logs too.
    pub include_turn_logs: bool,
    /// Most turns on the page.
    pub limit: usize,
    /// Where the page begins; at the beginning without.
    pub cursor: Option<String>,
    /// The user in whose view it is asked for; the caller without.
    pub user_id: Option<UserId>,
}

const MEMBERS: &[&str] = &[
    "turn_ids",
    "days",
    "include_turn_logs",
    "limit",
    "cursor",
    "user_id",
];

impl Request {
    /// Reads a request, all errors at once.
    pub fn parse(body: &Value) -> Result<Self, Vec<FieldError>> {
        let mut errors = Errors::default();
        let object = Object::root(body, &mut errors);
        object.known_only(MEMBERS, &mut errors);
        let turn_ids = object.nullable("turn_ids", &mut errors, turn_ids);
        let days = object.nullable("days", &mut errors, integer_in(1, MAX_DAYS));
        let request = Self {
            days: days.or_else(|| turn_ids.is_none().then_some(DEFAULT_DAYS)),
            turn_ids,
            include_turn_logs: object
                .nullable("include_turn_logs", &mut errors, boolean)
                .unwrap_or(false),
            limit: limit(object, &mut errors),
            cursor: cursor(object, &mut errors),
            user_id: object.nullable("user_id", &mut errors, identifier),
        };
        if errors.is_empty() {
            Ok(request)
        } else {
            Err(errors.into_vec())
        }
    }

    /// Feedback before this is left out.
    #[must_use]
    pub fn since(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        self.days
            .and_then(|days| now.checked_sub_signed(TimeDelta::days(days)))
            .unwrap_or(DateTime::<Utc>::MIN_UTC)
    }

    /// Tells this query from every other; `whose` says whose feedback the caller sees.
    #[must_use]
    pub fn fingerprint(&self, conversation: [&str; 3], whose: &str) -> [u8; 32] {
        let days = self.days.map_or_else(String::new, |days| days.to_string());
        let logs = if self.include_turn_logs { "logs" } else { "" };
        let [tenant, project, conversation] = conversation;
        let fixed = ["turns", tenant, project, conversation, whose, &days, logs];
        let turns = self.turn_ids.iter().flatten().map(TurnId::as_str);
        digest(fixed.into_iter().chain(turns))
    }
}

fn turn_ids(value: &Value) -> Result<Vec<TurnId>, String> {
    let expected = || format!("must be an array of up to {MAX_TURN_IDS} identifiers");
    let items = value.as_array().ok_or_else(expected)?;
    if items.len() > MAX_TURN_IDS {
        return Err(expected());
    }
    let mut turns: Vec<TurnId> = Vec::new();
    for item in items {
        let turn = identifier(item).map_err(|_| expected())?;
        // Named twice is listed once.
        if !turns.contains(&turn) {
            turns.push(turn);
        }
    }
    Ok(turns)
}

/// A reaction as its artifact.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Artifact {
    /// The reaction.
    pub reaction: ArtifactReaction,
    /// What the artifact is.
    pub meta: ArtifactMeta,
    /// Whose it is; `null` of a signal or an event of somebody else's, which counts without a name.
    pub user_id: Option<String>,
    /// The conversation.
    pub conversation_id: String,
    /// The bundle that answered.
    pub bundle_id: Option<String>,
    /// How it is found.
    pub tags: Vec<String>,
}

/// The reaction of an artifact.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ArtifactReaction {
    /// The turn.
    pub turn_id: String,
    /// What was written.
    pub text: String,
    /// How sure it is, 0 to 1.
    pub confidence: f64,
    /// When it was.
    pub ts: DateTime<Utc>,
    /// The verdict.
    pub reaction: Option<Reaction>,
    /// Who said so.
    pub origin: Origin,
}

/// What an artifact is.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ArtifactMeta {
    /// Its name.
    pub rn: String,
    /// The turn.
    pub turn_id: String,
    /// The track of the turn.
    pub track_id: Option<String>,
    /// The kind of user of the turn.
    pub user_type: Option<String>,
    /// Always `turn.log.reaction`.
    pub kind: &'static str,
}

impl Artifact {
    /// The artifact of a reaction, as the caller sees it.
    #[must_use]
    pub fn of(reaction: &StoredReaction, caller: &Caller) -> Self {
        let core = &reaction.core;
        let turn_id = core.at.turn.to_string();
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
            user_id: reaction.shown_to(caller).then(|| core.user_id.to_string()),
            conversation_id: core.at.within.conversation.to_string(),
            bundle_id: core.bundle_id.as_ref().map(ToString::to_string),
            tags: core.tags(),
        }
    }
}
