//! The hours and days of counts, in UTC.

use chrono::{DateTime, Days, DurationRound, NaiveDate, NaiveTime, TimeDelta, Utc};

/// An hour or a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Interval {
    /// The hour that begins at this time.
    Hour(DateTime<Utc>),
    /// A day.
    Day(NaiveDate),
}

impl Interval {
    /// The hour of a time.
    #[must_use]
    pub fn hour_of(at: DateTime<Utc>) -> Self {
        // Only times beyond what a time in nanoseconds can hold are not rounded.
        Self::Hour(at.duration_trunc(TimeDelta::hours(1)).unwrap_or(at))
    }

    /// When it begins.
    #[must_use]
    pub fn begin(self) -> DateTime<Utc> {
        match self {
            Self::Hour(begin) => begin,
            Self::Day(day) => day.and_time(NaiveTime::MIN).and_utc(),
        }
    }

    /// When it ends, exclusive.
    #[must_use]
    pub fn end(self) -> DateTime<Utc> {
        match self {
            Self::Hour(begin) => begin + TimeDelta::hours(1),
            Self::Day(day) => {
                let next = day.checked_add_days(Days::new(1)).unwrap_or(day);
                next.and_time(NaiveTime::MIN).and_utc()
            }
        }
    }

    /// The day that it is part of.
    #[must_use]
    pub fn day(self) -> NaiveDate {
        self.begin().date_naive()
    }
}
