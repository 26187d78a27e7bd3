//! The write-ahead log, which keeps the pages from before a deletion until it is truncated.
//!
//! `secure_delete` overwrites deleted data with zeros in the database. Together with the truncation of the log, it
//! removes a deleted message from all files within a few seconds.

use std::time::{Duration, Instant};

use rusqlite::Connection;

/// How long after a change the log is truncated. That costs two syncs, and a third with the next commit, for any number
/// of changes.
pub(crate) const TRUNCATE_AFTER: Duration = Duration::from_secs(5);

/// How long the truncation waits for another process. Meanwhile the queues wait.
const TRUNCATE_TIMEOUT: Duration = Duration::from_millis(100);
/// How long any other statement waits for another process.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// When to truncate the log.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// The connection's change count at the last check.
    changes: u64,
    due: Option<Instant>,
}

impl Log {
    /// When to truncate the log, if anything has changed since the last time.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Truncates the log if it is due. Returns whether it did.
    pub(crate) fn keep(&mut self, database: &Connection, now: Instant) -> rusqlite::Result<bool> {
        let changes = database.total_changes();
        if self.changes != changes {
            self.changes = changes;
            self.due.get_or_insert(now + TRUNCATE_AFTER);
        }
        if self.due.is_none_or(|due| due > now) {
            return Ok(false);
        }
        self.due = Some(now + TRUNCATE_AFTER);
        let truncated = truncate(database)?;
        if truncated {
            self.due = None;
        }
        Ok(truncated)
    }
}

/// Checkpoints and truncates the log. Returns `false` if another process reads the file for longer than
/// [`TRUNCATE_TIMEOUT`].
pub(crate) fn truncate(database: &Connection) -> rusqlite::Result<bool> {
    database.busy_timeout(TRUNCATE_TIMEOUT)?;
    let busy = database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
        row.get::<_, bool>(0)
    });
    database.busy_timeout(BUSY_TIMEOUT)?;
    Ok(!busy?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_truncated_every_five_seconds_at_most() -> rusqlite::Result<()> {
        let database = Connection::open_in_memory()?;
        database.execute_batch("CREATE TABLE content (body)")?;
        let mut log = Log::default();
        let start = Instant::now();
        let mut truncated = Vec::new();
        for millisecond in 0..30_000 {
            let now = start + Duration::from_millis(millisecond);
            // A thousand changes a second, for twenty seconds.
            if millisecond < 20_000 {
                database.execute("INSERT INTO content VALUES (1)", [])?;
            }
            if log.keep(&database, now)? {
                truncated.push(millisecond);
            }
        }
        assert_eq!(truncated, [5_000, 10_001, 15_002, 20_003]);
        assert_eq!(log.due(), None, "nothing has changed since");
        Ok(())
    }
}
