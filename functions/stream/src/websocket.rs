//! The events of API Gateway's WebSocket API, each of which is a request of the function.

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hearback_domain::views::live::MAX_MESSAGE;
use hearback_lambda::Problem;
use lambda_http::RequestExt;
use lambda_http::request::RequestContext;

use crate::LiveFeed;

/// Middleware that answers the events of WebSockets, and passes on the requests of the HTTP API.
pub async fn handle_events(State(live): State<LiveFeed>, request: Request, next: Next) -> Response {
    let Some(RequestContext::WebSocket(context)) = request.extensions().get() else {
        return next.run(request).await;
    };
    let (Some(id), kind) = (context.connection_id.clone(), context.event_type.clone()) else {
        return Problem::of_status(StatusCode::BAD_REQUEST).into_response();
    };
    match kind.as_deref() {
        Some("CONNECT") => {
            let query = request.query_string_parameters();
            let connected = live.connect(&id, query.first("ticket").unwrap_or_default());
            connected.await.into_response()
        }
        Some("DISCONNECT") => {
            if let Err(error) = live.disconnect(&id).await {
                // The next frame that is posted finds the connection closed.
                tracing::warn!(%error, "a connection was not removed");
            }
            StatusCode::OK.into_response()
        }
        _ => {
            let body = to_bytes(request.into_body(), MAX_MESSAGE).await;
            let text = body.unwrap_or_default();
            live.receive(&id, &String::from_utf8_lossy(&text)).await;
            StatusCode::OK.into_response()
        }
    }
}
