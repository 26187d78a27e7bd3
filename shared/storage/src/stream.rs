//! The table's stream as its readers get it.
//!
//! `template.yaml` declares one pipe for each of [`SUBMITTED`] and [`RESULTS`]; the machine-local
//! relay does the same. A record is DynamoDB's own JSON, for example
//! `{"eventName": "INSERT", "dynamodb": {"Keys": {…}, "NewImage": {"core": {"S": "…"}}}}`.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use hearback_domain::carried;
use hearback_domain::event::EventCore;
use hearback_domain::ledger::Retraction;
use hearback_domain::message_signal::SignalCore;
use hearback_domain::publication::Outcome;
use hearback_domain::reaction::ReactionCore;
use hearback_domain::turn::TurnRef;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::table::{PK, SK};
use crate::{Error, Store, events, keys, turns};

/// Items that a pipe takes, by how their sort key reads.
#[derive(Debug, Clone, Copy)]
pub enum Items {
    /// Those with this sort key, when they are new.
    New(&'static str),
    /// Those whose sort key begins so, whenever they are written.
    Written(&'static str),
}

/// A pipe out of the table: which items it carries, and which of their attributes.
#[derive(Debug, Clone, Copy)]
pub struct Pipe {
    /// The items.
    pub items: &'static [Items],
    /// The attributes that travel, or all of them.
    pub attributes: Option<&'static [&'static str]>,
}

/// Stored events, reactions and message signals, without what users wrote, for the signal
/// generator.
pub const SUBMITTED: Pipe = Pipe {
    items: &[
        Items::New(keys::EVENT),
        Items::Written(keys::REACTION_PREFIX),
        Items::Written(keys::SIGNAL_PREFIX),
    ],
    attributes: Some(&[events::CORE]),
};

/// What came of events, for subscribers.
pub const RESULTS: Pipe = Pipe {
    items: &[Items::New(keys::RESULT), Items::New(keys::RETRACTION)],
    attributes: None,
};

impl Items {
    /// The pattern by which EventBridge Pipes picks the records.
    fn pattern(self) -> Value {
        match self {
            Self::New(key) => serde_json::json!({
                "eventName": ["INSERT"],
                "dynamodb": {"Keys": {"SK": {"S": [key]}}},
            }),
            Self::Written(prefix) => serde_json::json!({
                "eventName": ["INSERT", "MODIFY"],
                "dynamodb": {
                    "Keys": {"SK": {"S": [{"prefix": prefix}]}},
                    // What an older system wrote has none, and taught there what it had to.
                    "NewImage": {(events::CORE): {"S": [{"exists": true}]}},
                },
            }),
        }
    }

    fn take(self, event: &str, sort_key: &str, has_core: bool) -> bool {
        match self {
            Self::New(key) => event == "INSERT" && sort_key == key,
            Self::Written(prefix) => {
                let written = matches!(event, "INSERT" | "MODIFY");
                written && has_core && sort_key.starts_with(prefix)
            }
        }
    }
}

impl Pipe {
    /// The patterns by which EventBridge Pipes picks the records; one of them is enough.
    #[must_use]
    pub fn patterns(&self) -> Vec<Value> {
        self.items.iter().map(|items| items.pattern()).collect()
    }

    /// Whether a record is one of this pipe's.
    #[must_use]
    pub fn takes(&self, record: &Value) -> bool {
        let event = record.get("eventName").and_then(Value::as_str);
        let (Some(event), Some(key)) = (event, sort_key(record)) else {
            return false;
        };
        let has_core = record.pointer("/dynamodb/NewImage/core/S").is_some();
        self.items
            .iter()
            .any(|items| items.take(event, key, has_core))
    }

    /// The message that the pipe sends of a record, in characters that queues carry.
    #[must_use]
    pub fn message(&self, record: &Value) -> String {
        carried::json(&self.send(record).to_string()).into_owned()
    }

    /// What the pipe sends of a record.
    #[must_use]
    pub fn send(&self, record: &Value) -> Value {
        let mut image = record
            .pointer("/dynamodb/NewImage")
            .cloned()
            .unwrap_or_default();
        if let (Some(attributes), Value::Object(members)) = (self.attributes, &mut image) {
            members.retain(|name, _| attributes.contains(&name.as_str()));
        }
        serde_json::json!({
            "eventName": record.get("eventName"),
            "dynamodb": {"Keys": record.pointer("/dynamodb/Keys"), "NewImage": image},
        })
    }
}

/// What a dead letter says of a record: where its item is, and nothing of what is in it.
#[must_use]
pub fn place(record: &Value) -> Value {
    json!({
        "eventName": record.get("eventName"),
        "dynamodb": {"Keys": record.pointer("/dynamodb/Keys")},
    })
}

impl Store {
    /// The record of an item as it is now, by the [`place`] that a dead letter has of it; `None` if the item is gone,
    /// or the letter names none. One call, one read for each 4 KB.
    pub async fn record(&self, letter: &Value) -> Result<Option<Value>, Error> {
        let key = |name| letter.pointer(&format!("/dynamodb/Keys/{name}/S"));
        let key = |name| key(name).and_then(Value::as_str).map(str::to_owned);
        let (Some(pk), Some(sk)) = (key(PK), key(SK)) else {
            return Ok(None);
        };
        let found = self.get(pk, sk).await?;
        Ok(found.item.map(|item| {
            let mut record = place(letter);
            if let Some(Value::Object(stream)) = record.get_mut("dynamodb") {
                stream.insert("NewImage".to_owned(), image(&item));
            }
            record
        }))
    }
}

/// An item as the stream shows it, with the kinds of attributes that pipes read.
fn image(item: &HashMap<String, AttributeValue>) -> Value {
    let attributes = item.iter().filter_map(|(name, value)| {
        let value = match value {
            AttributeValue::S(text) => json!({"S": text}),
            AttributeValue::N(number) => json!({"N": number}),
            AttributeValue::Bool(flag) => json!({"BOOL": flag}),
            _ => return None,
        };
        Some((name.clone(), value))
    });
    Value::Object(attributes.collect::<Map<_, _>>())
}

fn sort_key(record: &Value) -> Option<&str> {
    record
        .pointer("/dynamodb/Keys/SK/S")
        .and_then(Value::as_str)
}

/// What a record of [`SUBMITTED`] is about.
#[derive(Debug, Clone, PartialEq)]
pub enum Submitted {
    /// An event was stored.
    Event(Box<EventCore>),
    /// A reaction was put in its place.
    Reaction(Box<ReactionCore>),
    /// A message's signal was put in its place, or its tombstone.
    Signal(Box<SignalCore>),
}

/// Reads a record of [`SUBMITTED`].
pub fn submitted(body: &str) -> Result<Submitted, Error> {
    let record: Value = serde_json::from_str(body)
        .map_err(|_| Error::unreadable("stream record", "it is not JSON"))?;
    let of_kind = |prefix| sort_key(&record).is_some_and(|key| key.starts_with(prefix));
    if of_kind(keys::REACTION_PREFIX) {
        part(&record, events::CORE).map(|core| Submitted::Reaction(Box::new(core)))
    } else if of_kind(keys::SIGNAL_PREFIX) {
        part(&record, events::CORE).map(|core| Submitted::Signal(Box::new(core)))
    } else {
        part(&record, events::CORE).map(|core| Submitted::Event(Box::new(core)))
    }
}

/// The turn whose row a record tells that it was deleted, and where its log was.
#[must_use]
pub fn deleted_turn(record: &Value) -> Option<(TurnRef, String)> {
    let key = sort_key(record).filter(|key| key.starts_with(keys::TURN_PREFIX));
    key.filter(|_| record.get("eventName").and_then(Value::as_str) == Some("REMOVE"))?;
    let part = |name: &str| {
        let image = record.pointer("/dynamodb/OldImage")?;
        image.get(name)?.get("S")?.as_str()
    };
    let at = serde_json::from_str(part(turns::CORE)?).ok()?;
    Some((at, part(turns::HOSTED_URI)?.to_owned()))
}

/// What a record of [`RESULTS`] is about.
#[derive(Debug, Clone, PartialEq)]
pub enum Published {
    /// Something came of an event.
    Outcome(Outcome),
    /// An event no longer holds.
    Retraction(Box<Retraction>),
}

/// Reads a record of [`RESULTS`].
pub fn result(record: &Value) -> Result<Published, Error> {
    if sort_key(record) == Some(keys::RETRACTION) {
        part(record, events::RETRACTION)
            .map(Box::new)
            .map(Published::Retraction)
    } else {
        part(record, events::OUTCOME).map(Published::Outcome)
    }
}

fn part<T: DeserializeOwned>(record: &Value, name: &str) -> Result<T, Error> {
    let text = record
        .pointer("/dynamodb/NewImage")
        .and_then(|image| image.get(name))
        .and_then(|attribute| attribute.get("S"))
        .and_then(Value::as_str)
        .ok_or_else(|| Error::unreadable("stream record", format!("{name} is missing")))?;
    serde_json::from_str(text).map_err(|error| Error::undecodable("stream record", &error))
}
