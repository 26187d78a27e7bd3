//! Mirroring: a reaction written into the turn's own log.
//!
//! Source: `Feedback System` (v2.2), "Turn Log mirroring": `feedbacks[]`, an entry in `entries[]`,
//! and an appended `text`; nothing else of the log changes.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::identifier::UserId;
use crate::period::Feedback;
use crate::reaction::{Origin, StoredReaction};

/// Writes a reaction into a log, and answers whether that changed it. A reaction that is there
/// already changes nothing, so this may be repeated; one that comes late, when its user's next one
/// is there, is noted and no longer listed.
pub fn write(log: &mut Map<String, Value>, reaction: &StoredReaction) -> bool {
    let core = &reaction.core;
    let (id, user) = (json!(core.id), json!(core.user_id));
    let line = line(reaction);
    // What is written anew is rid of what expired meanwhile.
    hide(log, core.received_at, |_| true);
    let entries = list(log, ENTRIES);
    if entries.iter().any(|entry| entry[ID] == id) {
        return false;
    }
    let newer = entries.iter().any(|entry| {
        let origin = entry[FEEDBACK].get("origin");
        let same = entry[USER] == user && origin.is_some_and(|origin| origin == "user");
        let ts = || DateTime::deserialize(&entry["ts"]).ok();
        same && ts().is_some_and(|ts: DateTime<Utc>| ts > core.ts)
    });
    entries.push(json!({
        "type": "feedback",
        ID: id,
        "ts": core.ts,
        USER: user,
        FEEDBACK: Feedback::of(reaction),
        LINE: line,
        EXPIRES: core.received_at + RETENTION,
    }));
    if core.origin == Origin::Machine || !newer {
        let feedbacks = list(log, FEEDBACKS);
        if core.origin == Origin::User {
            feedbacks.retain(|other| other["origin"] != "user" || other[USER] != user);
        }
        if core.reaction.is_some() {
            let mut feedback = json!(Feedback::of(reaction));
            if let Value::Object(members) = &mut feedback {
                members.insert(USER.to_owned(), user);
            }
            feedbacks.push(feedback);
        }
    }
    append(log, &line);
    true
}

/// Writes what was mirrored into a log into another one, behind what that has of its own.
pub(crate) fn carry_over(mirrored: &Map<String, Value>, log: &mut Map<String, Value>) {
    let items = |name| {
        mirrored
            .get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    for entry in items(ENTRIES).filter(|entry| entry.get(ID).is_some()) {
        list(log, ENTRIES).push(entry.clone());
        if let Some(line) = entry.get(LINE).and_then(Value::as_str) {
            append(log, line);
        }
    }
    for feedback in items(FEEDBACKS) {
        list(log, FEEDBACKS).push(feedback.clone());
    }
}

/// Takes out of a log the feedback of those whom a reader may not see, and what has expired.
pub fn hide(log: &mut Map<String, Value>, now: DateTime<Utc>, sees: impl Fn(&UserId) -> bool) {
    let hidden = |item: &Value| {
        let user = item
            .get(USER)
            .and_then(|user| UserId::deserialize(user).ok());
        user.is_some_and(|user| !sees(&user))
    };
    let expired = |entry: &Value| {
        let expires = entry.get(EXPIRES).map(DateTime::<Utc>::deserialize);
        matches!(expires, Some(Ok(expires)) if expires <= now)
    };
    let mut gone = Vec::new();
    if let Some(Value::Array(entries)) = log.get_mut(ENTRIES) {
        entries.retain(|entry| {
            let hide = entry.get(ID).is_some() && (hidden(entry) || expired(entry));
            if hide {
                gone.push(entry.clone());
            }
            !hide
        });
    }
    if let Some(Value::Array(feedbacks)) = log.get_mut(FEEDBACKS) {
        let is_of = |feedback: &Value, entry: &Value| {
            let ts = entry[FEEDBACK].get("ts");
            entry[USER] == feedback[USER] && ts == feedback.get("ts")
        };
        feedbacks.retain(|feedback| {
            !hidden(feedback) && !gone.iter().any(|entry| is_of(feedback, entry))
        });
    }
    if let Some(Value::String(text)) = log.get_mut(TEXT) {
        for line in gone.iter().filter_map(|entry| entry[LINE].as_str()) {
            *text = text.replace(&format!("\n{line}"), "").replace(line, "");
        }
    }
}

/// How long a mirrored reaction is kept, from when it was received: as long as its event in the ledger.
const RETENTION: TimeDelta = TimeDelta::days(90);
const EXPIRES: &str = "expires_at";
const ENTRIES: &str = "entries";
const FEEDBACKS: &str = "feedbacks";
const TEXT: &str = "text";
const ID: &str = "feedback_id";
const USER: &str = "user_id";
const FEEDBACK: &str = "feedback";
/// What was appended to the log's text.
const LINE: &str = "line";

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

/// What is appended to the text.
fn line(reaction: &StoredReaction) -> String {
    let core = &reaction.core;
    let verdict = core.reaction.map_or("cleared", |verdict| verdict.as_str());
    let ts = core.ts.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true);
    let head = [core.origin.as_str(), &ts, verdict].join(" ");
    format!("[feedback {head}] {}", reaction.text)
        .trim_end()
        .to_owned()
}

/// A text that is none is left as it is.
fn append(log: &mut Map<String, Value>, line: &str) {
    if let Value::String(text) = log.entry(TEXT).or_insert_with(|| json!("")) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log into which ada's verdict was mirrored, in the shape that the log has.
    fn mirrored(expires: &str) -> Map<String, Value> {
        let log = json!({
            "text": "Looked up the policy.\n[feedback user 2026-01-04T09:30:00Z ok] Fine",
            "feedbacks": [
                {"ts": "2026-01-04T09:30:00Z", "origin": "user", "user_id": "ada"},
                {"ts": "2026-01-04T09:31:00Z", "origin": "user", "user_id": "eve"},
            ],
            "entries": [
                {"type": "search"},
                {"type": "feedback", "feedback_id": "1", "ts": "2026-01-04T09:30:00Z", "user_id": "ada",
                 "feedback": {"ts": "2026-01-04T09:30:00Z"}, "expires_at": expires,
                 "line": "[feedback user 2026-01-04T09:30:00Z ok] Fine"},
            ],
        });
        log.as_object().cloned().unwrap()
    }

    #[test]
    fn what_was_mirrored_expires_and_the_callers_own_does_not() {
        let now = "2026-04-04T09:30:00Z".parse().unwrap();
        let mut log = mirrored("2026-04-04T09:30:00Z");
        hide(&mut log, now, |_| true);
        assert_eq!(log["text"], "Looked up the policy.");
        assert_eq!(log["entries"], json!([{"type": "search"}]));
        assert_eq!(log["feedbacks"][0]["user_id"], "eve");
        assert_eq!(log["feedbacks"].as_array().unwrap().len(), 1);

        let mut log = mirrored("2026-04-04T09:30:01Z");
        hide(&mut log, now, |_| true);
        assert_eq!(log, mirrored("2026-04-04T09:30:01Z"));
    }

    #[test]
    fn a_reader_sees_what_was_mirrored_of_those_it_may_see() {
        let mut log = mirrored("2030-01-01T00:00:00Z");
        let now = "2026-01-05T00:00:00Z".parse().unwrap();
        hide(&mut log, now, |user| user.as_str() == "eve");
        assert!(!Value::Object(log.clone()).to_string().contains("ada"));
        assert_eq!(log["feedbacks"].as_array().unwrap().len(), 1);
    }
}
