//! Erasure of files in the bucket: a person's data is deleted in all versions, and everything else is unchanged.

mod exports;
mod imports;
mod versions;

use std::io::Write;

use aws_sdk_s3::types::{BucketVersioningStatus, VersioningConfiguration};
use chrono::{DateTime, Utc};
use flate2::Compression;
use flate2::write::GzEncoder;
use hearback_domain::events::import::{Counts, ImportReport, Packing};
use hearback_domain::identity::identifier::TenantId;
use hearback_erasure::{ErasedFiles, erase_files};
use hearback_storage::Blobs;
use hearback_storage::files::{import_key, report_key};
use hearback_tests::engine::{ENDPOINT_URL, Engine};
use serde_json::Value;

fn acme() -> TenantId {
    "acme".try_into().unwrap()
}

fn is_adas(line: &Value) -> bool {
    line["userId"] == "ada"
}

/// Starts an engine with a versioned bucket, as in AWS. Returns whether the engine supports versions.
async fn versioned() -> (Engine, bool) {
    let engine = Engine::start().await;
    let enabled = VersioningConfiguration::builder()
        .status(BucketVersioningStatus::Enabled)
        .build();
    let put = engine.clients.s3.put_bucket_versioning();
    let put = put.bucket(engine.names.bucket());
    let put = put.versioning_configuration(enabled).send().await;
    // The embedded engine has no versions.
    assert_eq!(put.is_ok(), std::env::var(ENDPOINT_URL).is_ok());
    (engine, put.is_ok())
}

struct Bucket {
    engine: Engine,
    blobs: Blobs,
    keeps_versions: bool,
}

impl Bucket {
    async fn start() -> Self {
        let (engine, keeps_versions) = versioned().await;
        let blobs = engine.blobs();
        Self {
            engine,
            blobs,
            keeps_versions,
        }
    }

    async fn put(&self, key: &str, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref().to_vec();
        self.blobs.put_file(key, bytes).await.unwrap();
    }

    /// Stores a file as a multipart upload, so that no call takes long.
    async fn put_in_parts(&self, key: &str, text: &str) {
        let mut upload = self.blobs.upload(key);
        upload.push(text.as_bytes()).await.unwrap();
        upload.finish().await.unwrap();
    }

    async fn read(&self, key: &str) -> Option<Vec<u8>> {
        let (_, body) = self.blobs.open(key).await.unwrap()?;
        Some(body.collect().await.unwrap().to_vec())
    }

    async fn text(&self, key: &str) -> String {
        String::from_utf8(self.read(key).await.unwrap()).unwrap()
    }

    /// Stores a file, and the report of an import that started after that.
    async fn put_imported(&self, name: &str, packing: Packing, bytes: &[u8]) -> String {
        let key = import_key(&acme(), name).unwrap();
        self.put(&key, bytes).await;
        // The time of a file has a resolution of a second.
        let started_at = Utc::now() + chrono::Duration::seconds(1);
        let report = serde_json::to_vec(&report(&key, packing, started_at)).unwrap();
        self.put(&report_key(&key, "report.json"), report).await;
        key
    }

    async fn erase(&self) -> ErasedFiles {
        let (tenant, over) = (acme(), || false);
        let erased = erase_files(&self.blobs, &tenant, &is_adas, None, &over).await;
        erased.unwrap()
    }

    async fn keys(&self) -> Vec<String> {
        let listed = self.blobs.list("", None).await.unwrap();
        listed.into_iter().map(|listed| listed.key).collect()
    }

    /// The keys of all versions and delete markers, if the engine has versions.
    async fn versions(&self) -> Option<Vec<String>> {
        if !self.keeps_versions {
            return None;
        }
        let listed = self.engine.clients.s3.list_object_versions();
        let listed = listed.bucket(self.engine.names.bucket()).send().await;
        let listed = listed.unwrap();
        let versions = listed.versions().iter().map(|version| version.key());
        let marks = listed.delete_markers().iter().map(|mark| mark.key());
        let mut keys: Vec<_> = versions
            .chain(marks)
            .map(|key| key.unwrap().to_owned())
            .collect();
        keys.sort();
        Some(keys)
    }

    /// Asserts that exactly these objects are left, with one version each.
    async fn assert_left(&self, mut left: Vec<String>) {
        left.sort();
        assert_eq!(self.keys().await, left);
        if let Some(versions) = self.versions().await {
            assert_eq!(versions, left);
        }
    }
}

fn report(key: &str, packing: Packing, started_at: DateTime<Utc>) -> ImportReport {
    ImportReport {
        file: key.to_owned(),
        packing,
        bytes: 1,
        damage: None,
        counts: Counts::default(),
        started_at,
        finished_at: started_at,
        events_per_second: 1.0,
        first_errors: Vec::new(),
        rejects: None,
        more_rejects: Vec::new(),
        rejects_left_out: 0,
        rejects_bound: None,
        file_deleted: false,
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

const ADA: &str = r#"{"userId": "ada", "comment": "I am Ada"}"#;
const BOB: &str = r#"{"userId": "bob",  "comment": "Ada is not my name"}"#;
