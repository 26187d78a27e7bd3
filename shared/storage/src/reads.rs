//! Reading items by their keys; sees every write that was acknowledged.

use std::collections::HashMap;

use aws_sdk_dynamodb::operation::get_item::GetItemOutput;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, ReturnConsumedCapacity};

use crate::item::Item;
use crate::table::{PK, SK};
use crate::{Error, Store};

/// The keys of an item: its partition's and its own.
pub(crate) type Key = (String, String);

/// Most items that one call reads.
pub(crate) const BATCH: usize = 100;
/// How often what a call left unread is asked for again.
const TRIES: usize = 5;

impl Store {
    /// An item. One call, one read for each 4 KB.
    pub(crate) async fn get(&self, pk: String, sk: String) -> Result<GetItemOutput, Error> {
        self.client
            .get_item()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(pk))
            .key(SK, AttributeValue::S(sk))
            .consistent_read(true)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| Error::unavailable("GetItem", &error))
    }

    /// Items, each in the place of its key; at most [`BATCH`], no key twice. One call, one read for
    /// each 4 KB of each.
    pub(crate) async fn get_batch(&self, keys: &[Key]) -> Result<Vec<Option<Item>>, Error> {
        let mut left: Vec<Item> = keys.iter().map(item_key).collect();
        let mut found = HashMap::new();
        for _ in 0..TRIES {
            if left.is_empty() {
                break;
            }
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
        }
        if !left.is_empty() {
            return Err(Error::Unavailable {
                operation: "BatchGetItem",
                code: "keys left unprocessed".to_owned(),
            });
        }
        Ok(keys.iter().map(|key| found.remove(key)).collect())
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
