//! Erases a person's data: the request ([`routes`]), and the worker ([`Eraser`]).
//!
//! | step | by | what |
//! |---|---|---|
//! | open | the request | records the erasure, under the user's id and their pseudonym; from now on the user's events are removed instead of processed, and other writes of the user are rejected |
//! | settle | | operations that began before end |
//! | pass | [`Eraser`] | removes what is found under either id (`pass.rs`), in files first (`files.rs`) |
//! | repeat | [`Eraser`] | makes another pass, a while later, until one finds nothing |
//! | close | [`Eraser`] | records when the erasure was done: late events that were received before are still removed |
//!
//! Each step may be repeated: a removed row is not found again, and is counted in the transaction that removes it.
//! Lines of files are counted after they are removed. Which rows and files are a person's is in
//! `shared/storage/src/erasures.rs`; the rejection of new data of the person is in the functions that write.

mod files;
mod pass;
mod queue;
mod request;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use chrono::{DateTime, TimeDelta, Utc};
use hearback_domain::identity::identifier::UserRef;
use hearback_lambda::MissingSetting;
use hearback_lambda::app::{blobs_from_env, store_from_env};
use hearback_lambda::aws::{Aws, Service};
use hearback_lambda::clock::Clock;
use hearback_lambda::dead_letters::DeadLetters;
use hearback_lambda::queue::{Endless, RetryLimit, one_by_one};
use hearback_lambda::settings::setting;
use hearback_storage::preferences::Freshness;
use hearback_storage::{Blobs, Error, Store};

pub use files::{ErasedFiles, erase_files};
use pass::Pass;
pub use queue::{ERASURES_DEAD_LETTERS_URL, ERASURES_URL, Erasures};
use queue::{NotSent, Task};
pub use request::{Requests, routes};

/// How long an erasure waits for operations that began before it: the longest time of a function. The next pass, as
/// long after, finds what an index did not show yet.
pub const SETTLE: TimeDelta = TimeDelta::minutes(15);

/// Processes the queue of erasures.
#[derive(Debug, Clone)]
pub struct Eraser {
    store: Store,
    blobs: Blobs,
    clock: Clock,
    erasures: Erasures,
    dead_letters: DeadLetters,
}

/// Why a step must be repeated.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Storage(#[from] Error),
    #[error(transparent)]
    NotSent(#[from] NotSent),
    #[error("the erasure was done meanwhile")]
    Done,
    #[error("the message has an unknown format")]
    Unreadable,
    #[error("the row of the erasure cannot be read: request the erasure again")]
    Damaged,
    #[error(transparent)]
    Endless(#[from] Endless),
}

impl hearback_lambda::queue::MessageFailure for Failure {
    fn tries(&self) -> RetryLimit {
        match self {
            Self::Storage(error) => error.tries(),
            Self::NotSent(_) | Self::Done => RetryLimit::Many,
            Self::Unreadable | Self::Damaged => RetryLimit::Few,
            Self::Endless(endless) => endless.tries(),
        }
    }
}

impl Eraser {
    /// An eraser for this table and bucket, with its queue and its dead letters.
    #[must_use]
    pub fn new(
        store: Store,
        blobs: Blobs,
        clock: Clock,
        erasures: Erasures,
        dead_letters: DeadLetters,
    ) -> Self {
        Self {
            store,
            blobs,
            clock,
            erasures,
            dead_letters,
        }
    }

    /// Reads the settings and builds the clients.
    pub fn from_env() -> Result<Self, MissingSetting> {
        let (store, blobs) = (store_from_env()?, blobs_from_env()?);
        let sqs = aws_sdk_sqs::Client::new(&Aws::from_env(Service::Sqs).config());
        let dead_letters = DeadLetters::new(sqs, setting(ERASURES_DEAD_LETTERS_URL)?);
        let erasures = Erasures::from_env()?;
        Ok(Self::new(
            store,
            blobs,
            Clock::system(),
            erasures,
            dead_letters,
        ))
    }

    /// Processes messages, and returns those that must be delivered again. What is not done by `until` becomes a new
    /// message.
    pub async fn handle(&self, batch: SqsEvent, until: Option<DateTime<Utc>>) -> SqsBatchResponse {
        one_by_one(&self.dead_letters, batch, |message| {
            let mut eraser = self.clone();
            async move {
                eraser.erasures = eraser.erasures.after(&message)?;
                eraser.process(&message, until).await
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
        let task = Task::read(body).ok_or(Failure::Unreadable)?;
        let owner = UserRef::new(&task.tenant, &task.user);
        let erasure = self.store.erasure(owner, Freshness::Latest).await?;
        // Nobody else would notice that the erasure does not go on: its dead letter raises an alarm.
        if erasure
            .as_ref()
            .is_some_and(|erasure| erasure.is_open() && erasure.is_unreadable())
        {
            return Err(Failure::Damaged);
        }
        // Of two concurrent requests only one opened an erasure.
        let open = erasure.filter(|erasure| erasure.id == task.id && erasure.is_open());
        let Some(erasure) = open else {
            return Ok(self.blobs.delete_traces(&task.tenant, task.id).await?);
        };
        let (begin, now) = (
            erasure.requested_at + self.erasures.settle(),
            self.clock.now(),
        );
        let remaining = begin - now;
        // A request in the future means that the clock was set back. Then the queue's delay was enough.
        if remaining > TimeDelta::zero() && now >= erasure.requested_at {
            return Ok(self.erasures.send(&task, remaining).await?);
        }
        Pass::new(self, erasure, task, until).run().await
    }
}
