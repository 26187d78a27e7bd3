//! A request's body as JSON, up to a limit.

use axum::extract::{FromRequest, Request};
use hearback_domain::text::payload::{MAX_REQUEST, escaped_size};
use hearback_wire::{FromJson, from_json};
use serde_json::Value;

use crate::Problem;

/// A JSON body of at most `LIMIT` bytes. A longer body, or one that exceeds the payload limit of
/// Lambda, is rejected with 413; a body that is not JSON with 400.
#[derive(Debug, Clone)]
pub struct JsonBody<const LIMIT: usize>(pub Value);

impl<S: Sync, const LIMIT: usize> FromRequest<S> for JsonBody<LIMIT> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let bytes = axum::body::to_bytes(request.into_body(), LIMIT)
            .await
            .map_err(|_| Problem::body_too_large(&format!("at most {LIMIT} bytes")))?;
        // Lambda rejects such a body; the local bundle must do the same.
        if bytes.len() > MAX_REQUEST / 2 && escaped_size(&bytes) > MAX_REQUEST {
            let limit = format!(
                "at most {MAX_REQUEST} bytes, counting each quote, backslash and line break twice"
            );
            return Err(Problem::body_too_large(&limit));
        }
        serde_json::from_slice(&bytes)
            .map(Self)
            .map_err(|error| Problem::not_json(&error))
    }
}

/// A body of at most `LIMIT` bytes that is a `T`, whose errors are reported together.
#[derive(Debug, Clone)]
pub struct Body<T, const LIMIT: usize>(pub T);

impl<S: Sync, T: FromJson, const LIMIT: usize> FromRequest<S> for Body<T, LIMIT> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let JsonBody(body) = JsonBody::<LIMIT>::from_request(request, state).await?;
        from_json(&body).map(Self).map_err(Problem::invalid)
    }
}
