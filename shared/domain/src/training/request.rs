//! What a training export is asked for.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::identifier::ProjectId;
use crate::parse::{Errors, FieldError, Object, identifier, string};

/// Most days of a period.
pub const MAX_DAYS: i64 = 3650;
/// Days of a period whose beginning is not named.
pub const DEFAULT_DAYS: i64 = 365;

/// Which feedback a training export is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Feedback on the answers of this project.
    pub project: ProjectId,
    /// Given on this day or after it.
    pub from: Option<NaiveDate>,
    /// Given on this day or before it.
    pub to: Option<NaiveDate>,
}

/// Days in UTC, from one to another, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Days {
    /// The first.
    pub from: NaiveDate,
    /// The last.
    pub to: NaiveDate,
}

const MEMBERS: &[&str] = &["project", "from", "to"];

impl Asked {
    /// Reads what stands at `at` in a request.
    pub fn read(value: &Value, at: &str, errors: &mut Errors) -> Option<Self> {
        let asked = Object::at(value, at, errors);
        asked.known_only(MEMBERS, errors);
        let project = asked.required("project", errors, identifier);
        let from = asked.nullable("from", errors, date);
        let to = asked.nullable("to", errors, date);
        Some(Self {
            project: project?,
            from,
            to,
        })
    }

    /// The days that are meant `today`: to today, and a year of them, if nothing else is said. An error if
    /// they are none, or too many.
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
        if (1..=MAX_DAYS).contains(&((to - from).num_days() + 1)) {
            return Ok(Days { from, to });
        }
        Err(FieldError {
            pointer: "/training/from".to_owned(),
            detail: format!("must be on or before `to`, and {MAX_DAYS} days at most"),
        })
    }
}

/// Reads a day.
pub fn date(value: &Value) -> Result<NaiveDate, String> {
    NaiveDate::parse_from_str(string(value)?, "%Y-%m-%d")
        .map_err(|_| "must be a date as 2025-11-06".to_owned())
}

impl Days {
    /// Whether a time is on one of them.
    #[must_use]
    pub fn contain(&self, ts: DateTime<Utc>) -> bool {
        (self.from..=self.to).contains(&ts.date_naive())
    }

    /// Each of them from `first` on.
    pub fn each_from(self, first: NaiveDate) -> impl Iterator<Item = NaiveDate> {
        let days = std::iter::successors(Some(first.max(self.from)), NaiveDate::succ_opt);
        days.take_while(move |day| *day <= self.to)
    }
}
