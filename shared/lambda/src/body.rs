//! A request's body as JSON, up to a limit.

use axum::extract::{FromRequest, Request};
use hearback_domain::text::payload::{MAX_REQUEST, escaped_size};
use hearback_wire::{FromJson, from_json};
use serde_json::Value;

use crate::Problem;

/// A body may have an array or object for each so many bytes of its size. The parser allocates up to 632 bytes for an
/// object with one member, which a body needs only five bytes to open and close.
const BYTES_PER_CONTAINER: usize = 32;
/// Arrays and objects that a body of any size may have.
const FREE_CONTAINERS: usize = 10_000;

/// A JSON body of at most `LIMIT` bytes. A longer body, one that exceeds the payload limit of
/// Lambda, or one that consists of little but brackets is rejected with 413; a body that is not JSON with 400.
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
        let most = bytes.len() / BYTES_PER_CONTAINER + FREE_CONTAINERS;
        if containers(&bytes) > most {
            let limit = format!("at most {most} arrays and objects for its size");
            return Err(Problem::body_too_large(&limit));
        }
        serde_json::from_slice(&bytes)
            .map(Self)
            .map_err(|error| Problem::not_json(&error))
    }
}

/// The number of arrays and objects that a JSON text opens.
fn containers(json: &[u8]) -> usize {
    let (mut count, mut in_string, mut escaped) = (0, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => count += 1,
            _ => {}
        }
    }
    count
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_strings_open_nothing() {
        for (json, count) in [
            (r#"{"a":[1,{}]}"#, 3),
            (r#""[{""#, 0),
            (r#"["\"[",[]]"#, 2),
            (r#"["\\",[]]"#, 2),
            (r#"["\\\"[[",{"[":"{"}]"#, 2),
            ("[1", 1),
            ("", 0),
        ] {
            assert_eq!(containers(json.as_bytes()), count, "{json}");
        }
    }
}
