//! The files of rejects beside an imported one, made of those that workers left.
//!
//! How much goes into each is told by the workers' files alone. So two that merge the same rejects write
//! the same, and whoever goes on where another stopped leaves no gap.

use hearback_domain::import::{LONGEST_LINE, Reject};
use hearback_domain::lines::Lines;
use hearback_storage::files::{Upload, beside, rejects_name, work_key};
use hearback_storage::imports::{ImportCore, PieceState};
use serde::{Deserialize, Serialize};

use super::piece::NOT_JSON;
use super::{Failure, Importer};

/// Files of workers that are merged into one, at most: each is a call.
const MOST_SOURCES: usize = 2_000;
/// Longest line of rejects: a line of the file may take twice its length as JSON within JSON, and six
/// times if it is of control characters.
const LONGEST_REJECT: usize = 8 * LONGEST_LINE;

/// How far the rejects of an import are merged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Merged {
    /// Files that lie beside the imported one.
    pub files: u64,
    /// Files of workers that are in them.
    pub sources: usize,
}

/// The rejects of an import, as its workers left them.
pub(super) struct Rejects<'a> {
    import: &'a ImportCore,
    sources: Vec<Source<'a>>,
    /// Whether an event in the file asks for anonymity.
    anonymous: bool,
}

/// A worker's file of rejects.
struct Source<'a> {
    name: &'a str,
    /// Lines of the imported file before the piece.
    before: u64,
}

impl<'a> Rejects<'a> {
    /// Those of these pieces, which are all.
    pub(super) fn of(import: &'a ImportCore, pieces: &'a [PieceState]) -> Self {
        let mut sources = Vec::new();
        let mut before = 0;
        for piece in pieces {
            let names = piece.rejects.iter();
            sources.extend(names.map(|name| Source { name, before }));
            before += piece.counts.lines;
        }
        Self {
            import,
            sources,
            anonymous: pieces.iter().any(|piece| piece.anonymous),
        }
    }

    /// Whether nothing is left to merge.
    pub(super) fn are_merged(&self, merged: Merged) -> bool {
        merged.sources >= self.sources.len()
    }
}

/// The key of a file of rejects, by its number from 1.
pub(super) fn rejects_key(import: &ImportCore, number: u64) -> String {
    beside(&import.key, &rejects_name(number))
}

impl Importer {
    /// Stores one file more of rejects, each with the number that its line has in the imported file.
    pub(super) async fn merge_more(
        &self,
        rejects: &Rejects<'_>,
        merged: Merged,
    ) -> Result<Merged, Failure> {
        let Merged { mut files, sources } = merged;
        files += 1;
        let mut upload = self.blobs.upload(rejects_key(rejects.import, files));
        let mut size = 0;
        let mut taken = 0;
        for source in rejects.sources.iter().skip(sources).take(MOST_SOURCES) {
            size += self.merge(rejects, source, &mut upload).await?;
            taken += 1;
            if size >= self.rejects_file {
                break;
            }
        }
        upload.finish().await?;
        Ok(Merged {
            files,
            sources: sources + taken,
        })
    }

    /// Adds a worker's file, and answers how many bytes that were.
    async fn merge(
        &self,
        rejects: &Rejects<'_>,
        source: &Source<'_>,
        upload: &mut Upload,
    ) -> Result<usize, Failure> {
        let key = work_key(&rejects.import.id(), source.name);
        let found = self.blobs.read_from(&key, None, 0).await?;
        let (_, mut body) = found.ok_or(Failure::Body)?;
        let mut lines = Lines::new(LONGEST_REJECT);
        let mut size = 0;
        loop {
            let bytes = body.next().await.transpose().map_err(|_| Failure::Body)?;
            match &bytes {
                Some(bytes) => lines.push(bytes),
                None => lines.end(),
            }
            while let Some(line) = lines.next_line() {
                let line = line.content.ok_or(Failure::Unreadable)?;
                let line = rejects.merged_line(line, source.before)?;
                upload.push(&line).await?;
                size += line.len();
            }
            if bytes.is_none() {
                return Ok(size);
            }
        }
    }
}

impl Rejects<'_> {
    /// A worker's line as it is kept.
    fn merged_line(&self, line: &[u8], before: u64) -> Result<Vec<u8>, Failure> {
        let reject = serde_json::from_slice(line);
        let mut reject: Reject = reject.map_err(|_| Failure::Unreadable)?;
        reject.rejected.line_number += before;
        if self.anonymous && reject.rejected.rejection.error == NOT_JSON {
            // It may be a part of an event that asks for it elsewhere.
            reject.line = None;
        }
        let mut line = serde_json::to_vec(&reject).map_err(|_| Failure::Unreadable)?;
        line.push(b'\n');
        Ok(line)
    }
}
