//! The one table: its keys, its items and the conditions under which they are written.
//!
//! Nothing else knows them. Functions over the AWS SDK clients, no trait and no mock: tests run
//! them against a real engine. Concurrency is settled by conditions, never by reading first.
//!
//! | item | module | written under the condition that |
//! |---|---|---|
//! | event | [`events`] | its id is new: idempotency is the key itself |
//! | outcome | [`events`] | the event has none yet |
//! | dedupe claim | [`claims`] | nobody claimed the key before |
//! | preference version | [`preferences`] | version n + 1 does not exist |
//!
//! [`table`] says what the table is, [`stream`] how its stream is read.

pub mod claims;
mod error;
pub mod events;
mod item;
pub mod keys;
pub mod preferences;
pub mod stream;
pub mod table;

pub use error::Error;

/// The table, reached through an SDK client.
#[derive(Debug, Clone)]
pub struct Store {
    client: aws_sdk_dynamodb::Client,
    table: String,
}

impl Store {
    /// The table of this name.
    #[must_use]
    pub fn new(client: aws_sdk_dynamodb::Client, table: impl Into<String>) -> Self {
        Self {
            client,
            table: table.into(),
        }
    }
}
