//! What an agent asks: its turns, what it knows of them, and the state of its cache.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{Block, Cache, instant};
use crate::identifier::{TurnId, UserId};
use crate::parse::{Errors, FieldError, Object, boolean, identifier, integer, string};

/// Most turns of one request.
pub const MAX_TURNS: usize = 1000;

/// A request to refresh a timeline (product specification, section 4).
#[derive(Debug, Clone, PartialEq, Eq, ToSchema)]
pub struct Request {
    /// The turns of the timeline: up to 1,000.
    #[schema(value_type = Vec<String>, max_items = 1000)]
    pub turn_ids: Vec<TurnId>,
    /// Feedback before this is known: the answer to the last request. Nothing is, without one.
    #[schema(required = false)]
    pub last_known_feedback_ts: Option<DateTime<Utc>>,
    /// Whether the timeline may change.
    pub cache: Cache,
    /// The feedback blocks that the timeline has, as they were answered. An agent that keeps
    /// blocks sends all of them, and gets whatever brings them up to date.
    #[schema(value_type = Vec<BlockShape>, required = false)]
    pub blocks: Vec<KnownBlock>,
    /// The user in whose view it is refreshed, with `feedback:on-behalf`; the caller without.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 256)]
    pub user_id: Option<UserId>,
}

/// A block as a request has it. Its other members are not looked at, and may be anything.
#[derive(Serialize, ToSchema)]
#[schema(as = KnownBlock)]
struct BlockShape {
    /// `ar:<turn_id>.feedback.<key>`.
    path: String,
    /// Whether the agent does not see it; `false` if left out.
    hidden: Option<bool>,
    /// What it was made of.
    meta: Option<BlockMetaShape>,
}

/// What a block was made of.
#[derive(Serialize, ToSchema)]
#[schema(as = KnownBlockMeta)]
struct BlockMetaShape {
    /// As it was answered; a block of a timeline from before the digest has none.
    digest: Option<String>,
}

/// A feedback block that a timeline has: all of it that the rules look at. Timelines from before
/// the digest have blocks without one, which are brought up to date.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KnownBlock {
    /// `ar:<turn_id>.feedback.<key>`.
    pub path: String,
    /// `hidden`.
    pub hidden: bool,
    /// `meta.digest`.
    pub digest: Option<String>,
}

impl From<&Block> for KnownBlock {
    fn from(block: &Block) -> Self {
        Self {
            path: block.path.clone(),
            hidden: block.hidden,
            digest: Some(block.meta.digest.clone()),
        }
    }
}

const MEMBERS: &[&str] = &[
    "turn_ids",
    "last_known_feedback_ts",
    "cache",
    "blocks",
    "user_id",
];
const CACHE_MEMBERS: &[&str] = &["ttl_seconds", "last_touch"];

impl Request {
    /// Reads a request, all errors at once. A member of a block that is not looked at may be
    /// anything; elsewhere an unknown member is an error.
    pub fn parse(body: &Value) -> Result<Self, Vec<FieldError>> {
        let mut errors = Errors::default();
        match read(body, &mut errors) {
            Some(request) if errors.is_empty() => Ok(request),
            _ => Err(errors.into_vec()),
        }
    }
}

fn read(body: &Value, errors: &mut Errors) -> Option<Request> {
    let request = Object::root(body, errors);
    request.known_only(MEMBERS, errors);
    let turn_ids = request
        .required("turn_ids", errors, turns)
        .map(|turns| read_turns(turns, errors));
    let last_known_feedback_ts = request.nullable("last_known_feedback_ts", errors, instant);
    let cache = request.required("cache", errors, Ok::<_, String>);
    let cache = cache.map(|cache| read_cache(cache, errors));
    let blocks = request.optional("blocks", errors, array);
    let blocks = blocks.map(|blocks| read_blocks(blocks, errors));
    let user_id = request.nullable("user_id", errors, identifier);
    Some(Request {
        turn_ids: turn_ids?,
        last_known_feedback_ts,
        cache: cache??,
        blocks: blocks.unwrap_or_default(),
        user_id,
    })
}

fn array(value: &Value) -> Result<&Vec<Value>, &'static str> {
    value.as_array().ok_or("must be an array")
}

fn turns(value: &Value) -> Result<&Vec<Value>, String> {
    let turns = array(value)?;
    if turns.len() > MAX_TURNS {
        return Err(format!("must have at most {MAX_TURNS} entries"));
    }
    Ok(turns)
}

fn read_turns(turns: &[Value], errors: &mut Errors) -> Vec<TurnId> {
    let mut read = Vec::with_capacity(turns.len());
    for (index, turn) in turns.iter().enumerate() {
        match identifier(turn) {
            Ok(turn) => read.push(turn),
            Err(detail) => errors.add(format!("/turn_ids/{index}"), detail),
        }
    }
    read
}

fn read_cache(cache: &Value, errors: &mut Errors) -> Option<Cache> {
    let cache = Object::at(cache, "/cache", errors);
    cache.known_only(CACHE_MEMBERS, errors);
    let ttl_seconds = cache.required("ttl_seconds", errors, |value| {
        let seconds = integer(value).ok().and_then(|n| u64::try_from(n).ok());
        seconds.ok_or("must be an integer, 0 or more")
    });
    let last_touch = cache.nullable("last_touch", errors, instant);
    Some(Cache {
        ttl_seconds: ttl_seconds?,
        last_touch,
    })
}

fn read_blocks(blocks: &[Value], errors: &mut Errors) -> Vec<KnownBlock> {
    let mut read = Vec::with_capacity(blocks.len());
    for (index, block) in blocks.iter().enumerate() {
        read.extend(read_block(block, &format!("/blocks/{index}"), errors));
    }
    read
}

fn read_block(block: &Value, at: &str, errors: &mut Errors) -> Option<KnownBlock> {
    let block = Object::at(block, at, errors);
    let path = block.required("path", errors, string);
    let hidden = block.nullable("hidden", errors, boolean);
    let meta = block.nullable("meta", errors, Ok::<_, String>);
    let meta_at = block.pointer("meta");
    let digest = meta.and_then(|meta| {
        let meta = Object::at(meta, &meta_at, errors);
        meta.nullable("digest", errors, string)
    });
    Some(KnownBlock {
        path: path?.to_owned(),
        hidden: hidden.unwrap_or(false),
        digest: digest.map(str::to_owned),
    })
}
