//! The evaluation read: message signals, each with its question and answer. It covers all users of a tenant, so it has
//! no HTTP route. The same invocation runs the training export ([`training`](crate::export::training)).
//!
//! See docs/reference/evaluation-read.md.

use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::export::training::TrainingRequest;
use crate::feedback::message_signal::{MessageSignal, StoredSignal};
use crate::identity::identifier::{Label, TenantId};
use crate::text::digest::digest;
use crate::turns::exchange::PromptAndAnswer;
use hearback_wire::{FieldError, from_json, request};

/// A request for an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluationRequest {
    /// The tenant.
    pub tenant: TenantId,
    /// The rows to return.
    pub rows: EvaluationRows,
    /// Where the previous request ended.
    pub resume: Option<String>,
}

/// The rows to return.
#[derive(Debug, Clone, PartialEq)]
pub enum EvaluationRows {
    /// The rows of one trace.
    Trace(Label),
    /// The rows that were last written on this day, in UTC.
    Day(NaiveDate),
    /// The training export of a project.
    Training(TrainingRequest),
}

impl EvaluationRequest {
    /// A digest that identifies the request, whatever its `resume`.
    #[must_use]
    pub fn fingerprint(&self) -> [u8; 32] {
        let day = |day: &Option<NaiveDate>| day.map(|day| day.to_string()).unwrap_or_default();
        let (kind, rows, days) = match &self.rows {
            EvaluationRows::Trace(trace) => ("trace", trace.as_str(), Vec::new()),
            EvaluationRows::Day(date) => ("day", "", vec![date.to_string()]),
            EvaluationRows::Training(training) => (
                "training",
                training.project.as_str(),
                vec![day(&training.from), day(&training.to)],
            ),
        };
        let days = days.iter().map(String::as_str);
        digest([self.tenant.as_str(), kind, rows].into_iter().chain(days))
    }
}

request! {
    /// The payload of an invocation: exactly one of `trace_id`, `day` and `training`.
    struct EvaluationBody, closed {
        /// The tenant.
        "tenant" => tenant: required TenantId,
        /// Rows of this trace.
        "trace_id" => trace_id: nullable Label,
        /// Rows that were last written on this day, in UTC.
        "day" => day: nullable NaiveDate,
        /// The training export of a project.
        "training" => training: nullable TrainingRequest,
        /// Where the previous request ended.
        "resume" => resume: nullable String,
    }
}

impl EvaluationRequest {
    /// Parses a request and reports all errors at once.
    pub fn parse(body: &Value) -> Result<Self, Vec<FieldError>> {
        let body: EvaluationBody = from_json(body)?;
        let rows = match (body.trace_id, body.day, body.training) {
            (Some(trace), None, None) => EvaluationRows::Trace(trace),
            (None, Some(day), None) => EvaluationRows::Day(day),
            (None, None, Some(training)) => EvaluationRows::Training(training),
            _ => {
                return Err(vec![FieldError {
                    pointer: String::new(),
                    detail: "must have one of trace_id, day and training".to_owned(),
                }]);
            }
        };
        Ok(Self {
            tenant: body.tenant,
            rows,
            resume: body.resume,
        })
    }
}

/// Feedback on an answer, without its user.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvaluationRow {
    /// The id: always the same for a user, a message and a signal.
    pub id: String,
    /// The user's question.
    pub prompt: String,
    /// The answer.
    pub original_answer: String,
    /// The text of an `edit`.
    pub preferred_answer: Option<String>,
    /// The signal.
    pub signal: MessageSignal,
    /// The reason, for any signal except `edit`.
    pub reason: Option<String>,
    /// The time of the feedback act.
    pub ts: DateTime<Utc>,
    /// The trace of the answer.
    pub trace_id: Option<Label>,
    /// The id of the event in the ledger.
    pub feedback_id: Uuid,
    /// The message.
    pub message_id: String,
    /// The project that the signal counts for.
    pub workspace_id: String,
    /// The conversation of the message.
    pub conversation_id: String,
    /// The turn of the message.
    pub turn_id: String,
}

impl EvaluationRow {
    /// The row of a message signal. `None` if the signal is retracted or excluded from training.
    #[must_use]
    pub fn of(signal: StoredSignal, turn: &PromptAndAnswer) -> Option<Self> {
        let StoredSignal { core, reason } = signal;
        if core.exclude_from_training || core.retracted {
            return None;
        }
        let (preferred_answer, reason) = match core.signal {
            MessageSignal::Edit => (reason, None),
            MessageSignal::Helpful
            | MessageSignal::NotHelpful
            | MessageSignal::Inaccurate
            | MessageSignal::Unsafe
            | MessageSignal::Regenerate => (None, reason),
        };
        Some(Self {
            id: core.id(),
            prompt: turn.prompt.clone(),
            original_answer: turn.answer.clone(),
            preferred_answer,
            signal: core.signal,
            reason,
            ts: core.ts,
            trace_id: core.trace_id,
            feedback_id: core.act,
            message_id: core.message_id.into(),
            workspace_id: core.workspace.into(),
            conversation_id: core.at.within.conversation.into(),
            turn_id: core.at.turn.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_has_exactly_one_of_trace_day_and_training() {
        let parse = |body: Value| EvaluationRequest::parse(&body);
        let request = parse(json!({"tenant": "acme", "day": "2025-11-06"})).unwrap();
        assert_eq!(
            request.rows,
            EvaluationRows::Day(NaiveDate::from_ymd_opt(2025, 11, 6).unwrap())
        );
        for invalid in [
            json!({"tenant": "acme"}),
            json!({"tenant": "acme", "day": "2025-11-06", "trace_id": "t"}),
            json!({"tenant": "acme", "day": "6 November"}),
            json!({"tenant": "acme", "day": "2025-11-06", "training": {"project": "p"}}),
            json!({"tenant": "acme", "training": {}}),
            json!({"tenant": "acme", "training": {"project": "p", "day": "2025-11-06"}}),
            json!({"tenant": "acme", "day": "2025-11-06", "user": "ada"}),
            json!({"day": "2025-11-06"}),
            json!([]),
        ] {
            assert!(parse(invalid.clone()).is_err(), "{invalid}");
        }
    }
}
