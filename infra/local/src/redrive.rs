//! `hearback redrive`: moves dead letters back to their source queues.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::{Context, Result};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName};
use clap::ValueEnum;
use hearback_domain::learning::publication::Subject;
use hearback_lambda::dead_letters::REASON;
use hearback_lambda::queue::HOPS;
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

/// A dead-letter queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DeadLetterQueue {
    /// Feedback that the signal generator could not process
    Signals,
    /// Messages of back ends that are not valid events
    Ingest,
    /// Steps of imports
    Imports,
    /// Passes of erasures
    Erasures,
    /// Events and turns whose hours could not be counted
    Insights,
    /// Published messages that NATS did not accept
    Nats,
    /// Published messages that a webhook did not accept
    Webhooks,
    /// Published messages that subscribers failed to process
    Subjects,
    /// Messages that the topic could not send to a subject's queue; in deployed stacks only
    Deliveries,
    /// Records of the table's stream that could not be delivered
    Stream,
}

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
    let from = url(&clients.sqs, &queue_name(queue, names)).await?;
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
            let moved = match queue {
                DeadLetterQueue::Stream => {
                    redeliver(clients, names, store, (&message, outlets)).await
                }
                _ => put_back(&clients.sqs, names, queue, &message).await,
            };
            let outcome = match moved {
                Ok(outcome) => {
                    // Deleted after it was sent: between the two calls it is in both queues, never in none.
                    delete(&clients.sqs, &from, &message).await?;
                    summary.moved += 1;
                    outcome
                }
                Err(error) => {
                    summary.remaining += 1;
                    format!("remains: {error:#}")
                }
            };
            let id = message.message_id.as_deref().unwrap_or_default();
            writeln!(std::io::stdout().lock(), "{id} {outcome}")?;
        }
    }
    Ok(summary)
}

fn queue_name(queue: DeadLetterQueue, names: &Names) -> String {
    match queue {
        DeadLetterQueue::Signals => names.dead_letters(),
        DeadLetterQueue::Ingest => names.ingest_dead_letters(),
        DeadLetterQueue::Imports => names.imports_dead_letters(),
        DeadLetterQueue::Erasures => names.erasures_dead_letters(),
        DeadLetterQueue::Insights => names.insights_dead_letters(),
        DeadLetterQueue::Nats => names.nats_dead_letters(),
        DeadLetterQueue::Webhooks => names.webhooks_dead_letters(),
        DeadLetterQueue::Subjects => names.subjects_dead_letters(),
        DeadLetterQueue::Deliveries => names.deliveries_dead_letters(),
        DeadLetterQueue::Stream => names.stream_dead_letters(),
    }
}

/// The queue to which a dead letter belongs.
fn origin(queue: DeadLetterQueue, names: &Names, dead_letter: &Message) -> Result<String> {
    Ok(match queue {
        DeadLetterQueue::Signals => names.signals(),
        DeadLetterQueue::Ingest => names.ingest(),
        DeadLetterQueue::Imports => names.imports(),
        DeadLetterQueue::Erasures => names.erasures(),
        DeadLetterQueue::Insights => names.insights(),
        DeadLetterQueue::Nats => names.nats(),
        DeadLetterQueue::Webhooks => names.webhooks(),
        DeadLetterQueue::Subjects | DeadLetterQueue::Deliveries | DeadLetterQueue::Stream => {
            let subject = source(names, dead_letter).or_else(|| subject(dead_letter));
            let subject = subject.context("neither its subject nor its source queue is known")?;
            names.subject(subject)
        }
    })
}

/// The subject from whose queue SQS moved a dead letter.
fn source(names: &Names, dead_letter: &Message) -> Option<Subject> {
    let attributes = dead_letter.attributes.as_ref()?;
    let arn = attributes.get(&MessageSystemAttributeName::DeadLetterQueueSourceArn)?;
    let (_, name) = arn.rsplit_once(':')?;
    let mut subjects = Subject::NAMES.iter().map(|(_, subject)| *subject);
    subjects.find(|subject| names.subject(*subject) == name)
}

/// The subject of a message, by the filters of the topic.
fn subject(dead_letter: &Message) -> Option<Subject> {
    let body: Value = serde_json::from_str(dead_letter.body.as_deref()?).ok()?;
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    match (text("signalType"), text("eventType")) {
        (Some("reward"), _) => Some(Subject::Reward),
        (Some("policy_update"), _) => Some(Subject::Policy),
        (Some("exploration_hint"), _) => Some(Subject::Exploration),
        (None, Some("feedback.processed" | "feedback.retracted")) => {
            Some(Subject::FeedbackProcessed)
        }
        _ => None,
    }
}

/// Sends a dead letter to its source queue, and returns why it had failed.
async fn put_back(
    client: &Client,
    names: &Names,
    queue: DeadLetterQueue,
    dead_letter: &Message,
) -> Result<String> {
    let to = url(client, &origin(queue, names, dead_letter)?).await?;
    let mut attributes = dead_letter.message_attributes.clone().unwrap_or_default();
    let reason = attributes
        .remove(REASON)
        .and_then(|reason| reason.string_value);
    // Its hops are counted from 0 again.
    attributes.remove(HOPS);
    let send = client.send_message().queue_url(&to);
    let send = send.message_body(dead_letter.body.as_deref().unwrap_or_default());
    let send = send.set_message_attributes(Some(attributes).filter(|some| !some.is_empty()));
    send.send().await.context("cannot send a message back")?;
    let reason = reason.unwrap_or_else(|| match queue {
        DeadLetterQueue::Subjects => "its subscriber did not delete it".to_owned(),
        DeadLetterQueue::Deliveries => "the topic could not send it".to_owned(),
        DeadLetterQueue::Signals => "the signal generator crashed".to_owned(),
        _ => "the function crashed".to_owned(),
    });
    Ok(format!("moved back; it had failed because: {reason}"))
}

/// Delivers the records of a dead letter, and returns how many there are.
async fn redeliver(
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
