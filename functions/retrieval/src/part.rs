//! Divides the feedback on a turn or a conversation into pages.
//!
//! The next page continues after a key of the reaction that its changes do not move: its turn and its author.

use hearback_domain::feedback::reaction::{FeedbackKind, Origin, StoredReaction};
use hearback_domain::identity::identifier::TurnId;
use hearback_domain::text::digest::digest;
use serde::{Deserialize, Serialize};

/// The last reaction on a page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct UpTo {
    turn: TurnId,
    mark: u64,
}

impl UpTo {
    fn of(reaction: &StoredReaction) -> Self {
        let core = &reaction.core;
        // A user has one reaction to a turn and one signal of a kind, but any number of events and machine reactions.
        let id = match (core.origin, core.kind) {
            (Origin::Machine, _) | (_, FeedbackKind::Event) => core.id.to_string(),
            (Origin::User, _) => String::new(),
        };
        let (origin, means) = (core.origin.as_str(), core.kind.as_str());
        let digest = digest([origin, means, core.user_id.as_str(), &id]);
        Self {
            turn: core.at.turn.clone(),
            mark: u64::from_be_bytes(digest.first_chunk().copied().unwrap_or_default()),
        }
    }

    /// Whether the reaction is to this turn.
    pub(crate) fn is_of(&self, turn: &TurnId) -> bool {
        self.turn == *turn
    }
}

/// The reactions of one page.
pub(crate) struct Part {
    /// The reactions, by turn.
    pub(crate) reactions: Vec<StoredReaction>,
    /// The last of them, if there are more.
    pub(crate) rest: Option<UpTo>,
}

impl Part {
    /// The reactions after `after` that fit into `room` bytes, and at least one.
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
