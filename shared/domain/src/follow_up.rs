//! What a turn says of the turn before it, and so how that one was taken.
//!
//! Source: `User Feedback System` (v1.1), "metadata.json", "`TurnIndexDB` Schema" and
//! "Session Timeout"; product specification, sections 2 and 5.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::detection::{CorrectionType, Detection, FeedbackType};
use crate::digest::digest;
use crate::identifier::TurnId;
use crate::reaction::{Origin, Reaction, StoredReaction};
use crate::sequence::Sequence;

/// After this a message follows nothing: the session had ended (`User Feedback System`, "Session
/// Timeout").
pub const SESSION: TimeDelta = TimeDelta::minutes(30);
/// What a turn was found to say of the one before it. Kept with the turn that says it, so that a
/// repeat of its registration answers the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FollowUp {
    /// The turn before it.
    #[schema(value_type = String)]
    pub previous_turn_id: TurnId,
    /// What it says of that turn.
    #[serde(flatten)]
    pub detection: Detection,
    /// How many turns in a row were rejected, that one included, and what that advises.
    #[serde(flatten)]
    pub sequence: Sequence,
}

impl FollowUp {
    /// What was detected about a turn, before which so many in a row were rejected.
    #[must_use]
    pub fn of(previous: TurnId, detection: Detection, before: usize) -> Self {
        let earlier = std::iter::repeat_n(FeedbackType::Rejected, before);
        Self {
            previous_turn_id: previous,
            sequence: Sequence::of(std::iter::once(detection.feedback_type).chain(earlier)),
            detection,
        }
    }
}

/// What was inferred of a turn: `user_feedback` of its metadata.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UserFeedback {
    /// How the turn was taken.
    pub status: FeedbackType,
    /// When that was found.
    pub detected_at: DateTime<Utc>,
    /// In which turn; `null` for a message that is no turn, and for what the machine said.
    #[schema(value_type = Option<String>)]
    pub detected_in_turn: Option<TurnId>,
    /// How it was rejected; `null` if it was not.
    pub correction_type: Option<Correction>,
    /// How sure that is, 0 to 1.
    pub confidence: f64,
    /// What the user said, if they rejected.
    pub user_said: Option<String>,
}

/// How a turn was rejected, as its metadata names it (`User Feedback System`, "metadata.json").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Correction {
    /// The message says so.
    ExplicitCorrection,
    /// It asks the same again in other words.
    Rephrased,
    /// It gives up on what was tried.
    Abandonment,
}

impl From<CorrectionType> for Correction {
    fn from(correction: CorrectionType) -> Self {
        match correction {
            CorrectionType::Explicit => Self::ExplicitCorrection,
            CorrectionType::Rephrased => Self::Rephrased,
            CorrectionType::Abandonment => Self::Abandonment,
        }
    }
}

impl UserFeedback {
    /// What a follow-up says.
    #[must_use]
    pub fn of(follow_up: &FollowUp, detected_in: TurnId, at: DateTime<Utc>) -> Self {
        let detection = &follow_up.detection;
        Self {
            status: detection.feedback_type,
            detected_at: at,
            detected_in_turn: Some(detected_in),
            correction_type: detection.correction_type.map(Correction::from),
            confidence: detection.confidence,
            user_said: detection.user_said.clone(),
        }
    }

    /// What a reaction of the machine says of its turn, with how it counts beside others. `None` for a
    /// `neutral` one, for one in the name of somebody else than the turn's user, and for a user's own.
    #[must_use]
    pub fn of_machine(
        reaction: &StoredReaction,
        correction: Option<CorrectionType>,
        at: DateTime<Utc>,
    ) -> Option<(Self, Precedence)> {
        let core = &reaction.core;
        let status = match core.reaction {
            Some(Reaction::Ok) => FeedbackType::Accepted,
            Some(Reaction::NotOk) => FeedbackType::Rejected,
            Some(Reaction::Neutral) | None => return None,
        };
        if core.origin != Origin::Machine || !core.own {
            return None;
        }
        let said = Some(&reaction.text).filter(|text| !text.is_empty());
        let feedback = Self {
            status,
            detected_at: at,
            detected_in_turn: None,
            correction_type: correction.map(Correction::from),
            confidence: core.confidence,
            user_said: said.filter(|_| status == FeedbackType::Rejected).cloned(),
        };
        let precedence = Precedence::of_named(core.ts, &feedback);
        Some((feedback, precedence))
    }
}

/// Which of several inferences about one turn counts, in whatever order they arrive: the one with the
/// lowest number.
///
/// What names the turn (a message to `infer`, a reaction of the machine) counts before its follow-ups:
/// the latest by `ts`, of the same `ts` a rejection, and then the surest. Of follow-ups, the one
/// nearest after the turn counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Precedence(i128);

impl Precedence {
    /// Numbers of one microsecond.
    const SHARE: i128 = 10_000;
    /// What a rejection counts more than an acceptance of the same time: more than any confidence.
    const REJECTION: i128 = 5_000;

    /// Of a turn that follows, and was at `ts`.
    #[must_use]
    pub fn of_follow_up(ts: DateTime<Utc>, turn: &TurnId) -> Self {
        // No two follow-ups of one time are equal.
        let [a, b, ..] = digest([turn.as_str()]);
        Self(instant(ts) * Self::SHARE + i128::from(u16::from_be_bytes([a, b])) % Self::SHARE)
    }

    /// Of what names the turn, and was said at `ts`.
    #[must_use]
    pub fn of_named(ts: DateTime<Utc>, feedback: &UserFeedback) -> Self {
        let rejection = match feedback.status {
            FeedbackType::Rejected => Self::REJECTION,
            FeedbackType::Accepted | FeedbackType::Neutral => 0,
        };
        let thousandths = format!("{:.0}", feedback.confidence.clamp(0.0, 1.0) * 1000.0);
        let sure: i128 = thousandths.parse().unwrap_or_default();
        Self(-(instant(ts) * Self::SHARE + rejection + sure))
    }

    /// The number as it is stored.
    #[must_use]
    pub fn number(self) -> i128 {
        self.0
    }
}

/// Microseconds since 1970, never 0; all that is before counts as then.
fn instant(ts: DateTime<Utc>) -> i128 {
    i128::from(ts.timestamp_micros().max(1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn feedback(status: FeedbackType, confidence: f64) -> UserFeedback {
        UserFeedback {
            status,
            detected_at: DateTime::UNIX_EPOCH,
            detected_in_turn: None,
            correction_type: None,
            confidence,
            user_said: None,
        }
    }

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_767_519_000 + second, 0).unwrap()
    }

    #[test]
    fn what_names_the_turn_counts_before_what_follows_it() {
        use FeedbackType::{Accepted, Rejected};
        let follow_up =
            |second, turn: &str| Precedence::of_follow_up(at(second), &turn.try_into().unwrap());
        let named = |second, status, confidence| {
            Precedence::of_named(at(second), &feedback(status, confidence))
        };
        // The first counts.
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
        fn a_precedence_never_leaves_its_instant(
            (one, other) in (0..4_000_000_000_i64, 0..4_000_000_000_i64),
            confidence in 0.0..=1.0_f64,
        ) {
            let time = |second| DateTime::from_timestamp(second, 0).unwrap();
            let later = Precedence::of_named(time(one.max(other)), &feedback(FeedbackType::Accepted, 0.0));
            let earlier = feedback(FeedbackType::Rejected, confidence);
            let earlier = Precedence::of_named(time(one.min(other)), &earlier);
            prop_assert!(one == other || later < earlier);
        }
    }
}
