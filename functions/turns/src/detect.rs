//! The detector alone, which stores nothing.

use axum::Json;
use axum::extract::State;
use hearback_detection::{Detection, Exchange};
use hearback_lambda::body::Body;
use hearback_lambda::caller::VerifiedCaller;
use hearback_lambda::rejections::BodyRejections;
use hearback_lambda::routes;
use hearback_lambda::routes::Routes;
use hearback_wire::request;

use crate::Registry;

/// Largest body, in bytes.
const MAX_BODY: usize = 256 * 1024;

pub(crate) fn routes() -> Routes<Registry> {
    routes!(Registry => detect_feedback)
}

request! {
    /// A message, and the exchange before it.
    struct DetectRequest, closed {
        /// The user's previous message.
        "prev_query" => prev_query: nullable String,
        /// The answer to it.
        "prev_response" => prev_response: nullable String,
        /// The user's message.
        "message" => message: required String,
        /// The language of the message, as `en` or `en-GB`; guessed if left out.
        "language" => language: nullable String,
    }
    example {
        "prev_query": "laptops under $1000", "prev_response": "Here are three business laptops.",
        "message": "No, I meant gaming laptops not business laptops"
    }
}

/// Detect feedback in a message
///
/// Returns the feedback of a follow-up message on the answer before it. Nothing is stored.
#[utoipa::path(
    post,
    path = "/v1/feedback/detect",
    tag = "turns",
    request_body = DetectRequest,
    responses(
        (status = 200, description = "The detection", body = Detection),
        BodyRejections,
    ),
    security(("bearer" = []))
)]
async fn detect_feedback(
    State(registry): State<Registry>,
    VerifiedCaller(_): VerifiedCaller,
    Body(request): Body<DetectRequest, MAX_BODY>,
) -> Json<Detection> {
    Json(registry.detector.detect(&Exchange {
        prev_query: request.prev_query.as_deref(),
        prev_response: request.prev_response.as_deref(),
        message: &request.message,
        language: request.language.as_deref(),
        embedding_similarity: None,
        repeats_query: None,
        earlier: &[],
    }))
}
