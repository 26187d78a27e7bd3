//! Mirroring: a reaction written into the turn's own log.
//!
//! Source: `Feedback System` (v2.2), "Turn Log mirroring": `feedbacks[]`, an entry in `entries[]`,
//! and an appended `text`; nothing else of the log changes. Each reaction is one line of the text,
//! which is removed as a whole and alone.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::identifier::UserId;
use crate::one_line::one_line;
use crate::period::Feedback;
use crate::reaction::{Origin, ReactionCore, StoredReaction};
use crate::turn::TurnLog;

/// Writes a reaction into a turn's log, and answers whether that changed it. A reaction that is
/// there already changes nothing, so this may be repeated; one that comes late, when its user's
/// next one is there, is noted and no longer listed.
///
/// A log that would outgrow [`TurnLog::MAX`] gets no more lines: it must stay readable. What the
/// reaction replaces leaves the list all the same.
pub fn write(log: &mut TurnLog, reaction: &StoredReaction) -> bool {
    let before = log.turn_log.clone();
    let written = append(&mut log.turn_log, reaction);
    if log.fits() {
        return written;
    }
    log.turn_log = before;
    unlist(&mut log.turn_log, &reaction.core)
}

/// Takes the user's reaction before this one off the list, and answers whether there was one.
fn unlist(log: &mut Map<String, Value>, core: &ReactionCore) -> bool {
    let Some(Value::Array(feedbacks)) = log.get_mut(FEEDBACKS) else {
        return false;
    };
    let (all, user) = (feedbacks.len(), json!(core.user_id));
    if core.origin == Origin::User {
        feedbacks.retain(|other| other["origin"] != "user" || other[USER] != user);
    }
    feedbacks.len() < all
}

fn append(log: &mut Map<String, Value>, reaction: &StoredReaction) -> bool {
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
        unlist(log, core);
        let feedbacks = list(log, FEEDBACKS);
        if core.reaction.is_some() {
            let mut feedback = json!(Feedback::of(reaction));
            if let Value::Object(members) = &mut feedback {
                members.insert(USER.to_owned(), user);
            }
            feedbacks.push(feedback);
        }
    }
    append_line(log, &line);
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
            append_line(log, line);
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
    let goes = |entry: &Value| entry.get(ID).is_some() && (hidden(entry) || expired(entry));
    let entries = match log.get_mut(ENTRIES) {
        Some(Value::Array(entries)) => std::mem::take(entries),
        Some(_) | None => Vec::new(),
    };
    if let Some(Value::String(text)) = log.get_mut(TEXT)
        && entries.iter().any(goes)
    {
        let written = entries.iter().filter(|entry| entry.get(ID).is_some());
        let lines = written.filter_map(|entry| Some((entry[LINE].as_str()?, goes(entry))));
        *text = without(text, &lines.collect::<Vec<_>>());
    }
    let (gone, left): (Vec<_>, Vec<_>) = entries.into_iter().partition(goes);
    if let Some(Value::Array(entries)) = log.get_mut(ENTRIES) {
        *entries = left;
    }
    if let Some(Value::Array(feedbacks)) = log.get_mut(FEEDBACKS) {
        let is_of = |feedback: &Value, entry: &Value| {
            let same = |member| entry[FEEDBACK].get(member) == feedback.get(member);
            entry[USER] == feedback[USER] && ["ts", "origin", "rn"].into_iter().all(same)
        };
        feedbacks.retain(|feedback| {
            !hidden(feedback) && !gone.iter().any(|entry| is_of(feedback, entry))
        });
    }
}

/// A text without those of its mirrored lines that go. `mirrored` are all of them, in the order in
/// which they were appended: each is looked for before the one that follows it, so that of two equal
/// lines the right one goes, and a line that the caller's own log had before stays.
fn without(text: &str, mirrored: &[(&str, bool)]) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut stays = vec![true; lines.len()];
    let mut end = lines.len();
    for (line, goes) in mirrored.iter().rev() {
        // Lines of earlier versions may have line breaks.
        let parts: Vec<&str> = line.split('\n').collect();
        let before = lines.get(..end).unwrap_or_default();
        let Some(at) = before.windows(parts.len()).rposition(|some| some == parts) else {
            continue;
        };
        end = at;
        let spoken = stays.iter_mut().skip(at).take(parts.len());
        spoken.for_each(|stays| *stays = !goes);
    }
    let left = lines.iter().zip(stays).filter(|(_, stays)| *stays);
    left.map(|(line, _)| *line).collect::<Vec<_>>().join("\n")
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
    format!("[feedback {head}] {}", one_line(&reaction.text))
        .trim_end()
        .to_owned()
}

/// A text that is none is left as it is.
fn append_line(log: &mut Map<String, Value>, line: &str) {
    if let Value::String(text) = log.entry(TEXT).or_insert_with(|| json!("")) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line);
    }
}

#[cfg(test)]
mod tests;
