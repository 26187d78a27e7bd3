//! The fan-out: wakes the connections that a published message concerns.

use std::collections::{BTreeMap, BTreeSet};

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use futures::stream::{self, StreamExt};
use hearback_domain::identity::identifier::{TenantId, UserId, UserRef};
use hearback_lambda::MissingSetting;
use hearback_lambda::app::store_from_env;
use hearback_lambda::clock::Clock;
use hearback_lambda::dead_letters::DeadLetters;
use hearback_lambda::queue::{Reason, report};
use hearback_lambda::settings::setting;
use serde::Deserialize;

use crate::delivery::{Delivery, Failure};
use crate::sockets::Sockets;
use crate::tasks::{ConnectionTask, Task, Tasks};

/// The setting that names the URL of the queue for dead letters of the fan-out's queue.
pub const FANOUT_DEAD_LETTERS_URL: &str = "HEARBACK_FANOUT_DEAD_LETTERS_URL";
/// Connections that receive events at the same time. One that does not read must not delay the others.
const AT_ONCE: usize = 32;

/// Processes the queue of the fan-out.
#[derive(Debug, Clone)]
pub struct Fanout {
    delivery: Delivery,
    dead_letters: DeadLetters,
}

/// A message of the queue.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Message {
    /// A connection sent it to itself.
    Task(ConnectionTask),
    /// It was published. Only its user matters here.
    #[serde(rename_all = "camelCase")]
    Published { tenant: TenantId, user_id: UserId },
}

/// Whose feed has something new.
type Owner = (TenantId, UserId);

/// Why a connection receives something.
#[derive(Debug, Default)]
struct Causes {
    /// The messages, by their index in the batch.
    messages: BTreeSet<usize>,
    /// The listener rows by which it was found, if something was published.
    rows: Vec<(String, String)>,
}

impl Fanout {
    /// A fan-out with its dead letters.
    #[must_use]
    pub fn new(delivery: Delivery, dead_letters: DeadLetters) -> Self {
        Self {
            delivery,
            dead_letters,
        }
    }

    /// Reads the settings and builds the clients.
    pub fn from_env() -> Result<Self, MissingSetting> {
        let tasks = Tasks::from_env()?;
        let dead_letters = DeadLetters::new(tasks.client(), setting(FANOUT_DEAD_LETTERS_URL)?);
        let delivery = Delivery {
            store: store_from_env()?,
            clock: Clock::system(),
            sockets: Sockets::from_env()?,
            tasks,
        };
        Ok(Self::new(delivery, dead_letters))
    }

    /// Processes messages, and returns those that must be delivered again: then connections receive only what they
    /// have not received yet.
    // Calls are boxed: the type of an SDK call is so deep that the compiler cannot compute the layout of its caller.
    pub async fn handle(&self, batch: SqsEvent) -> SqsBatchResponse {
        let mut failures: BTreeMap<usize, Reason> = BTreeMap::new();
        let mut owners: BTreeMap<Owner, BTreeSet<usize>> = BTreeMap::new();
        let mut deliveries: BTreeMap<String, Causes> = BTreeMap::new();
        for (index, message) in batch.records.iter().enumerate() {
            let body = message.body.as_deref().unwrap_or_default();
            match serde_json::from_str(body) {
                Ok(Message::Published { tenant, user_id }) => {
                    owners.entry((tenant, user_id)).or_default().insert(index);
                }
                Ok(Message::Task(ConnectionTask { connection, task })) => match task {
                    Task::Deliver => {
                        let causes = deliveries.entry(connection).or_default();
                        causes.messages.insert(index);
                    }
                    Task::End => {
                        if let Err(failure) = Box::pin(self.end_in_time(&connection)).await {
                            failures.insert(index, failure.into());
                        }
                    }
                },
                Err(_) => _ = failures.insert(index, Failure::Unreadable.into()),
            }
        }
        for (owner, messages) in owners {
            let (tenant, user) = &owner;
            let found = self.delivery.store.listeners(UserRef::new(tenant, user));
            match Box::pin(found).await {
                Ok(found) => {
                    for (connection, row) in found {
                        let causes = deliveries.entry(connection).or_default();
                        causes.messages.extend(&messages);
                        causes.rows.push(row);
                    }
                }
                Err(error) => {
                    let reason = Reason::from(error);
                    failures.extend(messages.into_iter().map(|index| (index, reason.clone())));
                }
            }
        }
        let delivered = stream::iter(deliveries)
            .map(async |(connection, Causes { messages, rows })| {
                (messages, Box::pin(self.deliver(&connection, rows)).await)
            })
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<_>>();
        for (messages, delivered) in delivered.await {
            if let Err(failure) = delivered {
                let reason = Reason::from(failure);
                failures.extend(messages.into_iter().map(|index| (index, reason.clone())));
            }
        }
        let failed = batch.records.into_iter().enumerate();
        let failed = failed.filter_map(|(index, message): (usize, SqsMessage)| {
            Some((message, failures.remove(&index)?))
        });
        report(&self.dead_letters, failed.collect()).await
    }

    async fn deliver(&self, id: &str, rows: Vec<(String, String)>) -> Result<(), Failure> {
        if !self.delivery.deliver(id, !rows.is_empty()).await? {
            // The connection was closed while they were written, or its row could not be read.
            for row in rows {
                self.delivery.store.remove_listener(row).await?;
            }
        }
        Ok(())
    }

    /// Closes a connection whose time has come; otherwise asks again.
    async fn end_in_time(&self, id: &str) -> Result<(), Failure> {
        if let Some(connection) = self.delivery.open(id).await? {
            let (end, _) = connection.listener.end();
            let left = end - self.delivery.clock.now();
            self.delivery.tasks.send(id, &[(Task::End, left)]).await?;
        }
        Ok(())
    }
}
