//! The times of replaced reactions.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

/// The times of a replaced reaction. The pages of a report are sorted by the reactions that were current when the first
/// page was read ([`crate::views::period`]).
///
/// Stored as an array of three values, with times in microseconds, to keep the item small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(i64, i64, bool)", into = "(i64, i64, bool)")]
pub struct Trace {
    /// The time of the reaction.
    pub ts: DateTime<Utc>,
    /// When the reaction was received.
    pub received_at: DateTime<Utc>,
    /// Whether the reaction counts, which a tombstone does not.
    pub counts: bool,
}

impl From<(i64, i64, bool)> for Trace {
    fn from((ts, received_at, counts): (i64, i64, bool)) -> Self {
        let instant = |micros| DateTime::from_timestamp_micros(micros).unwrap_or_default();
        Self {
            ts: instant(ts),
            received_at: instant(received_at),
            counts,
        }
    }
}

impl From<Trace> for (i64, i64, bool) {
    fn from(trace: Trace) -> Self {
        let micros = |instant: DateTime<Utc>| instant.timestamp_micros();
        (micros(trace.ts), micros(trace.received_at), trace.counts)
    }
}

/// How long traces are kept: longer than a client needs to read all pages of a report.
pub const TRAIL_AGE: TimeDelta = TimeDelta::hours(1);
/// Maximum number of traces.
pub const TRAIL_LENGTH: usize = 16;
