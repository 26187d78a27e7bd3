//! What somebody says of one message: six typed signals, each private to who said it.
//!
//! Source: `Feedback`, "Signal vocabulary", "Workspace re-anchoring" and "Limits"; product
//! specification, section 6.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::caller::Caller;
use crate::digest::uuid;
use crate::event::{EventContext, is_false, wire_names};
use crate::identifier::{ConversationId, Label, MessageId, ProjectId, TenantId, UserId};
use crate::parse::{Errors, FieldError, Object, boolean, identifier, one_of, text, to_instant};
use crate::turn::{TurnCore, TurnRef};

/// What somebody says of a message.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum MessageSignal {
    /// Thumb up.
    Helpful,
    /// Thumb down.
    NotHelpful,
    /// The answer was wrong.
    Inaccurate,
    /// It was harmful, or leaked secrets.
    Unsafe,
    /// The answer was replaced by the user's own text, which is the reason.
    Edit,
    /// Another answer was asked for.
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
    /// Whether the ledger is told of its reason (product specification, "One ledger").
    #[must_use]
    pub fn tells_reason(self) -> bool {
        match self {
            Self::Inaccurate | Self::Unsafe | Self::Edit => true,
            Self::Helpful | Self::NotHelpful | Self::Regenerate => false,
        }
    }
}

/// Longest reason, in characters (`Feedback`, "Limits").
pub const MAX_REASON: usize = 4096;
/// Ids are derived in this namespace.
const NAMESPACE: Uuid = Uuid::from_u128(0x5f6a_b0c6_7d0e_4b3c_8f55_41d1_9a3e_c27b);

/// A signal as it is kept, but for its reason: what the pipes carry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SignalCore {
    /// The turn whose answer the message is.
    #[serde(flatten)]
    pub at: TurnRef,
    /// The message.
    pub message_id: MessageId,
    /// Who said it.
    pub user_id: UserId,
    /// What was said.
    pub signal: MessageSignal,
    /// The project in whose name it counts: the message's, or the one of the chat that its user
    /// named.
    pub workspace: ProjectId,
    /// When the turn was. Nothing reads it of a signal on somebody else's turn.
    #[serde(default)]
    pub turn_ts: DateTime<Utc>,
    /// Whether it is the turn's own user who said it: then it says how the turn was taken.
    #[serde(default, skip_serializing_if = "is_false")]
    pub own: bool,
    /// The chat that its user named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ConversationId>,
    /// The trace of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<Label>,
    /// Whether no model may learn from it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub exclude_from_training: bool,
    /// The act, which is its event in the ledger.
    pub act: Uuid,
    /// The act that it took the place of, or took back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Uuid>,
    /// That it was taken back: what is left is a tombstone, which tells the stream so.
    #[serde(default, skip_serializing_if = "is_false")]
    pub retracted: bool,
    /// When it was first said.
    pub created_at: DateTime<Utc>,
    /// When the act was.
    pub ts: DateTime<Utc>,
    /// When the row was last written, for an act or for what is no act: another trace, say.
    pub updated_at: DateTime<Utc>,
    /// What the ledger is told of the turn.
    #[serde(default)]
    pub context: EventContext,
    /// When it expires: with its turn. An attribute of the row of its own, which does not travel.
    #[serde(skip)]
    pub expires_at: Option<DateTime<Utc>>,
}

impl SignalCore {
    /// The signal's name on the wire: the same for whatever one user says by one signal of one
    /// message.
    #[must_use]
    pub fn id(&self) -> String {
        let owner = (&self.at.within.tenant, &self.user_id);
        row_id(owner, &self.message_id, self.signal)
    }

    /// The time of what takes its place `now`: later, also by a clock that is behind the one before.
    fn after(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        to_instant(now).max(self.updated_at + TimeDelta::microseconds(1))
    }
}

/// The name of the row of a user's signal on a message: always the same.
#[must_use]
pub fn row_id(
    (tenant, user): (&TenantId, &UserId),
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

/// A signal, whole.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredSignal {
    /// Everything but its reason.
    pub core: SignalCore,
    /// What was written with it; of an edit, the text that replaces the answer.
    pub reason: Option<String>,
}

impl StoredSignal {
    /// What is left of a signal that is taken back: enough to tell the stream, and nothing that
    /// its user wrote. `None` if there is nothing to take back.
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

    /// Whether the ledger is told the same by both.
    fn teaches_as(&self, other: &Self) -> bool {
        self.core.exclude_from_training == other.core.exclude_from_training
            && self.told_reason() == other.told_reason()
    }

    /// The reason, where the ledger is told of it.
    #[must_use]
    pub fn told_reason(&self) -> Option<&str> {
        let told = self.core.signal.tells_reason();
        self.reason.as_deref().filter(|_| told)
    }
}

/// What a request says of the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reason {
    /// Nothing: what stands is kept.
    Kept,
    /// This one, or none.
    Is(Option<String>),
}

/// What a caller posts about a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Posted {
    /// The message.
    pub message_id: MessageId,
    /// What is said of it.
    pub signal: MessageSignal,
    /// The chat in which it was said.
    pub chat_id: Option<ConversationId>,
    /// The user whose signal it is; the caller without.
    pub user_id: Option<UserId>,
    trace_id: Option<Label>,
    reason: Reason,
    exclude_from_training: Option<bool>,
}

/// What becomes of a signal where one may stand already.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// None stood there.
    Create(Box<StoredSignal>),
    /// It takes the place.
    Replace(Box<StoredSignal>),
    /// The same stands already, and this changes nothing.
    Repeat(Box<StoredSignal>),
}

const MEMBERS: &[&str] = &[
    "message_id",
    "chat_id",
    "trace_id",
    "signal",
    "reason",
    "exclude_from_training",
    "user_id",
];

impl Posted {
    /// Reads what was posted, all errors at once.
    pub fn parse(body: &Value) -> Result<Self, Vec<FieldError>> {
        let mut errors = Errors::default();
        let posted = Object::root(body, &mut errors);
        posted.known_only(MEMBERS, &mut errors);
        let message_id = posted.required("message_id", &mut errors, identifier);
        let signal = posted.required("signal", &mut errors, one_of(MessageSignal::NAMES));
        let chat_id = posted.nullable("chat_id", &mut errors, identifier);
        let trace_id = posted.nullable("trace_id", &mut errors, identifier);
        let reason = posted.nullable("reason", &mut errors, text(MAX_REASON));
        let exclude_from_training = posted.nullable("exclude_from_training", &mut errors, boolean);
        let user_id = posted.nullable("user_id", &mut errors, identifier);
        let reason = match posted.get("reason") {
            None => Reason::Kept,
            Some(_) => Reason::Is(reason.filter(|reason| !reason.is_empty())),
        };
        match (message_id, signal) {
            (Some(message_id), Some(signal)) if errors.is_empty() => Ok(Self {
                message_id,
                signal,
                chat_id,
                user_id,
                trace_id,
                reason,
                exclude_from_training,
            }),
            _ => Err(errors.into_vec()),
        }
    }

    /// The chat in whose project the signal may have to count, if that has to be looked up: not for
    /// the message's own conversation, nor for one that moved the signal to where it stands.
    #[must_use]
    pub fn elsewhere<'a>(
        &'a self,
        turn: &TurnCore,
        caller: &Caller,
        standing: Option<&StoredSignal>,
    ) -> Option<&'a ConversationId> {
        let chat = self.chat_id.as_ref()?;
        let own = &turn.at.within;
        let moved = standing.is_some_and(|StoredSignal { core, .. }| {
            let there = core.workspace != own.project && caller.holds(&core.workspace);
            !core.retracted && core.chat_id.as_ref() == Some(chat) && there
        });
        (*chat != own.conversation && !moved).then_some(chat)
    }

    /// What becomes of this, said about a turn's message, over the signal that stands in its
    /// place. `chat_in` is the project in which the chat [`elsewhere`](Self::elsewhere) was found.
    #[must_use]
    pub fn over(
        &self,
        turn: &TurnCore,
        caller: &Caller,
        chat_in: Option<ProjectId>,
        (standing, now): (Option<&StoredSignal>, DateTime<Utc>),
    ) -> Step {
        let live = standing.filter(|standing| !standing.core.retracted);
        let kept = live.map(|standing| &standing.core);
        let ts = standing.map_or(to_instant(now), |standing| standing.core.after(now));
        let workspace = chat_in.unwrap_or_else(|| self.anchor(turn, caller, kept));
        let core = SignalCore {
            at: turn.at.clone(),
            message_id: self.message_id.clone(),
            turn_ts: turn.ts,
            own: caller.user == turn.user_id,
            user_id: caller.user.clone(),
            signal: self.signal,
            chat_id: (self.chat_id.clone()).or_else(|| kept.and_then(|kept| kept.chat_id.clone())),
            trace_id: (self.trace_id.clone())
                .or_else(|| kept.and_then(|kept| kept.trace_id.clone()))
                .or_else(|| turn.trace_id.clone()),
            exclude_from_training: self
                .exclude_from_training
                .unwrap_or_else(|| kept.is_some_and(|kept| kept.exclude_from_training)),
            act: Uuid::nil(),
            replaces: None,
            retracted: false,
            created_at: kept.map_or(ts, |kept| kept.created_at),
            ts,
            updated_at: kept.map_or(ts, |kept| kept.updated_at),
            context: EventContext {
                project_id: Label::try_from(workspace.as_str()).ok(),
                ..turn.context()
            },
            workspace,
            expires_at: turn.expires_at,
        };
        let reason = match &self.reason {
            Reason::Kept => live.and_then(|standing| standing.reason.clone()),
            Reason::Is(reason) => reason.clone(),
        };
        let mut next = StoredSignal { core, reason };
        let Some(live) = live else {
            next.core.act = next.act_after(standing);
            return Step::Create(Box::new(next));
        };
        if next.teaches_as(live) {
            next.core.act = live.core.act;
            next.core.replaces = live.core.replaces;
            next.core.ts = live.core.ts;
            if next == *live {
                return Step::Repeat(Box::new(next));
            }
            // What is no act keeps the act's time.
        } else {
            next.core.act = next.act_after(Some(live));
            next.core.replaces = Some(live.core.act);
        }
        next.core.updated_at = ts;
        Step::Replace(Box::new(next))
    }

    /// The project in which a signal counts whose chat does not lead elsewhere.
    fn anchor(&self, turn: &TurnCore, caller: &Caller, kept: Option<&SignalCore>) -> ProjectId {
        let own = &turn.at.within;
        let back = self.chat_id.as_ref() == Some(&own.conversation);
        kept.filter(|kept| !back && caller.holds(&kept.workspace))
            .map_or_else(|| own.project.clone(), |kept| kept.workspace.clone())
    }
}

impl StoredSignal {
    /// The id of an act: the same for a delivery that is repeated, another for each thing that is
    /// said anew, were it what was said before.
    fn act_after(&self, standing: Option<&Self>) -> Uuid {
        let before = standing.map_or(NAMESPACE, |standing| standing.core.act);
        let ts = self.core.ts.timestamp_micros().to_string();
        let exclude = self.core.exclude_from_training;
        let names = [
            self.core.at.within.tenant.as_str(),
            self.core.user_id.as_str(),
            self.core.message_id.as_str(),
            self.core.signal.as_str(),
            self.told_reason().unwrap_or_default(),
            if exclude { "excluded" } else { "" },
            ts.as_str(),
        ];
        uuid(before, names)
    }
}

#[cfg(test)]
mod tests;
