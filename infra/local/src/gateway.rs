//! Replaces API Gateway: verifies the token, passes its claims to the function's router, and limits the load. Also serves
//! `/health`, `/openapi.json`, `/docs`, `/demo` and `/console`, which need no token.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Json, Router};
use hearback_batch::Intake;
use hearback_console::SignIn;
use hearback_domain::identity::claims::ProjectsClaim;
use hearback_domain::text::payload::{self, escaped_size};
use hearback_erasure::{Erasures, Requests};
use hearback_lambda::Problem;
use hearback_lambda::caller::Unauthorized;
use hearback_lambda::http::LoggedTenant;
use hearback_turns::Registry;
use lambda_http::request::RequestContext;
use serde_json::json;
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::body::{BodyError, discard, paced};
use crate::demo_page;
use crate::description::openapi;
use crate::hosts::Hosts;
use crate::live::{SocketGateway, accept_sockets};
use crate::load::Load;
use crate::probe::Probe;
use crate::rejections::{self, RejectionLog};
use crate::slots::{Overloaded, RequestSlots};
use crate::token::{Claims, Tokens};

/// A response of fewer bytes fits into Lambda's limit in any encoding.
const SMALL_RESPONSE: u64 = 1_000_000;

/// The content security policy of API responses: they may load nothing.
const API_POLICY: &str =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The content security policy of Swagger UI, which has inline styles and images.
const DOCS_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
    img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    object-src 'none'";

/// Load limits of the gateway.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Small requests in progress at a time; a larger request counts as several while its body arrives. A user can have
    /// at most three quarters of them, a tenant seven eighths.
    pub requests: u32,
    /// Maximum duration of a request, from its head to its response.
    pub request_time: Duration,
    /// How far a body may lag behind 16 KiB a second.
    pub body_lag: Duration,
    /// Connections at a time.
    pub connections: usize,
    /// How long an idle connection is kept.
    pub idle: Duration,
    /// How long a connection to the live feed may be idle, as in AWS.
    pub socket_idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests: 128,
            // As in an HTTP API.
            request_time: Duration::from_secs(30),
            body_lag: Duration::from_secs(5),
            connections: 1_024,
            idle: Duration::from_mins(1),
            socket_idle: Duration::from_mins(10),
        }
    }
}

/// The routes of all functions.
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

/// The gateway's state.
#[derive(Debug)]
pub struct Gateway {
    /// Verifies tokens.
    pub tokens: Tokens,
    /// The hosts that are served.
    pub hosts: Hosts,
    /// The load of the machine.
    pub load: Load,
    /// Load limits.
    pub limits: Limits,
    /// Checks the stores for `/health`.
    pub probe: Probe,
    /// Counts rejected requests.
    pub rejections: RejectionLog,
    /// Accepts WebSockets.
    pub(crate) sockets: SocketGateway,
}

impl Gateway {
    /// Puts the gateway in front of these functions.
    pub fn router(self, functions: Router) -> Router {
        let Self { load, limits, .. } = self;
        let functions = functions
            .route_layer(from_fn_with_state(limits.body_lag, receive))
            .route_layer(from_fn_with_state(Arc::new(self.tokens), authorize))
            .route_layer(from_fn(limit_response))
            .route_layer(from_fn_with_state((load, limits.request_time), admit))
            .layer(from_fn_with_state(self.sockets, accept_sockets));
        hearback_lambda::http::service(
            functions
                .merge(demo_page::routes())
                .merge(hearback_console::routes(&SignIn::from_env()))
                .merge(docs())
                .merge(health(self.probe))
                .layer(from_fn_with_state(Arc::new(self.hosts), check_host))
                .layer(from_fn_with_state(self.rejections, rejections::count)),
        )
        .layer(map_response(set_not_ready))
        .layer(map_response(add_security_headers))
    }
}

/// The process is live if it responds, and ready if it can store and process feedback.
fn health(probe: Probe) -> Router {
    let ready = async move || {
        let (is_ready, document) = probe.report().await;
        let mut response = Json(document).into_response();
        if !is_ready {
            response.extensions_mut().insert(NotReady);
        }
        response
    };
    Router::new()
        .route("/health", get(ready))
        .route("/health/live", get(async || Json(json!({"status": "ok"}))))
}

/// Marks a response as a 503 whose body is not a problem document.
#[derive(Debug, Clone, Copy)]
struct NotReady;

async fn set_not_ready(mut response: Response) -> Response {
    if response.extensions().get::<NotReady>().is_some() {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

/// The OpenAPI document and its page.
fn docs() -> Router {
    let page = SwaggerUi::new("/docs")
        .url("/openapi.json", openapi())
        // By default the page sends the document to an external validator.
        .config(Config::default().validator_url("none"));
    Router::from(page).layer(map_response(async |page: Response| {
        ([(CONTENT_SECURITY_POLICY, DOCS_POLICY)], page)
    }))
}

/// Rejects requests for other hosts: otherwise a page whose name resolves to this machine (DNS rebinding) could read
/// responses.
async fn check_host(State(hosts): State<Arc<Hosts>>, request: Request, next: Next) -> Response {
    if hosts.includes(request.uri(), request.headers()) {
        return next.run(request).await;
    }
    Problem::new(StatusCode::MISDIRECTED_REQUEST, "unknown_host")
        .detail("This gateway does not serve this Host. Allow it with `hearback --allowed-host`.")
        .into_response()
}

/// Keeps browsers from interpreting a response as another type, and from sending its URL as a referrer.
async fn add_security_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers
        .entry(CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(API_POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// Admits a request if a slot is free, before its token is verified or its body is read.
async fn admit(
    State((load, time)): State<(Load, Duration)>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(admitted) = load.admit() else {
        discard(request.into_body());
        return overloaded(Overloaded::All);
    };
    request.extensions_mut().insert(admitted.slots());
    // A client that never sends its body must not keep its slot. A handler that is dropped while it writes leaves the
    // same state as a crash, which every handler tolerates.
    let responded = tokio::time::timeout(time, next.run(request)).await;
    responded.unwrap_or_else(|_| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "timed_out")
            .detail("The request took too long. Try again.")
            .into_response()
    })
}

/// As in Lambda: a response that is too large is replaced by an error.
async fn limit_response(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let size = response.body().size_hint().exact();
    if size.is_none_or(|size| size < SMALL_RESPONSE) {
        return response;
    }
    let (head, body) = response.into_parts();
    match axum::body::to_bytes(body, payload::MAX_RESPONSE).await {
        Ok(body) if escaped_size(&body) <= payload::MAX_RESPONSE => {
            Response::from_parts(head, Body::from(body))
        }
        Ok(_) | Err(_) => Problem::of_status(StatusCode::INTERNAL_SERVER_ERROR)
            .cause("the response is larger than Lambda allows")
            .into_response(),
    }
}

fn overloaded(overloaded: Overloaded) -> Response {
    let detail = match overloaded {
        Overloaded::All => "Too many requests are in progress. Try again.",
        Overloaded::Share => "Too many requests of this user or tenant are in progress. Try again.",
    };
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded")
        .detail(detail)
        .into_response()
}

/// Counts the request for its caller, and reads its body under the limits.
async fn receive(
    State(lag): State<Duration>,
    Extension(slots): Extension<RequestSlots>,
    Extension(claims): Extension<Claims>,
    request: Request,
    next: Next,
) -> Response {
    // A body of unknown length declares 0 bytes.
    let declared = request.body().size_hint().lower();
    if let Err(error) = slots.assign(&claims.tenant, &claims.sub, declared) {
        discard(request.into_body());
        return overloaded(error);
    }
    let (head, body) = request.into_parts();
    let (body, status) = paced(body, slots, lag);
    let response = next.run(Request::from_parts(head, body)).await;
    // The handler saw an incomplete body, so its response says nothing about the cause.
    match status.error() {
        None => response,
        Some(BodyError::Overloaded(error)) => overloaded(error),
        Some(BodyError::TooSlow) => Problem::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow")
            .detail("The body arrived too slowly. Nothing was stored; send it faster.")
            .into_response(),
    }
}

async fn authorize(
    State(tokens): State<Arc<Tokens>>,
    mut request: Request,
    next: Next,
) -> Response {
    let verified: Option<(Claims, i64)> = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .and_then(|(_, token)| tokens.verify(token.trim()));
    let known = verified.and_then(|(claims, end)| Some((context(&claims, end).ok()?, claims)));
    let Some((context, claims)) = known else {
        discard(request.into_body());
        return Unauthorized.into_response();
    };
    let tenant = claims.tenant.clone();
    request.extensions_mut().insert(context);
    request.extensions_mut().insert(claims);
    request.extensions_mut().insert(ProjectsClaim::Json);
    let mut response = next.run(request).await;
    response.extensions_mut().insert(LoggedTenant(tenant));
    response
}

/// The claims as an HTTP API passes them to a function, each as text. The projects are a JSON array, which is
/// unambiguous.
fn context(claims: &Claims, end: i64) -> Result<RequestContext> {
    let context = json!({
        "authorizer": {"jwt": {"claims": {
            "sub": claims.sub,
            "tenant": claims.tenant,
            "projects": serde_json::to_string(&claims.projects)?,
            "scope": claims.scope,
            "exp": end.to_string(),
        }}},
        "http": {"method": "GET"},
    });
    Ok(RequestContext::ApiGatewayV2(serde_json::from_value(
        context,
    )?))
}
