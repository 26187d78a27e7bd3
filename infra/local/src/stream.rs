//! Reads the table's stream, shard by shard, from where its reader was.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicI32, Ordering};

use anyhow::{Context, Result};
use aws_sdk_dynamodbstreams::operation::get_shard_iterator::GetShardIteratorError;
use aws_sdk_dynamodbstreams::types::{AttributeValue, OperationType, Record, ShardIteratorType};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

/// Records of one read.
const READ: i32 = 500;

/// A stream, and where reading goes on in each of its shards.
#[derive(Debug)]
pub struct Stream {
    client: aws_sdk_dynamodbstreams::Client,
    arn: String,
    cursors: BTreeMap<String, String>,
    /// Records of the next read: fewer after one that failed, because its records may have been too large for one
    /// answer in time, and more after one that did not.
    limit: AtomicI32,
}

/// Records of a shard.
#[derive(Debug)]
pub struct Read {
    /// Each in the JSON in which a pipe sees it.
    pub records: Vec<Value>,
    /// The place of each.
    pub places: Vec<Place>,
    /// Whether it may have left some behind.
    pub is_full: bool,
    /// Where to go on; nowhere, if the shard was read to its end.
    next: Option<String>,
}

/// The place of a record in its shard.
#[derive(Debug, Clone)]
pub struct Place {
    /// Its sequence number.
    pub sequence: String,
    /// About when its item was written.
    pub written_at: Option<DateTime<Utc>>,
}

impl Read {
    /// The place of the last record, if there is one.
    #[must_use]
    pub fn last(&self) -> Option<&Place> {
        self.places.last()
    }
}

impl Stream {
    /// A stream that nobody reads yet.
    #[must_use]
    pub fn new(client: aws_sdk_dynamodbstreams::Client, arn: String) -> Self {
        Self {
            client,
            arn,
            cursors: BTreeMap::new(),
            limit: AtomicI32::new(READ),
        }
    }

    /// Finds the shards, and goes behind the sequence number that was read last of each. One of which nothing
    /// was read is read from its beginning.
    pub async fn open(&mut self, last: &BTreeMap<String, String>) -> Result<()> {
        for shard in self.find_shards().await? {
            let cursor = self.cursor(&shard, last.get(&shard)).await?;
            self.cursors.extend(cursor.map(|cursor| (shard, cursor)));
        }
        Ok(())
    }

    /// Forgets where it was; it has to be opened again.
    pub fn close(&mut self) {
        self.cursors.clear();
    }

    /// The shards that are open, parents first.
    #[must_use]
    pub fn shards(&self) -> Vec<String> {
        self.cursors.keys().cloned().collect()
    }

    /// Reads what comes next in a shard, and stays where it is.
    pub async fn read(&self, shard: &str) -> Result<Read> {
        let cursor = self.cursors.get(shard).context("the shard is not open")?;
        let limit = self.limit.load(Ordering::Relaxed);
        let read = self
            .client
            .get_records()
            .shard_iterator(cursor)
            .limit(limit);
        let read = read.send().await;
        let next = if read.is_ok() { limit * 2 } else { limit / 2 };
        self.limit.store(next.clamp(1, READ), Ordering::Relaxed);
        let read = read.context("the stream cannot be read")?;
        let records = read.records.unwrap_or_default();
        let places: Option<Vec<_>> = records.iter().map(place).collect();
        Ok(Read {
            places: places.context("a record has no place in the stream")?,
            records: records.iter().map(record_json).collect(),
            is_full: i32::try_from(records.len()).is_ok_and(|count| count >= limit),
            next: read.next_shard_iterator,
        })
    }

    /// Goes on behind what was read of a shard, and says whether there may be more of it.
    pub fn go_on(&mut self, shard: &str, read: Read) -> bool {
        let is_open = read.next.is_some();
        match read.next {
            Some(next) => self.cursors.insert(shard.to_owned(), next),
            None => self.cursors.remove(shard),
        };
        is_open
    }

    /// The records of a shard from one sequence number to another, as far as the stream still has them.
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
        let mut cursor = found
            .context("the stream has no such place; it keeps records for 24 hours")?
            .shard_iterator;
        let mut between = Vec::new();
        while let Some(at) = cursor {
            let read = self.client.get_records().shard_iterator(at).limit(READ);
            let read = read.send().await.context("the stream cannot be read")?;
            let records = read.records.unwrap_or_default();
            for record in &records {
                let place = place(record).context("a record has no place in the stream")?;
                if is_behind(&place.sequence, to) {
                    return Ok(between);
                }
                between.push(record_json(record));
                if place.sequence == to {
                    return Ok(between);
                }
            }
            // What is not there any more has left the stream.
            cursor = read.next_shard_iterator.filter(|_| !records.is_empty());
        }
        Ok(between)
    }

    async fn find_shards(&self) -> Result<Vec<String>> {
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
            .client
            .get_shard_iterator()
            .stream_arn(&self.arn)
            .shard_id(shard)
            .shard_iterator_type(ShardIteratorType::TrimHorizon)
            .send()
            .await;
        Ok(found.context("the stream has no beginning")?.shard_iterator)
    }
}

fn place(record: &Record) -> Option<Place> {
    let stream = record.dynamodb.as_ref()?;
    let written = stream.approximate_creation_date_time.as_ref();
    Some(Place {
        sequence: stream.sequence_number.clone()?,
        written_at: written.and_then(|at| DateTime::from_timestamp(at.secs(), at.subsec_nanos())),
    })
}

/// Whether a sequence number, of up to 40 digits, is greater than another.
fn is_behind(one: &str, other: &str) -> bool {
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
    json!({
        "eventName": record.event_name.as_ref().map(OperationType::as_str),
        "dynamodb": {
            "Keys": attributes(stream.and_then(|stream| stream.keys.as_ref())),
            "NewImage": attributes(stream.and_then(|stream| stream.new_image.as_ref())),
            "OldImage": attributes(deleted),
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
