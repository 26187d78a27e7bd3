//! Conditional writes: an item is inserted if its key is free, or replaces the version that was read.
//!
//! Such an item has the number of the token that wrote it, which is its version. A call that the SDK repeats, because
//! the first response was lost, recognizes its own write by it and does not report a conflict with itself.

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::error::ConditionalCheckFailedException;
use aws_sdk_dynamodb::types::{
    AttributeValue, ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure,
};
use chrono::{DateTime, Utc};
use hearback_domain::text::digest::digest;
use uuid::Uuid;

use crate::item::{self, Item, check_size};
use crate::{Error, Store};

/// The attribute with the number of the token that wrote an item.
pub(crate) const ATTEMPT: &str = "attempt";

/// Identifies a write. An item has the number of the token that wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteToken(u32);

impl WriteToken {
    /// A new token.
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::new_v4().as_fields().0)
    }

    /// The same token for the same names, so that a worker that repeats a task recognizes what it has written.
    #[must_use]
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let [a, b, c, d, ..] = digest(names);
        Self(u32::from_be_bytes([a, b, c, d]))
    }

    /// The number of an item that this token writes.
    pub(crate) fn number(self) -> AttributeValue {
        AttributeValue::N(self.0.to_string())
    }
}

/// The outcome of an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// The item is new.
    New,
    /// There was an item, which is unchanged.
    AlreadyExists,
}

/// A value with the version of its item.
#[derive(Debug, Clone, PartialEq)]
pub struct Versioned<T> {
    /// The value.
    pub value: T,
    /// `None` for an item of an older system.
    version: Option<AttributeValue>,
}

/// The outcome of a replacement.
#[derive(Debug, Clone, PartialEq)]
pub enum Replaced<T> {
    /// The item is replaced.
    Done,
    /// Another writer won; its value, if there is one.
    Conflict(Option<Box<Versioned<T>>>),
}

/// The outcome of one attempt of [`update`].
#[derive(Debug)]
pub enum Attempt<T, R> {
    /// The update is finished.
    Finished(R),
    /// Another writer won; its value, if there is one.
    Conflict(Option<Box<Versioned<T>>>),
}

impl<T, R> Attempt<T, R> {
    /// The attempt that ends with this replacement, and with `result` if that is done.
    pub fn of(replaced: Replaced<T>, result: R) -> Self {
        match replaced {
            Replaced::Done => Self::Finished(result),
            Replaced::Conflict(current) => Self::Conflict(current),
        }
    }
}

/// An optimistic update: attempts it with the current value, and after a conflict with the value of the winning writer.
/// `None` if every one of `attempts` had a conflict.
pub async fn update<T, R, E, F>(
    attempts: usize,
    mut current: Option<Versioned<T>>,
    mut attempt: impl FnMut(Option<Versioned<T>>) -> F,
) -> Result<Option<R>, E>
where
    F: Future<Output = Result<Attempt<T, R>, E>>,
{
    for _ in 0..attempts {
        match attempt(current).await? {
            Attempt::Finished(result) => return Ok(Some(result)),
            Attempt::Conflict(winner) => current = winner.map(|winner| *winner),
        }
    }
    Ok(None)
}

impl<T> Versioned<T> {
    pub(crate) fn condition(&self) -> Condition<'_> {
        Condition::still(self.version.as_ref())
    }

    /// The value of an item of an older system, which has no version.
    pub(crate) fn of_older_system(value: T) -> Self {
        Self {
            value,
            version: None,
        }
    }

    /// The value of an item that [`Store::replace`] wrote.
    pub(crate) fn of(
        item: &Item,
        kind: &'static str,
        read: impl FnOnce(&Item) -> Result<T, Error>,
    ) -> Result<Self, Error> {
        let version = item.get(ATTEMPT).cloned();
        Ok(Self {
            value: read(item)?,
            version: Some(version.ok_or_else(|| Error::unreadable(kind, "attempt is missing"))?),
        })
    }
}

impl Store {
    /// Inserts an item. One call, one write.
    pub(crate) async fn insert(&self, item: Item) -> Result<Written, Error> {
        self.insert_by(WriteToken::random(), item).await
    }

    /// Inserts an item, unless this token has inserted it before. One call, one write.
    pub(crate) async fn insert_by(&self, token: WriteToken, item: Item) -> Result<Written, Error> {
        self.written(token, item, Condition::Free).await
    }

    /// Inserts an item, or replaces one that has expired by `now`. One call, one write for each KB.
    pub(crate) async fn insert_live(
        &self,
        item: Item,
        now: DateTime<Utc>,
    ) -> Result<Written, Error> {
        let condition = Condition::FreeOrExpired(now);
        self.written(WriteToken::random(), item, condition).await
    }

    async fn written(
        &self,
        token: WriteToken,
        item: Item,
        condition: Condition<'_>,
    ) -> Result<Written, Error> {
        Ok(match self.put_by(token, item, condition).await? {
            WriteOutcome::Done => Written::New,
            WriteOutcome::Conflict(_) => Written::AlreadyExists,
        })
    }

    /// Inserts an item, or returns the one that has its key. One call, one write either way.
    pub(crate) async fn insert_or_get(&self, item: Item) -> Result<Option<Item>, Error> {
        self.existing(item, Condition::Free).await
    }

    /// Inserts an item, or replaces one that has expired by `now`, or returns the one that has its key. One call, one
    /// write in each case.
    pub(crate) async fn insert_live_or_get(
        &self,
        item: Item,
        now: DateTime<Utc>,
    ) -> Result<Option<Item>, Error> {
        self.existing(item, Condition::FreeOrExpired(now)).await
    }

    async fn existing(&self, item: Item, condition: Condition<'_>) -> Result<Option<Item>, Error> {
        match self.put_if(item, condition).await? {
            WriteOutcome::Done => Ok(None),
            WriteOutcome::Conflict(existing) => existing
                .map(Some)
                .ok_or_else(|| Error::unreadable("item", "the item with its key was not returned")),
        }
    }

    /// Replaces the version that was read, or inserts if nothing was read. `read` reads the winner's item of a
    /// conflict. One call, one write for each KB.
    pub(crate) async fn replace<T>(
        &self,
        item: Item,
        current: Option<&Versioned<T>>,
        read: impl FnOnce(&Item) -> Result<Versioned<T>, Error>,
    ) -> Result<Replaced<T>, Error> {
        let condition = current.map_or(Condition::Free, Versioned::condition);
        let put = self.put_by(WriteToken::random(), item, condition).await?;
        Ok(match put {
            WriteOutcome::Done => Replaced::Done,
            WriteOutcome::Conflict(winner) => {
                let winner = winner.as_ref().map(read).transpose()?;
                Replaced::Conflict(winner.map(Box::new))
            }
        })
    }

    /// Like [`replace`](Self::replace), but ignores an item that has expired by `now`, and replaces one that cannot be
    /// read, with a second call.
    pub(crate) async fn replace_live<T>(
        &self,
        item: Item,
        (current, now): (Option<&Versioned<T>>, DateTime<Utc>),
        read: impl FnOnce(&Item) -> Result<Versioned<T>, Error>,
    ) -> Result<Replaced<T>, Error> {
        let free = Condition::FreeOrExpired(now);
        let condition = current.map_or(free, Versioned::condition);
        let token = WriteToken::random();
        let WriteOutcome::Conflict(winner) = self.put_by(token, item.clone(), condition).await?
        else {
            return Ok(Replaced::Done);
        };
        let Some(winner) = winner else {
            return Ok(Replaced::Conflict(None));
        };
        if let Some(winner) = item::readable(&winner, read(&winner)) {
            return Ok(Replaced::Conflict(Some(Box::new(winner))));
        }
        let condition = Condition::still(winner.get(ATTEMPT));
        Ok(match self.put_by(token, item, condition).await? {
            WriteOutcome::Done => Replaced::Done,
            WriteOutcome::Conflict(_) => Replaced::Conflict(None),
        })
    }

    /// Replaces an item if this attribute is still `before`, or still missing; `false` if not. One call, one write for
    /// each KB.
    pub(crate) async fn replace_unchanged(
        &self,
        item: Item,
        attribute: &str,
        before: Option<&AttributeValue>,
    ) -> Result<bool, Error> {
        let put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(item))
            .expression_attribute_names("#unchanged", attribute)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let put = match before {
            Some(before) => put
                .condition_expression("#unchanged = :before")
                .expression_attribute_values(":before", before.clone()),
            None => put.condition_expression("attribute_not_exists(#unchanged)"),
        };
        changed("PutItem", put.send().await)
    }

    /// Puts an item with the number of this token.
    async fn put_by(
        &self,
        token: WriteToken,
        mut item: Item,
        condition: Condition<'_>,
    ) -> Result<WriteOutcome, Error> {
        let version = token.number();
        item.insert(ATTEMPT.to_owned(), version.clone());
        Ok(match self.put_if(item, condition).await? {
            WriteOutcome::Conflict(Some(winner)) if winner.get(ATTEMPT) == Some(&version) => {
                WriteOutcome::Done
            }
            put => put,
        })
    }

    async fn put_if(&self, item: Item, condition: Condition<'_>) -> Result<WriteOutcome, Error> {
        check_size(&item)?;
        let put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(item))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let (condition, values) = condition.expression();
        let put = put
            .condition_expression(condition)
            .set_expression_attribute_values(values);
        outcome("PutItem", put.send().await)
    }
}

/// The outcome of a conditional write.
pub(crate) fn outcome<T, E: ConditionalError>(
    operation: &'static str,
    response: Result<T, SdkError<E, HttpResponse>>,
) -> Result<WriteOutcome, Error> {
    let Err(error) = response else {
        return Ok(WriteOutcome::Done);
    };
    match error.as_service_error().and_then(E::condition_failed) {
        Some(failed) => Ok(WriteOutcome::Conflict(failed.item().cloned())),
        None => Err(Error::unavailable(operation, &error)),
    }
}

/// Whether a conditional write changed anything: `false` if its condition was false.
pub(crate) fn changed<T, E: ConditionalError>(
    operation: &'static str,
    response: Result<T, SdkError<E, HttpResponse>>,
) -> Result<bool, Error> {
    Ok(matches!(outcome(operation, response)?, WriteOutcome::Done))
}

/// The error of a call that may have a condition.
pub(crate) trait ConditionalError: ProvideErrorMetadata {
    fn condition_failed(&self) -> Option<&ConditionalCheckFailedException>;
}

macro_rules! conditional_error {
    ($($error:ident),+) => {$(
        impl ConditionalError for $error {
            fn condition_failed(&self) -> Option<&ConditionalCheckFailedException> {
                match self {
                    Self::ConditionalCheckFailedException(failed) => Some(failed),
                    _ => None,
                }
            }
        }
    )+};
}

conditional_error!(PutItemError, UpdateItemError, DeleteItemError);

/// Sends an update whose response does not matter.
pub(crate) async fn updated(update: UpdateItemFluentBuilder) -> Result<(), Error> {
    let updated = update.send().await;
    updated
        .map(|_| ())
        .map_err(|error| Error::unavailable("UpdateItem", &error))
}

/// The condition of a put.
#[derive(Clone, Copy)]
pub(crate) enum Condition<'a> {
    /// The key is free.
    Free,
    /// The key is free, or its item has expired by this time; the table deletes expired items
    /// within days.
    FreeOrExpired(DateTime<Utc>),
    /// The item has no version: an older system wrote it.
    Unversioned,
    /// The item has this version.
    Version(&'a AttributeValue),
}

impl<'a> Condition<'a> {
    /// The item still has this version, or none.
    pub(crate) fn still(version: Option<&'a AttributeValue>) -> Self {
        version.map_or(Self::Unversioned, Self::Version)
    }

    /// The condition expression with its values.
    pub(crate) fn expression(self) -> (&'static str, Option<Item>) {
        let with = |name: &str, value| Some([(name.to_owned(), value)].into());
        match self {
            Self::Free => ("attribute_not_exists(PK)", None),
            Self::FreeOrExpired(now) => (
                "attribute_not_exists(PK) OR expires_at <= :now",
                with(":now", AttributeValue::N(now.timestamp().to_string())),
            ),
            Self::Unversioned => (
                "attribute_exists(PK) AND attribute_not_exists(attempt)",
                None,
            ),
            Self::Version(seen) => ("attempt = :seen", with(":seen", seen.clone())),
        }
    }
}

pub(crate) enum WriteOutcome {
    Done,
    /// The condition was false; this item has the key, if there is one.
    Conflict(Option<Item>),
}
