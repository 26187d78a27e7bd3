//! The erasure in the bucket: lines of exports, files that were imported, and what is told of them.
//!
//! | object | what happens if a line of it belongs to the person |
//! |---|---|
//! | `exports/…/*.jsonl` | the line is removed |
//! | a file that was imported | the file is deleted: what was in it is in the table |
//! | a file that is not imported yet | nothing: what it says is still to come |
//! | `rejects.jsonl` and those that follow it | the line is removed |
//!
//! What was wrong with a line, which `report.json` tells too, is said in words of our own, and names no
//! member but those of the schema.
//!
//! Versions from before, of exports and of what is told of imports, are deleted with every erasure, so
//! that nobody is to be found in them. Of files to import they expire as the bucket's rules say.

use hearback_domain::identifier::TenantId;
use hearback_domain::import::{LONGEST_LINE, Reject, Report};
use hearback_domain::lines::Lines;
use hearback_storage::blobs::body_not_read;
use hearback_storage::files::{REPORT, beside, is_rejects, is_report};
use hearback_storage::unpacked::{Broken, Unpacked};
use hearback_storage::versions::Listed;
use hearback_storage::{Blobs, Error, keys};
use serde_json::Value;

/// Bytes that are unpacked at once.
const CHUNK: usize = 64 * 1024;
/// Longest report that is read, in bytes: one has the errors of ten lines.
const LONGEST_REPORT: u64 = 1024 * 1024;

/// What a run came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Erased {
    /// Lines that were removed from exports.
    pub export_lines: u64,
    /// Imported files that were deleted.
    pub import_files: u64,
    /// Lines that were removed from what imports had rejected.
    pub import_lines: u64,
    /// Behind which key the next run goes on; `None` if all is done.
    pub next: Option<String>,
}

/// Whether the JSON of a line is the person's.
type Belongs<'a> = &'a (dyn Fn(&Value) -> bool + Send + Sync);

/// Erases what belongs to a person from a tenant's files, from where a run before ended. However little
/// time there is, a run gets on by one file; a file that takes all of it is begun by a run of its own.
///
/// Memory holds a line and a part of a file, and what its packing looks back on ([`Unpacked`]). May be
/// repeated.
pub async fn erase_files(
    blobs: &Blobs,
    tenant: &TenantId,
    belongs: Belongs<'_>,
    after: Option<&str>,
    is_over: &(dyn Fn() -> bool + Send + Sync),
) -> Result<Erased, Error> {
    let mut run = Run {
        blobs,
        belongs,
        is_over,
        begun: false,
        erased: Erased::default(),
    };
    let folders = [
        (Kind::Exports, keys::signal_exports_of(tenant)),
        (Kind::Exports, keys::training_exports_of(tenant)),
        (Kind::Imports, keys::imports_of(tenant)),
    ];
    // In the order of their names.
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

/// What a folder holds.
#[derive(Clone, Copy)]
enum Kind {
    Exports,
    Imports,
}

impl Kind {
    /// Whether nobody needs what lay there before.
    fn is_ours(self, key: &str) -> bool {
        match self {
            Self::Exports => is_rows(key),
            Self::Imports => is_report(key),
        }
    }
}

struct Run<'a> {
    blobs: &'a Blobs,
    belongs: Belongs<'a>,
    is_over: &'a (dyn Fn() -> bool + Send + Sync),
    /// Whether this run did something.
    begun: bool,
    erased: Erased,
}

impl Run<'_> {
    /// Whether the rest is the next run's. The first step is not: each run gets on.
    fn hands_on(&self) -> bool {
        self.begun && (self.is_over)()
    }

    /// Works off a folder behind a key; `false` if time is up, and then the key is the last that is done.
    async fn folder(&mut self, kind: Kind, folder: &str, at: &mut String) -> Result<bool, Error> {
        loop {
            let page = self.blobs.list(folder, Some(at)).await?;
            if page.is_empty() {
                break;
            }
            for listed in page {
                if self.hands_on() || !self.object(kind, &listed).await? {
                    return Ok(false);
                }
                self.begun = true;
                *at = listed.key;
            }
        }
        if self.hands_on() {
            return Ok(false);
        }
        let spare = |listed: &Listed| !kind.is_ours(&listed.key);
        self.blobs.delete_older_versions(folder, spare).await?;
        self.begun = true;
        Ok(true)
    }

    /// `false` if time is up before the end of the object.
    async fn object(&mut self, kind: Kind, listed: &Listed) -> Result<bool, Error> {
        let key = &listed.key;
        match kind {
            Kind::Exports if is_rows(key) => {
                let belongs = |line: &[u8]| self.is_theirs(line);
                self.erased.export_lines += self.blobs.remove_lines(key, belongs).await?;
            }
            Kind::Imports if !is_report(key) => return self.imported(listed).await,
            Kind::Imports if is_rejects(key) => {
                let belongs = |line: &[u8]| self.is_their_reject(line);
                self.erased.import_lines += self.blobs.remove_lines(key, belongs).await?;
            }
            Kind::Exports | Kind::Imports => {}
        }
        Ok(true)
    }

    /// Whether a line is the person's; one that is no JSON is nobody's.
    fn is_theirs(&self, line: &[u8]) -> bool {
        serde_json::from_slice(line).is_ok_and(|value| (self.belongs)(&value))
    }

    /// Whether a line that was rejected is the person's.
    fn is_their_reject(&self, line: &[u8]) -> bool {
        let reject = serde_json::from_slice::<Reject>(line).ok();
        let line = reject.and_then(|reject| reject.line);
        line.is_some_and(|line| self.is_theirs(line.as_bytes()))
    }

    /// Deletes a file that was imported, if a line of it is the person's.
    async fn imported(&mut self, listed: &Listed) -> Result<bool, Error> {
        let Some(report) = self.report_of(&listed.key).await? else {
            return Ok(true);
        };
        let Some((file, body)) = self.blobs.open(&listed.key).await? else {
            return Ok(true);
        };
        // Another may have come in its place, which the report does not tell of.
        if listed.modified.max(file.modified) > report.started_at {
            return Ok(true);
        }
        let unpacked = Unpacked::new(report.packing, body);
        match self.has_theirs(unpacked).await? {
            Some(true) => {
                self.blobs.remove_file(&file).await?;
                self.erased.import_files += 1;
                Ok(true)
            }
            Some(false) => Ok(true),
            None => Ok(false),
        }
    }

    /// Whether a line of a file is the person's; `None` if time is up before that is known. What cannot be
    /// unpacked was not imported either.
    async fn has_theirs(&self, mut unpacked: Unpacked) -> Result<Option<bool>, Error> {
        let mut lines = Lines::new(LONGEST_LINE);
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = match unpacked.read(&mut chunk).await {
                Ok(read) => read,
                Err(Broken::Body) => return Err(body_not_read()),
                Err(Broken::Packing) => return Ok(Some(false)),
            };
            if read == 0 {
                lines.end();
            } else {
                lines.push(chunk.get(..read).unwrap_or_default());
            }
            while let Some(line) = lines.next_line() {
                if line.content.is_some_and(|line| self.is_theirs(line)) {
                    return Ok(Some(true));
                }
            }
            if read == 0 {
                return Ok(Some(false));
            }
            if self.hands_on() {
                return Ok(None);
            }
        }
    }

    /// The report of an imported file, as it lies in the bucket.
    async fn report_of(&self, key: &str) -> Result<Option<Report>, Error> {
        let Some((file, body)) = self.blobs.open(&beside(key, REPORT)).await? else {
            return Ok(None);
        };
        if file.size > LONGEST_REPORT {
            tracing::warn!("a report of an import is too long to be one");
            return Ok(None);
        }
        let body = body.collect().await.map_err(|_| body_not_read())?;
        let report = serde_json::from_slice(&body.into_bytes());
        if report.is_err() {
            tracing::warn!("a report of an import is none");
        }
        Ok(report.ok())
    }
}

/// Whether rows of an export lie at a key.
fn is_rows(key: &str) -> bool {
    key.rsplit_once('.')
        .is_some_and(|(_, extension)| extension == "jsonl")
}
