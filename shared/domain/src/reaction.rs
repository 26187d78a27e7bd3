//! What somebody, or the machine in their name, thinks of one turn.
//!
//! Source: `Feedback System` (v2.2), "Feedback Types & Data" and "Reaction artifact"; product
//! specification, section 3.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::caller::{Caller, Forbidden, Scope};
use crate::detection::{Detection, FeedbackType};
use crate::digest::uuid;
use crate::event::{EventContext, is_false, wire_names};
use crate::identifier::{Label, UserId};
use crate::legacy::LegacyReaction;
use crate::parse::{
    Errors, FieldError, Object, boolean, date_time, identifier, number_in, one_of, text, to_instant,
};
use crate::privacy::Pseudonyms;
use crate::turn::{ConversationRef, TurnCore, TurnRef};

/// A verdict on a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reaction {
    /// It was good.
    Ok,
    /// It was not.
    NotOk,
    /// Neither.
    Neutral,
}

wire_names!(Reaction {
    Ok = "ok",
    NotOk = "not_ok",
    Neutral = "neutral",
});

/// Who reacted.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The user, on purpose.
    User,
    /// The machine, which inferred it of what the user wrote.
    Machine,
}

wire_names!(Origin {
    User = "user",
    Machine = "machine",
});

/// By what somebody said something of a turn.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// A reaction on the turn.
    #[default]
    Reaction,
    /// The signal `helpful` on its answer.
    Helpful,
    /// The signal `not_helpful`.
    NotHelpful,
    /// The signal `inaccurate`.
    Inaccurate,
    /// The signal `unsafe`.
    Unsafe,
    /// A feedback event that names the turn.
    Event,
}

wire_names!(Means {
    Reaction = "reaction",
    Helpful = "helpful",
    NotHelpful = "not_helpful",
    Inaccurate = "inaccurate",
    Unsafe = "unsafe",
    Event = "event",
});

impl Means {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde calls it with a reference"
    )]
    fn is_reaction(&self) -> bool {
        *self == Self::Reaction
    }
}

/// What a model may learn from what somebody said of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Teaches {
    /// Whether the answer was good.
    #[default]
    Verdict,
    /// That, and maybe what it should have been.
    Correction,
    /// Nothing: its user wants it so.
    Nothing,
}

impl Teaches {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde calls it with a reference"
    )]
    fn is_verdict(&self) -> bool {
        *self == Self::Verdict
    }
}

/// Longest text of a reaction, in characters.
pub const MAX_TEXT: usize = 1000;
/// The least confidence at which what the machine inferred is written down.
pub const GATE: f64 = 0.70;
/// How far a caller's clock may be ahead of ours.
pub const AHEAD: TimeDelta = TimeDelta::minutes(5);
/// Ids of reactions are derived in this namespace.
const NAMESPACE: Uuid = Uuid::from_u128(0x8d1d_3a5e_5b0f_4c53_9a77_0f2e_6c1b_94d4);

/// A reaction as it is kept, but for its text: what the reports count and the pipes carry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReactionCore {
    /// The act, and its event in the ledger.
    pub id: Uuid,
    /// What it is about.
    #[serde(flatten)]
    pub at: TurnRef,
    /// When that turn was.
    pub turn_ts: DateTime<Utc>,
    /// Who reacted, or in whose name the machine did.
    pub user_id: UserId,
    /// By what: a reaction, or a signal or an event that counts as one ([`crate::counted`]).
    #[serde(default, skip_serializing_if = "Means::is_reaction")]
    pub means: Means,
    /// Who said so.
    pub origin: Origin,
    /// The verdict; `None` is a tombstone: there was one, and it was cleared.
    pub reaction: Option<Reaction>,
    /// How sure it is: 1 for a user's own.
    pub confidence: f64,
    /// When it was, by the caller's clock.
    pub ts: DateTime<Utc>,
    /// When it came, by ours.
    pub received_at: DateTime<Utc>,
    /// The act that it took the place of, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Uuid>,
    /// Whether it is to be written into the turn's log too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub mirror: bool,
    /// Whether it is the turn's own user who reacted: then it says how the turn was taken.
    #[serde(default, skip_serializing_if = "is_false")]
    pub own: bool,
    /// The track of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub track_id: Option<Label>,
    /// The kind of user of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_type: Option<Label>,
    /// The bundle that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle_id: Option<Label>,
    /// What the ledger is told of the turn.
    #[serde(default)]
    pub context: EventContext,
    /// What a model may learn from it.
    #[serde(default, skip_serializing_if = "Teaches::is_verdict")]
    pub teaches: Teaches,
    /// What stood here before, the newest first: see [`Trace`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trail: Vec<Trace>,
    /// When it expires: with its turn. An attribute of the row of its own, which does not travel.
    #[serde(skip)]
    pub expires_at: Option<DateTime<Utc>>,
}

/// When a reaction was that another took the place of. A report that is read page by page while
/// reactions arrive needs to know where a conversation stood when its first page was read
/// ([`crate::period`]).
///
/// Stored as three members of an array, in microseconds: a kilobyte is what a write costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(i64, i64, bool)", into = "(i64, i64, bool)")]
pub struct Trace {
    /// When it was.
    pub ts: DateTime<Utc>,
    /// When it came.
    pub received_at: DateTime<Utc>,
    /// Whether it was one that counts: no tombstone.
    pub counts: bool,
}

impl From<(i64, i64, bool)> for Trace {
    fn from((ts, received_at, counts): (i64, i64, bool)) -> Self {
        let instant = |micros| DateTime::from_timestamp_micros(micros).unwrap_or_default();
        Self {
            ts: instant(ts),
            received_at: instant(received_at),
            counts,
        }
    }
}

impl From<Trace> for (i64, i64, bool) {
    fn from(trace: Trace) -> Self {
        let micros = |instant: DateTime<Utc>| instant.timestamp_micros();
        (micros(trace.ts), micros(trace.received_at), trace.counts)
    }
}

/// How long traces are kept: longer than anybody reads the pages of one report.
const TRAIL_AGE: TimeDelta = TimeDelta::hours(1);
/// Most traces that are kept.
const TRAIL_LENGTH: usize = 16;

/// A reaction, whole.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredReaction {
    /// Everything but its text.
    pub core: ReactionCore,
    /// What was written, maybe nothing.
    pub text: String,
}

/// What becomes of a reaction where another one may stand already.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// It takes the place.
    Write(Box<StoredReaction>),
    /// The same stands already, and this changes nothing.
    Repeat(Box<StoredReaction>),
    /// A newer one stands, by `ts`.
    Superseded,
    /// There is nothing to clear.
    NothingToClear,
}

impl StoredReaction {
    /// The same, with a name for its event that only this bundle can give.
    #[must_use]
    pub fn named_by(mut self, pseudonyms: &Pseudonyms) -> Self {
        let tenant = &self.core.at.within.tenant;
        self.core.id = pseudonyms.act(tenant, self.core.id);
        self
    }

    /// What becomes of this reaction over the one that stands in its place.
    ///
    /// The newest by `ts` counts, and of two with the same `ts` the one that arrived last. The
    /// same verdict with the same text is the same act, said again: it keeps its id and so
    /// teaches nothing again, only its time moves on.
    #[must_use]
    pub fn over(mut self, standing: Option<&Self>) -> Step {
        let cleared = |core: &ReactionCore| core.reaction.is_none();
        let Some(standing) = standing else {
            return if cleared(&self.core) {
                Step::NothingToClear
            } else {
                Step::Write(Box::new(self))
            };
        };
        if self.core.origin == Origin::Machine {
            // What it said has an id of its own, and is said once.
            return Step::Repeat(Box::new(standing.clone()));
        }
        if self.core.ts < standing.core.ts {
            if self.core.ts != self.core.received_at {
                return Step::Superseded;
            }
            // The caller named no time, so it is the last: no clock of ours that is behind another's
            // may swallow what somebody just said.
            self.core.ts = standing.core.ts;
        }
        if cleared(&self.core) && cleared(&standing.core) {
            return Step::NothingToClear;
        }
        self.core.trail = self.trail_after(&standing.core);
        // What stands in a log must not stay there when it no longer holds.
        self.core.mirror |= standing.core.mirror;
        if standing.is_of_older_system() {
            // The ledger has no event of it, to repeat or to withdraw.
            return Step::Write(Box::new(self));
        }
        if self.core.reaction == standing.core.reaction && self.text == standing.text {
            if self.core.ts == standing.core.ts {
                return Step::Repeat(Box::new(standing.clone()));
            }
            self.core.id = standing.core.id;
            return Step::Write(Box::new(self));
        }
        // Back to what was said before, even at the same time, is an act of its own.
        self.core.id = Uuid::new_v5(&standing.core.id, self.core.id.as_bytes());
        if !cleared(&standing.core) {
            self.core.replaces = Some(standing.core.id);
        }
        Step::Write(Box::new(self))
    }

    /// A reaction of an older system, where `at` a user's reaction stands; a tombstone of 1970, which
    /// every reaction replaces, if nobody can read what it says.
    #[must_use]
    pub fn of_older_system(at: TurnRef, user: UserId, legacy: Option<LegacyReaction>) -> Self {
        let legacy = legacy.unwrap_or_default();
        Self {
            core: ReactionCore {
                id: Uuid::nil(),
                at,
                turn_ts: legacy.ts,
                user_id: user,
                means: Means::Reaction,
                origin: legacy.origin,
                reaction: legacy.reaction,
                confidence: legacy.confidence,
                ts: legacy.ts,
                received_at: legacy.ts,
                replaces: None,
                mirror: false,
                own: false,
                track_id: None,
                user_type: None,
                bundle_id: None,
                context: EventContext::default(),
                teaches: Teaches::Verdict,
                trail: Vec::new(),
                expires_at: None,
            },
            text: legacy.text,
        }
    }

    /// Whether an older system stored it. The ledger has no event of such an act.
    #[must_use]
    pub fn is_of_older_system(&self) -> bool {
        self.core.id.is_nil()
    }

    /// Traces of what came within the last hour, and of the one that stood before that.
    pub(crate) fn trail_after(&self, standing: &ReactionCore) -> Vec<Trace> {
        let mut trail = vec![Trace {
            ts: standing.ts,
            received_at: standing.received_at,
            counts: standing.reaction.is_some(),
        }];
        for trace in &standing.trail {
            let recent = |trace: &Trace| trace.received_at > self.core.received_at - TRAIL_AGE;
            if trail.len() == TRAIL_LENGTH || !trail.last().is_some_and(recent) {
                break;
            }
            trail.push(*trace);
        }
        trail
    }
}

impl ReactionCore {
    /// Whether anybody asks for it: a report, which counts verdicts, or the training export.
    #[must_use]
    pub fn says_something(&self) -> bool {
        self.reaction.is_some() || self.teaches == Teaches::Correction
    }

    /// The name of the reaction's artifact (product specification, section 3).
    #[must_use]
    pub fn rn(&self) -> String {
        let ConversationRef {
            tenant,
            project,
            conversation,
        } = &self.at.within;
        let (start, _, _, _) = self.id.as_fields();
        format!(
            "ef:{tenant}:{project}:{conversation}:{}:artifact:artifact-{}-{start:08x}",
            self.at.turn,
            self.ts.format("%Y-%m-%dT%H-%M-%S")
        )
    }

    /// The tags of the reaction's artifact (`Feedback System`, "Reaction artifact").
    #[must_use]
    pub fn tags(&self) -> Vec<String> {
        let mut tags = vec![
            "artifact:turn.log.reaction".to_owned(),
            format!("turn:{}", self.at.turn),
            format!("origin:{}", self.origin.as_str()),
        ];
        if self.means != Means::Reaction {
            tags.push(format!("by:{}", self.means.as_str()));
        }
        tags.extend(self.track_id.iter().map(|track| format!("track:{track}")));
        tags
    }
}

/// What a caller posts about a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Posted {
    user_id: Option<UserId>,
    origin: Origin,
    reaction: Option<Reaction>,
    confidence: f64,
    text: String,
    ts: Option<DateTime<Utc>>,
    mirror: Option<bool>,
}

/// Why a reaction is not taken.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refused {
    /// The body breaks the schema: 400.
    #[error("the reaction breaks the schema")]
    Invalid(Vec<FieldError>),
    /// The machine is not sure enough: 422.
    #[error("what is inferred with a confidence below {GATE} is not written down")]
    Unsure,
    /// The token does not allow it: 403.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
}

impl Posted {
    /// Reads what was posted, all errors at once.
    pub fn parse(body: &Value, caller: &Caller, now: DateTime<Utc>) -> Result<Self, Refused> {
        let mut errors = Errors::default();
        let posted = read(body, now, &mut errors);
        if !errors.is_empty() {
            return Err(Refused::Invalid(errors.into_vec()));
        }
        if let Some(user) = &posted.user_id {
            caller.act_as(user)?;
        }
        if posted.origin == Origin::Machine {
            caller.require(Scope::OnBehalf)?;
            if posted.confidence < GATE {
                return Err(Refused::Unsure);
            }
        }
        Ok(posted)
    }

    /// Whose one reaction this takes the place of; what the machine says takes nobody's.
    #[must_use]
    pub fn place<'a>(&'a self, caller: &'a Caller) -> Option<&'a UserId> {
        match self.origin {
            Origin::User => Some(self.user_id.as_ref().unwrap_or(&caller.user)),
            Origin::Machine => None,
        }
    }

    /// The reaction to `turn`. `mirror` is what the project wants where the request does not say.
    #[must_use]
    pub fn about(
        self,
        turn: &TurnCore,
        caller: &Caller,
        mirror: bool,
        now: DateTime<Utc>,
    ) -> StoredReaction {
        // The machine infers from what the turn's own user wrote.
        let or_else = match self.origin {
            Origin::User => &caller.user,
            Origin::Machine => &turn.user_id,
        };
        let user_id = self.user_id.clone().unwrap_or_else(|| or_else.clone());
        let now = to_instant(now);
        let ts = self.ts.map_or(now, to_instant);
        let id = self.id(&turn.at, &user_id, ts);
        StoredReaction {
            core: ReactionCore {
                id,
                at: turn.at.clone(),
                turn_ts: turn.ts,
                own: user_id == turn.user_id,
                user_id,
                means: Means::Reaction,
                origin: self.origin,
                reaction: self.reaction,
                confidence: self.confidence,
                ts,
                received_at: now,
                replaces: None,
                mirror: self.mirror.unwrap_or(mirror),
                track_id: turn.track_id.clone(),
                user_type: turn.user_type.clone(),
                bundle_id: turn.bundle_id.clone(),
                context: turn.context(),
                teaches: Teaches::Verdict,
                trail: Vec::new(),
                expires_at: turn.expires_at,
            },
            text: self.text,
        }
    }

    /// What the machine infers of a message, if it is sure enough to write it down. The same message
    /// gives the same reaction.
    #[must_use]
    pub fn inferred(detection: &Detection, ts: DateTime<Utc>) -> Option<Self> {
        let reaction = match detection.feedback_type {
            FeedbackType::Rejected => Reaction::NotOk,
            FeedbackType::Accepted => Reaction::Ok,
            FeedbackType::Neutral => return None,
        };
        (detection.confidence >= GATE).then(|| Self {
            user_id: None,
            origin: Origin::Machine,
            reaction: Some(reaction),
            confidence: detection.confidence,
            text: detection.user_said.clone().unwrap_or_default(),
            ts: Some(ts),
            mirror: None,
        })
    }

    /// The act's id: the same for a retry, another for a change of mind. The machine adds to what
    /// it said before, so its time does not tell two of its acts apart.
    fn id(&self, at: &TurnRef, user: &UserId, ts: DateTime<Utc>) -> Uuid {
        let ts = match self.origin {
            Origin::User => ts.timestamp_micros().to_string(),
            Origin::Machine => String::new(),
        };
        uuid(
            NAMESPACE,
            [
                at.within.tenant.as_str(),
                at.within.project.as_str(),
                at.within.conversation.as_str(),
                at.turn.as_str(),
                user.as_str(),
                self.origin.as_str(),
                self.reaction.map_or("", Reaction::as_str),
                self.text.as_str(),
                ts.as_str(),
            ],
        )
    }
}

const MEMBERS: &[&str] = &[
    "reaction",
    "text",
    "ts",
    "user_id",
    "origin",
    "confidence",
    "mirror",
];

fn read(body: &Value, now: DateTime<Utc>, errors: &mut Errors) -> Posted {
    let posted = Object::root(body, errors);
    posted.known_only(MEMBERS, errors);
    if body.is_object() && posted.get("reaction").is_none() {
        errors.add("/reaction", "is required; null clears");
    }
    let reaction = posted.nullable("reaction", errors, one_of(Reaction::NAMES));
    let origin = posted.nullable("origin", errors, one_of(Origin::NAMES));
    let origin = origin.unwrap_or(Origin::User);
    let confidence = posted.nullable("confidence", errors, number_in(0.0, 1.0));
    let missing = posted.get("confidence").is_none_or(Value::is_null);
    match (origin, confidence) {
        (Origin::Machine, None) if missing => {
            errors.add("/confidence", "is required of the machine");
        }
        (Origin::User, Some(given)) if given < 1.0 => {
            errors.add("/confidence", "is 1.0 for what a user says");
        }
        (Origin::Machine | Origin::User, _) => {}
    }
    if origin == Origin::Machine && posted.get("reaction").is_some_and(Value::is_null) {
        errors.add(
            "/reaction",
            "the machine only adds, and has nothing to clear",
        );
    }
    let ts = posted.nullable("ts", errors, |value| {
        let ts = date_time(value)?;
        if ts > now + AHEAD {
            return Err("must not be more than 5 minutes in the future");
        }
        Ok(to_instant(ts))
    });
    Posted {
        user_id: posted.nullable("user_id", errors, identifier),
        origin,
        reaction,
        confidence: confidence.unwrap_or(1.0),
        text: posted
            .nullable("text", errors, text(MAX_TEXT))
            .unwrap_or_default(),
        ts,
        mirror: posted.nullable("mirror", errors, boolean),
    }
}
