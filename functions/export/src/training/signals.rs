//! The turns with message signals and without reactions.

use hearback_domain::export::training::last_day;
use hearback_domain::turns::turn::TurnRef;

use super::progress::ResumePoint;
use super::rows::ReviewedTurn;
use super::run::{Run, Step};
use crate::{Failure, ROWS_AT_ONCE};

impl Run<'_> {
    /// Exports the turns with signals and without reactions.
    pub(super) async fn export_signals(&mut self) -> Result<Step, Failure> {
        let exporter = self.exporter;
        loop {
            let ResumePoint::Signals { after } = &self.progress.at else {
                return Ok(Step::Done);
            };
            let Some((positions, last)) = self.signals.after(after.as_ref(), ROWS_AT_ONCE) else {
                return Ok(Step::Done);
            };
            let now = exporter.clock.now();
            let signals = exporter.store.signals_at(&positions, now).await?;
            let signals = signals.into_iter();
            let mut turns: Vec<TurnRef> = signals.map(|signal| signal.core.at).collect();
            turns.retain(|at| at.within.project == self.training.project);
            turns.sort();
            turns.dedup();
            let mut without_reactions = Vec::new();
            for at in turns {
                let reactions = exporter.store.live_reactions_of(&at, now).await?;
                // A turn with a reaction was exported on its day.
                if last_day(&reactions, &self.progress.days, self.progress.as_of).is_none() {
                    without_reactions.push(ReviewedTurn { at, reactions });
                }
            }
            for chunk in without_reactions.chunks(ROWS_AT_ONCE) {
                self.write_turns(chunk).await?;
            }
            self.progress.at = ResumePoint::Signals { after: Some(last) };
            if self.is_out_of_time() {
                return Ok(Step::OutOfTime);
            }
        }
    }
}
