//! A user's preferences: what they look like, how they change, and what they teach themselves.
//!
//! Source: `SDS-009`, "Personalization Model"; product specification, section 8. The store is a
//! log of versions: version n + 1 is written only if it does not exist, which is the optimistic
//! lock, the audit history and the undo in one.

mod choices;
mod learning;
mod patch;
mod resolved;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::event::wire_names;
use crate::identifier::Label;

pub use learning::{Crossing, Learned, Learning, Lesson, Overflow, learn};
pub use patch::{MAX_BYTES, Patch, TooLarge};
pub use resolved::{Question, Resolved, Source, Sources, resolve};

// A name is a bare token: the derive that describes the API passes over a `rename` to a `literal`.
macro_rules! wire_enum {
    ($(#[$doc:meta])* $type:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:tt),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
        )]
        pub enum $type { $($(#[$variant_doc])* #[serde(rename = $name)] $variant),+ }
        wire_names!($type { $($variant = $name),+ });
    };
}

wire_enum! {
    /// How complex artifacts should be.
    Complexity {
        /// As little as will do.
        Simple = "simple",
        /// In between.
        Moderate = "moderate",
        /// Everything.
        Detailed = "detailed",
    }
}

wire_enum! {
    /// How artifacts should be laid out.
    Format {
        /// A list.
        BulletList = "bullet-list",
        /// Running text.
        Prose = "prose",
        /// A table.
        Table = "table",
        /// Code.
        Code = "code",
        /// Whatever fits.
        Mixed = "mixed",
    }
}

wire_enum! {
    /// How long answers should be.
    ResponseLength {
        /// Short.
        Concise = "concise",
        /// In between.
        Balanced = "balanced",
        /// Long.
        Verbose = "verbose",
    }
}

wire_enum! {
    /// What code should look like.
    CodeStyle {
        /// Only the code.
        Minimal = "minimal",
        /// With comments.
        Documented = "documented",
        /// Spelled out.
        Verbose = "verbose",
    }
}

wire_enum! {
    /// The tone of answers.
    CommunicationStyle {
        /// Formal.
        Formal = "formal",
        /// Casual.
        Casual = "casual",
        /// Technical.
        Technical = "technical",
    }
}

wire_enum! {
    /// How deep answers should go.
    DetailLevel {
        /// The gist.
        Overview = "overview",
        /// The usual.
        Standard = "standard",
        /// Everything.
        DeepDive = "deep-dive",
    }
}

/// What a user likes of one kind of artifact.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactPreference {
    /// Preferred complexity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_complexity: Option<Complexity>,
    /// Preferred format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_format: Option<Format>,
    /// Weighted moving average of ratings, 1 to 5.
    #[schema(minimum = 1, maximum = 5)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average_rating: Option<f64>,
    /// Weighted moving average of acceptances, 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acceptance_rate: Option<f64>,
    /// How many events taught this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_count: Option<u64>,
}

/// What a user likes in one context: a task type or a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextPreference {
    /// Agents to ask first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_agents: Option<Vec<String>>,
    /// Preferred length of answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_response_length: Option<ResponseLength>,
    /// Preferred style of code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_code_style: Option<CodeStyle>,
}

/// What a user likes everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GlobalPreferences {
    /// Tone.
    pub communication_style: CommunicationStyle,
    /// Depth.
    pub detail_level: DetailLevel,
    /// Whether preferences are updated from feedback.
    pub learning_mode: bool,
}

impl Default for GlobalPreferences {
    fn default() -> Self {
        Self {
            communication_style: CommunicationStyle::Technical,
            detail_level: DetailLevel::Standard,
            learning_mode: true,
        }
    }
}

/// A user's preferences, without their version.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preferences {
    /// By artifact type.
    #[schema(value_type = BTreeMap<String, ArtifactPreference>)]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub artifact_preferences: BTreeMap<Label, ArtifactPreference>,
    /// By task type or project.
    #[schema(value_type = BTreeMap<String, ContextPreference>)]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context_preferences: BTreeMap<Label, ContextPreference>,
    /// Everywhere.
    #[serde(default)]
    pub global_preferences: GlobalPreferences,
}

impl Preferences {
    /// The defaults. Whether feedback is learned from stays: that is consent, and no preference.
    #[must_use]
    pub fn reset(&self) -> Self {
        Self {
            global_preferences: GlobalPreferences {
                learning_mode: self.global_preferences.learning_mode,
                ..GlobalPreferences::default()
            },
            ..Self::default()
        }
    }
}

/// All that is known of what a user likes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// What the user set, and the averages.
    pub preferences: Preferences,
    /// What else was learned.
    pub learning: Learning,
}

/// Why a version came to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Cause {
    /// The user changed them.
    Update,
    /// The user went back to the defaults.
    Reset,
    /// The pipeline learned from feedback.
    #[serde(rename_all = "camelCase")]
    Feedback {
        /// The events that taught this version. An event that is delivered again recognises
        /// itself here and is not learned twice.
        feedback_ids: Vec<Uuid>,
        /// Acceptance rates that these events made cross the threshold, by event.
        #[schema(value_type = BTreeMap<String, Crossing>)]
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        crossings: BTreeMap<Uuid, Crossing>,
        /// Names that these events gave and for which there was no room.
        #[serde(default, skip_serializing_if = "Overflow::is_empty")]
        overflow: Overflow,
    },
}

impl Cause {
    /// The cause as others than the user see it: that it was feedback, and not which. What a user
    /// said of a message is that user's alone, and so is the name of its event.
    #[must_use]
    pub fn for_others(self) -> Self {
        match self {
            Self::Update => Self::Update,
            Self::Reset => Self::Reset,
            Self::Feedback { .. } => Self::Feedback {
                feedback_ids: Vec::new(),
                crossings: BTreeMap::new(),
                overflow: Overflow::default(),
            },
        }
    }
}

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// 1 for the first, and one more each time.
    pub number: u64,
    /// The preferences from this version on.
    pub preferences: Preferences,
    /// What was learned up to this version.
    #[serde(default, skip_serializing_if = "Learning::is_empty")]
    pub learning: Learning,
    /// Why it came to be.
    pub cause: Cause,
    /// When the user's first version was written.
    pub created_at: DateTime<Utc>,
    /// When this one was.
    pub updated_at: DateTime<Utc>,
}

impl Version {
    /// The version that follows `previous`, or the first.
    #[must_use]
    pub fn after(
        previous: Option<&Self>,
        profile: Profile,
        cause: Cause,
        at: DateTime<Utc>,
    ) -> Self {
        Self {
            number: previous.map_or(0, |version| version.number) + 1,
            preferences: profile.preferences,
            learning: profile.learning,
            cause,
            created_at: previous.map_or(at, |version| version.created_at),
            updated_at: at,
        }
    }

    /// What is known of the user as of this version.
    #[must_use]
    pub fn profile(&self) -> Profile {
        Profile {
            preferences: self.preferences.clone(),
            learning: self.learning.clone(),
        }
    }

    /// Whether this version was learned from an event, and what crossed the threshold then.
    #[must_use]
    pub fn learned_from(&self, event: Uuid) -> Option<Option<&Crossing>> {
        match &self.cause {
            Cause::Feedback {
                feedback_ids,
                crossings,
                ..
            } => feedback_ids.contains(&event).then(|| crossings.get(&event)),
            Cause::Update | Cause::Reset => None,
        }
    }
}
