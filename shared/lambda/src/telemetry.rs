//! Logs: one JSON object a line, which CloudWatch parses. `RUST_LOG` sets the levels.
//!
//! Logs contain routes, statuses, ids of requests and messages, and durations; never a body, a
//! comment or a token.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts logging for a function. Safe to repeat.
pub fn init() {
    let lines = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_target(false)
        // CloudWatch adds the time of each line.
        .without_time();
    let _ = tracing_subscriber::registry()
        .with(lines)
        .with(filter("info"))
        .try_init();
}

/// The levels of `default`, overridden by `RUST_LOG` for the targets that it names.
#[must_use]
pub fn filter_with_overrides(default: &str) -> Targets {
    let directives = std::env::var("RUST_LOG").ok();
    let combined = directives.and_then(|directives| format!("{default},{directives}").parse().ok());
    combined.unwrap_or_else(|| filter(default))
}

/// The levels of `RUST_LOG`, or else of `default`. Supports targets and levels only; patterns would
/// link regular expressions into every function.
#[must_use]
pub fn filter(default: &str) -> Targets {
    std::env::var("RUST_LOG")
        .ok()
        .and_then(|directives| directives.parse().ok())
        .or_else(|| default.parse().ok())
        .unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO))
}
