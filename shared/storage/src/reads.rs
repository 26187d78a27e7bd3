//! Reads of items by key, strongly consistent unless stated otherwise.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::operation::get_item::GetItemOutput;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, ReturnConsumedCapacity};
use backon::{BackoffBuilder, ExponentialBuilder};

use crate::item::{self, Item};
use crate::preferences::Freshness;
use crate::table::{PK, SK};
use crate::{Error, Store};

/// The partition key and the sort key of an item.
pub(crate) type Key = (String, String);

const INDEX_ENTRY: &str = "index entry";

/// A range of an index of keys.
pub(crate) struct IndexRange {
    pub(crate) index: &'static str,
    /// The index's partition key, and its value.
    pub(crate) partition: (&'static str, String),
    /// The index's sort key.
    pub(crate) sort: &'static str,
    /// The first and the last value of the sort key, both included.
    pub(crate) span: (String, String),
    pub(crate) latest_first: bool,
}

/// Maximum number of items that one call reads.
const BATCH: usize = 100;
/// The pauses before unprocessed keys are requested again.
const PAUSES: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(30))
    .with_max_times(4)
    .with_jitter();

impl Store {
    /// An item. One call, one read for each 4 KB.
    pub(crate) async fn get(&self, pk: String, sk: String) -> Result<GetItemOutput, Error> {
        self.get_with((pk, sk), Freshness::Latest).await
    }

    /// An item. One call, one read for each 4 KB, or half a read with eventual consistency.
    pub(crate) async fn get_with(
        &self,
        (pk, sk): Key,
        freshness: Freshness,
    ) -> Result<GetItemOutput, Error> {
        self.client
            .get_item()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(pk))
            .key(SK, AttributeValue::S(sk))
            .consistent_read(freshness.is_consistent())
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| Error::unavailable("GetItem", &error))
    }

    /// Up to `limit` entries of an index, and whether there are more. An entry is its sort key in the index and the key
    /// of its item. Eventually consistent. One call, half a read for each 4 KB of keys.
    pub(crate) async fn index_keys(
        &self,
        range: IndexRange,
        limit: usize,
    ) -> Result<(Vec<(String, Key)>, bool), Error> {
        let (name, value) = range.partition;
        let (from, to) = range.span;
        let response = self
            .client
            .query()
            .table_name(&self.table)
            .index_name(range.index)
            .key_condition_expression("#partition = :value AND #sort BETWEEN :from AND :to")
            .expression_attribute_names("#partition", name)
            .expression_attribute_names("#sort", range.sort)
            .expression_attribute_values(":value", AttributeValue::S(value))
            .expression_attribute_values(":from", AttributeValue::S(from))
            .expression_attribute_values(":to", AttributeValue::S(to))
            .scan_index_forward(!range.latest_first)
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| Error::unavailable("Query", &error))?;
        let keys = response.items().iter().map(|entry| {
            let position = item::string(entry, INDEX_ENTRY, range.sort)?.to_owned();
            let key = key_of(entry);
            let key = key.ok_or_else(|| Error::unreadable(INDEX_ENTRY, "it has no key"))?;
            Ok((position, key))
        });
        let more = response.last_evaluated_key().is_some();
        Ok((keys.collect::<Result<_, Error>>()?, more))
    }

    /// The items with these distinct keys, in the order of the keys. One call for each hundred, one read for each 4 KB
    /// of each.
    pub(crate) async fn get_batch(&self, keys: &[Key]) -> Result<Vec<Option<Item>>, Error> {
        let mut items_by_key = HashMap::new();
        for keys in keys.chunks(BATCH) {
            self.get_hundred(keys, &mut items_by_key).await?;
        }
        Ok(keys.iter().map(|key| items_by_key.remove(key)).collect())
    }

    async fn get_hundred(
        &self,
        keys: &[Key],
        items_by_key: &mut HashMap<Key, Item>,
    ) -> Result<(), Error> {
        let mut remaining: Vec<Item> = keys.iter().map(item_key).collect();
        let mut pauses = PAUSES.build();
        while !remaining.is_empty() {
            let wanted = KeysAndAttributes::builder()
                .set_keys(Some(std::mem::take(&mut remaining)))
                .consistent_read(true)
                .build()
                .map_err(|error| Error::unreadable("key", error.to_string()))?;
            let mut response = self
                .client
                .batch_get_item()
                .request_items(&self.table, wanted)
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
                .await
                .map_err(|error| Error::unavailable("BatchGetItem", &error))?;
            let items = response.responses.as_mut();
            let items = items.and_then(|tables| tables.remove(&self.table));
            items_by_key.extend(items.into_iter().flatten().filter_map(|item| {
                let key = key_of(&item)?;
                Some((key, item))
            }));
            let unread = response.unprocessed_keys.as_mut();
            remaining.extend(
                unread
                    .and_then(|tables| tables.remove(&self.table))
                    .into_iter()
                    .flat_map(|unread| unread.keys),
            );
            if !remaining.is_empty() {
                let pause = pauses
                    .next()
                    .ok_or_else(|| Error::failed("BatchGetItem", "keys left unprocessed"))?;
                tokio::time::sleep(pause).await;
            }
        }
        Ok(())
    }
}

fn item_key((pk, sk): &Key) -> Item {
    Item::from([
        (PK.to_owned(), AttributeValue::S(pk.clone())),
        (SK.to_owned(), AttributeValue::S(sk.clone())),
    ])
}

/// The key of an item that was read.
pub(crate) fn key_of(item: &Item) -> Option<Key> {
    let part = |name| item.get(name)?.as_s().ok().cloned();
    Some((part(PK)?, part(SK)?))
}
