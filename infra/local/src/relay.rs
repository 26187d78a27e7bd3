//! What EventBridge Pipes does: carries the table's stream to the signal generator's queue and to
//! the subjects' queues, at least once.
//!
//! The position is a file in the data folder. It moves only after what it passes is in the queues,
//! which are durable, so after a crash some records are carried again and none is missed.
//!
//! It also stands in for the bucket's lifecycle rule: where the table deletes a turn, it deletes its log.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use futures::future::try_join_all;
use hearback_signals::publish;
use hearback_storage::stream::{RESULTS, SUBMITTED, deleted_turn};
use hearback_storage::{Blobs, Store};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::data_dir::{read_json, replace_json};
use crate::provision::QueueUrls;
use crate::stream::{FULL_READ, Stream};

/// How long to let records gather when the last read had them all: many small sends would cost
/// more than the work that they carry.
const WINDOW: Duration = Duration::from_millis(50);
/// How long to wait after an error.
const PAUSE: Duration = Duration::from_millis(500);
/// Messages of one send.
const SEND: usize = 10;

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
}

impl Relay {
    /// Carries until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let pause = match self.carry().await {
                Ok(FULL_READ..) => continue,
                Ok(_) => WINDOW,
                Err(error) => {
                    tracing::warn!(
                        error = format!("{error:#}"),
                        "stream not carried, trying again"
                    );
                    // A cursor may have expired: the position on disk is what counts.
                    self.stream.close();
                    PAUSE
                }
            };
            stop.run_until_cancelled(tokio::time::sleep(pause)).await;
        }
    }

    /// Carries what is new in each shard, and says how many records that were.
    async fn carry(&mut self) -> Result<usize> {
        let mut shards = self.stream.shards();
        if shards.is_empty() {
            let position: Position = read_json(&self.position)?.unwrap_or_default();
            self.stream.open(&position.shards).await?;
            shards = self.stream.shards();
        }
        let mut carried = 0;
        let mut ended = false;
        for shard in &shards {
            let read = self.stream.read(shard).await?;
            if let Some(last) = &read.last {
                self.send(&read.records).await?;
                self.advance(shard, last)?;
                carried += read.records.len();
            }
            ended |= !self.stream.go_on(shard, read);
        }
        if ended {
            // The children of a shard that was read to its end are found by looking again.
            self.stream.close();
        }
        Ok(carried)
    }

    fn advance(&self, shard: &str, to: &str) -> Result<()> {
        let mut position: Position = read_json(&self.position)?.unwrap_or_default();
        position.shards.insert(shard.to_owned(), to.to_owned());
        replace_json(&self.position, &position)
    }

    /// Puts what the records mean into the queues.
    async fn send(&self, records: &[Value]) -> Result<()> {
        let mut messages: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for record in records {
            if SUBMITTED.takes(record) {
                let message = SUBMITTED.send(record).to_string();
                messages
                    .entry(&self.queues.signals)
                    .or_default()
                    .push(message);
            } else if RESULTS.takes(record) {
                match publish::addressed(record) {
                    Ok(addressed) => {
                        for (subject, message) in addressed {
                            let queue = self.queues.subject(subject)?;
                            messages.entry(queue).or_default().push(message.to_string());
                        }
                    }
                    Err(error) => {
                        tracing::error!(reason = %error, "result not published");
                        let queue = self.queues.stream_dead_letters.as_str();
                        messages.entry(queue).or_default().push(record.to_string());
                    }
                }
            } else if let Some((at, log)) = deleted_turn(record) {
                let row = self.store.kept_turn(&at).await?;
                // Unless the turn was registered anew, with the same content.
                if row.is_none_or(|row| row.hosted_uri != log) {
                    self.blobs.delete_turn_log(&log).await?;
                }
            }
        }
        let batches = messages.iter().flat_map(|(queue, messages)| {
            messages
                .chunks(SEND)
                .map(|batch| self.send_batch(queue, batch))
        });
        try_join_all(batches).await?;
        Ok(())
    }

    async fn send_batch(&self, queue_url: &str, batch: &[String]) -> Result<()> {
        let entries: Vec<_> = batch
            .iter()
            .enumerate()
            .map(|(at, body)| {
                SendMessageBatchRequestEntry::builder()
                    .id(at.to_string())
                    .message_body(body)
                    .build()
            })
            .collect::<Result<_, _>>()?;
        let sent = self
            .sqs
            .send_message_batch()
            .queue_url(queue_url)
            .set_entries(Some(entries))
            .send()
            .await
            .context("a queue cannot be written to")?;
        anyhow::ensure!(
            sent.failed.is_empty(),
            "a queue refused {} messages",
            sent.failed.len()
        );
        Ok(())
    }
}
