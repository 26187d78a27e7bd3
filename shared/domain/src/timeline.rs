//! The timeline of an agent: what feedback is new on its turns, said in its announce while its
//! cache is hot, and written into the turns once it is cold.
//!
//! Source: `Feedback Integration (React v2)`; product specification, section 4. Everything here
//! is a function of the request, the reactions and the time, and stores nothing.
//!
//! | cache | announce | blocks | watermark |
//! |---|---|---|---|
//! | hot | what is new | none | stays |
//! | cold | what is new, "incorporated" | one for each that is new | moves to the newest |
//!
//! A turn has up to four blocks (`slot.rs`): what its owner and what other people think of it, each
//! by users and by the machine. Of each the latest feedback is current; a block that says anything
//! else is out of date, however old the feedback is.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Timelike, Utc};
use serde::{Serialize, Serializer};
use serde_json::Value;
use utoipa::ToSchema;

use crate::identifier::{TurnId, UserId};
use crate::parse::{date_time, to_instant};
use crate::reaction::{Origin, Reaction};

mod request;
mod slot;
#[cfg(test)]
mod tests;

use slot::{Change, changes};

pub use request::{KnownBlock, MAX_TURNS, Request};

/// Whose feedback it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = FeedbackBy)]
pub enum By {
    /// The turn's own user gave it, or the machine inferred it from what they wrote.
    Owner,
    /// Somebody else.
    Other,
}

/// One reaction to one turn, as it may appear in a timeline.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnReaction {
    /// The turn.
    pub turn_id: TurnId,
    /// When the turn was.
    pub turn_ts: DateTime<Utc>,
    /// Who reacted.
    pub origin: Origin,
    /// Whose feedback it is.
    pub by: By,
    /// Whose exactly, if that is known and the caller may see it.
    pub user_id: Option<UserId>,
    /// The verdict; `None` if it was cleared.
    pub reaction: Option<Reaction>,
    /// How sure it is, 0 to 1.
    pub confidence: f64,
    /// When it was, to the microsecond: what finer clocks add is neither printed nor compared.
    pub ts: DateTime<Utc>,
    /// What was written, maybe nothing.
    pub text: String,
}

/// How long what an agent has read is kept for it, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
pub struct Cache {
    /// Time to live, in seconds; 0 is none.
    pub ttl_seconds: u64,
    /// When the cache was last read or written.
    #[schema(required = false)]
    pub last_touch: Option<DateTime<Utc>>,
}

/// Whether a timeline may change without cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// It is still cached, and stays as it is.
    Hot,
    /// It is not.
    Cold,
}

impl Cache {
    /// Hot until the time to live has passed since the last touch. Without either it is cold
    /// (`Feedback Integration (React v2)`, "When Feedback Appears").
    #[must_use]
    pub fn state(&self, now: DateTime<Utc>) -> CacheState {
        let ttl = Duration::from_secs(self.ttl_seconds);
        let fresh = |touched: DateTime<Utc>| {
            // A touch in the future has no age at all.
            let age = (now - touched).to_std().unwrap_or_default();
            age < ttl
        };
        if self.last_touch.is_some_and(fresh) {
            CacheState::Hot
        } else {
            CacheState::Cold
        }
    }
}

/// What a block is. A timeline has blocks of other types too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub enum BlockType {
    /// Feedback on the turn that it stands in.
    #[serde(rename = "turn.feedback")]
    TurnFeedback,
}

/// Where in its turn a block stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// Behind all others.
    Last,
}

/// A block to insert into a turn, or to update there by its path (`Feedback Integration
/// (React v2)`, "Timeline Block Shape").
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Block {
    /// `turn.feedback`.
    #[serde(rename = "type")]
    pub block_type: BlockType,
    /// The turn that it belongs to.
    #[schema(value_type = String)]
    pub turn_id: TurnId,
    /// `ar:<turn_id>.feedback.<user|machine|other_user|other_machine>`.
    pub path: String,
    /// Where in the turn it belongs.
    pub position: Position,
    /// Whether the agent does not see it: the feedback was cleared or erased.
    pub hidden: bool,
    /// What the agent reads.
    pub text: String,
    /// What it was made of.
    pub meta: BlockMeta,
}

/// What a block was made of.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct BlockMeta {
    /// Who reacted.
    pub origin: Origin,
    /// Whose feedback it is.
    pub by: By,
    /// Whose exactly, where that is known and the caller may see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub user_id: Option<UserId>,
    /// The verdict; null if it was cleared or erased.
    #[schema(required = true)]
    pub reaction: Option<Reaction>,
    /// How sure it is, 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    pub confidence: f64,
    /// The turn that was reacted to.
    #[schema(value_type = String)]
    pub from_turn_id: TurnId,
    /// 16 hexadecimal digits that change with the origin, the reaction, its time and its text.
    pub digest: String,
}

/// What an agent does with the feedback on its turns.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Refresh {
    /// Whether the timeline had to stay as it is.
    pub cache: CacheState,
    /// What to tell the agent; null if nothing is new.
    #[schema(required = true)]
    pub announce: Option<String>,
    /// What to insert or update: nothing while the cache is hot.
    pub blocks: Vec<Block>,
    /// The watermark to send next time.
    #[serde(serialize_with = "serialize_stamp")]
    #[schema(required = true)]
    pub last_known_feedback_ts: Option<DateTime<Utc>>,
}

/// Refreshes a timeline (`Feedback Integration (React v2)`, "Feedback Refresh Flow").
///
/// `reactions` are all reactions to the requested turns, in any order; those to other turns are
/// left aside. The watermark moves only when the feedback is incorporated, so a hot timeline is
/// told the same until it was cold once.
#[must_use]
pub fn refresh(request: &Request, reactions: &[TurnReaction], now: DateTime<Utc>) -> Refresh {
    let cache = request.cache.state(now);
    let mut changes = changes(request, reactions);
    fit(&mut changes);
    let known = request.last_known_feedback_ts;
    // A reaction may be of a clock that is ahead: what others say until then must not be missed.
    let newest = changes.iter().filter_map(Change::ts).max();
    let newest = newest.map(|newest| to_instant(newest.min(now)));
    let (blocks, last_known_feedback_ts) = match cache {
        CacheState::Hot => (Vec::new(), known),
        CacheState::Cold => (
            changes.iter().map(Change::block).collect(),
            known.max(newest),
        ),
    };
    Refresh {
        cache,
        announce: announce(&changes, cache),
        blocks,
        last_known_feedback_ts,
    }
}

/// Bytes of changes that one answer has: Lambda carries 6 MB at most. The owner's come first, and
/// of each the oldest. The rest comes with the next refresh, because its blocks are still out of
/// date; an agent that keeps no blocks gets what is not older than the watermark.
const MAX_ANSWER: usize = 4_000_000;

/// Keeps as many as one answer holds.
fn fit(changes: &mut Vec<Change<'_>>) {
    let mut bytes = 0;
    let fit = changes.iter().take_while(|change| {
        bytes += change.size();
        bytes <= MAX_ANSWER
    });
    let fit = fit.count();
    changes.truncate(fit);
}

/// What the agent is told, if anything is new: the owner's feedback, and below it other people's.
fn announce(changes: &[Change<'_>], cache: CacheState) -> Option<String> {
    if changes.is_empty() {
        return None;
    }
    let (owners, others): (Vec<_>, Vec<_>) =
        (changes.iter()).partition(|change| change.by() == By::Owner);
    let mut lines = Vec::new();
    if !owners.is_empty() {
        let users = (owners.iter()).all(|change| change.origin() == Origin::User);
        let header = if users {
            "[NEW USER FEEDBACKS]"
        } else {
            "[NEW FEEDBACKS]"
        };
        lines.push(header.to_owned());
        lines.extend(owners.into_iter().map(Change::line));
    }
    if !others.is_empty() {
        lines.push("[NEW FEEDBACKS OF OTHER USERS]".to_owned());
        lines.extend(others.into_iter().map(Change::line));
    }
    match cache {
        CacheState::Hot => {}
        CacheState::Cold => lines.push("  (incorporated into turn timeline)".to_owned()),
    }
    Some(lines.join("\n"))
}

/// RFC 3339 in UTC, with microseconds unless they are zero.
fn stamp(time: DateTime<Utc>) -> String {
    let time = to_instant(time);
    let format = if time.nanosecond().is_multiple_of(1_000_000_000) {
        SecondsFormat::Secs
    } else {
        SecondsFormat::Micros
    };
    time.to_rfc3339_opts(format, true)
}

#[expect(clippy::ref_option, reason = "what serde calls")]
fn serialize_stamp<S: Serializer>(
    time: &Option<DateTime<Utc>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    time.map(stamp).serialize(serializer)
}

/// Reads a time as a timeline has it: to the microsecond.
pub(crate) fn instant(value: &Value) -> Result<DateTime<Utc>, &'static str> {
    date_time(value).map(to_instant)
}
