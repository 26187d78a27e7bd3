//! Reads a piece line by line, and stores the events.

use chrono::{DateTime, Utc};
use futures::future::FutureExt;
use hearback_domain::events::event::FilePosition;
use hearback_domain::events::import::MAX_LINE_BYTES;
use hearback_domain::text::lines::{Line, Lines};
use hearback_storage::WriteToken;
use hearback_storage::files::{ByteStream, work_key};
use hearback_storage::imports::ImportCore;

use super::rejects::REJECTS_IN_MEMORY;
use super::settle::{Completed, InProgress};
use super::worker::{PendingLine, Worker};
use crate::imports::Failure;
use crate::imports::line::{ReadLine, is_blank, note_settled_line, read_event, store_event};
use crate::order::Order;
use crate::pace::MAX_CALLS;

/// Lines that wait for an earlier one, at most. Blank lines are settled immediately, while an event may take long.
const MAX_PENDING: usize = 1_024;

/// How reading ended.
pub(super) enum Ended {
    /// No line is left.
    Complete,
    /// The time is up.
    OutOfTime,
    /// The file was replaced or deleted.
    Gone,
}

impl Worker<'_> {
    /// Reads lines from `end` on, and stores their events. Earlier lines are read again only for their dedupe keys:
    /// later events with the same key refer to the first.
    pub(super) async fn read(&mut self, until: Option<DateTime<Utc>>) -> Result<Ended, Failure> {
        let settled = self.end;
        // Reading starts one byte earlier: the piece's first line begins after a line end.
        let (mut lines, from) = match self.piece.from.checked_sub(1) {
            None => (Lines::new(MAX_LINE_BYTES), 0),
            Some(before) => (Lines::after(before, MAX_LINE_BYTES), before),
        };
        let Some(mut body) = self.open(from).await? else {
            return Ok(Ended::Gone);
        };
        let importer = self.importer;
        let intake = &importer.intake;
        let caller = self.caller.clone();
        let received_at = self.import.started_at;
        let mut order = Order::default();
        let mut in_progress = InProgress::new();
        let before = self.state.counts.lines;
        let mut number = before;
        loop {
            let bytes = body.next().await.transpose().map_err(|_| Failure::Body)?;
            match &bytes {
                Some(bytes) => lines.push(bytes),
                None => lines.end(),
            }
            while let Some(line) = lines.next_line() {
                if line.offset >= self.piece.to {
                    self.settle(&mut in_progress, 0).await?;
                    return Ok(Ended::Complete);
                }
                if line.offset < settled {
                    let by = self.token(line.offset);
                    let content = line.content.unwrap_or_default();
                    note_settled_line(intake, &caller, received_at, &mut order, by, content).await;
                    continue;
                }
                // Each worker settles at least one line, so that the piece makes progress.
                if self.importer.is_out_of_time(until) && number > before {
                    self.settle(&mut in_progress, 0).await?;
                    return Ok(Ended::OutOfTime);
                }
                number += 1;
                if line.content.is_some_and(is_blank) {
                    self.note_blank(line.end);
                    let left = in_progress.len().saturating_sub(1);
                    if self.pending.len() >= MAX_PENDING {
                        self.settle(&mut in_progress, left).await?;
                    }
                    continue;
                }
                let (by, read) = (self.token(line.offset), self.add_pending(number, line));
                let event = read_event(intake, &caller, received_at, &mut order, read).await;
                let stored = store_event(intake, by, number, event);
                in_progress.push(stored.map(|line| line.map(Completed::Stored)).boxed());
                self.settle(&mut in_progress, 2 * MAX_CALLS).await?;
                if self.rejects_size > REJECTS_IN_MEMORY {
                    // Rejects after a line in progress cannot be stored yet.
                    self.settle(&mut in_progress, 0).await?;
                    self.put_rejects().await?;
                }
            }
            // A line that began before the piece may end after it: then no line begins in the piece.
            if bytes.is_none() || lines.skips_until(self.piece.to) {
                self.settle(&mut in_progress, 0).await?;
                return Ok(Ended::Complete);
            }
        }
    }

    /// The bytes of the piece's file from an offset on; `None` if it was replaced or deleted.
    async fn open(&self, from: u64) -> Result<Option<ByteStream>, Failure> {
        let blobs = &self.importer.blobs;
        if self.piece.unpacked {
            let key = work_key(&self.id, &self.piece.file());
            let found = blobs.read_from(&key, None, from).await?;
            return Ok(found.map(|(_, body)| body));
        }
        let ImportCore {
            key, version, etag, ..
        } = self.import;
        let found = blobs.read_from(key, version.as_deref(), from).await?;
        Ok(found
            .filter(|(found, _)| found == etag)
            .map(|(_, body)| body))
    }

    /// The token of the line at an offset: the same for every worker.
    fn token(&self, offset: u64) -> WriteToken {
        let (number, offset) = (self.piece.number.to_string(), offset.to_string());
        WriteToken::named(["import", &self.id.id, &number, &offset])
    }

    fn add_pending(&mut self, number: u64, line: Line<'_>) -> ReadLine {
        self.pending.push_back(PendingLine {
            end: line.end,
            outcome: None,
        });
        ReadLine {
            number,
            position: FilePosition {
                piece: self.piece.number,
                offset: line.offset,
            },
            content: line.content.map(<[u8]>::to_vec),
        }
    }
}
