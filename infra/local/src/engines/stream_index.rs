//! Housekeeping of the DynamoDB engine's file.
//!
//! The engine finds the last stream record of a table by reading them all, on every write, and
//! never deletes one: writes would become slower with each that came before. An index over the
//! expression that it asks for makes that one step, and records older than DynamoDB keeps them
//! are deleted. Without either the engine is as right, only slower (`docs/decisions`).

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use rusqlite::Connection;
use tokio_util::sync::CancellationToken;

/// How long DynamoDB keeps stream records.
const KEPT_SECONDS: i64 = 24 * 60 * 60;
/// How often the house is kept.
const EVERY: Duration = Duration::from_mins(1);

fn open(file: &Path) -> Result<Connection> {
    let connection =
        Connection::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    connection.busy_timeout(Duration::from_secs(5))?;
    Ok(connection)
}

/// Creates the index, if it is not there.
pub(super) fn create(file: &Path) -> Result<()> {
    open(file)?.execute_batch(
        "CREATE INDEX IF NOT EXISTS hearback_stream_position
         ON _stream_records (table_name, CAST(sequence_number AS INTEGER))",
    )?;
    Ok(())
}

/// Deletes what expired, items and stream records, until `stop`.
pub(super) async fn keep_house(
    file: PathBuf,
    database: dynoxide::Database,
    stop: CancellationToken,
) {
    while stop
        .run_until_cancelled(tokio::time::sleep(EVERY))
        .await
        .is_some()
    {
        let (file, database) = (file.clone(), database.clone());
        let kept = tokio::task::spawn_blocking(move || {
            database
                .sweep_ttl()
                .map_err(|error| anyhow::anyhow!("{error}"))?;
            forget_old_records(&file)
        });
        if let Ok(Err(error)) = kept.await {
            tracing::warn!(%error, "expired data was not deleted");
        }
    }
}

fn forget_old_records(file: &Path) -> Result<()> {
    open(file)?.execute(
        "DELETE FROM _stream_records WHERE created_at < unixepoch() - ?1",
        [KEPT_SECONDS],
    )?;
    Ok(())
}
