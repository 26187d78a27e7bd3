//! One invocation of a run: its rows, its files and its result.

use chrono::{DateTime, Utc};
use hearback_domain::export::evaluation::EvaluationRequest;
use hearback_domain::export::training::{RowKind, TrainingRequest};
use hearback_storage::damage::unreadable;

use super::files::Files;
use super::progress::Progress;
use super::rows::{ReviewedTurn, TURNS_AT_ONCE, TurnRows};
use super::signals_by_message::SignalsByMessage;
use super::training_set::{TrainingFiles, TrainingSet};
use crate::{Exporter, Failure, encode_resume};

/// How a step of a run ended.
#[derive(PartialEq, Eq)]
pub(super) enum Step {
    Done,
    OutOfTime,
}

pub(super) struct Run<'a> {
    pub(super) exporter: &'a Exporter,
    pub(super) request: &'a EvaluationRequest,
    pub(super) training: &'a TrainingRequest,
    pub(super) until: Option<DateTime<Utc>>,
    pub(super) signals: SignalsByMessage,
    pub(super) files: Files<'a>,
    pub(super) progress: Progress,
}

impl Run<'_> {
    pub(super) async fn write_turns(&mut self, turns: &[ReviewedTurn]) -> Result<(), Failure> {
        let exporter = self.exporter;
        let days = self.progress.days;
        let found = exporter.with_feedback(turns, &self.signals, &days).await?;
        for chunk in found.chunks(TURNS_AT_ONCE) {
            let rows = exporter.turn_rows(chunk, &self.signals, &days);
            for rows in rows.await? {
                self.add(rows).await?;
            }
        }
        Ok(())
    }

    async fn add(&mut self, rows: TurnRows) -> Result<(), Failure> {
        let TurnRows {
            pairs,
            label,
            left_out,
        } = rows;
        self.progress.left_out += left_out;
        let (pair_count, label_count) = &mut self.progress.rows;
        for pair in &pairs {
            self.files.add(RowKind::Pairs, pair).await?;
            *pair_count += 1;
        }
        if let Some(label) = &label {
            self.files.add(RowKind::Labels, label).await?;
            *label_count += 1;
        }
        Ok(())
    }

    pub(super) fn is_out_of_time(&self) -> bool {
        let now = self.exporter.clock.now();
        self.until.is_some_and(|until| now >= until)
    }

    pub(super) async fn finish(mut self, complete: bool) -> Result<TrainingSet, Failure> {
        self.progress.files.extend(self.files.close().await?);
        self.progress.left_out.unreadable += unreadable();
        let (pairs, labels) = self.progress.rows;
        let files_of = |wanted, rows| TrainingFiles {
            files: (self.progress.files.iter())
                .filter(|(kind, _, _)| *kind == wanted)
                .flat_map(|(_, invocation, count)| self.files.uris(wanted, invocation, *count))
                .collect(),
            rows,
        };
        let mut result = TrainingSet {
            days: self.progress.days,
            pairs: files_of(RowKind::Pairs, pairs),
            labels: files_of(RowKind::Labels, labels),
            left_out: self.progress.left_out,
            manifest: None,
            resume: None,
        };
        if complete {
            result.manifest = Some(self.files.manifest());
            self.files.put_manifest(&result).await?;
        } else {
            result.resume = Some(encode_resume(self.request, &self.progress));
        }
        Ok(result)
    }
}
