//! What EventBridge Pipes does: carries the table's stream to the signal generator's queue and to
//! the subjects' queues, at least once.
//!
//! The position is a file in the data folder. It moves only after what it passes is in the queues,
//! which are durable, so after a crash some records are carried again and none is missed.
//!
//! It also stands in for the bucket's lifecycle rule: where the table deletes a turn, it deletes its log.
//!
//! One record never stops the others. A record that cannot be read, or a message that its queue refuses, makes its
//! record a dead letter, with the reason. What fails otherwise is tried again by itself: what was delivered beside it
//! is not delivered again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use chrono::Utc;
use hearback_domain::publication::Subject;
use hearback_domain::turn::TurnRef;
use hearback_lambda::dead_letters::DeadLetters;
use hearback_signals::publish;
use hearback_storage::stream::{RESULTS, SUBMITTED, deleted_turn, place};
use hearback_storage::{Blobs, Error, Store};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::data_dir::{read_json, replace_json};
use crate::delivery::{Outgoing, Sent, send};
use crate::health::{Health, Pulse};
use crate::provision::QueueUrls;
use crate::stream::{Read, Stream};

/// How long to let records gather when the last read had them all: many small sends would cost
/// more than the work that they carry.
const WINDOW: Duration = Duration::from_millis(50);
/// How long to wait after an error.
const PAUSE: Duration = Duration::from_millis(500);

/// How far each shard of the stream was carried.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Position {
    shards: BTreeMap<String, String>,
}

/// Carries a stream.
#[derive(Debug)]
pub struct Relay {
    /// The stream.
    pub stream: Stream,
    /// The table.
    pub store: Store,
    /// The bucket.
    pub blobs: Blobs,
    /// Writes to the queues.
    pub sqs: aws_sdk_sqs::Client,
    /// The queues.
    pub queues: QueueUrls,
    /// The file of the position.
    pub position: PathBuf,
    /// Where it says how it is.
    pub health: Health,
}

/// Something that a record leaves to be done, with the record's place in its read.
struct Task {
    record: usize,
    work: Work,
}

enum Work {
    Send(Outgoing),
    /// Deletes the log of a turn that the table deleted.
    DeleteLog(TurnRef, String),
    Bury(String),
}

/// Where a message of a record goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// To the signal generator.
    Signals,
    /// To the subscribers of a subject.
    Subject(Subject),
}

/// The messages of a record; none, if no pipe takes it.
pub fn messages(record: &Value) -> Result<Vec<(Target, String)>, Error> {
    if SUBMITTED.takes(record) {
        return Ok(vec![(Target::Signals, SUBMITTED.message(record))]);
    }
    if !RESULTS.takes(record) {
        return Ok(Vec::new());
    }
    let addressed = publish::addressed(record)?.into_iter();
    let messages = addressed.map(|(subject, body)| (Target::Subject(subject), body.to_string()));
    Ok(messages.collect())
}

impl Relay {
    /// Carries until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        let pulse = self.health.watch("relay");
        while !stop.is_cancelled() {
            let pause = match self.carry(&pulse, &stop).await {
                Ok(is_full) => {
                    pulse.works();
                    if is_full {
                        continue;
                    }
                    WINDOW
                }
                Err(error) => {
                    pulse.failed(&format!("{error:#}"), 0);
                    // A cursor may have expired: the position on disk is what counts.
                    self.stream.close();
                    PAUSE
                }
            };
            stop.run_until_cancelled(tokio::time::sleep(pause)).await;
        }
    }

    /// Carries what is new in each shard, and says whether there may be more.
    async fn carry(&mut self, pulse: &Pulse, stop: &CancellationToken) -> Result<bool> {
        let begun = Utc::now();
        let mut shards = self.stream.shards();
        if shards.is_empty() {
            let position: Position = read_json(&self.position)?.unwrap_or_default();
            self.stream.open(&position.shards).await?;
            shards = self.stream.shards();
        }
        let mut is_full = false;
        let mut ended = false;
        for shard in &shards {
            let read = self.stream.read(shard).await?;
            if read.last().is_some() {
                self.deliver(shard, &read, (pulse, stop)).await?;
                if stop.is_cancelled() {
                    return Ok(true);
                }
            }
            is_full |= read.is_full;
            ended |= !self.stream.go_on(shard, read);
        }
        if ended {
            // The children of a shard that was read to its end are found by looking again.
            self.stream.close();
        }
        if !is_full {
            self.health.carried_to(begun);
        }
        Ok(is_full)
    }

    /// Delivers all that the records of a read ask for, and moves the position behind them; ends earlier only with
    /// `stop`, with the position behind those that are delivered.
    async fn deliver(
        &self,
        shard: &str,
        read: &Read,
        (pulse, stop): (&Pulse, &CancellationToken),
    ) -> Result<()> {
        let mut left = self.tasks(&read.records)?;
        let mut moved = 0;
        loop {
            let (next, failure) = self.attempt(left, &read.records).await;
            left = next;
            // Records before the first that is open are done, whatever those behind it are.
            let done = left.iter().map(|task| task.record).min();
            let done = done.unwrap_or(read.records.len());
            if done > moved
                && let Some(to) = read.places.get(done - 1)
            {
                self.advance(shard, &to.sequence)?;
                if let Some(at) = to.written_at {
                    self.health.carried_to(at);
                }
                moved = done;
            }
            if left.is_empty() {
                return Ok(());
            }
            let waiting = left.iter().map(|task| task.record).collect::<BTreeSet<_>>();
            self.health.wait(waiting.len());
            if let Some(reason) = failure {
                pulse.failed(&reason, waiting.len());
                stop.run_until_cancelled(tokio::time::sleep(PAUSE)).await;
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
                let work = Work::DeleteLog(turn, log);
                tasks.push(Task { record, work });
            }
            match messages(value) {
                Ok(messages) => {
                    for (target, body) in messages {
                        let queue = match target {
                            Target::Signals => &self.queues.signals,
                            Target::Subject(subject) => self.queues.subject(subject)?,
                        };
                        let queue = queue.to_owned();
                        let work = Work::Send(Outgoing { queue, body });
                        tasks.push(Task { record, work });
                    }
                }
                Err(error) => {
                    let work = Work::Bury(error.to_string());
                    tasks.push(Task { record, work });
                }
            }
        }
        Ok(tasks)
    }

    /// Tries each task once; answers those that are left, and why, if it is not the records' fault.
    async fn attempt(&self, tasks: Vec<Task>, records: &[Value]) -> (Vec<Task>, Option<String>) {
        let (mut sends, mut letters) = (Vec::new(), BTreeMap::new());
        let mut left = Vec::new();
        let mut failure = None;
        for Task { record, work } in tasks {
            match work {
                Work::Send(outgoing) => sends.push((record, outgoing)),
                Work::DeleteLog(turn, log) => match self.delete_log(&turn, &log).await {
                    Ok(()) => {}
                    Err(error @ Error::Unavailable { .. }) => {
                        failure = Some(format!("a turn's log was not deleted: {error}"));
                        let work = Work::DeleteLog(turn, log);
                        left.push(Task { record, work });
                    }
                    Err(error) => _ = letters.insert(record, error.to_string()),
                },
                Work::Bury(reason) => _ = letters.insert(record, reason),
            }
        }
        let outgoing: Vec<_> = sends.iter().map(|(_, outgoing)| outgoing.clone()).collect();
        for ((record, outgoing), sent) in sends.into_iter().zip(send(&self.sqs, &outgoing).await) {
            match sent {
                Sent::Done => {}
                Sent::Refused(code) => {
                    letters.insert(record, format!("a queue refused its message: {code}"));
                }
                Sent::Failed(code) => {
                    failure = Some(format!("a queue cannot be written to: {code}"));
                    let work = Work::Send(outgoing);
                    left.push(Task { record, work });
                }
            }
        }
        let mut buried = 0;
        for (record, reason) in letters {
            match self.bury(records.get(record), &reason).await {
                Ok(()) => buried += 1,
                Err(error) => {
                    failure = Some(error);
                    let work = Work::Bury(reason);
                    left.push(Task { record, work });
                }
            }
        }
        if buried > 0 {
            self.health.bury(buried);
            tracing::warn!(
                buried,
                "records not carried; they are among the dead letters"
            );
        }
        (left, failure)
    }

    async fn delete_log(&self, turn: &TurnRef, log: &str) -> Result<(), Error> {
        let row = self.store.kept_turn(turn).await?;
        // Unless the turn was registered anew, with the same content.
        if row.is_none_or(|row| row.hosted_uri != log) {
            self.blobs.delete_turn_log(log).await?;
        }
        Ok(())
    }

    async fn bury(&self, record: Option<&Value>, reason: &str) -> Result<(), String> {
        let letters = DeadLetters::new(self.sqs.clone(), &self.queues.stream_dead_letters);
        let letter = place(record.unwrap_or(&Value::Null)).to_string();
        let sent = letters.bury(&letter, reason).await;
        sent.map_err(|error| format!("a dead letter was not sent: {error}"))
    }

    fn advance(&self, shard: &str, to: &str) -> Result<()> {
        let mut position: Position = read_json(&self.position)?.unwrap_or_default();
        position.shards.insert(shard.to_owned(), to.to_owned());
        replace_json(&self.position, &position)
    }
}
