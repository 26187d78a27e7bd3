//! Which partitions calls to the table touch, of the table and of its indexes, and with how many units: a
//! partition key has a limit of its own.

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
    /// Its value.
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

/// What a call asks for.
#[derive(Debug, Clone)]
enum Asked {
    Put(Item),
    /// An update of an item that moves it in the index by status, to this partition or out of it.
    Move(Item, Option<Partition>),
    /// Of these partitions, each as much as of the others.
    Of(Vec<Partition>),
}

impl Storable for Asked {
    type Storer = StoreReplace<Self>;
}

impl Asked {
    fn by(input: &Input) -> Self {
        if let Some(put) = input.downcast_ref::<PutItemInput>() {
            Self::Put(put.item().unwrap().clone())
        } else if let Some(update) = input.downcast_ref::<UpdateItemInput>() {
            let key = update.key().unwrap();
            let names = update.expression_attribute_names().into_iter();
            if !names.flatten().any(|(_, name)| name == STATUS) {
                return Self::Of(vec![of_item(key)]);
            }
            let values = update.expression_attribute_values();
            let entry = values.and_then(|values| values.get(":status"));
            let entry = entry.map(|entry| Partition {
                index: Some(BY_STATUS),
                key: entry.as_s().unwrap().clone(),
            });
            Self::Move(key.clone(), entry)
        } else if let Some(get) = input.downcast_ref::<GetItemInput>() {
            Self::Of(vec![of_item(get.key().unwrap())])
        } else if let Some(get) = input.downcast_ref::<BatchGetItemInput>() {
            let tables = get.request_items().unwrap().values();
            let keys = tables.flat_map(|asked| asked.keys());
            Self::Of(keys.map(of_item).collect())
        } else if let Some(query) = input.downcast_ref::<QueryInput>() {
            let values = query.expression_attribute_values().unwrap();
            let key = values.get(":pk").or(values.get(":value")).unwrap();
            let index = query.index_name().map(|name| {
                let known = INDEXES.iter().find(|(index, ..)| *index == name);
                known.expect("an index of the table").0
            });
            let key = key.as_s().unwrap().clone();
            Self::Of(vec![Partition { index, key }])
        } else if let Some(transaction) = input.downcast_ref::<TransactWriteItemsInput>() {
            let written = transaction.transact_items().iter().map(|item| {
                let put = item.put().map(|put| put.item());
                let key = put.or(item.update().map(|update| update.key()));
                of_item(key.expect("a put or an update"))
            });
            Self::Of(written.collect())
        } else {
            panic!("a call whose partitions nobody knows");
        }
    }
}

#[derive(Debug, Default)]
struct Seen {
    touched: BTreeMap<Partition, Units>,
    /// Of each item that was put, its entries in the indexes.
    entries: HashMap<[String; 2], Vec<Partition>>,
}

impl Seen {
    /// Answers how many of the units of a put were for the indexes: an entry that comes and one that goes are a
    /// unit each, one that stays as it is costs nothing.
    fn put(&mut self, item: &Item) -> f64 {
        let entries = INDEXES.iter().filter_map(|(index, by, _)| {
            let key = item.get(*by)?.as_s().unwrap().clone();
            let index = Some(*index);
            Some(Partition { index, key })
        });
        let entries: Vec<_> = entries.collect();
        self.changed(item, entries)
    }

    /// The same of an update that leaves the item in this partition of the index by status, or in none.
    fn moved(&mut self, key: &Item, entry: Option<&Partition>) -> f64 {
        let place = [text(key, PK), text(key, SK)];
        let before = self.entries.get(&place).into_iter().flatten();
        let others = before.filter(|before| before.index != Some(BY_STATUS));
        let entries = others.chain(entry).cloned().collect();
        self.changed(key, entries)
    }

    fn changed(&mut self, item: &Item, entries: Vec<Partition>) -> f64 {
        let place = [text(item, PK), text(item, SK)];
        let before = self.entries.insert(place, entries.clone());
        let before = before.unwrap_or_default();
        let come = entries.iter().filter(|entry| !before.contains(entry));
        let gone = before.iter().filter(|entry| !entries.contains(entry));
        let mut changed = 0.0;
        for entry in come.chain(gone) {
            self.touched.entry(entry.clone()).or_default().writes += 1.0;
            changed += 1.0;
        }
        changed
    }
}

/// Notes what calls touch. Everything that is put into the table has to be put through it: what a put
/// changes in an index depends on what stood there.
#[derive(Debug, Clone, Default)]
pub struct Touched(Arc<Mutex<Seen>>);

impl Touched {
    /// What was touched since the last time.
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
            .store_put(Asked::by(context.input()));
        Ok(())
    }

    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let mut seen = self.0.lock().unwrap();
        let asked = config.load::<Asked>().expect("it was asked").clone();
        let (reads, mut writes, done) = match context.output_or_error() {
            Ok(output) => {
                let (reads, writes) = spent(output);
                (reads, writes, true)
            }
            // A condition that did not hold costs a write unit too, and reports none.
            Err(_) => (0.0, 1.0, false),
        };
        let partitions = match asked {
            Asked::Put(item) => {
                if done {
                    writes -= seen.put(&item);
                    assert!(writes >= 1.0, "the table gets a part of what is spent");
                }
                vec![of_item(&item)]
            }
            Asked::Move(key, entry) => {
                if done {
                    writes -= seen.moved(&key, entry.as_ref());
                    assert!(writes >= 1.0, "the table gets a part of what is spent");
                }
                vec![of_item(&key)]
            }
            Asked::Of(partitions) => partitions,
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

fn of_item(item: &Item) -> Partition {
    let key = text(item, PK);
    Partition { index: None, key }
}

fn text(item: &Item, name: &str) -> String {
    item[name].as_s().unwrap().clone()
}
