//! Erases a person's data from the bucket: lines of exports, imported files and rejects.
//!
//! | object | if a line of it is the person's |
//! |---|---|
//! | `exports/…/*.jsonl` | the line is removed |
//! | an imported file | the file is deleted: its events are in the table |
//! | an imported file whose report cannot be read | the same, unless it is newer than the report |
//! | a file that is not imported yet | nothing: its events are removed when they are imported |
//! | `rejects.jsonl` and its continuations | the line is removed |
//!
//! The errors of a line, in these files and in `report.json`, are Hearback's own texts, and have no data of the line.
//!
//! Noncurrent versions of exports and of reports are deleted with every erasure, so that no person is found in them.
//! Those of files to import expire by the bucket's rules.

use chrono::{DateTime, TimeDelta, Utc};
use hearback_domain::events::import::{
    Bounds, ImportReport, MAX_LINE_BYTES, MIN_LINE_BYTES, Packing, Reject,
};
use hearback_domain::identity::identifier::TenantId;
use hearback_domain::text::lines::Lines;
use hearback_storage::blobs::body_not_read;
use hearback_storage::files::{REPORT, is_rejects, is_report, report_key};
use hearback_storage::files::{imports_of, signal_exports_of, training_exports_of};
use hearback_storage::unpacked::{UnpackError, Unpacked, packing_of};
use hearback_storage::versions::ListedObject;
use hearback_storage::{Blobs, Error};
use serde_json::Value;

/// Bytes of one read.
const CHUNK: usize = 64 * 1024;
/// The longest report that is read, in bytes. A report has the errors of ten lines.
const MAX_REPORT: u64 = 1024 * 1024;

/// The result of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErasedFiles {
    /// Lines that were removed from exports.
    pub export_lines: u64,
    /// Imported files that were deleted.
    pub import_files: u64,
    /// Lines that were removed from the rejects of imports.
    pub import_lines: u64,
    /// The key after which the next run continues; `None` if all is done.
    pub next: Option<String>,
}

/// Whether the event or row in a line is the person's.
type Belongs<'a> = &'a (dyn Fn(&Value) -> bool + Send + Sync);

/// Erases a person's data from a tenant's files, after the key where an earlier run ended. Repeatable.
///
/// Each run completes one file at least, unless that file takes all of its time; then the next run begins with it.
/// Memory holds a line, a part of a file, and the window of its compression ([`Unpacked`]).
pub async fn erase_files(
    blobs: &Blobs,
    tenant: &TenantId,
    belongs: Belongs<'_>,
    after: Option<&str>,
    is_over: &(dyn Fn() -> bool + Send + Sync),
) -> Result<ErasedFiles, Error> {
    let mut run = Run {
        tenant,
        blobs,
        belongs,
        is_over,
        progressed: false,
        erased: ErasedFiles::default(),
    };
    let folders = [
        (Kind::Exports, signal_exports_of(tenant)),
        (Kind::Exports, training_exports_of(tenant)),
        (Kind::Imports, imports_of(tenant)),
    ];
    // In the order of the folders' keys.
    for (kind, folder) in folders {
        let mut at = match after {
            Some(after) if after.starts_with(&folder) => after.to_owned(),
            Some(after) if after > folder.as_str() => continue,
            _ => folder.clone(),
        };
        if !run.folder(kind, &folder, &mut at).await? {
            run.erased.next = Some(at);
            break;
        }
    }
    Ok(run.erased)
}

/// The kind of files in a folder.
#[derive(Clone, Copy)]
enum Kind {
    Exports,
    Imports,
}

impl Kind {
    /// Whether noncurrent versions of this key are deleted.
    fn has_no_history(self, key: &str) -> bool {
        match self {
            Self::Exports => is_rows(key),
            Self::Imports => is_report(key),
        }
    }
}

struct Run<'a> {
    tenant: &'a TenantId,
    blobs: &'a Blobs,
    belongs: Belongs<'a>,
    is_over: &'a (dyn Fn() -> bool + Send + Sync),
    /// Whether this run made any progress.
    progressed: bool,
    erased: ErasedFiles,
}

impl Run<'_> {
    /// Whether the rest is left to the next run. The first step never is, so that each run makes progress.
    fn is_out_of_time(&self) -> bool {
        self.progressed && (self.is_over)()
    }

    /// Processes a folder after the key `at`; returns `false` if the time is up, with `at` as the last key that is
    /// done.
    async fn folder(&mut self, kind: Kind, folder: &str, at: &mut String) -> Result<bool, Error> {
        loop {
            let page = self.blobs.list(folder, Some(at)).await?;
            if page.is_empty() {
                break;
            }
            for listed in page {
                if self.is_out_of_time() || !self.object(kind, &listed).await? {
                    return Ok(false);
                }
                self.progressed = true;
                *at = listed.key;
            }
        }
        if self.is_out_of_time() {
            return Ok(false);
        }
        let keep = |listed: &ListedObject| !kind.has_no_history(&listed.key);
        self.blobs.delete_older_versions(folder, keep).await?;
        self.progressed = true;
        Ok(true)
    }

    /// Processes an object; returns `false` if the time is up before its end.
    async fn object(&mut self, kind: Kind, listed: &ListedObject) -> Result<bool, Error> {
        let key = &listed.key;
        match kind {
            Kind::Exports if is_rows(key) => {
                let belongs = |line: &[u8]| self.is_line_of_person(line);
                self.erased.export_lines += self.blobs.remove_lines(key, belongs).await?;
            }
            Kind::Imports if !is_report(key) => return self.imported_file(listed).await,
            Kind::Imports if is_rejects(key) => {
                let belongs = |line: &[u8]| self.is_reject_of_person(line);
                self.erased.import_lines += self.blobs.remove_lines(key, belongs).await?;
            }
            Kind::Exports | Kind::Imports => {}
        }
        Ok(true)
    }

    /// Whether a line is the person's. A line that is not JSON matches no person.
    fn is_line_of_person(&self, line: &[u8]) -> bool {
        serde_json::from_slice(line).is_ok_and(|value| (self.belongs)(&value))
    }

    /// Whether a reject is the person's.
    fn is_reject_of_person(&self, line: &[u8]) -> bool {
        let reject = serde_json::from_slice::<Reject>(line).ok();
        let line = reject.and_then(|reject| reject.line);
        line.is_some_and(|line| self.is_line_of_person(line.as_bytes()))
    }

    /// Deletes an imported file if a line of it is the person's; returns `false` if the time is up before that is
    /// known.
    async fn imported_file(&mut self, listed: &ListedObject) -> Result<bool, Error> {
        let Some(import) = self.import_of(&listed.key).await? else {
            return Ok(true);
        };
        let Some((file, mut body)) = self.blobs.open(&listed.key).await? else {
            return Ok(true);
        };
        // The report may be that of an earlier file with this key.
        if listed.modified.max(file.modified) > import.started_at {
            return Ok(true);
        }
        let packing = if let Some(packing) = import.packing {
            packing
        } else {
            let packing = packing_of(&mut body).await.map_err(|_| body_not_read())?;
            let Some((again, from_start)) = self.blobs.open(&listed.key).await? else {
                return Ok(true);
            };
            if again.etag != file.etag {
                return Err(body_not_read());
            }
            body = from_start;
            packing
        };
        let bound = match packing {
            Packing::Plain => u64::MAX,
            Packing::Gzip | Packing::Zstd => Bounds::default().max_unpacked_bytes(file.size),
        };
        let unpacked = Unpacked::new(packing, body);
        match self.has_line_of_person(unpacked, bound).await? {
            Some(true) => {
                self.blobs.remove_file(&file).await?;
                self.erased.import_files += 1;
                Ok(true)
            }
            Some(false) => Ok(true),
            None => Ok(false),
        }
    }

    /// Whether a line of a file is the person's; `None` if the time is up before that is known. Lines that cannot be
    /// unpacked, and lines beyond `bound`, were not imported either. Lines count towards the bound as in the import.
    async fn has_line_of_person(
        &self,
        mut unpacked: Unpacked,
        bound: u64,
    ) -> Result<Option<bool>, Error> {
        let mut lines = Lines::new(MAX_LINE_BYTES);
        let (mut counted, mut unpacked_bytes) = (0, 0);
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = match unpacked.read(&mut chunk).await {
                Ok(read) => read,
                Err(UnpackError::Body) => return Err(body_not_read()),
                Err(UnpackError::Packing) => return Ok(Some(false)),
            };
            if read == 0 {
                lines.end();
            } else {
                lines.push(chunk.get(..read).unwrap_or_default());
            }
            unpacked_bytes += u64::try_from(read).unwrap_or(u64::MAX);
            while let Some(line) = lines.next_line() {
                counted += (line.end - line.offset).max(MIN_LINE_BYTES);
                if counted > bound {
                    return Ok(Some(false));
                }
                if line
                    .content
                    .is_some_and(|line| self.is_line_of_person(line))
                {
                    return Ok(Some(true));
                }
            }
            // A line without an end counts only here.
            if read == 0 || unpacked_bytes > bound {
                return Ok(Some(false));
            }
            if self.is_out_of_time() {
                return Ok(None);
            }
            // Unpacking may never wait for the bucket.
            tokio::task::yield_now().await;
        }
    }

    /// The import of a file, if it was imported: a report exists, even if it cannot be read.
    async fn import_of(&self, key: &str) -> Result<Option<ReportedImport>, Error> {
        let Some((report, body)) = self.blobs.open(&report_key(key, REPORT)).await? else {
            return Ok(None);
        };
        let mut parsed = None;
        if report.size <= MAX_REPORT {
            let body = body.collect().await.map_err(|_| body_not_read())?;
            parsed = serde_json::from_slice::<ImportReport>(&body.into_bytes()).ok();
        }
        if parsed.is_none() {
            tracing::warn!(
                tenant = %self.tenant,
                damaged = true,
                "the report of an import cannot be read: its file is searched"
            );
        }
        Ok(Some(match parsed {
            Some(parsed) => ReportedImport {
                started_at: parsed.started_at,
                packing: Some(parsed.packing),
            },
            None => ReportedImport {
                // The fraction of the second is only in a listing, from which the time of the file may be.
                started_at: report.modified + TimeDelta::seconds(1),
                packing: None,
            },
        }))
    }
}

/// An import, as in its report.
struct ReportedImport {
    /// The latest time at which it began.
    started_at: DateTime<Utc>,
    /// The compression of its file, if the report can be read.
    packing: Option<Packing>,
}

fn is_rows(key: &str) -> bool {
    key.rsplit_once('.')
        .is_some_and(|(_, extension)| extension == "jsonl")
}
