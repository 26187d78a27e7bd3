//! Inferred feedback: how a message rates the turn before it.
//!
//! See docs/reference/implicit-feedback.md.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::feedback::reaction::{MIN_CONFIDENCE, Origin, Reaction, StoredReaction};
use crate::feedback::sequence::Sequence;
use crate::identity::identifier::TurnId;
use crate::text::digest::digest;
use hearback_detection::{Detection, FeedbackStatus, RejectionKind};

/// A later message does not rate the previous turn, because the session has ended.
pub const SESSION_TIMEOUT: TimeDelta = TimeDelta::minutes(30);

/// What a turn's message says about the turn before it. Stored with the turn, so that a repeated registration returns
/// the same response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FollowUp {
    /// The previous turn.
    #[schema(value_type = String)]
    pub previous_turn_id: TurnId,
    /// The detection.
    #[serde(flatten)]
    pub detection: Detection,
    /// The number of consecutive rejected turns, including the previous turn, and whether to clarify.
    #[serde(flatten)]
    pub sequence: Sequence,
}

impl FollowUp {
    /// The detection about the turn `previous`, which follows `before` consecutive rejected turns.
    #[must_use]
    pub fn of(previous: TurnId, detection: Detection, before: usize) -> Self {
        let earlier = std::iter::repeat_n(FeedbackStatus::Rejected, before);
        Self {
            previous_turn_id: previous,
            sequence: Sequence::of(std::iter::once(detection.feedback_type).chain(earlier)),
            detection,
        }
    }
}

/// The inferred feedback on a turn: `user_feedback` in its metadata.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UserFeedback {
    /// The status of the turn.
    pub status: FeedbackStatus,
    /// When it was detected.
    pub detected_at: DateTime<Utc>,
    /// The turn whose message it was detected in; `null` for a message that is not a turn and for a machine reaction.
    #[schema(required = true, value_type = Option<String>)]
    pub detected_in_turn: Option<TurnId>,
    /// How the turn was rejected; `null` if it was not.
    #[schema(required = true)]
    pub correction_type: Option<FollowUpCorrection>,
    /// The confidence, 0 to 1.
    pub confidence: f64,
    /// The user's message, if it is a rejection.
    #[schema(required = true)]
    pub user_said: Option<String>,
    /// What was inferred first, if a person corrected it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub corrected: Option<Corrected>,
}

/// What the machine inferred before a person corrected it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Corrected {
    /// The status that it inferred.
    pub was: FeedbackStatus,
    /// Its confidence in it, 0 to 1.
    pub confidence: f64,
    /// How the message was taken to reject the turn; `null` if it was not.
    #[schema(required = true)]
    pub correction_type: Option<FollowUpCorrection>,
    /// The user's message, if it was taken for a rejection.
    #[schema(required = true)]
    pub user_said: Option<String>,
    /// When it was corrected last.
    pub at: DateTime<Utc>,
}

impl UserFeedback {
    /// The feedback after a person said at `at` that the user's message, `said`, means `status`. What was inferred
    /// first is kept.
    #[must_use]
    pub fn corrected_to(
        self,
        status: FeedbackStatus,
        said: Option<String>,
        at: DateTime<Utc>,
    ) -> Self {
        let rejected = status == FeedbackStatus::Rejected;
        let inferred = self.corrected.unwrap_or(Corrected {
            was: self.status,
            confidence: self.confidence,
            correction_type: self.correction_type,
            user_said: self.user_said.clone(),
            at,
        });
        let said = self
            .user_said
            .or_else(|| inferred.user_said.clone())
            .or(said);
        Self {
            status,
            detected_at: self.detected_at,
            detected_in_turn: self.detected_in_turn,
            correction_type: inferred.correction_type.filter(|_| rejected),
            confidence: 1.0,
            user_said: said.filter(|_| rejected),
            corrected: Some(Corrected { at, ..inferred }),
        }
    }

    /// Whether it is certain enough for a machine reaction, and so for an event.
    #[must_use]
    pub fn is_event(&self) -> bool {
        self.status != FeedbackStatus::Neutral && self.confidence >= MIN_CONFIDENCE
    }
}

/// How a message rejects a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Correction)]
pub enum FollowUpCorrection {
    /// The message says that the answer is wrong.
    ExplicitCorrection,
    /// The message asks the same question in other words.
    Rephrased,
    /// The message gives up on the approach.
    Abandonment,
}

impl From<RejectionKind> for FollowUpCorrection {
    fn from(correction: RejectionKind) -> Self {
        match correction {
            RejectionKind::Explicit => Self::ExplicitCorrection,
            RejectionKind::Rephrased => Self::Rephrased,
            RejectionKind::Abandonment => Self::Abandonment,
        }
    }
}

impl UserFeedback {
    /// The feedback in a follow-up.
    #[must_use]
    pub fn of(follow_up: &FollowUp, detected_in: TurnId, at: DateTime<Utc>) -> Self {
        let detection = &follow_up.detection;
        Self {
            status: detection.feedback_type,
            detected_at: at,
            detected_in_turn: Some(detected_in),
            correction_type: detection.correction_type.map(FollowUpCorrection::from),
            confidence: detection.confidence,
            user_said: detection.user_said.clone(),
            corrected: None,
        }
    }

    /// The feedback in a machine reaction, with its precedence. `None` for a `neutral` reaction, for one in the name of
    /// another user than the turn's, and for a user reaction.
    #[must_use]
    pub fn of_machine(
        reaction: &StoredReaction,
        correction: Option<RejectionKind>,
        at: DateTime<Utc>,
    ) -> Option<(Self, Precedence)> {
        let core = &reaction.core;
        let status = match core.reaction {
            Some(Reaction::Ok) => FeedbackStatus::Accepted,
            Some(Reaction::NotOk) => FeedbackStatus::Rejected,
            Some(Reaction::Neutral) | None => return None,
        };
        if core.origin != Origin::Machine || !core.own {
            return None;
        }
        let text = Some(&reaction.text).filter(|text| !text.is_empty());
        let feedback = Self {
            status,
            detected_at: at,
            detected_in_turn: None,
            correction_type: correction.map(FollowUpCorrection::from),
            confidence: core.confidence,
            user_said: text.filter(|_| status == FeedbackStatus::Rejected).cloned(),
            corrected: None,
        };
        let precedence = Precedence::of_named(core.recency().at(), &feedback);
        Some((feedback, precedence))
    }
}

/// The precedence of an inference about a turn. Of several inferences, the one with the lowest number counts, in
/// whatever order they arrive.
///
/// An inference that names the turn (a message to `infer`, a machine reaction) takes precedence over follow-ups: the
/// latest by its time, at most that of its receipt; at the same time a rejection, and then the higher confidence. Of
/// follow-ups, the first after the turn counts. A person's correction has the place of the inference that it corrects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Precedence(i128);

impl Precedence {
    /// The range of numbers for each microsecond.
    const PER_MICROSECOND: i128 = 10_000;
    /// The bonus of a rejection over an acceptance at the same time: more than any confidence.
    const REJECTION: i128 = 5_000;

    /// The precedence of a follow-up `turn` at `ts`.
    #[must_use]
    pub fn of_follow_up(ts: DateTime<Utc>, turn: &TurnId) -> Self {
        // A digest breaks ties between follow-ups at the same time.
        let [a, b, ..] = digest([turn.as_str()]);
        Self(
            instant(ts) * Self::PER_MICROSECOND
                + i128::from(u16::from_be_bytes([a, b])) % Self::PER_MICROSECOND,
        )
    }

    /// The precedence of an inference at `ts` that names the turn.
    #[must_use]
    pub fn of_named(ts: DateTime<Utc>, feedback: &UserFeedback) -> Self {
        let rejection = match feedback.status {
            FeedbackStatus::Rejected => Self::REJECTION,
            FeedbackStatus::Accepted | FeedbackStatus::Neutral => 0,
        };
        let thousandths = format!("{:.0}", feedback.confidence.clamp(0.0, 1.0) * 1000.0);
        let confidence: i128 = thousandths.parse().unwrap_or_default();
        Self(-(instant(ts) * Self::PER_MICROSECOND + rejection + confidence))
    }

    /// The number as it is stored.
    #[must_use]
    pub fn number(self) -> i128 {
        self.0
    }
}

/// Microseconds since 1970, at least 1.
fn instant(ts: DateTime<Utc>) -> i128 {
    i128::from(ts.timestamp_micros().max(1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn feedback(status: FeedbackStatus, confidence: f64) -> UserFeedback {
        UserFeedback {
            status,
            detected_at: DateTime::UNIX_EPOCH,
            detected_in_turn: None,
            correction_type: None,
            confidence,
            user_said: None,
            corrected: None,
        }
    }

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_767_519_000 + second, 0).unwrap()
    }

    #[test]
    fn an_inference_that_names_the_turn_takes_precedence_over_follow_ups() {
        use FeedbackStatus::{Accepted, Rejected};
        let follow_up =
            |second, turn: &str| Precedence::of_follow_up(at(second), &turn.try_into().unwrap());
        let named = |second, status, confidence| {
            Precedence::of_named(at(second), &feedback(status, confidence))
        };
        // The highest precedence first.
        let order = [
            named(90, Accepted, 0.7),
            named(80, Rejected, 0.9),
            named(80, Rejected, 0.8),
            named(80, Accepted, 1.0),
            named(-5, Rejected, 0.9),
            follow_up(60, "u"),
            follow_up(120, "t"),
        ];
        assert!(order.is_sorted(), "{order:?}");
        assert_ne!(follow_up(60, "u"), follow_up(60, "v"));
    }

    proptest! {
        #[test]
        fn a_later_inference_takes_precedence_whatever_its_confidence(
            (one, other) in (0..4_000_000_000_i64, 0..4_000_000_000_i64),
            confidence in 0.0..=1.0_f64,
        ) {
            let time = |second| DateTime::from_timestamp(second, 0).unwrap();
            let later = Precedence::of_named(time(one.max(other)), &feedback(FeedbackStatus::Accepted, 0.0));
            let earlier = feedback(FeedbackStatus::Rejected, confidence);
            let earlier = Precedence::of_named(time(one.min(other)), &earlier);
            prop_assert!(one == other || later < earlier);
        }
    }
}
