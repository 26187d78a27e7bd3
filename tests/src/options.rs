//! Environment variables of tests and benchmarks.

use std::process::Command;
use std::str::FromStr;

/// The number in this variable, if it is set.
pub fn given<N: FromStr>(name: &str) -> Option<N> {
    std::env::var(name).ok()?.parse().ok()
}

/// The number in this variable, or the default.
pub fn number<N: FromStr>(name: &str, default: N) -> N {
    given(name).unwrap_or(default)
}

/// A number made of the commit's hash, 0 without one. A test that samples by it is the same for each run of a commit.
pub fn commit() -> usize {
    let head = Command::new("git")
        .args(["rev-parse", "--short=7", "HEAD"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output();
    let head = head.map(|head| String::from_utf8(head.stdout));
    let head = head.ok().and_then(Result::ok).unwrap_or_default();
    usize::from_str_radix(head.trim().get(..7).unwrap_or_default(), 16).unwrap_or_default()
}
