//! How long the ledger is kept, and how long a turn with its vector, log, message, reactions and signals.

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};

/// Retention of the ledger in days: the default for events, the minimum for dedupe claims, and the retention of
/// retractions, tombstones, mirrored entries and finished erasures. It is longer than a message can be in flight: 14
/// days in a queue and 14 in its DLQ, and the same again after each of two redrives.
pub const LEDGER_DAYS: u16 = 90;
const _: () = assert!(LEDGER_DAYS >= 3 * (14 + 14));

/// How long turns are kept after their registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention(Option<TimeDelta>);

impl Retention {
    /// The default number of days.
    pub const DEFAULT_DAYS: u16 = 365;
    /// Maximum number of days, also of an event, and of the period of a report or a training export.
    pub const MAX_DAYS: i64 = 3650;

    /// A retention in days; 0 means forever.
    #[must_use]
    pub fn days(days: u16) -> Self {
        Self((days > 0).then(|| TimeDelta::days(i64::from(days))))
    }

    /// When a turn that is registered at `now` expires, in whole seconds; `None` means never.
    #[must_use]
    pub fn until(self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.0.map(|retention| (now + retention).trunc_subsecs(0))
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
    fn zero_days_mean_forever() {
        let now: DateTime<Utc> = "2026-01-04T09:30:00.5Z".parse().unwrap();
        assert_eq!(Retention::days(0).until(now), None);
        let until = Retention::days(30).until(now).unwrap();
        assert_eq!(until.to_rfc3339(), "2026-02-03T09:30:00+00:00");
    }
}
