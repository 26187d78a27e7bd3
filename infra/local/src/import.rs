//! `hearback import`: uploads a file to the bucket's folder of imports, and waits for its report.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use chrono::Utc;
use hearback_batch::notification;
use hearback_domain::events::import::{Counts, ImportReport, Packing};
use hearback_domain::identity::identifier::TenantId;
use hearback_storage::files::import_key;
use hearback_storage::imports::ImportCore;
use hearback_storage::{Blobs, Store, unless_unreadable};
use indicatif::{ProgressBar, ProgressStyle};
use sha2::{Digest, Sha256};

use crate::names::Names;
use crate::queue_tools;

/// Time between two queries of the progress.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Bytes of a read.
const CHUNK: usize = 1024 * 1024;

/// Where to import to.
#[derive(Debug)]
pub struct ImportTarget {
    /// The table.
    pub store: Store,
    /// The bucket.
    pub blobs: Blobs,
    /// Client and URL of the queue of imports. In AWS, the bucket notifies it of a new file.
    pub queue: (aws_sdk_sqs::Client, String),
    /// The tenant that owns the events.
    pub tenant: TenantId,
}

/// Imports a file and waits for the report. If the same file is already being imported, waits for that import.
pub async fn import(file: &Path, target: &ImportTarget) -> Result<ImportReport> {
    let shown = file.display();
    let unreadable = || format!("cannot read {shown}");
    let size = std::fs::metadata(file).with_context(unreadable)?.len();
    let digest = digest(file).with_context(unreadable)?;
    let name = file.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{shown} has no file name"))?;
    let key = import_key(&target.tenant, &format!("{digest}-{name}"))
        .context("the names of tenant and file are no valid object key")?;
    let bar = ProgressBar::new(size);
    let mut uploaded = false;
    let import = loop {
        if let Some(import) = uploaded_import(target, &key).await? {
            break import;
        }
        bar.set_style(ProgressStyle::with_template(
            "{bar:40} {bytes}/{total_bytes} uploaded",
        )?);
        upload(file, target, &key, &bar).await?;
        uploaded = true;
    };
    let id = import.id();
    let row = async || unless_unreadable(target.store.import(&id).await, &id.tenant);
    // Also if the import's row has expired but the file is still there, so that the import deletes the file again; and
    // if the row cannot be read, so that it begins again.
    if uploaded || row().await?.is_none() {
        let (queue, url) = &target.queue;
        let sent = queue
            .send_message()
            .queue_url(url)
            .message_body(notification(&key, import.version.as_deref()));
        sent.send().await.context("cannot reach the queue")?;
    }
    bar.set_style(ProgressStyle::with_template(
        "{bar:40} {pos}/{len} pieces, {msg}, {elapsed}",
    )?);
    loop {
        if let Some(row) = row().await? {
            bar.set_length(row.pieces.unwrap_or(row.done + 1));
            bar.set_position(row.done);
            bar.set_message(progress(&row.counts));
            if let Some(report) = row.report {
                bar.finish_and_clear();
                return Ok(report);
            }
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// The progress of an import: the lines of the pieces that are done.
#[must_use]
pub fn progress(counts: &Counts) -> String {
    let Counts {
        lines,
        queued,
        duplicates,
        rejected,
    } = counts;
    format!("{lines} lines read: {queued} accepted, {duplicates} duplicates, {rejected} rejected")
}

/// The approximate number of imported events, of all imports, that wait for the signal generator.
pub async fn waiting(sqs: &aws_sdk_sqs::Client, names: &Names) -> Result<usize> {
    let url = sqs.get_queue_url().queue_name(names.signals_bulk());
    let url = url.send().await.context("cannot reach the queue")?;
    let url = url.queue_url.context("cannot reach the queue")?;
    let waiting = queue_tools::count(sqs, &url).await;
    waiting.context("cannot reach the queue")
}

/// The import of the file at a key, if it was uploaded.
async fn uploaded_import(target: &ImportTarget, key: &str) -> Result<Option<ImportCore>> {
    let found = target.blobs.file(key, None).await;
    let found = found.context("no bundle answers; is it running?")?;
    Ok(found.map(|found| ImportCore {
        tenant: target.tenant.clone(),
        key: found.key,
        etag: found.etag,
        version: found.version,
        size: found.size,
        // Neither of these is part of the import's id.
        packing: Packing::Plain,
        started_at: Utc::now(),
    }))
}

async fn upload(file: &Path, target: &ImportTarget, key: &str, bar: &ProgressBar) -> Result<()> {
    let mut file = File::open(file)?;
    let mut upload = target.blobs.upload(key);
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            break;
        }
        upload.push(chunk.get(..read).unwrap_or_default()).await?;
        bar.inc(read.try_into()?);
    }
    Ok(upload.finish().await?)
}

/// Half of the SHA-256 digest, which makes the object key unique.
fn digest(file: &Path) -> std::io::Result<String> {
    let mut file = File::open(file)?;
    let mut digest = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            let half = digest.finalize().into_iter().take(8).collect::<Vec<_>>();
            return Ok(hex::encode(half));
        }
        digest.update(chunk.get(..read).unwrap_or_default());
    }
}
