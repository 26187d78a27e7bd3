//! Mirroring: a reaction written into the turn's own log.
//!
//! Source: `Feedback System` (v2.2), "Turn Log mirroring": `feedbacks[]`, an entry in `entries[]`,
//! and an appended `text`; nothing else of the log changes.

use serde_json::{Map, Value, json};

use crate::period::Feedback;
use crate::reaction::{Origin, StoredReaction};

/// Writes a reaction into a log, and answers whether that changed it. A reaction that is there
/// already changes nothing, so this may be repeated.
pub fn write(log: &mut Map<String, Value>, reaction: &StoredReaction) -> bool {
    let mirrored = json!(Feedback::of(reaction));
    let id = json!(reaction.core.id);
    let entries = list(log, "entries");
    if entries.iter().any(|entry| entry["feedback_id"] == id) {
        return false;
    }
    entries.push(json!({
        "type": "feedback",
        "feedback_id": id,
        "ts": reaction.core.ts,
        "user_id": reaction.core.user_id,
        "feedback": mirrored,
    }));
    let feedbacks = list(log, "feedbacks");
    if reaction.core.origin == Origin::User {
        let user = json!(reaction.core.user_id);
        feedbacks.retain(|other| other["origin"] != "user" || other["user_id"] != user);
    }
    if reaction.core.reaction.is_some() {
        let mut feedback = mirrored;
        if let Value::Object(members) = &mut feedback {
            members.insert("user_id".to_owned(), json!(reaction.core.user_id));
        }
        feedbacks.push(feedback);
    }
    append_text(log, reaction);
    true
}

/// The list of this name; what stands there and is none is kept as its first item.
fn list<'a>(log: &'a mut Map<String, Value>, name: &str) -> &'a mut Vec<Value> {
    let slot = log.entry(name).or_insert_with(|| json!([]));
    if !slot.is_array() {
        *slot = json!([slot.take()]);
    }
    match slot {
        Value::Array(items) => items,
        #[expect(clippy::unreachable, reason = "made an array right above")]
        _ => unreachable!(),
    }
}

fn append_text(log: &mut Map<String, Value>, reaction: &StoredReaction) {
    let core = &reaction.core;
    let mut text = match log.get("text") {
        Some(Value::String(text)) if !text.is_empty() => format!("{text}\n"),
        _ => String::new(),
    };
    let verdict = core.reaction.map_or("cleared", |verdict| verdict.as_str());
    let (origin, ts) = (core.origin.as_str(), core.ts);
    let ts = ts.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true);
    text.push_str("[feedback ");
    text.push_str(&[origin, &ts, verdict].join(" "));
    text.push(']');
    if !reaction.text.is_empty() {
        text.push(' ');
        text.push_str(&reaction.text);
    }
    log.insert("text".to_owned(), Value::String(text));
}
