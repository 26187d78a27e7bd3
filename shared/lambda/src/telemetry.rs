//! Logs: one JSON object a line, which CloudWatch reads as it is. `RUST_LOG` sets what is logged.
//!
//! What is logged are routes, statuses, ids of requests and messages, and durations; never a body,
//! a comment or a token.

use tracing_subscriber::EnvFilter;

/// Starts logging for a function. Safe to repeat.
pub fn init() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let _ = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_env_filter(filter)
        .with_current_span(false)
        .with_target(false)
        // CloudWatch stamps each line itself.
        .without_time()
        .try_init();
}
