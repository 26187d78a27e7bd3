//! Exports in the bucket: the parts of a run, and the manifest that names the newest complete run.
//!
//! `exports/signals/<tenant>/<day>/<run>/part-00001.jsonl`, and beside the runs `manifest.json`.

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

    fn part(&self, number: u32) -> String {
        format!("{}{}", self.run, part_name(number))
    }

    fn manifest(&self) -> String {
        format!("{}/manifest.json", self.day)
    }
}

/// The name of a part within its run's folder, counted from 1.
#[must_use]
pub fn part_name(number: u32) -> String {
    format!("part-{number:05}.jsonl")
}

impl Blobs {
    /// Where the parts of a run are, as an `s3://` URI.
    #[must_use]
    pub fn export_folder(&self, run: &ExportRun) -> String {
        self.uri(&run.run)
    }

    /// Where the manifest of a run's day is, as an `s3://` URI.
    #[must_use]
    pub fn export_manifest(&self, run: &ExportRun) -> String {
        self.uri(&run.manifest())
    }

    /// Stores a part. One call.
    pub async fn put_export_part(
        &self,
        run: &ExportRun,
        number: u32,
        lines: Vec<u8>,
    ) -> Result<(), Error> {
        self.put(run.part(number), "application/jsonl", lines).await
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
