//! Erasing a person: the request ([`routes`]), and the work that follows from it ([`Eraser`]).
//!
//! | step | who | what |
//! |---|---|---|
//! | open | the request | notes the erasure, under the user's name and their pseudonym; from now on the user's events are removed instead of worked off, and what they write elsewhere is refused |
//! | settle | nobody | everything that began before comes to its end |
//! | pass | [`Eraser`] | removes what is found under either name (`pass.rs`), in files first (`files.rs`) |
//! | again | [`Eraser`] | another pass, a while later, until one finds nothing |
//! | close | [`Eraser`] | notes when it was done: what was received until then goes on to be removed |
//!
//! Each step may be repeated: a row that is removed is not found again, and counts in the transaction that
//! removes it. Lines of files count after they were removed.

mod files;
mod pass;
mod queue;
mod request;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use chrono::{DateTime, TimeDelta, Utc};
use hearback_lambda::MissingSetting;
use hearback_lambda::app::{blobs_from_env, setting, store_from_env};
use hearback_lambda::aws::{Aws, Service};
use hearback_lambda::clock::Clock;
use hearback_lambda::dead_letters::DeadLetters;
use hearback_lambda::queue::{Endless, Tries, one_by_one};
use hearback_storage::preferences::Freshness;
use hearback_storage::{Blobs, Error, Store};

pub use files::{Erased, erase_files};
use pass::Pass;
pub use queue::{ERASURES_DEAD_LETTERS_URL, ERASURES_URL, Erasures};
use queue::{NotSent, Task};
pub use request::{Requests, routes};

/// How long an erasure waits for what began before it: as long as any function lives. What a pass missed,
/// because an index did not show it yet, the next one finds as long after.
pub const SETTLE: TimeDelta = TimeDelta::minutes(15);

/// Works off the queue of erasures.
#[derive(Debug, Clone)]
pub struct Eraser {
    store: Store,
    blobs: Blobs,
    clock: Clock,
    erasures: Erasures,
    dead_letters: DeadLetters,
}

/// Why a step has to be made again.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Storage(#[from] Error),
    #[error(transparent)]
    NotSent(#[from] NotSent),
    #[error("the erasure was done meanwhile")]
    Done,
    #[error("the message is none of ours")]
    Unreadable,
    #[error(transparent)]
    Endless(#[from] Endless),
}

impl hearback_lambda::queue::Failure for Failure {
    fn tries(&self) -> Tries {
        match self {
            Self::Storage(error) => error.tries(),
            Self::NotSent(_) | Self::Done => Tries::Many,
            Self::Unreadable => Tries::Few,
            Self::Endless(endless) => endless.tries(),
        }
    }
}

impl Eraser {
    /// Erases in this table and bucket, with its messages in this queue, and those it gives up in that one.
    #[must_use]
    pub fn new(
        store: Store,
        blobs: Blobs,
        clock: Clock,
        (erasures, dead_letters): (Erasures, DeadLetters),
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
        let queues = (Erasures::from_env()?, dead_letters);
        Ok(Self::new(store, blobs, Clock::system(), queues))
    }

    /// Works off messages, and names those that must be delivered again. What is not done by `until` is
    /// handed on.
    pub async fn handle(&self, batch: SqsEvent, until: Option<DateTime<Utc>>) -> SqsBatchResponse {
        one_by_one(&self.dead_letters, batch, |message| {
            let mut eraser = self.clone();
            async move {
                eraser.erasures = eraser.erasures.behind(&message)?;
                eraser.work_off(&message, until).await
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
        let task = Task::read(body).ok_or(Failure::Unreadable)?;
        let owner = (&task.tenant, &task.user);
        let erasure = self.store.erasure(owner, Freshness::Latest).await?;
        // Of two that were asked for at once one is there.
        let open = erasure.filter(|erasure| erasure.id == task.id && erasure.is_open());
        let Some(erasure) = open else {
            return Ok(self.blobs.delete_traces(&task.tenant, task.id).await?);
        };
        let begin = erasure.requested_at + self.erasures.settle();
        let early = begin - self.clock.now();
        if early > TimeDelta::zero() {
            return Ok(self.erasures.send(&task, early).await?);
        }
        Pass::new(self, erasure, task, until).run().await
    }
}
