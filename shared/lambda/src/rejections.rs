//! The error responses that operations have in common, described once for the whole API.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use utoipa::IntoResponses;
use utoipa::openapi::RefOr;
use utoipa::openapi::response::Response;
use utoipa::openapi::schema::Ref;

#[cfg(feature = "description")]
pub(crate) use description::describe;

/// 400, 401 and 503: the errors of every operation that requires a token.
#[derive(Debug)]
pub struct Rejections;

/// The same, and 413: the errors of every operation with a body.
#[derive(Debug)]
pub struct BodyRejections;

/// 403.
#[derive(Debug)]
pub struct ForbiddenRejection;

/// A response that operations reference by name.
#[cfg_attr(
    not(feature = "description"),
    expect(
        dead_code,
        reason = "a function names the responses and never describes them"
    )
)]
struct SharedResponse {
    status: StatusCode,
    name: &'static str,
    error: &'static str,
    description: &'static str,
}

const INVALID: SharedResponse = SharedResponse {
    status: StatusCode::BAD_REQUEST,
    name: "InvalidRequest",
    error: "invalid_request",
    description: "The body is not JSON, or the body, the path or the query does not fit its schema. `errors` names each member by its JSON Pointer.",
};
const UNAUTHORIZED: SharedResponse = SharedResponse {
    status: StatusCode::UNAUTHORIZED,
    name: "Unauthorized",
    error: "unauthorized",
    description: "There is no valid token.",
};
const FORBIDDEN: SharedResponse = SharedResponse {
    status: StatusCode::FORBIDDEN,
    name: "Forbidden",
    error: "forbidden",
    description: "The token does not allow this: it is of another tenant, does not have the project, or lacks the scope to act for another user.",
};
const TOO_LARGE: SharedResponse = SharedResponse {
    status: StatusCode::PAYLOAD_TOO_LARGE,
    name: "TooLarge",
    error: "body_too_large",
    description: "The body is larger than the operation's limit.",
};
const UNAVAILABLE: SharedResponse = SharedResponse {
    status: StatusCode::SERVICE_UNAVAILABLE,
    name: "Unavailable",
    error: "unavailable",
    description: "The store could not be reached. Try again after `Retry-After` seconds.",
};

impl SharedResponse {
    fn reference(&self) -> (String, RefOr<Response>) {
        let reference = Ref::from_response_name(self.name);
        (self.status.as_str().to_owned(), reference.into())
    }
}

fn references(shared: &[SharedResponse]) -> BTreeMap<String, RefOr<Response>> {
    shared.iter().map(SharedResponse::reference).collect()
}

impl IntoResponses for Rejections {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        references(&[INVALID, UNAUTHORIZED, UNAVAILABLE])
    }
}

impl IntoResponses for BodyRejections {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        references(&[INVALID, UNAUTHORIZED, TOO_LARGE, UNAVAILABLE])
    }
}

impl IntoResponses for ForbiddenRejection {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        references(&[FORBIDDEN])
    }
}

#[cfg(feature = "description")]
mod description {
    use axum::http::StatusCode;
    use serde_json::json;
    use utoipa::openapi::ComponentsBuilder;
    use utoipa::openapi::content::ContentBuilder;
    use utoipa::openapi::response::{Response, ResponseBuilder};
    use utoipa::openapi::schema::Ref;
    use utoipa::{PartialSchema, ToSchema};

    use super::{FORBIDDEN, INVALID, SharedResponse, TOO_LARGE, UNAUTHORIZED, UNAVAILABLE};
    use crate::problem::{MEDIA_TYPE, ProblemDocument};

    impl SharedResponse {
        fn response(&self) -> Response {
            let invalid_member = (self.status == StatusCode::BAD_REQUEST).then(
                || json!({"pointer": "/data/rating", "detail": "must be an integer from 1 to 5"}),
            );
            let mut example = json!({
                "type": "about:blank",
                "title": self.status.canonical_reason(),
                "status": self.status.as_u16(),
                "error": self.error,
                "request_id": "5f0f6a4e-5b0f-4c53-9a77-0f2e6c1b94d4",
            });
            if let (Some(error), Some(members)) = (invalid_member, example.as_object_mut()) {
                members.insert("errors".to_owned(), json!([error]));
            }
            let content = ContentBuilder::new()
                .schema(Some(Ref::from_schema_name(ProblemDocument::name())))
                .example(Some(example))
                .build();
            ResponseBuilder::new()
                .description(self.description)
                .content(MEDIA_TYPE, content)
                .build()
        }
    }

    /// Adds the responses that operations reference.
    pub(crate) fn describe(components: ComponentsBuilder) -> ComponentsBuilder {
        let mut schemas = vec![(
            ProblemDocument::name().into_owned(),
            ProblemDocument::schema(),
        )];
        ProblemDocument::schemas(&mut schemas);
        let shared = [INVALID, UNAUTHORIZED, FORBIDDEN, TOO_LARGE, UNAVAILABLE];
        let responses = shared.map(|shared| (shared.name, shared.response()));
        components
            .schemas_from_iter(schemas)
            .responses_from_iter(responses)
    }
}
