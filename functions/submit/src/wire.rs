//! Responses to submissions.

use serde::Serialize;
use utoipa::ToSchema;

/// The event is stored and will be processed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueuedFeedback {
    /// The event.
    pub feedback_id: uuid::Uuid,
    /// Of several events with this key, the first counts:
    /// `userId:artifactId:feedbackType:<UTC hour>`, and `:projectId:conversationId:turnId` if the event names a turn.
    pub dedupe_key: String,
    /// Where it is in processing.
    pub status: SubmissionStatus,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SubmissionStatus {
    Queued,
}
