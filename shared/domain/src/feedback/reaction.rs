//! Reactions: verdicts on a turn, by a user or inferred by the machine. See docs/reference/reactions.md.

use chrono::{DateTime, Utc};
use hearback_detection::RejectionKind;
use hearback_wire::wire_names;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::events::event::{EventContext, is_false};
use crate::events::recency::Recency;
use crate::identity::identifier::{Label, UserId, UserRef};
use crate::identity::privacy::Pseudonyms;
use crate::turns::turn::{ConversationRef, TurnCore, TurnRef};

mod request;
mod trail;

pub use request::{NewReaction, ReactionRejected, ReactionRequest};
pub use trail::{TRAIL_AGE, TRAIL_LENGTH, Trace};

/// A verdict on a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reaction {
    /// The turn was good.
    Ok,
    /// The turn was not good.
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
    /// The user, explicitly.
    User,
    /// The machine, which inferred the verdict from the user's message.
    Machine,
}

wire_names!(Origin {
    User = "user",
    Machine = "machine",
});

/// The kind of feedback that a stored reaction comes from.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum FeedbackKind {
    /// A reaction to the turn.
    #[default]
    Reaction,
    /// The message signal `helpful`.
    Helpful,
    /// The message signal `not_helpful`.
    NotHelpful,
    /// The message signal `inaccurate`.
    Inaccurate,
    /// The message signal `unsafe`.
    Unsafe,
    /// A feedback event about the turn.
    Event,
}

wire_names!(FeedbackKind {
    Reaction = "reaction",
    Helpful = "helpful",
    NotHelpful = "not_helpful",
    Inaccurate = "inaccurate",
    Unsafe = "unsafe",
    Event = "event",
});

impl FeedbackKind {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde calls it with a reference"
    )]
    fn is_reaction(&self) -> bool {
        *self == Self::Reaction
    }

    /// The name of the message signal; `None` for a reaction and an event.
    #[must_use]
    pub fn signal_name(self) -> Option<&'static str> {
        match self {
            Self::Reaction | Self::Event => None,
            signal => Some(signal.as_str()),
        }
    }

    /// Whether only the turn's user sees feedback of this kind: message signals.
    #[must_use]
    pub fn is_private(self) -> bool {
        self.signal_name().is_some()
    }
}

/// What a model may learn from a reaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrainingUse {
    /// The verdict.
    #[default]
    Verdict,
    /// The verdict, and a corrected answer if the event has one.
    Correction,
    /// Nothing: the feedback is excluded from training.
    Nothing,
}

impl TrainingUse {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde calls it with a reference"
    )]
    fn is_verdict(&self) -> bool {
        *self == Self::Verdict
    }
}

/// Maximum length of a reaction's text, in characters.
pub const MAX_TEXT: usize = 1000;
/// The minimum confidence of a machine reaction.
pub const MIN_CONFIDENCE: f64 = 0.70;
/// Ids of reactions are derived in this namespace.
const NAMESPACE: Uuid = Uuid::from_u128(0x8d1d_3a5e_5b0f_4c53_9a77_0f2e_6c1b_94d4);

/// A stored reaction without its text: what reports count and the pipes send.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReactionCore {
    /// The id of the feedback act and of its event in the ledger.
    pub id: Uuid,
    /// The turn.
    #[serde(flatten)]
    pub at: TurnRef,
    /// The time of the turn.
    pub turn_ts: DateTime<Utc>,
    /// The user who reacted, or from whose message the reaction was inferred.
    pub user_id: UserId,
    /// The kind of feedback: a reaction, or a message signal or an event that counts as one ([`crate::feedback::counted`]).
    #[serde(
        default,
        rename = "means",
        skip_serializing_if = "FeedbackKind::is_reaction"
    )]
    pub kind: FeedbackKind,
    /// Whether a user or the machine gave the verdict.
    pub origin: Origin,
    /// The verdict; `None` for the tombstone of a withdrawn reaction.
    pub reaction: Option<Reaction>,
    /// The confidence; 1 for a user reaction.
    pub confidence: f64,
    /// How the message rejects the answer, if the machine inferred a rejection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejection: Option<RejectionKind>,
    /// Whether the machine inferred it from the message of a turn that follows; otherwise the message named the turn.
    #[serde(default, skip_serializing_if = "is_false")]
    pub follow_up: bool,
    /// The time of the reaction, by the caller's clock.
    pub ts: DateTime<Utc>,
    /// When the reaction was received, by the server's clock. When it was counted, if this is a message signal or an event.
    pub received_at: DateTime<Utc>,
    /// When the message signal or the event was received, if this is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted_at: Option<DateTime<Utc>>,
    /// The act that this one replaced or withdrew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Uuid>,
    /// Whether the reaction is mirrored into the turn's log.
    #[serde(default, skip_serializing_if = "is_false")]
    pub mirror: bool,
    /// Whether the user owns the turn. Only the owner's reactions set the status of the turn.
    #[serde(default, skip_serializing_if = "is_false")]
    pub own: bool,
    /// The track of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub track_id: Option<Label>,
    /// The user type of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_type: Option<Label>,
    /// The bundle that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle_id: Option<Label>,
    /// The context of its event in the ledger.
    #[serde(default)]
    pub context: EventContext,
    /// What a model may learn from the reaction.
    #[serde(
        default,
        rename = "teaches",
        skip_serializing_if = "TrainingUse::is_verdict"
    )]
    pub training_use: TrainingUse,
    /// The last replaced reactions, the newest first: see [`Trace`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trail: Vec<Trace>,
    /// When the reaction expires: with its turn. A separate attribute of the row, which the pipes do not send.
    #[serde(skip)]
    pub expires_at: Option<DateTime<Utc>>,
}

impl ReactionCore {
    /// A user's act at `ts`, without a verdict and the labels of its turn.
    #[must_use]
    pub fn new(
        id: Uuid,
        at: TurnRef,
        turn_ts: DateTime<Utc>,
        user_id: UserId,
        ts: DateTime<Utc>,
    ) -> Self {
        Self {
            id,
            at,
            turn_ts,
            user_id,
            kind: FeedbackKind::Reaction,
            origin: Origin::User,
            reaction: None,
            confidence: 1.0,
            rejection: None,
            follow_up: false,
            ts,
            received_at: ts,
            submitted_at: None,
            replaces: None,
            mirror: false,
            own: false,
            track_id: None,
            user_type: None,
            bundle_id: None,
            context: EventContext::default(),
            training_use: TrainingUse::Verdict,
            trail: Vec::new(),
            expires_at: None,
        }
    }

    /// A user's act on `turn` at `ts`, without a verdict.
    #[must_use]
    pub fn on(turn: &TurnCore, id: Uuid, user_id: UserId, ts: DateTime<Utc>) -> Self {
        Self {
            own: user_id == turn.user_id,
            track_id: turn.track_id.clone(),
            user_type: turn.user_type.clone(),
            bundle_id: turn.bundle_id.clone(),
            expires_at: turn.expires_at,
            ..Self::new(id, turn.at.clone(), turn.ts, user_id, ts)
        }
    }
}

/// A reaction with its text.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredReaction {
    /// Everything except the text.
    pub core: ReactionCore,
    /// The user's text, possibly empty.
    pub text: String,
}

/// The effect of a submitted reaction.
#[derive(Debug, Clone, PartialEq)]
pub enum ReactionUpdate {
    /// It replaces the current one.
    Write(Box<StoredReaction>),
    /// It equals the current one and changes nothing.
    Repeat(Box<StoredReaction>),
    /// The current one is newer, or a person took back this very one.
    Superseded,
    /// There is nothing to withdraw.
    NothingToWithdraw,
}

impl StoredReaction {
    /// Replaces the id by a keyed one, which callers cannot compute.
    #[must_use]
    pub fn with_keyed_id(mut self, pseudonyms: &Pseudonyms) -> Self {
        let tenant = &self.core.at.within.tenant;
        self.core.id = pseudonyms.event_id(tenant, self.core.id);
        self
    }

    /// The effect of this reaction on the current one.
    ///
    /// The latest reaction is current, by the earlier of its `ts` and its receipt; at the same time, the one that arrived
    /// last. The same verdict with the same text is a repeat of the same act: it keeps the id, so that it is not
    /// processed again, and only updates the time.
    #[must_use]
    pub fn resolve(mut self, current: Option<&Self>) -> ReactionUpdate {
        let cleared = |core: &ReactionCore| core.reaction.is_none();
        let Some(current) = current else {
            return if cleared(&self.core) {
                ReactionUpdate::NothingToWithdraw
            } else {
                ReactionUpdate::Write(Box::new(self))
            };
        };
        if self.core.origin == Origin::Machine {
            return self.said_again(current);
        }
        let at = |core: &ReactionCore| core.recency().at();
        if at(&self.core) < at(&current.core) {
            if self.core.ts != self.core.received_at {
                return ReactionUpdate::Superseded;
            }
            // The request had no time, so this is the latest reaction, even if the server's clock is behind.
            self.core.ts = current.core.ts;
        }
        if cleared(&self.core) && cleared(&current.core) {
            return ReactionUpdate::NothingToWithdraw;
        }
        self.core.trail = self.trail_after(&current.core);
        // A mirrored reaction must be updated in the log.
        self.core.mirror |= current.core.mirror;
        if current.is_legacy() {
            // The ledger has no event that could be repeated or retracted.
            return ReactionUpdate::Write(Box::new(self));
        }
        if self.core.reaction == current.core.reaction && self.text == current.text {
            if self.core.ts == current.core.ts {
                return ReactionUpdate::Repeat(Box::new(current.clone()));
            }
            self.core.id = current.core.id;
            return ReactionUpdate::Write(Box::new(self));
        }
        // Returning to an earlier verdict is a new act, even at the same time.
        self.core.id = Uuid::new_v5(&current.core.id, self.core.id.as_bytes());
        if !cleared(&current.core) {
            self.core.replaces = Some(current.core.id);
        }
        ReactionUpdate::Write(Box::new(self))
    }

    /// The effect of this machine reaction on a current one, which is the same: the id identifies the content. A message
    /// that names the turn is a new statement, which counts from now on. What a person took back stays so.
    fn said_again(mut self, current: &Self) -> ReactionUpdate {
        if current.core.reaction.is_none() {
            return ReactionUpdate::Superseded;
        }
        let is_later = current.core.follow_up || self.core.recency() > current.core.recency();
        if self.core.follow_up || !is_later {
            return ReactionUpdate::Repeat(Box::new(current.clone()));
        }
        self.core.trail = self.trail_after(&current.core);
        self.core.mirror |= current.core.mirror;
        ReactionUpdate::Write(Box::new(self))
    }

    /// What remains of this machine reaction after a person took it back at `at`: a tombstone with its id.
    #[must_use]
    pub fn taken_back(&self, at: DateTime<Utc>) -> Self {
        let mut tombstone = Self {
            core: ReactionCore {
                reaction: None,
                rejection: None,
                ts: at,
                received_at: at,
                replaces: Some(self.core.id),
                ..self.core.clone()
            },
            text: String::new(),
        };
        tombstone.core.trail = tombstone.trail_after(&self.core);
        tombstone
    }

    /// Whether the older system stored the reaction. The ledger has no event of it.
    #[must_use]
    pub fn is_legacy(&self) -> bool {
        self.core.id.is_nil()
    }

    /// The trail after `current` is replaced: the traces of the last hour, and the one before them.
    pub(crate) fn trail_after(&self, current: &ReactionCore) -> Vec<Trace> {
        let mut trail = vec![Trace {
            ts: current.ts,
            received_at: current.received_at,
            counts: current.reaction.is_some(),
        }];
        for trace in &current.trail {
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
    /// The user who reacted.
    #[must_use]
    pub fn owner(&self) -> UserRef<'_> {
        UserRef::new(&self.at.within.tenant, &self.user_id)
    }

    /// The position among the feedback on the turn, of which the latest counts.
    #[must_use]
    pub fn recency(&self) -> Recency {
        let received_at = self.submitted_at.unwrap_or(self.received_at);
        Recency::new(self.ts, received_at, self.id)
    }

    /// Whether it is what remains of a withdrawn event.
    #[must_use]
    pub fn is_event_tombstone(&self) -> bool {
        self.kind == FeedbackKind::Event
            && self.reaction.is_none()
            && self.training_use == TrainingUse::Verdict
    }

    /// Whether reports or the training export read the reaction.
    #[must_use]
    pub fn is_reportable(&self) -> bool {
        self.reaction.is_some() || self.training_use == TrainingUse::Correction
    }

    /// The resource name of the reaction's artifact.
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

    /// The tags of the reaction's artifact.
    #[must_use]
    pub fn tags(&self) -> Vec<String> {
        let mut tags = vec![
            "artifact:turn.log.reaction".to_owned(),
            format!("turn:{}", self.at.turn),
            format!("origin:{}", self.origin.as_str()),
        ];
        tags.extend(self.track_id.iter().map(|track| format!("track:{track}")));
        tags
    }

    /// The tag of the message signal or event that counts as this reaction; `None` for a reaction. Only its user
    /// receives it: a signal that only the turn's user can give would name them.
    #[must_use]
    pub fn kind_tag(&self) -> Option<String> {
        (self.kind != FeedbackKind::Reaction).then(|| format!("by:{}", self.kind.as_str()))
    }
}

#[cfg(test)]
mod tests;
