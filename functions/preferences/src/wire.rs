//! The shapes of the source (`SDS-009`, "Preference API Specification").

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use hearback_domain::identifier::UserId;
use hearback_domain::preferences::{
    ArtifactPreference, Cause, CommunicationStyle, ContextPreference, DetailLevel, Preferences,
    Resolved, Version,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::lock::Tagged;

/// A user's preferences.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document {
    /// The user.
    user_id: String,
    /// Goes up by one with each change.
    #[schema(minimum = 1)]
    preference_version: u64,
    /// Whether these were learned from the user's anonymous events.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    anonymous: bool,
    #[serde(flatten)]
    preferences: Preferences,
    /// When the first version was written.
    created_at: DateTime<Utc>,
    /// When this one was.
    updated_at: DateTime<Utc>,
}

impl Document {
    pub(crate) fn of(user: UserId, version: &Version, anonymous: bool) -> Self {
        Self {
            user_id: user.into(),
            preference_version: version.number,
            anonymous,
            preferences: version.profile().shown(),
            created_at: version.created_at,
            updated_at: version.updated_at,
        }
    }
}

/// A change: what is left out stays, `null` goes back to the default.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "preferenceVersion": 42,
    "globalPreferences": {"detailLevel": "deep-dive"}
}))]
pub(crate) struct PreferencesPatch {
    /// The version that the change is made on; needed unless `If-Match` has it.
    #[schema(minimum = 0, nullable = false)]
    preference_version: Option<u64>,
    /// By artifact type.
    artifact_preferences: Option<BTreeMap<String, ArtifactPreference>>,
    /// By task type or project.
    context_preferences: Option<BTreeMap<String, ContextPreference>>,
    /// Everywhere.
    global_preferences: Option<GlobalPreferencesPatch>,
}

/// A change of global preferences: what is left out stays, `null` goes back to the default.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct GlobalPreferencesPatch {
    /// How to talk to the user.
    communication_style: Option<CommunicationStyle>,
    /// How much to tell.
    detail_level: Option<DetailLevel>,
    /// Whether feedback updates preferences.
    learning_mode: Option<bool>,
}

/// A change was made.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Changed {
    /// The user.
    user_id: String,
    /// The version that came of it.
    preference_version: u64,
    /// When.
    updated_at: DateTime<Utc>,
}

impl Changed {
    pub(crate) fn of(user: UserId, version: &Version) -> Tagged<Self> {
        let changed = Self {
            user_id: user.into(),
            preference_version: version.number,
            updated_at: version.updated_at,
        };
        Tagged(version.number, changed)
    }
}

/// A page of versions, the newest first.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct History {
    /// The user.
    pub user_id: String,
    /// The versions.
    pub versions: Vec<Entry>,
    /// If there are older ones: `before` of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// One version.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    /// Its number.
    preference_version: u64,
    /// Why it came to be.
    cause: Cause,
    #[serde(flatten)]
    preferences: Preferences,
    /// When it was written.
    updated_at: DateTime<Utc>,
}

impl From<Version> for Entry {
    fn from(version: Version) -> Self {
        Self {
            preference_version: version.number,
            preferences: version.profile().shown(),
            cause: version.cause,
            updated_at: version.updated_at,
        }
    }
}

/// The preferences that apply to one request.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResolvedDocument {
    /// The user.
    pub user_id: String,
    /// The version that they come from; 0 for a user who has none.
    pub preference_version: u64,
    #[serde(flatten)]
    pub resolved: Resolved,
}
