//! Runs the function `stream` on Lambda, for a route of the HTTP API and for the WebSocket API.

use axum::middleware::from_fn_with_state;
use hearback_lambda::{FromEnv, serve_router, telemetry};
use hearback_stream::{LiveFeed, handle_events, routes};

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), lambda_runtime::Error> {
    telemetry::init();
    let live = LiveFeed::from_env()?;
    let router = routes().router(live.clone());
    serve_router(router.layer(from_fn_with_state(live, handle_events))).await
}
