//! The reads of the training export: turns and reactions that have not expired. The table deletes
//! expired items only within days, and no model may learn from them until then.

use chrono::{DateTime, Utc};
use hearback_domain::feedback::reaction::ReactionCore;
use hearback_domain::identity::identifier::TurnId;
use hearback_domain::turns::turn::{ConversationRef, TurnRef};

use crate::item::{self, Item};
use crate::reactions::{KeyRange, ReactionRow, row};
use crate::table::SK;
use crate::turn_rows::{IndexRow, index_row};
use crate::{Error, Store, keys};

/// Turns with their reactions, by turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReactedTurns {
    /// The turns, each with all its reactions, and what counts as one.
    pub turns: Vec<(TurnId, Vec<ReactionCore>)>,
    /// The sort key of the next turn, if there are more.
    pub next: Option<String>,
}

impl Store {
    /// The index rows of distinct turns that have not expired, in the order of the turns. One call
    /// for each hundred, one read for each 4 KB of each.
    pub async fn live_turns(
        &self,
        turns: &[TurnRef],
        now: DateTime<Utc>,
    ) -> Result<Vec<Option<IndexRow>>, Error> {
        let key = |at: &TurnRef| (keys::conversation(&at.within), keys::turn(&at.turn));
        let keys: Vec<_> = turns.iter().map(key).collect();
        let items = self.get_batch(&keys).await?.into_iter();
        let live = items.map(|item| item.filter(|item| !item::is_expired(item, now)));
        Ok(live
            .map(|item| item.and_then(|item| item::readable(&item, index_row(&item, now))))
            .collect())
    }

    /// A page of the turns of a conversation that have reactions, from the key `from` on. One call
    /// for each MB, one read for each 4 KB.
    pub async fn reacted_turns(
        &self,
        at: &ConversationRef,
        from: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<ReactedTurns, Error> {
        let (items, last) = self.reaction_page(at, &KeyRange::from(from), None).await?;
        let mut reacted = ReactedTurns::default();
        for item in &items {
            reacted.add(item, now);
        }
        let Some(last) = last else {
            return Ok(reacted);
        };
        // The reactions of the last turn may be incomplete. The turn moves to the next page, unless
        // it is the only one on this page.
        let incomplete = reacted.turns.pop();
        reacted.next = match incomplete {
            // All reactions of the page have expired, but the last turn may have more.
            None => item::string(&last, REACTION, SK).map(str::to_owned).ok(),
            Some((turn, _)) if reacted.turns.is_empty() => {
                let at = TurnRef {
                    within: at.clone(),
                    turn,
                };
                let reactions = self.live_reactions_of(&at, now).await?;
                let next = crate::reactions::key_after_turn(&at.turn);
                reacted.turns.push((at.turn, reactions));
                Some(next)
            }
            Some((turn, _)) => Some(keys::reactions_of(&turn)),
        };
        Ok(reacted)
    }

    /// The current reactions of a turn, and what counts as one. One call for each MB, one read for each 4 KB.
    pub async fn live_reactions_of(
        &self,
        at: &TurnRef,
        now: DateTime<Utc>,
    ) -> Result<Vec<ReactionCore>, Error> {
        let span = KeyRange::of(&at.turn);
        let mut reacted = ReactedTurns::default();
        let mut resume = None;
        loop {
            let (items, next) = self.reaction_page(&at.within, &span, resume).await?;
            for item in &items {
                reacted.add(item, now);
            }
            resume = next;
            if resume.is_none() {
                let turns = reacted.turns.into_iter();
                return Ok(turns.flat_map(|(_, reactions)| reactions).collect());
            }
        }
    }
}

const REACTION: &str = "reaction";

impl ReactedTurns {
    fn add(&mut self, item: &Item, now: DateTime<Utc>) {
        if item::is_expired(item, now) {
            return;
        }
        let core = match row(item) {
            ReactionRow::Reaction(reaction) => reaction.core,
            ReactionRow::Counted(counted) => counted.core,
            // Reactions of an older system have no events, and their origin is unknown.
            ReactionRow::Legacy(..) | ReactionRow::Unreadable => return,
        };
        match self.turns.last_mut() {
            Some((turn, reactions)) if *turn == core.at.turn => reactions.push(core),
            _ => self.turns.push((core.at.turn.clone(), vec![core])),
        }
    }
}
