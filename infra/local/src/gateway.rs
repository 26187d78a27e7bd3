//! What API Gateway does: checks the token, hands its claims to the function's own router, and
//! answers nothing else. It takes on no more requests than it can answer in time. Besides, `/health`,
//! `/openapi.json`, `/docs` and `/demo`, without a token.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use chrono::Utc;
use futures::StreamExt;
use hearback_batch::Intake;
use hearback_domain::payload::{self, carried_text};
use hearback_erasure::{Erasures, Requests};
use hearback_lambda::Problem;
use hearback_lambda::caller::Unauthorized;
use hearback_turns::Registry;
use lambda_http::request::RequestContext;
use serde_json::json;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{License, OpenApi};
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::demo;
use crate::health::Health;
use crate::load::Load;
use crate::token::{Claims, Tokens};

/// How long and how much is read of a body that is thrown away: the largest that any route takes.
const DISCARD_TIME: Duration = Duration::from_secs(5);
const DISCARD_BYTES: usize = payload::MAX_BODY;
/// Bytes below which an answer can be carried, whatever is in it.
const SMALL_ANSWER: u64 = 1_000_000;

/// How much the gateway takes on.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Small requests that are answered at once; a larger one counts as several.
    pub requests: u32,
    /// How long a request may take, from its head to its answer.
    pub request_time: Duration,
    /// Connections.
    pub connections: usize,
    /// How long a connection is kept on which no request comes.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests: 128,
            // As an HTTP API.
            request_time: Duration::from_secs(30),
            connections: 1_024,
            idle: Duration::from_mins(1),
        }
    }
}

/// Every route of every function.
pub fn functions(registry: impl Into<Registry>, erasures: Erasures) -> Router {
    let registry = registry.into();
    let app = registry.app.clone();
    let requests = Requests::new(app.app.clone(), erasures);
    hearback_submit::routes()
        .router(app.app.clone())
        .merge(hearback_batch::routes().router(Intake::from(app.app.clone())))
        .merge(hearback_preferences::routes().router(app.app.clone()))
        .merge(hearback_erasure::routes().router(requests))
        .merge(hearback_turns::routes().router(registry))
        .merge(hearback_retrieval::routes().router(app))
}

/// The description of the API.
#[must_use]
pub fn openapi() -> OpenApi {
    let mut document = OpenApi::default();
    document.merge(hearback_submit::routes().description());
    document.merge(hearback_batch::routes().description());
    document.merge(hearback_retrieval::routes().description());
    document.merge(hearback_turns::routes().description());
    document.merge(hearback_preferences::routes().description());
    document.merge(hearback_erasure::routes().description());
    "Hearback".clone_into(&mut document.info.title);
    env!("CARGO_PKG_VERSION").clone_into(&mut document.info.version);
    document.info.contact = None;
    document.info.license = Some(License::new("Apache-2.0"));
    document.info.description =
        Some("Hears what users make of an AI's answers and turns it into learning.".to_owned());
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("JWT")
        .build();
    document
        .components
        .get_or_insert_default()
        .add_security_scheme("bearer", SecurityScheme::Http(bearer));
    document
}

/// The gateway of these functions; each request may take so long.
pub fn router(
    functions: Router,
    tokens: Tokens,
    admission: (Load, Duration),
    health: Health,
) -> Router {
    let told = async move || Json(health.document(Utc::now()));
    let functions = functions
        .route_layer(from_fn_with_state(Arc::new(tokens), authorize))
        .route_layer(from_fn(carry))
        .route_layer(from_fn_with_state(admission, admit));
    hearback_lambda::http::service(
        functions
            .route("/health", get(told))
            .merge(demo::routes())
            .merge(
                SwaggerUi::new("/docs")
                    .url("/openapi.json", openapi())
                    // The page would have an outside host check the description.
                    .config(Config::default().validator_url("none")),
            ),
    )
}

/// Takes a request on if there is room for it, before its token is checked or its body read.
async fn admit(
    State((load, time)): State<(Load, Duration)>,
    request: Request,
    next: Next,
) -> Response {
    let Some(_admitted) = load.admit(request.body().size_hint().upper()) else {
        return overloaded(request.into_body());
    };
    // A client that never sends its body must not keep its place. A handler that has begun to write ends
    // as one whose process died, which every one of them bears.
    let answered = tokio::time::timeout(time, next.run(request)).await;
    answered.unwrap_or_else(|_| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "timed_out")
            .detail("The request took too long. Try again.")
            .into_response()
    })
}

/// What Lambda does with an answer that it cannot carry: the caller gets an error instead.
async fn carry(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let size = response.body().size_hint().exact();
    if size.is_none_or(|size| size < SMALL_ANSWER) {
        return response;
    }
    let (head, body) = response.into_parts();
    match axum::body::to_bytes(body, payload::MAX_RESPONSE).await {
        Ok(body) if carried_text(&body) <= payload::MAX_RESPONSE => {
            Response::from_parts(head, Body::from(body))
        }
        Ok(_) | Err(_) => Problem::of_status(StatusCode::INTERNAL_SERVER_ERROR)
            .cause("the answer is larger than Lambda carries")
            .into_response(),
    }
}

/// The answer to a request that there is no room for. Its body is thrown away while it comes: closing the
/// connection on a client that still sends could cost it the answer.
fn overloaded(body: Body) -> Response {
    if !body.is_end_stream() {
        tokio::spawn(tokio::time::timeout(DISCARD_TIME, discard(body)));
    }
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded")
        .detail("Too many requests are under way. Try again.")
        .into_response()
}

async fn discard(body: Body) {
    let mut body = body.into_data_stream();
    let mut left = DISCARD_BYTES;
    while let Some(Ok(bytes)) = body.next().await
        && left >= bytes.len()
    {
        left -= bytes.len();
    }
}

async fn authorize(
    State(tokens): State<Arc<Tokens>>,
    mut request: Request,
    next: Next,
) -> Response {
    let claims = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .and_then(|(_, token)| tokens.check(token.trim()));
    let Some(context) = claims.and_then(|claims| context(&claims).ok()) else {
        return Unauthorized.into_response();
    };
    request.extensions_mut().insert(context);
    next.run(request).await
}

/// The claims as an HTTP API hands them to a function: every one as text, a list as `[a b]`, or
/// as JSON where that could not be told apart.
fn context(claims: &Claims) -> Result<RequestContext> {
    let projects = if claims.projects.iter().any(|project| project.contains(' ')) {
        serde_json::to_string(&claims.projects)?
    } else {
        format!("[{}]", claims.projects.join(" "))
    };
    let context = json!({
        "authorizer": {"jwt": {"claims": {
            "sub": claims.sub,
            "tenant": claims.tenant,
            "projects": projects,
            "scope": claims.scope,
        }}},
        "http": {"method": "GET"},
    });
    Ok(RequestContext::ApiGatewayV2(serde_json::from_value(
        context,
    )?))
}
