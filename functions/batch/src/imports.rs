//! Files of events in the bucket, divided into pieces that workers receive from a queue.
//!
//! | message | step | result |
//! |---|---|---|
//! | the bucket's notification of a new file | begins the import, divides a plain file (`begin.rs`) | a message for each piece, or one to unpack |
//! | unpack | unpacks into files of whole lines (`unpack.rs`) | a message for each piece |
//! | a piece | stores its events (`piece.rs`) | the row of the piece |
//! | finish, or the last piece | merges rejects (`rejects.rs`), reports, deletes (`finish.rs`) | the report |
//!
//! A step that runs out of time sends a message for the rest. Each step may be repeated: the token of an event is
//! derived from the offset of its line, a piece's row is replaced on the condition of the version that was read, and a
//! packed file gives the same pieces each time.
//!
//! Tenants share the workers: a step ends after a minute, and messages are grouped by tenant, so that no tenant waits
//! for the whole file of another. The output of a file is bounded ([`Bounds`]). Live feedback does not wait for
//! imports: imported events reach the signal generator through a queue of their own (`bulk.rs`), not through the
//! table's stream.

mod begin;
mod bulk;
mod finish;
mod line;
mod piece;
mod rejects;
mod task;
mod unpack;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use chrono::{DateTime, TimeDelta, Utc};
use hearback_domain::events::import::Bounds;
use hearback_domain::identity::identifier::TenantId;
use hearback_lambda::app::blobs_from_env;
use hearback_lambda::aws::{Aws, Service, error_code};
use hearback_lambda::dead_letters::DeadLetters;
use hearback_lambda::queue::{self, Endless, HOPS, Hops, RetryLimit, one_by_one};
use hearback_lambda::settings::setting;
use hearback_lambda::{BadSetting, FromEnv};
use hearback_storage::imports::message_group;
use hearback_storage::{Blobs, Error};

use crate::intake::Intake;
pub use task::notification;
use task::{Task, Work};

/// The setting that names the URL of the queue of imports.
pub const IMPORTS_URL: &str = "HEARBACK_IMPORTS_URL";
/// The setting that names the URL of the queue for dead letters of the queue of imports.
pub const IMPORTS_DEAD_LETTERS_URL: &str = "HEARBACK_IMPORTS_DEAD_LETTERS_URL";
/// The setting that names the URL of the signal generator's queue for imported events.
pub const SIGNALS_BULK_URL: &str = "HEARBACK_SIGNALS_BULK_URL";
/// The longest time of a step. The rest goes to the end of the queue, because another tenant may wait.
pub const SLICE: TimeDelta = TimeDelta::minutes(1);
/// A file of rejects of this size, in bytes, gets no further files of workers. A function with little memory merges
/// this amount within a minute.
const REJECTS_FILE: usize = 64 * 1024 * 1024;
/// Messages of one call.
const BATCH: usize = 10;

/// Imports files.
#[derive(Debug, Clone)]
pub struct Importer {
    intake: Intake,
    blobs: Blobs,
    queues: Queues,
    dead_letters: DeadLetters,
    /// The hops of the messages that are sent.
    hops: Hops,
    bounds: Bounds,
    rejects_file: usize,
}

/// The queues that an importer sends to.
#[derive(Debug, Clone)]
pub struct Queues {
    /// The client for both.
    pub client: aws_sdk_sqs::Client,
    /// The URL of the importer's own queue.
    pub imports: String,
    /// The URL of the signal generator's queue for imported events.
    pub signals_bulk: String,
}

/// Why a step must be repeated.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Storage(#[from] Error),
    #[error("the message has an unknown format")]
    Unreadable,
    #[error("SendMessageBatch failed: {0}")]
    NotSent(String),
    #[error("GetObject failed: body not read")]
    Body,
    #[error(transparent)]
    Endless(#[from] Endless),
}

impl queue::MessageFailure for Failure {
    fn tries(&self) -> RetryLimit {
        match self {
            Self::Storage(error) => error.tries(),
            Self::Unreadable => RetryLimit::Few,
            Self::NotSent(_) | Self::Body => RetryLimit::Many,
            Self::Endless(endless) => endless.tries(),
        }
    }
}

impl Importer {
    /// An importer for this bucket, with its queues and its dead letters.
    #[must_use]
    pub fn new(intake: Intake, blobs: Blobs, queues: Queues, dead_letters: DeadLetters) -> Self {
        Self {
            intake: intake.without_stream(),
            blobs,
            queues,
            dead_letters,
            hops: Hops::default(),
            bounds: Bounds::default(),
            rejects_file: REJECTS_FILE,
        }
    }

    /// Limits the output of a file.
    #[must_use]
    pub fn with_bounds(self, bounds: Bounds) -> Self {
        Self { bounds, ..self }
    }

    /// Sets the bytes after which another file of rejects begins: 64 MiB by default.
    #[must_use]
    pub fn with_rejects_file(self, rejects_file: usize) -> Self {
        Self {
            rejects_file,
            ..self
        }
    }

    /// Reads the settings and builds the clients.
    pub fn from_env() -> Result<Self, BadSetting> {
        let sqs = aws_sdk_sqs::Client::new(&Aws::from_env(Service::Sqs).config());
        let dead_letters = DeadLetters::new(sqs.clone(), setting(IMPORTS_DEAD_LETTERS_URL)?);
        Ok(Self::new(
            Intake::from_env()?,
            blobs_from_env()?,
            Queues {
                client: sqs,
                imports: setting(IMPORTS_URL)?,
                signals_bulk: setting(SIGNALS_BULK_URL)?,
            },
            dead_letters,
        ))
    }

    /// Processes messages, and returns those that must be delivered again. What is not done by `until` becomes a new
    /// message.
    pub async fn handle(&self, batch: SqsEvent, until: Option<DateTime<Utc>>) -> SqsBatchResponse {
        one_by_one(&self.dead_letters, batch, |message| {
            let mut importer = self.clone();
            async move {
                importer.hops = Hops::after(&message)?;
                importer.process(&message, until).await
            }
        })
        .await
    }

    async fn process(
        &self,
        message: &SqsMessage,
        until: Option<DateTime<Utc>>,
    ) -> Result<(), Failure> {
        let body = message.body.as_deref().unwrap_or_default();
        for task in Task::read(body).ok_or(Failure::Unreadable)? {
            match task {
                Task::Begin(file) => self.begin(&file, until).await?,
                Task::Work(id, work) => {
                    // The import has expired.
                    let Some(row) = self.intake.store.import(&id).await? else {
                        continue;
                    };
                    match work {
                        Work::Unpack(unpacked) => self.unpack(&row, unpacked, until).await?,
                        Work::Piece(piece) => {
                            self.piece(&row.core, &piece, Some(self.slice_end(until)))
                                .await?;
                        }
                        Work::Finish(merged) => {
                            self.finish(&row, merged, Some(self.slice_end(until)))
                                .await?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The end of a step that begins now.
    fn slice_end(&self, until: Option<DateTime<Utc>>) -> DateTime<Utc> {
        let end = self.intake.clock.now() + SLICE;
        until.map_or(end, |until| until.min(end))
    }

    fn is_out_of_time(&self, until: Option<DateTime<Utc>>) -> bool {
        until.is_some_and(|until| self.intake.clock.now() >= until)
    }

    /// Sends tasks of an import, after the others of its tenant.
    async fn send(
        &self,
        tenant: &TenantId,
        tasks: impl IntoIterator<Item = Task>,
    ) -> Result<(), Failure> {
        let hops = self.hops.attribute().map_err(|_| not_sent("no message"))?;
        let bodies: Vec<_> = tasks.into_iter().map(Task::message).collect();
        for chunk in bodies.chunks(BATCH) {
            let entries = chunk.iter().enumerate().map(|(at, body)| {
                SendMessageBatchRequestEntry::builder()
                    .id(at.to_string())
                    .message_body(body)
                    .message_group_id(message_group(tenant))
                    .message_attributes(HOPS, hops.clone())
                    .build()
                    .map_err(|_| not_sent("no message"))
            });
            let entries = entries.collect::<Result<_, _>>()?;
            self.queues.send(&self.queues.imports, entries).await?;
        }
        Ok(())
    }
}

impl Queues {
    /// Sends messages with one call, which fails unless all are sent.
    async fn send(
        &self,
        queue_url: &str,
        entries: Vec<SendMessageBatchRequestEntry>,
    ) -> Result<(), Failure> {
        let call = self.client.send_message_batch().queue_url(queue_url);
        let response = call.set_entries(Some(entries)).send().await;
        let response = response.map_err(|error| not_sent(error_code(&error)))?;
        match response.failed().first() {
            Some(failed) => Err(not_sent(failed.code())),
            None => Ok(()),
        }
    }
}

fn not_sent(reason: &str) -> Failure {
    Failure::NotSent(reason.to_owned())
}
