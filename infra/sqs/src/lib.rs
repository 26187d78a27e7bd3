//! A durable queue engine that speaks the wire protocol of Amazon SQS, for one machine.
//!
//! The AWS SDKs, boto3 and the AWS CLI talk to it unchanged: AWS JSON 1.0 over HTTP, standard
//! queues, visibility timeouts, long polling, dead-letter queues. What is acknowledged is on disk:
//! every request is part of a `SQLite` transaction that is synced before the answer is sent, and
//! requests that wait at the same time share one transaction and one sync.
//!
//! What a queue promises here:
//! - at-least-once delivery, roughly in the order of sending;
//! - a receive raises a message's receive count by exactly one, and nothing else does;
//! - a message received as often as its queue's redrive policy allows moves to the dead-letter
//!   queue instead of being received again; if that queue is gone it keeps being received;
//! - a message leaves only by a delete, a purge, the end of its queue, or its retention period.
//!
//! What it is not: no FIFO queues, no fair queues, no tags, policies or encryption settings, no
//! message move tasks, no older query protocol; each is refused with an error that says so.
//! Request signatures are not checked and there is one account, `000000000000`; whoever can reach
//! the socket owns the queues.
//!
//! How a request travels: `http` reads the operation, `wire` its shapes, `operations` turns it
//! into one unit of work, `writer` runs all waiting units in one transaction on its own thread,
//! `store` holds the SQL.

mod bells;
mod digest;
mod fault;
mod http;
mod message;
mod message_attributes;
mod name;
mod operations;
mod queue_attributes;
mod receipt;
mod store;
mod wire;
mod writer;

use std::{path::Path, sync::Arc};

use rusqlite::Connection;

use crate::{bells::Bells, writer::Writer};

/// A queue engine: a cheap handle to one database and the thread that writes it.
///
/// The thread ends when the last clone (and with it the last router) is dropped, after it has
/// finished what was handed to it.
#[derive(Clone, Debug)]
pub struct Sqs {
    writer: Writer,
    bells: Arc<Bells>,
}

/// Why an engine could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The database could not be opened, or is no database.
    #[error("the queue database could not be opened")]
    Storage(#[from] rusqlite::Error),
    /// The database was written by another version of this engine.
    #[error("the queue database has schema version {found}, this engine reads version {expected}")]
    Schema {
        /// The version found in the file.
        found: i64,
        /// The version this engine reads and writes.
        expected: i64,
    },
    /// The operating system refused the writer's thread.
    #[error("the queue writer's thread could not be started")]
    Thread(#[from] std::io::Error),
}

impl Sqs {
    /// Opens the queues stored at `path`, creating the file (not its folder) if there is none.
    ///
    /// `region` is the one named in queue ARNs, for example `us-east-1`. Blocks for the time the
    /// file takes to open. One engine per file: a second one would be correct but its long polls
    /// would not notice what the first one receives.
    pub fn open(path: &Path, region: &str) -> Result<Self, Error> {
        Self::start(Connection::open(path)?, region)
    }

    /// An engine whose queues end with its last handle.
    pub fn in_memory(region: &str) -> Result<Self, Error> {
        Self::start(Connection::open_in_memory()?, region)
    }

    /// The HTTP surface: `POST /` with the operation in `X-Amz-Target`.
    ///
    /// A long poll holds its request for up to 20 seconds; whoever shuts the server down decides
    /// whether to wait for it.
    #[must_use = "a router does nothing until it is served"]
    pub fn router(self) -> axum::Router {
        http::routes(self)
    }

    fn start(connection: Connection, region: &str) -> Result<Self, Error> {
        store::prepare(&connection)?;
        let bells = Arc::new(Bells::default());
        let writer = Writer::start(connection, region, Arc::clone(&bells))?;
        Ok(Self { writer, bells })
    }
}
