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

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::event::{Channel, EventCore, FeedbackEvent, FeedbackType, FreeText, PrivacyFlags};
use crate::identifier::{ArtifactId, SessionId, TenantId, UserId};
use crate::reaction::{Origin, Reaction, ReactionCore};

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
    let core = EventCore {
        tenant: reaction.at.within.tenant.clone(),
        feedback_id: reaction.id,
        user_id: reaction.user_id.clone(),
        session_id: SessionId::try_from(reaction.at.within.conversation.as_str()).ok()?,
        artifact_id: ArtifactId::try_from(reaction.at.turn.as_str()).ok(),
        channel: match reaction.origin {
            Origin::User => Channel::Explicit,
            Origin::Machine => Channel::Implicit,
        },
        feedback_type: Some(match verdict {
            Some(_) => FeedbackType::ArtifactAcceptance,
            None => FeedbackType::Comment,
        }),
        accepted: verdict,
        rating: None,
        modified_elements: 0,
        commented: comment.is_some(),
        time_spent: None,
        scroll_percentage: None,
        correction_type: None,
        confidence: match reaction.origin {
            Origin::User => None,
            Origin::Machine => Some(reaction.confidence),
        },
        derived: true,
        privacy: PrivacyFlags::default(),
        context: reaction.context.clone(),
        timestamp: reaction.ts,
        received_at: reaction.received_at,
    };
    let text = FreeText {
        comment,
        ..FreeText::default()
    };
    Some(FeedbackEvent { core, text })
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
    /// When.
    pub at: DateTime<Utc>,
}

/// What a reaction withdraws.
#[must_use]
pub fn retraction_of(reaction: &ReactionCore) -> Option<Retraction> {
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
    })
}
