//! How a turn was taken: what was inferred of it, and what its own user said of it on purpose.
//!
//! What was said on purpose outranks what was inferred. A user may say it by several means, a reaction and
//! signals on the answer and an event; the latest of them that was not taken back counts.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::detection::FeedbackType;
use crate::follow_up::{Correction, UserFeedback};
use crate::identifier::TurnId;
use crate::reaction::{Means, Reaction};

/// What a turn's own user said of it on purpose: the latest by each means, also if they took it back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said(BTreeMap<Means, Statement>);

/// What somebody said by one means, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Statement {
    /// `None` if it was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    verdict: Option<Reaction>,
    at: DateTime<Utc>,
}

impl Said {
    /// The same with a later statement by one means; `None` if what is known is later, or the same.
    #[must_use]
    pub fn with(
        &self,
        means: Means,
        (verdict, at): (Option<Reaction>, DateTime<Utc>),
    ) -> Option<Self> {
        let statement = Statement { verdict, at };
        let known = self.0.get(&means);
        if known.is_some_and(|known| known.at > at || *known == statement) {
            return None;
        }
        let mut said = self.clone();
        said.0.insert(means, statement);
        Some(said)
    }

    /// What counts: the latest that was not taken back.
    #[must_use]
    pub fn verdict(&self) -> Option<Reaction> {
        let standing = (self.0.values()).filter_map(|said| Some((said.at, said.verdict?)));
        standing
            .max_by_key(|(at, _)| *at)
            .map(|(_, verdict)| verdict)
    }
}

/// How a turn was taken, of all that is known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnStatus {
    /// What was inferred of it.
    pub inferred: Option<UserFeedback>,
    /// What its user said on purpose, and did not take back.
    pub said: Option<Reaction>,
}

impl TurnStatus {
    /// How it was taken. What its user said on purpose outranks what was inferred.
    #[must_use]
    pub fn status(&self) -> FeedbackType {
        match (self.said, &self.inferred) {
            (Some(Reaction::Ok), _) => FeedbackType::Accepted,
            (Some(Reaction::NotOk), _) => FeedbackType::Rejected,
            (Some(Reaction::Neutral), _) | (None, None) => FeedbackType::Neutral,
            (None, Some(inferred)) => inferred.status,
        }
    }

    /// How sure that is: 1 for what was said on purpose, 0.5 for a turn of which nothing is known.
    #[must_use]
    pub fn confidence(&self) -> f64 {
        match (self.said, &self.inferred) {
            (Some(_), _) => 1.0,
            (None, Some(inferred)) => inferred.confidence,
            (None, None) => UNKNOWN,
        }
    }

    /// The turn in which a rejection was found, if it is one that still counts.
    #[must_use]
    pub fn rejection_detected_in(&self) -> Option<&TurnId> {
        let inferred = self.inferred.as_ref()?;
        let counts = self.said.is_none() && inferred.status == FeedbackType::Rejected;
        inferred.detected_in_turn.as_ref().filter(|_| counts)
    }

    /// How a message rejects it, if that still counts.
    #[must_use]
    pub fn correction_type(&self) -> Option<Correction> {
        let inferred = self.inferred.as_ref().filter(|_| self.said.is_none());
        inferred.and_then(|inferred| inferred.correction_type)
    }

    /// Whether its user said on purpose that it was no failure.
    #[must_use]
    pub fn is_excused(&self) -> bool {
        match self.said {
            Some(Reaction::Ok | Reaction::Neutral) => true,
            Some(Reaction::NotOk) | None => false,
        }
    }
}

/// Confidence in the status of a turn of which nothing is known (`User Feedback System`,
/// "`TurnIndexDB` Schema").
const UNKNOWN: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_that_was_not_taken_back_counts_in_whatever_order_it_arrives() {
        let at = |second| DateTime::from_timestamp(second, 0).unwrap();
        let acts = [
            (
                Means::Reaction,
                (Some(Reaction::Ok), at(1)),
                Some(Reaction::Ok),
            ),
            (
                Means::Inaccurate,
                (Some(Reaction::NotOk), at(2)),
                Some(Reaction::NotOk),
            ),
            (
                Means::Event,
                (Some(Reaction::Neutral), at(3)),
                Some(Reaction::Neutral),
            ),
            (Means::Event, (None, at(4)), Some(Reaction::NotOk)),
            (Means::Inaccurate, (None, at(5)), Some(Reaction::Ok)),
            (Means::Reaction, (None, at(6)), None),
        ];
        let mut said = Said::default();
        for (means, act, verdict) in acts {
            said = said.with(means, act).unwrap();
            assert_eq!(said.verdict(), verdict, "{means:?}");
        }
        let late = acts.iter().rev();
        let late = late.fold(Said::default(), |said, (means, act, _)| {
            said.with(*means, *act).unwrap_or(said)
        });
        assert_eq!(late, said);
        assert_eq!(
            said.with(Means::Reaction, (None, at(6))),
            None,
            "it is known"
        );
    }
}
