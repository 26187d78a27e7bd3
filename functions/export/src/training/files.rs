//! The files of a run: JSON Lines, each kind of rows in files of its own, so that a file has one
//! schema.

use hearback_domain::training::Kind;
use hearback_storage::exports::ExportRun;
use hearback_storage::{Blobs, Error};
use serde::Serialize;

use crate::{FILE, Failure, file_name};

/// What this invocation writes.
pub(super) struct Files<'a> {
    blobs: &'a Blobs,
    into: ExportRun,
    invocation: String,
    pairs: Lines,
    labels: Lines,
}

/// Files of one kind.
#[derive(Default)]
struct Lines {
    /// How many were written.
    written: u32,
    /// The one that is not written yet.
    file: Vec<u8>,
}

impl<'a> Files<'a> {
    pub(super) fn new(blobs: &'a Blobs, into: ExportRun, invocation: String) -> Self {
        Self {
            blobs,
            into,
            invocation,
            pairs: Lines::default(),
            labels: Lines::default(),
        }
    }

    fn lines(&mut self, kind: Kind) -> &mut Lines {
        match kind {
            Kind::Pairs => &mut self.pairs,
            Kind::Labels => &mut self.labels,
        }
    }

    /// Adds a row, and writes the file if it is full.
    pub(super) async fn add(&mut self, kind: Kind, row: &impl Serialize) -> Result<(), Failure> {
        let lines = self.lines(kind);
        serde_json::to_writer(&mut lines.file, row)?;
        lines.file.push(b'\n');
        if lines.file.len() >= FILE {
            self.flush(kind).await?;
        }
        Ok(())
    }

    async fn flush(&mut self, kind: Kind) -> Result<(), Error> {
        let lines = self.lines(kind);
        if lines.file.is_empty() {
            return Ok(());
        }
        let file = std::mem::take(&mut lines.file);
        lines.written += 1;
        let number = lines.written;
        let name = name(kind, &self.invocation, number);
        self.blobs.put_export_file(&self.into, &name, file).await
    }

    /// Writes what is left, and answers how many files of each kind this invocation wrote.
    pub(super) async fn close(&mut self) -> Result<Vec<(Kind, String, u32)>, Error> {
        let mut written = Vec::new();
        for kind in [Kind::Pairs, Kind::Labels] {
            self.flush(kind).await?;
            written.push((kind, self.invocation.clone(), self.lines(kind).written));
        }
        written.retain(|(_, _, count)| *count > 0);
        Ok(written)
    }

    /// Where the files of an invocation are.
    pub(super) fn uris(
        &self,
        kind: Kind,
        invocation: &str,
        count: u32,
    ) -> impl Iterator<Item = String> {
        let names = (1..=count).map(move |number| name(kind, invocation, number));
        names.map(|name| self.blobs.export_file(&self.into, &name))
    }

    /// Where the manifest is.
    pub(super) fn manifest(&self) -> String {
        self.blobs.export_manifest(&self.into)
    }

    pub(super) async fn put_manifest(&self, manifest: &impl Serialize) -> Result<(), Error> {
        self.blobs.put_export_manifest(&self.into, manifest).await
    }
}

fn name(kind: Kind, invocation: &str, number: u32) -> String {
    format!("{}/{}", kind.as_str(), file_name(invocation, number))
}
