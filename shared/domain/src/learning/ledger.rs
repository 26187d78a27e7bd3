//! The ledger: converts reactions and message signals to [`FeedbackEvent`]s, so that every kind of feedback gives
//! learning signals. See docs/reference/rules.md, "Ledger".
//!
//! | feedback | channel | type | data |
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

use crate::events::event::{
    Channel, EventContext, EventCore, FeedbackEvent, FeedbackType, FreeText, PrivacyFlags, is_false,
};
use crate::feedback::message_signal::{MessageSignal, SignalCore, StoredSignal};
use crate::feedback::reaction::{Origin, Reaction, ReactionCore};
use crate::identity::identifier::{ArtifactId, SessionId, TenantId, UserId};
use crate::turns::turn::{ConversationRef, TurnCore, TurnRef};

/// The event of a reaction; `None` for a tombstone. `text` is the reaction's text, if it is still stored.
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
        channel: channel_of(reaction.origin),
        kind: match verdict {
            Some(_) => FeedbackType::ArtifactAcceptance,
            None => FeedbackType::Comment,
        },
    };
    let core = EventCore {
        accepted: verdict,
        commented: comment.is_some(),
        rejection: reaction.rejection,
        confidence: match reaction.origin {
            Origin::User => None,
            Origin::Machine => Some(reaction.confidence),
        },
        context: event_context(&reaction.at, &reaction.context),
        received_at: reaction.received_at,
        ..act.event(reaction.ts)?
    };
    let text = FreeText {
        comment,
        ..FreeText::default()
    };
    Some(FeedbackEvent { core, text })
}

/// The channel and the type of a message signal's event.
fn kind_of(signal: MessageSignal) -> (Channel, FeedbackType) {
    match signal {
        MessageSignal::Helpful | MessageSignal::NotHelpful => {
            (Channel::Explicit, FeedbackType::ArtifactAcceptance)
        }
        MessageSignal::Inaccurate | MessageSignal::Unsafe => {
            (Channel::Explicit, FeedbackType::Rejection)
        }
        MessageSignal::Edit => (Channel::Correction, FeedbackType::Modification),
        MessageSignal::Regenerate => (Channel::Implicit, FeedbackType::Rejection),
    }
}

/// The channel of a reaction's event.
fn channel_of(origin: Origin) -> Channel {
    match origin {
        Origin::User => Channel::Explicit,
        Origin::Machine => Channel::Implicit,
    }
}

/// The event of a message signal; `None` for a tombstone, and for an act whose event has expired. The row of such an
/// act may be updated by a change that is not a new act, and the event must not be processed twice.
#[must_use]
pub fn event_of_signal(stored: &StoredSignal, now: DateTime<Utc>) -> Option<FeedbackEvent> {
    let signal = &stored.core;
    let retention = TimeDelta::days(PrivacyFlags::DEFAULT_RETENTION_DAYS.into());
    if signal.retracted || signal.ts + retention < now {
        return None;
    }
    let (channel, kind) = kind_of(signal.signal);
    let reason = stored.published_reason().map(ToOwned::to_owned);
    let text = match signal.signal {
        MessageSignal::Edit => FreeText {
            corrected_value: reason,
            ..FreeText::default()
        },
        MessageSignal::Helpful
        | MessageSignal::NotHelpful
        | MessageSignal::Inaccurate
        | MessageSignal::Unsafe
        | MessageSignal::Regenerate => FreeText {
            comment: reason,
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

/// The context of the event of a feedback act; `context` is the turn's context, as stored with the act.
fn event_context(at: &TurnRef, context: &EventContext) -> EventContext {
    EventContext {
        conversation_id: Some(at.within.conversation.clone()),
        turn_id: Some(at.turn.clone()),
        ..context.clone()
    }
}

/// The context of a message signal. If the request named another trace than the turn's, the turn's span is left out.
fn context_of_signal(signal: &SignalCore) -> EventContext {
    let context = event_context(&signal.at, &signal.context);
    let same_trace = signal.trace_id == context.trace_id;
    EventContext {
        trace_id: signal.trace_id.clone(),
        span_id: context.span_id.filter(|_| same_trace),
        ..context
    }
}

/// The confidence that a user who requests another answer rejects this one.
pub const REGENERATE: f64 = 0.3;

/// The data from which the event of any feedback act is built.
struct Act<'a> {
    at: &'a ConversationRef,
    id: Uuid,
    user: &'a UserId,
    about: &'a str,
    channel: Channel,
    kind: FeedbackType,
}

impl Act<'_> {
    /// The event of the act, without a verdict.
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
            rejection: None,
            confidence: None,
            derived: true,
            private: false,
            second_to: None,
            position: None,
            privacy: PrivacyFlags::default(),
            context: EventContext::default(),
            timestamp: ts,
            received_at: ts,
        })
    }
}

/// Why an event was retracted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetractionReason {
    /// Replaced by the same user.
    Replaced,
    /// Withdrawn by the same user.
    Cleared,
}

/// A retracted event. Subscribers receive a message, and decide what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Retraction {
    /// The tenant whose event it is.
    pub tenant: TenantId,
    /// The retracted event.
    pub feedback_id: Uuid,
    /// The user of the event.
    pub user_id: UserId,
    /// The reason of the retraction.
    pub reason: RetractionReason,
    /// The event that replaced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<Uuid>,
    /// When the retraction was received.
    pub at: DateTime<Utc>,
    /// The time of the act, by the caller's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occurred_at: Option<DateTime<Utc>>,
    /// When the retraction was processed, by the server's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_at: Option<DateTime<Utc>>,
    /// The channel of the retracted event; `None` in rows of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    /// Whether HTTP responses contain the event only for its own user.
    #[serde(default, skip_serializing_if = "is_false")]
    pub private: bool,
    /// The context of the act.
    #[serde(flatten)]
    pub context: EventContext,
}

/// The retraction of the event that a reaction replaces or withdraws, processed at `now`.
#[must_use]
pub fn retraction_of(reaction: &ReactionCore, now: DateTime<Utc>) -> Option<Retraction> {
    Some(Retraction {
        tenant: reaction.at.within.tenant.clone(),
        feedback_id: reaction.replaces?,
        user_id: reaction.user_id.clone(),
        reason: match reaction.reaction {
            Some(_) => RetractionReason::Replaced,
            None => RetractionReason::Cleared,
        },
        replaced_by: reaction.reaction.map(|_| reaction.id),
        at: reaction.received_at,
        occurred_at: Some(reaction.ts),
        published_at: Some(now),
        channel: Some(channel_of(reaction.origin)),
        private: false,
        context: event_context(&reaction.at, &reaction.context),
    })
}

/// The retraction of an event that its user withdraws at `now`.
#[must_use]
pub fn retraction_of_event(event: &EventCore, now: DateTime<Utc>) -> Retraction {
    Retraction {
        tenant: event.tenant.clone(),
        feedback_id: event.feedback_id,
        user_id: event.user_id.clone(),
        reason: RetractionReason::Cleared,
        replaced_by: None,
        at: now,
        occurred_at: Some(now),
        published_at: Some(now),
        channel: Some(event.channel),
        private: event.private,
        context: event.context.clone(),
    }
}

impl Retraction {
    /// The retraction of an event about this turn, whose labels and trace the event has too.
    #[must_use]
    pub fn about(mut self, turn: &TurnCore) -> Self {
        self.context.inherit(&turn.context());
        self
    }
}

/// The retraction of an event, because one with its dedupe key was received before it and processed after it.
#[must_use]
pub fn retraction_of_duplicate(event: &EventCore, first: Uuid, now: DateTime<Utc>) -> Retraction {
    Retraction {
        reason: RetractionReason::Replaced,
        replaced_by: Some(first),
        ..retraction_of_event(event, now)
    }
}

/// The retraction of the event that a message signal replaces or withdraws, processed at `now`.
#[must_use]
pub fn retraction_of_signal(signal: &SignalCore, now: DateTime<Utc>) -> Option<Retraction> {
    Some(Retraction {
        tenant: signal.at.within.tenant.clone(),
        feedback_id: signal.replaces?,
        user_id: signal.user_id.clone(),
        reason: if signal.retracted {
            RetractionReason::Cleared
        } else {
            RetractionReason::Replaced
        },
        replaced_by: (!signal.retracted).then_some(signal.act),
        at: signal.ts,
        occurred_at: Some(signal.ts),
        published_at: Some(now),
        channel: Some(kind_of(signal.signal).0),
        private: true,
        context: context_of_signal(signal),
    })
}
