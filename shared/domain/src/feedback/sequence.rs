//! Consecutive rejections, after which the agent should ask a clarifying question.
//!
//! See docs/reference/rules.md, "Feedback on a turn".

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use hearback_detection::FeedbackStatus;

/// The number of consecutive rejections from which a clarifying question is advised.
pub const CLARIFY_FROM: usize = 2;

/// Maximum number of consecutive rejections that are counted, because each is a lookup.
pub const MAX_COUNTED: usize = 16;

/// The advice for a planner after consecutive rejections.
pub const CAREFUL: &str = "Multiple rejections - be more careful";

/// The consecutive rejections at the end of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Sequence {
    /// The number of consecutive rejected turns up to the latest.
    pub consecutive_rejections: usize,
    /// Whether the agent should ask a clarifying question.
    pub clarify: bool,
}

impl Sequence {
    /// Counts the rejections at the beginning of these statuses, which begin with the latest turn.
    pub fn of(latest_first: impl IntoIterator<Item = FeedbackStatus>) -> Self {
        let rejected = |status: &FeedbackStatus| *status == FeedbackStatus::Rejected;
        let consecutive_rejections = latest_first.into_iter().take_while(rejected).count();
        Self {
            consecutive_rejections,
            clarify: consecutive_rejections >= CLARIFY_FROM,
        }
    }

    /// The advice for the planner, if any.
    #[must_use]
    pub fn advice(self) -> Option<&'static str> {
        self.clarify.then_some(CAREFUL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FeedbackStatus::{Accepted, Neutral, Rejected};

    #[test]
    fn two_rejections_in_a_row_advise_to_clarify() {
        let of = |statuses: &[FeedbackStatus]| Sequence::of(statuses.iter().copied());
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
