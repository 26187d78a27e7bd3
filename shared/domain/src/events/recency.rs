//! Which of several feedback acts is the latest. See docs/reference/rules.md, "The latest feedback".

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

/// How far a time that a caller gives may be after its receipt.
pub const MAX_AHEAD: TimeDelta = TimeDelta::minutes(5);
/// The error of a later time.
pub(crate) const AHEAD: &str = "must not be more than 5 minutes in the future";

/// The position of a feedback act in time: of several acts, the greatest counts.
///
/// Compared by the time of the act, then by the time of receipt, then by the id, so that no two acts are equal and the
/// order in which they are read or processed does not matter. The time of an act comes from its caller's clock. It
/// counts as at most the time of receipt, so that a clock that is ahead does not outrank later feedback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Recency {
    at: DateTime<Utc>,
    received_at: DateTime<Utc>,
    id: Uuid,
}

impl Recency {
    /// The position of the act `id`, which happened at `ts` by its caller's clock.
    #[must_use]
    pub fn new(ts: DateTime<Utc>, received_at: DateTime<Utc>, id: Uuid) -> Self {
        Self {
            at: ts.min(received_at),
            received_at,
            id,
        }
    }

    /// The time of the act, at most that of its receipt.
    #[must_use]
    pub fn at(&self) -> DateTime<Utc> {
        self.at
    }

    /// The time of receipt.
    #[must_use]
    pub fn received_at(&self) -> DateTime<Utc> {
        self.received_at
    }

    /// The id of the act.
    #[must_use]
    pub fn id(&self) -> Uuid {
        self.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acts_are_ordered_by_time_then_receipt_then_id() {
        let at = |second| DateTime::from_timestamp(second, 0).unwrap();
        let act = |ts, received, id| Recency::new(at(ts), at(received), Uuid::from_u128(id));
        let ascending = [
            act(1, 9, 9),
            act(2, 3, 9),
            act(2, 4, 1),
            act(2, 4, 2),
            // A clock that is ahead by a year does not outrank what is received a second later.
            act(31_536_000, 5, 9),
            act(6, 6, 1),
        ];
        assert!(ascending.is_sorted_by(|one, other| one < other));
    }
}
