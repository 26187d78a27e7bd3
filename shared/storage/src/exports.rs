//! Exports in the bucket: the files of each run, and a manifest that lists those of the last
//! completed run.
//!
//! `exports/signals/<tenant>/<day>/<run>/<invocation>-00001.jsonl` is a file of an evaluation,
//! `exports/training/<tenant>/<project>/<run>/<kind>/<invocation>-00001.jsonl` one of a training
//! export. `manifest.json` is next to the runs.

use aws_sdk_s3::primitives::ByteStream;
use chrono::NaiveDate;
use hearback_domain::identity::identifier::{ProjectId, TenantId};
use serde::Serialize;

use crate::blobs::{Blobs, unavailable};
use crate::{Error, keys};

/// One run of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportRun {
    folder: String,
    run: String,
}

impl ExportRun {
    /// The run with this name, of a tenant's day.
    #[must_use]
    pub fn new(tenant: &TenantId, day: NaiveDate, run: &str) -> Self {
        Self::in_folder(keys::export_day(tenant, day), run)
    }

    /// The run with this name, of a project's training export.
    #[must_use]
    pub fn of_training(tenant: &TenantId, project: &ProjectId, run: &str) -> Self {
        Self::in_folder(keys::export_training(tenant, project), run)
    }

    fn in_folder(folder: String, run: &str) -> Self {
        Self {
            run: format!("{folder}/{run}/"),
            folder,
        }
    }

    fn file(&self, name: &str) -> String {
        format!("{}{name}", self.run)
    }

    fn manifest(&self) -> String {
        format!("{}/manifest.json", self.folder)
    }
}

impl Blobs {
    /// The `s3://` URI of a file of a run.
    #[must_use]
    pub fn export_file(&self, run: &ExportRun, name: &str) -> String {
        self.uri(&run.file(name))
    }

    /// The `s3://` URI of the manifest of a run.
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

    /// Stores the manifest, which replaces that of an earlier run. One call.
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
