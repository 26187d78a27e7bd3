//! Settings: the environment variables that functions read.

/// A required setting that is missing.
#[derive(Debug, thiserror::Error)]
#[error("the environment variable {0} is not set")]
pub struct MissingSetting(pub &'static str);

/// Why a function cannot start.
#[derive(Debug, thiserror::Error)]
pub enum BadSetting {
    /// A setting is missing.
    #[error(transparent)]
    Missing(#[from] MissingSetting),
    /// A setting cannot be used.
    #[error("{0} cannot be used: {1}")]
    Unusable(&'static str, String),
}

/// Reads a setting from the environment.
pub fn setting(name: &'static str) -> Result<String, MissingSetting> {
    std::env::var(name).map_err(|_| MissingSetting(name))
}

/// The name of the table.
pub const TABLE: &str = "HEARBACK_TABLE";
/// The secret key of pseudonyms, and of cursors.
pub const PSEUDONYM_KEY: &str = "HEARBACK_PSEUDONYM_KEY";
/// The URL of the DLQ of the signal generator.
pub const DEAD_LETTERS_URL: &str = "HEARBACK_DEAD_LETTERS_URL";

/// The name of the bucket.
pub const BUCKET: &str = "HEARBACK_BUCKET";
/// The number of shards of a project's day; optional.
pub const ACTIVITY_SHARDS: &str = "HEARBACK_ACTIVITY_SHARDS";
/// Projects whose reactions are mirrored into turn logs unless a request says otherwise, as a
/// comma-separated list of `tenant/project`.
pub const MIRROR_PROJECTS: &str = "HEARBACK_MIRROR_PROJECTS";
/// Days for which turns are kept; optional. 0 keeps them forever.
pub const TURN_RETENTION_DAYS: &str = "HEARBACK_TURN_RETENTION_DAYS";
/// A folder of phrase files (`<language>.toml`) to add to the built-in ones; optional.
pub const PHRASES: &str = "HEARBACK_PHRASES";

/// The model on Amazon Bedrock that embeds texts; without it, the embedded embedder does.
pub const EMBEDDING_MODEL: &str = "HEARBACK_EMBEDDING_MODEL";
