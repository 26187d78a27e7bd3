//! Reading items by their keys; sees every write that was acknowledged.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::operation::get_item::GetItemOutput;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, ReturnConsumedCapacity};
use backon::{BackoffBuilder, ExponentialBuilder};

use crate::item::Item;
use crate::preferences::Freshness;
use crate::table::{PK, SK};
use crate::{Error, Store};

/// The keys of an item: its partition's and its own.
pub(crate) type Key = (String, String);

/// Most items that one call reads.
const BATCH: usize = 100;
/// The pauses before what a call left unread is asked for again.
const PAUSES: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(30))
    .with_max_times(4)
    .with_jitter();

impl Store {
    /// An item. One call, one read for each 4 KB.
    pub(crate) async fn get(&self, pk: String, sk: String) -> Result<GetItemOutput, Error> {
        self.get_as_fresh((pk, sk), Freshness::Latest).await
    }

    /// An item, as fresh as is asked for. One call, one read for each 4 KB, or half.
    pub(crate) async fn get_as_fresh(
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

    /// Items, each in the place of its key; no key twice. One call for each hundred, one read for
    /// each 4 KB of each.
    pub(crate) async fn get_batch(&self, keys: &[Key]) -> Result<Vec<Option<Item>>, Error> {
        let mut found = HashMap::new();
        for keys in keys.chunks(BATCH) {
            self.get_hundred(keys, &mut found).await?;
        }
        Ok(keys.iter().map(|key| found.remove(key)).collect())
    }

    async fn get_hundred(&self, keys: &[Key], found: &mut HashMap<Key, Item>) -> Result<(), Error> {
        let mut left: Vec<Item> = keys.iter().map(item_key).collect();
        let mut pauses = PAUSES.build();
        while !left.is_empty() {
            let wanted = KeysAndAttributes::builder()
                .set_keys(Some(std::mem::take(&mut left)))
                .consistent_read(true)
                .build()
                .map_err(|error| Error::unreadable("key", error.to_string()))?;
            let mut answer = self
                .client
                .batch_get_item()
                .request_items(&self.table, wanted)
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
                .await
                .map_err(|error| Error::unavailable("BatchGetItem", &error))?;
            let items = answer.responses.as_mut();
            let items = items.and_then(|tables| tables.remove(&self.table));
            found.extend(items.into_iter().flatten().filter_map(|item| {
                let key = key_of(&item)?;
                Some((key, item))
            }));
            let unread = answer.unprocessed_keys.as_mut();
            left.extend(
                unread
                    .and_then(|tables| tables.remove(&self.table))
                    .into_iter()
                    .flat_map(|unread| unread.keys),
            );
            if !left.is_empty() {
                let pause = pauses.next().ok_or_else(|| Error::Unavailable {
                    operation: "BatchGetItem",
                    code: "keys left unprocessed".to_owned(),
                })?;
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
