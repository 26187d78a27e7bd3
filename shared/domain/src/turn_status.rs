//! The status of a turn: inferred from later messages, or given explicitly by its owner.
//!
//! Explicit feedback overrides inferred feedback. A user may give several kinds of explicit feedback: a reaction,
//! message signals, and events. The latest one that was not withdrawn counts.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::follow_up::{Correction, UserFeedback};
use crate::identifier::TurnId;
use crate::reaction::{FeedbackKind, Reaction};
use crate::recency::Recency;
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
    /// `at`, if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    received_at: Option<DateTime<Utc>>,
    /// Missing in rows of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<Uuid>,
}

impl TimedVerdict {
    fn new(verdict: Option<Reaction>, recency: Recency) -> Self {
        let (at, received_at) = (recency.at(), recency.received_at());
        Self {
            verdict,
            at,
            received_at: (received_at != at).then_some(received_at),
            id: Some(recency.id()),
        }
    }

    fn recency(&self) -> Recency {
        let received_at = self.received_at.unwrap_or(self.at);
        Recency::new(self.at, received_at, self.id.unwrap_or_default())
    }
}

impl ExplicitFeedback {
    /// The feedback with a new verdict of one kind; `None` if the stored verdict of that kind is newer or equal.
    #[must_use]
    pub fn with(
        &self,
        kind: FeedbackKind,
        (verdict, recency): (Option<Reaction>, Recency),
    ) -> Option<Self> {
        let stored = self.0.get(&kind).map(TimedVerdict::recency);
        if stored >= Some(recency) {
            return None;
        }
        let mut updated = self.clone();
        updated.0.insert(kind, TimedVerdict::new(verdict, recency));
        Some(updated)
    }

    /// The verdict that counts: the latest that was not withdrawn.
    #[must_use]
    pub fn verdict(&self) -> Option<Reaction> {
        let verdicts = (self.0.values()).filter(|timed| timed.verdict.is_some());
        verdicts.max_by_key(|timed| timed.recency())?.verdict
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
        let at = |second: u8| {
            let ts = DateTime::from_timestamp(second.into(), 0).unwrap();
            Recency::new(ts, ts, Uuid::from_u128(second.into()))
        };
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

    #[test]
    fn of_acts_with_the_same_time_the_one_received_last_counts_in_any_order_of_processing() {
        let at = |second| DateTime::from_timestamp(second, 0).unwrap();
        let act = |received, id| Recency::new(at(5), at(received), Uuid::from_u128(id));
        let acts = [
            (FeedbackKind::Inaccurate, Reaction::NotOk, act(7, 1)),
            (FeedbackKind::Event, Reaction::Neutral, act(6, 9)),
            (FeedbackKind::Event, Reaction::Ok, act(8, 2)),
            (FeedbackKind::Event, Reaction::NotOk, act(8, 1)),
        ];
        for rotation in 0..acts.len() {
            let mut feedback = ExplicitFeedback::default();
            for (kind, verdict, recency) in acts.iter().cycle().skip(rotation).take(acts.len()) {
                let updated = feedback.with(*kind, (Some(*verdict), *recency));
                feedback = updated.unwrap_or(feedback);
            }
            assert_eq!(feedback.verdict(), Some(Reaction::Ok), "{rotation}");
        }
    }

    #[test]
    fn rows_of_older_versions_are_read() {
        let stored = r#"{"reaction":{"verdict":"ok","at":"2026-01-04T09:00:00Z"}}"#;
        let feedback: ExplicitFeedback = serde_json::from_str(stored).unwrap();
        assert_eq!(feedback.verdict(), Some(Reaction::Ok));
        assert_eq!(serde_json::to_string(&feedback).unwrap(), stored);
    }
}
