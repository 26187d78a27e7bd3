//! Which insights are read.

use chrono::{DateTime, Datelike, Days, NaiveDate, NaiveTime, TimeDelta, Utc};
use hearback_wire::{
    Errors, FieldError, FromJson, Integer, Pointer, noted, parse, request, wire_names,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

use crate::identity::identifier::Label;
use crate::identity::labels::{MAX_KEY, is_key};
use crate::views::insights::dimension::Dimension;
use crate::views::insights::interval::Interval;

/// Maximum number of values that are listed: as many as are counted apart.
pub const MAX_LISTED: i64 = 100;
/// How many values are listed by default.
pub const DEFAULT_VALUES: i64 = 10;
/// Maximum number of counts in a response: its intervals, times its groups.
pub const MAX_COUNTS: i64 = 5_000;
/// The longest period.
pub const MAX_DAYS: i64 = 3_660;
/// The default period.
pub const DEFAULT_DAYS: i64 = 30;
/// The difference that matters by default, in percentage points.
pub const DEFAULT_POINTS: i64 = 5;
/// The form of a dimension, as a regular expression.
fn pattern(with_closed: bool) -> String {
    let names: Vec<_> = Dimension::names(with_closed).collect();
    let names = names.join("|");
    format!("^({names}|label\\.[A-Za-z0-9_.-]{{1,{MAX_KEY}}})$")
}

/// What a dimension must be, for an error.
fn expected(with_closed: bool) -> String {
    let names: Vec<_> = Dimension::names(with_closed).collect();
    format!("must be {}, or label. and a key", names.join(", "))
}

/// The length of the intervals of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum IntervalLength {
    /// An hour.
    Hour,
    /// A day.
    Day,
    /// A week, from Monday.
    Week,
}

wire_names!(IntervalLength {
    Hour = "hour",
    Day = "day",
    Week = "week",
});

impl IntervalLength {
    /// When the interval of a time begins.
    #[must_use]
    pub fn begin_of(self, at: DateTime<Utc>) -> DateTime<Utc> {
        let day = at.date_naive();
        let midnight = |day: NaiveDate| day.and_time(NaiveTime::MIN).and_utc();
        match self {
            Self::Hour => Interval::hour_of(at).begin(),
            Self::Day => midnight(day),
            Self::Week => {
                let days = Days::new(day.weekday().num_days_from_monday().into());
                midnight(day.checked_sub_days(days).unwrap_or(day))
            }
        }
    }

    /// When the interval that begins at this time ends, exclusive.
    #[must_use]
    pub fn end_of(self, begin: DateTime<Utc>) -> DateTime<Utc> {
        begin + self.length()
    }

    fn length(self) -> TimeDelta {
        match self {
            Self::Hour => TimeDelta::hours(1),
            Self::Day => TimeDelta::days(1),
            Self::Week => TimeDelta::weeks(1),
        }
    }
}

/// What events are grouped by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupBy(pub Dimension);

impl TryFrom<&str> for GroupBy {
    type Error = String;

    fn try_from(name: &str) -> Result<Self, Self::Error> {
        let dimension = Dimension::try_from(name.to_owned()).ok();
        let dimension = dimension.filter(|dimension| match dimension {
            Dimension::All => false,
            Dimension::Label(key) => is_key(key),
            Dimension::Channel
            | Dimension::Type
            | Dimension::Outcome
            | Dimension::Origin
            | Dimension::Reason
            | Dimension::ArtifactType
            | Dimension::TaskType
            | Dimension::AgentId
            | Dimension::Strategy => true,
        });
        dimension.map(Self).ok_or_else(|| expected(true))
    }
}

impl FromJson for GroupBy {
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        let name = noted(parse::string(value), at, errors)?;
        noted(Self::try_from(name), at, errors)
    }

    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(pattern(true)))
            .into()
    }
}

/// How many values are listed.
pub type ValueLimit = Integer<1, MAX_LISTED>;

request! {
    /// Which insights are read.
    pub struct InsightsQuery, query {
        /// Feedback that was given from this time on (RFC 3339); by default 30 days before `to`. The interval that
        /// contains it is counted as a whole.
        "from" => from: optional DateTime<Utc>,
        /// Feedback that was given before this time; by default now. The interval that contains it is counted as a whole.
        "to" => to: optional DateTime<Utc>,
        /// The length of the intervals, in UTC.
        "interval" => interval: optional IntervalLength = IntervalLength::Day,
        /// What events are grouped by: `channel`, `type`, `outcome`, `origin`, `reason`, `artifactType`, `taskType`,
        /// `agentId`, `strategy`, or `label.` and the key of a label.
        "groupBy" => group_by: optional GroupBy,
        /// How many values are listed, those with the most events; all others are one group.
        "values" => values: optional ValueLimit = Integer(DEFAULT_VALUES),
    }
}

request! {
    /// What is compared.
    pub struct CompareQuery, query {
        /// What the values are of: `label.` and the key of a label, `artifactType`, `taskType`, `agentId` or `strategy`.
        "by" => by: required CompareBy,
        /// The value to compare with.
        "a" => a: required Label,
        /// The value that may be better or worse.
        "b" => b: required Label,
        /// Feedback that was given from this time on (RFC 3339); by default 30 days before `to`. The day that contains it
        /// is counted as a whole.
        "from" => from: optional DateTime<Utc>,
        /// Feedback that was given before this time; by default now. The day that contains it is counted as a whole.
        "to" => to: optional DateTime<Utc>,
        /// The difference that matters, in percentage points.
        "points" => points: optional Integer<1, 50> = Integer(DEFAULT_POINTS),
    }
}

impl CompareQuery {
    /// The insights that are compared.
    #[must_use]
    pub fn insights(&self) -> InsightsQuery {
        InsightsQuery {
            from: self.from,
            to: self.to,
            interval: IntervalLength::Day,
            group_by: Some(self.by.0.clone()),
            values: Integer(1),
        }
    }
}

/// What is compared: values that say what feedback is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompareBy(pub GroupBy);

impl FromJson for CompareBy {
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        let name = noted(parse::string(value), at, errors)?;
        let by = GroupBy::try_from(name).ok();
        let by = by.filter(|by| !by.0.is_closed());
        noted(by.map(Self).ok_or_else(|| expected(false)), at, errors)
    }

    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(pattern(false)))
            .into()
    }
}

/// A period of whole intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// When it begins.
    pub from: DateTime<Utc>,
    /// When it ends, exclusive.
    pub to: DateTime<Utc>,
}

impl InsightsQuery {
    /// The period, in whole intervals.
    pub fn period(&self, now: DateTime<Utc>) -> Result<Period, Vec<FieldError>> {
        let to = self.to.unwrap_or(now);
        let from = self.from.unwrap_or(to - TimeDelta::days(DEFAULT_DAYS));
        let error = |detail: String| {
            let pointer = if self.to.is_some() || self.from.is_none() {
                "/to"
            } else {
                "/from"
            };
            Err(vec![FieldError {
                pointer: pointer.to_owned(),
                detail,
            }])
        };
        if from >= to {
            return error("from must be before to".to_owned());
        }
        if !(1..9999).contains(&from.year()) || !(1..9999).contains(&to.year()) {
            return error("the period must be between the years 1 and 9998".to_owned());
        }
        if to - from > TimeDelta::days(MAX_DAYS) {
            return error(format!("the period must have at most {MAX_DAYS} days"));
        }
        let begin = self.interval.begin_of(from);
        let last = self.interval.begin_of(to - TimeDelta::microseconds(1));
        let end = self.interval.end_of(last);
        let intervals = (end - begin).num_hours() / self.interval.length().num_hours();
        // Those that are listed, all others, those without a value, and all together.
        let groups = self.group_by.as_ref().map_or(1, |_| self.values.0 + 3);
        if intervals * groups > MAX_COUNTS {
            return error(format!(
                "{intervals} intervals of {groups} groups are more than {MAX_COUNTS}: choose a shorter period, a longer \
                 interval, or fewer values"
            ));
        }
        Ok(Period {
            from: begin,
            to: end,
        })
    }

    /// The hours or days of a period that are counted, the first and the last.
    #[must_use]
    pub fn counted(&self, period: Period) -> (Interval, Interval) {
        match self.interval {
            IntervalLength::Hour => {
                let last = period.to - TimeDelta::hours(1);
                (Interval::Hour(period.from), Interval::Hour(last))
            }
            IntervalLength::Day | IntervalLength::Week => {
                let last = period.to - TimeDelta::days(1);
                (
                    Interval::Day(period.from.date_naive()),
                    Interval::Day(last.date_naive()),
                )
            }
        }
    }
}
