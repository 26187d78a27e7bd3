//! The one thread that touches the database, and the commit that waiting requests share.
//!
//! While a commit is being synced, further requests queue up; the next transaction contains
//! all of them. So one sync covers every request that arrived during the previous one, and a single
//! request never waits for others. Each request runs in its own savepoint, so a failure does not affect
//! the others. Responses are sent after the commit.

use std::{
    collections::BTreeSet,
    fmt, io, iter,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;
use tracing::{error, warn};

use crate::{
    clock::{Clock, Reading, Steps},
    fault::Fault,
    name::QueueName,
    queue_notifiers::QueueNotifiers,
    store::{self, Unit, log::Log},
};

/// The maximum number of requests in one transaction; more would delay the first one's response.
const MAX_SHARED: usize = 256;
/// How often messages past their retention are removed from queues without consumers.
const SWEEP_EVERY: Duration = Duration::from_mins(1);
/// The pause between two steps that return free pages to the file system.
const SPACE_EVERY: Duration = Duration::from_millis(100);

/// The database, and the clock of the times in it.
pub(crate) struct File {
    connection: Connection,
    steps: Steps,
}

impl File {
    /// Opens a prepared database and adjusts its times to this clock.
    pub(crate) fn open(connection: Connection, clock: Clock) -> rusqlite::Result<Self> {
        let steps = Steps::new(clock);
        let lag = store::times::resume(&connection, steps.read().now)?;
        if lag > 0 {
            let seconds = lag / 1_000;
            warn!(seconds, "the clock was set back; messages keep their times");
        }
        Ok(Self { connection, steps })
    }

    /// Starts a transaction, after adjusting all stored times to the clock.
    fn begin(&mut self) -> rusqlite::Result<(Transaction<'_>, Reading)> {
        let reading = self.steps.read();
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        if reading.step != 0 {
            store::times::shift(&transaction, reading.step)?;
            store::times::note(&transaction, reading.now)?;
        }
        Ok((transaction, reading))
    }

    /// Acknowledges the reading, once its transaction is on disk.
    fn committed(&mut self, reading: Reading) {
        if reading.step != 0 {
            let seconds = reading.step / 1_000;
            warn!(seconds, "the clock was set; messages keep their times");
        }
        self.steps.acknowledge(reading);
    }

    /// Removes messages past their retention.
    fn sweep(&mut self) -> rusqlite::Result<()> {
        let (transaction, reading) = self.begin()?;
        store::queues::sweep(&transaction, reading.now)?;
        store::times::note(&transaction, reading.now)?;
        transaction.commit()?;
        self.committed(reading);
        Ok(())
    }
}

/// A handle to the writer thread, which ends after the last clone is dropped and its jobs are finished.
#[derive(Clone)]
pub(crate) struct Writer {
    jobs: Sender<Box<dyn Job>>,
}

impl Writer {
    pub(crate) fn start(
        file: File,
        region: &str,
        notifiers: Arc<QueueNotifiers>,
    ) -> io::Result<Self> {
        let (jobs, queued) = channel();
        let thread = Thread {
            file,
            region: region.to_owned(),
            notifiers,
            queued,
        };
        thread::Builder::new()
            .name("sqs-writer".to_owned())
            .spawn(move || thread.serve())?;
        Ok(Self { jobs })
    }

    /// Runs `work` in a transaction and returns its outcome once that is on disk.
    ///
    /// If the caller has gone by the time the work would start, the work is skipped.
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T, Fault>
    where
        T: Send + 'static,
        F: FnOnce(&mut Unit<'_>) -> Result<T, Fault> + Send + 'static,
    {
        let (reply, outcome) = oneshot::channel();
        let job = Request {
            work: Some(work),
            outcome: None,
            reply,
        };
        self.jobs
            .send(Box::new(job))
            .map_err(|_| Fault::NotCommitted)?;
        outcome.await.map_err(|_| Fault::NotCommitted)?
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

/// Work with its result type erased.
trait Job: Send {
    /// Does the work. Returns whether to keep its changes.
    fn run(&mut self, unit: &mut Unit<'_>) -> bool;
    /// Sends the caller the outcome, after the commit has succeeded or failed.
    fn respond(self: Box<Self>, committed: bool);
}

struct Request<T, F> {
    work: Option<F>,
    outcome: Option<Result<T, Fault>>,
    reply: oneshot::Sender<Result<T, Fault>>,
}

impl<T, F> Job for Request<T, F>
where
    T: Send,
    F: FnOnce(&mut Unit<'_>) -> Result<T, Fault> + Send,
{
    fn run(&mut self, unit: &mut Unit<'_>) -> bool {
        if self.reply.is_closed() {
            return false;
        }
        let outcome = self.work.take().map(|work| work(unit));
        let keep = matches!(outcome, Some(Ok(_)));
        self.outcome = outcome;
        keep
    }

    fn respond(self: Box<Self>, committed: bool) {
        let outcome = match self.outcome {
            Some(Ok(result)) if committed => Ok(result),
            Some(Err(fault)) => Err(fault),
            Some(Ok(_)) | None => Err(Fault::NotCommitted),
        };
        // The caller may have gone.
        let _gone = self.reply.send(outcome);
    }
}

struct Thread {
    file: File,
    region: String,
    notifiers: Arc<QueueNotifiers>,
    queued: Receiver<Box<dyn Job>>,
}

impl Thread {
    fn serve(mut self) {
        let (mut sweep_due, mut space_due) = (Instant::now(), Instant::now());
        let mut log = Log::default();
        loop {
            let next = sweep_due.min(space_due);
            let next = log.due().map_or(next, |due| due.min(next));
            let idle = next.saturating_duration_since(Instant::now());
            match self.queued.recv_timeout(idle) {
                Ok(first) => {
                    let others = self.queued.try_iter();
                    let jobs = iter::once(first).chain(others).take(MAX_SHARED).collect();
                    self.finish(jobs);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if Instant::now() >= sweep_due {
                if let Err(error) = self.file.sweep() {
                    error!(%error, "messages past their retention could not be removed");
                }
                sweep_due = Instant::now() + SWEEP_EVERY;
            }
            if Instant::now() >= space_due {
                let more = store::space::give_back(&self.file.connection).unwrap_or_else(|error| {
                    error!(%error, "the database file could not be shrunk");
                    false
                });
                space_due = Instant::now() + if more { SPACE_EVERY } else { SWEEP_EVERY };
            }
            if let Err(error) = log.keep(&self.file.connection, Instant::now()) {
                error!(%error, "deleted data is still in the write-ahead log");
            }
        }
    }

    fn finish(&mut self, mut jobs: Vec<Box<dyn Job>>) {
        let committed = self.commit(&mut jobs);
        if let Err(error) = &committed {
            error!(%error, requests = jobs.len(), "a transaction failed");
        }
        for job in jobs {
            job.respond(committed.is_ok());
        }
        for queue in committed.iter().flatten() {
            self.notifiers.notify(queue);
        }
    }

    /// Runs all jobs in one transaction. Returns the queues to notify.
    ///
    /// Some failures (a full disk, an I/O error) make the database roll back by itself; the next
    /// savepoint statement then fails, and with it the whole transaction.
    fn commit(&mut self, jobs: &mut [Box<dyn Job>]) -> rusqlite::Result<BTreeSet<QueueName>> {
        let mut changed = BTreeSet::new();
        let (mut transaction, reading) = self.file.begin()?;
        for job in jobs {
            let mut savepoint = transaction.savepoint()?;
            let mut unit = Unit {
                database: &savepoint,
                now: reading.now,
                region: &self.region,
                changed: &mut changed,
            };
            if !job.run(&mut unit) {
                savepoint.rollback()?;
            }
            savepoint.commit()?;
        }
        transaction.commit()?;
        self.file.committed(reading);
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicU64, Ordering},
        },
        time::{Duration, SystemTime},
    };

    use rusqlite::Connection;

    use super::{File, Writer};
    use crate::{
        clock::Clock, fault::Fault, name::QueueName, queue_notifiers::QueueNotifiers, store,
    };

    fn writer(connection: Connection) -> Result<Writer, crate::Error> {
        store::prepare(&connection)?;
        Ok(Writer::start(
            File::open(connection, Clock::system())?,
            "us-east-1",
            Arc::new(QueueNotifiers::default()),
        )?)
    }

    async fn add(writer: &Writer, name: &'static str, keep: bool) -> Result<(), Fault> {
        let sql = "INSERT INTO queue VALUES (NULL, ?1, 0, 0, 0, 0, 0, 0, 0, NULL)";
        writer
            .run(move |unit| {
                unit.database.execute(sql, [name])?;
                if keep {
                    Ok(())
                } else {
                    Err(Fault::InvalidMessageContents)
                }
            })
            .await
    }

    #[tokio::test]
    async fn a_failed_request_does_not_affect_the_others_of_its_commit()
    -> Result<(), Box<dyn std::error::Error>> {
        let writer = writer(Connection::open_in_memory()?)?;
        let (first, failed, repeated, last) = tokio::join!(
            add(&writer, "first", true),
            add(&writer, "failed", false),
            add(&writer, "first", true),
            add(&writer, "last", true),
        );
        assert!(first.is_ok() && last.is_ok());
        assert!(matches!(failed, Err(Fault::InvalidMessageContents)));
        assert!(matches!(repeated, Err(Fault::Storage(_))));
        let names = writer
            .run(|unit| store::queues::list(unit, "", "", 10))
            .await?;
        assert_eq!(
            names.iter().map(QueueName::as_str).collect::<Vec<_>>(),
            ["first", "last"]
        );
        Ok(())
    }

    #[tokio::test]
    async fn a_file_is_in_wal_mode_and_synced_with_every_commit()
    -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let writer = writer(Connection::open(folder.path().join("queues.db"))?)?;
        let modes = writer.run(|unit| {
            let read =
                "SELECT journal_mode, synchronous FROM pragma_journal_mode, pragma_synchronous";
            Ok(unit
                .database
                .query_row(read, [], |row| Ok((row.get(0)?, row.get(1)?)))?)
        });
        let (journal, synchronous): (String, i64) = modes.await?;
        assert_eq!((journal.as_str(), synchronous), ("wal", 2), "2 is FULL");
        Ok(())
    }

    #[test]
    fn each_step_of_the_clock_is_reported_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = Arc::new(std::fs::File::create(&path).unwrap());
        let subscriber = tracing_subscriber::fmt().with_writer(log).finish();
        let hours = Arc::new(AtomicU64::new(100));
        let open = || {
            let connection = Connection::open(folder.path().join("queues")).unwrap();
            store::prepare(&connection).unwrap();
            let hours = Arc::clone(&hours);
            let now = move || {
                SystemTime::UNIX_EPOCH + Duration::from_hours(hours.load(Ordering::Relaxed))
            };
            File::open(connection, Clock::of(now)).unwrap()
        };
        // With one subscriber in the process, a line of the log that another thread reaches first is off for good.
        let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
        tracing::subscriber::with_default(subscriber, || {
            let mut file = open();
            for now in [100, 148, 148, 147] {
                hours.store(now, Ordering::Relaxed);
                file.sweep().unwrap();
            }
            drop(file);
            hours.store(99, Ordering::Relaxed);
            open().sweep().unwrap();
        });
        let logged = std::fs::read_to_string(&path).unwrap();
        let count = |warning: &str| logged.matches(warning).count();
        assert_eq!(count("the clock was set;"), 2, "{logged}");
        assert_eq!(count("the clock was set back"), 1, "{logged}");
    }
}
