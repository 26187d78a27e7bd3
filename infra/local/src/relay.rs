//! What EventBridge Pipes does: carries the table's stream to the signal generator's queue and to
//! the subjects' queues, at least once.
//!
//! The position is a file in the data folder. It moves only after what it passes is in the queues,
//! which are durable, so after a crash some records are carried again and none is missed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use aws_sdk_dynamodbstreams::operation::get_shard_iterator::GetShardIteratorError;
use aws_sdk_dynamodbstreams::types::{AttributeValue, OperationType, Record, ShardIteratorType};
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use futures::future::try_join_all;
use hearback_signals::publish;
use hearback_storage::stream::{RESULTS, SUBMITTED};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::data_dir::{read_json, replace_json};
use crate::provision::QueueUrls;

/// How long to let records gather when the last read had them all: many small sends would cost
/// more than the work that they carry.
const WINDOW: Duration = Duration::from_millis(50);
/// How long to wait after an error.
const PAUSE: Duration = Duration::from_millis(500);
/// Records of one read.
const READ: i32 = 500;
/// A read of this many has left some behind.
const FULL_READ: usize = 500;
/// Messages of one send.
const SEND: usize = 10;

/// How far each shard of the stream was carried.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Position {
    shards: BTreeMap<String, String>,
}

/// Where reading goes on in each shard, for as long as this process runs.
type Cursors = BTreeMap<String, String>;

/// Carries a stream.
#[derive(Debug)]
pub struct Relay {
    /// Reads the stream.
    pub streams: aws_sdk_dynamodbstreams::Client,
    /// Writes to the queues.
    pub sqs: aws_sdk_sqs::Client,
    /// The stream.
    pub stream_arn: String,
    /// The queues.
    pub queues: QueueUrls,
    /// The file of the position.
    pub position: PathBuf,
}

impl Relay {
    /// Carries until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let mut cursors = BTreeMap::new();
        while !stop.is_cancelled() {
            let pause = match self.carry(&mut cursors).await {
                Ok(FULL_READ..) => continue,
                Ok(_) => WINDOW,
                Err(error) => {
                    tracing::warn!(
                        error = format!("{error:#}"),
                        "stream not carried, trying again"
                    );
                    // A cursor may have expired: the position on disk is what counts.
                    cursors.clear();
                    PAUSE
                }
            };
            stop.run_until_cancelled(tokio::time::sleep(pause)).await;
        }
    }

    /// Carries what is new in each shard, and says how many records that were.
    async fn carry(&self, cursors: &mut Cursors) -> Result<usize> {
        if cursors.is_empty() {
            self.open(cursors).await?;
        }
        let mut carried = 0;
        let mut closed = false;
        for (shard, cursor) in cursors.iter_mut() {
            let read = self
                .streams
                .get_records()
                .shard_iterator(cursor.as_str())
                .limit(READ)
                .send()
                .await
                .context("the stream cannot be read")?;
            let records = read.records.unwrap_or_default();
            if let Some(last) = records.last().and_then(sequence_number) {
                self.send(&records).await?;
                self.advance(shard, last)?;
                carried += records.len();
            }
            match read.next_shard_iterator {
                Some(next) => *cursor = next,
                None => closed = true,
            }
        }
        if closed {
            // A shard was read to its end; its children are found by looking again.
            cursors.clear();
        }
        Ok(carried)
    }

    /// Finds the shards, and goes to the position of each.
    async fn open(&self, cursors: &mut Cursors) -> Result<()> {
        let position: Position = read_json(&self.position)?.unwrap_or_default();
        for shard in self.shards().await? {
            let cursor = self.cursor(&shard, position.shards.get(&shard)).await?;
            cursors.extend(cursor.map(|cursor| (shard, cursor)));
        }
        Ok(())
    }

    fn advance(&self, shard: &str, to: String) -> Result<()> {
        let mut position: Position = read_json(&self.position)?.unwrap_or_default();
        position.shards.insert(shard.to_owned(), to);
        replace_json(&self.position, &position)
    }

    /// The shards of the stream, parents first.
    async fn shards(&self) -> Result<Vec<String>> {
        let mut shards = Vec::new();
        let mut after = None;
        loop {
            let description = self
                .streams
                .describe_stream()
                .stream_arn(&self.stream_arn)
                .set_exclusive_start_shard_id(after)
                .send()
                .await
                .context("the stream cannot be described")?
                .stream_description
                .context("the stream has no description")?;
            let page = description.shards.unwrap_or_default();
            shards.extend(page.into_iter().filter_map(|shard| shard.shard_id));
            after = description.last_evaluated_shard_id;
            if after.is_none() {
                return Ok(shards);
            }
        }
    }

    async fn cursor(&self, shard: &str, after: Option<&String>) -> Result<Option<String>> {
        let Some(after) = after else {
            return self.oldest(shard).await;
        };
        let found = self
            .streams
            .get_shard_iterator()
            .stream_arn(&self.stream_arn)
            .shard_id(shard)
            .shard_iterator_type(ShardIteratorType::AfterSequenceNumber)
            .sequence_number(after)
            .send()
            .await;
        match found {
            Ok(found) => Ok(found.shard_iterator),
            // Older than the stream keeps: go on with the oldest that is there.
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(GetShardIteratorError::is_trimmed_data_access_exception) =>
            {
                tracing::warn!("the stream lost records that were not carried");
                self.oldest(shard).await
            }
            Err(error) => Err(error).context("the stream has no such position"),
        }
    }

    async fn oldest(&self, shard: &str) -> Result<Option<String>> {
        let found = self
            .streams
            .get_shard_iterator()
            .stream_arn(&self.stream_arn)
            .shard_id(shard)
            .shard_iterator_type(ShardIteratorType::TrimHorizon)
            .send()
            .await;
        Ok(found.context("the stream has no beginning")?.shard_iterator)
    }

    /// Puts what the records mean into the queues.
    async fn send(&self, records: &[Record]) -> Result<()> {
        let mut messages: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for record in records {
            let record = record_json(record);
            if SUBMITTED.takes(&record) {
                let message = SUBMITTED.send(&record).to_string();
                messages
                    .entry(&self.queues.signals)
                    .or_default()
                    .push(message);
            } else if RESULTS.takes(&record) {
                match publish::addressed(&record) {
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

fn sequence_number(record: &Record) -> Option<String> {
    record.dynamodb.as_ref()?.sequence_number.clone()
}

/// A record in the JSON in which a pipe sees it.
fn record_json(record: &Record) -> Value {
    let stream = record.dynamodb.as_ref();
    let attributes = |attributes: Option<&std::collections::HashMap<String, AttributeValue>>| {
        attributes.map(|attributes| {
            attributes
                .iter()
                .map(|(name, value)| (name.clone(), attribute_json(value)))
                .collect::<Map<_, _>>()
        })
    };
    json!({
        "eventName": record.event_name.as_ref().map(OperationType::as_str),
        "dynamodb": {
            "Keys": attributes(stream.and_then(|stream| stream.keys.as_ref())),
            "NewImage": attributes(stream.and_then(|stream| stream.new_image.as_ref())),
        },
    })
}

/// The kinds of attributes that the table has.
fn attribute_json(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) => json!({"S": text}),
        AttributeValue::N(number) => json!({"N": number}),
        AttributeValue::Bool(flag) => json!({"BOOL": flag}),
        _ => Value::Null,
    }
}
