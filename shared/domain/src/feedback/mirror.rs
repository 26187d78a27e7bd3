//! Mirrors: copies of reactions in the log of their turn.
//!
//! A mirrored reaction adds an item to `feedbacks[]`, an entry to `entries[]`, and a line to `text`; the rest of the
//! log does not change.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::events::recency::Recency;
use crate::events::retention::LEDGER_DAYS;
use crate::feedback::reaction::{Origin, ReactionCore, StoredReaction};
use crate::feedback::reported::ReportedFeedback;
use crate::identity::identifier::UserId;
use crate::text::prompt::one_line;
use crate::turns::turn::TurnLog;

/// Writes a reaction into a turn's log, and returns whether the log changed. Writing a reaction again changes nothing.
/// A reaction that is older than the user's reaction in the log gets an entry, but is not listed in `feedbacks`.
///
/// A log that would exceed [`TurnLog::MAX`] is not extended, but the replaced reaction is still removed from
/// `feedbacks`.
pub fn write(log: &mut TurnLog, reaction: &StoredReaction) -> bool {
    let before = log.turn_log.clone();
    let written = append(&mut log.turn_log, reaction);
    if log.fits() {
        return written;
    }
    log.turn_log = before;
    unlist(&mut log.turn_log, &reaction.core)
}

/// The names of the machine's reactions that a tombstone of the machine withdraws.
fn withdrawn(log: &Map<String, Value>, core: &ReactionCore) -> Vec<Value> {
    let entries = log.get(ENTRIES).and_then(Value::as_array);
    let same = |entry: &&Value| core.reaction.is_none() && entry[ID] == json!(core.id);
    let names = |entry: &Value| entry[FEEDBACK].get("rn").cloned();
    (entries.into_iter().flatten())
        .filter(same)
        .filter_map(names)
        .collect()
}

/// Removes what a reaction replaces or withdraws from `feedbacks`, and returns whether there was anything.
fn unlist(log: &mut Map<String, Value>, core: &ReactionCore) -> bool {
    let withdrawn = withdrawn(log, core);
    let Some(Value::Array(feedbacks)) = log.get_mut(FEEDBACKS) else {
        return false;
    };
    let (length, user) = (feedbacks.len(), json!(core.user_id));
    match core.origin {
        Origin::User => {
            feedbacks.retain(|other| other["origin"] != "user" || other[USER] != user);
        }
        // Only what a person took back is removed.
        Origin::Machine => feedbacks.retain(|other| !withdrawn.contains(&other["rn"])),
    }
    feedbacks.len() < length
}

/// How long an entry is kept after its receipt.
fn kept() -> TimeDelta {
    TimeDelta::days(LEDGER_DAYS.into())
}

/// The position of an entry's reaction among the feedback of its user.
fn recency(entry: &Value) -> Option<Recency> {
    let time = |name: &str| DateTime::<Utc>::deserialize(&entry[name]).ok();
    let ts = time("ts")?;
    let received_at = time(EXPIRES).and_then(|expires| expires.checked_sub_signed(kept()));
    let id = Uuid::deserialize(&entry[ID]).unwrap_or_default();
    Some(Recency::new(ts, received_at.unwrap_or(ts), id))
}

fn append(log: &mut Map<String, Value>, reaction: &StoredReaction) -> bool {
    let core = &reaction.core;
    let (id, user) = (json!(core.id), json!(core.user_id));
    let line = line(reaction);
    // Expired entries are removed whenever the log is written.
    hide(log, core.received_at, |_| true);
    let entries = list(log, ENTRIES);
    // What a person took back has the same id, and no verdict.
    let verdict = json!(core.reaction);
    let is_known =
        |entry: &Value| entry[ID] == id && entry[FEEDBACK].get("reaction") == Some(&verdict);
    if entries.iter().any(is_known) {
        return false;
    }
    let newer = entries.iter().any(|entry| {
        let origin = entry[FEEDBACK].get("origin");
        let same_user = entry[USER] == user && origin.is_some_and(|origin| origin == "user");
        same_user && recency(entry).is_some_and(|recency| recency > core.recency())
    });
    entries.push(json!({
        "type": "feedback",
        ID: id,
        "ts": core.ts,
        USER: user,
        FEEDBACK: ReportedFeedback::of(reaction),
        LINE: line,
        EXPIRES: core.received_at + kept(),
    }));
    if core.origin == Origin::Machine || !newer {
        unlist(log, core);
        let feedbacks = list(log, FEEDBACKS);
        if core.reaction.is_some() {
            let mut feedback = json!(ReportedFeedback::of(reaction));
            if let Value::Object(members) = &mut feedback {
                members.insert(USER.to_owned(), user);
            }
            feedbacks.push(feedback);
        }
    }
    append_line(log, &line);
    true
}

/// Copies the mirrored feedback from one log to another.
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

/// Removes the mirrored feedback of users whom the reader may not see, and expired feedback.
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
    let is_removed = |entry: &Value| entry.get(ID).is_some() && (hidden(entry) || expired(entry));
    let entries = match log.get_mut(ENTRIES) {
        Some(Value::Array(entries)) => std::mem::take(entries),
        Some(_) | None => Vec::new(),
    };
    if let Some(Value::String(text)) = log.get_mut(TEXT)
        && entries.iter().any(is_removed)
    {
        let mirrored = entries.iter().filter(|entry| entry.get(ID).is_some());
        let lines = mirrored.filter_map(|entry| Some((entry[LINE].as_str()?, is_removed(entry))));
        *text = without_lines(text, &lines.collect::<Vec<_>>());
    }
    let (removed, kept): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_removed);
    if let Some(Value::Array(entries)) = log.get_mut(ENTRIES) {
        *entries = kept;
    }
    if let Some(Value::Array(feedbacks)) = log.get_mut(FEEDBACKS) {
        let is_of = |feedback: &Value, entry: &Value| {
            let same = |member| entry[FEEDBACK].get(member) == feedback.get(member);
            entry[USER] == feedback[USER] && ["ts", "origin", "rn"].into_iter().all(same)
        };
        feedbacks.retain(|feedback| {
            !hidden(feedback) && !removed.iter().any(|entry| is_of(feedback, entry))
        });
    }
}

/// Removes mirrored lines from a text. `mirrored` are all mirrored lines in the order in which they were appended, each
/// with whether to remove it. The lines are searched from the end, each before the next one, so that of two equal lines
/// the right one is removed, and equal lines of the application's own log are kept.
fn without_lines(text: &str, mirrored: &[(&str, bool)]) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut kept = vec![true; lines.len()];
    let mut end = lines.len();
    for (line, removed) in mirrored.iter().rev() {
        // Lines that earlier versions wrote may contain line breaks.
        let parts: Vec<&str> = line.split('\n').collect();
        let before = lines.get(..end).unwrap_or_default();
        let Some(at) = before
            .windows(parts.len())
            .rposition(|window| window == parts)
        else {
            continue;
        };
        end = at;
        let found = kept.iter_mut().skip(at).take(parts.len());
        found.for_each(|kept| *kept = !removed);
    }
    let remaining = lines.iter().zip(kept).filter(|(_, kept)| *kept);
    remaining
        .map(|(line, _)| *line)
        .collect::<Vec<_>>()
        .join("\n")
}

const EXPIRES: &str = "expires_at";
const ENTRIES: &str = "entries";
const FEEDBACKS: &str = "feedbacks";
const TEXT: &str = "text";
const ID: &str = "feedback_id";
const USER: &str = "user_id";
const FEEDBACK: &str = "feedback";
/// The line that was appended to the log's text.
const LINE: &str = "line";

/// The list with this name. A value that is not a list becomes its first item.
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

/// The line that is appended to the text.
fn line(reaction: &StoredReaction) -> String {
    let core = &reaction.core;
    let verdict = core.reaction.map_or("cleared", |verdict| verdict.as_str());
    let ts = core.ts.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true);
    let head = [core.origin.as_str(), &ts, verdict].join(" ");
    format!("[feedback {head}] {}", one_line(&reaction.text))
        .trim_end()
        .to_owned()
}

/// Appends to `text`. A `text` that is not a string is not changed.
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
