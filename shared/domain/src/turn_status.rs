//! The status of a turn: inferred from later messages, or given explicitly by its owner.
//!
//! Explicit feedback overrides inferred feedback. A user may give several kinds of explicit feedback: a reaction,
//! message signals, and events. The latest one that was not withdrawn counts.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::follow_up::{Correction, UserFeedback};
use crate::identifier::TurnId;
use crate::reaction::{FeedbackKind, Reaction};
use hearback_detection::FeedbackStatus;

/// The explicit feedback of a turn's owner: the latest of each kind, including withdrawals.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplicitFeedback(BTreeMap<FeedbackKind, TimedVerdict>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct TimedVerdict {
    /// `None` if the feedback was withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    verdict: Option<Reaction>,
    at: DateTime<Utc>,
}

impl ExplicitFeedback {
    /// The feedback with a new verdict of one kind; `None` if the stored verdict of that kind is newer or equal.
    #[must_use]
    pub fn with(
        &self,
        kind: FeedbackKind,
        (verdict, at): (Option<Reaction>, DateTime<Utc>),
    ) -> Option<Self> {
        let new = TimedVerdict { verdict, at };
        let stored = self.0.get(&kind);
        if stored.is_some_and(|stored| stored.at > at || *stored == new) {
            return None;
        }
        let mut updated = self.clone();
        updated.0.insert(kind, new);
        Some(updated)
    }

    /// The verdict that counts: the latest that was not withdrawn.
    #[must_use]
    pub fn verdict(&self) -> Option<Reaction> {
        let verdicts = (self.0.values()).filter_map(|timed| Some((timed.at, timed.verdict?)));
        verdicts
            .max_by_key(|(at, _)| *at)
            .map(|(_, verdict)| verdict)
    }
}

/// All feedback of the owner on a turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnStatus {
    /// The inferred feedback.
    pub inferred: Option<UserFeedback>,
    /// The explicit verdict, if it was not withdrawn.
    pub explicit: Option<Reaction>,
}

impl TurnStatus {
    /// The status. Explicit feedback overrides inferred feedback.
    #[must_use]
    pub fn status(&self) -> FeedbackStatus {
        match (self.explicit, &self.inferred) {
            (Some(Reaction::Ok), _) => FeedbackStatus::Accepted,
            (Some(Reaction::NotOk), _) => FeedbackStatus::Rejected,
            (Some(Reaction::Neutral), _) | (None, None) => FeedbackStatus::Neutral,
            (None, Some(inferred)) => inferred.status,
        }
    }

    /// The confidence of the status: 1 for explicit feedback, 0.5 for a turn without feedback.
    #[must_use]
    pub fn confidence(&self) -> f64 {
        match (self.explicit, &self.inferred) {
            (Some(_), _) => 1.0,
            (None, Some(inferred)) => inferred.confidence,
            (None, None) => UNKNOWN,
        }
    }

    /// The turn whose message rejects this one, unless explicit feedback overrides it.
    #[must_use]
    pub fn rejection_detected_in(&self) -> Option<&TurnId> {
        let inferred = self.inferred.as_ref()?;
        let counts = self.explicit.is_none() && inferred.status == FeedbackStatus::Rejected;
        inferred.detected_in_turn.as_ref().filter(|_| counts)
    }

    /// How a message rejects the turn, unless explicit feedback overrides it.
    #[must_use]
    pub fn correction_type(&self) -> Option<Correction> {
        let inferred = self.inferred.as_ref().filter(|_| self.explicit.is_none());
        inferred.and_then(|inferred| inferred.correction_type)
    }

    /// Whether the explicit verdict is positive or neutral.
    #[must_use]
    pub fn is_explicitly_not_rejected(&self) -> bool {
        match self.explicit {
            Some(Reaction::Ok | Reaction::Neutral) => true,
            Some(Reaction::NotOk) | None => false,
        }
    }
}

/// Confidence in the status of a turn without feedback.
const UNKNOWN: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_verdict_that_was_not_withdrawn_counts_in_any_order_of_arrival() {
        let at = |second| DateTime::from_timestamp(second, 0).unwrap();
        let acts = [
            (
                FeedbackKind::Reaction,
                (Some(Reaction::Ok), at(1)),
                Some(Reaction::Ok),
            ),
            (
                FeedbackKind::Inaccurate,
                (Some(Reaction::NotOk), at(2)),
                Some(Reaction::NotOk),
            ),
            (
                FeedbackKind::Event,
                (Some(Reaction::Neutral), at(3)),
                Some(Reaction::Neutral),
            ),
            (FeedbackKind::Event, (None, at(4)), Some(Reaction::NotOk)),
            (FeedbackKind::Inaccurate, (None, at(5)), Some(Reaction::Ok)),
            (FeedbackKind::Reaction, (None, at(6)), None),
        ];
        let mut feedback = ExplicitFeedback::default();
        for (kind, act, verdict) in acts {
            feedback = feedback.with(kind, act).unwrap();
            assert_eq!(feedback.verdict(), verdict, "{kind:?}");
        }
        let reversed = acts.iter().rev();
        let reversed = reversed.fold(ExplicitFeedback::default(), |feedback, (kind, act, _)| {
            feedback.with(*kind, *act).unwrap_or(feedback)
        });
        assert_eq!(reversed, feedback);
        assert_eq!(
            feedback.with(FeedbackKind::Reaction, (None, at(6))),
            None,
            "the withdrawal is stored already"
        );
    }
}
