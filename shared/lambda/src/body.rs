//! A request's body as JSON, up to a limit.

use axum::extract::{FromRequest, Request};
use hearback_domain::payload::{MAX_REQUEST, carried_text};
use serde_json::Value;

use crate::Problem;

/// A body of at most `LIMIT` bytes that is JSON. Longer is 413, also one that Lambda could not carry;
/// anything else 400. What the JSON means is for the domain to say.
#[derive(Debug, Clone)]
pub struct JsonBody<const LIMIT: usize>(pub Value);

impl<S: Sync, const LIMIT: usize> FromRequest<S> for JsonBody<LIMIT> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let bytes = axum::body::to_bytes(request.into_body(), LIMIT)
            .await
            .map_err(|_| Problem::body_too_large(&format!("at most {LIMIT} bytes")))?;
        // On Lambda no such body arrives. Here it must be no different.
        if bytes.len() > MAX_REQUEST / 2 && carried_text(&bytes) > MAX_REQUEST {
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
