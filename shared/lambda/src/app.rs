//! What a handler of HTTP requests works with, made once at init.

use std::sync::Arc;

use axum::extract::FromRef;
use axum::http::StatusCode;
use hearback_domain::cursor::Cursors;
use hearback_domain::identifier::{TenantId, UserId};
use hearback_domain::privacy::Pseudonyms;
use hearback_domain::turn::ConversationRef;
use hearback_storage::preferences::Freshness;
use hearback_storage::{Blobs, Store};
use uuid::Uuid;

use crate::aws;
use crate::clock::Clock;
use crate::embedder::Embeddings;
use crate::problem::Problem;

/// A setting that the environment must have.
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
/// The URL of the queue that takes what the signal generator cannot work off.
pub const DEAD_LETTERS_URL: &str = "HEARBACK_DEAD_LETTERS_URL";

/// The name of the bucket.
pub const BUCKET: &str = "HEARBACK_BUCKET";
/// Shards of a project's day; as many as the default if it is not set.
pub const ACTIVITY_SHARDS: &str = "HEARBACK_ACTIVITY_SHARDS";
/// Projects whose reactions are mirrored into turn logs unless a request says otherwise, as
/// `tenant/project` with commas between.
pub const MIRROR_PROJECTS: &str = "HEARBACK_MIRROR_PROJECTS";
/// For how many days turns are kept; for as many as the default if it is not set, and without end if it is 0.
pub const TURN_RETENTION_DAYS: &str = "HEARBACK_TURN_RETENTION_DAYS";
/// A folder of phrase files (`<language>.toml`) that add to those of the detector; none if it is
/// not set.
pub const PHRASES: &str = "HEARBACK_PHRASES";

/// The model on Amazon Bedrock that makes vectors of texts; the embedded embedder if it is not set.
pub const EMBEDDING_MODEL: &str = "HEARBACK_EMBEDDING_MODEL";

/// What handlers work with, made at init of what the environment says.
pub trait FromEnv: Clone + Send + Sync + 'static {
    /// Reads the settings and builds the clients.
    fn from_env() -> Result<Self, BadSetting>;
}

/// What a handler works with.
#[derive(Debug, Clone)]
pub struct App {
    /// The table.
    pub store: Store,
    /// Pseudonyms under this deployment's key.
    pub pseudonyms: Pseudonyms,
    /// Signs cursors.
    pub cursors: Cursors,
    /// The time.
    pub clock: Clock,
    /// Makes vectors of texts.
    pub embeddings: Embeddings,
    /// `tenant/project` of those whose reactions are mirrored by default.
    pub mirrored: Arc<[String]>,
}

impl App {
    /// Refuses what somebody says whose data is being erased right now: what was written meanwhile might
    /// stay. Answers which erasure was done before, if one was. One call, one read.
    pub async fn refuse_while_erased(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> Result<Option<Uuid>, Problem> {
        let erasure = self.store.erasure((tenant, user), Freshness::Latest);
        match erasure.await? {
            Some(erasure) if erasure.is_open() => {
                Err(Problem::new(StatusCode::CONFLICT, "erasure_in_progress")
                    .detail("This user's data is being erased. Try again when that is done."))
            }
            done => Ok(done.map(|erasure| erasure.id)),
        }
    }

    /// Whether a project's reactions are mirrored where the request does not say.
    #[must_use]
    pub fn mirrors(&self, at: &ConversationRef) -> bool {
        let name = format!("{}/{}", at.tenant, at.project);
        self.mirrored.contains(&name)
    }
}

impl FromEnv for App {
    fn from_env() -> Result<Self, BadSetting> {
        let store = store_from_env()?;
        let key = setting(PSEUDONYM_KEY)?;
        Ok(Self {
            store,
            cursors: Cursors::new(key.as_bytes()),
            pseudonyms: Pseudonyms::new(key),
            clock: Clock::system(),
            embeddings: Embeddings::from_env()?,
            mirrored: mirrored(&setting(MIRROR_PROJECTS).unwrap_or_default()),
        })
    }
}

/// Reads a list of `tenant/project`.
#[must_use]
pub fn mirrored(list: &str) -> Arc<[String]> {
    list.split(',')
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

/// What a handler works with that also reads or writes the bucket.
#[derive(Debug, Clone)]
pub struct WithBlobs {
    /// Everything else.
    pub app: App,
    /// The bucket.
    pub blobs: Blobs,
}

impl FromEnv for WithBlobs {
    fn from_env() -> Result<Self, BadSetting> {
        Ok(Self {
            app: App::from_env()?,
            blobs: blobs_from_env()?,
        })
    }
}

/// A handler that needs no bucket takes only the rest.
impl FromRef<WithBlobs> for App {
    fn from_ref(whole: &WithBlobs) -> Self {
        whole.app.clone()
    }
}

impl FromRef<WithBlobs> for Blobs {
    fn from_ref(whole: &WithBlobs) -> Self {
        whole.blobs.clone()
    }
}

/// The table that the environment names.
pub fn store_from_env() -> Result<Store, MissingSetting> {
    let config = aws::Aws::from_env(aws::Service::DynamoDb).config();
    let store = Store::new(aws_sdk_dynamodb::Client::new(&config), setting(TABLE)?);
    let shards = setting(ACTIVITY_SHARDS).ok().and_then(|n| n.parse().ok());
    Ok(match shards {
        Some(shards) => store.with_shards(shards),
        None => store,
    })
}

/// The bucket that the environment names.
pub fn blobs_from_env() -> Result<Blobs, MissingSetting> {
    let aws = aws::Aws::from_env(aws::Service::S3);
    // Another endpoint than AWS's own knows no host names for buckets.
    let config = aws_sdk_s3::config::Builder::from(&aws.config())
        .force_path_style(aws.endpoint_url.is_some())
        .build();
    Ok(Blobs::new(
        aws_sdk_s3::Client::from_conf(config),
        setting(BUCKET)?,
    ))
}
