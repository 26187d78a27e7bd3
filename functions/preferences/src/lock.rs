//! The optimistic lock on the wire: `preferenceVersion` in the body, or `ETag` and `If-Match`.

use axum::Json;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hearback_lambda::Problem;
use hearback_wire::describe::optional_header;
use serde::Serialize;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn};

/// A response body with its version as `ETag`.
pub(crate) struct Tagged<T>(pub u64, pub T);

impl<T: Serialize> IntoResponse for Tagged<T> {
    fn into_response(self) -> Response {
        let Self(version, body) = self;
        let mut response = Json(body).into_response();
        if let Ok(tag) = HeaderValue::from_str(&format!("\"{version}\"")) {
            response.headers_mut().insert(header::ETAG, tag);
        }
        response
    }
}

/// The version that the caller expects to be the newest.
pub(crate) fn expected_version(body: Option<u64>, headers: &HeaderMap) -> Result<u64, Problem> {
    match (body, if_match(headers)?) {
        (Some(body), Some(tag)) if body != tag => Err(invalid("must be the version of If-Match")),
        (Some(version), _) | (None, Some(version)) => Ok(version),
        (None, None) => Err(invalid("is required")),
    }
}

/// The header `If-Match` in the API description.
pub(crate) struct IfMatch;

impl IntoParams for IfMatch {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let description = "The version that the change is made on, as its `ETag`.";
        let version = r#"^"[0-9]{1,18}"$"#;
        vec![optional_header("If-Match", description, version)]
    }
}

/// The version of `If-Match`, if the header is there.
pub(crate) fn if_match(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(tag) = headers.get(header::IF_MATCH) else {
        return Ok(None);
    };
    tag.to_str()
        .ok()
        .and_then(|tag| {
            tag.trim()
                .strip_prefix('"')?
                .strip_suffix('"')?
                .parse()
                .ok()
        })
        .map(Some)
        .ok_or_else(|| {
            Problem::new(StatusCode::BAD_REQUEST, "invalid_request")
                .detail("If-Match must be one ETag as preferences answer it, for example \"42\".")
        })
}

/// 409, with the current version.
pub(crate) fn conflict(provided: u64, current: u64) -> Problem {
    Problem::new(StatusCode::CONFLICT, "version_conflict")
        .detail("The preferences were changed since that version.")
        .member("currentVersion", current)
        .member("providedVersion", provided)
}

fn invalid(detail: &str) -> Problem {
    Problem::invalid_member("/preferenceVersion", detail)
}
