//! The request that refreshes a timeline.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use hearback_wire::{FieldError, Integer, List, from_json, request};
use serde_json::Value;

use super::{Block, Cache};
use crate::identity::identifier::{TurnId, UserId};

/// Maximum number of turns in a request.
pub const MAX_TURNS: usize = 1000;
/// Maximum number of blocks in a request. It allows several blocks for each turn.
pub const MAX_BLOCKS: usize = 20_000;

request! {
    /// A timeline of an agent.
    pub struct TimelineRequest, closed {
        /// The turns of the timeline: up to 1,000.
        "turn_ids" => turn_ids: required List<TurnId, 0, MAX_TURNS>,
        /// Feedback before this time is known. It is the value from the previous response; if left out, no feedback is
        /// known.
        "last_known_feedback_ts" => last_known_feedback_ts: nullable DateTime<Utc>,
        /// The prompt cache of the agent.
        "cache" => cache: required CacheRequest,
        /// The feedback blocks of the timeline, from previous responses. An agent that keeps blocks sends all of them,
        /// and receives the blocks that are out of date.
        "blocks" => blocks: optional List<KnownBlockRequest, 0, MAX_BLOCKS> = List(Vec::new()),
        /// The user in whose view the timeline is refreshed, with `feedback:on-behalf`; the caller if left out.
        "user_id" => user_id: nullable UserId,
    }
    example {
        "turn_ids": ["turn-1", "turn-2"],
        "last_known_feedback_ts": null,
        "cache": {"ttl_seconds": 300, "last_touch": "2025-11-06T10:00:00Z"}
    }

    /// How long the provider keeps the prompt in its cache.
    pub struct CacheRequest as "Cache", closed {
        /// Time to live, in seconds; 0 if there is no cache.
        "ttl_seconds" => ttl_seconds: required Integer<0, { i64::MAX }>,
        /// When the cache was last read or written.
        "last_touch" => last_touch: nullable DateTime<Utc>,
    }

    /// A block of the timeline. Other members are ignored.
    pub struct KnownBlockRequest as "KnownBlock", open {
        /// `ar:<turn_id>.feedback.<key>`.
        "path" => path: required String,
        /// Whether the block is hidden from the agent.
        "hidden" => hidden: nullable bool = false,
        /// The feedback in the block.
        "meta" => meta: nullable KnownBlockMeta,
    }

    /// The feedback in a block.
    pub struct KnownBlockMeta, open {
        /// The digest from the response. Blocks of older versions have none.
        "digest" => digest: nullable String,
    }
}

/// The timeline of an agent, parsed from a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    /// The turns.
    pub turn_ids: Vec<TurnId>,
    /// Feedback before this time is known.
    pub last_known_feedback_ts: Option<DateTime<Utc>>,
    /// The prompt cache of the agent.
    pub cache: Cache,
    /// The feedback blocks.
    pub blocks: Vec<KnownBlock>,
    /// The user in whose view the timeline is refreshed; the caller if `None`.
    pub user_id: Option<UserId>,
}

impl Timeline {
    /// Parses a request and reports all errors at once.
    pub fn parse(body: &Value) -> Result<Self, Vec<FieldError>> {
        from_json::<TimelineRequest>(body).map(Self::from)
    }

    /// The requested turns, and those of the blocks, whose feedback may have changed.
    #[must_use]
    pub fn turns(&self) -> BTreeSet<&TurnId> {
        let of_blocks = self.blocks.iter().filter_map(|block| block.turn.as_ref());
        self.turn_ids.iter().chain(of_blocks).collect()
    }
}

impl From<TimelineRequest> for Timeline {
    fn from(request: TimelineRequest) -> Self {
        let blocks = request.blocks.0.into_iter();
        Self {
            turn_ids: request.turn_ids.0,
            last_known_feedback_ts: request.last_known_feedback_ts,
            cache: Cache {
                ttl_seconds: request.cache.ttl_seconds.to(),
                last_touch: request.cache.last_touch,
            },
            blocks: blocks.map(KnownBlock::from).collect(),
            user_id: request.user_id,
        }
    }
}

/// A feedback block of a timeline. Blocks of older versions have no digest, and are always updated.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KnownBlock {
    /// `ar:<turn_id>.feedback.<key>`.
    pub path: String,
    /// The turn in the path; `None` in any other path.
    pub turn: Option<TurnId>,
    /// `hidden`.
    pub hidden: bool,
    /// `meta.digest`.
    pub digest: Option<String>,
}

fn turn_in(path: &str) -> Option<TurnId> {
    let (turn, _) = path.strip_prefix("ar:")?.rsplit_once(".feedback.")?;
    turn.try_into().ok()
}

impl From<&Block> for KnownBlock {
    fn from(block: &Block) -> Self {
        Self {
            turn: turn_in(&block.path),
            path: block.path.clone(),
            hidden: block.hidden,
            digest: Some(block.meta.digest.clone()),
        }
    }
}

impl From<KnownBlockRequest> for KnownBlock {
    fn from(block: KnownBlockRequest) -> Self {
        Self {
            turn: turn_in(&block.path),
            path: block.path,
            hidden: block.hidden,
            digest: block.meta.and_then(|meta| meta.digest),
        }
    }
}
