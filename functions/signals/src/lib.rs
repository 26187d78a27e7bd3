//! The signal generator: processes feedback into learning signals and preferences, exactly once, however often a
//! message is delivered and wherever the function crashes.
//!
//! A batch is processed in three steps, each of which may be repeated (`work.rs`):
//!
//! 1. claim the dedupe key of each event;
//! 2. append one preference version with everything that is learned from the user's events;
//! 3. count an event for the turn that it names (`counted.rs`), and store the outcome of the event, which is published
//!    from the table's stream ([`publish`]).
//!
//! A reaction to a turn, or a signal on its message, first becomes an event in the ledger, which then arrives here
//! (`reactions.rs`, `message_signals.rs`). An event that its user withdraws no longer counts for its turn
//! (`counted.rs`).
//!
//! It accepts no requests: `functions/submit` and `functions/batch` do. The rules are in `shared/domain`.
//!
//! Messages are isolated (`isolation.rs`): one that fails or panics does not affect the others. After its last receive
//! it goes to the DLQ with its reason ([`DeadLetters`]).

mod counted;
mod failure;
mod isolation;
mod message_signals;
pub mod publish;
mod reactions;
mod work;

use std::collections::BTreeMap;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use chrono::{DateTime, Utc};
use hearback_domain::events::event::EventCore;
use hearback_domain::export::erasure::Erasure;
use hearback_domain::feedback::message_signal::SignalCore;
use hearback_domain::feedback::reaction::ReactionCore;
use hearback_lambda::MissingSetting;
use hearback_lambda::app::{blobs_from_env, store_from_env};
use hearback_lambda::aws::{Aws, Service};
use hearback_lambda::clock::Clock;
use hearback_lambda::dead_letters::DeadLetters;
use hearback_lambda::queue::{Reason, report};
use hearback_lambda::settings::{DEAD_LETTERS_URL, setting};
use hearback_storage::stream::{self, Submitted};
use hearback_storage::{Blobs, Store};

use counted::uncount_event;
use failure::Failure;

/// Processes messages of the signals queue.
#[derive(Debug, Clone)]
pub struct Generator {
    store: Store,
    blobs: Blobs,
    clock: Clock,
    dead_letters: DeadLetters,
}

/// A message with its task.
#[derive(Debug, Clone)]
struct Delivery {
    message: SqsMessage,
    task: Task,
}

/// The task of a message.
#[derive(Debug, Clone)]
enum Task {
    Event(Box<EventCore>),
    Reaction(Box<ReactionCore>),
    Signal(Box<SignalCore>),
    Withdrawal(Box<EventCore>),
}

impl Generator {
    /// A generator for this table and bucket, with its dead letters.
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

    /// Processes a batch, and returns the messages that must be delivered again.
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
                Ok(Submitted::Withdrawal(event)) => by_user
                    .entry((event.tenant.clone(), event.user_id.clone()))
                    .or_default()
                    .push(Delivery {
                        message,
                        task: Task::Withdrawal(event),
                    }),
                Err(error) => {
                    let body = message.body.as_deref().unwrap_or_default();
                    let attributed = self.store.attribute_unreadable_event(body).await;
                    failed.push((message, Reason::from(attributed.err().unwrap_or(error))));
                }
            }
        }
        let groups = by_user.into_values().chain(by_turn.into_values()).collect();
        let generator = self.clone();
        let results = isolation::each_group(groups, move |group: Vec<Delivery>| {
            let generator = generator.clone();
            async move { generator.process(group).await }
        })
        .await;
        failed.extend(
            results
                .into_iter()
                .map(|(delivery, reason)| (delivery.message, reason)),
        );
        report(&self.dead_letters, failed).await
    }

    /// Processes events of one user, or reactions and signals on one turn. These are processed one after the other,
    /// because reactions change the same turn log.
    async fn process(&self, group: Vec<Delivery>) -> Result<(), Failure> {
        let mut events = Vec::new();
        for delivery in group {
            match delivery.task {
                Task::Event(event) => events.push(*event),
                Task::Reaction(reaction) => {
                    let owner = reaction.owner();
                    let erasure = work::erasure_of(&self.store, owner).await?;
                    if !is_erased(erasure.as_ref(), reaction.received_at) {
                        reactions::process(&self.store, &self.blobs, self.clock, &reaction).await?;
                    }
                }
                Task::Signal(signal) => {
                    let owner = signal.owner();
                    let erasure = work::erasure_of(&self.store, owner).await?;
                    if !is_erased(erasure.as_ref(), signal.ts) {
                        let erased = erasure.map(|erasure| erasure.id);
                        message_signals::process(&self.store, self.clock, &signal, erased).await?;
                    }
                }
                Task::Withdrawal(event) => {
                    let owner = event.owner();
                    let erasure = work::erasure_of(&self.store, owner).await?;
                    if !is_erased(erasure.as_ref(), event.received_at) {
                        let erased = erasure.map(|erasure| erasure.id);
                        uncount_event(&self.store, self.clock, &event, erased).await?;
                    }
                }
            }
        }
        work::process(&self.store, self.clock, events).await
    }
}

/// Whether feedback that was received at `at` is erased: then it has no effect.
fn is_erased(erasure: Option<&Erasure>, at: DateTime<Utc>) -> bool {
    erasure.is_some_and(|erasure| erasure.covers(at))
}
