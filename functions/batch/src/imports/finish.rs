//! The end of an import: the report, the file of rejects, and what is deleted.

use futures::stream::{self, StreamExt, TryStreamExt};
use hearback_domain::import::{Counts, FIRST_ERRORS, LONGEST_LINE, Reject, Report, rate};
use hearback_domain::lines::Lines;
use hearback_storage::files::{REJECTS, REPORT, beside, work_key};
use hearback_storage::imports::{ImportCore, ImportId, ImportRow, PieceState};

use super::piece::NOT_JSON;
use super::{Failure, Importer};

/// Longest line of rejects: a line of the file may take twice its length as JSON within JSON, and six
/// times if it is of control characters.
const LONGEST_REJECT: usize = 8 * LONGEST_LINE;
/// Files that are deleted at once.
const DELETIONS: usize = 8;

impl Importer {
    /// Tells what an import came to, if all of its pieces are done. May be repeated.
    pub(super) async fn finish_if_done(&self, id: &ImportId) -> Result<(), Failure> {
        let store = &self.intake.store;
        let Some(row) = store.import(id).await? else {
            return Ok(());
        };
        if row.pieces != Some(row.done) {
            return Ok(());
        }
        let pieces = store.import_pieces(id).await?;
        let report = match row.report.clone() {
            Some(report) => report,
            None => self.report(&row, &pieces).await?,
        };
        if report.file_deleted {
            self.delete(&row.core).await?;
        }
        let left = pieces.into_iter().flat_map(|piece| piece.rejects);
        let deletions =
            left.map(|name| async move { self.blobs.delete_for_good(&work_key(id, &name)).await });
        let mut deletions = stream::iter(deletions).buffer_unordered(DELETIONS);
        while deletions.try_next().await?.is_some() {}
        Ok(())
    }

    /// Deletes the imported file, and no other that lies in its place.
    async fn delete(&self, import: &ImportCore) -> Result<(), Failure> {
        let version = import.version.as_deref();
        let same = || async {
            let there = self.blobs.file(&import.key).await?;
            Ok::<_, Failure>(there.is_some_and(|there| there.etag == import.etag))
        };
        // A version is no other, whatever lies in its place.
        if version.is_some() || same().await? {
            self.blobs.delete_file(&import.key, version).await?;
        }
        Ok(())
    }

    async fn report(&self, row: &ImportRow, pieces: &[PieceState]) -> Result<Report, Failure> {
        let import = &row.core;
        let mut counts = Counts::default();
        let mut first_errors = Vec::new();
        for piece in pieces {
            let before = counts.lines;
            for error in &piece.first_errors {
                if first_errors.len() < FIRST_ERRORS {
                    let mut error = error.clone();
                    error.line_number += before;
                    first_errors.push(error);
                }
            }
            counts += piece.counts;
        }
        let rejects = beside(&import.key, REJECTS);
        if counts.rejected > 0 {
            self.merge_rejects(&import.id(), pieces, &rejects).await?;
        }
        let finished_at = self.intake.clock.now();
        let report = Report {
            file: self.blobs.place(&import.key),
            packing: import.packing,
            bytes: import.size,
            damage: row.damage.clone(),
            counts,
            started_at: import.started_at,
            finished_at,
            events_per_second: rate(counts.events(), import.started_at, finished_at),
            first_errors,
            rejects: (counts.rejected > 0).then(|| self.blobs.place(&rejects)),
            file_deleted: pieces.iter().any(|piece| piece.anonymous),
        };
        let bytes = serde_json::to_vec_pretty(&report).map_err(|_| Failure::Unreadable)?;
        let key = beside(&import.key, REPORT);
        self.blobs.put_file(&key, bytes).await?;
        let store = &self.intake.store;
        store.note_import_report(&import.id(), &report).await?;
        Ok(report)
    }

    /// Stores all rejects in one file, each with the number that its line has in the imported file.
    async fn merge_rejects(
        &self,
        id: &ImportId,
        pieces: &[PieceState],
        key: &str,
    ) -> Result<(), Failure> {
        let mut upload = self.blobs.upload(key);
        let anonymous = pieces.iter().any(|piece| piece.anonymous);
        let mut before = 0;
        for piece in pieces {
            for name in &piece.rejects {
                let found = self.blobs.read_from(&work_key(id, name), 0).await?;
                let (_, mut body) = found.ok_or(Failure::Body)?;
                let mut lines = Lines::new(LONGEST_REJECT);
                loop {
                    let bytes = body.next().await.transpose().map_err(|_| Failure::Body)?;
                    match &bytes {
                        Some(bytes) => lines.push(bytes),
                        None => lines.end(),
                    }
                    while let Some(line) = lines.next_line() {
                        let line = line.content.ok_or(Failure::Unreadable)?;
                        let reject = serde_json::from_slice(line);
                        let mut reject: Reject = reject.map_err(|_| Failure::Unreadable)?;
                        reject.rejected.line_number += before;
                        if anonymous && reject.rejected.rejection.error == NOT_JSON {
                            // It may be a part of an event that asks for it elsewhere.
                            reject.line = None;
                        }
                        let mut line =
                            serde_json::to_vec(&reject).map_err(|_| Failure::Unreadable)?;
                        line.push(b'\n');
                        upload.push(&line).await?;
                    }
                    if bytes.is_none() {
                        break;
                    }
                }
            }
            before += piece.counts.lines;
        }
        Ok(upload.finish().await?)
    }
}
