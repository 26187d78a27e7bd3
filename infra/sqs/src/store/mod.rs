//! The SQL: two tables for messages, one for queues.
//!
//! `message` has the short rows that a receive changes, and `content` what it never changes, so that
//! receiving a message of one megabyte does not write a megabyte.

mod due;
mod groups;
pub(crate) mod log;
pub(crate) mod messages;
pub(crate) mod queues;
pub(crate) mod receive;
pub(crate) mod space;
#[cfg(test)]
mod tests;
pub(crate) mod times;

use std::collections::BTreeSet;

use rusqlite::Connection;

use crate::{error::Error, name::QueueName};

/// Incremented with every change of [`SCHEMA`] or its additions.
const VERSION: i64 = 2;

/// Times are milliseconds since 1970, except the settings of a queue, which are seconds as on the
/// wire. Both keys are AUTOINCREMENT: a receipt handle names a message by number, and a number
/// used again would let an old handle delete a new message.
const SCHEMA: &str = "
CREATE TABLE queue (
    number              INTEGER PRIMARY KEY AUTOINCREMENT,
    name                TEXT NOT NULL UNIQUE,
    created_at          INTEGER NOT NULL,
    modified_at         INTEGER NOT NULL,
    visibility_timeout  INTEGER NOT NULL,
    retention           INTEGER NOT NULL,
    delay               INTEGER NOT NULL,
    wait                INTEGER NOT NULL,
    max_message_size    INTEGER NOT NULL,
    redrive_policy      TEXT
) STRICT;

CREATE TABLE message (
    number              INTEGER PRIMARY KEY AUTOINCREMENT,
    queue               INTEGER NOT NULL REFERENCES queue ON DELETE CASCADE,
    sent_at             INTEGER NOT NULL,
    -- The message can be received from this time on.
    visible_at          INTEGER NOT NULL,
    -- Receives from this queue, which the redrive policy limits.
    receives            INTEGER NOT NULL DEFAULT 0,
    -- Receives from this queue and those it came from.
    receive_count       INTEGER NOT NULL DEFAULT 0,
    first_received_at   INTEGER,
    last_received_at    INTEGER,
    -- ARN of the queue it was moved from.
    moved_from          TEXT
) STRICT;

CREATE INDEX message_by_visibility ON message (queue, visible_at, number, receives);
CREATE INDEX message_by_age ON message (queue, sent_at);

CREATE TABLE content (
    message             INTEGER PRIMARY KEY REFERENCES message ON DELETE CASCADE,
    id                  TEXT NOT NULL,
    body                TEXT NOT NULL,
    attributes          TEXT
) STRICT;
";

/// When the engine last ran, so that it detects at its start that the clock was set back. Older versions of the engine
/// ignore it.
const SEEN: &str =
    "CREATE TABLE IF NOT EXISTS seen (id INTEGER PRIMARY KEY, at INTEGER NOT NULL) STRICT";

/// The context of a unit of work: the open transaction, the time, and the queues to notify after the commit.
pub(crate) struct Unit<'a> {
    pub(crate) database: &'a Connection,
    /// Milliseconds since 1970, the same for the whole unit.
    pub(crate) now: i64,
    pub(crate) region: &'a str,
    pub(crate) changed: &'a mut BTreeSet<QueueName>,
}

/// Makes a connection durable and its schema present.
pub(crate) fn prepare(connection: &Connection) -> Result<(), Error> {
    connection.busy_timeout(log::BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // FULL syncs each commit before its response, so it also survives a crash of the machine.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "journal_size_limit", 67_108_864)?;
    // Overwrites deleted messages with zeros.
    connection.pragma_update(None, "secure_delete", true)?;
    log::truncate(connection)?;
    match connection.query_row("PRAGMA user_version", [], |row| row.get(0))? {
        VERSION => {}
        found @ (0 | 1) => {
            let schema = if found == 0 { SCHEMA } else { "" };
            let version = format!("PRAGMA user_version = {VERSION};");
            let added = [
                "BEGIN IMMEDIATE;",
                schema,
                groups::SCHEMA,
                &version,
                "COMMIT;",
            ];
            connection.execute_batch(&added.concat())?;
        }
        found => {
            return Err(Error::Schema {
                found,
                expected: VERSION,
            });
        }
    }
    connection.execute_batch(SEEN)?;
    // Start even if the disk is too full for it.
    if let Err(error) = space::prepare(connection) {
        tracing::warn!(%error, "the database file will not shrink");
    }
    Ok(())
}
