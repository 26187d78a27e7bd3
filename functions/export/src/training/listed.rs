//! The rows of some turns: what was said of each answer, joined with its texts where that makes a row.

use std::collections::HashMap;

use futures::stream::{self, StreamExt, TryStreamExt};
use hearback_domain::evaluation::Exchange;
use hearback_domain::message_signal::StoredSignal;
use hearback_domain::reaction::ReactionCore;
use hearback_domain::training::{Corrected, Days, Feedback, Heard, Label, Pair, Taken, corrected};
use hearback_domain::turn::{TurnCore, TurnRef};
use hearback_storage::Error;
use hearback_storage::message_signals::Place;
use hearback_storage::turns::IndexRow;

use super::Unlearned;
use super::said::Said;
use crate::Exporter;

/// Turns whose logs are read at once; of a pair that is two. One may have 5 MB.
pub(super) const TURNS_AT_ONCE: usize = 4;

/// A turn with feedback.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) at: TurnRef,
    pub(super) reactions: Vec<ReactionCore>,
}

/// What one turn gives.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub(super) pairs: Vec<Pair>,
    pub(super) label: Option<Label>,
    pub(super) left_out: Unlearned,
}

/// A turn that is there, and what was said of its answer.
pub(super) struct Judged {
    row: IndexRow,
    feedback: Feedback,
}

impl Judged {
    fn taken(&self) -> Taken<'_> {
        Taken {
            turn: &self.row.core,
            follow_up: self.row.follow_up.as_ref(),
            feedback: &self.feedback,
        }
    }
}

impl Exporter {
    /// What was said of the answers of these turns; `None` of one that is gone.
    pub(super) async fn judged(
        &self,
        found: &[Found],
        said: &Said,
        days: &Days,
    ) -> Result<Vec<Option<Judged>>, Error> {
        let turns: Vec<_> = found.iter().map(|found| found.at.clone()).collect();
        let rows = self.store.live_turns(&turns, self.clock.now()).await?;
        let mut signals = self.signals_on(rows.iter().flatten(), said).await?;
        let judged = found.iter().zip(rows).map(|(found, row)| {
            let signals = signals.remove(&found.at).unwrap_or_default();
            let feedback = Feedback::new(&found.reactions, signals, days);
            row.map(|row| Judged { row, feedback })
        });
        Ok(judged.collect())
    }

    /// What these turns give, each in its place; their logs are read at once.
    pub(super) async fn listed(
        &self,
        judged: &[Option<Judged>],
        said: &Said,
        days: &Days,
    ) -> Result<Vec<Listed>, Error> {
        stream::iter(judged)
            .map(async |judged| match judged {
                Some(judged) => self.of_turn(judged, said, days).await,
                None => Ok(gone()),
            })
            .buffered(TURNS_AT_ONCE)
            .try_collect()
            .await
    }

    /// The signals on these turns' answers.
    async fn signals_on(
        &self,
        rows: impl Iterator<Item = &IndexRow>,
        said: &Said,
    ) -> Result<HashMap<TurnRef, Vec<StoredSignal>>, Error> {
        let messages = rows.filter_map(|row| row.core.message_id.as_ref());
        let mut places: Vec<Place> = (messages)
            .flat_map(|message| said.of(message).iter().cloned())
            .collect();
        places.sort();
        places.dedup();
        let mut on: HashMap<TurnRef, Vec<StoredSignal>> = HashMap::new();
        for said in self.store.signals_at(&places, self.clock.now()).await? {
            on.entry(said.core.at.clone()).or_default().push(said);
        }
        Ok(on)
    }

    async fn of_turn(&self, judged: &Judged, said: &Said, days: &Days) -> Result<Listed, Error> {
        let feedback = &judged.feedback;
        let mut listed = Listed::default();
        listed.left_out.excluded = feedback.excluded;
        let verdict = match feedback.heard() {
            Heard::Agreed(verdict) => Some(verdict),
            Heard::Contested => {
                listed.left_out.contested = 1;
                None
            }
            Heard::Nothing => None,
        };
        let correction = self.correction_of(judged, said, days).await?;
        if verdict.is_none() && correction.is_none() && !feedback.replaces() {
            return Ok(listed);
        }
        let Some(texts) = self.texts(&judged.row).await? else {
            return Ok(gone());
        };
        let turn = &judged.row.core;
        let mut pairs = Vec::new();
        for edit in feedback.edits() {
            pairs.push(Pair::of_edit(turn, &texts, edit));
        }
        for id in feedback.corrections() {
            let tenant = &turn.at.within.tenant;
            let event = self.store.event(tenant, *id, self.clock.now()).await?;
            // A correction without a text makes no pair: it may say which kind it is and no more.
            if let Some(event) = event.filter(|event| event.text.corrected_value.is_some()) {
                pairs.push(Pair::of_event(turn, &texts, (&event.core, &event.text)));
            }
        }
        if let Some((next, corrected)) = correction
            && let Some(after) = self.texts(&next).await?
        {
            let turns = (turn, &next.core);
            pairs.push(Pair::of_correction(turns, (&texts, &after), corrected));
        }
        let label = verdict.map(|verdict| Label::of(turn, &texts, verdict));
        let empty = pairs.iter().filter(|pair| pair.is_none()).count();
        let empty = empty + usize::from(label.as_ref().is_some_and(Option::is_none));
        listed.left_out.without_text = u64::try_from(empty).unwrap_or(u64::MAX);
        listed.pairs = pairs.into_iter().flatten().collect();
        listed.label = label.flatten();
        Ok(listed)
    }

    /// The turn that corrected this one and was accepted, if there is one.
    async fn correction_of(
        &self,
        judged: &Judged,
        said: &Said,
        days: &Days,
    ) -> Result<Option<(IndexRow, Corrected)>, Error> {
        let own = judged.feedback.of_user(&judged.row.core.user_id);
        let Some(follower) = (judged.row.status.inferred.as_ref())
            .filter(|_| own.is_some_and(|own| !own.good))
            .and_then(|inferred| inferred.detected_in_turn.as_ref())
        else {
            return Ok(None);
        };
        let at = TurnRef {
            turn: follower.clone(),
            ..judged.row.core.at.clone()
        };
        let now = self.clock.now();
        let mut rows = self
            .store
            .live_turns(std::slice::from_ref(&at), now)
            .await?;
        let Some(row) = rows.pop().flatten() else {
            return Ok(None);
        };
        let reactions = self.store.live_reactions_of(&at, now).await?;
        let signals = self
            .signals_on(std::iter::once(&row), said)
            .await?
            .remove(&at);
        let next = Judged {
            feedback: Feedback::new(&reactions, signals.unwrap_or_default(), days),
            row,
        };
        let found = corrected(judged.taken(), next.taken());
        Ok(found.map(|found| (next.row, found)))
    }

    /// What was said in a turn, if it is still there.
    async fn texts(&self, row: &IndexRow) -> Result<Option<Exchange>, Error> {
        let wanted = |core: &TurnCore| core.fingerprint == row.core.fingerprint;
        let log = match self.blobs.turn_log(&row.hosted_uri).await? {
            // Moved on since the row was read, or gone with its turn.
            None => {
                let found = (self.blobs)
                    .turn_with_log(&self.store, (&row.core.at, self.clock.now()), wanted)
                    .await?;
                found.map(|(_, log)| log)
            }
            log => log,
        };
        Ok(log.map(Exchange::from))
    }
}

fn gone() -> Listed {
    let mut listed = Listed::default();
    listed.left_out.without_turn = 1;
    listed
}
