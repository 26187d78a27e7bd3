//! What a run of a test or benchmark is told by the environment.

use std::process::Command;
use std::str::FromStr;

/// The number of this name, if one was given.
pub fn given<N: FromStr>(name: &str) -> Option<N> {
    std::env::var(name).ok()?.parse().ok()
}

/// The number of this name, or else what it is in a plain run.
pub fn number<N: FromStr>(name: &str, default: N) -> N {
    given(name).unwrap_or(default)
}

/// A number that the commit chooses, 0 without one: what a test samples rotates with it, and stays the same for it.
pub fn commit() -> usize {
    let head = Command::new("git")
        .args(["rev-parse", "--short=7", "HEAD"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output();
    let head = head.map(|head| String::from_utf8(head.stdout));
    let head = head.ok().and_then(Result::ok).unwrap_or_default();
    usize::from_str_radix(head.trim().get(..7).unwrap_or_default(), 16).unwrap_or_default()
}
