//! The end of an import: the report, and the deletion of files.

use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt, TryStreamExt};
use hearback_domain::events::import::{
    Counts, ImportReport, MAX_REPORTED_ERRORS, RejectedLine, rate,
};
use hearback_storage::files::{REPORT, report_key, work_key};
use hearback_storage::imports::{ImportCore, ImportId, ImportRow, PieceState};

use super::rejects::{Rejects, rejects_key};
use super::task::{Merged, Task, Work};
use super::{Failure, Importer};

/// Files that are deleted concurrently.
const DELETIONS: usize = 8;

impl Importer {
    /// Finishes an import if all of its pieces are done. Repeatable.
    pub(super) async fn finish_if_done(
        &self,
        id: &ImportId,
        until: Option<DateTime<Utc>>,
    ) -> Result<(), Failure> {
        match self.intake.store.import(id).await? {
            Some(row) if row.pieces == Some(row.done) => {
                self.finish(&row, Merged::default(), until).await
            }
            _ => Ok(()),
        }
    }

    /// Finishes an import whose pieces are done. `merged` is how far its rejects are merged. Repeatable.
    pub(super) async fn finish(
        &self,
        row: &ImportRow,
        mut merged: Merged,
        until: Option<DateTime<Utc>>,
    ) -> Result<(), Failure> {
        let id = row.core.id();
        let report = if let Some(report) = row.report.clone() {
            report
        } else {
            let pieces = Pieces::of(row, self.intake.store.import_pieces(&id).await?);
            let rejects = Rejects::of(&row.core, &pieces.states, &self.bounds);
            while !rejects.are_merged(merged) {
                merged = self.merge_more(&rejects, merged).await?;
                // Each worker merges at least one file, so that the import makes progress.
                if self.is_out_of_time(until) && !rejects.are_merged(merged) {
                    let rest = Task::Work(id.clone(), Work::Finish(merged));
                    return self.send(&id.tenant, [rest]).await;
                }
            }
            self.publish_report(row, report(self, row, &pieces, merged))
                .await?
        };
        if report.file_deleted {
            self.delete(&row.core).await?;
        }
        self.delete_work_files(id, until).await
    }

    /// Deletes the imported file, unless it was replaced.
    async fn delete(&self, import: &ImportCore) -> Result<(), Failure> {
        let version = import.version.as_deref();
        let is_current = || async {
            let current = self.blobs.file(&import.key, None).await?;
            Ok::<_, Failure>(current.is_some_and(|current| current.etag == import.etag))
        };
        // A version is deleted by its id, even if it was replaced.
        if version.is_some() || is_current().await? {
            self.blobs.delete_file(&import.key, version).await?;
        }
        Ok(())
    }

    /// Deletes the workers' intermediate files. A late worker may write more, and sends a message that deletes them.
    async fn delete_work_files(
        &self,
        id: ImportId,
        until: Option<DateTime<Utc>>,
    ) -> Result<(), Failure> {
        let mut last = None;
        loop {
            let files = self.blobs.list(&work_key(&id, ""), last.as_deref()).await?;
            let Some(end) = files.last().map(|file| file.key.clone()) else {
                return Ok(());
            };
            let deletions = files
                .into_iter()
                .map(|file| async move { self.blobs.delete_for_good(&file.key).await });
            let mut deletions = stream::iter(deletions).buffer_unordered(DELETIONS);
            while deletions.try_next().await?.is_some() {}
            if self.is_out_of_time(until) {
                let rest = Task::Work(id.clone(), Work::Finish(Merged::default()));
                return self.send(&id.tenant, [rest]).await;
            }
            last = Some(end);
        }
    }

    /// Stores a report, and returns the one that counts: of several the first.
    async fn publish_report(
        &self,
        row: &ImportRow,
        report: ImportReport,
    ) -> Result<ImportReport, Failure> {
        let import = &row.core;
        self.put_report(import, &report).await?;
        let store = &self.intake.store;
        let first = store
            .note_import_report(&import.id(), report.clone())
            .await?;
        if first != report {
            self.put_report(import, &first).await?;
        }
        Ok(first)
    }

    async fn put_report(&self, import: &ImportCore, report: &ImportReport) -> Result<(), Failure> {
        let bytes = serde_json::to_vec_pretty(report).map_err(|_| Failure::Unreadable)?;
        let key = report_key(&import.key, REPORT);
        Ok(self.blobs.put_file(&key, bytes).await?)
    }
}

fn report(importer: &Importer, row: &ImportRow, pieces: &Pieces, merged: Merged) -> ImportReport {
    let import = &row.core;
    let counts = counts_of(&pieces.states);
    let mut rejects =
        (1..=merged.files).map(|file| importer.blobs.object_uri(&rejects_key(import, file)));
    let finished_at = importer.intake.clock.now();
    let left_out = counts.rejected.saturating_sub(merged.lines);
    ImportReport {
        file: importer.blobs.object_uri(&import.key),
        packing: import.packing,
        bytes: import.size,
        damage: damage(row, pieces),
        counts,
        started_at: import.started_at,
        finished_at,
        events_per_second: rate(counts.events(), import.started_at, finished_at),
        first_errors: first_errors(&pieces.states),
        rejects: rejects.next(),
        more_rejects: rejects.collect(),
        rejects_left_out: left_out,
        rejects_bound: (left_out > pieces.lost.rejected)
            .then(|| why_left_out(importer, import, merged)),
        file_deleted: is_deleted(row, &pieces.states),
    }
}

/// The pieces of an import that are done.
struct Pieces {
    /// In the place of the first one that cannot be read, all that are lost.
    states: Vec<PieceState>,
    /// How many cannot be read.
    unreadable: usize,
    /// The outcomes of their lines.
    lost: Counts,
}

impl Pieces {
    fn of(row: &ImportRow, stored: Vec<Option<PieceState>>) -> Self {
        let unreadable = stored.iter().filter(|piece| piece.is_none()).count();
        let first = stored.iter().position(Option::is_none);
        let mut states: Vec<_> = stored.into_iter().map(Option::unwrap_or_default).collect();
        let mut lost = Counts::default();
        if let Some(first) = first {
            lost = row.counts.without(counts_of(&states));
            let unknown = PieceState {
                counts: lost,
                // It is unknown whether an event in it asks for anonymity.
                anonymous: true,
                unread: true,
                ..PieceState::default()
            };
            states.splice(first..=first, [unknown]);
        }
        Self {
            states,
            unreadable,
            lost,
        }
    }
}

fn counts_of(pieces: &[PieceState]) -> Counts {
    let mut counts = Counts::default();
    for piece in pieces {
        counts += piece.counts;
    }
    counts
}

/// Why the report is incomplete.
fn damage(row: &ImportRow, pieces: &Pieces) -> Option<String> {
    let unreadable = (pieces.unreadable > 0).then(|| {
        format!(
            "the stored progress of {} of its parts cannot be read: their rejected lines are counted, but not listed",
            pieces.unreadable
        )
    });
    let reasons: Vec<_> = row.damage.clone().into_iter().chain(unreadable).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Why some rejected lines are in no file of rejects, and which is the last that is in one.
fn why_left_out(importer: &Importer, import: &ImportCore, merged: Merged) -> String {
    let (lines, size) = (importer.bounds.rejects, import.size);
    let bytes = importer.bounds.max_reject_bytes(size);
    let last = merged.last_line;
    format!(
        "of a file of {size} bytes {lines} rejected lines and {bytes} bytes of them are kept at most, and of each part \
         of it twice its bytes; what is kept ends with line {last}"
    )
}

/// Whether the file is deleted, because events in it ask for anonymity. A file that was not read completely is kept.
fn is_deleted(row: &ImportRow, pieces: &[PieceState]) -> bool {
    let is_read = row.damage.is_none() && !pieces.iter().any(|piece| piece.unread);
    is_read && pieces.iter().any(|piece| piece.anonymous)
}

/// The first errors of all pieces, with line numbers of the imported file.
fn first_errors(pieces: &[PieceState]) -> Vec<RejectedLine> {
    let mut before = 0;
    let mut errors = Vec::new();
    for piece in pieces {
        for error in piece.first_errors.iter().cloned() {
            errors.push(RejectedLine {
                line_number: error.line_number + before,
                ..error
            });
        }
        before += piece.counts.lines;
    }
    errors.truncate(MAX_REPORTED_ERRORS);
    errors
}
