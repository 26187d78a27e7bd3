//! The start of an import.

use chrono::{DateTime, Utc};
use hearback_domain::import::{Packing, pieces};
use hearback_storage::files::{is_report, whose};
use hearback_storage::imports::ImportCore;

use super::rejects::Merged;
use super::task::{Named, Piece, Task, Unpacking, Work};
use super::{Failure, Importer};

/// Bytes by which a packing is told.
const MAGIC: usize = 4;

impl Importer {
    /// Begins to import a file, or goes on if it was begun.
    pub(super) async fn begin(
        &self,
        file: &Named,
        until: Option<DateTime<Utc>>,
    ) -> Result<(), Failure> {
        let key = file.key.as_str();
        let Some(tenant) = whose(key) else {
            // The reports lie beside the files, and are told of too.
            if !is_report(key) && !key.ends_with('/') {
                tracing::warn!("a file lies where no tenant's files to import lie");
            }
            return Ok(());
        };
        // A file that was imported may be gone.
        let Some(file) = self.blobs.file(key, file.version.as_deref()).await? else {
            return Ok(());
        };
        let found = self.blobs.read_from(key, file.version.as_deref(), 0);
        let Some((etag, mut body)) = found.await? else {
            return Ok(());
        };
        if etag != file.etag {
            // It was replaced between the two calls.
            return Err(Failure::Body);
        }
        let mut first = Vec::new();
        while first.len() < MAGIC
            && let Some(bytes) = body.next().await
        {
            first.extend_from_slice(&bytes.map_err(|_| Failure::Body)?);
        }
        let import = ImportCore {
            tenant,
            key: file.key,
            etag: file.etag,
            version: file.version,
            size: file.size,
            packing: Packing::of(&first),
            started_at: self.intake.clock.now(),
        };
        let row = self.intake.store.enter_import(&import).await?;
        let id = import.id();
        if row.report.is_some() {
            return self.finish(&row, Merged::default(), until).await;
        }
        if row.core.packing != Packing::Plain {
            let begun = Unpacking { skip: 0, next: 1 };
            return self.send([Task::Work(id, Work::Unpack(begun))]).await;
        }
        let pieces = pieces(row.core.size);
        let count = u64::try_from(pieces.len()).unwrap_or(u64::MAX);
        let store = &self.intake.store;
        store.note_import_pieces(&id, count, None).await?;
        let tasks = (1..).zip(pieces).map(|(number, range)| {
            let piece = Piece {
                number,
                from: range.start,
                to: range.end,
                unpacked: false,
            };
            Task::Work(id.clone(), Work::Piece(piece))
        });
        self.send(tasks).await?;
        self.finish_if_done(&id, until).await
    }
}
