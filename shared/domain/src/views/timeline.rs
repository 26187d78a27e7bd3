//! Timelines: new feedback on an agent's turns. It is announced while the agent's prompt cache is hot, and inserted
//! into the turns when the cache is cold.
//!
//! See docs/reference/timelines.md. The result depends only on the request, the reactions and the time; nothing is
//! stored.
//!
//! | cache | announce | blocks | watermark |
//! |---|---|---|---|
//! | hot | new feedback | none | unchanged |
//! | cold | new feedback, "incorporated" | one for each new feedback | the time of the newest feedback |
//!
//! A turn has up to four blocks (`slot.rs`): the feedback of its owner and of other users, each by users and by the
//! machine. The feedback that counts as its [`Voice`](crate::feedback::voice::Voice) is current. A block with other feedback is out of date, even if its feedback is
//! newer.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Timelike, Utc};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::feedback::reaction::{Origin, Reaction};
use crate::identity::identifier::{TurnId, UserId};
use hearback_wire::parse::to_instant;

mod request;
mod slot;
#[cfg(test)]
mod tests;

use slot::{Change, changes};

pub use request::{KnownBlock, MAX_BLOCKS, MAX_TURNS, Timeline, TimelineRequest};

/// Whose feedback it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FeedbackBy {
    /// The owner of the turn, or the machine from the owner's message.
    Owner,
    /// Another user.
    Other,
}

/// A reaction to a turn in a timeline.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnReaction {
    /// The turn.
    pub turn_id: TurnId,
    /// The time of the turn.
    pub turn_ts: DateTime<Utc>,
    /// Who reacted.
    pub origin: Origin,
    /// Whose feedback it is.
    pub by: FeedbackBy,
    /// The user, if known and visible to the caller.
    pub user_id: Option<UserId>,
    /// The verdict; `None` if the reaction was withdrawn.
    pub reaction: Option<Reaction>,
    /// The confidence, 0 to 1.
    pub confidence: f64,
    /// Whether the machine inferred it from a turn that follows.
    pub follow_up: bool,
    /// The time of the reaction, to the microsecond.
    pub ts: DateTime<Utc>,
    /// When it was received.
    pub received_at: DateTime<Utc>,
    /// The id of the feedback act; nil for a reaction of an older system.
    pub id: Uuid,
    /// The user's text, possibly empty.
    pub text: String,
}

/// The prompt cache of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    /// Time to live, in seconds; 0 if there is no cache.
    pub ttl_seconds: u64,
    /// When the cache was last read or written.
    pub last_touch: Option<DateTime<Utc>>,
}

/// Whether the timeline is in the prompt cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// The timeline is cached and must not change.
    Hot,
    /// The timeline is not cached.
    Cold,
}

impl Cache {
    /// Hot until the time to live has passed since the last touch. Without either it is cold.
    #[must_use]
    pub fn state(&self, now: DateTime<Utc>) -> CacheState {
        let ttl = Duration::from_secs(self.ttl_seconds);
        let fresh = |touched: DateTime<Utc>| {
            // A touch in the future has the age 0.
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

/// The type of a block. Timelines also contain blocks of other types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub enum BlockType {
    /// Feedback on the turn that contains it.
    #[serde(rename = "turn.feedback")]
    TurnFeedback,
}

/// The position of a block in its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Position)]
pub enum BlockPosition {
    /// After all other blocks.
    Last,
}

/// A block to insert into a turn. It replaces a block with the same path.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Block {
    /// `turn.feedback`.
    #[serde(rename = "type")]
    pub block_type: BlockType,
    /// The turn of the block.
    #[schema(value_type = String)]
    pub turn_id: TurnId,
    /// `ar:<turn_id>.feedback.<user|machine|other_user|other_machine>`.
    pub path: String,
    /// The position in the turn.
    pub position: BlockPosition,
    /// Whether the block is hidden from the agent, because the feedback was withdrawn or erased.
    pub hidden: bool,
    /// The text for the agent.
    pub text: String,
    /// The feedback in the block.
    pub meta: BlockMeta,
}

/// The feedback in a block.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct BlockMeta {
    /// Who reacted.
    pub origin: Origin,
    /// Whose feedback it is.
    pub by: FeedbackBy,
    /// The user, if known and visible to the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub user_id: Option<UserId>,
    /// The verdict; null if the feedback was withdrawn or erased.
    #[schema(required = true)]
    pub reaction: Option<Reaction>,
    /// The confidence, 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    pub confidence: f64,
    /// The turn that the feedback is about.
    #[schema(value_type = String)]
    pub from_turn_id: TurnId,
    /// 16 hexadecimal digits that change with the origin, the reaction, its time and its text.
    pub digest: String,
}

/// The changes of a timeline.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Refresh {
    /// The state of the cache. A hot timeline does not change.
    pub cache: CacheState,
    /// The announcement for the agent; null if there is no new feedback.
    #[schema(required = true)]
    pub announce: Option<String>,
    /// The blocks to insert or update; empty while the cache is hot.
    pub blocks: Vec<Block>,
    /// The watermark for the next request.
    #[serde(serialize_with = "serialize_stamp")]
    #[schema(required = true)]
    pub last_known_feedback_ts: Option<DateTime<Utc>>,
}

/// Refreshes a timeline.
///
/// `reactions` are all reactions to the requested turns, in any order; reactions to other turns are ignored. The
/// watermark advances only when feedback is incorporated, so a hot timeline receives the same announcement until it is
/// cold.
#[must_use]
pub fn refresh(request: &Timeline, reactions: &[TurnReaction], now: DateTime<Utc>) -> Refresh {
    let cache = request.cache.state(now);
    let mut changes = changes(request, reactions);
    truncate(&mut changes);
    let known = request.last_known_feedback_ts;
    // A reaction may have a time in the future. Feedback until then must not be missed.
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

/// Maximum size of the changes in a response, in bytes, because of Lambda's limit of 6 MB. The owner's feedback comes
/// first, and then the oldest. The rest follows with the next refresh, because its blocks are still out of date; an
/// agent without blocks receives the feedback that is not older than the watermark.
pub const MAX_CHANGES_SIZE: usize = 4_000_000;

/// Truncates the changes to [`MAX_CHANGES_SIZE`].
fn truncate(changes: &mut Vec<Change<'_>>) {
    let mut bytes = 0;
    let fitting = changes.iter().take_while(|change| {
        bytes += change.size();
        bytes <= MAX_CHANGES_SIZE
    });
    let count = fitting.count();
    changes.truncate(count);
}

/// The announcement of new feedback: that of owners, and then that of other users.
fn announce(changes: &[Change<'_>], cache: CacheState) -> Option<String> {
    if changes.is_empty() {
        return None;
    }
    let (owners, others): (Vec<_>, Vec<_>) =
        (changes.iter()).partition(|change| change.by() == FeedbackBy::Owner);
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

#[expect(clippy::ref_option, reason = "serde calls it with a reference")]
fn serialize_stamp<S: Serializer>(
    time: &Option<DateTime<Utc>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    time.map(stamp).serialize(serializer)
}
