//! The files of rejects next to an imported file, merged from the files of the workers.
//!
//! Where one file ends depends on the workers' files alone. So two workers that merge the same rejects write equal
//! files, and a worker that continues after another leaves no gap.
//!
//! The total size is bounded. The first rejects are kept, without a gap: a piece that left out some of its own is the
//! last one that is merged.

use hearback_domain::events::import::{Bounds, MAX_LINE_BYTES, Reject};
use hearback_domain::text::lines::Lines;
use hearback_storage::files::{Upload, rejects_name, report_key, work_key};
use hearback_storage::imports::{ImportCore, PieceState};

use super::line::NOT_JSON;
use super::task::Merged;
use super::{Failure, Importer};

/// Workers' files that are merged into one file, at most: each is a call.
const MAX_SOURCES: usize = 2_000;
/// The longest line of rejects. JSON within JSON has up to twice the length of the imported line, and six times if that
/// consists of control characters.
const LONGEST_REJECT: usize = 8 * MAX_LINE_BYTES;

/// The rejects of an import in the files of its workers.
pub(super) struct Rejects<'a> {
    import: &'a ImportCore,
    sources: Vec<Source<'a>>,
    /// Whether an event in the file asks for anonymity.
    anonymous: bool,
    max_lines: u64,
    max_bytes: u64,
}

/// A worker's file of rejects.
struct Source<'a> {
    name: &'a str,
    /// Lines of the imported file before the piece.
    before: u64,
}

impl<'a> Rejects<'a> {
    /// The rejects of all pieces of an import.
    pub(super) fn of(import: &'a ImportCore, pieces: &'a [PieceState], bounds: &Bounds) -> Self {
        let mut sources = Vec::new();
        let mut before = 0;
        for piece in pieces {
            let names = piece.rejects.iter();
            sources.extend(names.map(|name| Source { name, before }));
            if piece.rejects_left_out > 0 {
                break;
            }
            before += piece.counts.lines;
        }
        Self {
            import,
            sources,
            anonymous: pieces.iter().any(|piece| piece.anonymous),
            max_lines: bounds.rejects,
            max_bytes: bounds.max_reject_bytes(import.size),
        }
    }

    pub(super) fn are_merged(&self, merged: Merged) -> bool {
        merged.is_full || merged.sources >= self.sources.len()
    }

    /// Counts a line of this many bytes if it is within the bound, and returns whether it is.
    fn has_room(&self, merged: &mut Merged, bytes: u64) -> bool {
        merged.is_full = merged.lines >= self.max_lines || merged.bytes + bytes > self.max_bytes;
        if !merged.is_full {
            merged.lines += 1;
            merged.bytes += bytes;
        }
        !merged.is_full
    }
}

/// The key of a file of rejects, by its number from 1.
pub(super) fn rejects_key(import: &ImportCore, number: u64) -> String {
    report_key(&import.key, &rejects_name(number))
}

impl Importer {
    /// Stores another file of rejects, with line numbers of the imported file.
    pub(super) async fn merge_more(
        &self,
        rejects: &Rejects<'_>,
        merged: Merged,
    ) -> Result<Merged, Failure> {
        let mut merged = Merged {
            files: merged.files + 1,
            ..merged
        };
        let mut upload = self.blobs.upload(rejects_key(rejects.import, merged.files));
        let before = merged.bytes;
        for source in (rejects.sources.iter())
            .skip(merged.sources)
            .take(MAX_SOURCES)
        {
            self.merge(rejects, source, &mut merged, &mut upload)
                .await?;
            merged.sources += 1;
            let size = usize::try_from(merged.bytes - before).unwrap_or(usize::MAX);
            if merged.is_full || size >= self.rejects_file {
                break;
            }
        }
        upload.finish().await?;
        Ok(merged)
    }

    /// Adds a worker's file, up to the bound.
    async fn merge(
        &self,
        rejects: &Rejects<'_>,
        source: &Source<'_>,
        merged: &mut Merged,
        upload: &mut Upload,
    ) -> Result<(), Failure> {
        let key = work_key(&rejects.import.id(), source.name);
        let found = self.blobs.read_from(&key, None, 0).await?;
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
                let (number, line) = rejects.merged_line(line, source.before)?;
                if !rejects.has_room(merged, u64::try_from(line.len()).unwrap_or(u64::MAX)) {
                    return Ok(());
                }
                upload.push(&line).await?;
                merged.last_line = number;
            }
            if bytes.is_none() {
                return Ok(());
            }
        }
    }
}

impl Rejects<'_> {
    /// The number and the content of a line of a merged file.
    fn merged_line(&self, line: &[u8], before: u64) -> Result<(u64, Vec<u8>), Failure> {
        let reject = serde_json::from_slice(line);
        let mut reject: Reject = reject.map_err(|_| Failure::Unreadable)?;
        reject.rejected.line_number += before;
        if self.anonymous && reject.rejected.rejection.error == NOT_JSON {
            // It may be a part of an anonymous event.
            reject.line = None;
        }
        let mut line = serde_json::to_vec(&reject).map_err(|_| Failure::Unreadable)?;
        line.push(b'\n');
        Ok((reject.rejected.line_number, line))
    }
}
