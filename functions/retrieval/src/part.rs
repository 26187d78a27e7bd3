//! The part of a turn's or a conversation's feedback that an answer has room for.
//!
//! What is left is continued on the next page from a key that no change of a reaction moves: its turn,
//! and whose it is.

use hearback_domain::digest::digest;
use hearback_domain::identifier::TurnId;
use hearback_domain::reaction::{Means, Origin, StoredReaction};
use serde::{Deserialize, Serialize};

/// Up to which reaction a turn or a conversation is listed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct UpTo {
    turn: TurnId,
    mark: u64,
}

impl UpTo {
    fn of(reaction: &StoredReaction) -> Self {
        let core = &reaction.core;
        // A user has one reaction to a turn, whatever it says, and one signal of a kind; of events, and of what
        // the machine says, there are many.
        let id = match (core.origin, core.means) {
            (Origin::Machine, _) | (_, Means::Event) => core.id.to_string(),
            (Origin::User, _) => String::new(),
        };
        let (origin, means) = (core.origin.as_str(), core.means.as_str());
        let digest = digest([origin, means, core.user_id.as_str(), &id]);
        Self {
            turn: core.at.turn.clone(),
            mark: u64::from_be_bytes(digest.first_chunk().copied().unwrap_or_default()),
        }
    }

    /// Whether it is a reaction to this turn.
    pub(crate) fn is_of(&self, turn: &TurnId) -> bool {
        self.turn == *turn
    }
}

/// A part of some reactions.
pub(crate) struct Part {
    /// Its reactions, by turn.
    pub(crate) reactions: Vec<StoredReaction>,
    /// Up to which it goes, if there are more.
    pub(crate) rest: Option<UpTo>,
}

impl Part {
    /// The reactions behind `after`, as many as `room` holds, and at least one.
    pub(crate) fn of(
        reactions: Vec<StoredReaction>,
        after: Option<&UpTo>,
        room: usize,
        size: impl Fn(&StoredReaction) -> usize,
    ) -> Self {
        let mut keyed: Vec<_> = (reactions.into_iter())
            .map(|reaction| (UpTo::of(&reaction), reaction))
            .filter(|(key, _)| after.is_none_or(|after| key > after))
            .collect();
        keyed.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut bytes = 0;
        let fit = keyed.iter().take_while(|(_, reaction)| {
            bytes += size(reaction);
            bytes <= room
        });
        let fit = fit.count().max(1);
        let more = keyed.len() > fit;
        keyed.truncate(fit);
        Self {
            rest: keyed.last().filter(|_| more).map(|(key, _)| key.clone()),
            reactions: keyed.into_iter().map(|(_, reaction)| reaction).collect(),
        }
    }
}
