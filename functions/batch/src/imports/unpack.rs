//! Unpacks a packed file into files of whole lines, which are processed in parallel.
//!
//! A packed file can only be read from its start. A step that continues another reads and skips what is unpacked
//! already.
//!
//! The unpacked size is bounded, by the size of the file among others ([`Bounds::max_unpacked_bytes`]): a small file must not
//! keep the workers busy for hours. Each line counts, blank lines too.
//!
//! [`Bounds::max_unpacked_bytes`]: hearback_domain::events::import::Bounds::max_unpacked_bytes

use chrono::{DateTime, Utc};
use hearback_domain::events::import::{MAX_LINE_BYTES, MIN_LINE_BYTES, PIECE_BYTES};
use hearback_domain::text::lines::{Line, Lines};
use hearback_storage::files::work_key;
use hearback_storage::imports::{ImportId, ImportRow};
use hearback_storage::unpacked::{UnpackError, Unpacked};

use super::piece::GONE;
use super::task::{Piece, Task, Unpacking, Work};
use super::{Failure, Importer};

/// Bytes of one read.
const CHUNK: usize = 64 * 1024;

/// The piece that lines are added to.
struct PieceBuilder {
    id: ImportId,
    /// How far the file is unpacked.
    next: Unpacking,
    bytes: Vec<u8>,
    /// What the lines of the piece count towards the bound, in bytes.
    counted: u64,
    /// The bound of what all lines count.
    bound: u64,
}

/// Why no further line is added.
enum Stopped {
    /// The time is up.
    OutOfTime,
    /// The next line is beyond what the file may unpack to.
    Bound,
}

/// How unpacking ended.
enum Ended {
    /// The time is up.
    OutOfTime,
    /// Nothing more is unpacked.
    Finished(Reason),
}

/// Why nothing more is unpacked.
enum Reason {
    /// The end of the file.
    End,
    /// The file is damaged after this many unpacked bytes.
    Damaged(u64),
    /// The bound of the file.
    Bound,
}

impl Importer {
    /// Unpacks the file, or the rest of it, into pieces.
    pub(super) async fn unpack(
        &self,
        row: &ImportRow,
        start: Unpacking,
        until: Option<DateTime<Utc>>,
    ) -> Result<(), Failure> {
        let id = row.core.id();
        if row.pieces.is_some() {
            return self.finish_if_done(&id, until).await;
        }
        let found = self
            .blobs
            .read_from(&row.core.key, row.core.version.as_deref(), 0)
            .await?;
        let Some((_, body)) = found.filter(|(etag, _)| *etag == row.core.etag) else {
            return self
                .note_unpacked(&id, start.next - 1, Some(GONE), until)
                .await;
        };
        let mut builder = PieceBuilder {
            id: id.clone(),
            next: start,
            bytes: Vec::new(),
            counted: 0,
            bound: self.bounds.max_unpacked_bytes(row.core.size),
        };
        let unpacked = Unpacked::new(row.core.packing, body);
        match self.unpack_rest(unpacked, &mut builder, until).await? {
            Ended::OutOfTime => {
                let rest = Task::Work(id.clone(), Work::Unpack(builder.next));
                self.send(&id.tenant, [rest]).await
            }
            Ended::Finished(reason) => {
                if !builder.bytes.is_empty() {
                    self.put_piece(&mut builder).await?;
                }
                let damage = match reason {
                    Reason::End => None,
                    Reason::Damaged(at) => Some(format!("it cannot be unpacked beyond {at} bytes")),
                    Reason::Bound => Some(self.bound_message(row, &builder)),
                };
                let pieces = builder.next.next - 1;
                self.note_unpacked(&id, pieces, damage.as_deref(), until)
                    .await
            }
        }
    }

    /// Skips what is in pieces already, and unpacks the rest into further pieces.
    async fn unpack_rest(
        &self,
        mut unpacked: Unpacked,
        builder: &mut PieceBuilder,
        until: Option<DateTime<Utc>>,
    ) -> Result<Ended, Failure> {
        let before = builder.next.skip.checked_sub(1);
        let mut lines = match before {
            None => Lines::new(MAX_LINE_BYTES),
            Some(before) => Lines::after(before, MAX_LINE_BYTES),
        };
        let mut end = None;
        let mut at = 0;
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = match unpacked.read(&mut chunk).await {
                Ok(0) => {
                    lines.end();
                    let stopped = self.add_lines(&mut lines, builder, None).await?;
                    let reason = stopped.map_or(Reason::End, |_| Reason::Bound);
                    return Ok(Ended::Finished(reason));
                }
                Ok(read) => chunk.get(..read).unwrap_or_default(),
                Err(UnpackError::Body) => return Err(Failure::Body),
                Err(UnpackError::Packing) => return Ok(Ended::Finished(Reason::Damaged(at))),
            };
            let to_skip = before.unwrap_or_default().saturating_sub(at);
            at += u64::try_from(read.len()).unwrap_or_default();
            let to_skip = usize::try_from(to_skip).unwrap_or(usize::MAX);
            let Some(new) = read.get(to_skip..).filter(|new| !new.is_empty()) else {
                continue;
            };
            // The time begins after what is skipped, so that each step makes progress.
            let end = *end.get_or_insert_with(|| self.slice_end(until));
            lines.push(new);
            match self.add_lines(&mut lines, builder, Some(end)).await? {
                Some(Stopped::OutOfTime) => return Ok(Ended::OutOfTime),
                // A line without an end counts only here.
                None if at <= builder.bound => {}
                None | Some(Stopped::Bound) => return Ok(Ended::Finished(Reason::Bound)),
            }
        }
    }

    /// Notes how many pieces there are, and any damage.
    async fn note_unpacked(
        &self,
        id: &ImportId,
        pieces: u64,
        damage: Option<&str>,
        until: Option<DateTime<Utc>>,
    ) -> Result<(), Failure> {
        let store = &self.intake.store;
        store.note_import_pieces(id, pieces, damage).await?;
        self.finish_if_done(id, until).await
    }

    /// Which bound was reached, and where.
    fn bound_message(&self, row: &ImportRow, builder: &PieceBuilder) -> String {
        let why = self.bounds.unpack_limit_message(row.core.size);
        let Unpacking { skip, lines, .. } = builder.next;
        format!(
            "{why}, and each line counts as {MIN_LINE_BYTES} bytes or more: reading ended after line {lines}, \
             {skip} bytes of it unpacked"
        )
    }

    /// Adds whole lines to pieces, and returns why it stopped before the last one.
    async fn add_lines(
        &self,
        lines: &mut Lines,
        builder: &mut PieceBuilder,
        until: Option<DateTime<Utc>>,
    ) -> Result<Option<Stopped>, Failure> {
        while let Some(Line {
            offset,
            end,
            content,
        }) = lines.next_line()
        {
            let counts = (end - offset).max(MIN_LINE_BYTES);
            if builder.next.counted + counts > builder.bound {
                return Ok(Some(Stopped::Bound));
            }
            if builder.counted >= PIECE_BYTES {
                self.put_piece(builder).await?;
                if self.is_out_of_time(until) {
                    return Ok(Some(Stopped::OutOfTime));
                }
            }
            match content {
                Some(line) => builder.bytes.extend_from_slice(line),
                // A placeholder that is rejected for its length.
                None => builder
                    .bytes
                    .extend(std::iter::repeat_n(b'-', MAX_LINE_BYTES + 1)),
            }
            builder.bytes.push(b'\n');
            builder.counted += counts;
            builder.next.counted += counts;
            builder.next.lines += 1;
            builder.next.skip = end;
        }
        Ok(None)
    }

    async fn put_piece(&self, builder: &mut PieceBuilder) -> Result<(), Failure> {
        let bytes = std::mem::take(&mut builder.bytes);
        let piece = Piece {
            number: builder.next.next,
            from: 0,
            to: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            unpacked: true,
        };
        let key = work_key(&builder.id, &piece.file());
        self.blobs.put_file(&key, bytes).await?;
        builder.next.next += 1;
        builder.counted = 0;
        let task = Task::Work(builder.id.clone(), Work::Piece(piece));
        self.send(&builder.id.tenant, [task]).await
    }
}
