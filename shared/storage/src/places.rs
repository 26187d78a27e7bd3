//! Writing under a condition: into a place that must be free, or that must still hold what was seen
//! there.
//!
//! Such an item carries a number drawn for the attempt that wrote it: its version. A try that the SDK
//! repeats, because the answer to the first was lost, recognises its own work by it and does not
//! report it as somebody else's.

use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::{
    AttributeValue, ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure,
};
use uuid::Uuid;

use crate::item::Item;
use crate::{Error, Store};

/// The number of the attempt that wrote an item.
const ATTEMPT: &str = "attempt";

/// What became of an attempt to write something that may be written only once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// It was not there, and now is.
    New,
    /// It was there already, and is as it was.
    Known,
}

/// What stands in a place of the table, as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing<T> {
    /// What it says.
    pub held: T,
    version: AttributeValue,
}

/// What became of an attempt to take a place.
#[derive(Debug, Clone, PartialEq)]
pub enum Replaced<T> {
    /// It stands.
    Done,
    /// Somebody else was faster, and this stands now.
    Lost(Option<Box<Standing<T>>>),
}

impl<T> Standing<T> {
    /// What an item says that was put by [`Store::put_over`].
    pub(crate) fn of(
        item: &Item,
        kind: &'static str,
        read: impl FnOnce(&Item) -> Result<T, Error>,
    ) -> Result<Self, Error> {
        let version = item.get(ATTEMPT).cloned();
        Ok(Self {
            held: read(item)?,
            version: version.ok_or_else(|| Error::unreadable(kind, "attempt is missing"))?,
        })
    }
}

impl Store {
    /// Puts an item whose key must be new. One call, one write.
    pub(crate) async fn put_once(&self, item: Item) -> Result<Written, Error> {
        Ok(match self.take(item, None).await? {
            Taken::Done => Written::New,
            Taken::Lost(_) => Written::Known,
        })
    }

    /// Puts an item if its key is new, and answers the item that holds the key otherwise. One
    /// call, one write either way.
    pub(crate) async fn put_if_new(&self, item: Item) -> Result<Option<Item>, Error> {
        match self.put_if(item, None).await? {
            Taken::Done => Ok(None),
            Taken::Lost(held) => held
                .map(Some)
                .ok_or_else(|| Error::unreadable("item", "the holder of its key was not returned")),
        }
    }

    /// Puts an item where `seen` stood, or nothing; `read` tells what stands there if that no longer
    /// holds. One call, one write for each KB.
    pub(crate) async fn put_over<T>(
        &self,
        item: Item,
        seen: Option<&Standing<T>>,
        read: impl FnOnce(&Item) -> Result<Standing<T>, Error>,
    ) -> Result<Replaced<T>, Error> {
        let taken = self.take(item, seen.map(|seen| &seen.version)).await?;
        Ok(match taken {
            Taken::Done => Replaced::Done,
            Taken::Lost(held) => {
                let held = held.as_ref().map(read).transpose()?;
                Replaced::Lost(held.map(Box::new))
            }
        })
    }

    /// Puts an item, with the number of this attempt, where the version `seen` stood, or nothing.
    async fn take(&self, mut item: Item, seen: Option<&AttributeValue>) -> Result<Taken, Error> {
        let (drawn, _) = Uuid::new_v4().as_u64_pair();
        let version = AttributeValue::N((drawn >> 32).to_string());
        item.insert(ATTEMPT.to_owned(), version.clone());
        Ok(match self.put_if(item, seen).await? {
            Taken::Lost(Some(held)) if held.get(ATTEMPT) == Some(&version) => Taken::Done,
            taken => taken,
        })
    }

    async fn put_if(&self, item: Item, seen: Option<&AttributeValue>) -> Result<Taken, Error> {
        let put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(item))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let put = match seen {
            None => put.condition_expression("attribute_not_exists(PK)"),
            Some(seen) => put
                .condition_expression("attempt = :seen")
                .expression_attribute_values(":seen", seen.clone()),
        };
        let Err(error) = put.send().await else {
            return Ok(Taken::Done);
        };
        match error.as_service_error() {
            Some(PutItemError::ConditionalCheckFailedException(failed)) => {
                Ok(Taken::Lost(failed.item().cloned()))
            }
            _ => Err(Error::unavailable("PutItem", &error)),
        }
    }
}

/// What became of a conditional put.
enum Taken {
    /// It stands.
    Done,
    /// The condition did not hold; this stands, if anything.
    Lost(Option<Item>),
}
