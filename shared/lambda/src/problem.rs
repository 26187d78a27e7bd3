//! Error responses: `application/problem+json` (RFC 9457) with additional members, and for
//! validation `errors`, each with a JSON Pointer.
//!
//! A problem has two separate parts: the response for the caller, and a cause for the log only.
//! Neither contains a body, a comment or a token.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hearback_domain::events::submission::EventRejected;
use hearback_domain::feedback::reaction::ReactionRejected;
use hearback_domain::identity::caller::Forbidden;
use hearback_domain::text::cursor::InvalidCursor;
use hearback_domain::turns::turn::TurnRejected;
use hearback_storage::{Error as StorageError, LARGEST};
use hearback_wire::FieldError;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The media type of a problem.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// An error response.
#[derive(Debug, Clone)]
pub struct Problem {
    status: StatusCode,
    error: &'static str,
    detail: Option<String>,
    errors: Vec<FieldError>,
    members: Map<String, Value>,
    cause: Option<String>,
}

/// The schema of a problem.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProblemDocument {
    /// Always `about:blank`: the kind of problem is that of the status.
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
    /// A problem with this status; `error` is its code.
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

    /// 413: the body is too large; `limit` completes "The body must have …".
    #[must_use]
    pub fn body_too_large(limit: &str) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large")
            .detail(format!("The body must have {limit}."))
    }

    /// 400: members of the request are invalid.
    #[must_use]
    pub fn invalid(errors: Vec<FieldError>) -> Self {
        Self {
            errors,
            ..Self::new(StatusCode::BAD_REQUEST, "invalid_request")
                .detail("The request does not fit its schema.")
        }
    }

    /// 400: one member of the request is invalid. `pointer` is its JSON Pointer.
    #[must_use]
    pub fn invalid_member(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::invalid(vec![FieldError {
            pointer: pointer.into(),
            detail: detail.into(),
        }])
    }

    /// 400: the body is not JSON. The problem has the position only, because the content may be
    /// private.
    #[must_use]
    pub fn not_json(error: &serde_json::Error) -> Self {
        let position = format!("line {}, column {}", error.line(), error.column());
        Self {
            errors: vec![FieldError {
                pointer: String::new(),
                detail: format!("must be JSON: {position}"),
            }],
            ..Self::new(StatusCode::BAD_REQUEST, "not_json")
                .detail(format!("The body is not JSON: {position}."))
        }
    }

    /// 413: the item would be too large to store.
    #[must_use]
    pub fn too_large(limit: usize, measured: usize) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large_to_store")
            .detail(format!(
                "This would take {measured} bytes as it is stored; at most {limit} are possible."
            ))
            .member("limit_bytes", limit)
            .member("measured_bytes", measured)
    }

    /// 422: members of the request have unknown values.
    #[must_use]
    pub fn unprocessable(errors: Vec<FieldError>) -> Self {
        Self {
            errors,
            ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, "unknown_value")
                .detail("The request names a channel or a type that is not known.")
        }
    }

    /// 400: the cursor is invalid, or belongs to another query.
    #[must_use]
    pub fn cursor(invalid: InvalidCursor) -> Self {
        Self::invalid_member("/cursor", invalid.to_string())
    }

    /// 503: others change the same thing so often that this change did not get its turn.
    #[must_use]
    pub fn contended(detail: &str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable").detail(detail)
    }

    /// 404: the resource does not exist, or belongs to another user.
    #[must_use]
    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found")
    }

    /// 404 that names the kind of resource, for example `turn`. The response is the same if the
    /// resource belongs to another user, so that the caller cannot find out whether it exists.
    #[must_use]
    pub fn no_such(what: &str) -> Self {
        Self::not_found().detail(format!("There is no such {what}, or it is not yours."))
    }

    /// Sets the explanation for people.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds a member.
    #[must_use]
    pub fn member(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// Sets the cause, for the log only.
    #[must_use]
    pub fn cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// A problem for a status without more information.
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

    /// The error code.
    #[must_use]
    pub fn error(&self) -> &'static str {
        self.error
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

/// The response has no body yet: the middleware adds it, with the request id.
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

impl From<EventRejected> for Problem {
    fn from(rejected: EventRejected) -> Self {
        match rejected {
            EventRejected::Invalid(errors) => Self::invalid(errors),
            EventRejected::Unprocessable(errors) => Self::unprocessable(errors),
            EventRejected::Forbidden(forbidden) => forbidden.into(),
        }
    }
}

impl From<ReactionRejected> for Problem {
    fn from(rejected: ReactionRejected) -> Self {
        match rejected {
            ReactionRejected::Invalid(errors) => Self::invalid(errors),
            ReactionRejected::LowConfidence => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "low_confidence")
                    .detail(ReactionRejected::LowConfidence.to_string())
            }
            ReactionRejected::Forbidden(forbidden) => forbidden.into(),
        }
    }
}

impl From<TurnRejected> for Problem {
    fn from(rejected: TurnRejected) -> Self {
        match rejected {
            TurnRejected::Invalid(errors) => Self::invalid(errors),
            TurnRejected::Forbidden(forbidden) => forbidden.into(),
        }
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
