//! The rows of a day, as JSON Lines in the bucket.
//!
//! A run writes files into a folder of its own, and at its end a manifest beside the runs, which
//! names the files of the run that was completed last. Each invocation's files bear its own name, so
//! that one which is repeated while it still runs writes over nothing; what the manifest does not
//! name does not count, and expires. Memory holds one file and a few turns, however many rows there are.

use chrono::{DateTime, NaiveDate, Utc};
use hearback_domain::evaluation::Request;
use hearback_storage::exports::ExportRun;
use hearback_storage::message_signals::Place;
use serde::{Deserialize, Serialize};

use crate::{
    Exporter, FILE, Failure, LeftOut, ROWS_AT_ONCE, drawn, file_name, opened, run_name, sealed,
};

/// What a run wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Exported {
    /// The files, each an `s3://` URI.
    pub files: Vec<String>,
    /// Rows in them.
    pub rows: u64,
    /// How many of the day's rows are not in them, and why.
    pub left_out: LeftOut,
    /// Where this is written down once all is done, an `s3://` URI.
    pub manifest: Option<String>,
    /// With which `resume` to ask for the rest; `null` when all is done.
    pub resume: Option<String>,
}

/// How far a run is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Progress {
    run: String,
    shard: u32,
    after: Option<Place>,
    /// The invocations, each with how many files it wrote.
    invocations: Vec<(String, u32)>,
    rows: u64,
    left_out: LeftOut,
}

impl Exporter {
    /// Writes the rows of a day, or what a run before did not get to.
    pub(crate) async fn day(
        &self,
        request: &Request,
        day: NaiveDate,
        until: Option<DateTime<Utc>>,
    ) -> Result<Exported, Failure> {
        let progress = opened(request)?.unwrap_or_else(|| self.start());
        let mut run = Run {
            exporter: self,
            request,
            day,
            into: ExportRun::new(&request.tenant, day, &progress.run),
            progress,
            invocation: (drawn(), 0),
            file: Vec::new(),
        };
        let done = run.write(until).await?;
        run.flush().await?;
        run.finish(done).await
    }

    fn start(&self) -> Progress {
        Progress {
            run: run_name(self.clock.now()),
            shard: 0,
            after: None,
            invocations: Vec::new(),
            rows: 0,
            left_out: LeftOut::default(),
        }
    }
}

struct Run<'a> {
    exporter: &'a Exporter,
    request: &'a Request,
    day: NaiveDate,
    into: ExportRun,
    progress: Progress,
    /// This invocation, and how many files it wrote.
    invocation: (String, u32),
    /// The file that is not written yet.
    file: Vec<u8>,
}

impl Run<'_> {
    /// Writes until all is done, or the time is up; answers which.
    async fn write(&mut self, until: Option<DateTime<Utc>>) -> Result<bool, Failure> {
        let store = &self.exporter.store;
        while self.progress.shard < store.shards() {
            let after = self.progress.after.clone();
            let shard = self.progress.shard;
            let (places, next) = store
                .signals_of_day(&self.request.tenant, self.day, shard, after)
                .await?;
            for some in places.chunks(ROWS_AT_ONCE) {
                self.add(some).await?;
                if until.is_some_and(|until| self.exporter.clock.now() >= until) {
                    return Ok(false);
                }
            }
            if next.is_none() {
                self.progress.shard += 1;
            }
            self.progress.after = next;
        }
        Ok(true)
    }

    async fn add(&mut self, places: &[Place]) -> Result<(), Failure> {
        let (rows, left_out) = self.exporter.rows(places).await?;
        self.progress.left_out += left_out;
        for row in rows {
            serde_json::to_writer(&mut self.file, &row)?;
            self.file.push(b'\n');
            self.progress.rows += 1;
            if self.file.len() >= FILE {
                self.flush().await?;
            }
        }
        self.progress.after = places.last().cloned();
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        if self.file.is_empty() {
            return Ok(());
        }
        let lines = std::mem::take(&mut self.file);
        let (name, written) = &mut self.invocation;
        *written += 1;
        let blobs = &self.exporter.blobs;
        Ok(blobs
            .put_export_file(&self.into, &file_name(name, *written), lines)
            .await?)
    }

    async fn finish(mut self, done: bool) -> Result<Exported, Failure> {
        self.progress.invocations.push(self.invocation);
        let blobs = &self.exporter.blobs;
        let names = (self.progress.invocations.iter())
            .flat_map(|(name, written)| (1..=*written).map(|number| file_name(name, number)));
        let mut exported = Exported {
            files: names
                .map(|name| blobs.export_file(&self.into, &name))
                .collect(),
            rows: self.progress.rows,
            left_out: self.progress.left_out,
            manifest: None,
            resume: None,
        };
        if done {
            exported.manifest = Some(blobs.export_manifest(&self.into));
            blobs.put_export_manifest(&self.into, &exported).await?;
        } else {
            exported.resume = Some(sealed(self.request, &self.progress));
        }
        Ok(exported)
    }
}
