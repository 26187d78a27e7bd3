//! Keys of activity markers by day, and of the markers of months that have activity.

use chrono::{NaiveDate, NaiveTime};
use hearback_domain::identity::identifier::{ConversationId, ProjectId, TenantId, UserId};

use super::parts::{HASHED, MAX_DAY_PART, escaped, join, sort_part, unescaped};

/// The partition of a shard of a project's day, so that a busy day is spread over several
/// partitions. It is also a sort key of the author index.
#[must_use]
pub fn day(tenant: &TenantId, project: &ProjectId, day: NaiveDate, shard: u32) -> String {
    format!("{}#{shard}", day_of(tenant, project, day))
}

/// The bounds between which the [`day`] keys of these days sort.
#[must_use]
pub fn days(
    tenant: &TenantId,
    project: &ProjectId,
    (first, last): (NaiveDate, NaiveDate),
) -> (String, String) {
    // `$` is the character after `#`, which ends the date.
    let day = |day| day_of(tenant, project, day);
    (format!("{}#", day(first)), format!("{}$", day(last)))
}

fn day_of(tenant: &TenantId, project: &ProjectId, day: NaiveDate) -> String {
    let part = |raw| escaped(raw, MAX_DAY_PART);
    let (tenant, project) = (part(tenant.as_str()), part(project.as_str()));
    format!("DAY#{tenant}#{project}#{day}")
}

/// The day of a [`day`] partition.
#[must_use]
pub fn date_of(day: &str) -> Option<NaiveDate> {
    let mut parts = day.rsplit('#');
    let (_shard, date) = (parts.next()?, parts.next()?);
    date.parse().ok()
}

/// The partition of a project's month markers.
#[must_use]
pub fn months(tenant: &TenantId, project: &ProjectId) -> String {
    join("MONTHS", tenant, project.as_str())
}

/// The sort key of a month marker.
#[must_use]
pub fn month(day: NaiveDate) -> String {
    day.format("%Y-%m").to_string()
}

/// The sort key of an activity marker; sorts by the minute.
#[must_use]
pub fn activity(minute: NaiveTime, conversation: &ConversationId, user: &UserId) -> String {
    let (conversation, user) = (sort_part(conversation.as_str()), sort_part(user.as_str()));
    format!("{}#{conversation}#{user}", minute.format("%H:%M"))
}

/// The minute and the conversation of an [`activity`] key. `None` if the conversation id was too
/// long and hashed, and for any other key.
#[must_use]
pub fn active_in(key: &str) -> Option<(NaiveTime, ConversationId)> {
    let mut parts = key.split('#');
    let (minute, conversation) = (parts.next()?, parts.next()?);
    if conversation.starts_with(HASHED) {
        return None;
    }
    let minute = NaiveTime::parse_from_str(minute, "%H:%M").ok()?;
    Some((minute, unescaped(conversation).try_into().ok()?))
}
