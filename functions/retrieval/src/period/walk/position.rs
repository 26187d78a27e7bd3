//! Where a page of the report begins: the content of its cursor.

use std::cmp::Ordering;

use chrono::{DateTime, Utc};
use hearback_domain::events::recency;
use hearback_domain::identity::identifier::ConversationId;
use hearback_domain::views::period::PeriodRequest;
use serde::{Deserialize, Serialize};

use crate::part::UpTo;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::period) struct PeriodPosition {
    /// When the first page was read, in microseconds.
    pub(super) as_of: i64,
    /// The latest position of the next conversation, in microseconds.
    pub(super) at: i64,
    /// The mark of the last listed conversation at `at`; the next conversation there has a higher mark.
    pub(super) after: Option<u64>,
    /// The marks of conversations that were listed at a reaction that may have been in flight. They are not listed
    /// again at the position that they have without that reaction.
    pub(super) listed: Vec<u64>,
    /// The conversation with which the page begins, and its last listed reaction.
    #[serde(default)]
    pub(super) continued: Option<(ConversationId, UpTo)>,
}

impl PeriodPosition {
    pub(in crate::period) fn first(request: &PeriodRequest, now: DateTime<Utc>) -> Self {
        // No reaction is later than this, so it is the end of a period that has no `end`.
        let latest = request.end.min(now + recency::MAX_AHEAD);
        Self {
            as_of: now.timestamp_micros(),
            at: latest.timestamp_micros(),
            after: None,
            listed: Vec::new(),
            continued: None,
        }
    }

    /// Whether a conversation is at this position or after it.
    pub(super) fn reaches(&self, at: i64, mark: u64) -> bool {
        match at.cmp(&self.at) {
            Ordering::Less => true,
            Ordering::Equal => self.after.is_none_or(|after| mark > after),
            Ordering::Greater => false,
        }
    }
}
