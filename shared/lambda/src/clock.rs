//! The clock, which tests can replace.

use chrono::{DateTime, Utc};
use hearback_wire::parse::to_instant;

/// A source of the current time.
#[derive(Debug, Clone, Copy)]
pub struct Clock(fn() -> DateTime<Utc>);

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self(Utc::now)
    }

    /// A clock that calls a function.
    #[must_use]
    pub fn of(now: fn() -> DateTime<Utc>) -> Self {
        Self(now)
    }

    /// The current time in microseconds, the precision in which times are stored and compared.
    #[must_use]
    pub fn now(self) -> DateTime<Utc> {
        to_instant((self.0)())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_time_has_no_nanoseconds() {
        let clock = Clock::of(|| DateTime::from_timestamp_nanos(1_767_519_000_123_456_789));
        assert_eq!(clock.now().timestamp_subsec_nanos(), 123_456_000);
    }
}
