//! A durable queue engine that speaks the wire protocol of Amazon SQS, for one machine.
//!
//! The AWS SDKs, boto3 and the AWS CLI use it unchanged: AWS JSON 1.0 over HTTP, standard
//! queues, visibility timeouts, long polling, dead-letter queues. An acknowledged change is on disk:
//! every request is part of an `SQLite` transaction that is synced before the response is sent, and
//! requests that wait at the same time share one transaction and one sync.
//!
//! Guarantees of a queue:
//! - at-least-once delivery, roughly in the order of sending;
//! - a receive raises a message's receive count by exactly one, and nothing else does;
//! - a message received as often as its queue's redrive policy allows moves to the dead-letter
//!   queue instead of being received again; if that queue does not exist, it continues to be received;
//! - a message is removed only by a delete, a purge, the deletion of its queue, or its retention period.
//!
//! The wall clock may be set in either direction while messages wait: a message that was hidden for ten more seconds
//! still is ([`clock`]).
//!
//! Not supported: FIFO queues, tags, policies, encryption settings, message move tasks, and the older query
//! protocol. Each is rejected with an error that names it.
//! There is one account, `000000000000`. The router checks no signature: every client that reaches it
//! has full access, so put an authentication layer in front of it, as `infra/local` does.
//!
//! The path of a request: `http` reads the operation, `wire` its shapes, `operations` turns it
//! into one unit of work, `writer` runs all waiting units in one transaction on its own thread,
//! `store` holds the SQL.

mod characters;
pub mod clock;
mod digest;
mod error;
mod fault;
mod http;
mod message;
mod message_attributes;
mod name;
mod operations;
mod queue_attributes;
mod queue_notifiers;
mod receipt;
mod store;
mod wire;
mod writer;

use std::{path::Path, sync::Arc};

use rusqlite::Connection;

pub use error::Error;

use crate::{
    clock::Clock,
    queue_notifiers::QueueNotifiers,
    writer::{File, Writer},
};

/// A queue engine: a cheap handle to one database and the thread that writes it.
///
/// The thread ends when the last clone (and with it the last router) is dropped, after it has
/// finished its jobs.
#[derive(Clone, Debug)]
pub struct Sqs {
    writer: Writer,
    notifiers: Arc<QueueNotifiers>,
}

impl Sqs {
    /// Opens the queues stored at `path`, creating the file (not its folder) if it does not exist.
    ///
    /// `region` is the one named in queue ARNs, for example `us-east-1`. Blocks for the time the
    /// file takes to open. Open a file once: the long polls of a second engine
    /// would not notice messages that the first one receives.
    pub fn open(path: &Path, region: &str) -> Result<Self, Error> {
        Self::open_by(path, region, Clock::system())
    }

    /// Opens the queues stored at `path`, with this clock.
    pub fn open_by(path: &Path, region: &str, clock: Clock) -> Result<Self, Error> {
        Self::start(Connection::open(path)?, region, clock)
    }

    /// An engine in memory, whose queues are lost with its last handle.
    pub fn in_memory(region: &str) -> Result<Self, Error> {
        Self::start(Connection::open_in_memory()?, region, Clock::system())
    }

    /// The HTTP surface: `POST /` with the operation in `X-Amz-Target`.
    ///
    /// A long poll holds its request for up to 20 seconds; on shutdown, the
    /// server decides whether to wait for it.
    #[must_use = "a router does nothing until it is served"]
    pub fn router(self) -> axum::Router {
        http::routes(self)
    }

    fn start(connection: Connection, region: &str, clock: Clock) -> Result<Self, Error> {
        store::prepare(&connection)?;
        let notifiers = Arc::new(QueueNotifiers::default());
        let file = File::open(connection, clock)?;
        let writer = Writer::start(file, region, Arc::clone(&notifiers))?;
        Ok(Self { writer, notifiers })
    }
}
