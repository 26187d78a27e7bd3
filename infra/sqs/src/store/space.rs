//! Shrinks the file after a backlog: returns unused pages to the file system, a few at a time, so that no request waits
//! for long.

use rusqlite::Connection;

/// Unused pages that the file keeps: 1 MB.
const KEPT: i64 = 256;
/// Pages that one step returns: 4 MB.
const STEP: i64 = 1_024;
/// The `auto_vacuum` mode that returns pages in steps.
const INCREMENTAL: i64 = 2;

/// Enables incremental vacuum. A file that was created without it is rewritten once.
pub(super) fn prepare(database: &Connection) -> rusqlite::Result<()> {
    let mode: i64 = database.query_row("PRAGMA auto_vacuum", [], |row| row.get(0))?;
    if mode == INCREMENTAL {
        return Ok(());
    }
    database.pragma_update(None, "auto_vacuum", INCREMENTAL)?;
    database.execute_batch("VACUUM")
}

/// Returns some pages to the file system. Returns whether there are more.
pub(crate) fn give_back(database: &Connection) -> rusqlite::Result<bool> {
    let unused: i64 = database.query_row("PRAGMA freelist_count", [], |row| row.get(0))?;
    let spare = unused.saturating_sub(KEPT);
    if spare <= 0 {
        return Ok(false);
    }
    let mut step = database.prepare(&format!("PRAGMA incremental_vacuum({})", spare.min(STEP)))?;
    // Each row is a page that was returned.
    let mut pages = step.query([])?;
    while pages.next()?.is_some() {}
    Ok(spare > STEP)
}
