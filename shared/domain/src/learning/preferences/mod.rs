//! A user's preferences: their schema, how users change them, and how they learn from feedback.
//!
//! See docs/reference/preferences.md. Preferences are stored as a log of versions. Version n + 1 is written only if it
//! does not exist, which is the optimistic lock; the log is also the audit history.

mod choices;
mod learning;
mod patch;
mod resolved;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use hearback_wire::wire_names;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::identity::identifier::Label;

/// The constants of learning: docs/reference/rules.md, "Preference learning" and "Exploration hints".
pub mod numbers {
    pub use super::choices::{EVEN, MAX_SAMPLES, MIN_SAMPLES as MIN_OPTION_SAMPLES, Z};
    pub use super::learning::{
        HIGH_ACCEPTANCE, MAX_AGENTS, MAX_ARTIFACT_TYPES, MAX_CONTEXTS, MAX_NAMES, MAX_WEIGHT,
        MIN_SAMPLES,
    };
}

pub use learning::{Crossing, Learned, Learning, Lesson, Overflow, learn};
pub use patch::{MAX_BYTES, PreferencesPatch, TooLarge};
pub use resolved::{PreferenceContext, PreferenceSource, Resolved, Sources, resolve};

// `$name` is a `tt`, because `ToSchema` ignores a `rename` to a `literal`.
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
    /// The preferred complexity of artifacts.
    Complexity {
        /// The minimum.
        Simple = "simple",
        /// Between both.
        Moderate = "moderate",
        /// All details.
        Detailed = "detailed",
    }
}

wire_enum! {
    /// The preferred format of artifacts.
    Format {
        /// A list.
        BulletList = "bullet-list",
        /// Running text.
        Prose = "prose",
        /// A table.
        Table = "table",
        /// Code.
        Code = "code",
        /// Several formats.
        Mixed = "mixed",
    }
}

wire_enum! {
    /// The preferred length of answers.
    ResponseLength {
        /// Short.
        Concise = "concise",
        /// Between both.
        Balanced = "balanced",
        /// Long.
        Verbose = "verbose",
    }
}

wire_enum! {
    /// The preferred style of code.
    CodeStyle {
        /// Code without comments.
        Minimal = "minimal",
        /// Code with comments.
        Documented = "documented",
        /// Detailed code.
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
    /// The level of detail of answers.
    DetailLevel {
        /// A summary.
        Overview = "overview",
        /// The normal level.
        Standard = "standard",
        /// All details.
        DeepDive = "deep-dive",
    }
}

/// A user's preferences for an artifact type.
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
    /// The number of events that this was learned from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_count: Option<u64>,
}

/// A user's preferences in a context: a task type or a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextPreference {
    /// Preferred agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_agents: Option<Vec<String>>,
    /// Preferred length of answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_response_length: Option<ResponseLength>,
    /// Preferred style of code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_code_style: Option<CodeStyle>,
}

/// A user's preferences in all contexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GlobalPreferences {
    /// The tone.
    pub communication_style: CommunicationStyle,
    /// The level of detail.
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
    /// In all contexts.
    #[serde(default)]
    pub global_preferences: GlobalPreferences,
}

impl Preferences {
    /// The defaults. The learning mode is kept, because it is a consent and not a preference.
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

/// A user's preferences and what was learned about them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// The preferences that the user set, and the averages.
    pub preferences: Preferences,
    /// Everything else that was learned.
    pub learning: Learning,
}

/// The cause of a version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Cause {
    /// The user changed preferences.
    Update,
    /// The user reset preferences to the defaults.
    Reset,
    /// Preferences were learned from feedback.
    #[serde(rename_all = "camelCase")]
    Feedback {
        /// The events that this version was learned from. They prevent a redelivered event from being learned twice.
        feedback_ids: Vec<Uuid>,
        /// Crossings of the acceptance rate, by event.
        #[schema(value_type = BTreeMap<String, Crossing>)]
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        crossings: BTreeMap<Uuid, Crossing>,
        /// Names that were dropped because of the limits.
        #[serde(default, skip_serializing_if = "Overflow::is_empty")]
        overflow: Overflow,
    },
}

impl Cause {
    /// The cause without the ids of events and their details, for callers other than the user. Message signals and the
    /// ids of their events are private.
    #[must_use]
    pub fn redacted(self) -> Self {
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

/// A version of a user's preferences.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// The version number, from 1.
    pub number: u64,
    /// The preferences from this version on.
    pub preferences: Preferences,
    /// What was learned up to this version.
    #[serde(default, skip_serializing_if = "Learning::is_empty")]
    pub learning: Learning,
    /// The cause of the version.
    pub cause: Cause,
    /// When the user's first version was written.
    pub created_at: DateTime<Utc>,
    /// When this version was written.
    pub updated_at: DateTime<Utc>,
}

/// The newest version of a user's preferences.
#[derive(Debug, Clone, Default)]
pub struct NewestVersion {
    /// The number of the newest stored version, whether it can be read or not; 0 for a user without preferences.
    pub number: u64,
    /// The newest version that can be read. If that is an older one, its preferences apply under the newest number.
    pub version: Option<Version>,
}

impl NewestVersion {
    /// The profile of the newest version that can be read; the defaults if there is none.
    #[must_use]
    pub fn profile(&self) -> Profile {
        let version = self.version.as_ref();
        version.map(Version::profile).unwrap_or_default()
    }

    /// The version after this one.
    #[must_use]
    pub fn next(&self, profile: Profile, cause: Cause, at: DateTime<Utc>) -> Version {
        let first = self.version.as_ref().map(|version| version.created_at);
        Version {
            number: self.number + 1,
            preferences: profile.preferences,
            learning: profile.learning,
            cause,
            created_at: first.unwrap_or(at),
            updated_at: at,
        }
    }
}

impl Version {
    /// The profile as of this version.
    #[must_use]
    pub fn profile(&self) -> Profile {
        Profile {
            preferences: self.preferences.clone(),
            learning: self.learning.clone(),
        }
    }

    /// `Some` if this version was learned from the event, with the crossing that the event caused.
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
