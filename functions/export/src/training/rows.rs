//! The rows of turns: the feedback on each answer, joined with the texts of the turn.

use std::collections::HashMap;

use futures::stream::{self, StreamExt, TryStreamExt};
use hearback_domain::export::training::{
    Consensus, Corrected, Days, Feedback, Pair, RatedTurn, TrainingLabel, corrected,
};
use hearback_domain::feedback::message_signal::StoredSignal;
use hearback_domain::feedback::reaction::ReactionCore;
use hearback_domain::turns::exchange::PromptAndAnswer;
use hearback_domain::turns::turn::{TurnCore, TurnRef};
use hearback_storage::message_signals::SignalPosition;
use hearback_storage::turn_rows::IndexRow;
use hearback_storage::{Error, unless_unreadable};

use super::signals_by_message::SignalsByMessage;
use super::training_set::SkippedFeedback;
use crate::Exporter;

/// Turns whose logs are read concurrently. A pair of two turns reads two logs, of up to 5 MB each.
pub(super) const TURNS_AT_ONCE: usize = 4;

/// A turn with feedback, which may no longer exist.
#[derive(Debug, Clone)]
pub(super) struct ReviewedTurn {
    pub(super) at: TurnRef,
    pub(super) reactions: Vec<ReactionCore>,
}

/// The rows of one turn.
#[derive(Debug, Default)]
pub(super) struct TurnRows {
    pub(super) pairs: Vec<Pair>,
    pub(super) label: Option<TrainingLabel>,
    pub(super) left_out: SkippedFeedback,
}

/// An existing turn with the feedback on its answer.
pub(super) struct ExportedTurn {
    row: IndexRow,
    feedback: Feedback,
}

impl ExportedTurn {
    fn as_rated(&self) -> RatedTurn<'_> {
        RatedTurn {
            turn: &self.row.core,
            follow_up: self.row.follow_up.as_ref(),
            feedback: &self.feedback,
        }
    }
}

impl Exporter {
    /// These turns with the feedback on their answers, each in its position; `None` for a turn that no longer exists.
    pub(super) async fn with_feedback(
        &self,
        reviewed: &[ReviewedTurn],
        signals: &SignalsByMessage,
        days: &Days,
    ) -> Result<Vec<Option<ExportedTurn>>, Error> {
        let turns: Vec<_> = reviewed.iter().map(|turn| turn.at.clone()).collect();
        let rows = self.store.live_turns(&turns, self.clock.now()).await?;
        let mut signals_of = self.signals_on(rows.iter().flatten(), signals).await?;
        let turns = reviewed.iter().zip(rows).map(|(turn, row)| {
            let signals = signals_of.remove(&turn.at).unwrap_or_default();
            let feedback = Feedback::new(&turn.reactions, signals, days);
            row.map(|row| ExportedTurn { row, feedback })
        });
        Ok(turns.collect())
    }

    /// The rows of these turns, each in its position. Their logs are read concurrently.
    pub(super) async fn turn_rows(
        &self,
        turns: &[Option<ExportedTurn>],
        signals: &SignalsByMessage,
        days: &Days,
    ) -> Result<Vec<TurnRows>, Error> {
        stream::iter(turns)
            .map(async |turn| match turn {
                Some(turn) => self.rows_of(turn, signals, days).await,
                None => Ok(without_turn()),
            })
            .buffered(TURNS_AT_ONCE)
            .try_collect()
            .await
    }

    /// The signals on these turns' answers.
    async fn signals_on(
        &self,
        rows: impl Iterator<Item = &IndexRow>,
        signals: &SignalsByMessage,
    ) -> Result<HashMap<TurnRef, Vec<StoredSignal>>, Error> {
        let messages = rows.filter_map(|row| row.core.message_id.as_ref());
        let mut positions: Vec<SignalPosition> = (messages)
            .flat_map(|message| signals.of(message).iter().cloned())
            .collect();
        positions.sort();
        positions.dedup();
        let mut by_turn: HashMap<TurnRef, Vec<StoredSignal>> = HashMap::new();
        for signal in self.store.signals_at(&positions, self.clock.now()).await? {
            let of_turn = by_turn.entry(signal.core.at.clone()).or_default();
            of_turn.push(signal);
        }
        Ok(by_turn)
    }

    async fn rows_of(
        &self,
        turn: &ExportedTurn,
        signals: &SignalsByMessage,
        days: &Days,
    ) -> Result<TurnRows, Error> {
        let feedback = &turn.feedback;
        let mut rows = TurnRows::default();
        rows.left_out.excluded = feedback.excluded;
        let verdict = match feedback.consensus() {
            Consensus::Agreed(verdict) => Some(verdict),
            Consensus::Contested => {
                rows.left_out.contested = 1;
                None
            }
            Consensus::NoVerdict => None,
        };
        let correction = self.correction_of(turn, signals, days).await?;
        if verdict.is_none() && correction.is_none() && !feedback.has_corrections() {
            return Ok(rows);
        }
        let Some(texts) = self.texts(&turn.row).await? else {
            return Ok(without_turn());
        };
        let core = &turn.row.core;
        let mut pairs = Vec::new();
        for edit in feedback.edits() {
            pairs.push(Pair::of_edit(core, &texts, edit));
        }
        for id in feedback.corrections() {
            let tenant = &core.at.within.tenant;
            let event = self.store.event(tenant, *id, self.clock.now()).await;
            let event = unless_unreadable(event, tenant)?;
            // A correction without a text makes no pair: it may have only its kind.
            if let Some(event) = event.filter(|event| event.text.corrected_value.is_some()) {
                pairs.push(Pair::of_event(core, &texts, &event.core, &event.text));
            }
        }
        if let Some((next, corrected)) = correction
            && let Some(after) = self.texts(&next).await?
        {
            let turns = (core, &next.core);
            pairs.push(Pair::of_correction(turns, (&texts, &after), corrected));
        }
        let label = verdict.map(|verdict| TrainingLabel::of(core, &texts, verdict));
        let empty = pairs.iter().filter(|pair| pair.is_none()).count();
        let empty = empty + usize::from(label.as_ref().is_some_and(Option::is_none));
        rows.left_out.without_text = u64::try_from(empty).unwrap_or(u64::MAX);
        rows.pairs = pairs.into_iter().flatten().collect();
        rows.label = label.flatten();
        Ok(rows)
    }

    /// The turn that corrected this one and was accepted, if there is one.
    async fn correction_of(
        &self,
        turn: &ExportedTurn,
        signals: &SignalsByMessage,
        days: &Days,
    ) -> Result<Option<(IndexRow, Corrected)>, Error> {
        let own = turn.feedback.of_user(&turn.row.core.user_id);
        let Some(follower) = (turn.row.status.inferred.as_ref())
            .filter(|_| own.is_some_and(|own| !own.good))
            .and_then(|inferred| inferred.detected_in_turn.as_ref())
        else {
            return Ok(None);
        };
        let at = TurnRef {
            turn: follower.clone(),
            ..turn.row.core.at.clone()
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
            .signals_on(std::iter::once(&row), signals)
            .await?
            .remove(&at);
        let next = ExportedTurn {
            feedback: Feedback::new(&reactions, signals.unwrap_or_default(), days),
            row,
        };
        let found = corrected(turn.as_rated(), next.as_rated());
        Ok(found.map(|found| (next.row, found)))
    }

    /// The texts of a turn, if it still exists and its log can be read.
    async fn texts(&self, row: &IndexRow) -> Result<Option<PromptAndAnswer>, Error> {
        unless_unreadable(self.log_texts(row).await, &row.core.at.within.tenant)
    }

    async fn log_texts(&self, row: &IndexRow) -> Result<Option<PromptAndAnswer>, Error> {
        let is_same_version = |core: &TurnCore| core.fingerprint == row.core.fingerprint;
        let log = match self.blobs.turn_log(&row.hosted_uri).await? {
            // The log was replaced since the row was read, or removed with its turn.
            None => {
                let found = (self.blobs)
                    .turn_with_log(&self.store, &row.core.at, self.clock.now(), is_same_version)
                    .await?;
                found.map(|(_, log)| log)
            }
            log => log,
        };
        Ok(log.map(PromptAndAnswer::from))
    }
}

fn without_turn() -> TurnRows {
    let mut rows = TurnRows::default();
    rows.left_out.without_turn = 1;
    rows
}
