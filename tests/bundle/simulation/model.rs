//! The model: what must be stored, according to the responses.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use uuid::Uuid;

/// Users who are never erased, and whose turns others give feedback on.
pub const PERMANENT_USERS: [&str; 2] = ["ada", "eve"];
/// Users who request erasures.
pub const ERASABLE_USERS: [&str; 2] = ["ike", "zoe"];
/// All users.
pub const USERS: [&str; 4] = [
    PERMANENT_USERS[0],
    PERMANENT_USERS[1],
    ERASABLE_USERS[0],
    ERASABLE_USERS[1],
];

/// A turn: its user and its number.
pub type Turn = (&'static str, u64);

/// The expected data of a tenant.
#[derive(Debug, Default)]
pub struct Tenant {
    /// Acknowledged events, as they were sent.
    pub events: BTreeMap<Uuid, Value>,
    /// Events that their users withdrew.
    pub withdrawn: BTreeSet<Uuid>,
    /// Registered turns.
    pub turns: BTreeSet<Turn>,
    /// Open turns, each with the user's message.
    pub open: BTreeMap<Turn, &'static str>,
    /// The current reaction of each user to a turn.
    pub reactions: BTreeMap<(Turn, &'static str), &'static str>,
    /// The reason of each user's current signal on a turn's message.
    pub signals: BTreeMap<(Turn, &'static str), String>,
    /// Users whose erasure is open.
    pub being_erased: BTreeSet<&'static str>,
    /// The pseudonym of each user.
    pub pseudonyms: BTreeMap<&'static str, String>,
}

impl Tenant {
    /// The turns that a user may give feedback on: none that another user's erasure removes.
    pub fn turns_for(&self, user: &str) -> Vec<Turn> {
        let is_available = |turn: &&Turn| turn.0 == user || PERMANENT_USERS.contains(&turn.0);
        self.turns.iter().filter(is_available).copied().collect()
    }

    /// The same, without open turns.
    pub fn answered_for(&self, user: &str) -> Vec<Turn> {
        let mut turns = self.turns_for(user);
        turns.retain(|turn| !self.open.contains_key(turn));
        turns
    }

    /// The user or the pseudonym of a stored event.
    pub fn name_in<'a>(&'a self, event: &'a Value) -> &'a str {
        let user = event["userId"].as_str().unwrap();
        match event["privacyFlags"]["anonymize"].as_bool() {
            Some(true) => &self.pseudonyms[user],
            _ => user,
        }
    }

    /// Whether the user with this name or pseudonym has an open erasure.
    pub fn is_being_erased(&self, name: &str) -> bool {
        let mut being_erased = self.being_erased.iter();
        being_erased.any(|user| *user == name || self.pseudonyms[user] == name)
    }

    /// Removes a user's data after their erasure.
    pub fn erased(&mut self, user: &'static str) {
        self.being_erased.remove(user);
        self.events.retain(|_, event| event["userId"] != user);
        self.turns.retain(|turn| turn.0 != user);
        self.open.retain(|turn, _| turn.0 != user);
        self.reactions.retain(|(_, by), _| *by != user);
        self.signals.retain(|(_, by), _| *by != user);
    }
}
