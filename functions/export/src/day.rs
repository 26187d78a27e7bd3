//! The rows of a day, as JSON Lines in the bucket.
//!
//! A run writes its files to a folder of its own. When it is complete, it writes the manifest next to the runs, which
//! names the files of the last complete run. Each invocation has its own file names, so that a retry never overwrites
//! the files of an invocation that is still running. Files that no manifest names are ignored, and expire. Memory holds
//! one file and a few turns, however many rows there are.

use chrono::{DateTime, NaiveDate, Utc};
use hearback_domain::export::evaluation::EvaluationRequest;
use hearback_storage::damage::unreadable;
use hearback_storage::exports::ExportRun;
use hearback_storage::message_signals::SignalPosition;
use serde::{Deserialize, Serialize};

use crate::{
    Exporter, FILE_SIZE, Failure, ROWS_AT_ONCE, SkippedRows, decode_resume, encode_resume,
    file_name, random_suffix, run_name,
};

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExportedDay {
    /// The files, each an `s3://` URI.
    pub files: Vec<String>,
    /// Rows in the files.
    pub rows: u64,
    /// How many rows of the day are not in the files.
    pub left_out: SkippedRows,
    /// The manifest of a complete run, an `s3://` URI.
    pub manifest: Option<String>,
    /// `resume` of the request for the rest; `null` if the run is complete.
    pub resume: Option<String>,
}

/// The state of a run: what its `resume` token contains.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Progress {
    run: String,
    shard: u32,
    after: Option<SignalPosition>,
    /// The invocations, each with the number of its files.
    invocations: Vec<(String, u32)>,
    rows: u64,
    left_out: SkippedRows,
}

impl Exporter {
    /// Writes the rows of a day, or resumes a run.
    pub(crate) async fn day(
        &self,
        request: &EvaluationRequest,
        day: NaiveDate,
        until: Option<DateTime<Utc>>,
    ) -> Result<ExportedDay, Failure> {
        let progress = decode_resume(request)?.unwrap_or_else(|| self.new_run());
        let mut run = Run {
            exporter: self,
            request,
            day,
            export: ExportRun::new(&request.tenant, day, &progress.run),
            progress,
            invocation: (random_suffix(), 0),
            file: Vec::new(),
        };
        let complete = run.write(until).await?;
        run.flush().await?;
        run.finish(complete).await
    }

    fn new_run(&self) -> Progress {
        Progress {
            run: run_name(self.clock.now()),
            shard: 0,
            after: None,
            invocations: Vec::new(),
            rows: 0,
            left_out: SkippedRows::default(),
        }
    }
}

struct Run<'a> {
    exporter: &'a Exporter,
    request: &'a EvaluationRequest,
    day: NaiveDate,
    export: ExportRun,
    progress: Progress,
    /// The name of this invocation, and the number of its files.
    invocation: (String, u32),
    /// The file that is not written yet.
    file: Vec<u8>,
}

impl Run<'_> {
    /// Writes rows until `until`, and returns whether the run is complete.
    async fn write(&mut self, until: Option<DateTime<Utc>>) -> Result<bool, Failure> {
        let store = &self.exporter.store;
        while self.progress.shard < store.shards() {
            let after = self.progress.after.clone();
            let shard = self.progress.shard;
            let (positions, next) = store
                .signals_of_day(&self.request.tenant, self.day, shard, after)
                .await?;
            for chunk in positions.chunks(ROWS_AT_ONCE) {
                self.add(chunk).await?;
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

    async fn add(&mut self, positions: &[SignalPosition]) -> Result<(), Failure> {
        let (rows, left_out) = self.exporter.rows(positions).await?;
        self.progress.left_out += left_out;
        for row in rows {
            serde_json::to_writer(&mut self.file, &row)?;
            self.file.push(b'\n');
            self.progress.rows += 1;
            if self.file.len() >= FILE_SIZE {
                self.flush().await?;
            }
        }
        self.progress.after = positions.last().cloned();
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
            .put_export_file(&self.export, &file_name(name, *written), lines)
            .await?)
    }

    async fn finish(mut self, complete: bool) -> Result<ExportedDay, Failure> {
        self.progress.invocations.push(self.invocation);
        self.progress.left_out.unreadable += unreadable();
        let blobs = &self.exporter.blobs;
        let names = (self.progress.invocations.iter())
            .flat_map(|(name, written)| (1..=*written).map(|number| file_name(name, number)));
        let mut exported = ExportedDay {
            files: names
                .map(|name| blobs.export_file(&self.export, &name))
                .collect(),
            rows: self.progress.rows,
            left_out: self.progress.left_out,
            manifest: None,
            resume: None,
        };
        if complete {
            exported.manifest = Some(blobs.export_manifest(&self.export));
            blobs.put_export_manifest(&self.export, &exported).await?;
        } else {
            exported.resume = Some(encode_resume(self.request, &self.progress));
        }
        Ok(exported)
    }
}
