//! The table's stream as its readers get it.
//!
//! `template.yaml` declares one pipe for each of [`SUBMITTED`] and [`RESULTS`]; the machine-local
//! relay does the same. A record is DynamoDB's own JSON, for example
//! `{"eventName": "INSERT", "dynamodb": {"Keys": {…}, "NewImage": {"core": {"S": "…"}}}}`.

use hearback_domain::event::EventCore;
use hearback_domain::publication::Outcome;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Error, events, keys};

/// A pipe out of the table: which inserted items it carries, and which of their attributes.
#[derive(Debug, Clone, Copy)]
pub struct Pipe {
    /// The sort key of the items.
    pub sort_key: &'static str,
    /// The attributes that travel, or all of them.
    pub attributes: Option<&'static [&'static str]>,
}

/// Stored events, without what users wrote, for the signal generator.
pub const SUBMITTED: Pipe = Pipe {
    sort_key: keys::EVENT,
    attributes: Some(&[events::CORE, crate::table::EXPIRES_AT]),
};

/// What came of events, for subscribers.
pub const RESULTS: Pipe = Pipe {
    sort_key: keys::RESULT,
    attributes: None,
};

impl Pipe {
    /// The pattern by which EventBridge Pipes picks the records.
    #[must_use]
    pub fn pattern(&self) -> Value {
        serde_json::json!({
            "eventName": ["INSERT"],
            "dynamodb": {"Keys": {"SK": {"S": [self.sort_key]}}},
        })
    }

    /// Whether a record is one of this pipe's.
    #[must_use]
    pub fn takes(&self, record: &Value) -> bool {
        record.pointer("/eventName").and_then(Value::as_str) == Some("INSERT")
            && record
                .pointer("/dynamodb/Keys/SK/S")
                .and_then(Value::as_str)
                == Some(self.sort_key)
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

/// The event of a record of [`SUBMITTED`].
pub fn submitted(body: &str) -> Result<EventCore, Error> {
    let record: Value = serde_json::from_str(body)
        .map_err(|_| Error::unreadable("stream record", "it is not JSON"))?;
    part(&record, events::CORE)
}

/// The outcome of a record of [`RESULTS`].
pub fn result(record: &Value) -> Result<Outcome, Error> {
    part(record, events::OUTCOME)
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
