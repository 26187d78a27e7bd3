//! The evaluation read: what was said of messages, with the question and the answer that it is
//! about. It is over all users of a tenant, so no HTTP route leads to it. Its request may be for the training
//! export as well ([`training`]).
//!
//! Source: `Feedback`, "Why feedback (and not reactions)" and "Privacy contract"; product
//! specification, section 1.

use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::digest::digest;
use crate::identifier::{Label, TenantId};
use crate::message_signal::{MessageSignal, StoredSignal};
use crate::parse::{Errors, FieldError, Object, identifier, string};
use crate::training::{self, date};
use crate::turn::TurnLog;

/// What an evaluation asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The tenant.
    pub tenant: TenantId,
    /// Which of its rows.
    pub rows: Rows,
    /// Where the request before this one ended.
    pub resume: Option<String>,
}

/// Rows that are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rows {
    /// Those on one trace.
    Trace(Label),
    /// Those that were last written on this day, in UTC.
    Day(NaiveDate),
    /// What a model can learn from a project's feedback.
    Training(training::Asked),
}

impl Request {
    /// Tells one request from another, wherever it goes on.
    #[must_use]
    pub fn fingerprint(&self) -> [u8; 32] {
        let day = |day: &Option<NaiveDate>| day.map(|day| day.to_string()).unwrap_or_default();
        let (kind, rows, days) = match &self.rows {
            Rows::Trace(trace) => ("trace", trace.as_str(), Vec::new()),
            Rows::Day(date) => ("day", "", vec![date.to_string()]),
            Rows::Training(asked) => (
                "training",
                asked.project.as_str(),
                vec![day(&asked.from), day(&asked.to)],
            ),
        };
        let days = days.iter().map(String::as_str);
        digest([self.tenant.as_str(), kind, rows].into_iter().chain(days))
    }
}

const MEMBERS: &[&str] = &["tenant", "trace_id", "day", "training", "resume"];

impl Request {
    /// Reads a request, all errors at once.
    pub fn parse(body: &Value) -> Result<Self, Vec<FieldError>> {
        let mut errors = Errors::default();
        let request = Object::root(body, &mut errors);
        request.known_only(MEMBERS, &mut errors);
        let tenant = request.required("tenant", &mut errors, identifier);
        let trace = request.nullable("trace_id", &mut errors, identifier);
        let day = request.nullable("day", &mut errors, date);
        let asked = request.get("training").filter(|asked| !asked.is_null());
        let training =
            asked.and_then(|asked| training::Asked::read(asked, "/training", &mut errors));
        let resume = request.nullable("resume", &mut errors, |value| {
            string(value).map(ToOwned::to_owned)
        });
        let given = [trace.is_some(), day.is_some(), training.is_some()];
        if errors.is_empty() && given.into_iter().filter(|given| *given).count() != 1 {
            errors.add("", "must have one of trace_id, day and training");
        }
        let rows = (trace.map(Rows::Trace))
            .or(day.map(Rows::Day))
            .or(training.map(Rows::Training));
        match (tenant, rows) {
            (Some(tenant), Some(rows)) if errors.is_empty() => Ok(Self {
                tenant,
                rows,
                resume,
            }),
            _ => Err(errors.into_vec()),
        }
    }
}

/// What a turn was about: of a log that may be long, what a row needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// What the user had asked.
    pub(crate) prompt: String,
    /// What was answered.
    pub(crate) answer: String,
}

impl From<TurnLog> for Exchange {
    fn from(log: TurnLog) -> Self {
        Self {
            prompt: text_of(log.user),
            answer: log.assistant.map(text_of).unwrap_or_default(),
        }
    }
}

fn text_of(mut side: Value) -> String {
    match side.get_mut("text").map(Value::take) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}

/// What somebody said of an answer. It does not name who.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The row's name: the same for whatever its user says by this signal of this message.
    pub id: String,
    /// What the user had asked.
    pub prompt: String,
    /// What was answered.
    pub original_answer: String,
    /// What should have been answered: the text of an `edit`.
    pub preferred_answer: Option<String>,
    /// What was said of the answer.
    pub signal: MessageSignal,
    /// Why, of anything but an `edit`.
    pub reason: Option<String>,
    /// When.
    pub ts: DateTime<Utc>,
    /// The trace of the answer.
    pub trace_id: Option<Label>,
    /// The event in the ledger: the same row again has the same.
    pub feedback_id: Uuid,
    /// The message.
    pub message_id: String,
    /// The project in which it counts.
    pub workspace_id: String,
    /// The conversation of the message.
    pub conversation_id: String,
    /// The turn of the message.
    pub turn_id: String,
}

impl Row {
    /// The row of a signal on the answer of a turn. `None` if no model may learn from it.
    #[must_use]
    pub fn of(said: StoredSignal, turn: &Exchange) -> Option<Self> {
        let StoredSignal { core, reason } = said;
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
    fn a_request_is_for_a_trace_for_a_day_or_for_training() {
        let parse = |body: Value| Request::parse(&body);
        let request = parse(json!({"tenant": "acme", "day": "2025-11-06"})).unwrap();
        assert_eq!(
            request.rows,
            Rows::Day(NaiveDate::from_ymd_opt(2025, 11, 6).unwrap())
        );
        for broken in [
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
            assert!(parse(broken.clone()).is_err(), "{broken}");
        }
    }
}
