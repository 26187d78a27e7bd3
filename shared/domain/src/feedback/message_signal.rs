//! Message signals: six typed ratings of an answer, each private to its user. See docs/reference/message-signals.md.

use chrono::{DateTime, TimeDelta, Utc};
use hearback_wire::wire_names;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::events::event::{EventContext, is_false};
use crate::events::recency::Recency;
use crate::identity::identifier::{ConversationId, Label, MessageId, ProjectId, UserId, UserRef};
use crate::identity::privacy::Pseudonyms;
use crate::text::digest::uuid;
use crate::turns::turn::TurnRef;
use hearback_wire::parse::to_instant;

mod request;

pub use request::MessageSignalRequest;

/// A typed rating of a message.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum MessageSignal {
    /// Thumbs up.
    Helpful,
    /// Thumbs down.
    NotHelpful,
    /// The answer is wrong.
    Inaccurate,
    /// The answer is harmful, or leaks secrets.
    Unsafe,
    /// The user replaced the answer by their own text, which is the reason.
    Edit,
    /// The user requested another answer.
    Regenerate,
}

wire_names!(MessageSignal {
    Helpful = "helpful",
    NotHelpful = "not_helpful",
    Inaccurate = "inaccurate",
    Unsafe = "unsafe",
    Edit = "edit",
    Regenerate = "regenerate",
});

impl MessageSignal {
    /// Whether it says that the answer is good or bad.
    #[must_use]
    pub fn is_verdict(self) -> bool {
        match self {
            Self::Helpful | Self::NotHelpful | Self::Inaccurate | Self::Unsafe => true,
            Self::Edit | Self::Regenerate => false,
        }
    }

    /// The signals that say the contrary.
    #[must_use]
    pub fn contrary(self) -> &'static [Self] {
        match self {
            Self::Helpful => &[Self::NotHelpful, Self::Inaccurate, Self::Unsafe],
            Self::NotHelpful | Self::Inaccurate | Self::Unsafe => &[Self::Helpful],
            Self::Edit | Self::Regenerate => &[],
        }
    }

    /// Whether the event in the ledger contains the reason.
    #[must_use]
    pub fn publishes_reason(self) -> bool {
        match self {
            Self::Inaccurate | Self::Unsafe | Self::Edit => true,
            Self::Helpful | Self::NotHelpful | Self::Regenerate => false,
        }
    }
}

/// Maximum length of a reason, in characters.
pub const MAX_REASON: usize = 4096;
/// Ids are derived in this namespace.
const NAMESPACE: Uuid = Uuid::from_u128(0x5f6a_b0c6_7d0e_4b3c_8f55_41d1_9a3e_c27b);

/// A stored signal without its reason: what the pipes send.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SignalCore {
    /// The turn of the message.
    #[serde(flatten)]
    pub at: TurnRef,
    /// The message.
    pub message_id: MessageId,
    /// The user who gave the signal.
    pub user_id: UserId,
    /// The signal.
    pub signal: MessageSignal,
    /// The project that the signal counts for: that of the message, or that of the chat in the request.
    pub workspace: ProjectId,
    /// The time of the turn. Unused for a signal on another user's turn.
    #[serde(default)]
    pub turn_ts: DateTime<Utc>,
    /// Whether the user owns the turn. Only the owner's signals set the status of the turn.
    #[serde(default, skip_serializing_if = "is_false")]
    pub own: bool,
    /// The track of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub track_id: Option<Label>,
    /// The kind of the turn's user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_type: Option<Label>,
    /// The bundle of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle_id: Option<Label>,
    /// The chat in the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ConversationId>,
    /// The trace of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<Label>,
    /// Whether the signal is excluded from training.
    #[serde(default, skip_serializing_if = "is_false")]
    pub exclude_from_training: bool,
    /// The id of the feedback act and of its event in the ledger.
    pub act: Uuid,
    /// The act that it replaced or withdrew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Uuid>,
    /// The turn that it counted for before, if it moved: another project has a message of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<TurnRef>,
    /// Whether the signal was withdrawn. The row is then a tombstone.
    #[serde(default, skip_serializing_if = "is_false")]
    pub retracted: bool,
    /// When the signal was first given.
    pub created_at: DateTime<Utc>,
    /// The time of the feedback act.
    pub ts: DateTime<Utc>,
    /// When the user last gave the signal: by a feedback act, by another change, such as a new trace, or by giving it
    /// again.
    pub updated_at: DateTime<Utc>,
    /// The context of its event in the ledger.
    #[serde(default)]
    pub context: EventContext,
    /// When the signal expires: with its turn. A separate attribute of the row, which the pipes do not send.
    #[serde(skip)]
    pub expires_at: Option<DateTime<Utc>>,
}

impl SignalCore {
    /// The user who gave the signal.
    #[must_use]
    pub fn owner(&self) -> UserRef<'_> {
        UserRef::new(&self.at.within.tenant, &self.user_id)
    }

    /// The id in the API: always the same for a user, a message and a signal.
    #[must_use]
    pub fn id(&self) -> String {
        let owner = self.owner();
        row_id(owner, &self.message_id, self.signal)
    }

    /// The position among the feedback on the message, of which the latest counts.
    #[must_use]
    pub fn recency(&self) -> Recency {
        Recency::new(self.updated_at, self.updated_at, self.act)
    }

    /// The time of a replacement that is written at `now`: later than this signal, even if the clock was set back.
    fn after(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        to_instant(now).max(self.updated_at + TimeDelta::microseconds(1))
    }
}

/// The id of a user's signal on a message.
#[must_use]
pub fn row_id(
    UserRef { tenant, user }: UserRef<'_>,
    message: &MessageId,
    signal: MessageSignal,
) -> String {
    let names = [
        tenant.as_str(),
        user.as_str(),
        message.as_str(),
        signal.as_str(),
    ];
    format!("fb_{}", uuid(NAMESPACE, names).simple())
}

/// A signal with its reason.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredSignal {
    /// Everything except the reason.
    pub core: SignalCore,
    /// The reason; for an `edit`, the text that replaces the answer.
    pub reason: Option<String>,
}

impl StoredSignal {
    /// The tombstone that withdraws the signal; it has no reason. `None` if the signal is already withdrawn.
    #[must_use]
    pub fn retract(&self, now: DateTime<Utc>) -> Option<Self> {
        if self.core.retracted {
            return None;
        }
        let ts = self.core.after(now);
        let core = SignalCore {
            act: Uuid::new_v5(&self.core.act, b"retracted"),
            replaces: Some(self.core.act),
            retracted: true,
            ts,
            updated_at: ts,
            ..self.core.clone()
        };
        Some(Self { core, reason: None })
    }

    /// Whether both give the same event in the ledger.
    fn has_same_event_as(&self, other: &Self) -> bool {
        self.core.exclude_from_training == other.core.exclude_from_training
            && self.published_reason() == other.published_reason()
    }

    /// The reason, if the event in the ledger contains it.
    #[must_use]
    pub fn published_reason(&self) -> Option<&str> {
        let published = self.core.signal.publishes_reason();
        self.reason.as_deref().filter(|_| published)
    }
}

/// The effect of a submitted signal.
#[derive(Debug, Clone, PartialEq)]
pub enum SignalUpdate {
    /// There is no current one.
    Create(Box<StoredSignal>),
    /// It replaces the current one.
    Replace(Box<StoredSignal>),
    /// It equals the current one, is no verdict or a retry, and changes nothing.
    Repeat(Box<StoredSignal>),
}

impl StoredSignal {
    /// Replaces the id of a new act by a keyed one, which callers cannot compute: from its digits in reports they would
    /// learn whose signal it is. The act of `current` has a keyed id already.
    #[must_use]
    pub fn with_keyed_act(mut self, current: Option<&Self>, pseudonyms: &Pseudonyms) -> Self {
        let core = &mut self.core;
        if current.is_none_or(|current| current.core.act != core.act) {
            core.act = pseudonyms.event_id(&core.at.within.tenant, core.act);
        }
        self
    }

    /// The id of the feedback act that replaces `current`. A repeated delivery gives the same id; every later act gives
    /// another, even if its content is the same.
    fn act_after(&self, current: Option<&Self>) -> Uuid {
        let previous_act = current.map_or(NAMESPACE, |current| current.core.act);
        let ts = self.core.ts.timestamp_micros().to_string();
        let exclude = self.core.exclude_from_training;
        let names = [
            self.core.at.within.tenant.as_str(),
            self.core.user_id.as_str(),
            self.core.message_id.as_str(),
            self.core.signal.as_str(),
            self.published_reason().unwrap_or_default(),
            if exclude { "excluded" } else { "" },
            ts.as_str(),
        ];
        uuid(previous_act, names)
    }
}

#[cfg(test)]
mod tests;
