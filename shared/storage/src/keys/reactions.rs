//! Keys of reactions, and of feedback that counts as one.

use hearback_domain::feedback::reaction::{FeedbackKind, Origin, ReactionCore};
use hearback_domain::identity::identifier::{TurnId, UserId};
use uuid::Uuid;

use super::parts::{sort_part, unescaped};

/// Prefix of the sort keys of reactions.
pub const REACTION_PREFIX: &str = "REACTION#";

/// Prefix of the sort keys of a turn's reactions.
#[must_use]
pub fn reactions_of(turn: &TurnId) -> String {
    format!("{REACTION_PREFIX}{}#", sort_part(turn.as_str()))
}

/// Prefix of the sort keys of the machine's reactions to a turn.
#[must_use]
pub fn machine_reactions(turn: &TurnId) -> String {
    format!("{}machine#", reactions_of(turn))
}

/// The sort key of a reaction: one for each user, and one for each machine reaction. Feedback that
/// counts as a reaction has one for each user and signal, and one for each event.
#[must_use]
pub fn reaction(core: &ReactionCore) -> String {
    let (turn, user) = (&core.at.turn, &core.user_id);
    match (core.kind, core.origin) {
        (FeedbackKind::Reaction, Origin::User) => user_reaction(turn, user),
        (FeedbackKind::Reaction, Origin::Machine) => {
            format!("{}{}", machine_reactions(turn), core.id)
        }
        (FeedbackKind::Event, _) => counted_event(turn, core.id),
        (
            FeedbackKind::Helpful
            | FeedbackKind::NotHelpful
            | FeedbackKind::Inaccurate
            | FeedbackKind::Unsafe,
            _,
        ) => {
            let (turn, user) = (reactions_of(turn), sort_part(user.as_str()));
            format!("{turn}signal#{user}#{}", core.kind.as_str())
        }
    }
}

/// The sort key of an event that counts as a reaction.
#[must_use]
pub fn counted_event(turn: &TurnId, event: Uuid) -> String {
    format!("{}event#{event}", reactions_of(turn))
}

/// The sort key of a user's reaction to a turn.
#[must_use]
pub fn user_reaction(turn: &TurnId, user: &UserId) -> String {
    format!("{}user#{}", reactions_of(turn), sort_part(user.as_str()))
}

/// What the sort key of a reaction names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReactionKey<'a> {
    /// The turn, as in keys.
    pub turn: &'a str,
    /// Whose reaction it is.
    pub author: ReactionAuthor<'a>,
    /// Whether it is a message signal or an event that counts as a reaction.
    pub counted: bool,
}

/// Whose reaction a sort key names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReactionAuthor<'a> {
    /// A user, as in keys.
    User(&'a str),
    /// A feedback act.
    Act(Uuid),
    /// Nobody's: no writer makes such a key.
    Unknown,
}

impl ReactionKey<'_> {
    /// Whether it names the user.
    #[must_use]
    pub fn is_by(&self, user: &UserId) -> bool {
        matches!(self.author, ReactionAuthor::User(part) if part == sort_part(user.as_str()))
    }
}

/// Reads the sort key of a reaction; `None` for any other key.
#[must_use]
pub fn reaction_key(key: &str) -> Option<ReactionKey<'_>> {
    let mut parts = key.strip_prefix(REACTION_PREFIX)?.split('#');
    let (turn, kind, name) = (parts.next()?, parts.next()?, parts.next()?);
    let act = |name: &str| {
        let act = name.parse().map(ReactionAuthor::Act);
        act.unwrap_or(ReactionAuthor::Unknown)
    };
    let author = match kind {
        "user" | "signal" => ReactionAuthor::User(name),
        "machine" | "event" => act(name),
        _ => ReactionAuthor::Unknown,
    };
    Some(ReactionKey {
        turn,
        author,
        counted: matches!(kind, "signal" | "event"),
    })
}

/// A turn or user in the sort key of a reaction.
#[must_use]
pub fn reaction_part(name: &str) -> String {
    sort_part(name)
}

/// Parts of the sort keys of a user's reactions and of signals that count as reactions.
#[must_use]
pub fn reactions_of_user(user: &UserId) -> [String; 2] {
    let user = sort_part(user.as_str());
    [format!("#user#{user}"), format!("#signal#{user}#")]
}

/// The turn and the user of a user's reaction, from its sort key; an id that was too long is its
/// digest. `None` for any other key.
#[must_use]
pub fn user_of_reaction(key: &str) -> Option<(TurnId, UserId)> {
    let mut parts = key.strip_prefix(REACTION_PREFIX)?.split('#');
    let (turn, kind, user) = (parts.next()?, parts.next()?, parts.next()?);
    if kind != "user" {
        return None;
    }
    let turn = TurnId::try_from(unescaped(turn)).ok()?;
    Some((turn, UserId::or_pseudonym(unescaped(user)).ok()?))
}
