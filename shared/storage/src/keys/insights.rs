//! Keys of what insights count, and of their counts.

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use hearback_domain::identity::identifier::{ProjectId, TenantId};
use hearback_domain::turns::turn::TurnRef;
use hearback_domain::views::insights::{Dimension, Interval};
use uuid::Uuid;

use super::parts::part;
use super::turns::turn_digest;

const HOUR: &str = "%Y-%m-%dT%H";
/// Prefix of the sort keys of an hour's counts.
const COUNTED_HOUR: &str = "H#";
/// Prefix of the sort keys of a day's counts.
const COUNTED_DAY: &str = "D#";

/// The index key of a shard of an hour of a project's events and turns.
#[must_use]
pub fn hour(tenant: &TenantId, project: &ProjectId, at: DateTime<Utc>, shard: u32) -> String {
    let (tenant, project) = (part(tenant.as_str()), part(project.as_str()));
    format!("HOUR#{tenant}#{project}#{}#{shard}", at.format(HOUR))
}

/// The hour of an [`hour`] key.
#[must_use]
pub fn hour_of(key: &str) -> Option<DateTime<Utc>> {
    let mut parts = key.rsplit('#');
    let (_shard, hour) = (parts.next()?, parts.next()?);
    hour_named(hour)
}

/// The sort key of an event within its hour; sorts by time.
#[must_use]
pub fn occurred_at(at: DateTime<Utc>, event: Uuid) -> String {
    format!("{:018}#{event}", at.timestamp_micros())
}

/// The sort key of a turn within its hour.
#[must_use]
pub fn turn_occurred_at(ts: DateTime<Utc>, at: &TurnRef) -> String {
    format!("{:018}#{}", ts.timestamp_micros(), turn_digest(at))
}

/// The event of an [`occurred_at`] key.
#[must_use]
pub fn event_at(key: &str) -> Option<Uuid> {
    key.split_once('#')?.1.parse().ok()
}

fn hour_named(name: &str) -> Option<DateTime<Utc>> {
    let hour = NaiveDateTime::parse_from_str(&format!("{name}:00"), "%Y-%m-%dT%H:%M");
    hour.ok().map(|hour| hour.and_utc())
}

/// The partition of the counts of a project by one dimension; without one, of the dimensions with few values.
#[must_use]
pub fn insights(tenant: &TenantId, project: &ProjectId, dimension: Option<&Dimension>) -> String {
    let (tenant, project) = (part(tenant.as_str()), part(project.as_str()));
    let name = dimension.map_or_else(|| "overview".to_owned(), ToString::to_string);
    format!("INSIGHTS#{tenant}#{project}#{}", part(&name))
}

/// The sort key of the counts of an hour or a day; sorts by time.
#[must_use]
pub fn counted(interval: Interval) -> String {
    match interval {
        Interval::Hour(hour) => format!("{COUNTED_HOUR}{}", hour.format(HOUR)),
        Interval::Day(day) => format!("{COUNTED_DAY}{day}"),
    }
}

/// The hour or the day of a [`counted`] key.
#[must_use]
pub fn interval_of(key: &str) -> Option<Interval> {
    if let Some(hour) = key.strip_prefix(COUNTED_HOUR) {
        return hour_named(hour).map(Interval::Hour);
    }
    let day = key.strip_prefix(COUNTED_DAY)?;
    day.parse::<NaiveDate>().ok().map(Interval::Day)
}
