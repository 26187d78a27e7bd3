//! What must be, by what was answered.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use uuid::Uuid;

/// Users who stay, and whose turns everybody speaks of.
pub const STAYERS: [&str; 2] = ["ada", "eve"];
/// Users who have themselves erased at times.
pub const LEAVERS: [&str; 2] = ["ike", "zoe"];
/// All of them.
pub const USERS: [&str; 4] = [STAYERS[0], STAYERS[1], LEAVERS[0], LEAVERS[1]];

/// A turn: whose it is, and its number.
pub type Turn = (&'static str, u64);

/// What a tenant's users did that is to stand.
#[derive(Debug, Default)]
pub struct Tenant {
    /// Events that were acknowledged, as they were sent.
    pub events: BTreeMap<Uuid, Value>,
    /// Turns that were registered.
    pub turns: BTreeSet<Turn>,
    /// Those of them that have no answer yet, each with what its user said.
    pub open: BTreeMap<Turn, &'static str>,
    /// The last verdict of a user on a turn.
    pub reactions: BTreeMap<(Turn, &'static str), &'static str>,
    /// What a user wrote of a turn's message last.
    pub signals: BTreeMap<(Turn, &'static str), String>,
    /// Users whose erasure is open.
    pub leaving: BTreeSet<&'static str>,
    /// The name of each user in events that are anonymous.
    pub pseudonyms: BTreeMap<&'static str, String>,
}

impl Tenant {
    /// The turns that a user may speak of without fear that they are erased.
    pub fn turns_for(&self, user: &str) -> Vec<Turn> {
        let lasts = |turn: &&Turn| turn.0 == user || STAYERS.contains(&turn.0);
        self.turns.iter().filter(lasts).copied().collect()
    }

    /// The same, of those that have an answer.
    pub fn answered_for(&self, user: &str) -> Vec<Turn> {
        let mut turns = self.turns_for(user);
        turns.retain(|turn| !self.open.contains_key(turn));
        turns
    }

    /// The name under which an event is kept.
    pub fn name_in<'a>(&'a self, event: &'a Value) -> &'a str {
        let user = event["userId"].as_str().unwrap();
        match event["privacyFlags"]["anonymize"].as_bool() {
            Some(true) => &self.pseudonyms[user],
            _ => user,
        }
    }

    /// Whether the erasure of who is kept under a name is open.
    pub fn is_leaving(&self, name: &str) -> bool {
        let mut leaving = self.leaving.iter();
        leaving.any(|user| *user == name || self.pseudonyms[user] == name)
    }

    /// A user's data are erased.
    pub fn erased(&mut self, user: &'static str) {
        self.leaving.remove(user);
        self.events.retain(|_, event| event["userId"] != user);
        self.turns.retain(|turn| turn.0 != user);
        self.open.retain(|turn, _| turn.0 != user);
        self.reactions.retain(|(_, by), _| *by != user);
        self.signals.retain(|(_, by), _| *by != user);
    }
}
