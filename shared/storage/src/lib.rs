//! The one table: its keys, its items and the conditions under which they are written.
//!
//! Nothing else knows them. Functions over the AWS SDK clients, no trait and no mock: tests run
//! them against a real engine. Concurrency is settled by conditions, never by reading first.
//!
//! | item | module | written under the condition that |
//! |---|---|---|
//! | turn | [`turns`] | it is new |
//! | … how it was taken | [`statuses`] | nothing that takes precedence is noted |
//! | reaction | [`reactions`] | what stood in its place is what was read there |
//! | message signal | [`message_signals`] | what stood in its place is what was read there |
//! | turn vector | [`vectors`] | |
//! | activity marker | [`activity`] | |
//! | month marker | [`months`] | |
//! | event | [`events`] | its id is new: idempotency is the key itself |
//! | outcome | [`events`] | the event has none yet |
//! | retraction | [`events`] | the event has none yet |
//! | dedupe claim | [`claims`] | nobody claimed the key before |
//! | preference version | [`preferences`] | version n + 1 does not exist |
//! | import, and its pieces | [`imports`] | what stood in its place is what was read there |
//! | erasure | [`erasures`] | none is open |
//!
//! [`blobs`], [`exports`] and [`files`] are the bucket, [`unpacked`] reads packed files of it, and
//! [`versions`] deletes for good. [`training`] is what the training export reads.
//! [`table`] says what the table is, [`stream`] how its stream is read.

pub mod activity;
pub mod blobs;
pub mod claims;
pub mod erasures;
mod error;
pub mod events;
pub mod exports;
pub mod files;
pub mod imports;
mod item;
pub mod keys;
pub mod message_signals;
pub mod months;
mod places;
pub mod preferences;
pub mod reactions;
mod reads;
pub mod statuses;
pub mod stream;
pub mod table;
pub mod training;
mod transactions;
pub mod turns;
pub mod unpacked;
pub mod vectors;
pub mod versions;

pub use blobs::Blobs;
pub use error::Error;
pub use item::LARGEST;
pub use places::{Attempt, Replaced, Standing, Written};

/// The table, reached through an SDK client.
#[derive(Debug, Clone)]
pub struct Store {
    client: aws_sdk_dynamodb::Client,
    table: String,
    shards: u32,
    marked: activity::Remembered,
}

impl Store {
    /// The table of this name.
    #[must_use]
    pub fn new(client: aws_sdk_dynamodb::Client, table: impl Into<String>) -> Self {
        Self {
            client,
            table: table.into(),
            shards: activity::DEFAULT_SHARDS,
            marked: activity::Remembered::default(),
        }
    }

    /// The same table, with a project's days in so many shards. The number may grow, never
    /// shrink: what is in a shard that nobody reads would be lost to the reports.
    #[must_use]
    pub fn with_shards(mut self, shards: u32) -> Self {
        self.shards = shards.max(1);
        self
    }
}
