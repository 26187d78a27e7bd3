//! The signal generator: turns stored feedback into learning signals and preferences, exactly
//! once, however often a message is delivered and wherever the function dies.
//!
//! A batch is worked off in three steps, each of which may be repeated (`work.rs`):
//!
//! 1. claim the dedupe key of each event;
//! 2. append one preference version for all that the user's events teach;
//! 3. count each event that names a turn for it (`counted.rs`), and store what came of the event, which the
//!    table's stream then publishes ([`publish`]).
//!
//! A reaction on a turn, or a signal on its message, enters the ledger as an event first, which
//! then comes here by the same way (`reactions.rs`, `message_signals.rs`).
//!
//! Messages are kept apart (`isolation.rs`): one that cannot be worked off, or panics, harms no
//! neighbour, and after its last receive it goes to the dead-letter queue with its reason
//! ([`DeadLetters`]).

mod counted;
mod isolation;
mod message_signals;
pub mod publish;
mod reactions;
mod work;

use std::collections::BTreeMap;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use chrono::{DateTime, Utc};
use hearback_domain::erasure::Erasure;
use hearback_domain::event::EventCore;
use hearback_domain::message_signal::SignalCore;
use hearback_domain::reaction::ReactionCore;
use hearback_lambda::MissingSetting;
use hearback_lambda::app::{DEAD_LETTERS_URL, blobs_from_env, setting, store_from_env};
use hearback_lambda::aws::{Aws, Service};
use hearback_lambda::clock::Clock;
use hearback_lambda::dead_letters::DeadLetters;
use hearback_lambda::queue::{Reason, report};
use hearback_storage::stream::{self, Submitted};
use hearback_storage::{Blobs, Store};

use work::Failure;

/// Works off messages of the signals queue.
#[derive(Debug, Clone)]
pub struct Generator {
    store: Store,
    blobs: Blobs,
    clock: Clock,
    dead_letters: DeadLetters,
}

/// A message and what it asks for.
#[derive(Debug, Clone)]
struct Delivery {
    message: SqsMessage,
    task: Task,
}

/// What is to be worked off.
#[derive(Debug, Clone)]
enum Task {
    Event(Box<EventCore>),
    Reaction(Box<ReactionCore>),
    Signal(Box<SignalCore>),
}

impl Generator {
    /// A generator on this table and bucket, with this queue for dead letters.
    #[must_use]
    pub fn new(store: Store, blobs: Blobs, dead_letters: DeadLetters, clock: Clock) -> Self {
        Self {
            store,
            blobs,
            clock,
            dead_letters,
        }
    }

    /// Reads the settings and builds the clients.
    pub fn from_env() -> Result<Self, MissingSetting> {
        let sqs = aws_sdk_sqs::Client::new(&Aws::from_env(Service::Sqs).config());
        let dead_letters = DeadLetters::new(sqs, setting(DEAD_LETTERS_URL)?);
        Ok(Self::new(
            store_from_env()?,
            blobs_from_env()?,
            dead_letters,
            Clock::system(),
        ))
    }

    /// Works off a batch, and names the messages that must be delivered again.
    pub async fn handle(&self, batch: SqsEvent) -> SqsBatchResponse {
        let mut failed = Vec::new();
        let mut by_user: BTreeMap<_, Vec<Delivery>> = BTreeMap::new();
        let mut by_turn: BTreeMap<_, Vec<Delivery>> = BTreeMap::new();
        for message in batch.records {
            match stream::submitted(message.body.as_deref().unwrap_or_default()) {
                Ok(Submitted::Event(event)) => by_user
                    .entry((event.tenant.clone(), event.user_id.clone()))
                    .or_default()
                    .push(Delivery {
                        message,
                        task: Task::Event(event),
                    }),
                Ok(Submitted::Reaction(reaction)) => by_turn
                    .entry(reaction.at.clone())
                    .or_default()
                    .push(Delivery {
                        message,
                        task: Task::Reaction(reaction),
                    }),
                Ok(Submitted::Signal(signal)) => by_turn
                    .entry(signal.at.clone())
                    .or_default()
                    .push(Delivery {
                        message,
                        task: Task::Signal(signal),
                    }),
                Err(error) => failed.push((message, Reason::from(error))),
            }
        }
        let groups = by_user.into_values().chain(by_turn.into_values()).collect();
        let generator = self.clone();
        let results = isolation::each_group(groups, move |group: Vec<Delivery>| {
            let generator = generator.clone();
            async move { generator.work_off(group).await }
        })
        .await;
        failed.extend(
            results
                .into_iter()
                .map(|(delivery, reason)| (delivery.message, reason)),
        );
        report(&self.dead_letters, failed).await
    }

    /// Works off events of one user, or what was said of one turn, one after the other: reactions
    /// write into the same log.
    async fn work_off(&self, group: Vec<Delivery>) -> Result<(), Failure> {
        let mut events = Vec::new();
        for delivery in group {
            match delivery.task {
                Task::Event(event) => events.push(*event),
                Task::Reaction(said) => {
                    let owner = (&said.at.within.tenant, &said.user_id);
                    let erasure = work::erasure_of(&self.store, owner).await?;
                    if !is_erased(erasure.as_ref(), said.received_at) {
                        reactions::work_off(&self.store, &self.blobs, self.clock, &said).await?;
                    }
                }
                Task::Signal(said) => {
                    let owner = (&said.at.within.tenant, &said.user_id);
                    let erasure = work::erasure_of(&self.store, owner).await?;
                    if !is_erased(erasure.as_ref(), said.ts) {
                        let said = (&*said, erasure.map(|erasure| erasure.id));
                        message_signals::work_off(&self.store, self.clock, said).await?;
                    }
                }
            }
        }
        work::work_off(&self.store, self.clock, events).await
    }
}

/// Whether what was received at `at` of a user is to be erased: then nothing may come of it.
fn is_erased(erasure: Option<&Erasure>, at: DateTime<Utc>) -> bool {
    erasure.is_some_and(|erasure| erasure.covers(at))
}
