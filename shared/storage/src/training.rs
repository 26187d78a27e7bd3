//! What the training export reads: turns and reactions, but for those whose time has come. The table
//! deletes what expired within days, and no model may learn from it meanwhile.

use chrono::{DateTime, Utc};
use hearback_domain::identifier::TurnId;
use hearback_domain::reaction::{Means, ReactionCore};
use hearback_domain::turn::{ConversationRef, TurnRef};

use crate::item::{self, Item};
use crate::reactions::{Row, Span, row};
use crate::table::SK;
use crate::turns::{IndexRow, index_row};
use crate::{Error, Store, keys};

/// Turns with their reactions, by turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reacted {
    /// The turns, none of them cut in two.
    pub turns: Vec<(TurnId, Vec<ReactionCore>)>,
    /// Where the next turn begins, if there are more.
    pub next: Option<String>,
}

impl Store {
    /// The index rows of turns as they stand `now`, each in its place; no turn twice. One call for
    /// each hundred, one read for each 4 KB of each.
    pub async fn live_turns(
        &self,
        turns: &[TurnRef],
        now: DateTime<Utc>,
    ) -> Result<Vec<Option<IndexRow>>, Error> {
        let key = |at: &TurnRef| (keys::conversation(&at.within), keys::turn(&at.turn));
        let keys: Vec<_> = turns.iter().map(key).collect();
        let found = self.get_batch(&keys).await?.into_iter();
        let live = found.map(|item| item.filter(|item| !item::is_expired(item, now)));
        live.map(|item| item.as_ref().map(index_row).transpose())
            .collect()
    }

    /// A page of the turns of a conversation that have reactions, from the key `from` on, as they
    /// stand `now`. One call for each MB, one read for each 4 KB.
    pub async fn reacted_turns(
        &self,
        at: &ConversationRef,
        from: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<Reacted, Error> {
        let (items, last) = self.reaction_page(at, &Span::from(from), None).await?;
        let mut reacted = Reacted::default();
        for item in &items {
            reacted.add(item, now);
        }
        let Some(last) = last else {
            return Ok(reacted);
        };
        // The last turn may be cut in two. It comes first on the next page, unless it is all of this one.
        let cut = reacted.turns.pop();
        reacted.next = match cut {
            // All of it expired, which need not be all of its last turn.
            None => item::string(&last, REACTION, SK).map(str::to_owned).ok(),
            Some((turn, _)) if reacted.turns.is_empty() => {
                let at = TurnRef {
                    within: at.clone(),
                    turn,
                };
                let reactions = self.live_reactions_of(&at, now).await?;
                let next = crate::reactions::behind(&at.turn);
                reacted.turns.push((at.turn, reactions));
                Some(next)
            }
            Some((turn, _)) => Some(keys::reactions_of(&turn)),
        };
        Ok(reacted)
    }

    /// The reactions of a turn as they stand `now`. One call for each MB, one read for each 4 KB.
    pub async fn live_reactions_of(
        &self,
        at: &TurnRef,
        now: DateTime<Utc>,
    ) -> Result<Vec<ReactionCore>, Error> {
        let span = Span::of(&at.turn);
        let mut reacted = Reacted::default();
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

impl Reacted {
    fn add(&mut self, item: &Item, now: DateTime<Utc>) {
        if item::is_expired(item, now) {
            return;
        }
        let core = match row(item) {
            Row::Reaction(reaction) => reaction.core,
            Row::Counted(event) if event.core.means == Means::Event => event.core,
            // Signals are read by themselves. Reactions of older systems have no events: nobody could tell where
            // a row comes from.
            Row::Counted(_) | Row::Legacy(..) | Row::Unreadable => return,
        };
        match self.turns.last_mut() {
            Some((turn, reactions)) if *turn == core.at.turn => reactions.push(core),
            _ => self.turns.push((core.at.turn.clone(), vec![core])),
        }
    }
}
