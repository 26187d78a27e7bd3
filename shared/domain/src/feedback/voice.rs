//! Which of a user's feedback on a turn counts as what that user says, in rates and timelines. See
//! docs/reference/rules.md, "One voice".

use std::cmp::Reverse;

use chrono::{DateTime, Utc};

use crate::events::recency::Recency;
use crate::feedback::reaction::{Origin, Reaction, ReactionCore};

/// The rank of feedback among that of one user on one turn: the greatest counts. What the machine inferred has the order
/// of [`crate::feedback::follow_up::Precedence`], so that a timeline and a rate follow the status of the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Voice {
    /// `neutral` of the machine, which sets no status.
    Indifferent(Recency),
    /// Inferred from a turn that follows: the nearest counts, by the times of the turns, as for the status.
    FollowUp(Reverse<(DateTime<Utc>, Recency)>),
    /// Inferred from a message that names the turn.
    Named(NamedVoice),
    /// Given on purpose, or withdrawn.
    Given(Recency),
}

/// The rank of an inference that names its turn: the latest, at the same time a rejection, then the surest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedVoice {
    at: DateTime<Utc>,
    rejects: bool,
    /// In thousandths.
    confidence: u16,
    recency: Recency,
}

impl Voice {
    /// The rank of a reaction, or of what counts as one.
    #[must_use]
    pub fn of(core: &ReactionCore) -> Self {
        let inferred = Inferred {
            reaction: core.reaction,
            confidence: core.confidence,
            follows_at: core.follow_up.then_some(core.ts),
        };
        Self::ranked(core.origin, core.recency(), inferred)
    }

    pub(crate) fn ranked(origin: Origin, recency: Recency, inferred: Inferred) -> Self {
        let rejects = match (origin, inferred.reaction) {
            (Origin::User, _) => return Self::Given(recency),
            (Origin::Machine, Some(Reaction::Neutral) | None) => return Self::Indifferent(recency),
            (Origin::Machine, Some(Reaction::NotOk)) => true,
            (Origin::Machine, Some(Reaction::Ok)) => false,
        };
        if let Some(at) = inferred.follows_at {
            return Self::FollowUp(Reverse((at, recency)));
        }
        let thousandths = format!("{:.0}", inferred.confidence.clamp(0.0, 1.0) * 1000.0);
        Self::Named(NamedVoice {
            at: recency.at(),
            rejects,
            confidence: thousandths.parse().unwrap_or_default(),
            recency,
        })
    }
}

/// What the machine inferred.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inferred {
    pub(crate) reaction: Option<Reaction>,
    pub(crate) confidence: f64,
    /// The time of the turn that it was inferred from, if that follows.
    pub(crate) follows_at: Option<DateTime<Utc>>,
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn at(second: i64) -> Recency {
        let at = DateTime::from_timestamp(second, 0).unwrap();
        Recency::new(at, at, Uuid::from_u128(second.unsigned_abs().into()))
    }

    fn machine(second: i64, reaction: Reaction, confidence: f64, follow_up: bool) -> Voice {
        let inferred = Inferred {
            reaction: Some(reaction),
            confidence,
            follows_at: follow_up.then(|| at(second).at()),
        };
        Voice::ranked(Origin::Machine, at(second), inferred)
    }

    #[test]
    fn explicit_feedback_outranks_inferences_which_rank_as_for_the_status() {
        use Reaction::{Neutral, NotOk, Ok};
        let given = Inferred {
            reaction: Some(Ok),
            confidence: 1.0,
            follows_at: None,
        };
        let ascending = [
            machine(9, Neutral, 0.9, false),
            // The nearest of the turns that follow.
            machine(8, NotOk, 0.9, true),
            machine(7, Ok, 0.7, true),
            // The latest that names the turn, then a rejection, then the surest.
            machine(3, NotOk, 0.9, false),
            machine(4, Ok, 0.9, false),
            machine(4, NotOk, 0.7, false),
            machine(4, NotOk, 0.8, false),
            Voice::ranked(Origin::User, at(1), given),
            Voice::ranked(Origin::User, at(2), given),
        ];
        assert!(ascending.is_sorted_by(|one, other| one < other));
    }
}
