//! Replaces EventBridge Pipes: delivers the table's stream to the queues of the signal generator and of the subjects,
//! at least once.
//!
//! The [`RelayPosition`] is a file in the data folder. It moves past a record only after the record's messages are in
//! the queues, which are durable. So after a crash, some records are delivered again and none is missed. The engine
//! keeps records until they are delivered.
//!
//! The relay also replaces the bucket's lifecycle rule: when the table deletes a turn, the relay deletes its log.
//!
//! One record never blocks the others. A record that cannot be read, whose message a queue rejects, or whose log cannot
//! be deleted, becomes a dead letter with the reason. Any other failure is retried for that message alone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::Result;
use hearback_domain::learning::publication::Subject;
use hearback_domain::turns::turn::TurnRef;
use hearback_lambda::dead_letters::DeadLetters;
use hearback_signals::publish;
use hearback_storage::stream::{RESULTS, SUBMITTED, deleted_turn, key_record, tenant_of};
use hearback_storage::{Blobs, Error, Store};
use serde_json::Value;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::delivery::{OutgoingMessage, SendOutcome, send};
use crate::health::{Health, LoopStatus};
use crate::live::OpenSockets;
use crate::position::RelayPosition;
use crate::provision::QueueUrls;
use crate::stream::{Stream, StreamBatch};
use crate::writes::{Writes, WritesPosition};

/// Pause after a read that returned all records, so that the next one returns several: many small sends would cost more
/// than processing the messages.
const BATCH_WINDOW: Duration = Duration::from_millis(50);
/// How long to wait for a write before the stream is read nevertheless: the engine's maintenance deletes expired items
/// without a request.
const IDLE_POLL: Duration = Duration::from_secs(1);
/// Pause after an error.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Attempts to delete a log while the bucket rejects it: because the bucket is gone, because the credentials do not allow
/// it, or because the embedded engine cannot read the object's metadata.
const LOG_TRIES: u32 = 5;

/// Delivers the stream's records.
#[derive(Debug)]
pub struct Relay {
    /// The stream.
    pub stream: Stream,
    /// The writes of the embedded engine; `None` for another one, which is polled.
    pub writes: Option<Writes>,
    /// The table.
    pub store: Store,
    /// The bucket.
    pub blobs: Blobs,
    /// Client of SQS.
    pub sqs: aws_sdk_sqs::Client,
    /// The URLs of the queues.
    pub queues: QueueUrls,
    /// The queues of outlets, which receive every published message.
    pub outlets: Vec<String>,
    /// The open sockets. While there are none, nothing is sent to the fan-out.
    pub sockets: OpenSockets,
    /// The position in the stream.
    pub position: RelayPosition,
    /// Records whether the relay works.
    pub health: Health,
}

/// What a record requires, with the record's index in its batch.
struct Task {
    record: usize,
    work: Work,
}

/// The records of a read that were delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Delivered {
    /// None: there were none.
    Nothing,
    /// All that there were.
    All,
    /// As many as a read returns; there may be more.
    Full,
}

enum Work {
    Send(OutgoingMessage),
    /// Deletes the log of a turn that the table deleted, after this many failed attempts of the bucket's engine.
    DeleteLog(TurnRef, String, u32),
    /// Sends the record to the DLQ for this reason.
    DeadLetter(String),
}

/// The destination of a record's message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// The signal generator.
    Signals,
    /// The subscribers of a subject.
    Subject(Subject),
    /// Insights alone.
    Insights,
}

/// The messages of a record; empty if no pipe's filter matches it.
pub fn messages(record: &Value) -> Result<Vec<(Destination, String)>, Error> {
    let mut messages = Vec::new();
    if SUBMITTED.takes(record) {
        messages.push((Destination::Signals, SUBMITTED.message(record)));
    }
    if RESULTS.takes(record) {
        let published = publish::addressed(record)?;
        let addressed = published.messages.into_iter();
        messages.extend(
            addressed.map(|(subject, body)| (Destination::Subject(subject), body.to_string())),
        );
        let counted = published.for_insights.into_iter();
        messages.extend(counted.map(|body| (Destination::Insights, body.to_string())));
    }
    Ok(messages)
}

/// Waits until the stream is worth another read. The last one began at this position.
async fn pause(delivered: Delivered, position: Option<WritesPosition>) {
    match (delivered, position) {
        (Delivered::Full, _) => {}
        (Delivered::Nothing, Some(mut position)) => _ = timeout(IDLE_POLL, position.next()).await,
        (Delivered::Nothing | Delivered::All, _) => sleep(BATCH_WINDOW).await,
    }
}

impl Relay {
    /// Runs until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        let status = self.health.register("relay");
        while !stop.is_cancelled() {
            let started = Instant::now();
            let position = self.writes.as_ref().map(Writes::position);
            match self.deliver_new(&status, &stop).await {
                Ok(delivered) => {
                    status.succeeded();
                    if delivered < Delivered::Full {
                        self.health.caught_up(started, position.clone());
                    }
                    stop.run_until_cancelled(pause(delivered, position)).await;
                }
                Err(error) => {
                    status.failed(&format!("{error:#}"), 0);
                    // A shard iterator may have expired. Continue from the stored position.
                    self.stream.close();
                    stop.run_until_cancelled(sleep(RETRY_PAUSE)).await;
                }
            }
        }
    }

    /// Delivers the new records of each shard.
    async fn deliver_new(
        &mut self,
        status: &LoopStatus,
        stop: &CancellationToken,
    ) -> Result<Delivered> {
        let mut shards = self.stream.shards();
        if shards.is_empty() {
            let opened = self.stream.open(&self.position.read()?).await?;
            self.position.opened(&opened);
            shards = self.stream.shards();
        }
        let mut delivered = Delivered::Nothing;
        let mut ended = false;
        for shard in &shards {
            let batch = self.stream.read(shard).await?;
            if !batch.records.is_empty() {
                self.deliver(shard, &batch, status, stop).await?;
                if stop.is_cancelled() {
                    return Ok(Delivered::Full);
                }
                delivered = delivered.max(Delivered::All);
            }
            if batch.is_full {
                delivered = Delivered::Full;
            }
            ended |= !self.stream.advance(shard, batch);
        }
        if ended {
            // Reopen the stream to find the children of the shard that ended.
            self.stream.close();
            delivered = delivered.max(Delivered::All);
        }
        Ok(delivered)
    }

    /// Delivers the records of a batch and moves the position past them. Returns earlier only on `stop`, with the
    /// position past the delivered records.
    async fn deliver(
        &self,
        shard: &str,
        batch: &StreamBatch,
        status: &LoopStatus,
        stop: &CancellationToken,
    ) -> Result<()> {
        let mut left = self.tasks(&batch.records)?;
        let mut passed = 0;
        loop {
            let (next, failure) = self.attempt(left, &batch.records).await;
            left = next;
            // The position can pass all records before the first one that is not done.
            let done = left.iter().map(|task| task.record).min();
            let done = done.unwrap_or(batch.records.len());
            if done > passed
                && let Some(to) = batch.positions.get(done - 1)
            {
                self.position.advance(shard, &to.sequence)?;
                if let Some(at) = to.written_at {
                    self.health.relayed_until(at);
                }
                passed = done;
            }
            if left.is_empty() {
                return Ok(());
            }
            let waiting = left.iter().map(|task| task.record).collect::<BTreeSet<_>>();
            self.health.set_waiting(waiting.len());
            if let Some(reason) = failure {
                status.failed(&reason, waiting.len());
                stop.run_until_cancelled(sleep(RETRY_PAUSE)).await;
            }
            if stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    fn tasks(&self, records: &[Value]) -> Result<Vec<Task>> {
        let mut tasks = Vec::new();
        for (record, value) in records.iter().enumerate() {
            if let Some((turn, log)) = deleted_turn(value) {
                let work = Work::DeleteLog(turn, log, 0);
                tasks.push(Task { record, work });
            }
            match messages(value) {
                Ok(messages) => {
                    for (destination, body) in messages {
                        let queue = match destination {
                            Destination::Signals => &self.queues.signals,
                            Destination::Subject(subject) => self.queues.subject(subject)?,
                            Destination::Insights => &self.queues.insights,
                        };
                        let mut queues = vec![queue];
                        if let Destination::Subject(subject) = destination {
                            queues.extend(self.outlets.iter().map(String::as_str));
                            if subject == Subject::FeedbackProcessed {
                                queues.push(&self.queues.insights);
                            }
                            if subject == Subject::FeedbackProcessed && !self.sockets.is_empty() {
                                queues.push(&self.queues.fanout);
                            }
                        }
                        tasks.extend(queues.into_iter().map(|queue| {
                            let (queue, body) = (queue.to_owned(), body.clone());
                            let work = Work::Send(OutgoingMessage { queue, body });
                            Task { record, work }
                        }));
                    }
                }
                Err(error) => {
                    let work = Work::DeadLetter(error.to_string());
                    tasks.push(Task { record, work });
                }
            }
        }
        Ok(tasks)
    }

    /// Attempts each task once. Returns the tasks that are left, and why they failed unless the records are at fault.
    async fn attempt(&self, tasks: Vec<Task>, records: &[Value]) -> (Vec<Task>, Option<String>) {
        let (mut sends, mut dead_letters) = (Vec::new(), BTreeMap::new());
        let mut left = Vec::new();
        let mut failure = None;
        for Task { record, work } in tasks {
            match work {
                Work::Send(outgoing) => sends.push((record, outgoing)),
                Work::DeleteLog(turn, log, failed) => match self.delete_log(&turn, &log).await {
                    Ok(()) => {}
                    Err(error) => {
                        let reason = format!("a turn's log was not deleted: {error}");
                        let failed = failed + u32::from(error.is_rejection());
                        if failed < LOG_TRIES && matches!(error, Error::Unavailable { .. }) {
                            let work = Work::DeleteLog(turn, log, failed);
                            left.push(Task { record, work });
                            failure = Some(reason);
                        } else {
                            dead_letters.insert(record, reason);
                        }
                    }
                },
                Work::DeadLetter(reason) => _ = dead_letters.insert(record, reason),
            }
        }
        let outgoing: Vec<_> = sends.iter().map(|(_, outgoing)| outgoing.clone()).collect();
        let outcomes = send(&self.sqs, &outgoing).await;
        for ((record, outgoing), outcome) in sends.into_iter().zip(outcomes) {
            match outcome {
                SendOutcome::Sent => {}
                SendOutcome::Rejected(code) => {
                    dead_letters.insert(record, format!("a queue rejected its message: {code}"));
                }
                SendOutcome::Failed(code) => {
                    failure = Some(format!("cannot write to a queue: {code}"));
                    let work = Work::Send(outgoing);
                    left.push(Task { record, work });
                }
            }
        }
        let mut sent = 0;
        for (record, reason) in dead_letters {
            let value = records.get(record);
            match self.send_to_dlq(value, &reason).await {
                Ok(()) => {
                    let tenant = value.and_then(tenant_of);
                    tracing::warn!(tenant, reason, "a record of the stream was sent to the DLQ");
                    sent += 1;
                }
                Err(error) => {
                    failure = Some(error);
                    let work = Work::DeadLetter(reason);
                    left.push(Task { record, work });
                }
            }
        }
        if sent > 0 {
            self.health.add_dead_letters(sent);
        }
        (left, failure)
    }

    async fn delete_log(&self, turn: &TurnRef, log: &str) -> Result<(), Error> {
        let row = self.store.kept_turn(turn).await?;
        // A turn that was registered again with the same content has the same log.
        if row.is_none_or(|row| row.hosted_uri != log) {
            self.blobs.delete_turn_log(log).await?;
        }
        Ok(())
    }

    async fn send_to_dlq(&self, record: Option<&Value>, reason: &str) -> Result<(), String> {
        let dead_letters = DeadLetters::new(self.sqs.clone(), &self.queues.stream_dead_letters);
        let body = key_record(record.unwrap_or(&Value::Null)).to_string();
        let sent = dead_letters.send(&body, reason).await;
        sent.map_err(|error| format!("a dead letter was not sent: {error}"))
    }
}
