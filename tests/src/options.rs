//! What a run of a test or benchmark is told by the environment.

use std::str::FromStr;

/// The number of this name, if one was given.
pub fn given<N: FromStr>(name: &str) -> Option<N> {
    std::env::var(name).ok()?.parse().ok()
}

/// The number of this name, or else what it is in a plain run.
pub fn number<N: FromStr>(name: &str, default: N) -> N {
    given(name).unwrap_or(default)
}
