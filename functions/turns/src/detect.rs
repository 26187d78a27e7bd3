//! The detector alone, which stores nothing.

use axum::Json;
use axum::extract::State;
use hearback_domain::detection::{Detection, Exchange};
use hearback_domain::parse::{Errors, Object, string};
use hearback_lambda::body::JsonBody;
use hearback_lambda::caller::Caller;
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::routes::Routes;
use hearback_lambda::{Problem, routes};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Registry;

/// Largest body, in bytes.
const MAX_BODY: usize = 256 * 1024;

pub(crate) fn routes() -> Routes<Registry> {
    routes!(Registry => detect)
}

/// A message, with what was said before it.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({
    "prev_query": "laptops under $1000", "prev_response": "Here are three business laptops.",
    "message": "No, I meant gaming laptops not business laptops"
}))]
struct DetectRequest {
    /// What the user had asked.
    prev_query: Option<String>,
    /// What was answered.
    prev_response: Option<String>,
    /// What the user says now.
    message: String,
    /// Its language, as `en` or `en-GB`; guessed if left out.
    language: Option<String>,
}

const MEMBERS: &[&str] = &["prev_query", "prev_response", "message", "language"];

/// Detect feedback in a message
///
/// What a follow-up says of the answer before it. Nothing is stored.
#[utoipa::path(
    post,
    path = "/v1/feedback/detect",
    tag = "turns",
    request_body = DetectRequest,
    responses(
        (status = 200, description = "What it says", body = Detection),
        (status = 400, description = "The body is not JSON or breaks the schema", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 413, description = "The body has more than 256 KiB", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn detect(
    State(registry): State<Registry>,
    Caller(_): Caller,
    JsonBody(body): JsonBody<MAX_BODY>,
) -> Result<Json<Detection>, Problem> {
    let mut errors = Errors::default();
    let request = Object::root(&body, &mut errors);
    request.known_only(MEMBERS, &mut errors);
    let message = request.required("message", &mut errors, string);
    let prev_query = request.nullable("prev_query", &mut errors, string);
    let prev_response = request.nullable("prev_response", &mut errors, string);
    let language = request.nullable("language", &mut errors, string);
    match message {
        Some(message) if errors.is_empty() => Ok(Json(registry.detector.detect(&Exchange {
            prev_query,
            prev_response,
            message,
            language,
            embedding_similarity: None,
        }))),
        _ => Err(Problem::invalid(errors.into_vec())),
    }
}
