//! Middleware of all HTTP functions: problem documents for errors, a request id, one log line for
//! each request, and a response for panics.

use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use lambda_http::request::RequestContext;
use tower_http::catch_panic::CatchPanicLayer;

use crate::problem::{MEDIA_TYPE, Problem};

/// The response header with the id of the request.
pub const REQUEST_ID: &str = "x-request-id";

/// An extension of a response: the tenant for the log line, if the claims do not have it.
#[derive(Debug, Clone)]
pub struct LoggedTenant(pub String);

/// Wraps the routes of a function.
pub fn service(routes: Router) -> Router {
    routes
        .layer(CatchPanicLayer::custom(|_| {
            Problem::of_status(StatusCode::INTERNAL_SERVER_ERROR)
                .cause("the handler panicked")
                .into_response()
        }))
        .layer(from_fn(respond))
}

/// Adds the request id, completes the response and logs the request.
async fn respond(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let request_id = request_id(&request);
    let method = request.method().clone();
    // The route instead of the path, because paths contain user ids.
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or("none", MatchedPath::as_str)
        .to_owned();
    let claimed = tenant(&request);
    let response = finish(next.run(request).await, &request_id, claimed.as_deref());
    let status = response.status().as_u16();
    let micros = started.elapsed().as_micros();
    let logged = response.extensions().get().map(|LoggedTenant(name)| name);
    let tenant = claimed.as_ref().or(logged).map(String::as_str);
    tracing::info!(%method, route, status, micros, request_id, tenant, "answered");
    response
}

/// The tenant in the claims that API Gateway verified.
fn tenant(request: &Request) -> Option<String> {
    let Some(RequestContext::ApiGatewayV2(context)) = request.extensions().get() else {
        return None;
    };
    let jwt = context.authorizer.as_ref()?.jwt.as_ref()?;
    jwt.claims.get("tenant").cloned()
}

/// The request id of API Gateway, or a new one.
fn request_id(request: &Request) -> String {
    let context = request.extensions().get::<RequestContext>();
    let id = match context {
        Some(RequestContext::ApiGatewayV2(context)) => context.request_id.clone(),
        _ => None,
    };
    id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string())
}

fn finish(mut response: Response, request_id: &str, tenant: Option<&str>) -> Response {
    let problem = response.extensions_mut().remove::<Problem>().or_else(|| {
        let status = response.status();
        (status.is_client_error() || status.is_server_error()).then(|| Problem::of_status(status))
    });
    if let Some(problem) = problem {
        if let Some(cause) = problem.log_cause() {
            let status = problem.status().as_u16();
            tracing::error!(status, cause, request_id, tenant, "request failed");
        }
        *response.body_mut() = Body::from(problem.document(request_id));
        let headers = response.headers_mut();
        headers.remove(header::CONTENT_LENGTH);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    }
    if let Ok(id) = HeaderValue::from_str(request_id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}
