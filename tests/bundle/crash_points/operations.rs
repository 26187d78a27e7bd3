//! The operations that are enumerated, and their requests.

use chrono::{DateTime, TimeDelta, Utc};
use hearback_tests::events::acceptance;
use hearback_tests::function_set::TIME;
use hearback_tests::turns::{message, path};
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Submit,
    Batch,
    Ingest,
    Import,
    Register,
    RegisterNext,
    OpenTurn,
    CompleteTurn,
    React,
    ReplaceReaction,
    ReplaceOlderReaction,
    ClearReaction,
    Infer,
    ReactAsMachine,
    Correct,
    SubmitSignal,
    ReviseSignal,
    SubmitContrarySignal,
    WithdrawSignal,
    WithdrawEvent,
    ChangePreferences,
    ProcessEvents,
    ProcessReactions,
    ProcessSignals,
    ProcessWithdrawal,
    ProcessEventWithdrawal,
    ProcessEarlierEvent,
    CountHours,
    RequestErasure,
    Erase,
    ExportDay,
    ExportTraining,
}

/// The time of the operation.
pub fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(TIME, 0).unwrap()
}

/// The time of earlier feedback: two feedback acts at one time would count as one.
pub fn before() -> DateTime<Utc> {
    now() - TimeDelta::minutes(1)
}

/// An event with a fixed id.
pub fn event(number: u8, artifact: &str) -> Value {
    let mut event = acceptance("ada");
    event["feedbackId"] = json!(format!("00000000-0000-4000-8000-0000000000{number:02}"));
    event["artifactId"] = json!(artifact);
    event["timestamp"] = json!("2086-01-04T09:00:00Z");
    event
}

pub fn registered() -> (String, Value) {
    let mut turn = message("m", "a question", "an answer");
    turn["ts"] = json!("2086-01-04T09:00:00Z");
    turn["trace_id"] = json!("4f3a");
    turn["turn_log"] = json!({"text": "log", "entries": []});
    (path("c", "t"), turn)
}

/// A turn that rejects the one before.
pub fn next() -> (String, Value) {
    let mut next = message("n", "No, that's wrong.", "another answer");
    next["ts"] = json!("2086-01-04T09:05:00Z");
    (path("c", "u"), next)
}

/// Says that the turn was accepted after all.
pub fn correction() -> (String, Value) {
    let path = format!("{}/inference", path("c", "t"));
    (path, json!({"feedback_type": "accepted"}))
}

/// A turn that rejects the one before, and has no answer yet.
pub fn open() -> (String, Value) {
    let text = json!({"text": "No, that's wrong."});
    let turn = json!({"user": text, "ts": "2086-01-04T09:05:00Z"});
    (path("c", "u"), turn)
}

pub fn reaction(verdict: Option<&str>) -> (String, Value) {
    let body = json!({"reaction": verdict, "text": verdict.map(|_| "why"), "mirror": true});
    (format!("{}/feedback", path("c", "t")), body)
}

pub fn judgement() -> (String, Value) {
    let body = json!({"reaction": "not_ok", "origin": "machine", "confidence": 0.9, "text": "why"});
    (format!("{}/feedback", path("c", "t")), body)
}

pub fn edit(reason: &str) -> Value {
    json!({"message_id": "m", "signal": "edit", "reason": reason})
}

/// A signal that counts for its turn.
pub fn inaccurate(reason: &str) -> Value {
    json!({"message_id": "m", "signal": "inaccurate", "reason": reason})
}

/// A signal that withdraws the contrary one.
pub fn helpful() -> Value {
    json!({"message_id": "m", "signal": "helpful", "exclusive": true})
}

/// An event that counts for the turn, and may correct its answer.
pub fn about_the_turn(number: u8, artifact: &str) -> Value {
    let mut event = event(number, artifact);
    event["feedbackChannel"] = json!("correction");
    event["correctionData"] = json!({"correctedValue": "a better answer"});
    event["context"]["conversationId"] = json!("c");
    event["context"]["turnId"] = json!("t");
    event
}
