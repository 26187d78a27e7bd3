//! A feedback event: what a user said or did about an artifact.
//!
//! Source: `SDS-009`, "Feedback Event Schema". The event is kept in two parts: its [`EventCore`],
//! which every rule works on and which travels through streams and queues, and its [`FreeText`],
//! which is stored with it and goes nowhere else.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::dedupe::DedupeKey;
use crate::identifier::{ArtifactId, ConversationId, Label, SessionId, TenantId, TurnId, UserId};
use crate::labels::Labels;

macro_rules! wire_names {
    ($type:ident { $($variant:ident = $name:literal),+ $(,)? }) => {
        impl $type {
            /// Every member of the set with its name on the wire.
            pub const NAMES: &'static [(&'static str, Self)] = &[$(($name, Self::$variant)),+];

            /// The name on the wire.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}
pub(crate) use wire_names;

/// How feedback was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Channel {
    /// The user acted on purpose: a rating, a click.
    Explicit,
    /// Inferred from behaviour.
    Implicit,
    /// The user fixed the answer.
    Correction,
}

wire_names!(Channel {
    Explicit = "explicit",
    Implicit = "implicit",
    Correction = "correction",
});

/// What kind of feedback it is, within its channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FeedbackType {
    /// The artifact was accepted, or not.
    ArtifactAcceptance,
    /// A rating from 1 to 5.
    Rating,
    /// Words about the artifact.
    Comment,
    /// The artifact was rejected.
    Rejection,
    /// The artifact was changed by the user.
    Modification,
    /// How long it was looked at.
    DwellTime,
    /// How far it was read.
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
    /// What is said.
    Content,
    /// How it is laid out.
    Format,
    /// Whether it is true.
    Accuracy,
    /// Whether something is missing.
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
    /// The highest rating that counts as low (`SDS-009`, "Signal Generation Rules").
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

impl From<Rating> for u8 {
    fn from(value: Rating) -> Self {
        value.0
    }
}

/// What the user wants to be kept, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrivacyFlags {
    /// Whether the user and the session were replaced by pseudonyms, and personal data in free text by its kind.
    pub anonymize: bool,
    /// Days until the event and what came of it expire, 1 to 3650.
    pub retention_days: u16,
    /// Whether no model may learn from the event.
    pub exclude_from_training: bool,
}

impl PrivacyFlags {
    /// Days of retention when a caller names none (`SDS-009`, "Feedback Event Schema").
    pub const DEFAULT_RETENTION_DAYS: u16 = 90;
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

/// What the user was doing, in the caller's own names.
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
    /// How complex the artifact is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub artifact_complexity: Option<Label>,
    /// How it is laid out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub artifact_format: Option<Label>,
    /// How long the answer is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub response_length: Option<Label>,
    /// What its code looks like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub code_style: Option<Label>,
    /// How experienced the user is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub user_experience: Option<Label>,
    /// The conversation of the turn that the feedback is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub conversation_id: Option<ConversationId>,
    /// That turn: with the project and the conversation it names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub turn_id: Option<TurnId>,
    /// The trace of that turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub trace_id: Option<Label>,
    /// The span within it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub span_id: Option<Label>,
    /// What a team compares answers by.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    #[schema(value_type = BTreeMap<String, String>)]
    pub labels: Labels,
}

/// The first of several events with one dedupe key in one batch: the key is its own, whichever of them is
/// processed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct First {
    /// Which it is.
    pub feedback_id: Uuid,
    /// For how long it is kept, and so its claim.
    pub retention_days: u16,
}

impl First {
    /// An event as the first one.
    #[must_use]
    pub fn of(event: &EventCore) -> Self {
        Self {
            feedback_id: event.feedback_id,
            retention_days: event.privacy.retention_days,
        }
    }
}

/// Everything about an event but its free text: what the rules read and the queues carry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventCore {
    /// The tenant whose event it is.
    pub tenant: TenantId,
    /// The event's identity, chosen by the caller: the same id is the same event.
    pub feedback_id: Uuid,
    /// The user, or the pseudonym of one who asked for it.
    pub user_id: UserId,
    /// The session, or its pseudonym.
    pub session_id: SessionId,
    /// What the feedback is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_id: Option<ArtifactId>,
    /// How it was captured.
    pub channel: Channel,
    /// What kind it is.
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
    /// How sure a detection was that this is what the user meant, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Whether the id was derived from what makes the act unique, and so is its dedupe key too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub derived: bool,
    /// Whether nobody but its user may see it over HTTP, whatever their scope.
    #[serde(default, skip_serializing_if = "is_false")]
    pub private: bool,
    /// The event that comes first of those with this dedupe key in the same batch, if that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_to: Option<First>,
    /// What the user wants to be kept.
    pub privacy: PrivacyFlags,
    /// What the user was doing.
    #[serde(default)]
    pub context: EventContext,
    /// When the feedback was captured, by the caller's clock.
    pub timestamp: DateTime<Utc>,
    /// When it was received, by ours.
    pub received_at: DateTime<Utc>,
}

impl EventCore {
    /// The key under which only the first of several equal acts counts.
    #[must_use]
    pub fn dedupe_key(&self) -> DedupeKey {
        DedupeKey::of(self)
    }

    /// When it expires, and what came of it.
    #[must_use]
    pub fn expires_at(&self) -> DateTime<Utc> {
        self.received_at + TimeDelta::days(self.privacy.retention_days.into())
    }

    /// Whether it may say what the answer should have been.
    #[must_use]
    pub fn corrects(&self) -> bool {
        self.channel == Channel::Correction
            || self.feedback_type == Some(FeedbackType::Modification)
    }

    /// The kind of artifact, `unknown` where the caller named none.
    #[must_use]
    pub fn artifact_type(&self) -> Label {
        self.context
            .artifact_type
            .clone()
            .unwrap_or_else(Label::unknown)
    }

    /// The verdict that the event passes on the artifact, if it passes one: an acceptance says
    /// so itself, a rejection is one by its type.
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
}

/// What a user wrote. Stored with the event, and never sent anywhere by the pipeline.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FreeText {
    /// The comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// The names of the elements that the user changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modified_elements: Vec<String>,
    /// What the answer said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_value: Option<String>,
    /// What it should have said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrected_value: Option<String>,
}

impl FreeText {
    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What a correction rejects and what it puts in its place. An `originalValue` that is a part of the answer
    /// is replaced there; one that is not in the answer is what the user saw instead of it. `None` if it puts
    /// nothing in its place.
    #[must_use]
    pub fn corrected(&self, answer: &str) -> Option<(String, String)> {
        let corrected = self.corrected_value.as_deref()?;
        let original = self.original_value.as_deref();
        Some(match original.filter(|part| !part.trim().is_empty()) {
            None => (answer.to_owned(), corrected.to_owned()),
            Some(part) if answer.contains(part) => {
                (answer.to_owned(), answer.replacen(part, corrected, 1))
            }
            Some(seen) => (seen.to_owned(), corrected.to_owned()),
        })
    }
}

/// A feedback event, whole.
#[derive(Debug, Clone, PartialEq)]
pub struct FeedbackEvent {
    /// What the rules read.
    pub core: EventCore,
    /// What stays in the table.
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
