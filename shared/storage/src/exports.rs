//! Exports in the bucket: the files of a run, and the manifest that names those of the run that was
//! completed last.
//!
//! `exports/signals/<tenant>/<day>/<run>/<invocation>-00001.jsonl`, and beside the runs
//! `manifest.json`.

use aws_sdk_s3::primitives::ByteStream;
use chrono::NaiveDate;
use hearback_domain::identifier::TenantId;
use serde::Serialize;

use crate::blobs::{Blobs, unavailable};
use crate::{Error, keys};

/// One run of the export of a tenant's day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportRun {
    day: String,
    run: String,
}

impl ExportRun {
    /// The run of this name.
    #[must_use]
    pub fn new(tenant: &TenantId, day: NaiveDate, run: &str) -> Self {
        let day = keys::export_day(tenant, day);
        Self {
            run: format!("{day}/{run}/"),
            day,
        }
    }

    fn file(&self, name: &str) -> String {
        format!("{}{name}", self.run)
    }

    fn manifest(&self) -> String {
        format!("{}/manifest.json", self.day)
    }
}

impl Blobs {
    /// Where a file of a run is, as an `s3://` URI.
    #[must_use]
    pub fn export_file(&self, run: &ExportRun, name: &str) -> String {
        self.uri(&run.file(name))
    }

    /// Where the manifest of a run's day is, as an `s3://` URI.
    #[must_use]
    pub fn export_manifest(&self, run: &ExportRun) -> String {
        self.uri(&run.manifest())
    }

    /// Stores a file of a run. One call.
    pub async fn put_export_file(
        &self,
        run: &ExportRun,
        name: &str,
        lines: Vec<u8>,
    ) -> Result<(), Error> {
        self.put(run.file(name), "application/jsonl", lines).await
    }

    /// Stores the manifest, over that of a run before. One call.
    pub async fn put_export_manifest(
        &self,
        run: &ExportRun,
        manifest: &impl Serialize,
    ) -> Result<(), Error> {
        let manifest =
            serde_json::to_vec(manifest).map_err(|error| Error::undecodable("manifest", &error))?;
        self.put(run.manifest(), "application/json", manifest).await
    }

    async fn put(&self, key: String, content_type: &str, body: Vec<u8>) -> Result<(), Error> {
        self.client
            .put_object()
            .bucket(&self.bucket)
            .key(key)
            .content_type(content_type)
            .body(ByteStream::from(body))
            .send()
            .await
            .map(|_| ())
            .map_err(|error| unavailable("PutObject", &error))
    }
}
