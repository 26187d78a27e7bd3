//! What is counted of a group of events.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::events::event::{Channel, FeedbackType};
use crate::feedback::reaction::Origin;
use crate::views::insights::facts::Facts;
use crate::views::insights::verdict::Verdict;

/// Counts of events and turns. What users gave is counted apart from what was inferred.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Events that hold.
    #[serde(rename = "e")]
    pub events: u64,
    /// Events that were withdrawn or replaced. They are in no other count.
    #[serde(rename = "x", skip_serializing_if = "is_zero")]
    pub retracted: u64,
    /// Events that correct an answer.
    #[serde(rename = "c", skip_serializing_if = "is_zero")]
    pub corrections: u64,
    /// What users gave.
    #[serde(rename = "g", skip_serializing_if = "Verdicts::is_empty")]
    pub given: Verdicts,
    /// What was inferred.
    #[serde(rename = "i", skip_serializing_if = "Verdicts::is_empty")]
    pub inferred: Verdicts,
    /// Turns.
    #[serde(rename = "t", skip_serializing_if = "TurnCounts::is_empty")]
    pub turns: TurnCounts,
}

/// Which feedback a turn has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TurnFeedback {
    /// Explicit feedback of its user that holds.
    pub is_explicit: bool,
    /// Something was inferred.
    pub is_inferred: bool,
}

/// Counts of turns, and of those with feedback.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[u64; 4]", into = "[u64; 4]")]
pub struct TurnCounts {
    /// All turns.
    pub registered: u64,
    /// Those with explicit feedback of their user.
    pub explicit: u64,
    /// Those about which something was inferred.
    pub inferred: u64,
    /// Those with one of the two.
    pub any: u64,
}

impl TurnCounts {
    /// Counts a turn.
    pub fn add(&mut self, feedback: TurnFeedback) {
        let TurnFeedback {
            is_explicit,
            is_inferred,
        } = feedback;
        self.registered += 1;
        self.explicit += u64::from(is_explicit);
        self.inferred += u64::from(is_inferred);
        self.any += u64::from(is_explicit || is_inferred);
    }

    fn without(self, part: Self) -> Self {
        Self {
            registered: self.registered.saturating_sub(part.registered),
            explicit: self.explicit.saturating_sub(part.explicit),
            inferred: self.inferred.saturating_sub(part.inferred),
            any: self.any.saturating_sub(part.any),
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl AddAssign for TurnCounts {
    fn add_assign(&mut self, other: Self) {
        self.registered += other.registered;
        self.explicit += other.explicit;
        self.inferred += other.inferred;
        self.any += other.any;
    }
}

impl From<[u64; 4]> for TurnCounts {
    fn from([registered, explicit, inferred, any]: [u64; 4]) -> Self {
        Self {
            registered,
            explicit,
            inferred,
            any,
        }
    }
}

impl From<TurnCounts> for [u64; 4] {
    fn from(turns: TurnCounts) -> Self {
        [turns.registered, turns.explicit, turns.inferred, turns.any]
    }
}

/// Verdicts of one origin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Verdicts {
    /// Acceptances, and ratings of 4 and 5.
    #[serde(rename = "a", skip_serializing_if = "is_zero")]
    pub accepted: u64,
    /// Rejections, and ratings of 1 and 2.
    #[serde(rename = "r", skip_serializing_if = "is_zero")]
    pub rejected: u64,
    /// Neutral reactions, and ratings of 3.
    #[serde(rename = "n", skip_serializing_if = "is_zero")]
    pub neutral: u64,
    /// Ratings of 1 to 5.
    #[serde(rename = "s", skip_serializing_if = "has_no_rating")]
    pub ratings: [u64; 5],
    /// Rewards.
    #[serde(rename = "w", skip_serializing_if = "is_zero")]
    pub rewards: u64,
    /// The sum of the rewards, in millionths: a sum of whole numbers does not depend on their order.
    #[serde(rename = "m", skip_serializing_if = "is_no_sum")]
    pub reward_millionths: i64,
}

impl Counts {
    /// Counts an event.
    pub fn add(&mut self, facts: &Facts, is_retracted: bool) {
        if is_retracted {
            self.retracted += 1;
            return;
        }
        self.events += 1;
        let is_correction = facts.channel == Channel::Correction
            || facts.feedback_type == Some(FeedbackType::Modification);
        self.corrections += u64::from(is_correction);
        match facts.origin() {
            Origin::User => self.given.add(facts),
            Origin::Machine => self.inferred.add(facts),
        }
    }

    /// These counts without those of `part`.
    #[must_use]
    pub fn without(&self, part: &Self) -> Self {
        Self {
            events: self.events.saturating_sub(part.events),
            retracted: self.retracted.saturating_sub(part.retracted),
            corrections: self.corrections.saturating_sub(part.corrections),
            given: self.given.without(&part.given),
            inferred: self.inferred.without(&part.inferred),
            turns: self.turns.without(part.turns),
        }
    }

    /// The order of importance: events, then turns.
    #[must_use]
    pub fn size(&self) -> (u64, u64) {
        (self.events, self.turns.registered)
    }

    /// Whether nothing is counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events == 0 && self.retracted == 0 && self.turns.is_empty()
    }
}

impl AddAssign<&Self> for Counts {
    fn add_assign(&mut self, other: &Self) {
        self.events += other.events;
        self.retracted += other.retracted;
        self.corrections += other.corrections;
        self.given += &other.given;
        self.inferred += &other.inferred;
        self.turns += other.turns;
    }
}

impl Verdicts {
    fn add(&mut self, facts: &Facts) {
        match facts.verdict() {
            Some(Verdict::Accepted) => self.accepted += 1,
            Some(Verdict::Rejected) => self.rejected += 1,
            Some(Verdict::Neutral) => self.neutral += 1,
            None => {}
        }
        let place = facts.rating.map(|rating| usize::from(rating.get()) - 1);
        if let Some(rating) = place.and_then(|place| self.ratings.get_mut(place)) {
            *rating += 1;
        }
        if let Some(reward) = facts.reward_millionths {
            self.rewards += 1;
            self.reward_millionths += reward;
        }
    }

    /// How many verdicts there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.accepted + self.rejected + self.neutral
    }

    fn without(&self, part: &Self) -> Self {
        let mut ratings = self.ratings;
        for (own, parts) in ratings.iter_mut().zip(part.ratings) {
            *own = own.saturating_sub(parts);
        }
        Self {
            accepted: self.accepted.saturating_sub(part.accepted),
            rejected: self.rejected.saturating_sub(part.rejected),
            neutral: self.neutral.saturating_sub(part.neutral),
            ratings,
            rewards: self.rewards.saturating_sub(part.rewards),
            reward_millionths: self.reward_millionths - part.reward_millionths,
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl AddAssign<&Self> for Verdicts {
    fn add_assign(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.rejected += other.rejected;
        self.neutral += other.neutral;
        for (own, others) in self.ratings.iter_mut().zip(other.ratings) {
            *own += others;
        }
        self.rewards += other.rewards;
        self.reward_millionths += other.reward_millionths;
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_no_sum(sum: &i64) -> bool {
    *sum == 0
}

fn has_no_rating(ratings: &[u64; 5]) -> bool {
    *ratings == [0; 5]
}
