//! What may be kept of an event that was not taken: all of it, or, if it asks for anonymity, its shape.
//!
//! Source: `SDS-009`, invariant 3; product specification, section 7: the raw values of an anonymous
//! event appear nowhere but in the caller's own request. An event that breaks the schema may have them
//! anywhere, so that nothing of it can be told to be harmless but what is known to be.

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::privacy::REMOVED;

/// Members of an event by their names, wherever they stand. Another name may itself be a raw value.
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
    "taskType",
    "timeSpent",
    "timestamp",
    "turnId",
    "userExperience",
    "userId",
];

/// What may be kept of a body that was refused.
#[must_use]
pub fn kept(body: &Value) -> Value {
    if asks_for_anonymity(body) {
        shape(body)
    } else {
        body.clone()
    }
}

/// What may be kept of a text that is no JSON: nothing, if it says that it is an anonymous event's. What it
/// does not say, what stands around it may.
#[must_use]
pub fn kept_text(text: &str) -> Option<&str> {
    (!text.contains("anonymize")).then_some(text)
}

/// Whether a body asks for anonymity, in any form and at any place: who writes `"yes"` means it too, and
/// who wraps an event in something of their own.
#[must_use]
pub fn asks_for_anonymity(body: &Value) -> bool {
    match body {
        Value::Object(members) => members.iter().any(|(name, value)| {
            let asks = name == "anonymize" && !matches!(value, Value::Null | Value::Bool(false));
            asks || asks_for_anonymity(value)
        }),
        Value::Array(values) => values.iter().any(asks_for_anonymity),
        // An event within a text.
        Value::String(text) => text.contains("anonymize"),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The members, and none of what was written or named.
fn shape(value: &Value) -> Value {
    match value {
        // A number may be a telephone's.
        Value::String(_) | Value::Number(_) => Value::from(REMOVED),
        Value::Array(values) => values.iter().map(shape).collect(),
        Value::Object(members) => {
            let members = members.iter();
            let known = members.filter(|(name, _)| KNOWN.contains(&name.as_str()));
            let shapes = known.map(|(name, value)| (name.clone(), member(name, value)));
            Value::Object(shapes.collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) => value.clone(),
    }
}

/// The id of an event stays, by which its caller finds it: it names nobody.
fn member(name: &str, value: &Value) -> Value {
    let id = value.as_str().filter(|_| name == "feedbackId");
    match id.and_then(|id| Uuid::try_parse(id).ok()) {
        Some(id) => Value::from(id.to_string()),
        None => shape(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_an_anonymous_event_the_shape_is_kept() {
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
        assert_eq!(kept(&body), expected);
        assert_eq!(
            kept(&json!({"events": [body]})),
            json!({"events": [expected]})
        );
    }

    #[test]
    fn whoever_means_anonymity_gets_it() {
        for flag in [json!("yes"), json!(1), json!({}), json!("false")] {
            let body = json!({"userId": "ada", "privacyFlags": {"anonymize": flag}});
            assert_eq!(kept(&body)["userId"], "[removed]", "{body}");
        }
        for wrapped in [
            json!([{"userId": "ada", "privacyFlags": {"anonymize": true}}]),
            json!({"detail": {"userId": "ada", "privacyFlags": {"anonymize": true}}}),
            json!({"Message": r#"{"userId": "ada", "privacyFlags": {"anonymize": true}}"#}),
        ] {
            assert!(!kept(&wrapped).to_string().contains("ada"), "{wrapped}");
        }
        let not_uuid = json!({"feedbackId": "ada", "privacyFlags": {"anonymize": true}});
        assert_eq!(kept(&not_uuid)["feedbackId"], "[removed]");
        assert_eq!(
            kept_text(r#"{"userId": "ada", "privacyFlags": {"anonymize": tru"#),
            None
        );
    }

    #[test]
    fn anything_else_is_kept_as_it_is() {
        let body = json!({"userId": "ada", "x": 1, "privacyFlags": {"anonymize": false}});
        assert_eq!(kept(&body), body);
        assert_eq!(kept_text("{"), Some("{"));
    }
}
