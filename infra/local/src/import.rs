//! Imports a file from the command line: puts it where files to import lie, and waits for its report.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use chrono::Utc;
use hearback_batch::notification;
use hearback_domain::identifier::TenantId;
use hearback_domain::import::{Packing, Report};
use hearback_storage::files::import_key;
use hearback_storage::imports::ImportCore;
use hearback_storage::{Blobs, Store};
use indicatif::{ProgressBar, ProgressStyle};
use sha2::{Digest, Sha256};

/// How often it is asked how far the import is.
const POLL: Duration = Duration::from_millis(250);
/// Bytes that are read at once.
const CHUNK: usize = 1024 * 1024;

/// Where to import to.
#[derive(Debug)]
pub struct Target {
    /// The table.
    pub store: Store,
    /// The bucket.
    pub blobs: Blobs,
    /// The queue of imports, which in AWS the bucket tells of a file.
    pub queue: (aws_sdk_sqs::Client, String),
    /// Whose events they are.
    pub tenant: TenantId,
}

/// Imports a file, or goes on to wait for its import. The same file is the same import.
pub async fn import(file: &Path, target: &Target) -> Result<Report> {
    let shown = file.display();
    let unreadable = || format!("cannot read {shown}");
    let size = std::fs::metadata(file).with_context(unreadable)?.len();
    let digest = digest(file).with_context(unreadable)?;
    let name = file.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{shown} has no name"))?;
    let key = import_key(&target.tenant, &format!("{digest}-{name}"))
        .context("the tenant's name is too long for a folder, or the file's name is none")?;
    let bar = ProgressBar::new(size);
    let mut uploaded = false;
    let import = loop {
        if let Some(import) = entered(target, &key).await? {
            break import;
        }
        bar.set_style(ProgressStyle::with_template(
            "{bar:40} {bytes}/{total_bytes} uploaded",
        )?);
        upload(file, target, &key, &bar).await?;
        uploaded = true;
    };
    let id = import.id();
    // Also of a file that was imported before and is gone since: it is to be deleted again.
    if uploaded || target.store.import(&id).await?.is_none() {
        let (queue, url) = &target.queue;
        let sent = queue
            .send_message()
            .queue_url(url)
            .message_body(notification(&key, import.version.as_deref()));
        sent.send().await.context("the queue cannot be reached")?;
    }
    bar.set_style(ProgressStyle::with_template(
        "{bar:40} {pos}/{len} pieces, {elapsed}",
    )?);
    loop {
        let row = target.store.import(&id).await?;
        if let Some(row) = row {
            bar.set_length(row.pieces.unwrap_or(row.done + 1));
            bar.set_position(row.done);
            if let Some(report) = row.report {
                bar.finish_and_clear();
                return Ok(report);
            }
        }
        tokio::time::sleep(POLL).await;
    }
}

/// The import of what lies at a key, if something does.
async fn entered(target: &Target, key: &str) -> Result<Option<ImportCore>> {
    let found = target.blobs.file(key, None).await;
    let found = found.context("no bundle answers; is it running?")?;
    Ok(found.map(|found| ImportCore {
        tenant: target.tenant.clone(),
        key: found.key,
        etag: found.etag,
        version: found.version,
        size: found.size,
        // Neither is part of which import it is.
        packing: Packing::Plain,
        started_at: Utc::now(),
    }))
}

async fn upload(file: &Path, target: &Target, key: &str, bar: &ProgressBar) -> Result<()> {
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

/// What tells a file from any other.
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
