//! Tests of the rules in docs/reference/rules.md on complete events.
//!
//! | file | rules |
//! |---|---|
//! | `signals.rs` | which signals an event gives |
//! | `learning.rs` | how preferences learn |
//! | `publication.rs` | what is published |
//! | `properties.rs` | properties of all events |

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod learning;
mod properties;
mod publication;
mod signals;

use chrono::{DateTime, Utc};
use hearback_domain::events::event::EventCore;
use hearback_domain::events::submission::Submission;
use hearback_domain::identity::caller::Caller;
use hearback_domain::identity::privacy::Pseudonyms;
use serde_json::{Value, json};

fn at(time: &str) -> DateTime<Utc> {
    time.parse().expect("a time")
}

/// An example event.
fn example() -> Value {
    json!({
        "feedbackId": "f47ac10b-58cc-4372-a567-0e02b2c3d479",
        "userId": "user-123",
        "sessionId": "session-abc",
        "artifactId": "artifact-456",
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
        "context": {
            "taskType": "code-review",
            "projectId": "order-service",
            "artifactType": "checklist",
            "artifactComplexity": "medium",
            "userExperience": "intermediate"
        },
        "timestamp": "2026-01-04T09:30:00Z"
    })
}

fn submitted(body: &Value) -> EventCore {
    let caller = Caller {
        user: "user-123".try_into().expect("a user"),
        tenant: "acme".try_into().expect("a tenant"),
        projects: Vec::new(),
        scopes: Vec::new(),
    };
    Submission::parse(
        body,
        &caller,
        &Pseudonyms::new("key"),
        at("2026-01-04T10:00:00Z"),
    )
    .expect("a valid event")
    .event
    .core
}
