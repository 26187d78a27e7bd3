//! What is stored of a rejected event: the whole body, or, for an anonymous event, only its structure.
//!
//! Raw values of anonymous events are never stored. An invalid event may contain them anywhere, so only members that
//! are known to be harmless are kept.

use serde_json::{Map, Value};
use uuid::Uuid;

use hearback_scrub::REMOVED;

/// Names of an event's members, at any depth. Other names may be raw values.
const KNOWN: &[&str] = &[
    "accepted",
    "agentId",
    "anonymize",
    "artifactComplexity",
    "artifactFormat",
    "artifactId",
    "artifactType",
    "codeStyle",
    "comment",
    "context",
    "conversationId",
    "correctedValue",
    "correctionData",
    "correctionType",
    "data",
    "events",
    "excludeFromTraining",
    "feedbackChannel",
    "feedbackId",
    "feedbackType",
    "labels",
    "modifiedElements",
    "originalValue",
    "privacyFlags",
    "projectId",
    "rating",
    "responseLength",
    "retentionDays",
    "scrollPercentage",
    "sessionId",
    "strategy",
    "taskType",
    "timeSpent",
    "timestamp",
    "turnId",
    "userExperience",
    "userId",
];

/// The part of a rejected body that may be stored.
#[must_use]
pub fn storable_body(body: &Value) -> Value {
    if requests_anonymity(body) {
        structure(body)
    } else {
        body.clone()
    }
}

/// The part of a rejected text that is not JSON that may be stored: nothing if it may belong to an anonymous event.
#[must_use]
pub fn storable_text(text: &str) -> Option<&str> {
    (!text.contains("anonymize")).then_some(text)
}

/// Whether a body contains an anonymous event: `anonymize` at any depth with any value except `null` and `false`. It
/// also finds invalid values such as `"yes"`, and events in an envelope.
#[must_use]
pub fn requests_anonymity(body: &Value) -> bool {
    match body {
        Value::Object(members) => members.iter().any(|(name, value)| {
            let asks = name == "anonymize" && !matches!(value, Value::Null | Value::Bool(false));
            asks || requests_anonymity(value)
        }),
        Value::Array(values) => values.iter().any(requests_anonymity),
        // An event may be embedded in a string.
        Value::String(text) => text.contains("anonymize"),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The structure of a value: its known members, without strings and numbers.
fn structure(value: &Value) -> Value {
    match value {
        // A number may be a telephone number.
        Value::String(_) | Value::Number(_) => Value::from(REMOVED),
        Value::Array(values) => values.iter().map(structure).collect(),
        Value::Object(members) => {
            let members = members.iter();
            let known = members.filter(|(name, _)| KNOWN.contains(&name.as_str()));
            let members = known.map(|(name, value)| (name.clone(), member(name, value)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) => value.clone(),
    }
}

/// The event's id is kept: the caller needs it to find the event, and it does not identify a person.
fn member(name: &str, value: &Value) -> Value {
    let id = value.as_str().filter(|_| name == "feedbackId");
    match id.and_then(|id| Uuid::try_parse(id).ok()) {
        Some(id) => Value::from(id.to_string()),
        None => structure(value),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use hearback_wire::FromJson;
    use serde_json::json;

    use super::*;
    use crate::events::submission::FeedbackEventRequest;

    #[test]
    fn every_member_of_an_event_is_known() {
        let mut schemas = Vec::new();
        FeedbackEventRequest::add_schemas(&mut schemas);
        let schemas = schemas.into_iter().map(|(_, schema)| json!(schema));
        let members: BTreeSet<_> = schemas
            .filter_map(|schema| schema["properties"].as_object().cloned())
            .flat_map(|properties| properties.into_iter().map(|(name, _)| name))
            .collect();
        // A batch has its events in `events`.
        let known = KNOWN.iter().filter(|name| **name != "events");
        assert_eq!(
            known.map(ToString::to_string).collect::<BTreeSet<_>>(),
            members
        );
    }

    #[test]
    fn only_the_structure_of_an_anonymous_event_is_stored() {
        let body = json!({
            "feedbackId": "f47ac10b-58cc-4372-a567-0e02b2c3d479",
            "userId": "ada",
            "user-ada": true,
            "sessionId": 5_551_234,
            "data": {"comment": "I am Ada", "rating": 9, "modifiedElements": ["ada"]},
            "privacyFlags": {"anonymize": true},
        });
        let expected = json!({
            "feedbackId": "f47ac10b-58cc-4372-a567-0e02b2c3d479",
            "userId": "[removed]",
            "sessionId": "[removed]",
            "data": {"comment": "[removed]", "rating": "[removed]", "modifiedElements": ["[removed]"]},
            "privacyFlags": {"anonymize": true},
        });
        assert_eq!(storable_body(&body), expected);
        assert_eq!(
            storable_body(&json!({"events": [body]})),
            json!({"events": [expected]})
        );
    }

    #[test]
    fn anonymity_is_detected_in_any_form_and_at_any_depth() {
        for flag in [json!("yes"), json!(1), json!({}), json!("false")] {
            let body = json!({"userId": "ada", "privacyFlags": {"anonymize": flag}});
            assert_eq!(storable_body(&body)["userId"], "[removed]", "{body}");
        }
        for wrapped in [
            json!([{"userId": "ada", "privacyFlags": {"anonymize": true}}]),
            json!({"detail": {"userId": "ada", "privacyFlags": {"anonymize": true}}}),
            json!({"Message": r#"{"userId": "ada", "privacyFlags": {"anonymize": true}}"#}),
        ] {
            assert!(
                !storable_body(&wrapped).to_string().contains("ada"),
                "{wrapped}"
            );
        }
        let not_uuid = json!({"feedbackId": "ada", "privacyFlags": {"anonymize": true}});
        assert_eq!(storable_body(&not_uuid)["feedbackId"], "[removed]");
        assert_eq!(
            storable_text(r#"{"userId": "ada", "privacyFlags": {"anonymize": tru"#),
            None
        );
    }

    #[test]
    fn other_bodies_are_stored_unchanged() {
        let body = json!({"userId": "ada", "x": 1, "privacyFlags": {"anonymize": false}});
        assert_eq!(storable_body(&body), body);
        assert_eq!(storable_text("{"), Some("{"));
    }
}
