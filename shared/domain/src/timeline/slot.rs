//! What each block of a timeline has to say now, and how it says it.
//!
//! | key | text begins with |
//! |---|---|
//! | `user` | `[USER FEEDBACK]` |
//! | `machine` | `[MACHINE FEEDBACK]` |
//! | `other_user` | `[FEEDBACK OF ANOTHER USER]` |
//! | `other_machine` | `[MACHINE FEEDBACK OF ANOTHER USER]` |
//!
//! Anybody in a project may react to anybody's turn. So what other people write never takes the
//! place of the owner's feedback, and is one line, behind `text:`, that cannot pass for a header.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, Utc};

use super::{Block, BlockMeta, BlockType, By, KnownBlock, Position, Request, TurnReaction, stamp};
use crate::digest::digest;
use crate::identifier::{TurnId, UserId};
use crate::one_line::one_line;
use crate::reaction::{Origin, Reaction};

/// Bytes of a change beside its text and the names of its turn and user, at most.
const FIXED: usize = 900;
/// The blocks of a turn.
const KEYS: [(By, Origin); 4] = [
    (By::Owner, Origin::User),
    (By::Owner, Origin::Machine),
    (By::Other, Origin::User),
    (By::Other, Origin::Machine),
];

/// Where in a timeline feedback belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Slot<'a> {
    turn: &'a TurnId,
    by: By,
    origin: Origin,
}

impl Slot<'_> {
    fn path(&self) -> String {
        let key = match (self.by, self.origin) {
            (By::Owner, Origin::User) => "user",
            (By::Owner, Origin::Machine) => "machine",
            (By::Other, Origin::User) => "other_user",
            (By::Other, Origin::Machine) => "other_machine",
        };
        format!("ar:{}.feedback.{key}", self.turn)
    }

    fn title(&self) -> &'static str {
        match (self.by, self.origin) {
            (By::Owner, Origin::User) => "[USER FEEDBACK]",
            (By::Owner, Origin::Machine) => "[MACHINE FEEDBACK]",
            (By::Other, Origin::User) => "[FEEDBACK OF ANOTHER USER]",
            (By::Other, Origin::Machine) => "[MACHINE FEEDBACK OF ANOTHER USER]",
        }
    }
}

/// What a slot has to say.
#[derive(Debug, Clone, Copy)]
enum State<'a> {
    /// This feedback is current.
    Current(&'a TurnReaction),
    /// None is: it was cleared by this tombstone, or erased, or never given.
    Empty(Option<&'a TurnReaction>),
}

/// Something that the timeline does not say yet.
#[derive(Debug, Clone)]
pub(super) struct Change<'a> {
    slot: Slot<'a>,
    state: State<'a>,
    path: String,
    digest: String,
}

/// What the timeline does not say yet: the owner's first, then by time, turn and origin.
///
/// Every block that the request has is compared with what is current. Where it has none,
/// current feedback is new; to an agent that keeps no blocks at all, if it is not older than the
/// watermark.
pub(super) fn changes<'a>(request: &'a Request, reactions: &'a [TurnReaction]) -> Vec<Change<'a>> {
    let turns: BTreeSet<&TurnId> = request.turn_ids.iter().collect();
    let current = current(&turns, reactions);
    // Of two blocks of one path the last one is what the agent reads last.
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
        .filter(|change| change.is_new(request, known.get(change.path.as_str()).copied()))
        .collect();
    changes.sort_by_key(|change| (change.slot.by, change.ts(), change.slot));
    changes
}

/// What each slot says of which there is any reaction.
fn current<'a>(
    turns: &BTreeSet<&TurnId>,
    reactions: &'a [TurnReaction],
) -> BTreeMap<Slot<'a>, State<'a>> {
    let mut said: Vec<_> = (reactions.iter())
        .filter(|reaction| turns.contains(&reaction.turn_id))
        .map(Change::from)
        .collect();
    // What one user cleared does not hide what another says. Two of the same time are ordered by all that can be seen of
    // them, so that the order of the input decides nothing: what was cleared has one digest, whatever it said.
    said.sort_by(|a, b| {
        a.precedence()
            .cmp(&b.precedence())
            .then_with(|| a.confidence().total_cmp(&b.confidence()))
    });
    // Of one slot the last one stays.
    let states = said.into_iter();
    states.map(|change| (change.slot, change.state)).collect()
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
            // All that was cleared or erased is the same to a timeline, whenever that was.
            State::Empty(_) => digest([origin, "null"]),
            State::Current(said) => {
                let (verdict, ts) = (name(said.reaction), stamp(said.ts));
                let said_by = said.user_id.as_ref().map_or("", |user| user.as_str());
                let parts = [origin, verdict, &ts, &said.text, said_by];
                match slot.by {
                    By::Owner => digest(parts.into_iter().take(4)),
                    By::Other => digest(parts),
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

    /// What makes one feedback of a slot current instead of another: the greatest is.
    fn precedence(&self) -> (bool, Option<DateTime<Utc>>, &str, Option<&UserId>, &str) {
        let user = self.said().and_then(|said| said.user_id.as_ref());
        let current = matches!(self.state, State::Current(_));
        (current, self.ts(), &self.digest, user, self.text())
    }

    fn confidence(&self) -> f64 {
        self.said().map_or(1.0, |said| said.confidence)
    }

    fn is_new(&self, request: &Request, known: Option<&KnownBlock>) -> bool {
        let says = |block: &KnownBlock| block.digest.as_deref() == Some(self.digest.as_str());
        match (self.state, known) {
            (State::Current(_), Some(block)) => !says(block),
            (State::Current(said), None) => {
                let keeps_blocks = !request.blocks.is_empty();
                keeps_blocks || Some(said.ts) >= request.last_known_feedback_ts
            }
            (State::Empty(_), Some(block)) => !block.hidden && !says(block),
            // Given and cleared before the agent saw it.
            (State::Empty(_), None) => false,
        }
    }

    pub(super) fn by(&self) -> By {
        self.slot.by
    }

    pub(super) fn origin(&self) -> Origin {
        self.slot.origin
    }

    /// The reaction that says it, if one does.
    fn said(&self) -> Option<&'a TurnReaction> {
        match self.state {
            State::Current(said) => Some(said),
            State::Empty(tombstone) => tombstone,
        }
    }

    /// When it was; `None` of what was erased.
    pub(super) fn ts(&self) -> Option<DateTime<Utc>> {
        self.said().map(|said| said.ts)
    }

    fn text(&self) -> &'a str {
        self.said().map_or("", |said| &said.text)
    }

    fn reaction(&self) -> Option<Reaction> {
        self.said().and_then(|said| said.reaction)
    }

    /// Bytes in the answer, at most: the text is in the announce and in the block, the turn is named
    /// four times, and what JSON escapes is escaped once more by Lambda.
    pub(super) fn size(&self) -> usize {
        let special = |c: &char| c.is_control() || matches!(c, '"' | '\\');
        let escaped = |text: &str| text.len() + 6 * text.chars().filter(special).count();
        let user = self.said().and_then(|said| said.user_id.as_ref());
        2 * escaped(self.text())
            + 4 * escaped(self.slot.turn.as_str())
            + user.map_or(0, |user| escaped(user.as_str()))
            + FIXED
    }

    pub(super) fn block(&self) -> Block {
        let said = self.said();
        Block {
            block_type: BlockType::TurnFeedback,
            turn_id: self.slot.turn.clone(),
            path: self.path.clone(),
            position: Position::Last,
            hidden: matches!(self.state, State::Empty(_)),
            text: self.rendered(),
            meta: BlockMeta {
                origin: self.slot.origin,
                by: self.slot.by,
                user_id: said.and_then(|said| said.user_id.clone()),
                reaction: self.reaction(),
                confidence: self.confidence(),
                from_turn_id: self.slot.turn.clone(),
                digest: self.digest.clone(),
            },
        }
    }

    /// `Feedback Integration (React v2)`, "Rendering format"; what other people write is one line.
    fn rendered(&self) -> String {
        let mut text = format!(
            "{}\n[ts: {}]\nreaction: {}",
            self.slot.title(),
            self.ts().map_or_else(unknown, stamp),
            name(self.reaction())
        );
        if !self.text().is_empty() {
            match self.slot.by {
                By::Owner => text.extend(["\n", self.text()]),
                By::Other => text.extend(["\ntext: ", &one_line(self.text())]),
            }
        }
        text
    }

    /// `Feedback Integration (React v2)`, "Announce Format".
    pub(super) fn line(&self) -> String {
        let turn_ts = self.said().map(|said| said.turn_ts);
        format!(
            "  - turn {} | turn_ts={} | feedback_ts={} | reaction={} | text={}",
            one_line(self.slot.turn.as_str()),
            turn_ts.map_or_else(unknown, stamp),
            self.ts().map_or_else(unknown, stamp),
            name(self.reaction()),
            one_line(self.text())
        )
    }
}

/// The time of feedback that was erased.
fn unknown() -> String {
    "unknown".to_owned()
}

/// The verdict as the source prints it.
fn name(reaction: Option<Reaction>) -> &'static str {
    reaction.map_or("null", Reaction::as_str)
}
