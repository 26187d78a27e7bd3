//! Reads the table's stream, shard by shard, from where its reader was.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context, Result};
use aws_sdk_dynamodbstreams::operation::get_shard_iterator::GetShardIteratorError;
use aws_sdk_dynamodbstreams::types::{AttributeValue, OperationType, Record, ShardIteratorType};
use serde_json::{Map, Value, json};

/// Records of one read.
const READ: i32 = 500;
/// A read of this many has left some behind.
pub const FULL_READ: usize = 500;

/// A stream, and where reading goes on in each of its shards.
#[derive(Debug)]
pub struct Stream {
    client: aws_sdk_dynamodbstreams::Client,
    arn: String,
    cursors: BTreeMap<String, String>,
}

/// Records of a shard.
#[derive(Debug)]
pub struct Read {
    /// Each in the JSON in which a pipe sees it.
    pub records: Vec<Value>,
    /// The sequence number of the last of them.
    pub last: Option<String>,
    /// Where to go on; nowhere, if the shard was read to its end.
    next: Option<String>,
}

impl Stream {
    /// A stream that nobody reads yet.
    #[must_use]
    pub fn new(client: aws_sdk_dynamodbstreams::Client, arn: String) -> Self {
        Self {
            client,
            arn,
            cursors: BTreeMap::new(),
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
        let read = self.client.get_records().shard_iterator(cursor).limit(READ);
        let read = read.send().await.context("the stream cannot be read")?;
        let records = read.records.unwrap_or_default();
        Ok(Read {
            last: records.last().and_then(sequence_number),
            records: records.iter().map(record_json).collect(),
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

fn sequence_number(record: &Record) -> Option<String> {
    record.dynamodb.as_ref()?.sequence_number.clone()
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
