//! Many events in one request.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hearback_domain::parse::{Errors, FieldError, Object};
use hearback_domain::submission::{Refused, Rejection};
use hearback_lambda::body::JsonBody;
use hearback_lambda::caller::Caller;
use hearback_lambda::problem::{InvalidMember, ProblemDocument};
use hearback_lambda::routes::Routes;
use hearback_lambda::{Problem, routes};
use hearback_storage::Attempt;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::intake::{Intake, NotTaken, Sender, Taken};

/// Largest body, in bytes.
pub const MAX_BODY: usize = 4 * 1024 * 1024;
/// Most events of one request.
pub const MAX_EVENTS: usize = 1_000;

/// Every route of this function.
pub fn routes() -> Routes<Intake> {
    routes!(Intake => batch)
}

/// Many events.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"events": [{
    "feedbackId": "f47ac10b-58cc-4372-a567-0e02b2c3d479",
    "userId": "user-123",
    "sessionId": "session-abc",
    "artifactId": "artifact-456",
    "feedbackChannel": "explicit",
    "feedbackType": "rating",
    "data": {"rating": 4}
}]}))]
struct Batch {
    /// Each as `POST /v1/feedback/submit` takes it. One that breaks its schema harms no other.
    #[schema(min_items = 1, max_items = 1000)]
    events: Vec<Value>,
}

/// What became of each event.
#[derive(Default, Serialize, ToSchema)]
struct Results {
    /// Events that are stored, and queued for processing.
    queued: usize,
    /// Events whose `feedbackId` was known.
    duplicates: usize,
    /// Events that are refused.
    rejected: usize,
    /// Events that could not be stored, and may be sent again.
    failed: usize,
    /// One for each event, in the order of the request.
    results: Vec<EventResult>,
}

/// What became of an event.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EventResult {
    /// Its place in the request, from 0.
    index: usize,
    /// Its id, as it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    feedback_id: Option<String>,
    /// What became of it.
    status: Status,
    /// Of several events with this key, the first counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    dedupe_key: Option<String>,
    /// Why it is not stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<EventError>,
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
struct EventError {
    /// The HTTP status that the event alone would have had.
    status: u16,
    /// For a program.
    error: String,
    /// Each member that is wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<InvalidMember>)]
    errors: Vec<FieldError>,
}

/// Submit many feedback events
///
/// Answers once each event is stored, or refused: the body says what became of which. The same
/// `feedbackId` is taken once. Of several events with one dedupe key the first by position counts.
#[utoipa::path(
    post,
    path = "/v1/feedback/batch",
    tag = "feedback",
    request_body = Batch,
    responses(
        (status = 202, description = "What became of each event", body = Results),
        (status = 400, description = "The body is not JSON, or has not 1 to 1,000 events", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 413, description = "The body has more than 4 MiB", body = ProblemDocument),
        (status = 503, description = "No event could be stored; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn batch(
    State(intake): State<Intake>,
    Caller(caller): Caller,
    JsonBody(body): JsonBody<MAX_BODY>,
) -> Result<Response, Problem> {
    let events = parse(&body)?;
    let received_at = intake.clock.now();
    let asked = events.iter().map(|event| (Attempt::drawn(), event));
    let taken = intake
        .take(Sender::Token(&caller), asked, received_at)
        .await;
    let mut results = Results::default();
    let mut cause = None;
    for ((index, event), taken) in events.iter().enumerate().zip(taken) {
        if let Err(NotTaken::Failed(error)) = &taken {
            cause = Some(error.to_string());
        }
        results.add(index, event, taken);
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

fn parse(body: &Value) -> Result<&[Value], Problem> {
    let mut errors = Errors::default();
    let request = Object::root(body, &mut errors);
    let events = request.required("events", &mut errors, |events| {
        let events = events.as_array().map(Vec::as_slice);
        let events = events.filter(|events| (1..=MAX_EVENTS).contains(&events.len()));
        events.ok_or("must be an array of 1 to 1,000 events")
    });
    events.ok_or_else(|| Problem::invalid(errors.into_vec()))
}

/// The status that the event alone would have had.
fn status(not_taken: &NotTaken) -> StatusCode {
    match not_taken {
        NotTaken::Refused(Refused::Invalid(_)) => StatusCode::BAD_REQUEST,
        NotTaken::Refused(Refused::Unprocessable(_)) => StatusCode::UNPROCESSABLE_ENTITY,
        NotTaken::Refused(Refused::Forbidden(_)) => StatusCode::FORBIDDEN,
        NotTaken::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        NotTaken::Failed(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

impl Results {
    fn add(&mut self, index: usize, event: &Value, taken: Result<Taken, NotTaken>) {
        let mut result = EventResult {
            index,
            feedback_id: event
                .get("feedbackId")
                .and_then(Value::as_str)
                .map(str::to_owned),
            status: Status::Queued,
            dedupe_key: None,
            error: None,
        };
        match taken {
            Ok(taken) => {
                result.dedupe_key = Some(taken.dedupe_key);
                if taken.known {
                    result.status = Status::Duplicate;
                    self.duplicates += 1;
                } else {
                    self.queued += 1;
                }
            }
            Err(not_taken) => {
                let status = status(&not_taken);
                if let Ok(rejection) = not_taken.rejection() {
                    result.status = Status::Rejected;
                    result.error = Some(EventError::of(index, status, rejection));
                    self.rejected += 1;
                } else {
                    result.status = Status::Failed;
                    result.error = Some(EventError {
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

impl EventError {
    /// The pointers lead into the request's body.
    fn of(index: usize, status: StatusCode, rejection: Rejection) -> Self {
        let Rejection { error, mut errors } = rejection;
        for FieldError { pointer, .. } in &mut errors {
            *pointer = format!("/events/{index}{pointer}");
        }
        Self {
            status: status.as_u16(),
            error: error.into_owned(),
            errors,
        }
    }
}
