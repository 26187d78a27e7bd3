//! Responses about preferences.

use chrono::{DateTime, Utc};
use hearback_domain::identity::identifier::UserId;
use hearback_domain::learning::preferences::{Cause, Preferences, Resolved, Version};
use serde::Serialize;
use utoipa::ToSchema;

use crate::lock::Tagged;

/// A user's preferences.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UserPreferences {
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
    /// When this version was written.
    updated_at: DateTime<Utc>,
}

impl UserPreferences {
    pub(crate) fn of(user: UserId, number: u64, version: &Version, anonymous: bool) -> Self {
        Self {
            user_id: user.into(),
            preference_version: number,
            anonymous,
            preferences: version.profile().shown(),
            created_at: version.created_at,
            updated_at: version.updated_at,
        }
    }
}

/// The result of a change.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PreferencesUpdated {
    /// The user.
    user_id: String,
    /// The new version.
    preference_version: u64,
    /// When it was written.
    updated_at: DateTime<Utc>,
}

impl PreferencesUpdated {
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
pub(crate) struct PreferencesHistory {
    /// The user.
    pub user_id: String,
    /// The versions.
    pub versions: Vec<PreferencesVersion>,
    /// If there are older ones: `before` of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// One version.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PreferencesVersion {
    /// Its number.
    preference_version: u64,
    /// What caused it.
    cause: Cause,
    #[serde(flatten)]
    preferences: Preferences,
    /// When it was written.
    updated_at: DateTime<Utc>,
}

impl From<Version> for PreferencesVersion {
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
pub(crate) struct ResolvedPreferences {
    /// The user.
    pub user_id: String,
    /// The version that they come from; 0 for a user who has none.
    pub preference_version: u64,
    #[serde(flatten)]
    pub resolved: Resolved,
}
