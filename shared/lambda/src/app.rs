//! The state of HTTP handlers, created once at init.

use std::sync::Arc;

use axum::extract::FromRef;
use axum::http::StatusCode;
use hearback_domain::identity::identifier::UserRef;
use hearback_domain::identity::privacy::Pseudonyms;
use hearback_domain::text::cursor::Cursors;
use hearback_domain::turns::turn::ConversationRef;
use hearback_storage::preferences::Freshness;
use hearback_storage::{Blobs, Store};
use uuid::Uuid;

use crate::aws;
use crate::clock::Clock;
use crate::embedder::Embeddings;
use crate::problem::Problem;
use crate::settings::{
    ACTIVITY_SHARDS, BUCKET, BadSetting, MIRROR_PROJECTS, MissingSetting, PSEUDONYM_KEY, TABLE,
    setting,
};

/// State of handlers that is created from the environment at init.
pub trait FromEnv: Clone + Send + Sync + 'static {
    /// Reads the settings and builds the clients.
    fn from_env() -> Result<Self, BadSetting>;
}

/// The state of a handler.
#[derive(Debug, Clone)]
pub struct App {
    /// The table.
    pub store: Store,
    /// Pseudonyms under this deployment's key.
    pub pseudonyms: Pseudonyms,
    /// Signs cursors.
    pub cursors: Cursors,
    /// The clock.
    pub clock: Clock,
    /// Embeds texts.
    pub embeddings: Embeddings,
    /// The projects whose reactions are mirrored by default, as `tenant/project`.
    pub mirrored: Arc<[String]>,
}

impl App {
    /// Rejects feedback of a user whose data is being erased, because data that is written now
    /// might not be erased. Returns the id of the last completed erasure, if any. One call, one
    /// read.
    pub async fn reject_during_erasure(&self, user: UserRef<'_>) -> Result<Option<Uuid>, Problem> {
        match self.store.erasure(user, Freshness::Latest).await? {
            Some(erasure) if erasure.is_open() => {
                Err(Problem::new(StatusCode::CONFLICT, "erasure_in_progress")
                    .detail("This user's data is being erased. Try again when that is done."))
            }
            completed => Ok(completed.map(|erasure| erasure.id)),
        }
    }

    /// Whether a project's reactions are mirrored by default.
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

/// Parses a comma-separated list of `tenant/project`.
#[must_use]
pub fn mirrored(list: &str) -> Arc<[String]> {
    list.split(',')
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

/// The state of a handler that also uses the bucket.
#[derive(Debug, Clone)]
pub struct WithBlobs {
    /// The rest of the state.
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

/// For handlers that do not use the bucket.
impl FromRef<WithBlobs> for App {
    fn from_ref(state: &WithBlobs) -> Self {
        state.app.clone()
    }
}

impl FromRef<WithBlobs> for Blobs {
    fn from_ref(state: &WithBlobs) -> Self {
        state.blobs.clone()
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
    // Custom endpoints have no host names for buckets.
    let config = aws_sdk_s3::config::Builder::from(&aws.config())
        .force_path_style(aws.endpoint_url.is_some())
        .build();
    Ok(Blobs::new(
        aws_sdk_s3::Client::from_conf(config),
        setting(BUCKET)?,
    ))
}
