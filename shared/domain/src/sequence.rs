//! Several rejections in a row: the system does not understand, and had better ask.
//!
//! Source: `User Feedback System`, "Multiple Corrections in Sequence".

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::detection::FeedbackType;

/// Rejections in a row from which on to ask is advised.
pub const CLARIFY_FROM: usize = 2;

/// Most rejections in a row that are counted: each is looked up.
pub const MOST_COUNTED: usize = 16;

/// What a planner sees of several rejections (the source's own words).
pub const CAREFUL: &str = "Multiple rejections - be more careful";

/// What the latest turns of a conversation advise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Sequence {
    /// How many of the latest turns were rejected, without one between that was not.
    pub consecutive_rejections: usize,
    /// Whether the next answer had better be a question.
    pub clarify: bool,
}

impl Sequence {
    /// Reads the statuses of turns, the latest first.
    pub fn of(latest_first: impl IntoIterator<Item = FeedbackType>) -> Self {
        let rejected = |status: &FeedbackType| *status == FeedbackType::Rejected;
        let consecutive_rejections = latest_first.into_iter().take_while(rejected).count();
        Self {
            consecutive_rejections,
            clarify: consecutive_rejections >= CLARIFY_FROM,
        }
    }

    /// What the planner is told, if anything.
    #[must_use]
    pub fn advice(self) -> Option<&'static str> {
        self.clarify.then_some(CAREFUL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FeedbackType::{Accepted, Neutral, Rejected};

    #[test]
    fn two_rejections_in_a_row_advise_to_clarify() {
        let of = |statuses: &[FeedbackType]| Sequence::of(statuses.iter().copied());
        for (statuses, rejections) in [
            (vec![], 0),
            (vec![Rejected], 1),
            (vec![Rejected, Rejected, Accepted], 2),
            (vec![Rejected, Neutral, Rejected], 1),
            (vec![Accepted, Rejected, Rejected], 0),
            (vec![Rejected, Rejected, Rejected], 3),
        ] {
            let sequence = of(&statuses);
            assert_eq!(sequence.consecutive_rejections, rejections, "{statuses:?}");
            assert_eq!(sequence.clarify, rejections >= 2);
            assert_eq!(sequence.advice().is_some(), rejections >= 2);
        }
    }
}
