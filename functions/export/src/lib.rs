//! The evaluation read: what was said of messages, over all users of a tenant, joined with the
//! question and the answer of the turn.
//!
//! And the training export (`training.rs`): what users made of answers, as rows that trainers read.
//!
//! It is invoked directly, under IAM; no HTTP route leads here. By trace it answers the rows. By day it
//! writes them as JSON Lines into the bucket, part after part, and hands the rest on when its time is
//! up (`day.rs`). The indexes only say where rows are; what they say is read from the table, so that
//! what was taken back is in no answer.

mod day;
mod trace;
mod training;

use std::collections::HashMap;
use std::ops::AddAssign;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt, TryStreamExt};
use hearback_domain::evaluation::{Exchange, Request, Row, Rows};
use hearback_domain::message_signal::StoredSignal;
use hearback_domain::parse::FieldError;
use hearback_domain::turn::TurnRef;
use hearback_lambda::MissingSetting;
use hearback_lambda::app::{blobs_from_env, store_from_env};
use hearback_lambda::clock::Clock;
use hearback_storage::message_signals::Place;
use hearback_storage::{Blobs, Error, Store};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

pub use day::Exported;
pub use trace::TracePage;
pub use training::{Trained, Unlearned, Written};

/// Turn logs that are read at once. One may have 5 MB.
const LOGS_AT_ONCE: usize = 8;
/// Rows that are read at once, before it is seen how large they are.
const ROWS_AT_ONCE: usize = 25;
/// Bytes at which a file is written.
const FILE: usize = 8 * 1024 * 1024;

/// Reads for evaluation.
#[derive(Debug, Clone)]
pub struct Exporter {
    store: Store,
    blobs: Blobs,
    clock: Clock,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// The rows of a trace.
    Trace(TracePage),
    /// Where the rows of a day are.
    Day(Exported),
    /// Where the rows for a trainer are.
    Training(Trained),
}

/// Why nothing is answered.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The request breaks its schema.
    #[error("the request does not fit its schema: {}", listed(.0))]
    Invalid(Vec<FieldError>),
    /// More was said in a period than is held at once.
    #[error(
        "more than {} signals of the tenant's messages are from these days: ask for fewer",
        training::MOST
    )]
    TooMany,
    /// The table or the bucket failed.
    #[error(transparent)]
    Storage(#[from] Error),
    /// A row has no form as JSON.
    #[error("a row cannot be written as JSON")]
    Unwritten(#[from] serde_json::Error),
}

fn listed(errors: &[FieldError]) -> String {
    let errors = errors.iter();
    let listed: Vec<_> = errors
        .map(|error| format!("{} {}", error.pointer, error.detail))
        .collect();
    listed.join("; ")
}

/// Rows that are not in an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// No model may learn from them.
    pub excluded: u64,
    /// Their turn is gone.
    pub without_turn: u64,
}

impl AddAssign for LeftOut {
    fn add_assign(&mut self, other: Self) {
        self.excluded += other.excluded;
        self.without_turn += other.without_turn;
    }
}

impl Exporter {
    /// Reads from this table and bucket.
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

    /// Answers a request. What is not done by `until` is handed on: the answer then says with which
    /// `resume` to ask for the rest.
    pub async fn handle(
        &self,
        request: &Value,
        until: Option<DateTime<Utc>>,
    ) -> Result<Answer, Failure> {
        let request = Request::parse(request).map_err(Failure::Invalid)?;
        Ok(match &request.rows {
            Rows::Trace(trace) => Answer::Trace(self.trace(&request, trace).await?),
            Rows::Day(day) => Answer::Day(self.day(&request, *day, until).await?),
            Rows::Training(asked) => Answer::Training(self.training(&request, asked, until).await?),
        })
    }

    /// The rows at these places, each with the turn that it is about.
    async fn rows(&self, places: &[Place]) -> Result<(Vec<Row>, LeftOut), Error> {
        let said = self.store.signals_at(places, self.clock.now()).await?;
        let turns = self.turns(&said).await?;
        let mut left_out = LeftOut::default();
        let mut rows = Vec::new();
        for said in said {
            match turns.get(&said.core.at).map(|turn| Row::of(said, turn)) {
                Some(Some(row)) => rows.push(row),
                Some(None) => left_out.excluded += 1,
                None => left_out.without_turn += 1,
            }
        }
        Ok((rows, left_out))
    }

    /// The turns of these signals, as far as they are there.
    async fn turns(&self, said: &[StoredSignal]) -> Result<HashMap<TurnRef, Exchange>, Error> {
        let mut turns: Vec<TurnRef> = said.iter().map(|said| said.core.at.clone()).collect();
        turns.sort();
        turns.dedup();
        stream::iter(turns)
            .map(|at| async move {
                let place = (&at, self.clock.now());
                let found = self.blobs.turn_with_log(&self.store, place, |_| true);
                let found = found.await?;
                // The texts at once, so that few logs are held whole.
                Ok(found.map(|(_, log)| (at, Exchange::from(log))))
            })
            .buffer_unordered(LOGS_AT_ONCE)
            .try_filter_map(|found| async move { Ok(found) })
            .try_collect()
            .await
    }
}

/// Where to go on with a request, as a text that only this function reads.
fn sealed(request: &Request, place: &impl Serialize) -> String {
    let sealed = serde_json::to_vec(&(request.fingerprint(), place));
    URL_SAFE_NO_PAD.encode(sealed.unwrap_or_default())
}

/// Where a request goes on, if it does.
fn opened<T: DeserializeOwned>(request: &Request) -> Result<Option<T>, Failure> {
    let Some(resume) = &request.resume else {
        return Ok(None);
    };
    let bytes = URL_SAFE_NO_PAD.decode(resume).ok();
    let opened = bytes.and_then(|bytes| serde_json::from_slice::<([u8; 32], T)>(&bytes).ok());
    match opened {
        Some((of, place)) if of == request.fingerprint() => Ok(Some(place)),
        _ => Err(Failure::Invalid(vec![FieldError {
            pointer: "/resume".to_owned(),
            detail: "must be what an answer to this request said".to_owned(),
        }])),
    }
}

/// The name of a run that begins now: by time, so that runs sort; with a random end, so that no two are one.
fn run_name(now: DateTime<Utc>) -> String {
    format!("{}-{}", now.format("%Y%m%dT%H%M%SZ"), drawn())
}

/// A name that nobody else has.
fn drawn() -> String {
    let (drawn, _, _, _) = Uuid::new_v4().as_fields();
    format!("{drawn:08x}")
}

fn file_name(invocation: &str, number: u32) -> String {
    format!("{invocation}-{number:05}.jsonl")
}
