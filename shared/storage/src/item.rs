//! Stored items: the key, one JSON text for each part, and the expiry.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
use crate::damage::{self, Damaged, Loss};
use crate::table::{EXPIRES_AT, PK, SK};

pub(crate) type Item = HashMap<String, AttributeValue>;

/// Largest item that DynamoDB stores, in bytes with the names of its attributes.
pub const LARGEST: usize = 400 * 1024;

/// The size of an item as DynamoDB measures it: attribute names and values.
pub(crate) fn size(item: &Item) -> usize {
    let sizes = item
        .iter()
        .map(|(name, value)| name.len() + value_size(value));
    sizes.sum()
}

/// The size of a value of a type that the table uses.
fn value_size(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) => text.len(),
        // One byte for two digits, and two bytes for exponent and sign.
        AttributeValue::N(number) => number.len().div_ceil(2) + 2,
        AttributeValue::B(bytes) => bytes.as_ref().len(),
        _ => 1,
    }
}

/// Rejects an item that is too large, with its size, which the error of DynamoDB does not have.
pub(crate) fn check_size(item: &Item) -> Result<(), Error> {
    let measured = size(item);
    if measured <= LARGEST {
        Ok(())
    } else {
        Err(Error::TooLarge { measured })
    }
}

/// Builds an item.
pub(crate) struct Builder(Item);

impl Builder {
    pub(crate) fn new(pk: String, sk: impl Into<String>) -> Self {
        Self(Item::from([
            (PK.to_owned(), AttributeValue::S(pk)),
            (SK.to_owned(), AttributeValue::S(sk.into())),
        ]))
    }

    /// Adds a part as JSON text.
    pub(crate) fn json(
        mut self,
        kind: &'static str,
        name: &str,
        part: &impl Serialize,
    ) -> Result<Self, Error> {
        self.0.insert(name.to_owned(), text_of(kind, part)?);
        Ok(self)
    }

    pub(crate) fn string(mut self, name: &str, value: String) -> Self {
        self.0.insert(name.to_owned(), AttributeValue::S(value));
        self
    }

    pub(crate) fn number(mut self, name: &str, value: impl Into<serde_json::Number>) -> Self {
        self.0
            .insert(name.to_owned(), AttributeValue::N(value.into().to_string()));
        self
    }

    /// Sets the expiry to `days` after `from`.
    pub(crate) fn expires(self, from: DateTime<Utc>, days: u16) -> Self {
        let at = from + TimeDelta::days(i64::from(days));
        self.number(EXPIRES_AT, at.timestamp())
    }

    /// Sets the expiry; an item without one is kept.
    pub(crate) fn expires_at(self, at: Option<DateTime<Utc>>) -> Self {
        match at {
            Some(at) => self.number(EXPIRES_AT, at.timestamp()),
            None => self,
        }
    }

    pub(crate) fn build(self) -> Item {
        self.0
    }
}

/// A part as JSON text.
pub(crate) fn text_of(kind: &'static str, part: &impl Serialize) -> Result<AttributeValue, Error> {
    let text = serde_json::to_string(part);
    text.map(AttributeValue::S)
        .map_err(|error| Error::undecodable(kind, &error))
}

/// Reads a part that is JSON text.
pub(crate) fn json<T: DeserializeOwned>(
    item: &Item,
    kind: &'static str,
    name: &str,
) -> Result<T, Error> {
    serde_json::from_str(string(item, kind, name)?)
        .map_err(|error| Error::undecodable(kind, &error))
}

/// The first member with this name in a JSON text that is damaged elsewhere, if it is a string.
pub(crate) fn embedded_string(text: &str, member: &str) -> Option<String> {
    let (_, value) = text.split_once(&format!("\"{member}\":"))?;
    let mut values = serde_json::Deserializer::from_str(value).into_iter::<String>();
    values.next()?.ok()
}

/// A row among others: one that cannot be read is left out, with a warning that names its kind and its tenant.
pub(crate) fn readable<T>(item: &Item, read: Result<T, Error>) -> Option<T> {
    match read {
        Ok(read) => Some(read),
        Err(error) => {
            let part = |name| item.get(name).and_then(|value| value.as_s().ok());
            let mut partition = part(PK).map_or("", String::as_str).split('#');
            let (kind, tenant) = (partition.next(), partition.next());
            let row = part(SK).and_then(|key| key.split('#').next());
            let damaged = Damaged {
                partition: Some(kind.unwrap_or_default()),
                row: row.filter(|row| row.bytes().all(|byte| byte.is_ascii_uppercase())),
                tenant: Some(tenant.unwrap_or_default()),
                key: None,
            };
            let message = "a row that cannot be read is left out";
            damage::note(Loss::LeftOut, &damaged, &error, message);
            None
        }
    }
}

/// Reads a string.
pub(crate) fn string<'a>(item: &'a Item, kind: &'static str, name: &str) -> Result<&'a str, Error> {
    item.get(name)
        .and_then(|value| value.as_s().ok())
        .map(String::as_str)
        .ok_or_else(|| Error::unreadable(kind, format!("{name} is missing")))
}

/// Reads a whole number.
pub(crate) fn number(item: &Item, kind: &'static str, name: &str) -> Result<u64, Error> {
    item.get(name)
        .and_then(|value| value.as_n().ok())
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Error::unreadable(kind, format!("{name} is missing")))
}

/// When an item expires, if it does.
pub(crate) fn expires_at(item: &Item) -> Option<DateTime<Utc>> {
    let expires = item.get(EXPIRES_AT).and_then(|value| value.as_n().ok());
    let seconds = expires.and_then(|text| text.parse().ok());
    seconds.and_then(|seconds| DateTime::from_timestamp(seconds, 0))
}

/// Whether an item has expired. The table deletes it within days.
pub(crate) fn is_expired(item: &Item, now: DateTime<Utc>) -> bool {
    expires_at(item).is_some_and(|expires| expires <= now)
}
