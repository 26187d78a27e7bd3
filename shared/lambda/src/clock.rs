//! The time, passed in so that a test may set it.

use chrono::{DateTime, Utc};
use hearback_domain::parse::to_instant;

/// Tells the time.
#[derive(Debug, Clone, Copy)]
pub struct Clock(fn() -> DateTime<Utc>);

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self(Utc::now)
    }

    /// A clock of one's own.
    #[must_use]
    pub fn of(now: fn() -> DateTime<Utc>) -> Self {
        Self(now)
    }

    /// What time it is, to the microsecond, as every instant is stored and compared.
    #[must_use]
    pub fn now(self) -> DateTime<Utc> {
        to_instant((self.0)())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_tells_no_nanoseconds() {
        let clock = Clock::of(|| DateTime::from_timestamp_nanos(1_767_519_000_123_456_789));
        assert_eq!(clock.now().timestamp_subsec_nanos(), 123_456_000);
    }
}
