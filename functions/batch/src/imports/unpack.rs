//! A packed file, unpacked into files of whole lines, which are worked off side by side.
//!
//! A packed file can be read from its start only. Where time runs out, the rest is unpacked by reading
//! again what came before, and passing over it.

use chrono::{DateTime, Utc};
use hearback_domain::import::{LONGEST_LINE, PIECE};
use hearback_domain::lines::{Line, Lines};
use hearback_storage::files::work_key;
use hearback_storage::imports::{ImportId, ImportRow};
use hearback_storage::unpacked::{Broken, Unpacked};

use super::piece::GONE;
use super::task::{Piece, Task, Unpacking, Work};
use super::{Failure, Importer};

/// Bytes that are unpacked at once.
const CHUNK: usize = 64 * 1024;

/// The piece that is filled.
struct Filling {
    id: ImportId,
    number: u64,
    bytes: Vec<u8>,
}

impl Importer {
    /// Unpacks what comes behind what is unpacked into further pieces.
    pub(super) async fn unpack(
        &self,
        row: &ImportRow,
        Unpacking { skip, next }: Unpacking,
        until: Option<DateTime<Utc>>,
    ) -> Result<(), Failure> {
        let id = row.core.id();
        if row.pieces.is_some() {
            return self.finish_if_done(&id, until).await;
        }
        let store = &self.intake.store;
        let found = self
            .blobs
            .read_from(&row.core.key, row.core.version.as_deref(), 0)
            .await?;
        let Some((_, body)) = found.filter(|(etag, _)| *etag == row.core.etag) else {
            store.note_import_pieces(&id, next - 1, Some(GONE)).await?;
            return self.finish_if_done(&id, until).await;
        };
        let mut unpacked = Unpacked::new(row.core.packing, body);
        let mut lines = if skip == 0 {
            Lines::new(LONGEST_LINE)
        } else {
            Lines::behind(skip - 1, LONGEST_LINE)
        };
        let mut at = 0;
        let mut chunk = vec![0; CHUNK];
        let mut filling = Filling {
            id: id.clone(),
            number: next,
            bytes: Vec::new(),
        };
        let mut damage = None;
        loop {
            let read = match unpacked.read(&mut chunk).await {
                Ok(0) => break,
                Ok(read) => chunk.get(..read).unwrap_or_default(),
                Err(Broken::Body) => return Err(Failure::Body),
                Err(Broken::Packing) => {
                    damage = Some(format!("it cannot be unpacked beyond {at} bytes"));
                    break;
                }
            };
            let wanted = skip.saturating_sub(1).saturating_sub(at);
            at += u64::try_from(read.len()).unwrap_or_default();
            let passed = usize::try_from(wanted)
                .unwrap_or(usize::MAX)
                .min(read.len());
            lines.push(read.get(passed..).unwrap_or_default());
            if let Some(skip) = self.fill(&mut lines, &mut filling, until).await? {
                let next = filling.number;
                let unpacked = Unpacking { skip, next };
                return self.send([Task::Work(id, Work::Unpack(unpacked))]).await;
            }
        }
        if damage.is_none() {
            lines.end();
        }
        self.fill(&mut lines, &mut filling, None).await?;
        if !filling.bytes.is_empty() {
            self.put_piece(&mut filling).await?;
        }
        let pieces = filling.number - 1;
        store
            .note_import_pieces(&id, pieces, damage.as_deref())
            .await?;
        self.finish_if_done(&id, until).await
    }

    /// Fills pieces with the lines that are whole. If time is up, answers where the first line begins that
    /// is in none.
    async fn fill(
        &self,
        lines: &mut Lines,
        filling: &mut Filling,
        until: Option<DateTime<Utc>>,
    ) -> Result<Option<u64>, Failure> {
        while let Some(Line {
            offset, content, ..
        }) = lines.next_line()
        {
            if u64::try_from(filling.bytes.len()).unwrap_or(u64::MAX) >= PIECE {
                self.put_piece(filling).await?;
                if self.is_over(until) {
                    return Ok(Some(offset));
                }
            }
            match content {
                Some(line) => filling.bytes.extend_from_slice(line),
                // As long as it has to be to be refused for it.
                None => filling
                    .bytes
                    .extend(std::iter::repeat_n(b'-', LONGEST_LINE + 1)),
            }
            filling.bytes.push(b'\n');
        }
        Ok(None)
    }

    async fn put_piece(&self, filling: &mut Filling) -> Result<(), Failure> {
        let bytes = std::mem::take(&mut filling.bytes);
        let piece = Piece {
            number: filling.number,
            from: 0,
            to: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            unpacked: true,
        };
        let key = work_key(&filling.id, &piece.file());
        self.blobs.put_file(&key, bytes).await?;
        filling.number += 1;
        let id = filling.id.clone();
        self.send([Task::Work(id, Work::Piece(piece))]).await
    }
}
