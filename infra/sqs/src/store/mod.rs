//! The SQL: two tables for messages, one for queues.
//!
//! `message` is what a receive changes, a short row; `content` is what it never changes, so that
//! receiving a message of a megabyte does not write a megabyte.

pub(crate) mod messages;
pub(crate) mod queues;
pub(crate) mod receive;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use rusqlite::Connection;

use crate::{Error, name::QueueName};

/// Raised with every change to [`SCHEMA`].
const VERSION: i64 = 1;

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

/// What a unit of work may use: the open transaction, the time, and the bells to ring after it.
pub(crate) struct Unit<'a> {
    pub(crate) database: &'a Connection,
    /// Milliseconds since 1970, the same for the whole unit.
    pub(crate) now: i64,
    pub(crate) region: &'a str,
    pub(crate) rung: &'a mut BTreeSet<QueueName>,
}

/// Makes a connection durable and its schema present.
pub(crate) fn prepare(connection: &Connection) -> Result<(), Error> {
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // FULL: a commit is synced before it is answered, so it survives a crash of the machine too.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "journal_size_limit", 67_108_864)?;
    match connection.query_row("PRAGMA user_version", [], |row| row.get(0))? {
        VERSION => Ok(()),
        0 => {
            let version = format!("PRAGMA user_version = {VERSION};");
            connection
                .execute_batch(&["BEGIN IMMEDIATE;", SCHEMA, &version, "COMMIT;"].concat())?;
            Ok(())
        }
        found => Err(Error::Schema {
            found,
            expected: VERSION,
        }),
    }
}

/// The time, in milliseconds since 1970. The wall clock, since times outlive the process.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
