//! Files of events in the bucket: divided into pieces, which workers take from a queue.
//!
//! | message | does | leaves |
//! |---|---|---|
//! | the bucket's, that a file came | enters the import, divides a plain file (`begin.rs`) | a message for each piece, or one to unpack |
//! | to unpack | unpacks into files of whole lines (`unpack.rs`) | a message for each piece |
//! | a piece | takes its events into the table (`piece.rs`) | its row |
//! | the last piece, and what is left of the end | merges rejects (`rejects.rs`), reports, deletes (`finish.rs`) | the report |
//!
//! Whatever runs out of time sends a message for the rest. Each step may be repeated: an event's attempt
//! is named by where its line begins, a piece's row is written over the version that was read, and the
//! pieces of a packed file are the same each time.

mod begin;
mod finish;
mod piece;
mod rejects;
mod task;
mod unpack;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use chrono::{DateTime, Utc};
use hearback_lambda::app::{blobs_from_env, setting};
use hearback_lambda::aws::{Aws, Service, error_code};
use hearback_lambda::dead_letters::DeadLetters;
use hearback_lambda::queue::{self, Endless, HOPS, Hops, Tries, one_by_one};
use hearback_lambda::{BadSetting, FromEnv};
use hearback_storage::{Blobs, Error};

use crate::intake::Intake;
pub use task::notification;
use task::{Task, Work};

/// The setting that names the URL of the queue of imports.
pub const IMPORTS_URL: &str = "HEARBACK_IMPORTS_URL";
/// The setting that names the URL of the queue for what the queue of imports could not work off.
pub const IMPORTS_DEAD_LETTERS_URL: &str = "HEARBACK_IMPORTS_DEAD_LETTERS_URL";
/// Bytes from which on a file of rejects takes no further file of a worker: a small function merges
/// them within a minute.
const REJECTS_FILE: usize = 64 * 1024 * 1024;
/// Messages that one call sends.
const MESSAGES: usize = 10;

/// Imports files.
#[derive(Debug, Clone)]
pub struct Importer {
    intake: Intake,
    blobs: Blobs,
    queue: aws_sdk_sqs::Client,
    queue_url: String,
    dead_letters: DeadLetters,
    /// Of what is sent.
    hops: Hops,
    rejects_file: usize,
}

/// Why a step has to be made again.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Storage(#[from] Error),
    #[error("the message is none of ours")]
    Unreadable,
    #[error("SendMessageBatch failed: {0}")]
    NotSent(String),
    #[error("GetObject failed: body not read")]
    Body,
    #[error(transparent)]
    Endless(#[from] Endless),
}

impl queue::Failure for Failure {
    fn tries(&self) -> Tries {
        match self {
            Self::Storage(error) => error.tries(),
            Self::Unreadable => Tries::Few,
            Self::NotSent(_) | Self::Body => Tries::Many,
            Self::Endless(endless) => endless.tries(),
        }
    }
}

impl Importer {
    /// Imports files of this bucket, with its messages in this queue, and those it gives up in that one.
    #[must_use]
    pub fn new(
        intake: Intake,
        blobs: Blobs,
        (queue, queue_url): (aws_sdk_sqs::Client, impl Into<String>),
        dead_letters: DeadLetters,
    ) -> Self {
        Self {
            intake,
            blobs,
            queue,
            queue_url: queue_url.into(),
            dead_letters,
            hops: Hops::default(),
            rejects_file: REJECTS_FILE,
        }
    }

    /// Begins another file of rejects when one has so many bytes: 64 MiB, unless told otherwise.
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
            (sqs, setting(IMPORTS_URL)?),
            dead_letters,
        ))
    }

    /// Works off messages, and names those that must be delivered again. What is not done by `until` is
    /// handed on.
    pub async fn handle(&self, batch: SqsEvent, until: Option<DateTime<Utc>>) -> SqsBatchResponse {
        one_by_one(&self.dead_letters, batch, |message| {
            let mut importer = self.clone();
            async move {
                importer.hops = Hops::behind(&message)?;
                importer.work_off(&message, until).await
            }
        })
        .await
    }

    async fn work_off(
        &self,
        message: &SqsMessage,
        until: Option<DateTime<Utc>>,
    ) -> Result<(), Failure> {
        let body = message.body.as_deref().unwrap_or_default();
        for task in Task::read(body).ok_or(Failure::Unreadable)? {
            match task {
                Task::Begin(file) => self.begin(&file, until).await?,
                Task::Work(id, work) => {
                    // Of an import that expired nothing is left to do.
                    let Some(row) = self.intake.store.import(&id).await? else {
                        continue;
                    };
                    match work {
                        Work::Unpack(unpacked) => self.unpack(&row, unpacked, until).await?,
                        Work::Piece(piece) => self.piece(&row.core, &piece, until).await?,
                        Work::Finish(merged) => self.finish(&row, merged, until).await?,
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether it is time to hand on.
    fn is_over(&self, until: Option<DateTime<Utc>>) -> bool {
        until.is_some_and(|until| self.intake.clock.now() >= until)
    }

    async fn send(&self, tasks: impl IntoIterator<Item = Task>) -> Result<(), Failure> {
        let not_sent = |reason: &str| Failure::NotSent(reason.to_owned());
        let hops = self.hops.attribute().map_err(|_| not_sent("no message"))?;
        let bodies: Vec<_> = tasks.into_iter().map(Task::message).collect();
        for some in bodies.chunks(MESSAGES) {
            let entries = some.iter().enumerate().map(|(at, body)| {
                SendMessageBatchRequestEntry::builder()
                    .id(at.to_string())
                    .message_body(body)
                    .message_attributes(HOPS, hops.clone())
                    .build()
                    .map_err(|_| not_sent("no message"))
            });
            let sent = self
                .queue
                .send_message_batch()
                .queue_url(&self.queue_url)
                .set_entries(Some(entries.collect::<Result<_, _>>()?))
                .send()
                .await
                .map_err(|error| not_sent(error_code(&error)))?;
            if let Some(failed) = sent.failed().first() {
                return Err(not_sent(failed.code()));
            }
        }
        Ok(())
    }
}
