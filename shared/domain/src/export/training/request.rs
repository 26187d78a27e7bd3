//! The request for a training export, and its period.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::events::retention::Retention;
use crate::identity::identifier::ProjectId;
use hearback_wire::{FieldError, request};

/// The default length of a period, in days.
pub const DEFAULT_DAYS: i64 = 365;

request! {
    /// A request for a training export.
    pub struct TrainingRequest, closed {
        /// The project whose feedback is exported.
        "project" => project: required ProjectId,
        /// The first day of the period.
        "from" => from: nullable NaiveDate,
        /// The last day of the period.
        "to" => to: nullable NaiveDate,
    }
}

/// A period of days in UTC, including both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Days {
    /// The first day.
    pub from: NaiveDate,
    /// The last day.
    pub to: NaiveDate,
}

impl TrainingRequest {
    /// The period of the request: by default a year that ends `today`. An error if it is empty or too long.
    pub fn days(&self, today: NaiveDate) -> Result<Days, FieldError> {
        let length = TimeDelta::days(DEFAULT_DAYS - 1);
        let default_to = || match self.from {
            Some(from) => today.max(from),
            None => today,
        };
        let to = self.to.unwrap_or_else(default_to);
        let from = self.from.unwrap_or_else(|| {
            let first = to.checked_sub_signed(length);
            first.unwrap_or(NaiveDate::MIN)
        });
        let days = (to - from).num_days() + 1;
        if (1..=Retention::MAX_DAYS).contains(&days) {
            return Ok(Days { from, to });
        }
        Err(FieldError {
            pointer: "/training/from".to_owned(),
            detail: format!(
                "must be on or before `to`, and {} days at most",
                Retention::MAX_DAYS
            ),
        })
    }
}

impl Days {
    /// Whether a time is in the period.
    #[must_use]
    pub fn contain(&self, ts: DateTime<Utc>) -> bool {
        (self.from..=self.to).contains(&ts.date_naive())
    }

    /// The days of the period from `first` on.
    pub fn each_from(self, first: NaiveDate) -> impl Iterator<Item = NaiveDate> {
        let days = std::iter::successors(Some(first.max(self.from)), NaiveDate::succ_opt);
        days.take_while(move |day| *day <= self.to)
    }
}
