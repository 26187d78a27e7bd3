//! How long a turn is kept, and what belongs to it: its vector, log, message, reactions and signals.

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};

/// How long turns are kept, counted from their registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention(Option<TimeDelta>);

impl Retention {
    /// Days, unless the deployment says otherwise.
    pub const DEFAULT_DAYS: u16 = 365;
    /// Most days that a deployment may say.
    pub const MAX_DAYS: u16 = 3650;

    /// So many days; 0 is without end.
    #[must_use]
    pub fn days(days: u16) -> Self {
        Self((days > 0).then(|| TimeDelta::days(i64::from(days))))
    }

    /// When a turn expires that is registered `now`, in whole seconds; `None` is never.
    #[must_use]
    pub fn until(self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.0.map(|kept| (now + kept).trunc_subsecs(0))
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self::days(Self::DEFAULT_DAYS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_days_are_without_end() {
        let now: DateTime<Utc> = "2026-01-04T09:30:00.5Z".parse().unwrap();
        assert_eq!(Retention::days(0).until(now), None);
        let until = Retention::days(30).until(now).unwrap();
        assert_eq!(until.to_rfc3339(), "2026-02-03T09:30:00+00:00");
    }
}
