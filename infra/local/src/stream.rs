//! Reads the table's stream, shard by shard, from the reader's last position.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicI32, Ordering};

use anyhow::{Context, Result};
use aws_sdk_dynamodbstreams::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodbstreams::operation::get_shard_iterator::GetShardIteratorError;
use aws_sdk_dynamodbstreams::types::{
    AttributeValue, OperationType, Record, Shard, ShardIteratorType,
};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

/// Maximum records of a read.
const MAX_RECORDS: i32 = 500;

/// A stream, with an iterator for each open shard.
#[derive(Debug)]
pub struct Stream {
    client: aws_sdk_dynamodbstreams::Client,
    arn: String,
    iterators: BTreeMap<String, String>,
    /// Limit of the next read. It is halved after a failure, because the records may have been too large to be returned
    /// in time, and doubled after a success.
    limit: AtomicI32,
}

/// Records of a shard.
#[derive(Debug)]
pub struct StreamBatch {
    /// The records, as the JSON that a pipe receives.
    pub records: Vec<Value>,
    /// The position of each record.
    pub positions: Vec<RecordPosition>,
    /// Whether there may be more records.
    pub is_full: bool,
    /// The next iterator; `None` at the end of the shard.
    next: Option<String>,
}

/// The position of a record in its shard.
#[derive(Debug, Clone)]
pub struct RecordPosition {
    /// The sequence number.
    pub sequence: String,
    /// The approximate time at which the item was written.
    pub written_at: Option<DateTime<Utc>>,
}

impl Stream {
    /// A stream without open shards.
    #[must_use]
    pub fn new(client: aws_sdk_dynamodbstreams::Client, arn: String) -> Self {
        Self {
            client,
            arn,
            iterators: BTreeMap::new(),
            limit: AtomicI32::new(MAX_RECORDS),
        }
    }

    /// Opens each shard after its last sequence number, or at its oldest record if there is no valid one. Returns the
    /// sequence numbers that were valid.
    pub async fn open(
        &mut self,
        last: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>> {
        let mut opened = BTreeMap::new();
        for ShardRange { shard, end } in self.find_shards().await? {
            let after = last.get(&shard).filter(|after| is_within(after, &end));
            if after.is_none() && last.contains_key(&shard) {
                tracing::warn!(
                    "the position is not in the stream; the relay starts at the oldest record, and delivers some records \
                     again"
                );
            }
            let iterator = self.iterator(&shard, after).await?;
            opened.extend(after.map(|after| (shard.clone(), after.clone())));
            self.iterators
                .extend(iterator.map(|iterator| (shard, iterator)));
        }
        Ok(opened)
    }

    /// Closes all shards.
    pub fn close(&mut self) {
        self.iterators.clear();
    }

    /// The open shards, parents first.
    #[must_use]
    pub fn shards(&self) -> Vec<String> {
        self.iterators.keys().cloned().collect()
    }

    /// Reads the next records of a shard without advancing.
    pub async fn read(&self, shard: &str) -> Result<StreamBatch> {
        let iterator = self.iterators.get(shard).context("the shard is not open")?;
        let limit = self.limit.load(Ordering::Relaxed);
        let read = self
            .client
            .get_records()
            .shard_iterator(iterator)
            .limit(limit);
        let read = read.send().await;
        let next = if read.is_ok() { limit * 2 } else { limit / 2 };
        self.limit
            .store(next.clamp(1, MAX_RECORDS), Ordering::Relaxed);
        let read = read.context("cannot read the stream")?;
        let records = read.records.unwrap_or_default();
        let positions: Option<Vec<_>> = records.iter().map(position).collect();
        Ok(StreamBatch {
            positions: positions.context("a record has no sequence number")?,
            records: records.iter().map(record_json).collect(),
            is_full: i32::try_from(records.len()).is_ok_and(|count| count >= limit),
            next: read.next_shard_iterator,
        })
    }

    /// Advances past a batch of a shard, and returns whether the shard is still open.
    pub fn advance(&mut self, shard: &str, batch: StreamBatch) -> bool {
        let is_open = batch.next.is_some();
        match batch.next {
            Some(next) => self.iterators.insert(shard.to_owned(), next),
            None => self.iterators.remove(shard),
        };
        is_open
    }

    /// The records of a shard from one sequence number to another (inclusive) that are still in the stream.
    pub async fn between(&self, shard: &str, from: &str, to: &str) -> Result<Vec<Value>> {
        let found = self
            .client
            .get_shard_iterator()
            .stream_arn(&self.arn)
            .shard_id(shard)
            .shard_iterator_type(ShardIteratorType::AtSequenceNumber)
            .sequence_number(from)
            .send()
            .await;
        let mut iterator = found
            .context("the stream does not have this position; it keeps records for 24 hours")?
            .shard_iterator;
        let mut between = Vec::new();
        while let Some(current) = iterator {
            let read = self
                .client
                .get_records()
                .shard_iterator(current)
                .limit(MAX_RECORDS);
            let read = read.send().await.context("cannot read the stream")?;
            let records = read.records.unwrap_or_default();
            for record in &records {
                let position = position(record).context("a record has no sequence number")?;
                if is_after(&position.sequence, to) {
                    return Ok(between);
                }
                between.push(record_json(record));
                if position.sequence == to {
                    return Ok(between);
                }
            }
            // An empty read means that the later records have expired.
            iterator = read.next_shard_iterator.filter(|_| !records.is_empty());
        }
        Ok(between)
    }

    async fn find_shards(&self) -> Result<Vec<ShardRange>> {
        let mut shards = Vec::new();
        let mut after = None;
        loop {
            let description = self
                .client
                .describe_stream()
                .stream_arn(&self.arn)
                .set_exclusive_start_shard_id(after)
                .send()
                .await
                .context("cannot describe the stream")?
                .stream_description
                .context("the stream has no description")?;
            let page = description.shards.unwrap_or_default();
            shards.extend(page.into_iter().filter_map(ShardRange::of));
            after = description.last_evaluated_shard_id;
            if after.is_none() {
                return Ok(shards);
            }
        }
    }

    async fn iterator(&self, shard: &str, after: Option<&String>) -> Result<Option<String>> {
        let Some(after) = after else {
            return self.oldest(shard).await;
        };
        let found = self
            .client
            .get_shard_iterator()
            .stream_arn(&self.arn)
            .shard_id(shard)
            .shard_iterator_type(ShardIteratorType::AfterSequenceNumber)
            .sequence_number(after)
            .send()
            .await;
        match found {
            Ok(found) => Ok(found.shard_iterator),
            // The position has expired, or is not one of the stream's.
            Err(error) if is_invalid_position(&error) => {
                tracing::warn!("the position has expired; the relay starts at the oldest record");
                self.oldest(shard).await
            }
            Err(error) => Err(error).context("cannot open a shard of the stream"),
        }
    }

    async fn oldest(&self, shard: &str) -> Result<Option<String>> {
        let found = self
            .client
            .get_shard_iterator()
            .stream_arn(&self.arn)
            .shard_id(shard)
            .shard_iterator_type(ShardIteratorType::TrimHorizon)
            .send()
            .await;
        Ok(found
            .context("cannot open a shard of the stream at its oldest record")?
            .shard_iterator)
    }
}

/// Whether an iterator was rejected because of its position.
fn is_invalid_position<R>(error: &SdkError<GetShardIteratorError, R>) -> bool {
    error.as_service_error().is_some_and(|error| {
        error.is_trimmed_data_access_exception() || error.code() == Some("ValidationException")
    })
}

struct ShardRange {
    shard: String,
    end: ShardEnd,
}

enum ShardEnd {
    /// The shard has no records.
    Empty,
    /// The shard is being written to.
    Open,
    /// The last sequence number. The embedded engine reports one for open shards too.
    At(String),
}

impl ShardRange {
    fn of(shard: Shard) -> Option<Self> {
        let range = shard.sequence_number_range;
        let (first, last) = range.map_or((None, None), |range| {
            (range.starting_sequence_number, range.ending_sequence_number)
        });
        let end = match (first, last) {
            (_, Some(last)) => ShardEnd::At(last),
            (Some(_), None) => ShardEnd::Open,
            (None, None) => ShardEnd::Empty,
        };
        let shard = shard.shard_id?;
        Some(Self { shard, end })
    }
}

/// Whether a position can be one of a shard: it is a sequence number, and not after the shard's end. A later position
/// belongs to another table, or to a later state of this one, and the next records might be before it.
fn is_within(position: &str, end: &ShardEnd) -> bool {
    let is_number =
        (21..=40).contains(&position.len()) && position.bytes().all(|byte| byte.is_ascii_digit());
    is_number
        && match end {
            ShardEnd::Empty => false,
            ShardEnd::Open => true,
            ShardEnd::At(last) => !is_after(position, last),
        }
}

fn position(record: &Record) -> Option<RecordPosition> {
    let stream = record.dynamodb.as_ref()?;
    let written = stream.approximate_creation_date_time.as_ref();
    Some(RecordPosition {
        sequence: stream.sequence_number.clone()?,
        written_at: written.and_then(|at| DateTime::from_timestamp(at.secs(), at.subsec_nanos())),
    })
}

/// Whether a sequence number, of up to 40 digits, is greater than another.
fn is_after(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|number| number.trim_start_matches('0'));
    (one.len(), one) > (other.len(), other)
}

fn record_json(record: &Record) -> Value {
    let stream = record.dynamodb.as_ref();
    let attributes = |attributes: Option<&HashMap<String, AttributeValue>>| {
        attributes.map(|attributes| {
            attributes
                .iter()
                .map(|(name, value)| (name.clone(), attribute_json(value)))
                .collect::<Map<_, _>>()
        })
    };
    let old = stream.and_then(|stream| stream.old_image.as_ref());
    let deleted = old.filter(|_| record.event_name == Some(OperationType::Remove));
    let by = record.user_identity.as_ref();
    let by = by.map(|by| json!({"type": by.r#type, "principalId": by.principal_id}));
    json!({
        "eventName": record.event_name.as_ref().map(OperationType::as_str),
        // Of an item that the table deleted because it had expired.
        "userIdentity": by,
        "dynamodb": {
            "Keys": attributes(stream.and_then(|stream| stream.keys.as_ref())),
            "NewImage": attributes(stream.and_then(|stream| stream.new_image.as_ref())),
            "OldImage": attributes(deleted),
        },
    })
}

/// Supports the attribute types that the table uses.
fn attribute_json(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) => json!({"S": text}),
        AttributeValue::N(number) => json!({"N": number}),
        AttributeValue::Bool(flag) => json!({"BOOL": flag}),
        _ => Value::Null,
    }
}
