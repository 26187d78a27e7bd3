//! Logs: one JSON object a line, which CloudWatch reads as it is. `RUST_LOG` sets what is logged.
//!
//! What is logged are routes, statuses, ids of requests and messages, and durations; never a body,
//! a comment or a token.

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
        // CloudWatch stamps each line itself.
        .without_time();
    let _ = tracing_subscriber::registry()
        .with(lines)
        .with(filter("info"))
        .try_init();
}

/// What is logged: as `default` says, and as `RUST_LOG` does of the targets and the level that it names.
#[must_use]
pub fn filter_over(default: &str) -> Targets {
    let set = std::env::var("RUST_LOG").ok();
    let over = set.and_then(|set| format!("{default},{set}").parse().ok());
    over.unwrap_or_else(|| filter(default))
}

/// What is logged: as `RUST_LOG` says, or as `default` does. Targets and levels only; patterns
/// would bring regular expressions into every function.
#[must_use]
pub fn filter(default: &str) -> Targets {
    std::env::var("RUST_LOG")
        .ok()
        .and_then(|directives| directives.parse().ok())
        .or_else(|| default.parse().ok())
        .unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO))
}
