//! Access to the table and the bucket: keys, items, and the conditions of writes.
//!
//! No other crate knows the keys. There is no trait and no mock: tests run against a real engine.
//! Conditions decide between concurrent writers, never a read before the write. Start with [`table`] and [`events`].
//!
//! | item | module | written under the condition that |
//! |---|---|---|
//! | turn | [`turns`] | it is new |
//! | … its status | [`statuses`] | no feedback that takes precedence is stored |
//! | reaction | [`reactions`] | the item is unchanged since it was read |
//! | message signal | [`message_signals`] | the item is unchanged since it was read |
//! | turn vector | [`vectors`] | |
//! | activity marker | [`activity`] | |
//! | month marker | [`months`] | |
//! | event | [`events`] | its id is new: idempotency is the key itself |
//! | outcome | [`events`] | the event has none yet |
//! | retraction | [`events`] | the event has none yet |
//! | dedupe claim | [`claims`] | the key is unclaimed |
//! | preference version | [`preferences`] | version n + 1 does not exist |
//! | import, and its pieces | [`imports`] | the item is unchanged since it was read |
//! | erasure | [`erasures`] | none is open |
//! | ticket, connection, listener | [`connections`] | its connection is open |
//! | webhook | [`webhooks`] | the item is unchanged since it was read |
//!
//! [`blobs`], [`exports`] and [`files`] access the bucket, [`unpacked`] reads packed files, and
//! [`versions`] deletes permanently. [`training`] has the reads of the training export. [`queued`]
//! finds events that the signal generator has not received, [`turns_by_status`] lists turns. [`table`] defines the
//! table, [`stream`] reads its stream.
//!
//! Of our crates it imports `detection` and `domain`.

pub mod activity;
mod attributes;
pub mod blobs;
pub mod claims;
mod conditional;
pub mod connections;
pub mod corrections;
pub mod damage;
pub mod erasures;
mod error;
pub mod events;
pub mod exports;
pub mod feed;
pub mod files;
pub mod imports;
pub mod insights;
mod item;
// Public in tests, which count requests by key.
#[cfg(feature = "keys")]
pub mod keys;
#[cfg(not(feature = "keys"))]
mod keys;
mod line_filter;
pub mod message_signals;
pub mod months;
pub mod preferences;
pub mod queued;
pub mod reactions;
mod reads;
pub mod statuses;
pub mod stream;
pub mod table;
pub mod training;
mod transactions;
pub mod turn_rows;
pub mod turns;
pub mod turns_by_status;
pub mod unpacked;
pub mod vectors;
pub mod versions;
pub mod webhooks;

pub use attributes::JSON_ATTRIBUTES;
pub use blobs::Blobs;
pub use conditional::{Attempt, Replaced, Versioned, WriteToken, Written, update};
pub use error::{Error, if_readable, unless_unreadable};
pub use item::LARGEST;

/// The table, reached through an SDK client.
#[derive(Debug, Clone)]
pub struct Store {
    client: aws_sdk_dynamodb::Client,
    table: String,
    shards: u32,
    marked: activity::MarkerCache,
}

impl Store {
    /// A store for the table with this name.
    #[must_use]
    pub fn new(client: aws_sdk_dynamodb::Client, table: impl Into<String>) -> Self {
        Self {
            client,
            table: table.into(),
            shards: activity::DEFAULT_SHARDS,
            marked: activity::MarkerCache::default(),
        }
    }

    /// Sets the number of shards of a project's day. It may be increased, never decreased: reports
    /// would miss the markers of the removed shards.
    #[must_use]
    pub fn with_shards(mut self, shards: u32) -> Self {
        self.shards = shards.max(1);
        self
    }
}
