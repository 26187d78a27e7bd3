//! The evaluation read and the training export, invoked directly: they join feedback of all users with the texts of
//! turns. They write only files to the bucket. Reads for users are in `functions/retrieval`.
//!
//! | start with | for |
//! |---|---|
//! | [`Exporter::handle`] | an invocation |
//! | `trace.rs`, `day.rs` | the evaluation read of a trace and of a day |
//! | `training.rs` | a training run |
//!
//! The evaluation read joins the message signals of all users of a tenant with the question and the answer of the turn.
//! For a trace it returns the rows (`trace.rs`). For a day it writes them to the bucket as JSON Lines, and returns a
//! `resume` token if it runs out of time (`day.rs`). The indexes contain only the positions of signals; the signals are
//! read from the table, so that no response contains a withdrawn one.
//!
//! The training export (`training.rs`) writes feedback on answers in the formats of training libraries.
//!
//! Any principal that IAM allows may invoke the function; it has no HTTP route.

mod day;
mod trace;
mod training;

use std::collections::HashMap;
use std::ops::AddAssign;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt, TryStreamExt};
use hearback_domain::export::evaluation::{EvaluationRequest, EvaluationRow, EvaluationRows};
use hearback_domain::feedback::message_signal::StoredSignal;
use hearback_domain::turns::exchange::PromptAndAnswer;
use hearback_domain::turns::turn::TurnRef;
use hearback_lambda::MissingSetting;
use hearback_lambda::app::{blobs_from_env, store_from_env};
use hearback_lambda::clock::Clock;
use hearback_storage::message_signals::SignalPosition;
use hearback_storage::{Blobs, Error, Store, damage, unless_unreadable};
use hearback_wire::FieldError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

pub use day::ExportedDay;
pub use trace::TracePage;
pub use training::{SkippedFeedback, TrainingFiles, TrainingSet};

/// Turn logs that are read concurrently. A log has up to 5 MB.
const LOGS_AT_ONCE: usize = 8;
/// Rows of one read. Their size is known only after the read.
const ROWS_AT_ONCE: usize = 25;
/// Bytes at which a file is written.
const FILE_SIZE: usize = 8 * 1024 * 1024;

/// Reads and exports feedback.
#[derive(Debug, Clone)]
pub struct Exporter {
    store: Store,
    blobs: Blobs,
    clock: Clock,
}

/// The response to a request.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// The rows of a trace.
    Trace(TracePage),
    /// The files with the rows of a day.
    Day(ExportedDay),
    /// The files with the rows for training.
    Training(TrainingSet),
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The request does not fit its schema.
    #[error("the request does not fit its schema: {}", joined(.0))]
    Invalid(Vec<FieldError>),
    /// The period has more signals than fit into memory.
    #[error(
        "the tenant has more than {} message signals on these days: request fewer days",
        training::MAX_SIGNALS
    )]
    TooMany,
    /// The table or the bucket failed.
    #[error(transparent)]
    Storage(#[from] Error),
    /// A row cannot be written as JSON.
    #[error("a row cannot be written as JSON")]
    Unwritten(#[from] serde_json::Error),
}

fn joined(errors: &[FieldError]) -> String {
    let errors = errors.iter();
    let errors: Vec<_> = errors
        .map(|error| format!("{} {}", error.pointer, error.detail))
        .collect();
    errors.join("; ")
}

/// How many rows a response leaves out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedRows {
    /// Rows that are excluded from training.
    pub excluded: u64,
    /// Rows whose turn no longer exists or cannot be read.
    pub without_turn: u64,
    /// Rows of the table, and logs, that cannot be read. The log names them.
    #[serde(default)]
    pub unreadable: u64,
}

impl AddAssign for SkippedRows {
    fn add_assign(&mut self, other: Self) {
        self.excluded += other.excluded;
        self.without_turn += other.without_turn;
        self.unreadable += other.unreadable;
    }
}

impl Exporter {
    /// An exporter for this table and bucket.
    #[must_use]
    pub fn new(store: Store, blobs: Blobs, clock: Clock) -> Self {
        Self {
            store,
            blobs,
            clock,
        }
    }

    /// Reads the settings and builds the clients.
    pub fn from_env() -> Result<Self, MissingSetting> {
        Ok(Self::new(
            store_from_env()?,
            blobs_from_env()?,
            Clock::system(),
        ))
    }

    /// Answers a request. If it is not done at `until`, the response has the `resume` token for the rest.
    pub async fn handle(
        &self,
        request: &Value,
        until: Option<DateTime<Utc>>,
    ) -> Result<Answer, Failure> {
        let request = EvaluationRequest::parse(request).map_err(Failure::Invalid)?;
        // Boxed, because the compiler cannot compute the layout of so deep a type.
        damage::counting(Box::pin(self.answer(&request, until))).await
    }

    async fn answer(
        &self,
        request: &EvaluationRequest,
        until: Option<DateTime<Utc>>,
    ) -> Result<Answer, Failure> {
        Ok(match &request.rows {
            EvaluationRows::Trace(trace) => Answer::Trace(self.trace(request, trace).await?),
            EvaluationRows::Day(day) => Answer::Day(self.day(request, *day, until).await?),
            EvaluationRows::Training(training) => {
                Answer::Training(self.training(request, training, until).await?)
            }
        })
    }

    /// The rows of the signals at these positions.
    async fn rows(
        &self,
        positions: &[SignalPosition],
    ) -> Result<(Vec<EvaluationRow>, SkippedRows), Error> {
        let signals = self.store.signals_at(positions, self.clock.now()).await?;
        let turns = self.turns(&signals).await?;
        let mut left_out = SkippedRows::default();
        let mut rows = Vec::new();
        for signal in signals {
            match turns
                .get(&signal.core.at)
                .map(|turn| EvaluationRow::of(signal, turn))
            {
                Some(Some(row)) => rows.push(row),
                Some(None) => left_out.excluded += 1,
                None => left_out.without_turn += 1,
            }
        }
        Ok((rows, left_out))
    }

    /// The turns of these signals that still exist.
    async fn turns(
        &self,
        signals: &[StoredSignal],
    ) -> Result<HashMap<TurnRef, PromptAndAnswer>, Error> {
        let mut turns: Vec<TurnRef> = signals
            .iter()
            .map(|signal| signal.core.at.clone())
            .collect();
        turns.sort();
        turns.dedup();
        stream::iter(turns)
            .map(|at| async move {
                let now = self.clock.now();
                let found = self.blobs.turn_with_log(&self.store, &at, now, |_| true);
                let found = unless_unreadable(found.await, &at.within.tenant)?;
                // Only the texts are kept, so that at most a few whole logs are in memory.
                Ok(found.map(|(_, log)| (at, PromptAndAnswer::from(log))))
            })
            .buffer_unordered(LOGS_AT_ONCE)
            .try_filter_map(|found| async move { Ok(found) })
            .try_collect()
            .await
    }
}

/// The `resume` token of a request: opaque, and valid for this request only.
fn encode_resume(request: &EvaluationRequest, position: &impl Serialize) -> String {
    let token = serde_json::to_vec(&(request.fingerprint(), position));
    URL_SAFE_NO_PAD.encode(token.unwrap_or_default())
}

/// The position in the request's `resume` token, if it has one.
fn decode_resume<T: DeserializeOwned>(request: &EvaluationRequest) -> Result<Option<T>, Failure> {
    let Some(resume) = &request.resume else {
        return Ok(None);
    };
    let bytes = URL_SAFE_NO_PAD.decode(resume).ok();
    let token = bytes.and_then(|bytes| serde_json::from_slice::<([u8; 32], T)>(&bytes).ok());
    match token {
        Some((fingerprint, position)) if fingerprint == request.fingerprint() => Ok(Some(position)),
        _ => Err(Failure::Invalid(vec![FieldError {
            pointer: "/resume".to_owned(),
            detail: "must be `resume` of a response to the same request".to_owned(),
        }])),
    }
}

/// The name of a run that begins now: a time, by which runs sort, and a random suffix, which makes it unique.
fn run_name(now: DateTime<Utc>) -> String {
    format!("{}-{}", now.format("%Y%m%dT%H%M%SZ"), random_suffix())
}

fn random_suffix() -> String {
    let (random, _, _, _) = Uuid::new_v4().as_fields();
    format!("{random:08x}")
}

fn file_name(invocation: &str, number: u32) -> String {
    format!("{invocation}-{number:05}.jsonl")
}
