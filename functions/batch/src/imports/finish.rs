//! The end of an import: the report, and what is deleted.

use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt, TryStreamExt};
use hearback_domain::import::{Counts, FIRST_ERRORS, RejectedLine, Report, rate};
use hearback_storage::files::{REPORT, beside, work_key};
use hearback_storage::imports::{ImportCore, ImportId, ImportRow, PieceState};

use super::rejects::{Merged, Rejects, rejects_key};
use super::task::{Task, Work};
use super::{Failure, Importer};

/// Files that are deleted at once.
const DELETIONS: usize = 8;

impl Importer {
    /// Ends an import, if all of its pieces are done. May be repeated.
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

    /// Ends an import whose pieces are done, and of whose rejects so many are merged. May be repeated.
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
            let pieces = self.intake.store.import_pieces(&id).await?;
            let rejects = Rejects::of(&row.core, &pieces);
            while !rejects.are_merged(merged) {
                merged = self.merge_more(&rejects, merged).await?;
                // However late it is, each worker gets on.
                if self.is_over(until) && !rejects.are_merged(merged) {
                    return self.send([Task::Work(id, Work::Finish(merged))]).await;
                }
            }
            self.tell(row, report(self, row, &pieces, merged)).await?
        };
        if report.file_deleted {
            self.delete(&row.core).await?;
        }
        self.sweep(id, until).await
    }

    /// Deletes the imported file, and no other that lies in its place.
    async fn delete(&self, import: &ImportCore) -> Result<(), Failure> {
        let version = import.version.as_deref();
        let same = || async {
            let there = self.blobs.file(&import.key, None).await?;
            Ok::<_, Failure>(there.is_some_and(|there| there.etag == import.etag))
        };
        // A version is no other, whatever lies in its place.
        if version.is_some() || same().await? {
            self.blobs.delete_file(&import.key, version).await?;
        }
        Ok(())
    }

    /// Deletes what workers left for each other. One that is late may leave more, and a message by which
    /// that is deleted too.
    async fn sweep(&self, id: ImportId, until: Option<DateTime<Utc>>) -> Result<(), Failure> {
        let mut last = None;
        loop {
            let left = self.blobs.list(&work_key(&id, ""), last.as_deref()).await?;
            let Some(end) = left.last().map(|file| file.key.clone()) else {
                return Ok(());
            };
            let deletions = left
                .into_iter()
                .map(|file| async move { self.blobs.delete_for_good(&file.key).await });
            let mut deletions = stream::iter(deletions).buffer_unordered(DELETIONS);
            while deletions.try_next().await?.is_some() {}
            if self.is_over(until) {
                let rest = Work::Finish(Merged::default());
                return self.send([Task::Work(id, rest)]).await;
            }
            last = Some(end);
        }
    }

    /// Stores a report, and answers the one that counts: of several the first.
    async fn tell(&self, row: &ImportRow, report: Report) -> Result<Report, Failure> {
        let import = &row.core;
        self.put_report(import, &report).await?;
        let store = &self.intake.store;
        let counts = store
            .note_import_report(&import.id(), report.clone())
            .await?;
        if counts != report {
            self.put_report(import, &counts).await?;
        }
        Ok(counts)
    }

    async fn put_report(&self, import: &ImportCore, report: &Report) -> Result<(), Failure> {
        let bytes = serde_json::to_vec_pretty(report).map_err(|_| Failure::Unreadable)?;
        let key = beside(&import.key, REPORT);
        Ok(self.blobs.put_file(&key, bytes).await?)
    }
}

/// What an import came to.
fn report(importer: &Importer, row: &ImportRow, pieces: &[PieceState], merged: Merged) -> Report {
    let import = &row.core;
    let mut counts = Counts::default();
    for piece in pieces {
        counts += piece.counts;
    }
    let mut rejects =
        (1..=merged.files).map(|file| importer.blobs.place(&rejects_key(import, file)));
    let finished_at = importer.intake.clock.now();
    Report {
        file: importer.blobs.place(&import.key),
        packing: import.packing,
        bytes: import.size,
        damage: row.damage.clone(),
        counts,
        started_at: import.started_at,
        finished_at,
        events_per_second: rate(counts.events(), import.started_at, finished_at),
        first_errors: first_errors(pieces),
        rejects: rejects.next(),
        more_rejects: rejects.collect(),
        file_deleted: is_deleted(row, pieces),
    }
}

/// Whether the file goes, because events in it ask for anonymity. What was not read of it is nowhere else: then it
/// stays.
fn is_deleted(row: &ImportRow, pieces: &[PieceState]) -> bool {
    let is_read = row.damage.is_none() && !pieces.iter().any(|piece| piece.unread);
    is_read && pieces.iter().any(|piece| piece.anonymous)
}

/// The first errors of all pieces, each with the number that its line has in the imported file.
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
    errors.truncate(FIRST_ERRORS);
    errors
}
