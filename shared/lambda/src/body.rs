//! A request's body as JSON, up to a limit.

use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use serde_json::Value;

use crate::Problem;

/// A body of at most `LIMIT` bytes that is JSON. Longer is 413, anything else 400; what the JSON
/// means is for the domain to say.
#[derive(Debug, Clone)]
pub struct JsonBody<const LIMIT: usize>(pub Value);

impl<S: Sync, const LIMIT: usize> FromRequest<S> for JsonBody<LIMIT> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let bytes = axum::body::to_bytes(request.into_body(), LIMIT)
            .await
            .map_err(|_| {
                Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large")
                    .detail(format!("The body must have at most {LIMIT} bytes."))
            })?;
        serde_json::from_slice(&bytes)
            .map(Self)
            .map_err(|error| Problem::not_json(&error))
    }
}
