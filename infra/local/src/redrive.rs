//! `hearback redrive`: moves dead letters back to their source queues.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::{Context, Result};
use aws_sdk_sqs::types::Message;
use clap::ValueEnum;
use hearback_domain::learning::publication::Subject;
pub use hearback_operations::DeadLetterQueue;
use hearback_operations::Queues;
use hearback_storage::{Blobs, Store};
use serde_json::Value;

use crate::clients::Clients;
use crate::delivery::{OutgoingMessage, SendOutcome, send};
use crate::names::Names;
use crate::queue_tools::{count, delete, receive, url};
use crate::relay::{self, Destination};
use crate::stream::Stream;

/// Wait time of a receive. Any time above 0 makes SQS query all of its servers.
const WAIT_SECONDS: i32 = 1;

/// An outlet, to which a stream's record is delivered again, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutletQueue {
    /// NATS
    Nats,
    /// Webhooks
    Webhooks,
}

impl OutletQueue {
    fn name(self, names: &Names) -> String {
        match self {
            Self::Nats => names.nats(),
            Self::Webhooks => names.webhooks(),
        }
    }
}

/// The result of moving dead letters back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RedriveSummary {
    /// Dead letters that were moved. For the stream: those whose records were delivered, or whose items no longer
    /// exist.
    pub moved: usize,
    /// Dead letters that remain.
    pub remaining: usize,
}

/// Moves the dead letters of a queue back, and prints the outcome of each and why it had failed.
///
/// Of the stream, delivers the records that the relay or a pipe could not deliver: from the current item if the dead
/// letter has its key, otherwise from the record's position in the stream. What was published also goes to these
/// outlets: nothing else says which of them this deployment has.
pub async fn redrive(
    clients: &Clients,
    names: &Names,
    store: &Store,
    queue: DeadLetterQueue,
    outlets: &[OutletQueue],
) -> Result<RedriveSummary> {
    let from = url(&clients.sqs, &names.dead_letters_of(queue)).await?;
    let signals = url(&clients.sqs, &names.signals()).await?;
    let queues = Queues::beside(clients.sqs.clone(), &signals);
    // A message that fails again at once is a new dead letter, which must not be moved in this run.
    let most = count(&clients.sqs, &from).await?;
    let mut summary = RedriveSummary::default();
    let mut seen = BTreeSet::new();
    while summary.moved + summary.remaining < most {
        let messages = receive(&clients.sqs, &from, WAIT_SECONDS).await?;
        // A dead letter that remains is received again after its visibility timeout.
        let fresh: Vec<_> = (messages.into_iter())
            .filter(|message| seen.insert(message.message_id.clone()))
            .collect();
        if fresh.is_empty() {
            break;
        }
        for message in fresh {
            let id = message.message_id.clone().unwrap_or_default();
            let moved = match queue {
                DeadLetterQueue::Stream => {
                    redeliver(clients, names, store, (&message, outlets, &from)).await
                }
                _ => match queues.put_back(queue, message).await {
                    Ok(reason) => Ok(format!("moved back; it had failed because: {reason}")),
                    Err(error) => Err(error.into()),
                },
            };
            let outcome = match moved {
                Ok(outcome) => {
                    summary.moved += 1;
                    outcome
                }
                Err(error) => {
                    summary.remaining += 1;
                    format!("remains: {error:#}")
                }
            };
            writeln!(std::io::stdout().lock(), "{id} {outcome}")?;
        }
    }
    Ok(summary)
}

/// Delivers the records of a dead letter, deletes it, and returns the outcome.
async fn redeliver(
    clients: &Clients,
    names: &Names,
    store: &Store,
    (dead_letter, outlets, from): (&Message, &[OutletQueue], &str),
) -> Result<String> {
    let outcome = delivered(clients, names, store, (dead_letter, outlets)).await?;
    delete(&clients.sqs, from, dead_letter).await?;
    Ok(outcome)
}

/// Delivers the records of a dead letter, and returns how many there are.
async fn delivered(
    clients: &Clients,
    names: &Names,
    store: &Store,
    (dead_letter, outlets): (&Message, &[OutletQueue]),
) -> Result<String> {
    let content = serde_json::from_str(dead_letter.body.as_deref().unwrap_or_default());
    let content: Value = content.context("the dead letter is not JSON")?;
    if let Some(log) = content.get("log").and_then(Value::as_str) {
        return delete_log(clients, names, store, &content, log).await;
    }
    let records = if let Some(batch) = content.get("DDBStreamBatchInfo") {
        let text = |name: &str| {
            let text = batch.get(name).and_then(Value::as_str);
            text.with_context(|| format!("the dead letter has no {name}"))
        };
        let stream = Stream::new(clients.streams.clone(), text("streamArn")?.to_owned());
        let (from, to) = (text("startSequenceNumber")?, text("endSequenceNumber")?);
        let records = stream.between(text("shardId")?, from, to).await?;
        anyhow::ensure!(!records.is_empty(), "the stream has none of its records");
        records
    } else {
        let key = content.pointer("/dynamodb/Keys/PK/S");
        anyhow::ensure!(key.is_some(), "the dead letter names no item");
        match store.record(&content).await? {
            Some(record) => vec![record],
            None => return Ok("done; its item no longer exists".to_owned()),
        }
    };
    let mut outgoing = Vec::new();
    for record in &records {
        for (destination, body) in relay::messages(record)? {
            let queues = match destination {
                Destination::Signals => vec![names.signals()],
                Destination::Subject(subject) => {
                    let outlets = outlets.iter().map(|outlet| outlet.name(names));
                    let is_counted = subject == Subject::FeedbackProcessed;
                    std::iter::once(names.subject(subject))
                        .chain(is_counted.then(|| names.insights()))
                        .chain(outlets)
                        .collect()
                }
                Destination::Insights => vec![names.insights()],
            };
            for name in queues {
                let (queue, body) = (url(&clients.sqs, &name).await?, body.clone());
                outgoing.push(OutgoingMessage { queue, body });
            }
        }
    }
    anyhow::ensure!(!outgoing.is_empty(), "no queue takes what it names");
    for outcome in send(&clients.sqs, &outgoing).await {
        match outcome {
            SendOutcome::Sent => {}
            SendOutcome::Rejected(code) | SendOutcome::Failed(code) => {
                anyhow::bail!("one of its messages was not sent: {code}")
            }
        }
    }
    Ok(format!("done; records delivered: {}", records.len()))
}

/// Deletes the log of a deleted turn, unless the turn exists again with the same log.
async fn delete_log(
    clients: &Clients,
    names: &Names,
    store: &Store,
    dead_letter: &Value,
    log: &str,
) -> Result<String> {
    let current = store.record(dead_letter).await?;
    let current = current.as_ref();
    let current = current.and_then(|row| row.pointer("/dynamodb/NewImage/hosted_uri/S")?.as_str());
    if current != Some(log) {
        let blobs = Blobs::new(clients.s3.clone(), names.bucket());
        let deleted = blobs.delete_turn_log(log).await;
        deleted.context("the log of the deleted turn was not deleted")?;
    }
    Ok("done; the log of the deleted turn is deleted".to_owned())
}
