//! Events to post.

use serde_json::{Value, json};
use uuid::Uuid;

/// The submit example of the source, with an id of its own.
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
