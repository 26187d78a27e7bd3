//! The rows of a day, as JSON Lines in the bucket.
//!
//! A run writes parts `part-00001.jsonl`, `part-00002.jsonl`, … into a folder of its own, and at its end
//! a manifest beside the runs that says which run is the newest complete one. A run that dies is
//! no run: nobody is told of its parts, and they expire. Memory holds one part, however many rows
//! there are.

use std::ops::AddAssign;

use chrono::{DateTime, NaiveDate, Utc};
use hearback_domain::identifier::TenantId;
use hearback_storage::Error;
use hearback_storage::exports::{ExportRun, part_name};
use hearback_storage::message_signals::Place;
use serde::{Deserialize, Serialize};

use crate::{Exporter, Failure, LeftOut, sealed};

/// Rows that are read at once.
const AT_ONCE: usize = 100;
/// Bytes at which a part is written.
const PART: usize = 8 * 1024 * 1024;

/// What a run wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Exported {
    /// The folder of the parts, an `s3://` URI.
    pub folder: String,
    /// How many parts there are.
    pub parts: u32,
    /// Rows in them.
    pub rows: u64,
    /// How many of the day's rows are not in them, and why.
    pub left_out: LeftOut,
    /// Where this is written down once all is done, an `s3://` URI.
    pub manifest: Option<String>,
    /// With which `resume` to ask for the rest; `null` when all is done.
    pub resume: Option<String>,
}

impl Exported {
    /// The parts, each an `s3://` URI.
    pub fn parts(&self) -> impl Iterator<Item = String> {
        (1..=self.parts).map(|number| format!("{}{}", self.folder, part_name(number)))
    }
}

/// How far a run is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Progress {
    run: String,
    shard: u32,
    after: Option<Place>,
    parts: u32,
    rows: u64,
    left_out: LeftOut,
}

impl AddAssign for LeftOut {
    fn add_assign(&mut self, other: Self) {
        self.excluded += other.excluded;
        self.without_turn += other.without_turn;
    }
}

impl Exporter {
    /// Writes the rows of a day, or what a run before did not get to.
    pub(crate) async fn day(
        &self,
        (tenant, day): (&TenantId, NaiveDate),
        progress: Option<Progress>,
        until: Option<DateTime<Utc>>,
    ) -> Result<Exported, Failure> {
        let progress = progress.unwrap_or_else(|| self.start());
        let mut run = Run {
            exporter: self,
            tenant,
            day,
            into: ExportRun::new(tenant, day, &progress.run),
            progress,
            part: Vec::new(),
        };
        let done = run.write(until).await?;
        run.flush().await?;
        run.finish(done).await
    }

    fn start(&self) -> Progress {
        // By time, so that runs sort; with a random end, so that no two are one.
        let now = self.clock.now().format("%Y%m%dT%H%M%SZ");
        let (drawn, _, _, _) = uuid::Uuid::new_v4().as_fields();
        Progress {
            run: format!("{now}-{drawn:08x}"),
            shard: 0,
            after: None,
            parts: 0,
            rows: 0,
            left_out: LeftOut::default(),
        }
    }
}

struct Run<'a> {
    exporter: &'a Exporter,
    tenant: &'a TenantId,
    day: NaiveDate,
    into: ExportRun,
    progress: Progress,
    /// The part that is not written yet.
    part: Vec<u8>,
}

impl Run<'_> {
    /// Writes until all is done, or the time is up; answers which.
    async fn write(&mut self, until: Option<DateTime<Utc>>) -> Result<bool, Failure> {
        let store = &self.exporter.store;
        while self.progress.shard < store.shards() {
            let after = self.progress.after.clone();
            let shard = self.progress.shard;
            let (places, next) = store
                .signals_of_day(self.tenant, self.day, shard, after)
                .await?;
            for some in places.chunks(AT_ONCE) {
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
            serde_json::to_writer(&mut self.part, &row)?;
            self.part.push(b'\n');
            self.progress.rows += 1;
            if self.part.len() >= PART {
                self.flush().await?;
            }
        }
        self.progress.after = places.last().cloned();
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Error> {
        if self.part.is_empty() {
            return Ok(());
        }
        let part = std::mem::take(&mut self.part);
        self.progress.parts += 1;
        let blobs = &self.exporter.blobs;
        blobs
            .put_export_part(&self.into, self.progress.parts, part)
            .await
    }

    async fn finish(self, done: bool) -> Result<Exported, Failure> {
        let blobs = &self.exporter.blobs;
        let mut exported = Exported {
            folder: blobs.export_folder(&self.into),
            parts: self.progress.parts,
            rows: self.progress.rows,
            left_out: self.progress.left_out,
            manifest: None,
            resume: None,
        };
        if done {
            exported.manifest = Some(blobs.export_manifest(&self.into));
            blobs.put_export_manifest(&self.into, &exported).await?;
        } else {
            exported.resume = Some(sealed(&self.progress));
        }
        Ok(exported)
    }
}
