//! Writing under a condition: into a place that must be free, or that must still hold what was seen
//! there.
//!
//! Such an item carries a number drawn for the attempt that wrote it: its version. A try that the SDK
//! repeats, because the answer to the first was lost, recognises its own work by it and does not
//! report it as somebody else's.

use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{
    AttributeValue, ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure,
};
use chrono::{DateTime, Utc};
use hearback_domain::digest::digest;
use uuid::Uuid;

use crate::item::{Item, check_size};
use crate::{Error, Store};

/// The number of the attempt that wrote an item.
pub(crate) const ATTEMPT: &str = "attempt";

/// Which attempt writes an item. Its number stands in the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt(u32);

impl Attempt {
    /// One that is like no other.
    #[must_use]
    pub fn drawn() -> Self {
        Self(Uuid::new_v4().as_fields().0)
    }

    /// The same for the same names: whoever does a piece of work again recognises what was done.
    #[must_use]
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let [a, b, c, d, ..] = digest(names);
        Self(u32::from_be_bytes([a, b, c, d]))
    }

    /// Its number, as an item has it.
    pub(crate) fn number(self) -> AttributeValue {
        AttributeValue::N(self.0.to_string())
    }
}

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
    /// `None` of an item that no attempt of ours wrote.
    version: Option<AttributeValue>,
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
    /// Which version of the item it is.
    pub(crate) fn version(&self) -> Option<&AttributeValue> {
        self.version.as_ref()
    }

    /// What an item of an older system says, which has no version. It is replaced once and for all.
    pub(crate) fn of_older_system(held: T) -> Self {
        Self {
            held,
            version: None,
        }
    }

    /// What an item says that was put by [`Store::put_over`].
    pub(crate) fn of(
        item: &Item,
        kind: &'static str,
        read: impl FnOnce(&Item) -> Result<T, Error>,
    ) -> Result<Self, Error> {
        let version = item.get(ATTEMPT).cloned();
        Ok(Self {
            held: read(item)?,
            version: Some(version.ok_or_else(|| Error::unreadable(kind, "attempt is missing"))?),
        })
    }
}

impl Store {
    /// Puts an item whose key must be new. One call, one write.
    pub(crate) async fn put_once(&self, item: Item) -> Result<Written, Error> {
        self.put_once_by(Attempt::drawn(), item).await
    }

    /// Puts an item whose key must be new, or this attempt's already. One call, one write.
    pub(crate) async fn put_once_by(&self, by: Attempt, item: Item) -> Result<Written, Error> {
        self.written(by, item, Expected::Nothing).await
    }

    /// Puts an item whose key must be new, or that of an item that has expired by `now`. One call, one
    /// write for each KB.
    pub(crate) async fn put_live_once(
        &self,
        item: Item,
        now: DateTime<Utc>,
    ) -> Result<Written, Error> {
        let expected = Expected::NothingLive(now);
        self.written(Attempt::drawn(), item, expected).await
    }

    async fn written(
        &self,
        by: Attempt,
        item: Item,
        expected: Expected<'_>,
    ) -> Result<Written, Error> {
        Ok(match self.take(by, item, expected).await? {
            Taken::Done => Written::New,
            Taken::Lost(_) => Written::Known,
        })
    }

    /// Puts an item if its key is new, and answers the item that holds the key otherwise. One
    /// call, one write either way.
    pub(crate) async fn put_if_new(&self, item: Item) -> Result<Option<Item>, Error> {
        self.held(item, Expected::Nothing).await
    }

    /// Puts an item if its key is new, or that of an item that has expired by `now`, and answers the item
    /// that holds the key otherwise. One call, one write either way.
    pub(crate) async fn put_live_if_new(
        &self,
        item: Item,
        now: DateTime<Utc>,
    ) -> Result<Option<Item>, Error> {
        self.held(item, Expected::NothingLive(now)).await
    }

    async fn held(&self, item: Item, expected: Expected<'_>) -> Result<Option<Item>, Error> {
        match self.put_if(item, expected).await? {
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
        self.replace(item, (seen, Expected::Nothing), read).await
    }

    /// Puts an item where `seen` stood, or nothing but what has expired by `now`; else as
    /// [`put_over`](Self::put_over).
    pub(crate) async fn put_over_live<T>(
        &self,
        item: Item,
        (seen, now): (Option<&Standing<T>>, DateTime<Utc>),
        read: impl FnOnce(&Item) -> Result<Standing<T>, Error>,
    ) -> Result<Replaced<T>, Error> {
        let expected = Expected::NothingLive(now);
        self.replace(item, (seen, expected), read).await
    }

    async fn replace<T>(
        &self,
        item: Item,
        (seen, vacant): (Option<&Standing<T>>, Expected<'_>),
        read: impl FnOnce(&Item) -> Result<Standing<T>, Error>,
    ) -> Result<Replaced<T>, Error> {
        let expected = seen.map_or(vacant, |seen| {
            let version = seen.version.as_ref();
            version.map_or(Expected::Unversioned, Expected::Version)
        });
        let taken = self.take(Attempt::drawn(), item, expected).await?;
        Ok(match taken {
            Taken::Done => Replaced::Done,
            Taken::Lost(held) => {
                let held = held.as_ref().map(read).transpose()?;
                Replaced::Lost(held.map(Box::new))
            }
        })
    }

    /// Puts an item, with the number of this attempt, where this is expected.
    async fn take(
        &self,
        by: Attempt,
        mut item: Item,
        expected: Expected<'_>,
    ) -> Result<Taken, Error> {
        let version = by.number();
        item.insert(ATTEMPT.to_owned(), version.clone());
        Ok(match self.put_if(item, expected).await? {
            Taken::Lost(Some(held)) if held.get(ATTEMPT) == Some(&version) => Taken::Done,
            taken => taken,
        })
    }

    async fn put_if(&self, item: Item, expected: Expected<'_>) -> Result<Taken, Error> {
        check_size(&item)?;
        let put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(item))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let put = match expected {
            Expected::Nothing => put.condition_expression("attribute_not_exists(PK)"),
            Expected::NothingLive(now) => put
                .condition_expression("attribute_not_exists(PK) OR expires_at <= :now")
                .expression_attribute_values(
                    ":now",
                    AttributeValue::N(now.timestamp().to_string()),
                ),
            Expected::Unversioned => {
                put.condition_expression("attribute_exists(PK) AND attribute_not_exists(attempt)")
            }
            Expected::Version(seen) => put
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

/// Sends an update of which nothing is to be told but that it was made.
pub(crate) async fn updated(update: UpdateItemFluentBuilder) -> Result<(), Error> {
    let updated = update.send().await;
    updated
        .map(|_| ())
        .map_err(|error| Error::unavailable("UpdateItem", &error))
}

/// What a put expects at its key.
#[derive(Clone, Copy)]
enum Expected<'a> {
    /// No item.
    Nothing,
    /// No item but one that has expired by this time, which the table deletes within days.
    NothingLive(DateTime<Utc>),
    /// An item without a version, of an older system.
    Unversioned,
    /// The item of this version.
    Version(&'a AttributeValue),
}

/// What became of a conditional put.
enum Taken {
    /// It stands.
    Done,
    /// The condition did not hold; this stands, if anything.
    Lost(Option<Item>),
}
