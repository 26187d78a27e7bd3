//! What an error looks like: `application/problem+json` (RFC 9457), with the source's own members
//! beside, and for validation `errors`, each with its JSON Pointer.
//!
//! A problem carries two things apart: what the caller is told, and a cause that only the log
//! sees. Neither ever has a body, a comment or a token in it.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hearback_domain::caller::Forbidden;
use hearback_domain::cursor::InvalidCursor;
use hearback_domain::parse::FieldError;
use hearback_storage::{Error as StorageError, LARGEST};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The media type of a problem.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// An error as its caller sees it.
#[derive(Debug, Clone)]
pub struct Problem {
    status: StatusCode,
    error: &'static str,
    detail: Option<String>,
    errors: Vec<FieldError>,
    members: Map<String, Value>,
    cause: Option<String>,
}

/// The shape of a problem, for the API's description.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProblemDocument {
    /// Always `about:blank`: the status says what kind of problem it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// The status in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What went wrong, for a program: `invalid_request`, `version_conflict`, …
    pub error: String,
    /// What went wrong, for a person.
    pub detail: Option<String>,
    /// Identifies the request in the logs.
    pub request_id: String,
    /// For a request that breaks the schema: each member that is wrong.
    pub errors: Option<Vec<InvalidMember>>,
}

/// One member of a request that is wrong.
#[derive(Debug, Serialize, ToSchema)]
pub struct InvalidMember {
    /// JSON Pointer (RFC 6901).
    pub pointer: String,
    /// What is expected there.
    pub detail: String,
}

impl Problem {
    /// A problem of this status; `error` names it for a program.
    #[must_use]
    pub fn new(status: StatusCode, error: &'static str) -> Self {
        Self {
            status,
            error,
            detail: None,
            errors: Vec::new(),
            members: Map::new(),
            cause: None,
        }
    }

    /// 413: the body is larger than it may be; `limit` completes "The body must have …".
    #[must_use]
    pub fn body_too_large(limit: &str) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large")
            .detail(format!("The body must have {limit}."))
    }

    /// 400: members of the request are wrong.
    #[must_use]
    pub fn invalid(errors: Vec<FieldError>) -> Self {
        Self {
            errors,
            ..Self::new(StatusCode::BAD_REQUEST, "invalid_request")
                .detail("The request does not fit its schema.")
        }
    }

    /// 400: the body is not JSON. Where, and not what: the body may hold anything.
    #[must_use]
    pub fn not_json(error: &serde_json::Error) -> Self {
        let place = format!("line {}, column {}", error.line(), error.column());
        Self {
            errors: vec![FieldError {
                pointer: String::new(),
                detail: format!("must be JSON: {place}"),
            }],
            ..Self::new(StatusCode::BAD_REQUEST, "not_json")
                .detail(format!("The body is not JSON: {place}."))
        }
    }

    /// 413: what would be stored is larger than can be.
    #[must_use]
    pub fn too_large(limit: usize, measured: usize) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large_to_store")
            .detail(format!(
                "This would take {measured} bytes as it is stored; at most {limit} are possible."
            ))
            .member("limit_bytes", limit)
            .member("measured_bytes", measured)
    }

    /// 422: members of the request have values that are not known.
    #[must_use]
    pub fn unprocessable(errors: Vec<FieldError>) -> Self {
        Self {
            errors,
            ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, "unknown_value")
                .detail("The request names a channel or a type that is not known.")
        }
    }

    /// 400: the cursor is damaged, or of another query.
    #[must_use]
    pub fn cursor(invalid: InvalidCursor) -> Self {
        Self::invalid(vec![FieldError {
            pointer: "/cursor".to_owned(),
            detail: invalid.to_string(),
        }])
    }

    /// 404, the same for what does not exist and for what is somebody else's.
    #[must_use]
    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found")
    }

    /// 404 that says what was looked for: a `turn`, say. The same for what does not exist and for
    /// what is somebody else's, so that nobody learns which.
    #[must_use]
    pub fn no_such(what: &str) -> Self {
        Self::not_found().detail(format!("There is no such {what}, or it is not yours."))
    }

    /// What is told to a person.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// A member beside the standard ones.
    #[must_use]
    pub fn member(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// What only the log is told.
    #[must_use]
    pub fn cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// The problem of a status of which nothing more is known.
    #[must_use]
    pub fn of_status(status: StatusCode) -> Self {
        let error = match status {
            StatusCode::NOT_FOUND => "not_found",
            StatusCode::METHOD_NOT_ALLOWED => "method_not_allowed",
            status if status.is_client_error() => "invalid_request",
            _ => "internal_error",
        };
        Self::new(status, error)
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn log_cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }

    /// The body of the response.
    pub(crate) fn document(&self, request_id: &str) -> Vec<u8> {
        let mut document = Map::from_iter([
            ("type".to_owned(), "about:blank".into()),
            (
                "title".to_owned(),
                self.status.canonical_reason().unwrap_or("Error").into(),
            ),
            ("status".to_owned(), self.status.as_u16().into()),
            ("error".to_owned(), self.error.into()),
            ("request_id".to_owned(), request_id.into()),
        ]);
        if let Some(detail) = &self.detail {
            document.insert("detail".to_owned(), detail.as_str().into());
        }
        if !self.errors.is_empty() {
            document.insert("errors".to_owned(), serde_json::json!(self.errors));
        }
        document.extend(self.members.clone());
        Value::Object(document).to_string().into_bytes()
    }
}

/// The response has no body yet: the outer layer knows the request id, and writes it.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl From<Forbidden> for Problem {
    fn from(forbidden: Forbidden) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden").detail(forbidden.to_string())
    }
}

impl From<StorageError> for Problem {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Unavailable { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable")
                    .detail("The store could not be reached. Try again.")
                    .cause(error.to_string())
            }
            StorageError::TooLarge { measured } => Self::too_large(LARGEST, measured),
            StorageError::Unreadable { .. } => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error")
                    .cause(error.to_string())
            }
        }
    }
}
