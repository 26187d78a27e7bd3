//! The current content of each block of a timeline, and its text.
//!
//! | key | text begins with |
//! |---|---|
//! | `user` | `[USER FEEDBACK]` |
//! | `machine` | `[MACHINE FEEDBACK]` |
//! | `other_user` | `[FEEDBACK OF ANOTHER USER]` |
//! | `other_machine` | `[MACHINE FEEDBACK OF ANOTHER USER]` |
//!
//! Every user of a project may react to every turn. Feedback of other users therefore never replaces the owner's, and
//! is one line after `text:` that cannot be mistaken for a header.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, Utc};

use super::{
    Block, BlockMeta, BlockPosition, BlockType, FeedbackBy, KnownBlock, Timeline, TurnReaction,
    stamp,
};
use crate::events::recency::Recency;
use crate::feedback::reaction::{Origin, Reaction};
use crate::feedback::voice::{Inferred, Voice};
use crate::identity::identifier::{TurnId, UserId};
use crate::text::digest::digest;
use crate::text::prompt;

/// Maximum size of a change without its text, its turn id and its user id, in bytes.
const FIXED_SIZE: usize = 900;
/// The slots of a turn.
const KEYS: [(FeedbackBy, Origin); 4] = [
    (FeedbackBy::Owner, Origin::User),
    (FeedbackBy::Owner, Origin::Machine),
    (FeedbackBy::Other, Origin::User),
    (FeedbackBy::Other, Origin::Machine),
];

/// The place of a feedback block in a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Slot<'a> {
    turn: &'a TurnId,
    by: FeedbackBy,
    origin: Origin,
}

impl Slot<'_> {
    fn path(&self) -> String {
        let key = match (self.by, self.origin) {
            (FeedbackBy::Owner, Origin::User) => "user",
            (FeedbackBy::Owner, Origin::Machine) => "machine",
            (FeedbackBy::Other, Origin::User) => "other_user",
            (FeedbackBy::Other, Origin::Machine) => "other_machine",
        };
        format!("ar:{}.feedback.{key}", self.turn)
    }

    fn title(&self) -> &'static str {
        match (self.by, self.origin) {
            (FeedbackBy::Owner, Origin::User) => "[USER FEEDBACK]",
            (FeedbackBy::Owner, Origin::Machine) => "[MACHINE FEEDBACK]",
            (FeedbackBy::Other, Origin::User) => "[FEEDBACK OF ANOTHER USER]",
            (FeedbackBy::Other, Origin::Machine) => "[MACHINE FEEDBACK OF ANOTHER USER]",
        }
    }
}

/// The current feedback of a slot.
#[derive(Debug, Clone, Copy)]
enum State<'a> {
    /// A reaction.
    Current(&'a TurnReaction),
    /// No feedback: it was withdrawn by this tombstone, erased, or never given.
    Empty(Option<&'a TurnReaction>),
}

/// The state of a slot, compared with the block in the timeline.
#[derive(Debug, Clone)]
pub(super) struct Change<'a> {
    slot: Slot<'a>,
    state: State<'a>,
    path: String,
    digest: String,
}

/// Feedback that is not in the timeline yet: the owner's first, then by time, turn and origin.
///
/// Each block of the request is compared with the current feedback. Without a block, current feedback on a requested
/// turn is new; if the request has no blocks at all, only if it is not older than the watermark.
pub(super) fn changes<'a>(request: &'a Timeline, reactions: &'a [TurnReaction]) -> Vec<Change<'a>> {
    let (turns, requested) = (request.turns(), request.turn_ids.iter().collect());
    let current = current(&turns, reactions);
    // Of several blocks with the same path, the last one counts.
    let known: HashMap<&str, &KnownBlock> = (request.blocks.iter())
        .map(|block| (block.path.as_str(), block))
        .collect();
    let slots = turns
        .iter()
        .flat_map(|turn| KEYS.map(|(by, origin)| Slot { turn, by, origin }));
    let changes = slots.map(|slot| {
        let state = current.get(&slot).copied();
        Change::of(slot, state.unwrap_or(State::Empty(None)))
    });
    let mut changes: Vec<_> = changes
        .filter(|change| {
            let known = known.get(change.path.as_str()).copied();
            change.is_new(request, &requested, known)
        })
        .collect();
    changes.sort_by_key(|change| (change.slot.by, change.ts(), change.slot));
    changes
}

/// The state of each slot that has a reaction.
fn current<'a>(
    turns: &BTreeSet<&TurnId>,
    reactions: &'a [TurnReaction],
) -> BTreeMap<Slot<'a>, State<'a>> {
    let mut changes: Vec<_> = (reactions.iter())
        .filter(|reaction| turns.contains(&reaction.turn_id))
        .map(Change::from)
        .collect();
    // A withdrawn reaction does not hide the reaction of another user. Reactions of an older system have no
    // id: they are sorted by everything that can be seen of them, so that the order of the input does not matter.
    changes.sort_by(|a, b| {
        a.precedence()
            .cmp(&b.precedence())
            .then_with(|| a.ts().cmp(&b.ts()))
            .then_with(|| a.confidence().total_cmp(&b.confidence()))
    });
    // The last change of a slot is current.
    let changes = changes.into_iter();
    changes.map(|change| (change.slot, change.state)).collect()
}

impl<'a> From<&'a TurnReaction> for Change<'a> {
    fn from(reaction: &'a TurnReaction) -> Self {
        let slot = Slot {
            turn: &reaction.turn_id,
            by: reaction.by,
            origin: reaction.origin,
        };
        let state = match reaction.reaction {
            Some(_) => State::Current(reaction),
            None => State::Empty(Some(reaction)),
        };
        Self::of(slot, state)
    }
}

impl<'a> Change<'a> {
    fn of(slot: Slot<'a>, state: State<'a>) -> Self {
        let origin = slot.origin.as_str();
        let digest = match state {
            // The digest does not depend on when the feedback was withdrawn or erased.
            State::Empty(_) => digest([origin, "null"]),
            State::Current(reaction) => {
                let (verdict, ts) = (name(reaction.reaction), stamp(reaction.ts));
                let user = reaction.user_id.as_ref().map_or("", |user| user.as_str());
                let parts = [origin, verdict, &ts, &reaction.text, user];
                match slot.by {
                    FeedbackBy::Owner => digest(parts.into_iter().take(4)),
                    FeedbackBy::Other => digest(parts),
                }
            }
        };
        Self {
            path: slot.path(),
            digest: hex::encode(digest).chars().take(16).collect(),
            slot,
            state,
        }
    }

    /// The greatest of a slot is current.
    fn precedence(&self) -> (bool, Option<Voice>, &str, Option<&UserId>, &str) {
        let user = self.source().and_then(|source| source.user_id.as_ref());
        let voice = self.source().map(|source| {
            let inferred = Inferred {
                reaction: source.reaction,
                confidence: source.confidence,
                follows_at: source.follow_up.then_some(source.ts),
            };
            let recency = Recency::new(source.ts, source.received_at, source.id);
            Voice::ranked(source.origin, recency, inferred)
        });
        let current = matches!(self.state, State::Current(_));
        (current, voice, &self.digest, user, self.text())
    }

    fn confidence(&self) -> f64 {
        self.source().map_or(1.0, |source| source.confidence)
    }

    fn is_new(
        &self,
        request: &Timeline,
        requested: &BTreeSet<&TurnId>,
        known: Option<&KnownBlock>,
    ) -> bool {
        let is_up_to_date =
            |block: &KnownBlock| block.digest.as_deref() == Some(self.digest.as_str());
        match (self.state, known) {
            (State::Current(_), Some(block)) => !is_up_to_date(block),
            (State::Current(reaction), None) => {
                let keeps_blocks = !request.blocks.is_empty();
                requested.contains(self.slot.turn)
                    && (keeps_blocks || Some(reaction.ts) >= request.last_known_feedback_ts)
            }
            (State::Empty(_), Some(block)) => !block.hidden && !is_up_to_date(block),
            // Given and withdrawn before the agent received it.
            (State::Empty(_), None) => false,
        }
    }

    pub(super) fn by(&self) -> FeedbackBy {
        self.slot.by
    }

    pub(super) fn origin(&self) -> Origin {
        self.slot.origin
    }

    /// The reaction or the tombstone, if there is one.
    fn source(&self) -> Option<&'a TurnReaction> {
        match self.state {
            State::Current(reaction) => Some(reaction),
            State::Empty(tombstone) => tombstone,
        }
    }

    /// The time of the feedback; `None` if it was erased.
    pub(super) fn ts(&self) -> Option<DateTime<Utc>> {
        self.source().map(|reaction| reaction.ts)
    }

    fn text(&self) -> &'a str {
        self.source().map_or("", |reaction| &reaction.text)
    }

    fn reaction(&self) -> Option<Reaction> {
        self.source().and_then(|source| source.reaction)
    }

    /// Maximum size in the response, in bytes. The text occurs in the announcement and in the block, the turn id four
    /// times, and Lambda escapes JSON again.
    pub(super) fn size(&self) -> usize {
        let is_escaped = |c: &char| c.is_control() || matches!(c, '"' | '\\');
        let escaped = |text: &str| text.len() + 6 * text.chars().filter(is_escaped).count();
        let user = self.source().and_then(|reaction| reaction.user_id.as_ref());
        2 * escaped(self.text())
            + 4 * escaped(self.slot.turn.as_str())
            + user.map_or(0, |user| escaped(user.as_str()))
            + FIXED_SIZE
    }

    pub(super) fn block(&self) -> Block {
        let source = self.source();
        Block {
            block_type: BlockType::TurnFeedback,
            turn_id: self.slot.turn.clone(),
            path: self.path.clone(),
            position: BlockPosition::Last,
            hidden: matches!(self.state, State::Empty(_)),
            text: self.block_text(),
            meta: BlockMeta {
                origin: self.slot.origin,
                by: self.slot.by,
                user_id: source.and_then(|reaction| reaction.user_id.clone()),
                reaction: self.reaction(),
                confidence: self.confidence(),
                from_turn_id: self.slot.turn.clone(),
                digest: self.digest.clone(),
            },
        }
    }

    /// The text of the block. The user's text is one line.
    fn block_text(&self) -> String {
        let mut text = format!(
            "{}\n[ts: {}]\nreaction: {}",
            self.slot.title(),
            self.ts().map_or_else(unknown, stamp),
            name(self.reaction())
        );
        if !self.text().is_empty() {
            match self.slot.by {
                FeedbackBy::Owner => text.extend(["\n", &prompt::own_line(self.text())]),
                FeedbackBy::Other => text.extend(["\n", &prompt::labelled(self.text())]),
            }
        }
        text
    }

    /// The line of the announcement.
    pub(super) fn line(&self) -> String {
        let turn_ts = self.source().map(|reaction| reaction.turn_ts);
        format!(
            "  - turn {} | turn_ts={} | feedback_ts={} | reaction={} | text={}",
            prompt::name(self.slot.turn.as_str()),
            turn_ts.map_or_else(unknown, stamp),
            self.ts().map_or_else(unknown, stamp),
            name(self.reaction()),
            prompt::field(self.text())
        )
    }
}

/// Printed instead of the time of erased feedback, which is not known.
fn unknown() -> String {
    "unknown".to_owned()
}

/// The verdict as it is printed.
fn name(reaction: Option<Reaction>) -> &'static str {
    reaction.map_or("null", Reaction::as_str)
}
