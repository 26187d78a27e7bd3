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

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Timelike, Utc};
use serde::{Serialize, Serializer};
use serde_json::Value;
use utoipa::ToSchema;

use crate::digest::digest;
use crate::identifier::TurnId;
use crate::parse::{date_time, to_instant};
use crate::reaction::{Origin, Reaction};

mod request;
#[cfg(test)]
mod tests;

pub use request::{KnownBlock, MAX_TURNS, Request};

/// One reaction to one turn, as it may appear in a timeline.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnReaction {
    /// The turn.
    pub turn_id: TurnId,
    /// When the turn was.
    pub turn_ts: DateTime<Utc>,
    /// Who reacted.
    pub origin: Origin,
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
    /// `ar:<turn_id>.feedback.<user|machine>`: the user's feedback and the machine's stand side by
    /// side.
    pub path: String,
    /// Where in the turn it belongs.
    pub position: Position,
    /// Whether the agent does not see it: the feedback was cleared.
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
    /// The verdict; null if it was cleared.
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
    let news = news(request, reactions);
    let known = request.last_known_feedback_ts;
    // A reaction may be of a clock that is ahead: what others say until then must not be missed.
    let newest = news
        .last()
        .map(|newest| to_instant(newest.reaction.ts.min(now)));
    let (blocks, last_known_feedback_ts) = match cache {
        CacheState::Hot => (Vec::new(), known),
        CacheState::Cold => (news.iter().map(News::block).collect(), known.max(newest)),
    };
    Refresh {
        cache,
        announce: announce(&news, cache),
        blocks,
        last_known_feedback_ts,
    }
}

/// A reaction that the timeline may not have yet.
struct News<'a> {
    reaction: &'a TurnReaction,
    path: String,
    digest: String,
}

/// The latest reaction of each origin to each turn, less what is older than the watermark and what
/// the timeline has already: by time, then turn, then origin.
fn news<'a>(request: &Request, reactions: &'a [TurnReaction]) -> Vec<News<'a>> {
    let asked: HashSet<&TurnId> = request.turn_ids.iter().collect();
    let mut said: Vec<_> = reactions
        .iter()
        .filter(|reaction| asked.contains(&reaction.turn_id))
        .map(News::of)
        .collect();
    // What one user took back does not hide what another says. Two of the same time are told apart
    // by something, lest the order of the input decides.
    said.sort_unstable_by(|a, b| {
        let key = |news: &News<'_>| (news.reaction.reaction.is_some(), news.reaction.ts);
        (key(a), &a.digest).cmp(&(key(b), &b.digest))
    });
    // Of one turn and origin the last one stays.
    let latest: BTreeMap<_, _> = said
        .into_iter()
        .map(|news| ((&news.reaction.turn_id, news.reaction.origin), news))
        .collect();
    let known: HashSet<_> = request.blocks.iter().collect();
    let mut news: Vec<_> = latest
        .into_values()
        .filter(|news| Some(news.reaction.ts) >= request.last_known_feedback_ts)
        .filter(|news| !known.contains(&news.known_as()))
        .collect();
    news.sort_by_key(|news| news.reaction.ts);
    let mut bytes = 0;
    let fit = news.iter().take_while(|news| {
        bytes += news.size();
        bytes <= MAX_ANSWER
    });
    let fit = fit.count();
    news.truncate(fit);
    news
}

/// Bytes of news that one answer takes: Lambda carries 6 MB at most. The oldest come first, and the
/// watermark moves only as far as they go, so the rest comes with the next refresh.
const MAX_ANSWER: usize = 4_000_000;
/// Bytes of an item of news beside its text and the names of its turn, at most.
const ITEM: usize = 800;

impl<'a> News<'a> {
    /// Bytes in the answer, at most: the text is in the announce and in the block, the turn is named
    /// four times, and what JSON escapes is escaped once more by Lambda.
    fn size(&self) -> usize {
        let special = |c: &char| c.is_control() || matches!(c, '"' | '\\');
        let escaped = |text: &str| text.len() + 6 * text.chars().filter(special).count();
        2 * escaped(&self.reaction.text) + 4 * escaped(self.reaction.turn_id.as_str()) + ITEM
    }

    fn of(reaction: &'a TurnReaction) -> Self {
        let parts = [
            reaction.origin.as_str(),
            name(reaction.reaction),
            &stamp(reaction.ts),
            &reaction.text,
        ];
        Self {
            reaction,
            path: format!(
                "ar:{}.feedback.{}",
                reaction.turn_id,
                reaction.origin.as_str()
            ),
            digest: hex::encode(digest(parts)).chars().take(16).collect(),
        }
    }

    /// The block that a timeline would have if this were not new.
    fn known_as(&self) -> KnownBlock {
        KnownBlock {
            path: self.path.clone(),
            digest: Some(self.digest.clone()),
        }
    }

    fn block(&self) -> Block {
        let reaction = self.reaction;
        Block {
            block_type: BlockType::TurnFeedback,
            turn_id: reaction.turn_id.clone(),
            path: self.path.clone(),
            position: Position::Last,
            hidden: reaction.reaction.is_none(),
            text: self.text(),
            meta: BlockMeta {
                origin: reaction.origin,
                reaction: reaction.reaction,
                confidence: reaction.confidence,
                from_turn_id: reaction.turn_id.clone(),
                digest: self.digest.clone(),
            },
        }
    }

    /// `Feedback Integration (React v2)`, "Rendering format".
    fn text(&self) -> String {
        let reaction = self.reaction;
        let title = match reaction.origin {
            Origin::User => "[USER FEEDBACK]",
            Origin::Machine => "[MACHINE FEEDBACK]",
        };
        let mut text = format!(
            "{title}\n[ts: {}]\nreaction: {}",
            stamp(reaction.ts),
            name(reaction.reaction)
        );
        if !reaction.text.is_empty() {
            text.push('\n');
            text.push_str(&reaction.text);
        }
        text
    }

    /// `Feedback Integration (React v2)`, "Announce Format".
    fn line(&self) -> String {
        let reaction = self.reaction;
        format!(
            "  - turn {} | turn_ts={} | feedback_ts={} | reaction={} | text={}",
            reaction.turn_id,
            stamp(reaction.turn_ts),
            stamp(reaction.ts),
            name(reaction.reaction),
            one_line(&reaction.text)
        )
    }
}

/// What the agent is told, if anything is new.
fn announce(news: &[News<'_>], cache: CacheState) -> Option<String> {
    if news.is_empty() {
        return None;
    }
    let users = news.iter().all(|news| news.reaction.origin == Origin::User);
    let header = if users {
        "[NEW USER FEEDBACKS]"
    } else {
        "[NEW FEEDBACKS]"
    };
    let mut lines = vec![header.to_owned()];
    lines.extend(news.iter().map(News::line));
    match cache {
        CacheState::Hot => {}
        CacheState::Cold => lines.push("  (incorporated into turn timeline)".to_owned()),
    }
    Some(lines.join("\n"))
}

/// The verdict as the source prints it.
fn name(reaction: Option<Reaction>) -> &'static str {
    reaction.map_or("null", Reaction::as_str)
}

/// A text without line breaks: each, or several on end, becomes one space. Everything that a
/// reader may take for the end of a line is one, since what follows would pass for another entry.
fn one_line(text: &str) -> String {
    let is_break = |c| {
        ('\n'..='\r').contains(&c)
            || ('\u{1c}'..='\u{1e}').contains(&c)
            || ['\u{85}', '\u{2028}', '\u{2029}'].contains(&c)
    };
    let mut line = String::with_capacity(text.len());
    let mut broken = false;
    for character in text.chars() {
        match (is_break(character), broken) {
            (true, true) => {}
            (true, false) => line.push(' '),
            (false, _) => line.push(character),
        }
        broken = is_break(character);
    }
    line
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
