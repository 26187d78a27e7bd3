//! What message signals and feedback events say of a turn, as reactions, so that everything that counts
//! reactions counts them too.
//!
//! | what somebody did | counts as |
//! |---|---|
//! | signal `helpful` | `ok` |
//! | signal `not_helpful`, `inaccurate`, `unsafe` | `not_ok` |
//! | signal `edit`, `regenerate` | nothing |
//! | event `artifact-acceptance` | `ok` or `not_ok`, by `accepted` |
//! | event `rejection` | `not_ok` |
//! | event `rating` | 4 and 5 `ok`, 3 `neutral`, 1 and 2 `not_ok` |
//! | any other event, and all of the channel `implicit` | nothing |
//!
//! An event of the channel `correction`, or of the type `modification`, may say what the answer should have been.
//! It is kept with the turn for the training export, whether or not it counts.
//!
//! A signal is private to its user, and what an event says of a turn is shown like it: everybody else sees that
//! it was said, and neither by whom nor in which words ([`StoredReaction::shown_to`]).

use chrono::{DateTime, TimeDelta, Utc};

use crate::caller::Caller;
use crate::event::{Channel, EventContext, EventCore, FeedbackType, Rating};
use crate::identifier::ProjectId;
use crate::message_signal::{MessageSignal, StoredSignal};
use crate::reaction::{Means, Origin, Reaction, ReactionCore, StoredReaction, Teaches};
use crate::turn::{ConversationRef, TurnCore, TurnRef};

/// Days for which a tombstone is kept: longer than any queue keeps a message.
const KEPT_DAYS: i64 = 90;

/// What a signal says of its turn, written at `now`; `None` of one that counts nowhere.
#[must_use]
pub fn of_signal(said: &StoredSignal, now: DateTime<Utc>) -> Option<StoredReaction> {
    let core = &said.core;
    let (means, verdict) = match core.signal {
        MessageSignal::Helpful => (Means::Helpful, Reaction::Ok),
        MessageSignal::NotHelpful => (Means::NotHelpful, Reaction::NotOk),
        MessageSignal::Inaccurate => (Means::Inaccurate, Reaction::NotOk),
        MessageSignal::Unsafe => (Means::Unsafe, Reaction::NotOk),
        MessageSignal::Edit | MessageSignal::Regenerate => return None,
    };
    let text = said.told_reason().filter(|_| !core.retracted);
    // The training export reads the signals themselves.
    Some(StoredReaction {
        core: ReactionCore {
            id: core.act,
            at: core.at.clone(),
            turn_ts: core.turn_ts,
            user_id: core.user_id.clone(),
            means,
            origin: Origin::User,
            reaction: Some(verdict).filter(|_| !core.retracted),
            confidence: 1.0,
            ts: core.ts,
            received_at: now,
            replaces: None,
            mirror: false,
            own: core.own,
            track_id: None,
            user_type: None,
            bundle_id: None,
            context: EventContext::default(),
            teaches: Teaches::Nothing,
            trail: Vec::new(),
            // A tombstone is there for as long as a message of what it takes back may be under way.
            expires_at: if core.retracted {
                Some(core.ts + TimeDelta::days(KEPT_DAYS))
            } else {
                core.expires_at
            },
        },
        text: text.unwrap_or_default().to_owned(),
    })
}

/// The turn that an event counts for: the one that its context names. The event of a reaction or a signal
/// names one too, for which the act itself counts.
#[must_use]
pub fn turn_of(event: &EventCore) -> Option<TurnRef> {
    let context = &event.context;
    let project = context.project_id.as_ref().filter(|_| !event.derived)?;
    Some(TurnRef {
        within: ConversationRef {
            tenant: event.tenant.clone(),
            project: ProjectId::try_from(project.as_str()).ok()?,
            conversation: context.conversation_id.clone()?,
        },
        turn: context.turn_id.clone()?,
    })
}

/// Whether [`of_event`] says anything of a turn.
#[must_use]
pub fn counts(event: &EventCore) -> bool {
    verdict(event).is_some() || event.corrects()
}

/// What an event with this comment says of the turn that it names, written at `now`.
#[must_use]
pub fn of_event(
    (event, comment): (&EventCore, Option<String>),
    turn: &TurnCore,
    now: DateTime<Utc>,
) -> StoredReaction {
    let kept = event.expires_at();
    StoredReaction {
        core: ReactionCore {
            id: event.feedback_id,
            at: turn.at.clone(),
            turn_ts: turn.ts,
            own: event.user_id == turn.user_id,
            user_id: event.user_id.clone(),
            means: Means::Event,
            origin: Origin::User,
            reaction: verdict(event),
            confidence: 1.0,
            ts: event.timestamp,
            received_at: now,
            replaces: None,
            mirror: false,
            track_id: turn.track_id.clone(),
            user_type: turn.user_type.clone(),
            bundle_id: turn.bundle_id.clone(),
            context: EventContext::default(),
            teaches: if event.privacy.exclude_from_training {
                Teaches::Nothing
            } else if event.corrects() {
                Teaches::Correction
            } else {
                Teaches::Verdict
            },
            trail: Vec::new(),
            expires_at: Some(turn.expires_at.map_or(kept, |expires| expires.min(kept))),
        },
        text: comment.unwrap_or_default(),
    }
}

/// The verdict that somebody passed on a turn by an event, on purpose.
fn verdict(event: &EventCore) -> Option<Reaction> {
    if event.channel == Channel::Implicit {
        return None;
    }
    if event.feedback_type == Some(FeedbackType::Rating) {
        let rating = event.rating?;
        return Some(if rating >= Rating::HIGH {
            Reaction::Ok
        } else if rating <= Rating::LOW {
            Reaction::NotOk
        } else {
            Reaction::Neutral
        });
    }
    let accepted = event.verdict()?;
    Some(if accepted {
        Reaction::Ok
    } else {
        Reaction::NotOk
    })
}

impl StoredReaction {
    /// This over what was counted in its place; `None` if that is later, or the same.
    #[must_use]
    pub fn counted_over(mut self, standing: Option<&Self>) -> Option<Self> {
        if let Some(standing) = standing {
            if standing.core.ts >= self.core.ts {
                return None;
            }
            self.core.trail = self.trail_after(&standing.core);
        }
        Some(self)
    }

    /// Whether the caller is shown whose it is, and what was written: of a reaction whoever sees it, of
    /// everything else its user alone.
    #[must_use]
    pub fn shown_to(&self, caller: &Caller) -> bool {
        self.core.means == Means::Reaction || self.core.user_id == caller.user
    }
}
