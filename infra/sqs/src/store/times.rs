//! Adjusts stored times after the wall clock was set, or the engine was not running.

use rusqlite::{Connection, params};

/// Time in which the engine did not run counts for the retention up to this, in milliseconds. No consumer could
/// receive a message meanwhile, and it looks the same as a clock that was set forward.
const LONGEST_ABSENCE: i64 = 3_600_000;
/// How far the wall clock may be behind the last time that was stored, in milliseconds.
const TOLERANCE: i64 = 1_000;

/// Moves all times of all messages by this many milliseconds.
pub(crate) fn shift(database: &Connection, by: i64) -> rusqlite::Result<()> {
    database.execute(
        "UPDATE message SET sent_at = sent_at + ?1, visible_at = visible_at + ?1,
                            first_received_at = first_received_at + ?1,
                            last_received_at = last_received_at + ?1",
        [by],
    )?;
    Ok(())
}

/// Records that the engine ran at this time.
pub(crate) fn note(database: &Connection, now: i64) -> rusqlite::Result<()> {
    database.execute(
        "INSERT INTO seen (id, at) VALUES (1, ?1) ON CONFLICT (id) DO UPDATE SET at = ?1",
        [now],
    )?;
    Ok(())
}

/// Adjusts stored times when the file is opened. Returns by how many milliseconds the clock was set back.
pub(crate) fn resume(database: &Connection, now: i64) -> rusqlite::Result<i64> {
    let seen: Option<i64> = database.query_row(
        "SELECT max(at) FROM (
             SELECT at FROM seen
             UNION ALL SELECT max(sent_at) FROM message
             UNION ALL SELECT max(last_received_at) FROM message)",
        [],
        |row| row.get(0),
    )?;
    let absence = seen.map_or(0, |seen| now.saturating_sub(seen));
    if absence < -TOLERANCE {
        shift(database, absence)?;
    } else if absence > LONGEST_ABSENCE {
        database.execute(
            "UPDATE message SET sent_at = sent_at + ?1",
            params![absence],
        )?;
    }
    note(database, now)?;
    Ok(absence.saturating_neg().max(0))
}
