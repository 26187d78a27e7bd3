//! Erasing a person: what is kept of them is removed, and what is still on its way is not let in.
//!
//! While an erasure is open, nothing of the user's is worked off, and whoever can tell refuses what they
//! send. When it is done, it goes on to hold for everything that was received before: a message may lie in
//! a queue for weeks.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::identifier::{MessageId, TenantId, UserId};
use crate::message_signal::{MessageSignal, row_id};
use crate::turn::TurnCore;

/// The erasure of somebody's data, as it stands under one of their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// Its name.
    pub id: Uuid,
    /// When it was asked for.
    pub requested_at: DateTime<Utc>,
    /// The pseudonym that is erased with it, in the user's own row while it is open: kept here, since it would
    /// be another under another key.
    pub pseudonym: Option<UserId>,
    /// When it was done: what was received until then is gone. `None` while it is open.
    pub until: Option<DateTime<Utc>>,
    /// What was removed so far.
    pub removed: Removed,
}

impl Erasure {
    /// Whether what was received at `at` is to be erased.
    #[must_use]
    pub fn covers(&self, at: DateTime<Utc>) -> bool {
        self.until.is_none_or(|until| at <= until)
    }

    /// The names under which it looks for what is a user's.
    #[must_use]
    pub fn names(&self, user: &UserId) -> Vec<UserId> {
        let own = std::iter::once(user);
        own.chain(&self.pseudonym).cloned().collect()
    }

    /// Whether it is not done yet.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.until.is_none()
    }
}

/// Something that is removed, and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Feedback events, each with what came of it.
    Events,
    /// Turns, each with its log, its vector and its message.
    Turns,
    /// Reactions, the user's own and the machine's in their name, each with its mirror.
    Reactions,
    /// Signals on messages.
    Signals,
    /// Versions of preferences.
    PreferenceVersions,
    /// Rows of exports.
    ExportRows,
    /// Files that were imported.
    ImportFiles,
    /// Lines that an import had refused.
    RejectedLines,
}

/// How much was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Removed {
    /// Feedback events, each with its outcome and its signals.
    pub events: u64,
    /// Turns, each with its log.
    pub turns: u64,
    /// Reactions, with their mirrors in logs; those of the machine in the user's name too.
    pub reactions: u64,
    /// Signals on messages.
    pub signals: u64,
    /// Versions of preferences.
    pub preference_versions: u64,
    /// Rows of exports.
    pub export_rows: u64,
    /// Files that were imported and held events of the user's.
    pub import_files: u64,
    /// Lines that an import had refused.
    pub rejected_lines: u64,
}

impl Kind {
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

    /// What its count is called where it is kept.
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

impl Removed {
    /// The count of a kind.
    pub fn of(&mut self, kind: Kind) -> &mut u64 {
        match kind {
            Kind::Events => &mut self.events,
            Kind::Turns => &mut self.turns,
            Kind::Reactions => &mut self.reactions,
            Kind::Signals => &mut self.signals,
            Kind::PreferenceVersions => &mut self.preference_versions,
            Kind::ExportRows => &mut self.export_rows,
            Kind::ImportFiles => &mut self.import_files,
            Kind::RejectedLines => &mut self.rejected_lines,
        }
    }

    /// This and that.
    #[must_use]
    pub fn and(mut self, mut other: Self) -> Self {
        for kind in Kind::ALL {
            *self.of(kind) += *other.of(kind);
        }
        self
    }
}

/// By what the lines of files are told that come of a user: no export names one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traces {
    /// The user's events in the ledger.
    pub acts: BTreeSet<Uuid>,
    /// The user's turns, each as its project, its conversation and its name.
    pub turns: BTreeSet<(String, String, String)>,
    /// The answers in them that have a name, each as its conversation, its turn and that name: a row of an
    /// evaluation may count in another project than that of its turn.
    pub messages: BTreeSet<(String, String, String)>,
}

/// A line of a file: of an event that was imported, or of an export.
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
    provenance: Option<Provenance>,
}

#[derive(Deserialize)]
struct Provenance {
    project: String,
    conversation_id: String,
    turn_ids: Vec<String>,
    feedback_ids: Vec<Uuid>,
}

impl Traces {
    /// Adds a turn of the user's.
    pub fn add_turn(&mut self, turn: &TurnCore) {
        let within = &turn.at.within;
        let (conversation, name) = (within.conversation.to_string(), turn.at.turn.to_string());
        if let Some(message) = &turn.message_id {
            let message = (conversation.clone(), name.clone(), message.to_string());
            self.messages.insert(message);
        }
        let turn = (within.project.to_string(), conversation, name);
        self.turns.insert(turn);
    }

    /// Whether a line of a file comes of a user of these names: an event of theirs, what they said, or what
    /// was said of what they asked.
    #[must_use]
    pub fn left(&self, line: &Value, tenant: &TenantId, names: &[UserId]) -> bool {
        let is_theirs = |user: Option<&Value>| {
            let user = user.and_then(Value::as_str);
            user.is_some_and(|user| names.iter().any(|name| name.as_str() == user))
        };
        let Ok(line) = Line::deserialize(line) else {
            // An event may have members of our names with other contents.
            return is_theirs(line.get("userId"));
        };
        if is_theirs(line.user_id.as_ref()) {
            return true;
        }
        if let (Some(id), Some(message), Some(signal)) = (&line.id, &line.message_id, line.signal) {
            let mut rows = names
                .iter()
                .map(|name| row_id((tenant, name), message, signal));
            if rows.any(|row| row == *id) {
                return true;
            }
        }
        let own_act = |act: &Uuid| self.acts.contains(act);
        if let (Some(conversation), Some(turn), Some(message)) =
            (line.conversation_id, line.turn_id, &line.message_id)
            && self
                .messages
                .contains(&(conversation, turn, message.to_string()))
        {
            return true;
        }
        line.feedback_id.as_ref().is_some_and(own_act)
            || line.provenance.is_some_and(|from| {
                let mut turns = from.turn_ids.into_iter();
                let (project, conversation) = (from.project, from.conversation_id);
                let of = |turn| (project.clone(), conversation.clone(), turn);
                from.feedback_ids.iter().any(own_act)
                    || turns.any(|turn| self.turns.contains(&of(turn)))
            })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_received_until_it_was_done_is_covered_and_nothing_later() {
        let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        let mut erasure = Erasure {
            id: Uuid::nil(),
            requested_at: at("2026-01-04T09:30:00Z"),
            pseudonym: None,
            until: None,
            removed: Removed::default(),
        };
        assert!(erasure.covers(at("2030-01-01T00:00:00Z")));
        erasure.until = Some(at("2026-01-04T10:00:00Z"));
        assert!(erasure.covers(at("2026-01-04T10:00:00Z")));
        assert!(!erasure.covers(at("2026-01-04T10:00:01Z")));
    }

    #[test]
    fn lines_are_told_by_what_they_come_of() {
        let act = Uuid::from_u128(7);
        let traces = Traces {
            acts: [act].into(),
            turns: [("p".to_owned(), "c1".to_owned(), "t1".to_owned())].into(),
            messages: [("c1".to_owned(), "t1".to_owned(), "m9".to_owned())].into(),
        };
        let tenant = "acme".try_into().unwrap();
        let names: [UserId; 2] = ["ada", "anon-1"].map(|name| name.try_into().unwrap());
        let [user, _] = &names;
        let message = "m1".try_into().unwrap();
        let id = row_id((&tenant, user), &message, MessageSignal::Edit);
        let from = |acts: &[Uuid], turn: &str| {
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
            from(&[act], "t9"),
            from(&[], "t1"),
        ] {
            assert!(traces.left(&line, &tenant, &names), "{line}");
        }
        for line in [
            json!({"userId": "eve"}),
            json!({"userId": 7, "id": "ada"}),
            json!({"id": id, "message_id": "m1", "signal": "helpful"}),
            json!({"message_id": "m8", "conversation_id": "c1", "turn_id": "t1"}),
            from(&[Uuid::nil()], "t2"),
            json!("ada"),
            json!(null),
        ] {
            assert!(!traces.left(&line, &tenant, &names), "{line}");
        }
    }
}
