//! Imports of files of events: pieces, limits and the report.
//!
//! A file contains JSON Lines, plain or compressed with gzip or zstd. Workers process its pieces in parallel; the
//! import writes a report and a file of rejects next to the file. See docs/reference/imports.md.

use std::ops::{AddAssign, Range};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::events::submission::RejectionReason;

/// Maximum size of a line, in bytes: the same as that of an event in a request.
pub const MAX_LINE_BYTES: usize = 256 * 1024;
/// Size of a piece in bytes. Pieces are larger if the file would have more than [`MAX_PIECES`].
pub const PIECE_BYTES: u64 = 4 * 1024 * 1024;
/// Maximum number of pieces of a file.
pub const MAX_PIECES: u64 = 10_000;
/// Maximum number of errors in a report; the file of rejects has all.
pub const MAX_REPORTED_ERRORS: usize = 10;

/// Minimum number of bytes that a line counts towards the limits on a decompressed file, because blank lines take work,
/// too. Every event is longer.
pub const MIN_LINE_BYTES: u64 = 64;

/// Limits on the work and the output of one file, so that a small file cannot occupy the workers or fill the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum size of a decompressed file, in bytes.
    pub unpacked: u64,
    /// Maximum ratio of the decompressed to the compressed size. No file of distinct events compresses as well.
    pub ratio: u64,
    /// Decompressed bytes that are allowed whatever the ratio.
    pub always_unpacked: u64,
    /// Maximum number of lines in the files of rejects.
    pub rejects: u64,
    /// Maximum size of the files of rejects, in bytes.
    pub reject_bytes: u64,
    /// Maximum ratio of the size of the files of rejects to that of the imported file.
    pub reject_ratio: u64,
    /// Bytes of rejects that are allowed whatever the ratio.
    pub always_rejected: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            unpacked: 64 << 30,
            ratio: 200,
            always_unpacked: 64 << 20,
            rejects: 1_000_000,
            reject_bytes: 1 << 30,
            reject_ratio: 16,
            always_rejected: 1 << 20,
        }
    }
}

impl Bounds {
    /// Maximum decompressed size of a file of `size` bytes.
    #[must_use]
    pub fn max_unpacked_bytes(&self, size: u64) -> u64 {
        let by_ratio = size.saturating_mul(self.ratio).max(self.always_unpacked);
        by_ratio.min(self.unpacked)
    }

    /// The error for a compressed file of `size` bytes that exceeds the limit.
    #[must_use]
    pub fn unpack_limit_message(&self, size: u64) -> String {
        let most = self.max_unpacked_bytes(size);
        if most == self.unpacked {
            format!("a packed file is unpacked to {most} bytes at most")
        } else {
            format!(
                "a packed file is unpacked to {} times its size or {} bytes at most, here {most} bytes",
                self.ratio, self.always_unpacked
            )
        }
    }

    /// Maximum size of the files of rejects of a file of `size` bytes.
    #[must_use]
    pub fn max_reject_bytes(&self, size: u64) -> u64 {
        let by_size = size.saturating_mul(self.reject_ratio);
        by_size
            .saturating_add(self.always_rejected)
            .min(self.reject_bytes)
    }

    /// Maximum size of the rejects of a piece of `piece` bytes.
    #[must_use]
    pub fn max_reject_bytes_of_piece(&self, size: u64, piece: u64) -> u64 {
        let by_piece = piece.max(PIECE_BYTES).saturating_mul(2);
        self.max_reject_bytes(size).min(by_piece)
    }
}

/// The compression of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Packing {
    /// Not compressed.
    Plain,
    /// gzip (RFC 1952), with any number of members.
    Gzip,
    /// Zstandard (RFC 8878), with any number of frames.
    Zstd,
}

impl Packing {
    /// Detects the compression from the first bytes of a file. No event begins with these bytes.
    #[must_use]
    pub fn of(first: &[u8]) -> Self {
        if first.starts_with(&[0x1F, 0x8B]) {
            Self::Gzip
        } else if first.starts_with(&[0x28, 0xB5, 0x2F, 0xFD]) {
            Self::Zstd
        } else {
            Self::Plain
        }
    }
}

/// The byte ranges of the pieces of a file of `size` bytes, in order.
#[must_use]
pub fn pieces(size: u64) -> Vec<Range<u64>> {
    let each = size.div_ceil(MAX_PIECES).max(PIECE_BYTES);
    (0..size.div_ceil(each))
        .map(|number| number * each..size.min((number + 1) * each))
        .collect()
}

/// The outcome of lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// All lines, including blank ones.
    pub lines: u64,
    /// Events that were stored.
    pub queued: u64,
    /// Events whose `feedbackId` existed already.
    pub duplicates: u64,
    /// Lines that are not valid events.
    pub rejected: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.lines += other.lines;
        self.queued += other.queued;
        self.duplicates += other.duplicates;
        self.rejected += other.rejected;
    }
}

impl Counts {
    /// What is left without `part`.
    #[must_use]
    pub fn without(self, part: Self) -> Self {
        Self {
            lines: self.lines.saturating_sub(part.lines),
            queued: self.queued.saturating_sub(part.queued),
            duplicates: self.duplicates.saturating_sub(part.duplicates),
            rejected: self.rejected.saturating_sub(part.rejected),
        }
    }

    /// Lines that are not blank.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.queued + self.duplicates + self.rejected
    }
}

/// A line that is not a valid event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedLine {
    /// The line number, from 1.
    pub line_number: u64,
    /// The errors.
    #[serde(flatten)]
    pub rejection: RejectionReason,
}

/// A line of the file of rejects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reject {
    /// The line number and the errors.
    #[serde(flatten)]
    pub rejected: RejectedLine,
    /// The rejected line. For an anonymous event only its structure; `null` if that cannot be parsed, or if the line is
    /// too long.
    pub line: Option<String>,
}

/// The report of an import.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportReport {
    /// The file, an `s3://` URI.
    pub file: String,
    /// The compression.
    pub packing: Packing,
    /// The size of the file as stored, in bytes.
    pub bytes: u64,
    /// Why and where reading stopped, if the file could not be read to its end; or what the report does not list.
    pub damage: Option<String>,
    /// The outcome of its lines.
    #[serde(flatten)]
    pub counts: Counts,
    /// When the import began.
    pub started_at: DateTime<Utc>,
    /// When the last piece was processed.
    pub finished_at: DateTime<Utc>,
    /// Events per second, including rejected ones.
    pub events_per_second: f64,
    /// The first rejected lines.
    pub first_errors: Vec<RejectedLine>,
    /// The file of rejects, an `s3://` URI; `null` if there is none.
    pub rejects: Option<String>,
    /// Further files of rejects, in order, if one is not enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_rejects: Vec<String>,
    /// Number of rejected lines that are in none of these files.
    #[serde(default)]
    pub rejects_left_out: u64,
    /// The limit that was exceeded, and where the files end; `null` if all rejects are in the files.
    #[serde(default)]
    pub rejects_bound: Option<String>,
    /// Whether the imported file was deleted, because it contains anonymous events.
    pub file_deleted: bool,
}

/// Events per second between two times.
#[must_use]
pub fn rate(events: u64, from: DateTime<Utc>, to: DateTime<Utc>) -> f64 {
    let seconds = (to - from).as_seconds_f64().max(0.001);
    let events = u32::try_from(events).map_or(f64::from(u32::MAX), f64::from);
    (events / seconds * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_cover_the_file_without_gaps() {
        for size in [
            0,
            1,
            PIECE_BYTES - 1,
            PIECE_BYTES,
            PIECE_BYTES + 1,
            7 * PIECE_BYTES,
            1 << 40,
        ] {
            let pieces = pieces(size);
            let most = usize::try_from(MAX_PIECES).unwrap();
            assert!(pieces.len() <= most, "{size}");
            let mut next = 0;
            for piece in pieces {
                assert!(piece.start == next && piece.end > next, "{size}");
                next = piece.end;
            }
            assert_eq!(next, size);
        }
    }

    #[test]
    fn the_output_of_a_small_file_is_limited() {
        let bounds = Bounds::default();
        for size in [0, 1_000, 130_000, 1 << 30, 1 << 40, u64::MAX] {
            let unpacked = bounds.max_unpacked_bytes(size);
            assert!(unpacked <= bounds.unpacked, "{size}");
            assert!(
                unpacked <= (64 << 20) || unpacked / 200 <= size,
                "{size}: {unpacked}"
            );
            let rejects = bounds.max_reject_bytes(size);
            assert!(rejects <= bounds.reject_bytes, "{size}");
            assert!(
                rejects <= (1 << 20) || (rejects - (1 << 20)) / 16 <= size,
                "{size}: {rejects}"
            );
            assert!(
                bounds.max_reject_bytes_of_piece(size, PIECE_BYTES) <= rejects.min(2 * PIECE_BYTES)
            );
        }
    }

    #[test]
    fn the_compression_is_detected_from_the_first_bytes() {
        assert_eq!(Packing::of(b"\x1F\x8B\x08"), Packing::Gzip);
        assert_eq!(Packing::of(b"\x28\xB5\x2F\xFD\x00"), Packing::Zstd);
        assert_eq!(Packing::of(b"{\"feedbackId\""), Packing::Plain);
        assert_eq!(Packing::of(b""), Packing::Plain);
    }
}
