//! The one thread that touches the database, and the commit that waiting requests share.
//!
//! While a commit is being synced, further requests queue up; the next transaction takes all of
//! them. So one sync pays for as many requests as arrived during the one before it, and a lone
//! request waits for nobody. Each request runs in a savepoint of its own: one that fails leaves
//! the others as they are. Nobody is answered before the commit.

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

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::oneshot;
use tracing::error;

use crate::{
    bells::Bells,
    fault::Fault,
    name::QueueName,
    store::{self, Unit},
};

/// The most requests in one transaction, so that the first of them is not kept waiting for long.
const MAX_SHARED: usize = 256;
/// How often messages past their retention are removed from queues that nobody reads.
const SWEEP_EVERY: Duration = Duration::from_mins(1);

/// The way to the thread. It ends once the last clone is gone and its jobs are done.
#[derive(Clone)]
pub(crate) struct Writer {
    jobs: Sender<Box<dyn Job>>,
}

impl Writer {
    pub(crate) fn start(
        connection: Connection,
        region: &str,
        bells: Arc<Bells>,
    ) -> io::Result<Self> {
        let (jobs, queued) = channel();
        let thread = Thread {
            connection,
            region: region.to_owned(),
            bells,
            queued,
        };
        thread::Builder::new()
            .name("sqs-writer".to_owned())
            .spawn(move || thread.serve())?;
        Ok(Self { jobs })
    }

    /// Runs `work` in a transaction and returns its outcome once that is on disk.
    ///
    /// If the caller is gone before it is the work's turn, the work is not done.
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

/// Work whose type of result the thread need not know.
trait Job: Send {
    /// Does the work; whether its changes shall be kept.
    fn run(&mut self, unit: &mut Unit<'_>) -> bool;
    /// Tells the caller, after the commit succeeded or failed.
    fn answer(self: Box<Self>, committed: bool);
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

    fn answer(self: Box<Self>, committed: bool) {
        let outcome = match self.outcome {
            Some(Ok(result)) if committed => Ok(result),
            Some(Err(fault)) => Err(fault),
            Some(Ok(_)) | None => Err(Fault::NotCommitted),
        };
        // A caller that left in the meantime does not need the answer.
        let _gone = self.reply.send(outcome);
    }
}

struct Thread {
    connection: Connection,
    region: String,
    bells: Arc<Bells>,
    queued: Receiver<Box<dyn Job>>,
}

impl Thread {
    fn serve(mut self) {
        let mut sweep_due = Instant::now();
        loop {
            let idle = sweep_due.saturating_duration_since(Instant::now());
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
                if let Err(error) = store::queues::sweep(&self.connection, store::now()) {
                    error!(%error, "messages past their retention could not be removed");
                }
                sweep_due = Instant::now() + SWEEP_EVERY;
            }
        }
    }

    fn finish(&mut self, mut jobs: Vec<Box<dyn Job>>) {
        let committed = self.commit(&mut jobs);
        if let Err(error) = &committed {
            error!(%error, requests = jobs.len(), "a transaction failed");
        }
        for job in jobs {
            job.answer(committed.is_ok());
        }
        for queue in committed.iter().flatten() {
            self.bells.ring(queue);
        }
    }

    /// One transaction for all jobs; the queues whose bells are to ring.
    ///
    /// Some failures (a full disk, an I/O error) make the database roll back by itself; the next
    /// savepoint statement then fails, and with it the whole transaction.
    fn commit(&mut self, jobs: &mut [Box<dyn Job>]) -> rusqlite::Result<BTreeSet<QueueName>> {
        let mut rung = BTreeSet::new();
        let behavior = TransactionBehavior::Immediate;
        let mut transaction = self.connection.transaction_with_behavior(behavior)?;
        for job in jobs {
            let mut savepoint = transaction.savepoint()?;
            let mut unit = Unit {
                database: &savepoint,
                now: store::now(),
                region: &self.region,
                rung: &mut rung,
            };
            if !job.run(&mut unit) {
                savepoint.rollback()?;
            }
            savepoint.commit()?;
        }
        transaction.commit()?;
        Ok(rung)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rusqlite::Connection;

    use super::Writer;
    use crate::{bells::Bells, fault::Fault, name::QueueName, store};

    fn writer(connection: Connection) -> Result<Writer, crate::Error> {
        store::prepare(&connection)?;
        Ok(Writer::start(
            connection,
            "us-east-1",
            Arc::new(Bells::default()),
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
    async fn a_request_that_fails_leaves_those_it_shares_a_commit_with_as_they_are()
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
}
