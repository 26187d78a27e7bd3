//! What every HTTP function has around its routes: errors as problem documents, a request id, one
//! log line for each request, and a panic that is answered instead of dropped.

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

/// The header that tells a caller the id of the request.
pub const REQUEST_ID: &str = "x-request-id";

/// Wraps the routes of a function.
pub fn service(routes: Router) -> Router {
    routes
        .layer(CatchPanicLayer::custom(|_| {
            Problem::of_status(StatusCode::INTERNAL_SERVER_ERROR)
                .cause("the handler panicked")
                .into_response()
        }))
        .layer(from_fn(answer))
}

/// Names the request, and finishes its answer.
async fn answer(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let request_id = request_id(&request);
    let method = request.method().clone();
    // The route and not the path: a path has user ids in it.
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or("none", MatchedPath::as_str)
        .to_owned();
    let response = finish(next.run(request).await, &request_id);
    let status = response.status().as_u16();
    let micros = started.elapsed().as_micros();
    tracing::info!(%method, route, status, micros, request_id, "answered");
    response
}

/// The id that API Gateway gave, or a new one.
fn request_id(request: &Request) -> String {
    let context = request.extensions().get::<RequestContext>();
    let given = match context {
        Some(RequestContext::ApiGatewayV2(context)) => context.request_id.clone(),
        _ => None,
    };
    given.unwrap_or_else(|| uuid::Uuid::new_v4().to_string())
}

fn finish(mut response: Response, request_id: &str) -> Response {
    let problem = response.extensions_mut().remove::<Problem>().or_else(|| {
        let status = response.status();
        (status.is_client_error() || status.is_server_error()).then(|| Problem::of_status(status))
    });
    if let Some(problem) = problem {
        if let Some(cause) = problem.log_cause() {
            let status = problem.status().as_u16();
            tracing::error!(status, cause, request_id, "request failed");
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
