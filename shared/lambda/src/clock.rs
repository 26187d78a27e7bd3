//! The time, passed in so that a test may set it.

use chrono::{DateTime, Utc};

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

    /// What time it is.
    #[must_use]
    pub fn now(self) -> DateTime<Utc> {
        (self.0)()
    }
}
