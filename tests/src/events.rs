//! Events to submit.

use aws_lambda_events::sqs::{SqsEvent, SqsMessage, SqsMessageAttribute};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::queue::batch;

/// A valid event with a new id.
#[must_use]
pub fn acceptance(user: &str) -> Value {
    json!({
        "feedbackId": Uuid::new_v4(),
        "userId": user,
        "sessionId": "session-abc",
        "artifactId": format!("artifact-{}", Uuid::new_v4().simple()),
        "feedbackChannel": "explicit",
        "feedbackType": "artifact-acceptance",
        "data": {
            "accepted": true,
            "modifiedElements": ["checkbox-1", "text-field-2"],
            "timeSpent": 45,
            "rating": 4,
            "comment": "Very helpful checklist"
        },
        "privacyFlags": {"anonymize": false, "retentionDays": 90},
        "context": {"taskType": "code-review", "projectId": "order-service"}
    })
}

/// The id of an event.
#[must_use]
pub fn id(event: &Value) -> String {
    event["feedbackId"].as_str().unwrap().to_owned()
}

/// A batch of the ingest queue with one message, of the tenant `acme`.
#[must_use]
pub fn ingested(body: &Value) -> SqsEvent {
    ingested_of("acme", body)
}

/// The same with a message that was sent at this time.
#[must_use]
pub fn ingested_at(sent: DateTime<Utc>, body: &Value) -> SqsEvent {
    let mut batch = ingested(body);
    let attributes = &mut batch.records[0].attributes;
    let sent = sent.timestamp_millis().to_string();
    attributes.insert("SentTimestamp".to_owned(), sent);
    batch
}

/// A batch of the ingest queue with one message of a tenant.
#[must_use]
pub fn ingested_of(tenant: &str, body: &Value) -> SqsEvent {
    let mut attribute = SqsMessageAttribute::default();
    attribute.string_value = Some(tenant.to_owned());
    let mut message = SqsMessage::default();
    message.body = Some(body.to_string());
    let attributes = &mut message.message_attributes;
    attributes.insert("tenant".to_owned(), attribute);
    batch([message])
}
