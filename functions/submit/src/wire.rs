//! The shapes of the source (`SDS-009`, "Feedback Event Schema" and "Request/Response"). The
//! request is described here and read by the domain, which reports every wrong member at once.

use std::collections::BTreeMap;

use hearback_domain::event::{Channel, CorrectionType, FeedbackType};
use serde::Serialize;
use utoipa::ToSchema;

/// A feedback event as callers post it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
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
    "context": {"taskType": "code-review", "projectId": "order-service"}
}))]
pub(crate) struct FeedbackEvent {
    /// Identity of the event, chosen by the caller: a repeat is recognised by it.
    feedback_id: uuid::Uuid,
    /// The caller itself, or with the scope `feedback:on-behalf` any user.
    #[schema(min_length = 1, max_length = 256)]
    user_id: String,
    /// Session, for correlation.
    #[schema(min_length = 1, max_length = 256)]
    session_id: String,
    /// What the feedback is about.
    #[schema(min_length = 1, max_length = 256, nullable = false)]
    artifact_id: Option<String>,
    /// How it was captured.
    feedback_channel: Channel,
    /// What kind it is.
    #[schema(nullable = false)]
    feedback_type: Option<FeedbackType>,
    /// What was said or done.
    #[schema(nullable = false)]
    data: Option<Data>,
    /// What the user corrected.
    #[schema(nullable = false)]
    correction_data: Option<CorrectionData>,
    /// What may be kept, and for how long.
    #[schema(nullable = false)]
    privacy_flags: Option<Privacy>,
    /// What the user was doing.
    #[schema(nullable = false)]
    context: Option<Context>,
    /// RFC 3339 with an offset; the time of receipt if left out.
    #[schema(format = DateTime, nullable = false)]
    timestamp: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Data {
    /// Whether the artifact was accepted.
    #[schema(nullable = false)]
    accepted: Option<bool>,
    /// 1 (worst) to 5 (best).
    #[schema(minimum = 1, maximum = 5, nullable = false)]
    rating: Option<u8>,
    /// Free text.
    #[schema(max_length = 2000, nullable = false)]
    comment: Option<String>,
    /// Names of the elements that the user changed.
    #[schema(nullable = false)]
    modified_elements: Option<Vec<String>>,
    /// Seconds.
    #[schema(nullable = false)]
    time_spent: Option<i64>,
    /// How far the artifact was read.
    #[schema(minimum = 0, maximum = 100, nullable = false)]
    scroll_percentage: Option<f64>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CorrectionData {
    /// What the answer said.
    #[schema(nullable = false)]
    original_value: Option<String>,
    /// What it should have said.
    #[schema(nullable = false)]
    corrected_value: Option<String>,
    /// What kind of correction it is.
    #[schema(nullable = false)]
    correction_type: Option<CorrectionType>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Privacy {
    /// Replace user and session by pseudonyms, and personal data in free text by its kind, before anything is
    /// stored.
    #[schema(default = false, nullable = false)]
    anonymize: Option<bool>,
    /// Days until the event and all that came of it expire.
    #[schema(minimum = 1, maximum = 3650, default = 90, nullable = false)]
    retention_days: Option<u16>,
    /// Let no model learn from the event.
    #[schema(default = false, nullable = false)]
    exclude_from_training: Option<bool>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Context {
    /// Kind of task, for example `code-review`.
    #[schema(nullable = false)]
    task_type: Option<String>,
    /// Project.
    #[schema(nullable = false)]
    project_id: Option<String>,
    /// Agent that answered.
    #[schema(nullable = false)]
    agent_id: Option<String>,
    /// Kind of artifact, for example `checklist`; `unknown` if left out.
    #[schema(nullable = false)]
    artifact_type: Option<String>,
    /// How complex the artifact is. Preferences learn from `simple`, `moderate` and `detailed`; any other value
    /// is stored and published.
    #[schema(nullable = false)]
    artifact_complexity: Option<String>,
    /// How the artifact is laid out. Preferences learn from `bullet-list`, `prose`, `table`, `code` and `mixed`.
    #[schema(nullable = false)]
    artifact_format: Option<String>,
    /// How long the answer is. Preferences learn from `concise`, `balanced` and `verbose`.
    #[schema(nullable = false)]
    response_length: Option<String>,
    /// What the code looks like. Preferences learn from `minimal`, `documented` and `verbose`.
    #[schema(nullable = false)]
    code_style: Option<String>,
    /// How experienced the user is.
    #[schema(nullable = false)]
    user_experience: Option<String>,
    /// Conversation of the turn that the feedback is about.
    #[schema(nullable = false)]
    conversation_id: Option<String>,
    /// That turn: with `projectId` and `conversationId` it names one.
    #[schema(nullable = false)]
    turn_id: Option<String>,
    /// What you compare answers by: up to 16 keys of 1 to 64 characters (`A-Z`, `a-z`, `0-9`, `_`, `.`, `-`), each
    /// with a string of 1 to 256 characters. `model` and `prompt_version` are the well-known keys.
    #[schema(example = json!({"model": "gpt-5", "prompt_version": "v7"}), nullable = false)]
    labels: Option<BTreeMap<String, String>>,
}

/// The event is stored and will be processed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Queued {
    /// The event.
    pub feedback_id: uuid::Uuid,
    /// Of several events with this key, the first counts:
    /// `userId:artifactId:feedbackType:<UTC hour>`.
    pub dedupe_key: String,
    /// Where it is in processing.
    pub status: Status,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = SubmissionStatus)]
pub(crate) enum Status {
    Queued,
}
