//! The start of an import.

use chrono::{DateTime, Utc};
use hearback_domain::events::import::{Packing, pieces};
use hearback_storage::files::{is_report, tenant_of_import};
use hearback_storage::imports::ImportCore;
use hearback_storage::unpacked::packing_of;

use super::task::{Merged, NewFile, Piece, Task, Unpacking, Work};
use super::{Failure, Importer};

impl Importer {
    /// Begins or continues the import of a file.
    pub(super) async fn begin(
        &self,
        file: &NewFile,
        until: Option<DateTime<Utc>>,
    ) -> Result<(), Failure> {
        let key = file.key.as_str();
        let Some(tenant) = tenant_of_import(key) else {
            // The bucket notifies of reports too, which are next to the files.
            if !is_report(key) && !key.ends_with('/') {
                tracing::warn!("a file is not in a tenant's folder for imports");
            }
            return Ok(());
        };
        // An imported file may be deleted.
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
        let packing = packing_of(&mut body).await.map_err(|_| Failure::Body)?;
        let import = ImportCore {
            tenant,
            key: file.key,
            etag: file.etag,
            version: file.version,
            size: file.size,
            packing,
            started_at: self.intake.clock.now(),
        };
        let row = self.intake.store.register_import(&import).await?;
        let id = import.id();
        if row.report.is_some() {
            return self.finish(&row, Merged::default(), until).await;
        }
        if row.core.packing != Packing::Plain {
            let unpack = Task::Work(id.clone(), Work::Unpack(Unpacking::default()));
            return self.send(&id.tenant, [unpack]).await;
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
        self.send(&id.tenant, tasks).await?;
        self.finish_if_done(&id, until).await
    }
}
