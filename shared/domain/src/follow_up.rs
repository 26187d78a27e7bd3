//! What a turn says of the turn before it, and so how that one was taken.
//!
//! Source: `User Feedback System` (v1.1), "metadata.json", "`TurnIndexDB` Schema" and
//! "Session Timeout"; product specification, sections 2 and 5.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::detection::{CorrectionType, Detection, FeedbackType};
use crate::identifier::TurnId;
use crate::reaction::Reaction;
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
    /// What was detected about a turn; `before` is what that turn had said of the one before it.
    #[must_use]
    pub fn of(previous: TurnId, detection: Detection, before: Option<&Self>) -> Self {
        let before = before.map_or(0, |before| before.sequence.consecutive_rejections);
        let earlier = std::iter::repeat_n(FeedbackType::Rejected, before);
        Self {
            previous_turn_id: previous,
            sequence: Sequence::of(std::iter::once(detection.feedback_type).chain(earlier)),
            detection,
        }
    }
}

/// What a follow-up implied of a turn: `user_feedback` of its metadata.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UserFeedback {
    /// How the turn was taken.
    pub status: FeedbackType,
    /// When that was found.
    pub detected_at: DateTime<Utc>,
    /// In which turn.
    #[schema(value_type = String)]
    pub detected_in_turn: TurnId,
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
            detected_in_turn: detected_in,
            correction_type: detection.correction_type.map(Correction::from),
            confidence: detection.confidence,
            user_said: detection.user_said.clone(),
        }
    }
}

/// How a turn was taken, of all that is known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnStatus {
    /// What its follow-up implied.
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
        counts.then_some(&inferred.detected_in_turn)
    }
}

/// Confidence in the status of a turn of which nothing is known (`User Feedback System`,
/// "`TurnIndexDB` Schema").
const UNKNOWN: f64 = 0.5;
