//! The training export: feedback on answers, as rows for training libraries.
//!
//! There are two kinds of rows, with their provenance: preference pairs (`prompt`, `chosen`, `rejected`) and labelled
//! answers (`prompt`, `completion`, `label`). These are the formats "preference" and "unpaired preference" of TRL,
//! which other libraries read, too. No member is ever `null` or missing, because readers of JSON Lines infer the schema
//! from the first rows. Rows contain no user ids.
//!
//! See docs/reference/rules.md, "Training labels" and "Training pairs".
//!
//! | to change | look in |
//! |---|---|
//! | the request and its period | [`TrainingRequest`], [`Days`] |
//! | how all feedback on an answer becomes one verdict | [`Feedback`] |
//! | which answers are a pair | [`corrected`] |

mod feedback;
mod request;
#[cfg(test)]
mod tests;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize, Serializer};
use uuid::Uuid;

use crate::events::event::{EventCore, FreeText};
use crate::feedback::follow_up::{FollowUp, SESSION_TIMEOUT};
use crate::feedback::message_signal::StoredSignal;
use crate::feedback::reaction::{MIN_CONFIDENCE, Origin};
use crate::text::digest::uuid;
use crate::turns::exchange::PromptAndAnswer;
use crate::turns::turn::TurnCore;
use hearback_detection::{FeedbackStatus, RejectionKind};

pub use feedback::{AnswerVerdict, Consensus, Feedback, last_day};
pub use request::{DEFAULT_DAYS, Days, TrainingRequest};

/// Ids of rows are derived in this namespace.
const NAMESPACE: Uuid = Uuid::from_u128(0x2c0e_7b1d_94f3_4a86_b6d7_3f58_e1a9_05c2);

/// The kind of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowKind {
    /// Preference pairs.
    Pairs,
    /// Labelled answers.
    Labels,
}

impl RowKind {
    /// The name of files of this kind.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pairs => "pairs",
            Self::Labels => "labels",
        }
    }
}

/// Two answers to a question, of which a user preferred one.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename = "pair")]
pub struct Pair {
    /// The id of the row: the same in every run.
    pub id: String,
    /// The user's question.
    pub prompt: String,
    /// The preferred answer.
    pub chosen: String,
    /// The rejected answer.
    pub rejected: String,
    /// How the preference is known.
    pub source: PairSource,
    /// How the user corrected the rejected answer.
    pub correction: PairCorrection,
    /// The feedback that the row is based on.
    #[serde(flatten)]
    pub evidence: TrainingEvidence,
}

/// An answer, and whether it was good.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename = "label")]
pub struct TrainingLabel {
    /// The id of the row: the same in every run.
    pub id: String,
    /// The user's question.
    pub prompt: String,
    /// The answer.
    pub completion: String,
    /// Whether the answer was good.
    pub label: bool,
    /// The feedback that the row is based on.
    #[serde(flatten)]
    pub evidence: TrainingEvidence,
}

/// How the preference of a pair is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PairSource {
    /// The user wrote the preferred answer.
    Edit,
    /// The user rejected an answer, asked again, and accepted the next answer.
    RejectedThenAccepted,
}

/// How a user corrected an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PairCorrection {
    /// The user wrote another answer.
    Edit,
    /// The user asked the same question in other words. The prompt is the first question.
    Rephrased,
    /// The user said what was wrong. The prompt is the question and that message.
    ExplicitCorrection,
}

/// The feedback that a row is based on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrainingEvidence {
    /// `user` if all feedback is explicit; `machine` if any of it was inferred.
    pub origin: Origin,
    /// The confidence, 0 to 1; 1 for explicit feedback.
    pub confidence: f64,
    /// The time of the latest feedback.
    #[serde(serialize_with = "micros")]
    pub ts: DateTime<Utc>,
    /// The source of the row.
    pub provenance: Provenance,
}

/// The source of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Provenance {
    /// The tenant.
    pub tenant: String,
    /// The project.
    pub project: String,
    /// The conversation.
    pub conversation_id: String,
    /// The turn; for a correction the turn of the rejected answer, then that of the chosen one.
    pub turn_ids: Vec<String>,
    /// The message id of each turn's answer, empty if it has none.
    pub message_ids: Vec<String>,
    /// The events in the ledger.
    pub feedback_ids: Vec<Uuid>,
}

/// Always with six decimals, so that all rows have the same format.
fn micros<S: Serializer>(ts: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&ts.to_rfc3339_opts(SecondsFormat::Micros, true))
}

impl TrainingEvidence {
    fn of(turns: &[&TurnCore], verdict: AnswerVerdict) -> Option<Self> {
        let within = &turns.first()?.at.within;
        let message = |turn: &&TurnCore| {
            let message = turn.message_id.as_ref();
            message.map(ToString::to_string).unwrap_or_default()
        };
        Some(Self {
            origin: verdict.origin,
            confidence: verdict.confidence,
            ts: verdict.ts,
            provenance: Provenance {
                tenant: within.tenant.to_string(),
                project: within.project.to_string(),
                conversation_id: within.conversation.to_string(),
                turn_ids: turns.iter().map(|turn| turn.at.turn.to_string()).collect(),
                message_ids: turns.iter().map(message).collect(),
                feedback_ids: verdict.feedback_ids,
            },
        })
    }

    fn id(&self, kind: &str, source_id: &str) -> String {
        let provenance = &self.provenance;
        let turns = provenance.turn_ids.iter().map(String::as_str);
        let names = [
            kind,
            &provenance.tenant,
            &provenance.project,
            &provenance.conversation_id,
            source_id,
        ];
        format!(
            "tr_{}",
            uuid(NAMESPACE, names.into_iter().chain(turns)).simple()
        )
    }
}

impl TrainingLabel {
    /// The label of a turn's answer; `None` if the prompt or the answer is empty.
    #[must_use]
    pub fn of(turn: &TurnCore, exchange: &PromptAndAnswer, verdict: AnswerVerdict) -> Option<Self> {
        let label = verdict.good;
        let evidence = TrainingEvidence::of(&[turn], verdict)?;
        let PromptAndAnswer { prompt, answer } = exchange.clone();
        let empty = prompt.trim().is_empty() || answer.trim().is_empty();
        (!empty).then(|| Self {
            id: evidence.id("label", ""),
            prompt,
            completion: answer,
            label,
            evidence,
        })
    }
}

impl Pair {
    /// The pair of an answer and the text of an `edit`; `None` if a text is empty or both are equal.
    #[must_use]
    pub fn of_edit(
        turn: &TurnCore,
        exchange: &PromptAndAnswer,
        edit: &StoredSignal,
    ) -> Option<Self> {
        let verdict = AnswerVerdict {
            good: false,
            origin: Origin::User,
            confidence: 1.0,
            ts: edit.core.ts,
            feedback_ids: vec![edit.core.act],
        };
        let evidence = TrainingEvidence::of(&[turn], verdict)?;
        let pair = Self {
            id: evidence.id("edit", &edit.core.id()),
            prompt: exchange.prompt.clone(),
            chosen: edit.reason.clone()?,
            rejected: exchange.answer.clone(),
            source: PairSource::Edit,
            correction: PairCorrection::Edit,
            evidence,
        };
        pair.if_distinct()
    }

    /// The pair of an answer and its correction in an event; `None` if a text is empty or both are equal.
    #[must_use]
    pub fn of_event(
        turn: &TurnCore,
        exchange: &PromptAndAnswer,
        event: &EventCore,
        text: &FreeText,
    ) -> Option<Self> {
        let verdict = AnswerVerdict {
            good: false,
            origin: Origin::User,
            confidence: 1.0,
            ts: event.timestamp,
            feedback_ids: vec![event.feedback_id],
        };
        let evidence = TrainingEvidence::of(&[turn], verdict)?;
        let (rejected, chosen) = text.corrected(&exchange.answer)?;
        let pair = Self {
            id: evidence.id("event", &event.feedback_id.to_string()),
            prompt: exchange.prompt.clone(),
            chosen,
            rejected,
            source: PairSource::Edit,
            correction: PairCorrection::Edit,
            evidence,
        };
        pair.if_distinct()
    }

    /// The pair of a rejected answer and the accepted answer of the next turn.
    #[must_use]
    pub fn of_correction(
        (rejected, chosen): (&TurnCore, &TurnCore),
        (before, after): (&PromptAndAnswer, &PromptAndAnswer),
        corrected: Corrected,
    ) -> Option<Self> {
        let Corrected {
            correction,
            verdict,
        } = corrected;
        let evidence = TrainingEvidence::of(&[rejected, chosen], verdict)?;
        let prompt = match correction {
            // The correction is part of the question: the accepted answer depends on it.
            PairCorrection::ExplicitCorrection => format!("{}\n\n{}", before.prompt, after.prompt),
            PairCorrection::Rephrased | PairCorrection::Edit => before.prompt.clone(),
        };
        let pair = Self {
            id: evidence.id("correction", ""),
            prompt,
            chosen: after.answer.clone(),
            rejected: before.answer.clone(),
            source: PairSource::RejectedThenAccepted,
            correction,
            evidence,
        };
        pair.if_distinct()
    }

    /// The pair, if its texts are not empty and the answers differ.
    fn if_distinct(self) -> Option<Self> {
        let texts = [&self.prompt, &self.chosen, &self.rejected];
        let empty = texts.iter().any(|text| text.trim().is_empty());
        (!empty && self.chosen.trim() != self.rejected.trim()).then_some(self)
    }
}

/// A turn with the feedback on its answer.
#[derive(Debug, Clone, Copy)]
pub struct RatedTurn<'a> {
    /// The turn.
    pub turn: &'a TurnCore,
    /// The detection about the previous turn.
    pub follow_up: Option<&'a FollowUp>,
    /// The feedback on the answer.
    pub feedback: &'a Feedback,
}

/// A correction: a user rejected an answer, asked again, and accepted the next answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Corrected {
    /// How the user corrected the answer.
    pub correction: PairCorrection,
    /// The combined verdict on both answers.
    pub verdict: AnswerVerdict,
}

/// The correction of a rejected turn by the next turn, if it is one. A pair is a user's own comparison of two answers
/// to a question, so only feedback of the turns' user counts. An answer that other users reject is never the chosen
/// one.
#[must_use]
pub fn corrected(rejected: RatedTurn<'_>, next: RatedTurn<'_>) -> Option<Corrected> {
    let user = &rejected.turn.user_id;
    let interval = next.turn.ts - rejected.turn.ts;
    let follow_up = next.follow_up?;
    let detection = &follow_up.detection;
    let follows = next.turn.user_id == *user
        && next.turn.at.within == rejected.turn.at.within
        && follow_up.previous_turn_id == rejected.turn.at.turn
        && (chrono::TimeDelta::zero()..=SESSION_TIMEOUT).contains(&interval)
        && detection.feedback_type == FeedbackStatus::Rejected
        && detection.confidence >= MIN_CONFIDENCE;
    let correction = match detection.correction_type? {
        RejectionKind::Explicit => PairCorrection::ExplicitCorrection,
        RejectionKind::Rephrased => PairCorrection::Rephrased,
        // The next message is about something else.
        RejectionKind::Abandonment => return None,
    };
    let bad = rejected.feedback.of_user(user).filter(|own| !own.good)?;
    let good = next.feedback.of_user(user).filter(|own| own.good)?;
    let undisputed = match next.feedback.consensus() {
        Consensus::Agreed(verdict) => verdict.good,
        Consensus::Contested => false,
        Consensus::NoVerdict => true,
    };
    (follows && undisputed).then(|| {
        let mut verdict = bad.and(good);
        // Even with explicit verdicts: it is inferred that both turns ask the same question.
        verdict.origin = Origin::Machine;
        verdict.confidence = verdict.confidence.min(detection.confidence);
        Corrected {
            correction,
            verdict,
        }
    })
}
