//! Exports in the bucket: the files of a run, and the manifest that names those of the run that was
//! completed last.
//!
//! `exports/signals/<tenant>/<day>/<run>/<invocation>-00001.jsonl` of an evaluation,
//! `exports/training/<tenant>/<project>/<run>/<kind>/<invocation>-00001.jsonl` of a training export, and beside the
//! runs `manifest.json`.

use aws_sdk_s3::primitives::ByteStream;
use chrono::NaiveDate;
use hearback_domain::identifier::{ProjectId, TenantId};
use serde::Serialize;

use crate::blobs::{Blobs, unavailable};
use crate::{Error, keys};

/// One run of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportRun {
    runs: String,
    run: String,
}

impl ExportRun {
    /// The run of this name of a tenant's day.
    #[must_use]
    pub fn new(tenant: &TenantId, day: NaiveDate, run: &str) -> Self {
        Self::among(keys::export_day(tenant, day), run)
    }

    /// The run of this name of a project's training export.
    #[must_use]
    pub fn of_training(tenant: &TenantId, project: &ProjectId, run: &str) -> Self {
        Self::among(keys::export_training(tenant, project), run)
    }

    fn among(runs: String, run: &str) -> Self {
        Self {
            run: format!("{runs}/{run}/"),
            runs,
        }
    }

    fn file(&self, name: &str) -> String {
        format!("{}{name}", self.run)
    }

    fn manifest(&self) -> String {
        format!("{}/manifest.json", self.runs)
    }
}

impl Blobs {
    /// Where a file of a run is, as an `s3://` URI.
    #[must_use]
    pub fn export_file(&self, run: &ExportRun, name: &str) -> String {
        self.uri(&run.file(name))
    }

    /// Where the manifest beside a run is, as an `s3://` URI.
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

    pub(crate) async fn put(
        &self,
        key: String,
        content_type: &str,
        body: Vec<u8>,
    ) -> Result<(), Error> {
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
