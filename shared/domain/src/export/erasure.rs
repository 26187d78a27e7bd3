//! Erasure of a user's data: stored data is removed, and data that is still in flight is dropped.
//!
//! While an erasure is open, the user's events are not processed, and requests that would store data are rejected. A
//! finished erasure still applies to everything that was received before it finished: a message may stay in a queue for
//! weeks.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::feedback::message_signal::{MessageSignal, row_id};
use crate::identity::identifier::{MessageId, TenantId, UserId, UserRef};
use crate::turns::turn::{TurnCore, TurnRef};

/// The erasure of the data of a user or a pseudonym.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// The id.
    pub id: Uuid,
    /// When it was requested.
    pub requested_at: DateTime<Utc>,
    /// The user's pseudonym, which is erased, too. It is stored while the erasure is open, because another key would
    /// give another pseudonym.
    pub pseudonym: Option<UserId>,
    /// When it finished: everything that was received until then is removed. `None` while it is open.
    pub until: Option<DateTime<Utc>>,
    /// The numbers of removed items so far.
    pub removed: RemovedCounts,
}

impl Erasure {
    /// The erasure of a record that cannot be read, except perhaps when it was done.
    #[must_use]
    pub fn unreadable(until: Option<DateTime<Utc>>) -> Self {
        Self {
            id: Uuid::nil(),
            requested_at: until.unwrap_or_default(),
            pseudonym: None,
            until,
            removed: RemovedCounts::default(),
        }
    }

    /// Whether its record cannot be read. No erasure has the id that these have.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        self.id.is_nil()
    }

    /// Whether data that was received at `at` must be erased.
    #[must_use]
    pub fn covers(&self, at: DateTime<Utc>) -> bool {
        self.until.is_none_or(|until| at <= until)
    }

    /// The ids whose data is erased: the user's and the pseudonym.
    #[must_use]
    pub fn names(&self, user: &UserId) -> Vec<UserId> {
        let user = std::iter::once(user);
        user.chain(&self.pseudonym).cloned().collect()
    }

    /// Whether it has not finished.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.until.is_none()
    }
}

/// A kind of data that an erasure removes and counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RemovedKind {
    /// Feedback events, each with its outcome.
    Events,
    /// Turns, each with its log, vector and message.
    Turns,
    /// The user's reactions and the machine reactions in their name, each with its mirror.
    Reactions,
    /// Message signals.
    Signals,
    /// Versions of preferences.
    PreferenceVersions,
    /// Rows of exports.
    ExportRows,
    /// Imported files.
    ImportFiles,
    /// Lines that an import rejected.
    RejectedLines,
}

/// The numbers of removed items.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemovedCounts {
    /// Feedback events, each with its outcome and its learning signals.
    pub events: u64,
    /// Turns, each with its log.
    pub turns: u64,
    /// Reactions with their mirrors in logs, including machine reactions in the user's name.
    pub reactions: u64,
    /// Message signals.
    pub signals: u64,
    /// Versions of preferences.
    pub preference_versions: u64,
    /// Rows of exports.
    pub export_rows: u64,
    /// Imported files that contained events of the user.
    pub import_files: u64,
    /// Lines that an import rejected.
    pub rejected_lines: u64,
}

impl RemovedKind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Events,
        Self::Turns,
        Self::Reactions,
        Self::Signals,
        Self::PreferenceVersions,
        Self::ExportRows,
        Self::ImportFiles,
        Self::RejectedLines,
    ];

    /// The name of the stored count.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Turns => "turns",
            Self::Reactions => "reactions",
            Self::Signals => "signals",
            Self::PreferenceVersions => "preference_versions",
            Self::ExportRows => "export_rows",
            Self::ImportFiles => "import_files",
            Self::RejectedLines => "rejected_lines",
        }
    }
}

impl RemovedCounts {
    /// The count of a kind.
    pub fn of(&mut self, kind: RemovedKind) -> &mut u64 {
        match kind {
            RemovedKind::Events => &mut self.events,
            RemovedKind::Turns => &mut self.turns,
            RemovedKind::Reactions => &mut self.reactions,
            RemovedKind::Signals => &mut self.signals,
            RemovedKind::PreferenceVersions => &mut self.preference_versions,
            RemovedKind::ExportRows => &mut self.export_rows,
            RemovedKind::ImportFiles => &mut self.import_files,
            RemovedKind::RejectedLines => &mut self.rejected_lines,
        }
    }

    /// The sum of both.
    #[must_use]
    pub fn and(mut self, mut other: Self) -> Self {
        for kind in RemovedKind::ALL {
            *self.of(kind) += *other.of(kind);
        }
        self
    }
}

/// Ids by which the user's lines are found in files, since exports contain no user ids.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErasureIds {
    /// The user's events in the ledger.
    pub acts: BTreeSet<Uuid>,
    /// The user's turns, as project, conversation and turn id.
    pub turns: BTreeSet<(String, String, String)>,
    /// The answers of these turns, as conversation, turn and message id: a row of an evaluation may be in another
    /// project than its turn.
    pub messages: BTreeSet<(String, String, String)>,
}

/// A line of an imported file or of an export.
#[derive(Deserialize)]
struct Line {
    #[serde(rename = "userId")]
    user_id: Option<Value>,
    id: Option<String>,
    signal: Option<MessageSignal>,
    message_id: Option<MessageId>,
    feedback_id: Option<Uuid>,
    conversation_id: Option<String>,
    turn_id: Option<String>,
    provenance: Option<LineProvenance>,
}

#[derive(Deserialize)]
struct LineProvenance {
    project: String,
    conversation_id: String,
    turn_ids: Vec<String>,
    feedback_ids: Vec<Uuid>,
}

impl ErasureIds {
    /// Adds a turn of the user.
    pub fn add_turn(&mut self, turn: &TurnCore) {
        let (project, conversation, name) = names(&turn.at);
        if let Some(message) = &turn.message_id {
            let message = (conversation.clone(), name.clone(), message.to_string());
            self.messages.insert(message);
        }
        self.turns.insert((project, conversation, name));
    }

    /// Adds a turn of the user whose row cannot be read.
    pub fn add_unreadable_turn(&mut self, at: &TurnRef) {
        self.turns.insert(names(at));
    }

    /// Whether the line contains personal data of the user: an event, a signal, or feedback on one of their turns.
    #[must_use]
    pub fn matches(&self, line: &Value, tenant: &TenantId, names: &[UserId]) -> bool {
        let is_user = |user: Option<&Value>| {
            let user = user.and_then(Value::as_str);
            user.is_some_and(|user| names.iter().any(|name| name.as_str() == user))
        };
        let Ok(line) = Line::deserialize(line) else {
            // An event may have members with these names and other types.
            return is_user(line.get("userId"));
        };
        if is_user(line.user_id.as_ref()) {
            return true;
        }
        if let (Some(id), Some(message), Some(signal)) = (&line.id, &line.message_id, line.signal) {
            let mut rows = names
                .iter()
                .map(|user| row_id(UserRef { tenant, user }, message, signal));
            if rows.any(|row| row == *id) {
                return true;
            }
        }
        let is_users_act = |act: &Uuid| self.acts.contains(act);
        if let (Some(conversation), Some(turn), Some(message)) =
            (line.conversation_id, line.turn_id, &line.message_id)
            && self
                .messages
                .contains(&(conversation, turn, message.to_string()))
        {
            return true;
        }
        line.feedback_id.as_ref().is_some_and(is_users_act)
            || line.provenance.is_some_and(|provenance| {
                let mut turns = provenance.turn_ids.into_iter();
                let (project, conversation) = (provenance.project, provenance.conversation_id);
                let key = |turn| (project.clone(), conversation.clone(), turn);
                provenance.feedback_ids.iter().any(is_users_act)
                    || turns.any(|turn| self.turns.contains(&key(turn)))
            })
    }
}

/// The project, the conversation and the turn.
fn names(at: &TurnRef) -> (String, String, String) {
    let within = &at.within;
    let (project, conversation) = (within.project.to_string(), within.conversation.to_string());
    (project, conversation, at.turn.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_erasure_covers_data_received_until_it_finished() {
        let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        let mut erasure = Erasure {
            id: Uuid::nil(),
            requested_at: at("2026-01-04T09:30:00Z"),
            pseudonym: None,
            until: None,
            removed: RemovedCounts::default(),
        };
        assert!(erasure.covers(at("2030-01-01T00:00:00Z")));
        erasure.until = Some(at("2026-01-04T10:00:00Z"));
        assert!(erasure.covers(at("2026-01-04T10:00:00Z")));
        assert!(!erasure.covers(at("2026-01-04T10:00:01Z")));
    }

    #[test]
    fn lines_with_the_users_data_are_found() {
        let act = Uuid::from_u128(7);
        let ids = ErasureIds {
            acts: [act].into(),
            turns: [("p".to_owned(), "c1".to_owned(), "t1".to_owned())].into(),
            messages: [("c1".to_owned(), "t1".to_owned(), "m9".to_owned())].into(),
        };
        let tenant = "acme".try_into().unwrap();
        let names: [UserId; 2] =
            ["ada", "anon-1"].map(|name| UserId::or_pseudonym(name.to_owned()).unwrap());
        let [user, _] = &names;
        let message = "m1".try_into().unwrap();
        let owner = UserRef::new(&tenant, user);
        let id = row_id(owner, &message, MessageSignal::Edit);
        let label = |acts: &[Uuid], turn: &str| {
            json!({"type": "label", "provenance": {
                "project": "p", "conversation_id": "c1", "turn_ids": ["t0", turn], "feedback_ids": acts,
            }})
        };
        for line in [
            json!({"userId": "ada", "feedbackId": "x", "id": 7}),
            json!({"userId": "anon-1"}),
            json!({"id": id, "message_id": "m1", "signal": "edit"}),
            json!({"feedback_id": act, "conversation_id": "c9", "turn_id": "t9"}),
            json!({"message_id": "m9", "conversation_id": "c1", "turn_id": "t1"}),
            label(&[act], "t9"),
            label(&[], "t1"),
        ] {
            assert!(ids.matches(&line, &tenant, &names), "{line}");
        }
        for line in [
            json!({"userId": "eve"}),
            json!({"userId": 7, "id": "ada"}),
            json!({"id": id, "message_id": "m1", "signal": "helpful"}),
            json!({"message_id": "m8", "conversation_id": "c1", "turn_id": "t1"}),
            label(&[Uuid::nil()], "t2"),
            json!("ada"),
            json!(null),
        ] {
            assert!(!ids.matches(&line, &tenant, &names), "{line}");
        }
    }
}
