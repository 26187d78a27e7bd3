//! How satisfied a user was with a turn, and how turns rank for it when a strategy is looked for.
//!
//! Source: `User Feedback System`, "Satisfaction Score Calculation", "Strategy Search Filtering"
//! and "Ranking Impact".

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::detection::FeedbackType;
use crate::event::wire_names;

/// What a validation said of an answer before the user saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum ValidationOutcome {
    /// It was good.
    Approve,
    /// It was to be improved.
    Revise,
    /// It was to be made anew.
    Retry,
    /// It was not to be shown.
    Fail,
}

wire_names!(ValidationOutcome {
    Approve = "APPROVE",
    Revise = "REVISE",
    Retry = "RETRY",
    Fail = "FAIL",
});

/// What a rejected turn scores, whatever a validation said.
const REJECTED: f64 = -1.0;
/// What an acceptance adds.
const ACCEPTED: f64 = 0.5;
/// The share of the ranking score that is quality, and the share that is feedback.
const SHARES: (f64, f64) = (0.6, 0.4);

impl ValidationOutcome {
    /// The outcome by its name on the wire, if it is one of the source's four.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, outcome)| *outcome)
    }

    /// What a turn scores before its user says anything.
    #[must_use]
    pub fn base_score(self) -> f64 {
        match self {
            Self::Approve => 0.5,
            Self::Revise => 0.3,
            Self::Retry => 0.1,
            Self::Fail => -0.5,
        }
    }
}

/// How satisfied the user was, −1 to 1. A turn that was not validated starts at 0.
#[must_use]
pub fn satisfaction_score(outcome: Option<ValidationOutcome>, status: FeedbackType) -> f64 {
    let base = outcome.map_or(0.0, ValidationOutcome::base_score);
    match status {
        FeedbackType::Rejected => REJECTED,
        FeedbackType::Accepted => (base + ACCEPTED).min(1.0),
        FeedbackType::Neutral => base,
    }
}

/// What feedback counts in a ranking.
#[must_use]
pub fn feedback_weight(status: FeedbackType) -> f64 {
    match status {
        FeedbackType::Rejected => -1.0,
        FeedbackType::Accepted => 0.5,
        FeedbackType::Neutral => 0.0,
    }
}

/// The score by which turns of equal standing rank, for a quality of 0 to 1.
#[must_use]
pub fn ranking_score(quality: f64, status: FeedbackType) -> f64 {
    let (of_quality, of_feedback) = SHARES;
    quality * of_quality + feedback_weight(status) * of_feedback
}

/// A turn's place among those whose strategy may be used again: accepted before neutral, then by
/// ranking score, and of equal ones by how like the query they are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rank {
    accepted: bool,
    /// See [`ranking_score`].
    pub ranking_score: f64,
    /// How like the query it is, −1 to 1.
    pub similarity: f64,
}

impl Rank {
    /// The place of a turn of this quality and similarity; `None` for a rejected one, whose strategy is
    /// never used again.
    #[must_use]
    pub fn of((quality, similarity): (f64, f64), status: FeedbackType) -> Option<Self> {
        let accepted = match status {
            FeedbackType::Rejected => return None,
            FeedbackType::Accepted => true,
            FeedbackType::Neutral => false,
        };
        Some(Self {
            accepted,
            ranking_score: ranking_score(quality, status),
            similarity,
        })
    }

    /// The order of two turns: `Less` comes first.
    #[must_use]
    pub fn order(&self, other: &Self) -> Ordering {
        let standing = other.accepted.cmp(&self.accepted);
        standing
            .then(other.ranking_score.total_cmp(&self.ranking_score))
            .then(other.similarity.total_cmp(&self.similarity))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FeedbackType::{Accepted, Neutral, Rejected};

    #[test]
    fn scores_are_those_of_the_source() {
        let score = |name, status| satisfaction_score(ValidationOutcome::named(name), status);
        for (name, base) in [
            ("APPROVE", 0.5),
            ("REVISE", 0.3),
            ("RETRY", 0.1),
            ("FAIL", -0.5),
        ] {
            let near = |one: f64, other: f64| assert!((one - other).abs() < 1e-12, "{one} {other}");
            near(score(name, Neutral), base);
            near(score(name, Accepted), (base + 0.5).min(1.0));
            near(score(name, Rejected), -1.0);
        }
        assert!((score("whatever", Accepted) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn accepted_turns_come_first_and_rejected_ones_not_at_all() {
        assert_eq!(Rank::of((1.0, 1.0), Rejected), None);
        let mut ranks = [
            ("fair", (0.2, 0.9), Neutral),
            ("fair, and more like it", (0.2, 1.0), Neutral),
            ("poor but taken", (0.1, 0.3), Accepted),
            ("best", (1.0, 0.4), Neutral),
            ("good and taken", (0.9, 0.2), Accepted),
        ]
        .map(|(name, of, status)| (name, Rank::of(of, status).unwrap()));
        ranks.sort_by(|(_, one), (_, other)| one.order(other));
        let names = ranks.map(|(name, _)| name);
        let order = [
            "good and taken",
            "poor but taken",
            "best",
            "fair, and more like it",
            "fair",
        ];
        assert_eq!(names, order);
        assert!((ranking_score(0.85, Accepted) - 0.71).abs() < 1e-12);
        assert!((ranking_score(0.85, Rejected) - 0.11).abs() < 1e-12);
    }
}
