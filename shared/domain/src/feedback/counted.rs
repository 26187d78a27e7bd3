//! Converts message signals and feedback events to reactions to their turn, so that everything that counts reactions
//! counts them, too. See docs/reference/rules.md, "Feedback on a turn".
//!
//! | feedback | counts as |
//! |---|---|
//! | signal `helpful` | `ok` |
//! | signal `not_helpful`, `inaccurate`, `unsafe` | `not_ok` |
//! | signal `edit`, `regenerate` | nothing |
//! | event `artifact-acceptance` | `ok` or `not_ok`, by `accepted` |
//! | event `rejection` | `not_ok` |
//! | event `rating` | 4 and 5 `ok`, 3 `neutral`, 1 and 2 `not_ok` |
//! | any other event, and every event of the channel `implicit` | nothing |
//!
//! An event of the channel `correction`, or of the type `modification`, may contain a corrected answer. It is stored
//! with the turn for the training export, even if it does not count.
//!
//! A signal is private to its user, and so is an event about a turn: other callers see the verdict, but not the user
//! and the text ([`StoredReaction::is_visible_to`]).

use chrono::{DateTime, TimeDelta, Utc};

use crate::events::event::{Channel, EventCore, FeedbackType, Rating};
use crate::events::retention::LEDGER_DAYS;
use crate::feedback::message_signal::{MessageSignal, StoredSignal};
use crate::feedback::reaction::{
    FeedbackKind, Reaction, ReactionCore, StoredReaction, TrainingUse,
};
use crate::identity::caller::{Caller, Forbidden};
use crate::identity::identifier::ProjectId;
use crate::turns::turn::{ConversationRef, TurnCore, TurnRef};

/// The signal as a reaction to its turn, written at `now`; `None` if it does not count.
#[must_use]
pub fn of_signal(signal: &StoredSignal, now: DateTime<Utc>) -> Option<StoredReaction> {
    let core = &signal.core;
    let (kind, verdict) = match core.signal {
        MessageSignal::Helpful => (FeedbackKind::Helpful, Reaction::Ok),
        MessageSignal::NotHelpful => (FeedbackKind::NotHelpful, Reaction::NotOk),
        MessageSignal::Inaccurate => (FeedbackKind::Inaccurate, Reaction::NotOk),
        MessageSignal::Unsafe => (FeedbackKind::Unsafe, Reaction::NotOk),
        MessageSignal::Edit | MessageSignal::Regenerate => return None,
    };
    // Only its user receives it, a thumb's too, which is not published.
    let reason = signal.reason.as_deref().filter(|_| !core.retracted);
    Some(StoredReaction {
        core: ReactionCore {
            kind,
            reaction: Some(verdict).filter(|_| !core.retracted),
            received_at: now,
            submitted_at: Some(core.updated_at),
            own: core.own,
            track_id: core.track_id.clone(),
            user_type: core.user_type.clone(),
            bundle_id: core.bundle_id.clone(),
            // A row of the training export is based on the signal itself. This may only contradict the row.
            training_use: if core.exclude_from_training {
                TrainingUse::Nothing
            } else {
                TrainingUse::Verdict
            },
            // A tombstone is kept longer than any message about the withdrawn signal can be in flight.
            expires_at: if core.retracted {
                Some(core.ts + TimeDelta::days(LEDGER_DAYS.into()))
            } else {
                core.expires_at
            },
            // Given again, it is the latest feedback again.
            ..ReactionCore::new(
                core.act,
                core.at.clone(),
                core.turn_ts,
                core.user_id.clone(),
                core.updated_at,
            )
        },
        text: reason.unwrap_or_default().to_owned(),
    })
}

impl Caller {
    /// Requires that the turn of the event, if it has one, is in a project of the token.
    pub fn may_submit(&self, event: &EventCore) -> Result<(), Forbidden> {
        match turn_of(event) {
            Some(turn) => self.require_project(&turn.within.tenant, &turn.within.project),
            None => Ok(()),
        }
    }
}

/// The turn that an event counts for: the one in its context. `None` for the event of a reaction or a message signal:
/// there the reaction or the signal itself counts.
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

/// Whether an event has a row among the reactions to its turn: it gives a verdict or a correction, or excludes what its
/// user says about the turn from training.
#[must_use]
pub fn counts(event: &EventCore) -> bool {
    verdict(event).is_some() || event.may_have_correction() || event.privacy.exclude_from_training
}

/// The event, with its comment, as a reaction to its turn, written at `now`.
#[must_use]
pub fn of_event(
    event: &EventCore,
    comment: Option<String>,
    turn: &TurnCore,
    now: DateTime<Utc>,
) -> StoredReaction {
    let event_expires_at = event.expires_at();
    StoredReaction {
        core: ReactionCore {
            kind: FeedbackKind::Event,
            reaction: verdict(event),
            received_at: now,
            submitted_at: Some(event.received_at),
            training_use: if event.privacy.exclude_from_training {
                TrainingUse::Nothing
            } else if event.may_have_correction() {
                TrainingUse::Correction
            } else {
                TrainingUse::Verdict
            },
            expires_at: Some(turn.expires_at.map_or(event_expires_at, |expires_at| {
                expires_at.min(event_expires_at)
            })),
            ..ReactionCore::on(
                turn,
                event.feedback_id,
                event.user_id.clone(),
                event.timestamp,
            )
        },
        text: comment.unwrap_or_default(),
    }
}

/// What remains of a withdrawn event among the reactions to its turn: a tombstone, which replaces the event in any order
/// of processing, and has the same position in time, so that it replaces nothing later.
#[must_use]
pub fn of_withdrawn_event(
    event: &EventCore,
    turn: &TurnCore,
    now: DateTime<Utc>,
) -> StoredReaction {
    let mut tombstone = of_event(event, None, turn, now);
    let core = &mut tombstone.core;
    core.reaction = None;
    core.training_use = TrainingUse::Verdict;
    // It is kept longer than any message about the event can be in flight.
    core.expires_at = Some(now + TimeDelta::days(LEDGER_DAYS.into()));
    tombstone
}

/// Whether the event gives a verdict on its turn.
#[must_use]
pub fn has_verdict(event: &EventCore) -> bool {
    verdict(event).is_some()
}

/// The verdict of an explicit event.
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
    /// This reaction as the replacement of `current`; `None` if `current` is not older.
    #[must_use]
    pub fn replacement_of(mut self, current: Option<&Self>) -> Option<Self> {
        if let Some(current) = current {
            let position = |core: &ReactionCore| (core.recency(), core.is_event_tombstone());
            if position(&current.core) >= position(&self.core) {
                return None;
            }
            self.core.trail = self.trail_after(&current.core);
        }
        Some(self)
    }

    /// Whether the response for the caller contains the user and the text: always for a reaction; for message signals
    /// and events only if the caller is their user.
    #[must_use]
    pub fn is_visible_to(&self, caller: &Caller) -> bool {
        self.core.kind == FeedbackKind::Reaction || self.core.user_id == caller.user
    }
}
