//! Minutes: the resolution of activity markers.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use hearback_domain::identity::identifier::ConversationId;

/// A minute, in microseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) start: i64,
    /// The first microsecond after it.
    pub(super) end: i64,
}

impl Slot {
    pub(super) fn new(date: NaiveDate, minute: NaiveTime) -> Self {
        Self {
            start: date.and_time(minute).and_utc().timestamp_micros(),
            end: end_of(date, minute) + 1,
        }
    }
}

/// Conversations by their minute of activity.
pub(super) type Minutes = BTreeMap<NaiveTime, BTreeSet<ConversationId>>;

/// The last minute of a day.
pub(super) const LAST_MINUTE: NaiveTime = match NaiveTime::from_hms_opt(23, 59, 0) {
    Some(minute) => minute,
    None => NaiveTime::MIN,
};

/// The last microsecond of a minute.
pub(super) fn end_of(date: NaiveDate, minute: NaiveTime) -> i64 {
    let start = date.and_time(minute).and_utc();
    (start + TimeDelta::minutes(1)).timestamp_micros() - 1
}

pub(super) fn before(minute: NaiveTime) -> Option<NaiveTime> {
    let (before, wrapped) = minute.overflowing_sub_signed(TimeDelta::minutes(1));
    (wrapped == 0).then_some(before)
}

pub(super) fn after(minute: NaiveTime) -> NaiveTime {
    minute.overflowing_add_signed(TimeDelta::minutes(1)).0
}

pub(super) fn instant(micros: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(micros).unwrap_or(DateTime::<Utc>::MIN_UTC)
}
