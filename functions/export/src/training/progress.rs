//! The state of a run: what its `resume` token contains.

use chrono::{DateTime, NaiveDate, Utc};
use hearback_domain::export::training::{Days, RowKind};
use hearback_domain::identity::identifier::ConversationId;
use hearback_storage::message_signals::MessageKey;
use serde::{Deserialize, Serialize};

use super::training_set::SkippedFeedback;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Progress {
    pub(super) run: String,
    pub(super) days: Days,
    /// When the run began: later reactions do not move a turn to another day.
    pub(super) as_of: DateTime<Utc>,
    pub(super) at: ResumePoint,
    pub(super) files: Vec<(RowKind, String, u32)>,
    pub(super) rows: (u64, u64),
    pub(super) left_out: SkippedFeedback,
}

/// Where a run continues.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum ResumePoint {
    /// On this day, after a conversation, or within it at a key.
    Reactions {
        day: NaiveDate,
        conversation: Option<(ConversationId, Option<String>)>,
    },
    /// Among turns with signals only, after this message.
    Signals { after: Option<MessageKey> },
}
