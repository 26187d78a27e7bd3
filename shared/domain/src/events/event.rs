//! Feedback events: a user's feedback on an artifact.
//!
//! An event is stored in two parts: its [`EventCore`], which the rules read and which is sent through streams and
//! queues, and its [`FreeText`], which never leaves the table.

use chrono::{DateTime, TimeDelta, Utc};
use hearback_wire::{Errors, FromJson, Integer, Pointer, wire_names};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use uuid::Uuid;

use crate::events::retention::LEDGER_DAYS;
use crate::identity::caller::{Caller, Scope};
use crate::identity::identifier::{
    ArtifactId, ConversationId, Label, SessionId, TenantId, TurnId, UserId, UserRef,
};
use crate::identity::labels::Labels;

/// How feedback was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Channel {
    /// Given on purpose: a rating, a click.
    Explicit,
    /// Inferred from behaviour.
    Implicit,
    /// The user's own version of the answer.
    Correction,
}

/// The confidence of an implicit event without one of its own.
pub const IMPLICIT_CONFIDENCE: f64 = 0.5;

wire_names!(Channel {
    Explicit = "explicit",
    Implicit = "implicit",
    Correction = "correction",
});

/// The kind of feedback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FeedbackType {
    /// Whether the artifact was accepted.
    ArtifactAcceptance,
    /// A rating from 1 to 5.
    Rating,
    /// A comment on the artifact.
    Comment,
    /// The artifact was rejected.
    Rejection,
    /// The user changed the artifact.
    Modification,
    /// How long the artifact was visible.
    DwellTime,
    /// How far the user scrolled.
    ScrollDepth,
}

wire_names!(FeedbackType {
    ArtifactAcceptance = "artifact-acceptance",
    Rating = "rating",
    Comment = "comment",
    Rejection = "rejection",
    Modification = "modification",
    DwellTime = "dwell-time",
    ScrollDepth = "scroll-depth",
});

/// What a correction corrects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CorrectionType {
    /// The content.
    Content,
    /// The format.
    Format,
    /// The accuracy.
    Accuracy,
    /// The completeness.
    Completeness,
}

wire_names!(CorrectionType {
    Content = "content",
    Format = "format",
    Accuracy = "accuracy",
    Completeness = "completeness",
});

/// A rating, 1 (worst) to 5 (best).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Rating(u8);

impl Rating {
    /// The lowest rating.
    pub const MIN: Self = Self(1);
    /// The highest rating.
    pub const MAX: Self = Self(5);
    /// The highest rating that counts as low.
    pub const LOW: Self = Self(2);
    /// The lowest rating that counts as high.
    pub const HIGH: Self = Self(4);

    /// The rating as a number from 1 to 5.
    #[must_use]
    pub fn get(self) -> u8 {
        self.0
    }
}

impl TryFrom<u8> for Rating {
    type Error = &'static str;

    fn try_from(value: u8) -> Result<Self, Self::Error> {
        if (Self::MIN.0..=Self::MAX.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err("must be an integer from 1 to 5")
        }
    }
}

impl FromJson for Rating {
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        Integer::<1, 5>::read(value, at, errors).map(|number| Self(number.to()))
    }

    fn schema() -> RefOr<Schema> {
        Integer::<1, 5>::schema()
    }
}

impl From<Rating> for u8 {
    fn from(value: Rating) -> Self {
        value.0
    }
}

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

/// What the user was doing, in terms that the application chooses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventContext {
    /// The kind of task, for example `code-review`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub task_type: Option<Label>,
    /// The project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub project_id: Option<Label>,
    /// The agent that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub agent_id: Option<Label>,
    /// The kind of artifact, for example `checklist`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub artifact_type: Option<Label>,
    /// The complexity of the artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub artifact_complexity: Option<Label>,
    /// The format of the artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub artifact_format: Option<Label>,
    /// The length of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub response_length: Option<Label>,
    /// The style of the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub code_style: Option<Label>,
    /// The experience of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub user_experience: Option<Label>,
    /// The conversation of the turn that the feedback is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub conversation_id: Option<ConversationId>,
    /// The turn that the feedback is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub turn_id: Option<TurnId>,
    /// The trace of that turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub trace_id: Option<Label>,
    /// The span within the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub span_id: Option<Label>,
    /// Labels by which answers are compared.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    #[schema(value_type = BTreeMap<String, String>)]
    pub labels: Labels,
}

impl EventContext {
    /// Adds what the context of the turn says and this one does not. The trace is the turn's.
    pub fn inherit(&mut self, turn: &Self) {
        let inherited = [
            (&mut self.task_type, &turn.task_type),
            (&mut self.agent_id, &turn.agent_id),
            (&mut self.artifact_type, &turn.artifact_type),
            (&mut self.trace_id, &turn.trace_id),
            (&mut self.span_id, &turn.span_id),
        ];
        for (own, turns) in inherited {
            if own.is_none() {
                own.clone_from(turns);
            }
        }
        self.labels.inherit(&turn.labels);
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

/// What a user wrote. It is stored with the event, and never sent to a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FreeText {
    /// The comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// The names of the elements that the user changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modified_elements: Vec<String>,
    /// The original text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_value: Option<String>,
    /// The corrected text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrected_value: Option<String>,
}

impl FreeText {
    /// Whether there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The rejected text and its correction. If `original_value` is a part of the answer, that part is replaced;
    /// otherwise it is the rejected text itself. `None` without a corrected value.
    #[must_use]
    pub fn corrected(&self, answer: &str) -> Option<(String, String)> {
        let corrected = self.corrected_value.as_deref()?;
        let original = self.original_value.as_deref();
        Some(match original.filter(|part| !part.trim().is_empty()) {
            None => (answer.to_owned(), corrected.to_owned()),
            Some(part) if answer.contains(part) => {
                (answer.to_owned(), answer.replacen(part, corrected, 1))
            }
            Some(shown) => (shown.to_owned(), corrected.to_owned()),
        })
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
