//! Feedback events: a user's feedback on an artifact.
//!
//! An event is stored in two parts: its [`EventCore`], which the rules read and which is sent through streams and
//! queues, and its [`FreeText`], which never leaves the table.

mod context;
mod free_text;
mod kinds;
mod rating;

use chrono::{DateTime, TimeDelta, Utc};
use hearback_detection::RejectionKind;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::events::retention::LEDGER_DAYS;
use crate::identity::caller::{Caller, Scope};
use crate::identity::identifier::{ArtifactId, Label, SessionId, TenantId, UserId, UserRef};
pub use context::EventContext;
pub use free_text::FreeText;
pub use kinds::{Channel, CorrectionType, FeedbackType, Reason};
pub use rating::Rating;

/// The confidence of an implicit event without one of its own.
pub const IMPLICIT_CONFIDENCE: f64 = 0.5;

/// The privacy settings of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrivacyFlags {
    /// Whether the user and the session were replaced by pseudonyms, and personal data in free text by placeholders.
    pub anonymize: bool,
    /// Days until the event and its outcome expire, 1 to
    /// [`Retention::MAX_DAYS`](crate::events::retention::Retention::MAX_DAYS).
    pub retention_days: u16,
    /// Whether no model may learn from the event.
    pub exclude_from_training: bool,
}

impl PrivacyFlags {
    /// The default of `retention_days`.
    pub const DEFAULT_RETENTION_DAYS: u16 = LEDGER_DAYS;
}

impl Default for PrivacyFlags {
    fn default() -> Self {
        Self {
            anonymize: false,
            retention_days: Self::DEFAULT_RETENTION_DAYS,
            exclude_from_training: false,
        }
    }
}

/// The first of several events with the same dedupe key in one batch. It claims the key, whichever of them is processed
/// first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FirstEvent {
    /// The id of the event.
    pub feedback_id: Uuid,
    /// The retention of the event, and so of its dedupe claim.
    pub retention_days: u16,
}

impl FirstEvent {
    /// The first event of a batch with its dedupe key.
    #[must_use]
    pub fn of(event: &EventCore) -> Self {
        Self {
            feedback_id: event.feedback_id,
            retention_days: event.privacy.retention_days,
        }
    }
}

/// An event without its free text: what the rules read and the queues carry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventCore {
    /// The tenant whose event it is.
    pub tenant: TenantId,
    /// The id, chosen by the caller. The same id is the same event.
    pub feedback_id: Uuid,
    /// The user, or the pseudonym for an anonymous event.
    pub user_id: UserId,
    /// The session, or its pseudonym.
    pub session_id: SessionId,
    /// What the feedback is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_id: Option<ArtifactId>,
    /// The channel.
    pub channel: Channel,
    /// The kind of feedback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback_type: Option<FeedbackType>,
    /// Whether the artifact was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<bool>,
    /// The rating.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rating: Option<Rating>,
    /// How many elements the user changed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub modified_elements: usize,
    /// Whether there is a comment.
    #[serde(default, skip_serializing_if = "is_false")]
    pub commented: bool,
    /// Seconds spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_spent: Option<i64>,
    /// How far the artifact was read, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scroll_percentage: Option<f64>,
    /// What a correction corrects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correction_type: Option<CorrectionType>,
    /// How a message rejects the answer, if the event was inferred from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejection: Option<RejectionKind>,
    /// The confidence of the detection, 0 to 1, for inferred feedback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Whether this is the event of a feedback act. Its id identifies the act, and is also its dedupe key.
    #[serde(default, skip_serializing_if = "is_false")]
    pub derived: bool,
    /// Whether HTTP responses contain the event only for its own user, whatever the caller's scope.
    #[serde(default, skip_serializing_if = "is_false")]
    pub private: bool,
    /// The first event with this dedupe key in the same batch, if that is another event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_to: Option<FirstEvent>,
    /// Where the event is in an imported file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<FilePosition>,
    /// The privacy settings.
    pub privacy: PrivacyFlags,
    /// What the user was doing.
    #[serde(default)]
    pub context: EventContext,
    /// When the feedback was captured, by the caller's clock.
    pub timestamp: DateTime<Utc>,
    /// When the event was received, by the server's clock.
    pub received_at: DateTime<Utc>,
}

/// Where a line is in an imported file, all of whose lines are received at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FilePosition {
    /// The number of its piece.
    pub piece: u64,
    /// The offset of the line in the piece's file, in bytes.
    pub offset: u64,
}

/// When and where an event was received. Of events with one dedupe key the first counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    received_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    position: Option<FilePosition>,
    /// Orders events that were received at the same time by different requests.
    feedback_id: Uuid,
}

impl EventCore {
    /// What is wrong with the answer, if the event says so.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        let corrected = self.correction_type.map(Reason::from);
        corrected.or_else(|| self.rejection.map(Reason::from))
    }

    /// The user who gave the feedback.
    #[must_use]
    pub fn owner(&self) -> UserRef<'_> {
        UserRef::new(&self.tenant, &self.user_id)
    }

    /// Whether a caller may read this event of another user. Only a back end may, except private ones.
    #[must_use]
    pub fn may_be_read_by(&self, caller: &Caller) -> bool {
        caller.has(Scope::OnBehalf) && !self.private
    }

    /// When and where the event was received.
    #[must_use]
    pub fn receipt(&self) -> Receipt {
        Receipt {
            received_at: self.received_at,
            position: self.position,
            feedback_id: self.feedback_id,
        }
    }

    /// When the event and its outcome expire.
    #[must_use]
    pub fn expires_at(&self) -> DateTime<Utc> {
        self.received_at + TimeDelta::days(self.privacy.retention_days.into())
    }

    /// Whether the event may contain a corrected answer.
    #[must_use]
    pub fn may_have_correction(&self) -> bool {
        self.channel == Channel::Correction
            || self.feedback_type == Some(FeedbackType::Modification)
    }

    /// The kind of artifact; `unknown` if the event has none.
    #[must_use]
    pub fn artifact_type(&self) -> Label {
        self.context
            .artifact_type
            .clone()
            .unwrap_or_else(Label::unknown)
    }

    /// Whether the user accepted the artifact, if the event says so.
    #[must_use]
    pub fn verdict(&self) -> Option<bool> {
        match self.feedback_type {
            Some(FeedbackType::Rejection) => Some(false),
            Some(FeedbackType::ArtifactAcceptance) => self.accepted,
            Some(
                FeedbackType::Rating
                | FeedbackType::Comment
                | FeedbackType::Modification
                | FeedbackType::DwellTime
                | FeedbackType::ScrollDepth,
            )
            | None => None,
        }
    }

    /// How sure its verdict and its rating are: 1, or of an implicit event its confidence, 0.5 without one.
    #[must_use]
    pub fn certainty(&self) -> f64 {
        match self.channel {
            Channel::Implicit => self
                .confidence
                .unwrap_or(IMPLICIT_CONFIDENCE)
                .clamp(0.0, 1.0),
            Channel::Explicit | Channel::Correction => 1.0,
        }
    }
}

/// A feedback event with its free text.
#[derive(Debug, Clone, PartialEq)]
pub struct FeedbackEvent {
    /// Everything except the free text.
    pub core: EventCore,
    /// The free text.
    pub text: FreeText,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
pub(crate) fn is_false(flag: &bool) -> bool {
    !*flag
}
