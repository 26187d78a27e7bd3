//! Many events in one request.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hearback_domain::events::submission::{EventRejected, FeedbackEventRequest, RejectionReason};
use hearback_lambda::body::Body;
use hearback_lambda::caller::VerifiedCaller;
use hearback_lambda::problem::InvalidMember;
use hearback_lambda::rejections::BodyRejections;
use hearback_lambda::routes::Routes;
use hearback_lambda::{Problem, routes};
use hearback_storage::WriteToken;
use hearback_wire::{FieldError, List, Unread, request};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::intake::{AcceptedEvent, Intake, NotStored, Sender};

/// Largest body, in bytes.
pub const MAX_BODY: usize = 4 * 1024 * 1024;
/// Maximum number of events in one request.
pub const MAX_EVENTS: usize = 1_000;
/// Errors of events that a response lists, but at least one for each event: Lambda limits the size of a response.
pub const LISTED_ERRORS: usize = 1_000;
/// Longest id that a response repeats, in bytes: the body may have any text there.
const MAX_ID: usize = 256;

/// Every route of this function.
pub fn routes() -> Routes<Intake> {
    routes!(Intake => submit_feedback_batch)
}

request! {
    /// Many events.
    struct BatchRequest, open {
        /// The events, each in the format of `POST /v1/feedback/submit`. An invalid event is rejected, and the others
        /// are not.
        "events" => events: required List<Unread<FeedbackEventRequest>, 1, MAX_EVENTS>,
    }
    example {"events": [{
        "feedbackId": "f47ac10b-58cc-4372-a567-0e02b2c3d479",
        "userId": "user-123",
        "sessionId": "session-abc",
        "artifactId": "artifact-456",
        "feedbackChannel": "explicit",
        "feedbackType": "rating",
        "data": {"rating": 4}
    }]}
}

/// The result of each event.
#[derive(Default, Serialize, ToSchema)]
struct BatchResults {
    /// Events that are stored, and queued for processing.
    queued: usize,
    /// Events whose `feedbackId` was known.
    duplicates: usize,
    /// Events that are rejected.
    rejected: usize,
    /// Events that could not be stored, and may be sent again.
    failed: usize,
    /// One for each event, in the order of the request.
    results: Vec<BatchResult>,
}

/// The result of an event.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct BatchResult {
    /// Its position in the request, from 0.
    index: usize,
    /// The `feedbackId` of the request; left out if it is too long to be valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    feedback_id: Option<String>,
    /// The result.
    status: Status,
    /// Of several events with this key, the first counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    dedupe_key: Option<String>,
    /// Why it is not stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<BatchError>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = BatchStatus)]
enum Status {
    Queued,
    Duplicate,
    Rejected,
    Failed,
}

/// Why an event is not stored.
#[derive(Serialize, ToSchema)]
struct BatchError {
    /// The HTTP status that the event alone would have had.
    status: u16,
    /// An error code.
    error: String,
    /// Each member that is wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<InvalidMember>)]
    errors: Vec<FieldError>,
}

/// Submit many feedback events
///
/// Responds once each event is stored or rejected: the body has the result of each. The same `feedbackId` is accepted
/// once. Of several events with one dedupe key the first by position counts.
#[utoipa::path(
    post,
    path = "/v1/feedback/batch",
    tag = "feedback",
    request_body = BatchRequest,
    responses(
        (status = 202, description = "The result of each event", body = BatchResults),
        BodyRejections,
    ),
    security(("bearer" = []))
)]
async fn submit_feedback_batch(
    State(intake): State<Intake>,
    VerifiedCaller(caller): VerifiedCaller,
    Body(BatchRequest { events }): Body<BatchRequest, MAX_BODY>,
) -> Result<Response, Problem> {
    let events: Vec<Value> = events.0.into_iter().map(Unread::into_value).collect();
    let received_at = intake.clock.now();
    let attempts = events.iter().map(|event| (WriteToken::random(), event));
    let outcomes = intake
        .put_all(Sender::Token(&caller), attempts, received_at)
        .await;
    let mut results = BatchResults::default();
    let mut cause = None;
    for ((index, event), outcome) in events.iter().enumerate().zip(outcomes) {
        if let Err(NotStored::Failed(error)) = &outcome {
            cause = Some(error.to_string());
        }
        results.add(index, events.len(), event, outcome);
    }
    match cause {
        Some(cause) if results.failed == events.len() => {
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable")
                .detail("No event could be stored. Try again.")
                .cause(cause))
        }
        cause => {
            if let Some(cause) = cause {
                tracing::warn!(failed = results.failed, cause, "events not stored");
            }
            Ok((StatusCode::ACCEPTED, Json(results)).into_response())
        }
    }
}

/// The status that the event alone would have had.
fn status(error: &NotStored) -> StatusCode {
    match error {
        NotStored::EventRejected(EventRejected::Invalid(_)) => StatusCode::BAD_REQUEST,
        NotStored::EventRejected(EventRejected::Unprocessable(_)) => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        NotStored::EventRejected(EventRejected::Forbidden(_)) => StatusCode::FORBIDDEN,
        NotStored::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        NotStored::Failed(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

impl BatchResults {
    /// Adds the result of the event at `index` of `total` events.
    fn add(
        &mut self,
        index: usize,
        total: usize,
        event: &Value,
        outcome: Result<AcceptedEvent, NotStored>,
    ) {
        let id = event.get("feedbackId").and_then(Value::as_str);
        let mut result = BatchResult {
            index,
            feedback_id: id.filter(|id| id.len() <= MAX_ID).map(str::to_owned),
            status: Status::Queued,
            dedupe_key: None,
            error: None,
        };
        match outcome {
            Ok(accepted) => {
                result.dedupe_key = Some(accepted.dedupe_key);
                if accepted.known {
                    result.status = Status::Duplicate;
                    self.duplicates += 1;
                } else {
                    self.queued += 1;
                }
            }
            Err(error) => {
                let status = status(&error);
                if let Ok(rejection) = error.rejection() {
                    result.status = Status::Rejected;
                    let limit = (LISTED_ERRORS / total).max(1);
                    result.error = Some(BatchError::of(index, status, rejection).truncated(limit));
                    self.rejected += 1;
                } else {
                    result.status = Status::Failed;
                    result.error = Some(BatchError {
                        status: status.as_u16(),
                        error: "unavailable".to_owned(),
                        errors: Vec::new(),
                    });
                    self.failed += 1;
                }
            }
        }
        self.results.push(result);
    }
}

impl BatchError {
    /// The error of the event at `index`, with pointers into the body of the request.
    fn of(index: usize, status: StatusCode, rejection: RejectionReason) -> Self {
        let RejectionReason { error, mut errors } = rejection;
        for FieldError { pointer, .. } in &mut errors {
            *pointer = format!("/events/{index}{pointer}");
        }
        Self {
            status: status.as_u16(),
            error: error.into_owned(),
            errors,
        }
    }

    /// Lists at most `limit` errors.
    fn truncated(mut self, limit: usize) -> Self {
        let others = self.errors.len().saturating_sub(limit);
        if others > 0 {
            self.errors.truncate(limit);
            self.errors.push(FieldError {
                pointer: String::new(),
                detail: format!("has at least {others} more errors, which are not listed"),
            });
        }
        self
    }
}
