//! One ledger: every kind of feedback is also a [`FeedbackEvent`], so that one stream of learning
//! signals comes of all of them.
//!
//! Source: product specification, "One ledger".
//!
//! | what somebody did | channel | type | data |
//! |---|---|---|---|
//! | user reaction `ok`, `not_ok` | explicit | artifact-acceptance | accepted, comment |
//! | user reaction `neutral` | explicit | comment | comment |
//! | machine reaction `ok`, `not_ok` | implicit | artifact-acceptance | accepted, comment, confidence |
//! | machine reaction `neutral` | implicit | comment | comment, confidence |
//! | signal `helpful`, `not_helpful` | explicit | artifact-acceptance | accepted |
//! | signal `inaccurate`, `unsafe` | explicit | rejection | comment |
//! | signal `edit` | correction | modification | corrected value |
//! | signal `regenerate` | implicit | rejection | confidence 0.3 |

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::event::{
    Channel, EventContext, EventCore, FeedbackEvent, FeedbackType, FreeText, PrivacyFlags,
};
use crate::identifier::{ArtifactId, SessionId, TenantId, UserId};
use crate::message_signal::{MessageSignal, SignalCore, StoredSignal};
use crate::reaction::{Origin, Reaction, ReactionCore};
use crate::turn::{ConversationRef, TurnRef};

/// The event of a reaction; a tombstone has none. `text` is what was written with it, as far as it
/// is still known.
#[must_use]
pub fn event_of(reaction: &ReactionCore, text: &str) -> Option<FeedbackEvent> {
    let verdict = match reaction.reaction? {
        Reaction::Ok => Some(true),
        Reaction::NotOk => Some(false),
        Reaction::Neutral => None,
    };
    let comment = Some(text.to_owned()).filter(|text| !text.is_empty());
    let act = Act {
        at: &reaction.at.within,
        id: reaction.id,
        user: &reaction.user_id,
        about: reaction.at.turn.as_str(),
        channel: match reaction.origin {
            Origin::User => Channel::Explicit,
            Origin::Machine => Channel::Implicit,
        },
        kind: match verdict {
            Some(_) => FeedbackType::ArtifactAcceptance,
            None => FeedbackType::Comment,
        },
    };
    let core = EventCore {
        accepted: verdict,
        commented: comment.is_some(),
        confidence: match reaction.origin {
            Origin::User => None,
            Origin::Machine => Some(reaction.confidence),
        },
        context: about(&reaction.at, &reaction.context),
        received_at: reaction.received_at,
        ..act.event(reaction.ts)?
    };
    let text = FreeText {
        comment,
        ..FreeText::default()
    };
    Some(FeedbackEvent { core, text })
}

/// The event of a message's signal; a tombstone has none. Nor has an act of so long ago that its
/// event has expired: its row was written again for what is no act, and teaches nothing again.
#[must_use]
pub fn event_of_signal(said: &StoredSignal, now: DateTime<Utc>) -> Option<FeedbackEvent> {
    let signal = &said.core;
    let kept = TimeDelta::days(PrivacyFlags::DEFAULT_RETENTION_DAYS.into());
    if signal.retracted || signal.ts + kept < now {
        return None;
    }
    let (channel, kind) = match signal.signal {
        MessageSignal::Helpful | MessageSignal::NotHelpful => {
            (Channel::Explicit, FeedbackType::ArtifactAcceptance)
        }
        MessageSignal::Inaccurate | MessageSignal::Unsafe => {
            (Channel::Explicit, FeedbackType::Rejection)
        }
        MessageSignal::Edit => (Channel::Correction, FeedbackType::Modification),
        MessageSignal::Regenerate => (Channel::Implicit, FeedbackType::Rejection),
    };
    let told = said.told_reason().map(ToOwned::to_owned);
    let text = match signal.signal {
        MessageSignal::Edit => FreeText {
            corrected_value: told,
            ..FreeText::default()
        },
        MessageSignal::Helpful
        | MessageSignal::NotHelpful
        | MessageSignal::Inaccurate
        | MessageSignal::Unsafe
        | MessageSignal::Regenerate => FreeText {
            comment: told,
            ..FreeText::default()
        },
    };
    let act = Act {
        at: &signal.at.within,
        id: signal.act,
        user: &signal.user_id,
        about: signal.message_id.as_str(),
        channel,
        kind,
    };
    let core = EventCore {
        accepted: match signal.signal {
            MessageSignal::Helpful => Some(true),
            MessageSignal::NotHelpful => Some(false),
            MessageSignal::Inaccurate
            | MessageSignal::Unsafe
            | MessageSignal::Edit
            | MessageSignal::Regenerate => None,
        },
        commented: text.comment.is_some(),
        confidence: match signal.signal {
            MessageSignal::Regenerate => Some(REGENERATE),
            MessageSignal::Helpful
            | MessageSignal::NotHelpful
            | MessageSignal::Inaccurate
            | MessageSignal::Unsafe
            | MessageSignal::Edit => None,
        },
        private: true,
        privacy: PrivacyFlags {
            exclude_from_training: signal.exclude_from_training,
            ..PrivacyFlags::default()
        },
        context: context_of_signal(signal),
        ..act.event(signal.ts)?
    };
    Some(FeedbackEvent { core, text })
}

/// What an act on a turn tells of it: `context` is what its row keeps of the turn.
fn about(at: &TurnRef, context: &EventContext) -> EventContext {
    EventContext {
        conversation_id: Some(at.within.conversation.clone()),
        turn_id: Some(at.turn.clone()),
        ..context.clone()
    }
}

/// The same of a message's signal. Its user may have named a trace; the turn's span is no span of
/// another trace.
fn context_of_signal(signal: &SignalCore) -> EventContext {
    let context = about(&signal.at, &signal.context);
    let within = signal.trace_id == context.trace_id;
    EventContext {
        trace_id: signal.trace_id.clone(),
        span_id: context.span_id.filter(|_| within),
        ..context
    }
}

/// How sure it is that who asks for another answer rejects this one (product specification, "One
/// ledger": weak).
const REGENERATE: f64 = 0.3;

/// What every act is in the ledger.
struct Act<'a> {
    at: &'a ConversationRef,
    id: Uuid,
    user: &'a UserId,
    about: &'a str,
    channel: Channel,
    kind: FeedbackType,
}

impl Act<'_> {
    /// The event of an act of which no more is known than that.
    fn event(&self, ts: DateTime<Utc>) -> Option<EventCore> {
        Some(EventCore {
            tenant: self.at.tenant.clone(),
            feedback_id: self.id,
            user_id: self.user.clone(),
            session_id: SessionId::try_from(self.at.conversation.as_str()).ok()?,
            artifact_id: ArtifactId::try_from(self.about).ok(),
            channel: self.channel,
            feedback_type: Some(self.kind),
            accepted: None,
            rating: None,
            modified_elements: 0,
            commented: false,
            time_spent: None,
            scroll_percentage: None,
            correction_type: None,
            confidence: None,
            derived: true,
            private: false,
            second_to: None,
            privacy: PrivacyFlags::default(),
            context: EventContext::default(),
            timestamp: ts,
            received_at: ts,
        })
    }
}

/// Why an event no longer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Withdrawal {
    /// The same person said something else instead.
    Replaced,
    /// The same person took it back.
    Cleared,
}

/// An event that was withdrawn. Nothing is undone silently: subscribers are told, and do with it
/// what is right for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Retraction {
    /// The tenant whose event it is.
    pub tenant: TenantId,
    /// The event that no longer holds.
    pub feedback_id: Uuid,
    /// Whose it is.
    pub user_id: UserId,
    /// Why.
    pub reason: Withdrawal,
    /// The event that took its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<Uuid>,
    /// When that was received.
    pub at: DateTime<Utc>,
    /// When the act was, by the caller's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occurred_at: Option<DateTime<Utc>>,
    /// When it was processed, by ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_at: Option<DateTime<Utc>>,
    /// What the act tells of its turn.
    #[serde(flatten)]
    pub context: EventContext,
}

/// What a reaction withdraws, processed at `now`.
#[must_use]
pub fn retraction_of(reaction: &ReactionCore, now: DateTime<Utc>) -> Option<Retraction> {
    Some(Retraction {
        tenant: reaction.at.within.tenant.clone(),
        feedback_id: reaction.replaces?,
        user_id: reaction.user_id.clone(),
        reason: match reaction.reaction {
            Some(_) => Withdrawal::Replaced,
            None => Withdrawal::Cleared,
        },
        replaced_by: reaction.reaction.map(|_| reaction.id),
        at: reaction.received_at,
        occurred_at: Some(reaction.ts),
        published_at: Some(now),
        context: about(&reaction.at, &reaction.context),
    })
}

/// What a message's signal withdraws, processed at `now`.
#[must_use]
pub fn retraction_of_signal(signal: &SignalCore, now: DateTime<Utc>) -> Option<Retraction> {
    Some(Retraction {
        tenant: signal.at.within.tenant.clone(),
        feedback_id: signal.replaces?,
        user_id: signal.user_id.clone(),
        reason: if signal.retracted {
            Withdrawal::Cleared
        } else {
            Withdrawal::Replaced
        },
        replaced_by: (!signal.retracted).then_some(signal.act),
        at: signal.ts,
        occurred_at: Some(signal.ts),
        published_at: Some(now),
        context: context_of_signal(signal),
    })
}
