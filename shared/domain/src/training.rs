//! The training export: what users made of answers, as rows that trainers read.
//!
//! Two kinds, each of one schema, with what the row comes from beside it: preference pairs (`prompt`, `chosen`,
//! `rejected`) and labelled answers (`prompt`, `completion`, `label`). These are the standard formats "preference"
//! and "unpaired preference" of TRL, which others read too. No member is ever `null` or missing, because readers
//! of JSON Lines take the schema from the first rows. A row names no user.
//!
//! Source: product specification, section 7 (`excludeFromTraining`); `Feedback`, "Signal vocabulary".
//!
//! | to change | look in |
//! |---|---|
//! | what is asked for, and which days | [`Asked`], [`Days`] |
//! | how what is said of an answer becomes one verdict | [`Feedback`] |
//! | which answers make a pair | [`corrected`] |

mod feedback;
mod request;
#[cfg(test)]
mod tests;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize, Serializer};
use uuid::Uuid;

use crate::detection::{CorrectionType, FeedbackType};
use crate::digest::uuid;
use crate::evaluation::Exchange;
use crate::event::{EventCore, FreeText};
use crate::follow_up::{FollowUp, SESSION};
use crate::message_signal::StoredSignal;
use crate::reaction::{GATE, Origin};
use crate::turn::TurnCore;

pub use feedback::{Feedback, Heard, Verdict, last_day};
pub(crate) use request::date;
pub use request::{Asked, Days};

/// Ids of rows are derived in this namespace.
const NAMESPACE: Uuid = Uuid::from_u128(0x2c0e_7b1d_94f3_4a86_b6d7_3f58_e1a9_05c2);

/// A kind of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Preference pairs.
    Pairs,
    /// Labelled answers.
    Labels,
}

impl Kind {
    /// What files of this kind are called.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pairs => "pairs",
            Self::Labels => "labels",
        }
    }
}

/// Two answers to one question, one of which a user wanted rather than the other.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename = "pair")]
pub struct Pair {
    /// The row's name: the same in every run.
    pub id: String,
    /// What the user asked.
    pub prompt: String,
    /// The answer that they wanted.
    pub chosen: String,
    /// The answer that they got, and did not want.
    pub rejected: String,
    /// How it is known which one they wanted.
    pub source: Source,
    /// How they corrected the answer that they got.
    pub correction: Correction,
    /// What that rests on.
    #[serde(flatten)]
    pub rests_on: RestsOn,
}

/// One answer, and whether it was good.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename = "label")]
pub struct Label {
    /// The row's name: the same in every run.
    pub id: String,
    /// What the user asked.
    pub prompt: String,
    /// What was answered.
    pub completion: String,
    /// Whether that was good.
    pub label: bool,
    /// What that rests on.
    #[serde(flatten)]
    pub rests_on: RestsOn,
}

/// How it is known which of two answers a user wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// They wrote it themselves.
    Edit,
    /// They rejected the one, asked again, and accepted the other.
    RejectedThenAccepted,
}

/// How a user corrected an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Correction {
    /// They wrote another.
    Edit,
    /// They asked the same in other words; the prompt is the first ones.
    Rephrased,
    /// They said what was wrong; the prompt is what they asked and what they said then.
    ExplicitCorrection,
}

/// What a row rests on: who says so, how sure that is, and where it comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RestsOn {
    /// `user` if people said so on purpose; `machine` if any of it was inferred.
    pub origin: Origin,
    /// How sure it is, 0 to 1: 1 for what was said on purpose.
    pub confidence: f64,
    /// When the last of it was said.
    #[serde(serialize_with = "micros")]
    pub ts: DateTime<Utc>,
    /// Where it comes from.
    pub provenance: Provenance,
}

/// Where a row comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Provenance {
    /// The tenant.
    pub tenant: String,
    /// The project.
    pub project: String,
    /// The conversation.
    pub conversation_id: String,
    /// The turn; of two answers the turn of the rejected one, then that of the chosen one.
    pub turn_ids: Vec<String>,
    /// The name of each turn's answer, empty if it has none.
    pub message_ids: Vec<String>,
    /// The events in the ledger.
    pub feedback_ids: Vec<Uuid>,
}

/// With six decimals always, so that every row has the same form.
fn micros<S: Serializer>(ts: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&ts.to_rfc3339_opts(SecondsFormat::Micros, true))
}

impl RestsOn {
    fn of(turns: &[&TurnCore], verdict: Verdict) -> Option<Self> {
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

    fn id(&self, kind: &str, of: &str) -> String {
        let from = &self.provenance;
        let turns = from.turn_ids.iter().map(String::as_str);
        let names = [kind, &from.tenant, &from.project, &from.conversation_id, of];
        format!(
            "tr_{}",
            uuid(NAMESPACE, names.into_iter().chain(turns)).simple()
        )
    }
}

impl Label {
    /// The label of a turn's answer; `None` if there is no text to learn from.
    #[must_use]
    pub fn of(turn: &TurnCore, said: &Exchange, verdict: Verdict) -> Option<Self> {
        let label = verdict.good;
        let rests_on = RestsOn::of(&[turn], verdict)?;
        let Exchange { prompt, answer } = said.clone();
        let empty = prompt.trim().is_empty() || answer.trim().is_empty();
        (!empty).then(|| Self {
            id: rests_on.id("label", ""),
            prompt,
            completion: answer,
            label,
            rests_on,
        })
    }
}

impl Pair {
    /// The pair of an answer and the text that a user put in its place; `None` if there is nothing
    /// to tell them apart.
    #[must_use]
    pub fn of_edit(turn: &TurnCore, said: &Exchange, edit: &StoredSignal) -> Option<Self> {
        let verdict = Verdict {
            good: false,
            origin: Origin::User,
            confidence: 1.0,
            ts: edit.core.ts,
            feedback_ids: vec![edit.core.act],
        };
        let rests_on = RestsOn::of(&[turn], verdict)?;
        let pair = Self {
            id: rests_on.id("edit", &edit.core.id()),
            prompt: said.prompt.clone(),
            chosen: edit.reason.clone()?,
            rejected: said.answer.clone(),
            source: Source::Edit,
            correction: Correction::Edit,
            rests_on,
        };
        pair.tells()
    }

    /// The pair of an answer, or a part of it, and what a user says by an event that it should have been; `None`
    /// if there is nothing to tell them apart.
    #[must_use]
    pub fn of_event(
        turn: &TurnCore,
        said: &Exchange,
        (event, text): (&EventCore, &FreeText),
    ) -> Option<Self> {
        let verdict = Verdict {
            good: false,
            origin: Origin::User,
            confidence: 1.0,
            ts: event.timestamp,
            feedback_ids: vec![event.feedback_id],
        };
        let rests_on = RestsOn::of(&[turn], verdict)?;
        let (rejected, chosen) = text.corrected(&said.answer)?;
        let pair = Self {
            id: rests_on.id("event", &event.feedback_id.to_string()),
            prompt: said.prompt.clone(),
            chosen,
            rejected,
            source: Source::Edit,
            correction: Correction::Edit,
            rests_on,
        };
        pair.tells()
    }

    /// The pair of an answer that was rejected and the one that was accepted after it.
    #[must_use]
    pub fn of_correction(
        (rejected, chosen): (&TurnCore, &TurnCore),
        (before, after): (&Exchange, &Exchange),
        corrected: Corrected,
    ) -> Option<Self> {
        let Corrected {
            correction,
            verdict,
        } = corrected;
        let rests_on = RestsOn::of(&[rejected, chosen], verdict)?;
        let prompt = match correction {
            // What was wrong is part of what they want: without it nobody could have known.
            Correction::ExplicitCorrection => format!("{}\n\n{}", before.prompt, after.prompt),
            Correction::Rephrased | Correction::Edit => before.prompt.clone(),
        };
        let pair = Self {
            id: rests_on.id("correction", ""),
            prompt,
            chosen: after.answer.clone(),
            rejected: before.answer.clone(),
            source: Source::RejectedThenAccepted,
            correction,
            rests_on,
        };
        pair.tells()
    }

    /// This, if it prefers one text to another.
    fn tells(self) -> Option<Self> {
        let texts = [&self.prompt, &self.chosen, &self.rejected];
        let empty = texts.iter().any(|text| text.trim().is_empty());
        (!empty && self.chosen.trim() != self.rejected.trim()).then_some(self)
    }
}

/// A turn, as far as it matters whether its answer was taken.
#[derive(Debug, Clone, Copy)]
pub struct Taken<'a> {
    /// The turn.
    pub turn: &'a TurnCore,
    /// What it says of the turn before it.
    pub follow_up: Option<&'a FollowUp>,
    /// What was said of its answer.
    pub feedback: &'a Feedback,
}

/// That a user rejected an answer, asked again, and accepted the next one.
#[derive(Debug, Clone, PartialEq)]
pub struct Corrected {
    /// How they corrected it.
    pub correction: Correction,
    /// What both together rest on.
    pub verdict: Verdict,
}

/// Whether the next turn is a user's correction of this one, which they rejected, and its answer
/// the one that they accepted. A pair is one user's own comparison of two answers to one question, so
/// only what the turns' own user said counts for it, but an answer that others hold to be bad is
/// nobody's better one.
#[must_use]
pub fn corrected(rejected: Taken<'_>, next: Taken<'_>) -> Option<Corrected> {
    let user = &rejected.turn.user_id;
    let apart = next.turn.ts - rejected.turn.ts;
    let follow_up = next.follow_up?;
    let detection = &follow_up.detection;
    let follows = next.turn.user_id == *user
        && next.turn.at.within == rejected.turn.at.within
        && follow_up.previous_turn_id == rejected.turn.at.turn
        && (chrono::TimeDelta::zero()..=SESSION).contains(&apart)
        && detection.feedback_type == FeedbackType::Rejected
        && detection.confidence >= GATE;
    let correction = match detection.correction_type? {
        CorrectionType::Explicit => Correction::ExplicitCorrection,
        CorrectionType::Rephrased => Correction::Rephrased,
        // Who gives up asks for something else.
        CorrectionType::Abandonment => return None,
    };
    let bad = rejected.feedback.of_user(user).filter(|own| !own.good)?;
    let good = next.feedback.of_user(user).filter(|own| own.good)?;
    let held = match next.feedback.heard() {
        Heard::Agreed(all) => all.good,
        Heard::Contested => false,
        Heard::Nothing => true,
    };
    (follows && held).then(|| {
        let mut verdict = bad.and(good);
        // Whatever thumbs say: that the second asks the same as the first is inferred.
        verdict.origin = Origin::Machine;
        verdict.confidence = verdict.confidence.min(detection.confidence);
        Corrected {
            correction,
            verdict,
        }
    })
}
