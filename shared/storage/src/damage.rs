//! Counts what cannot be read, for a caller that reports it. Each case is also a warning in the log, which names it.

use std::cell::Cell;

tokio::task_local! {
    static UNREADABLE: Cell<u64>;
}

/// Runs `work`, in which [`unreadable`] counts.
pub async fn counting<F: Future>(work: F) -> F::Output {
    UNREADABLE.scope(Cell::new(0), work).await
}

/// How many rows and logs could not be read since [`counting`] began; one that is read again counts again.
#[must_use]
pub fn unreadable() -> u64 {
    UNREADABLE.try_with(Cell::get).unwrap_or_default()
}

/// Counts a row or a log that cannot be read.
pub(crate) fn note() {
    // Most callers do not count.
    let _ = UNREADABLE.try_with(|count| count.set(count.get() + 1));
}
