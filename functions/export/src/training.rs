//! The training export: preference pairs and labelled answers, as JSON Lines in the bucket.
//!
//! A run goes through the days. It finds the conversations with reactions by their activity markers, and exports each
//! turn on the day of its last reaction in the period. Message signals are in the partitions of their users, so a run
//! first reads the keys of all signals of the period; turns with signals but without reactions come last. Memory holds
//! those keys, the conversations of a few days, one file of each kind and a few turns.
//!
//! Files, manifest and `resume` work as those of a day (`day.rs`).
//!
//! | to change | look in |
//! |---|---|
//! | what a run returns | `training_set.rs` |
//! | what `resume` contains | `progress.rs` |
//! | what one invocation writes and returns | `run.rs` |
//! | which turns are exported, and when | `reactions.rs`, `signals.rs` |
//! | how the signals of a period are found | `signals_by_message.rs` |
//! | the rows of a turn | `rows.rs` |
//! | the files | `files.rs` |

mod files;
mod progress;
mod reactions;
mod rows;
mod run;
mod signals;
mod signals_by_message;
mod training_set;

use chrono::{DateTime, Utc};
use hearback_domain::export::evaluation::EvaluationRequest;
use hearback_domain::export::training::TrainingRequest;
use hearback_storage::exports::ExportRun;

use crate::{Exporter, Failure, decode_resume, random_suffix, run_name};
use files::Files;
use progress::{Progress, ResumePoint};
use run::{Run, Step};
pub(crate) use signals_by_message::MAX_SIGNALS;
pub use training_set::{SkippedFeedback, TrainingFiles, TrainingSet};

impl Exporter {
    /// Writes the training rows of a project, or resumes a run.
    pub(crate) async fn training(
        &self,
        request: &EvaluationRequest,
        training: &TrainingRequest,
        until: Option<DateTime<Utc>>,
    ) -> Result<TrainingSet, Failure> {
        let progress = match decode_resume(request)? {
            Some(progress) => progress,
            None => self.new_training_run(training)?,
        };
        let export = ExportRun::of_training(&request.tenant, &training.project, &progress.run);
        let signals = self
            .signals_by_message(&request.tenant, &progress.days)
            .await?;
        let mut run = Run {
            exporter: self,
            request,
            training,
            until,
            signals,
            files: Files::new(&self.blobs, export, random_suffix()),
            progress,
        };
        let complete = run.write().await?;
        run.finish(complete).await
    }

    fn new_training_run(&self, training: &TrainingRequest) -> Result<Progress, Failure> {
        let now = self.clock.now();
        let days = training.days(now.date_naive());
        let days = days.map_err(|error| Failure::Invalid(vec![error]))?;
        Ok(Progress {
            run: run_name(now),
            days,
            as_of: now,
            at: ResumePoint::Reactions {
                day: days.from,
                conversation: None,
            },
            files: Vec::new(),
            rows: (0, 0),
            left_out: SkippedFeedback::default(),
        })
    }
}

impl Run<'_> {
    /// Writes rows until the time is up, and returns whether the run is complete.
    async fn write(&mut self) -> Result<bool, Failure> {
        if let ResumePoint::Reactions { day, conversation } = self.progress.at.clone() {
            if self.export_reactions(day, conversation).await? == Step::OutOfTime {
                return Ok(false);
            }
            self.progress.at = ResumePoint::Signals { after: None };
        }
        Ok(self.export_signals().await? == Step::Done)
    }
}
