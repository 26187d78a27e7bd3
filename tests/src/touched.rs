//! The partitions of the table and its indexes that calls use, and with how many units. DynamoDB limits the
//! throughput of each partition key.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::config::interceptors::{
    AfterDeserializationInterceptorContextRef, BeforeSerializationInterceptorContextRef,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_dynamodb::operation::batch_get_item::BatchGetItemInput;
use aws_sdk_dynamodb::operation::get_item::GetItemInput;
use aws_sdk_dynamodb::operation::put_item::PutItemInput;
use aws_sdk_dynamodb::operation::query::QueryInput;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsInput;
use aws_sdk_dynamodb::operation::update_item::UpdateItemInput;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_runtime_api::client::interceptors::context::Input;
use aws_smithy_types::config_bag::{Storable, StoreReplace};
use hearback_storage::table::{BY_STATUS, INDEXES, PK, SK, STATUS};

use crate::engine::spent;

/// A partition key of the table or of an index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Partition {
    /// The index; `None` for the table itself.
    pub index: Option<&'static str>,
    /// The partition key.
    pub key: String,
}

/// Capacity units.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Units {
    /// Read units.
    pub reads: f64,
    /// Write units.
    pub writes: f64,
}

impl std::ops::AddAssign for Units {
    fn add_assign(&mut self, other: Self) {
        self.reads += other.reads;
        self.writes += other.writes;
    }
}

type Item = HashMap<String, AttributeValue>;

/// The partitions that a call uses.
#[derive(Debug, Clone)]
enum Request {
    Put(Item),
    /// An update that moves an item in the index by status: to this partition or, without one, out of it.
    Move(Item, Option<Partition>),
    /// These partitions, in equal parts.
    Partitions(Vec<Partition>),
}

impl Storable for Request {
    type Storer = StoreReplace<Self>;
}

impl Request {
    fn by(input: &Input) -> Self {
        if let Some(put) = input.downcast_ref::<PutItemInput>() {
            Self::Put(put.item().unwrap().clone())
        } else if let Some(update) = input.downcast_ref::<UpdateItemInput>() {
            let key = update.key().unwrap();
            let names = update.expression_attribute_names().into_iter();
            if !names.flatten().any(|(_, name)| name == STATUS) {
                return Self::Partitions(vec![partition_of(key)]);
            }
            let values = update.expression_attribute_values();
            let entry = values.and_then(|values| values.get(":status"));
            let entry = entry.map(|entry| Partition {
                index: Some(BY_STATUS),
                key: entry.as_s().unwrap().clone(),
            });
            Self::Move(key.clone(), entry)
        } else if let Some(get) = input.downcast_ref::<GetItemInput>() {
            Self::Partitions(vec![partition_of(get.key().unwrap())])
        } else if let Some(get) = input.downcast_ref::<BatchGetItemInput>() {
            let tables = get.request_items().unwrap().values();
            let keys = tables.flat_map(|request| request.keys());
            Self::Partitions(keys.map(partition_of).collect())
        } else if let Some(query) = input.downcast_ref::<QueryInput>() {
            let values = query.expression_attribute_values().unwrap();
            let key = values.get(":pk").or(values.get(":value")).unwrap();
            let index = query.index_name().map(|name| {
                let known = INDEXES.iter().find(|index| index.name == name);
                known.expect("an index of the table").name
            });
            let key = key.as_s().unwrap().clone();
            Self::Partitions(vec![Partition { index, key }])
        } else if let Some(transaction) = input.downcast_ref::<TransactWriteItemsInput>() {
            let written = transaction.transact_items().iter().map(|item| {
                let put = item.put().map(|put| put.item());
                let key = put.or(item.update().map(|update| update.key()));
                partition_of(key.expect("a put or an update"))
            });
            Self::Partitions(written.collect())
        } else {
            panic!("a call with unknown partitions");
        }
    }
}

#[derive(Debug, Default)]
struct Seen {
    touched: BTreeMap<Partition, Units>,
    /// The index entries of each item that was put.
    entries: HashMap<[String; 2], Vec<Partition>>,
}

impl Seen {
    /// Returns how many units of a put are for the indexes: each added and each removed entry is one; an unchanged
    /// entry costs nothing.
    fn put(&mut self, item: &Item) -> f64 {
        let entries = INDEXES.iter().filter_map(|index| {
            let key = item.get(index.partition)?.as_s().unwrap().clone();
            let index = Some(index.name);
            Some(Partition { index, key })
        });
        let entries: Vec<_> = entries.collect();
        self.changed(item, entries)
    }

    /// The same for an update that moves the item to this partition of the index by status, or out of the index.
    fn moved(&mut self, key: &Item, entry: Option<&Partition>) -> f64 {
        let key_pair = [text(key, PK), text(key, SK)];
        let before = self.entries.get(&key_pair).into_iter().flatten();
        let others = before.filter(|before| before.index != Some(BY_STATUS));
        let entries = others.chain(entry).cloned().collect();
        self.changed(key, entries)
    }

    fn changed(&mut self, item: &Item, entries: Vec<Partition>) -> f64 {
        let key_pair = [text(item, PK), text(item, SK)];
        let before = self.entries.insert(key_pair, entries.clone());
        let before = before.unwrap_or_default();
        let added = entries.iter().filter(|entry| !before.contains(entry));
        let removed = before.iter().filter(|entry| !entries.contains(entry));
        let mut changed = 0.0;
        for entry in added.chain(removed) {
            self.touched.entry(entry.clone()).or_default().writes += 1.0;
            changed += 1.0;
        }
        changed
    }
}

/// Records the partitions of calls. Every put to the table must go through it, because the cost of an index depends
/// on the previous entries.
#[derive(Debug, Clone, Default)]
pub struct Touched(Arc<Mutex<Seen>>);

impl Touched {
    /// Returns the units by partition since the last call of this method.
    pub fn take(&self) -> BTreeMap<Partition, Units> {
        std::mem::take(&mut self.0.lock().unwrap().touched)
    }
}

impl Intercept for Touched {
    fn name(&self) -> &'static str {
        "Touched"
    }

    fn read_before_serialization(
        &self,
        context: &BeforeSerializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        config
            .interceptor_state()
            .store_put(Request::by(context.input()));
        Ok(())
    }

    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let mut seen = self.0.lock().unwrap();
        let request = config
            .load::<Request>()
            .expect("the request was recorded")
            .clone();
        let (reads, mut writes, succeeded) = match context.output_or_error() {
            Ok(output) => {
                let (reads, writes) = spent(output);
                (reads, writes, true)
            }
            // A failed condition costs a write unit too, but reports none.
            Err(_) => (0.0, 1.0, false),
        };
        let partitions = match request {
            Request::Put(item) => {
                if succeeded {
                    writes -= seen.put(&item);
                    assert!(writes >= 1.0, "the table itself uses at least one unit");
                }
                vec![partition_of(&item)]
            }
            Request::Move(key, entry) => {
                if succeeded {
                    writes -= seen.moved(&key, entry.as_ref());
                    assert!(writes >= 1.0, "the table itself uses at least one unit");
                }
                vec![partition_of(&key)]
            }
            Request::Partitions(partitions) => partitions,
        };
        let share = 1.0 / partitions.len() as f64;
        for partition in partitions {
            *seen.touched.entry(partition).or_default() += Units {
                reads: reads * share,
                writes: writes * share,
            };
        }
        Ok(())
    }
}

fn partition_of(item: &Item) -> Partition {
    let key = text(item, PK);
    Partition { index: None, key }
}

fn text(item: &Item, name: &str) -> String {
    item[name].as_s().unwrap().clone()
}
