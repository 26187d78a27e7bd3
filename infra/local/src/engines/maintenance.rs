//! Maintenance of the DynamoDB engine's file.
//!
//! On every write, the engine reads all stream records of the table to find the last one, and it never deletes any. So
//! writes would become slower with each write, and the file larger. An index on the queried expression turns the search
//! into one step, relayed records are deleted, and unused pages are returned to the file system. This affects only
//! speed and size.
//!
//! A record that was not relayed is never deleted, however old it is: nothing else says that an event has to be
//! processed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hearback_sqs::clock::{Clock, Reading, Steps};
use rusqlite::Connection;
use tokio_util::sync::CancellationToken;

use super::connection::open;
use super::secure_delete::truncate_log;
use crate::position::RelayProgress;

/// Stream records that a transaction deletes, so that other writes come through in between.
const RECORDS_PER_STEP: i64 = 500;
/// Pages that a transaction returns to the file system: 4 MB.
const PAGES_PER_STEP: i64 = 1_024;
/// Unused pages that the file keeps for later writes: 1 MB.
const SPARE_PAGES: i64 = 256;
/// Pause between two transactions, for other writes.
const STEP_PAUSE: Duration = Duration::from_millis(5);
/// The value of `auto_vacuum` that allows returning pages in steps.
const INCREMENTAL: i64 = 2;
/// A clock that is set forward by more than this many milliseconds is not trusted.
const MAX_TRUSTED_STEP: i64 = 60 * 60 * 1_000;
/// How long expired items are kept after such a step.
const DISTRUST_PERIOD: Duration = Duration::from_hours(1);

/// Settings of the maintenance.
#[derive(Debug, Clone)]
pub struct Maintenance {
    /// How far the relay has processed the stream.
    pub progress: RelayProgress,
    /// The clock of the engines.
    pub clock: Clock,
    /// Time between two runs.
    pub interval: Duration,
}

impl Default for Maintenance {
    fn default() -> Self {
        Self {
            progress: RelayProgress::default(),
            clock: Clock::system(),
            interval: Duration::from_mins(1),
        }
    }
}

/// Enables returning pages in steps. A new file gets the setting before the engine creates its tables; a file of an
/// older version is rewritten once, which needs as much free disk space as the file takes.
pub(super) fn prepare(file: &Path) -> Result<()> {
    let database = open(file)?;
    if pragma(&database, "auto_vacuum")? == INCREMENTAL {
        return Ok(());
    }
    database.pragma_update(None, "auto_vacuum", INCREMENTAL)?;
    if let Err(error) = database.execute_batch("VACUUM") {
        tracing::warn!(%error, "the table's file cannot be shrunk");
    }
    Ok(())
}

/// Creates the index on the stream's position, if it does not exist.
pub(super) fn create_index(file: &Path) -> Result<()> {
    open(file)?.execute_batch(
        "CREATE INDEX IF NOT EXISTS hearback_stream_position
         ON _stream_records (table_name, CAST(sequence_number AS INTEGER))",
    )?;
    Ok(())
}

/// Deletes expired items and relayed stream records, and returns their pages, until `stop`.
pub(super) async fn run(
    file: PathBuf,
    database: dynoxide::Database,
    maintenance: Maintenance,
    stop: CancellationToken,
) {
    let mut expiry = Expiry::new(maintenance.clock);
    while stop
        .run_until_cancelled(tokio::time::sleep(maintenance.interval))
        .await
        .is_some()
    {
        let (file, database) = (file.clone(), database.clone());
        let (progress, may_expire) = (maintenance.progress.clone(), expiry.check());
        let done = tokio::task::spawn_blocking(move || {
            let expired = if may_expire {
                let swept = database.sweep_ttl();
                swept.map_err(|error| anyhow::anyhow!("{error}")).map(drop)
            } else {
                Ok(())
            };
            // A step that fails does not keep the next from freeing space.
            let steps = [
                expired,
                delete_relayed(&file, &progress),
                return_pages(&file),
                truncate_log(&file),
            ];
            steps.map(Result::err)
        });
        let errors = done.await.into_iter().flatten().flatten();
        for error in errors {
            tracing::warn!(%error, "expired data was not deleted");
        }
    }
}

/// Decides whether expired items may be deleted. A clock that was set forward may be wrong, and deleted items do not
/// return when it is corrected.
#[derive(Debug)]
struct Expiry {
    steps: Steps,
    distrusted_until: Option<Instant>,
}

impl Expiry {
    fn new(clock: Clock) -> Self {
        Self {
            steps: Steps::new(clock),
            distrusted_until: None,
        }
    }

    fn check(&mut self) -> bool {
        let reading = self.steps.read();
        self.steps.acknowledge(reading);
        self.may_delete(reading, Instant::now())
    }

    fn may_delete(&mut self, reading: Reading, at: Instant) -> bool {
        if reading.step > MAX_TRUSTED_STEP {
            let seconds = reading.step / 1_000;
            tracing::warn!(
                seconds,
                "the clock was set forward; expired items are kept for another hour"
            );
            self.distrusted_until = Some(at + DISTRUST_PERIOD);
        }
        if reading.step < -MAX_TRUSTED_STEP {
            self.distrusted_until = None;
        }
        self.distrusted_until.is_none_or(|until| at >= until)
    }
}

/// Deletes the stream records before the last relayed one. That one remains: the engine derives the next sequence
/// number from the last record or, without one, from its clock, which may be set back.
fn delete_relayed(file: &Path, progress: &RelayProgress) -> Result<()> {
    let shards = progress.shards();
    if shards.is_empty() {
        return Ok(());
    }
    let database = open(file)?;
    let mut tables = database.prepare("SELECT DISTINCT table_name FROM _stream_records")?;
    let tables = tables.query_map([], |row| row.get(0))?;
    for table in tables.collect::<Result<Vec<String>, _>>()? {
        for (shard, sequence) in &shards {
            let before = stored(sequence).context("a position is not a sequence number")?;
            let mut delete = database.prepare_cached(
                "DELETE FROM _stream_records WHERE rowid IN (
                     SELECT rowid FROM _stream_records
                     WHERE table_name = ?1 AND CAST(sequence_number AS INTEGER) < ?2 AND shard_id = ?3
                     ORDER BY CAST(sequence_number AS INTEGER) LIMIT ?4)",
            )?;
            while delete.execute((&table, before, shard, RECORDS_PER_STEP))? > 0 {
                std::thread::sleep(STEP_PAUSE);
            }
        }
    }
    Ok(())
}

/// The stored form of a sequence number. The engine adds an offset to show 21 digits.
fn stored(sequence: &str) -> Option<i64> {
    const OFFSET: u128 = 100_000_000_000_000_000_000;
    let shown: u128 = sequence.parse().ok()?;
    i64::try_from(shown.checked_sub(OFFSET)?).ok()
}

/// Returns unused pages to the file system. The checkpoint that follows shrinks the file.
fn return_pages(file: &Path) -> Result<()> {
    let database = open(file)?;
    loop {
        let excess = pragma(&database, "freelist_count")?.saturating_sub(SPARE_PAGES);
        if excess <= 0 || pragma(&database, "auto_vacuum")? != INCREMENTAL {
            return Ok(());
        }
        let step = excess.min(PAGES_PER_STEP);
        let mut step = database.prepare(&format!("PRAGMA incremental_vacuum({step})"))?;
        // Each row is a returned page.
        let mut pages = step.query([])?;
        while pages.next()?.is_some() {}
        std::thread::sleep(STEP_PAUSE);
    }
}

fn pragma(database: &Connection, name: &str) -> Result<i64> {
    Ok(database.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn nothing_expires_for_an_hour_after_the_clock_is_set_forward() {
        let hours = Arc::new(AtomicU64::new(100));
        let current = Arc::clone(&hours);
        let mut expiry = Expiry::new(Clock::of(move || {
            SystemTime::UNIX_EPOCH + Duration::from_hours(current.load(Ordering::Relaxed))
        }));
        assert!(expiry.check());
        hours.store(148, Ordering::Relaxed);
        assert!(!expiry.check(), "the clock was set forward");
        assert!(!expiry.check(), "the next run must not trust it either");
        let later = Instant::now() + DISTRUST_PERIOD;
        let reading = expiry.steps.read();
        assert!(
            expiry.may_delete(reading, later),
            "after an hour, the clock is trusted"
        );
        assert!(!expiry.check(), "the hour is not over");
        hours.store(100, Ordering::Relaxed);
        assert!(expiry.check(), "a corrected clock is trusted at once");
    }

    #[test]
    fn a_clock_that_is_set_forward_is_reported_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = Arc::new(std::fs::File::create(&path).unwrap());
        let subscriber = tracing_subscriber::fmt().with_writer(log).finish();
        let hours = Arc::new(AtomicU64::new(100));
        let current = Arc::clone(&hours);
        let mut expiry = Expiry::new(Clock::of(move || {
            SystemTime::UNIX_EPOCH + Duration::from_hours(current.load(Ordering::Relaxed))
        }));
        // With one subscriber in the process, a line of the log that another thread reaches first is off for good.
        let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
        tracing::subscriber::with_default(subscriber, || {
            for now in [100, 148, 148, 100] {
                hours.store(now, Ordering::Relaxed);
                expiry.check();
            }
        });
        let logged = std::fs::read_to_string(&path).unwrap();
        let warnings = logged.matches("the clock was set forward").count();
        assert_eq!(warnings, 1, "{logged}");
        assert!(logged.contains("seconds=172"), "{logged}");
    }
}
