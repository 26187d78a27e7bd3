//! What a handler of HTTP requests works with, made once at init.

use hearback_domain::privacy::Pseudonyms;
use hearback_storage::Store;

use crate::aws;
use crate::clock::Clock;

/// A setting that the environment must have.
#[derive(Debug, thiserror::Error)]
#[error("the environment variable {0} is not set")]
pub struct MissingSetting(pub &'static str);

/// Reads a setting from the environment.
pub fn setting(name: &'static str) -> Result<String, MissingSetting> {
    std::env::var(name).map_err(|_| MissingSetting(name))
}

/// The name of the table.
pub const TABLE: &str = "HEARBACK_TABLE";
/// The secret key of pseudonyms.
pub const PSEUDONYM_KEY: &str = "HEARBACK_PSEUDONYM_KEY";
/// The URL of the queue that takes what the signal generator cannot work off.
pub const DEAD_LETTERS_URL: &str = "HEARBACK_DEAD_LETTERS_URL";

/// What a handler works with.
#[derive(Debug, Clone)]
pub struct App {
    /// The table.
    pub store: Store,
    /// Pseudonyms under this deployment's key.
    pub pseudonyms: Pseudonyms,
    /// The time.
    pub clock: Clock,
}

impl App {
    /// Reads the settings and builds the clients.
    pub fn from_env() -> Result<Self, MissingSetting> {
        Ok(Self {
            store: store_from_env()?,
            pseudonyms: Pseudonyms::new(setting(PSEUDONYM_KEY)?),
            clock: Clock::system(),
        })
    }
}

/// The table that the environment names.
pub fn store_from_env() -> Result<Store, MissingSetting> {
    let config = aws::Aws::from_env(aws::Service::DynamoDb).config();
    Ok(Store::new(
        aws_sdk_dynamodb::Client::new(&config),
        setting(TABLE)?,
    ))
}
