//! The import of a file of events: how it is divided, and what is told of it.
//!
//! Source: product specification, section 7: JSON Lines files, plain, gzip or zstd, of any size, in
//! parallel pieces, with a report and a file of rejects beside them.

use std::ops::{AddAssign, Range};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::submission::Rejection;

/// Longest line, in bytes: what one event may have when it is posted.
pub const LONGEST_LINE: usize = 256 * 1024;
/// Bytes of a file that one worker takes, unless the file is so large that there would be too many
/// pieces.
pub const PIECE: u64 = 4 * 1024 * 1024;
/// Most pieces of a file.
pub const MOST_PIECES: u64 = 10_000;
/// Errors that a report shows; the file of rejects has all.
pub const FIRST_ERRORS: usize = 10;

/// How a file is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Packing {
    /// It is not.
    Plain,
    /// gzip (RFC 1952), with any number of members.
    Gzip,
    /// Zstandard (RFC 8878), with any number of frames.
    Zstd,
}

impl Packing {
    /// By the first bytes of a file. No event begins like the packed ones.
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

/// The pieces of a file of so many bytes, in their order.
#[must_use]
pub fn pieces(size: u64) -> Vec<Range<u64>> {
    let each = size.div_ceil(MOST_PIECES).max(PIECE);
    (0..size.div_ceil(each))
        .map(|number| number * each..size.min((number + 1) * each))
        .collect()
}

/// What became of lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Lines, blank ones included.
    pub lines: u64,
    /// Events that were stored.
    pub queued: u64,
    /// Events whose `feedbackId` was known.
    pub duplicates: u64,
    /// Lines that are no event.
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
    /// Lines that are not blank.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.queued + self.duplicates + self.rejected
    }
}

/// A line that is no event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedLine {
    /// Its number in the file, from 1.
    pub line_number: u64,
    /// Why.
    #[serde(flatten)]
    pub rejection: Rejection,
}

/// A line that is no event, as the file of rejects has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reject {
    /// Which line it is, and why.
    #[serde(flatten)]
    pub rejected: RejectedLine,
    /// The line; of an event that asks for anonymity only its shape, and `null` if not even that
    /// can be told, or if the line is too long.
    pub line: Option<String>,
}

/// What an import came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The file, an `s3://` URI.
    pub file: String,
    /// How it was packed.
    pub packing: Packing,
    /// Its size as it lay there, in bytes.
    pub bytes: u64,
    /// What is wrong with the file, if it could not be read to its end.
    pub damage: Option<String>,
    /// What became of its lines.
    #[serde(flatten)]
    pub counts: Counts,
    /// When it was begun.
    pub started_at: DateTime<Utc>,
    /// When the last piece was done.
    pub finished_at: DateTime<Utc>,
    /// Events a second, those that were rejected included.
    pub events_per_second: f64,
    /// The first lines that are no event.
    pub first_errors: Vec<RejectedLine>,
    /// All of them, an `s3://` URI; `null` if there is none.
    pub rejects: Option<String>,
    /// Where they go on, in this order, if they are too many for one file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_rejects: Vec<String>,
    /// Whether the file was deleted, because events in it ask for anonymity.
    pub file_deleted: bool,
}

/// Events a second, between two times.
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
    fn a_file_is_divided_without_a_gap() {
        for size in [0, 1, PIECE - 1, PIECE, PIECE + 1, 7 * PIECE, 1 << 40] {
            let pieces = pieces(size);
            let most = usize::try_from(MOST_PIECES).unwrap();
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
    fn a_packing_is_told_by_the_first_bytes() {
        assert_eq!(Packing::of(b"\x1F\x8B\x08"), Packing::Gzip);
        assert_eq!(Packing::of(b"\x28\xB5\x2F\xFD\x00"), Packing::Zstd);
        assert_eq!(Packing::of(b"{\"feedbackId\""), Packing::Plain);
        assert_eq!(Packing::of(b""), Packing::Plain);
    }
}
