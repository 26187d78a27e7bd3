//! Keeps the rejects of a piece, up to a bound, and stores them in files.

use hearback_domain::events::import::{MAX_REPORTED_ERRORS, Reject};
use hearback_storage::files::work_key;
use uuid::Uuid;

use super::worker::Worker;
use crate::imports::Failure;
use crate::imports::line::size_of;

/// Rejects are stored once those in memory reach this size, in bytes.
pub(super) const REJECTS_IN_MEMORY: usize = 4 * 1024 * 1024;

impl Worker<'_> {
    /// Keeps a reject, if it is within the bound of the piece.
    pub(super) fn keep_reject(&mut self, reject: Reject) {
        let bounds = &self.importer.bounds;
        let piece = self.piece.to.saturating_sub(self.piece.from);
        let bound = bounds.max_reject_bytes_of_piece(self.import.size, piece);
        let bytes = u64::try_from(size_of(&reject)).unwrap_or(u64::MAX);
        let state = &mut self.state;
        if state.rejects_left_out > 0 || state.reject_bytes + bytes > bound {
            state.rejects_left_out += 1;
            self.rejects_size = self.rejects_size.saturating_sub(size_of(&reject));
            return;
        }
        state.reject_bytes += bytes;
        self.rejects.push(reject);
    }

    /// Stores the rejects that are in no file yet.
    pub(super) async fn put_rejects(&mut self) -> Result<(), Failure> {
        if self.rejects.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        for reject in &self.rejects {
            serde_json::to_writer(&mut bytes, reject).map_err(|_| Failure::Unreadable)?;
            bytes.push(b'\n');
        }
        // A unique name, so that concurrent workers on the piece do not overwrite each other's files.
        let name = format!("rejects-{:010}-{}.jsonl", self.piece.number, Uuid::new_v4());
        let blobs = &self.importer.blobs;
        blobs.put_file(&work_key(&self.id, &name), bytes).await?;
        self.state.rejects.push(name);
        // Cleared only now: if storing fails, the rejects are stored later.
        let stored = std::mem::take(&mut self.rejects).into_iter();
        let first = MAX_REPORTED_ERRORS.saturating_sub(self.state.first_errors.len());
        let errors = stored.map(|reject| reject.rejected);
        self.state.first_errors.extend(errors.take(first));
        self.rejects_size = 0;
        Ok(())
    }
}
