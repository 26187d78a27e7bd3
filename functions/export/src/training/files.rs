//! The files of a run, as JSON Lines. Each kind of rows has files of its own, so that a file has one schema.

use hearback_domain::export::training::RowKind;
use hearback_storage::exports::ExportRun;
use hearback_storage::{Blobs, Error};
use serde::Serialize;

use crate::{FILE_SIZE, Failure, file_name};

/// The files that this invocation writes.
pub(super) struct Files<'a> {
    blobs: &'a Blobs,
    export: ExportRun,
    invocation: String,
    pairs: Lines,
    labels: Lines,
}

#[derive(Default)]
struct Lines {
    /// Files that were written.
    written: u32,
    /// The file that is not written yet.
    file: Vec<u8>,
}

impl<'a> Files<'a> {
    pub(super) fn new(blobs: &'a Blobs, export: ExportRun, invocation: String) -> Self {
        Self {
            blobs,
            export,
            invocation,
            pairs: Lines::default(),
            labels: Lines::default(),
        }
    }

    fn lines(&mut self, kind: RowKind) -> &mut Lines {
        match kind {
            RowKind::Pairs => &mut self.pairs,
            RowKind::Labels => &mut self.labels,
        }
    }

    /// Adds a row, and writes the file if it is full.
    pub(super) async fn add(&mut self, kind: RowKind, row: &impl Serialize) -> Result<(), Failure> {
        let lines = self.lines(kind);
        serde_json::to_writer(&mut lines.file, row)?;
        lines.file.push(b'\n');
        if lines.file.len() >= FILE_SIZE {
            self.flush(kind).await?;
        }
        Ok(())
    }

    async fn flush(&mut self, kind: RowKind) -> Result<(), Error> {
        let lines = self.lines(kind);
        if lines.file.is_empty() {
            return Ok(());
        }
        let file = std::mem::take(&mut lines.file);
        lines.written += 1;
        let number = lines.written;
        let name = name(kind, &self.invocation, number);
        self.blobs.put_export_file(&self.export, &name, file).await
    }

    /// Writes the rest, and returns how many files of each kind this invocation wrote.
    pub(super) async fn close(&mut self) -> Result<Vec<(RowKind, String, u32)>, Error> {
        let mut written = Vec::new();
        for kind in [RowKind::Pairs, RowKind::Labels] {
            self.flush(kind).await?;
            written.push((kind, self.invocation.clone(), self.lines(kind).written));
        }
        written.retain(|(_, _, count)| *count > 0);
        Ok(written)
    }

    /// The URIs of an invocation's files.
    pub(super) fn uris(
        &self,
        kind: RowKind,
        invocation: &str,
        count: u32,
    ) -> impl Iterator<Item = String> {
        let names = (1..=count).map(move |number| name(kind, invocation, number));
        names.map(|name| self.blobs.export_file(&self.export, &name))
    }

    /// The URI of the manifest.
    pub(super) fn manifest(&self) -> String {
        self.blobs.export_manifest(&self.export)
    }

    pub(super) async fn put_manifest(&self, manifest: &impl Serialize) -> Result<(), Error> {
        self.blobs.put_export_manifest(&self.export, manifest).await
    }
}

fn name(kind: RowKind, invocation: &str, number: u32) -> String {
    format!("{}/{}", kind.as_str(), file_name(invocation, number))
}
