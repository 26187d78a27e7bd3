//! The table's stream: which records the pipes send, and how functions read them.
//!
//! `template.yaml` declares one pipe for each of [`SUBMITTED`] and [`RESULTS`]; the local relay
//! does the same. A record is DynamoDB's own JSON, for example `{"eventName": "INSERT", "dynamodb":
//! {"Keys": {…}, "NewImage": {"core": {"S": "…"}}}}`.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, Utc};
use hearback_domain::events::event::EventCore;
use hearback_domain::feedback::message_signal::SignalCore;
use hearback_domain::feedback::reaction::ReactionCore;
use hearback_domain::learning::ledger::Retraction;
use hearback_domain::learning::publication::{Outcome, Processed};
use hearback_domain::text::sqs_text;
use hearback_domain::turns::turn::TurnRef;
use hearback_domain::views::insights::TurnFeedback;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::attributes::{
    CORE, FACTS, HOSTED_URI, IS_EXPLICIT, IS_INFERRED, OUTCOME, RETRACTION, SENT,
};
use crate::insights::TurnDigest;
use crate::table::{EXPIRES_AT, HOUR, OCCURRED_AT, PK, SK};
use crate::{Error, Store, keys};

/// The item of a record before the change.
const OLD: &str = "OldImage";
/// The item of a record after the change.
const NEW: &str = "NewImage";

/// The items that a pipe sends, by sort key.
#[derive(Debug, Clone, Copy)]
pub enum ItemFilter {
    /// New items with this sort key.
    New(&'static str),
    /// New items with this sort key, unless the writer sends the message itself
    /// ([`Store::put_sent_event_by`]).
    NewUnsent(&'static str),
    /// New and changed items whose sort key begins with this prefix, and which have this attribute.
    Written(&'static str, &'static str),
    /// Deleted items whose sort key begins with this prefix, and which had this attribute, unless the table deleted them
    /// because they had expired.
    Deleted(&'static str, &'static str),
}

/// A pipe from the table: which items it sends, and which of their attributes.
#[derive(Debug, Clone, Copy)]
pub struct Pipe {
    /// The items.
    pub items: &'static [ItemFilter],
    /// The attributes that are sent; `None` for all.
    pub attributes: Option<&'static [&'static str]>,
}

/// Stored events and their withdrawals, reactions and message signals without free text, for the signal generator.
pub const SUBMITTED: Pipe = Pipe {
    items: &[
        ItemFilter::NewUnsent(keys::EVENT),
        // Items of an older system have no core. That system has processed them.
        ItemFilter::Written(keys::REACTION_PREFIX, CORE),
        ItemFilter::Written(keys::SIGNAL_PREFIX, CORE),
        // Retractions that the signal generator stores have no core.
        ItemFilter::Written(keys::RETRACTION, CORE),
    ],
    attributes: Some(&[CORE]),
};

/// Outcomes of events, for subscribers, and what insights count beside them.
pub const RESULTS: Pipe = Pipe {
    items: &[
        ItemFilter::New(keys::RESULT),
        ItemFilter::New(keys::RETRACTION),
        // An erased event leaves the counts of its hour.
        ItemFilter::Deleted(keys::RESULT, HOUR),
        ItemFilter::Written(keys::TURN_PREFIX, HOUR),
        ItemFilter::Deleted(keys::TURN_PREFIX, HOUR),
    ],
    attributes: None,
};

impl CountedTurn {
    /// The message to insights.
    #[must_use]
    pub fn message(&self) -> Value {
        let within = &self.at.within;
        json!({
            "eventType": "turn.changed",
            "tenant": within.tenant,
            "projectId": within.project,
            "conversationId": within.conversation,
            "turnId": self.at.turn,
            "hour": self.hour,
            "position": self.position,
            "state": self.state,
        })
    }
}

impl ItemFilter {
    /// The filter pattern for EventBridge Pipes.
    fn pattern(self) -> Value {
        match self {
            Self::New(key) => serde_json::json!({
                "eventName": ["INSERT"],
                "dynamodb": {"Keys": {"SK": {"S": [key]}}},
            }),
            Self::NewUnsent(key) => serde_json::json!({
                "eventName": ["INSERT"],
                "dynamodb": {
                    "Keys": {"SK": {"S": [key]}},
                    (NEW): {(SENT): {"S": [{"exists": false}]}},
                },
            }),
            Self::Written(prefix, attribute) => serde_json::json!({
                "eventName": ["INSERT", "MODIFY"],
                "dynamodb": {
                    "Keys": {"SK": {"S": [{"prefix": prefix}]}},
                    (NEW): {(attribute): {"S": [{"exists": true}]}},
                },
            }),
            Self::Deleted(prefix, attribute) => serde_json::json!({
                "eventName": ["REMOVE"],
                "userIdentity": {"type": [{"exists": false}]},
                "dynamodb": {
                    "Keys": {"SK": {"S": [{"prefix": prefix}]}},
                    (OLD): {(attribute): {"S": [{"exists": true}]}},
                },
            }),
        }
    }

    fn matches(self, record: &Value) -> bool {
        let event = record.get("eventName").and_then(Value::as_str);
        let (Some(event), Some(sort_key)) = (event, sort_key(record)) else {
            return false;
        };
        let has_in = |image: &str, name: &str| {
            let image = record
                .pointer("/dynamodb")
                .and_then(|stream| stream.get(image));
            image.and_then(|image| image.get(name)?.get("S")).is_some()
        };
        let has = |name: &str| has_in(NEW, name);
        match self {
            Self::Deleted(prefix, attribute) => {
                let by_table = record.pointer("/userIdentity/type").is_some();
                let is_kind = sort_key.starts_with(prefix) && has_in(OLD, attribute);
                event == "REMOVE" && is_kind && !by_table
            }
            Self::New(key) => event == "INSERT" && sort_key == key,
            Self::NewUnsent(key) => event == "INSERT" && sort_key == key && !has(SENT),
            Self::Written(prefix, attribute) => {
                let written = matches!(event, "INSERT" | "MODIFY");
                written && sort_key.starts_with(prefix) && has(attribute)
            }
        }
    }
}

impl Pipe {
    /// The filter patterns for EventBridge Pipes; a record must match one.
    #[must_use]
    pub fn patterns(&self) -> Vec<Value> {
        self.items.iter().map(|items| items.pattern()).collect()
    }

    /// Whether the pipe sends a record.
    #[must_use]
    pub fn takes(&self, record: &Value) -> bool {
        self.items.iter().any(|items| items.matches(record))
    }

    /// The message that the pipe sends for a record, in characters that queues accept.
    #[must_use]
    pub fn message(&self, record: &Value) -> String {
        sqs_text::escape_json(&self.send(record).to_string()).into_owned()
    }

    /// The JSON value that the pipe sends for a record.
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
            "dynamodb": {"Keys": record.pointer("/dynamodb/Keys"), (NEW): image},
        })
    }
}

/// The message of [`SUBMITTED`] for a new item.
pub(crate) fn message_of(item: &HashMap<String, AttributeValue>) -> String {
    let mut keys = image(item);
    if let Value::Object(keys) = &mut keys {
        keys.retain(|name, _| [PK, SK].contains(&name.as_str()));
    }
    let record = json!({
        "eventName": "INSERT",
        "dynamodb": {"Keys": keys, (NEW): image(item)},
    });
    SUBMITTED.message(&record)
}

/// The record in a dead letter: the key of the item, without its content. For a deleted turn, it also has `log`, the
/// URI of its log, which contains no names.
#[must_use]
pub fn key_record(record: &Value) -> Value {
    let mut dead_letter = json!({
        "eventName": record.get("eventName"),
        "dynamodb": {"Keys": record.pointer("/dynamodb/Keys")},
    });
    if let (Some((_, log)), Value::Object(members)) = (deleted_turn(record), &mut dead_letter) {
        members.insert("log".to_owned(), log.into());
    }
    dead_letter
}

impl Store {
    /// The record of the current item of a dead letter ([`key_record`]); `None` if the item no
    /// longer exists or the dead letter has no key. One call, one read for each 4 KB.
    pub async fn record(&self, dead_letter: &Value) -> Result<Option<Value>, Error> {
        let key = |name| dead_letter.pointer(&format!("/dynamodb/Keys/{name}/S"));
        let key = |name| key(name).and_then(Value::as_str).map(str::to_owned);
        let (Some(pk), Some(sk)) = (key(PK), key(SK)) else {
            return Ok(None);
        };
        let response = self.get(pk, sk).await?;
        Ok(response.item.map(|item| {
            let mut record = key_record(dead_letter);
            if let Some(Value::Object(stream)) = record.get_mut("dynamodb") {
                stream.insert(NEW.to_owned(), image(&item));
            }
            record
        }))
    }
}

/// An item in the format of the stream, with the types of attributes that pipes read.
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

/// The tenant in the key of a record, escaped as in the key.
#[must_use]
pub fn tenant_of(record: &Value) -> Option<&str> {
    let partition = record.pointer("/dynamodb/Keys/PK/S")?.as_str()?;
    partition.split('#').nth(1)
}

fn sort_key(record: &Value) -> Option<&str> {
    record
        .pointer("/dynamodb/Keys/SK/S")
        .and_then(Value::as_str)
}

/// A record of [`SUBMITTED`].
#[derive(Debug, Clone, PartialEq)]
pub enum Submitted {
    /// An event was stored.
    Event(Box<EventCore>),
    /// A reaction was written.
    Reaction(Box<ReactionCore>),
    /// A message signal or its tombstone was written.
    Signal(Box<SignalCore>),
    /// An event was withdrawn.
    Withdrawal(Box<EventCore>),
}

/// Reads a record of [`SUBMITTED`].
pub fn submitted(body: &str) -> Result<Submitted, Error> {
    let record: Value = serde_json::from_str(body)
        .map_err(|_| Error::unreadable("stream record", "it is not JSON"))?;
    let of_kind = |prefix| sort_key(&record).is_some_and(|key| key.starts_with(prefix));
    if of_kind(keys::REACTION_PREFIX) {
        part(&record, CORE).map(|core| Submitted::Reaction(Box::new(core)))
    } else if of_kind(keys::SIGNAL_PREFIX) {
        part(&record, CORE).map(|core| Submitted::Signal(Box::new(core)))
    } else if of_kind(keys::RETRACTION) {
        part(&record, CORE).map(|core| Submitted::Withdrawal(Box::new(core)))
    } else {
        part(&record, CORE).map(|core| Submitted::Event(Box::new(core)))
    }
}

/// The turn whose row was deleted, and the key of its log.
#[must_use]
pub fn deleted_turn(record: &Value) -> Option<(TurnRef, String)> {
    let is_turn = sort_key(record).is_some_and(|key| key.starts_with(keys::TURN_PREFIX));
    if !is_turn || !is_removal(record) {
        return None;
    }
    let log = text(record, OLD, HOSTED_URI)?;
    Some((turn_of(record, OLD)?, log.to_owned()))
}

/// The turn of a record: as its key names it, or as this image does.
fn turn_of(record: &Value, image: &str) -> Option<TurnRef> {
    let partition = record
        .pointer("/dynamodb/Keys/PK/S")
        .and_then(Value::as_str);
    let named = partition.zip(sort_key(record));
    let named = named.and_then(|(partition, key)| keys::turn_of(partition, key));
    // The key of a turn with long names has digests of them.
    named.or_else(|| image_part(record, image, CORE).ok())
}

/// A record of [`RESULTS`].
#[derive(Debug, Clone, PartialEq)]
pub enum ResultRecord {
    /// An event has an outcome.
    Outcome(Outcome),
    /// An event was retracted.
    Retraction(Box<Retraction>),
    /// An event was erased.
    Erased(Box<Processed>),
    /// What insights count of a turn changed.
    Turn(Box<CountedTurn>),
    /// A turn was changed, and what insights count of it was not.
    Unchanged,
}

/// A turn that insights count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedTurn {
    /// The turn.
    pub at: TurnRef,
    /// Its hour.
    pub hour: DateTime<Utc>,
    /// Its position in the hour.
    pub position: String,
    /// What is counted of it; `None` if it was deleted.
    pub state: Option<TurnDigest>,
}

/// Reads a record of [`RESULTS`].
pub fn result(record: &Value) -> Result<ResultRecord, Error> {
    if sort_key(record) == Some(keys::RETRACTION) {
        return part(record, RETRACTION)
            .map(Box::new)
            .map(ResultRecord::Retraction);
    }
    if sort_key(record).is_some_and(|key| key.starts_with(keys::TURN_PREFIX)) {
        return if changes_counts(record) {
            counted_turn(record).map(Box::new).map(ResultRecord::Turn)
        } else {
            Ok(ResultRecord::Unchanged)
        };
    }
    if !is_removal(record) {
        return part(record, OUTCOME).map(ResultRecord::Outcome);
    }
    match image_part(record, OLD, OUTCOME)? {
        Outcome::Processed(erased) => Ok(ResultRecord::Erased(erased)),
        outcome @ Outcome::Deduplicated { .. } => Ok(ResultRecord::Outcome(outcome)),
    }
}

/// Whether a record of a turn changes what insights count. A dead letter has only the new image, and may.
fn changes_counts(record: &Value) -> bool {
    let image = |name: &str| {
        record
            .pointer("/dynamodb")
            .and_then(|stream| stream.get(name))
    };
    let (Some(old), Some(new)) = (image(OLD), image(NEW)) else {
        return true;
    };
    let counted = [OCCURRED_AT, FACTS, IS_EXPLICIT, IS_INFERRED, EXPIRES_AT];
    counted.iter().any(|name| old.get(name) != new.get(name))
}

fn counted_turn(record: &Value) -> Result<CountedTurn, Error> {
    let is_deleted = is_removal(record);
    let image = if is_deleted { OLD } else { NEW };
    let text = |name: &str| text(record, image, name);
    let is_set = |name: &str| attribute(record, image, name)?.get("BOOL")?.as_bool();
    let feedback = TurnFeedback {
        is_explicit: is_set(IS_EXPLICIT) == Some(true),
        is_inferred: is_set(IS_INFERRED) == Some(true),
    };
    let state = || TurnDigest::new(text(FACTS).unwrap_or_default(), feedback);
    let hour = text(HOUR).and_then(keys::hour_of);
    let position = text(OCCURRED_AT).map(ToOwned::to_owned);
    let place = turn_of(record, image).zip(hour).zip(position);
    let ((at, hour), position) =
        place.ok_or_else(|| Error::unreadable("stream record", "its turn or hour is invalid"))?;
    Ok(CountedTurn {
        at,
        hour,
        position,
        state: (!is_deleted).then(state),
    })
}

fn part<T: DeserializeOwned>(record: &Value, name: &str) -> Result<T, Error> {
    image_part(record, NEW, name)
}

fn image_part<T: DeserializeOwned>(record: &Value, image: &str, name: &str) -> Result<T, Error> {
    let text = text(record, image, name)
        .ok_or_else(|| Error::unreadable("stream record", format!("{name} is missing")))?;
    serde_json::from_str(text).map_err(|error| Error::undecodable("stream record", &error))
}

fn text<'a>(record: &'a Value, image: &str, name: &str) -> Option<&'a str> {
    attribute(record, image, name)?.get("S")?.as_str()
}

fn attribute<'a>(record: &'a Value, image: &str, name: &str) -> Option<&'a Value> {
    record.pointer("/dynamodb")?.get(image)?.get(name)
}

/// Whether a record says that an item was deleted.
fn is_removal(record: &Value) -> bool {
    record.get("eventName").and_then(Value::as_str) == Some("REMOVE")
}
