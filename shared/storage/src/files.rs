//! Files of imports in the bucket: the imported files, their reports, and intermediate files of the
//! workers.
//!
//! `imports/<tenant>/<file>`, and next to it `<file>.import/report.json` and `<file>.import/rejects.jsonl`;
//! `imports-work/<tenant>/<import>/…`.

use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::operation::get_object::{GetObjectError, GetObjectOutput};
use aws_sdk_s3::operation::head_object::HeadObjectError;
pub use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::primitives::DateTime as SdkDateTime;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use chrono::{DateTime, Utc};
use hearback_domain::identity::identifier::TenantId;

use crate::Error;
use crate::blobs::{Blobs, unavailable};
use crate::imports::ImportId;
use crate::keys;
pub use crate::keys::{imports_of, signal_exports_of, training_exports_of};

/// The name of a listing in errors.
pub(crate) const LISTING: &str = "listing of the bucket";

/// The name of the report of an import.
pub const REPORT: &str = "report.json";
/// The name of the first file of rejected lines.
const REJECTS: &str = "rejects.jsonl";

/// The name of a file of rejected lines, by its number from 1.
#[must_use]
pub fn rejects_name(number: u64) -> String {
    if number == 1 {
        REJECTS.to_owned()
    } else {
        format!("rejects-{number}.jsonl")
    }
}

/// Whether a key is that of a file of rejected lines.
#[must_use]
pub fn is_rejects(key: &str) -> bool {
    let name = key.rsplit('/').next().unwrap_or_default();
    is_report(key) && name.starts_with("rejects")
}

/// Size of a part of an upload, in bytes. S3 requires at least 5 MiB, except for the last part.
const PART: usize = 8 * 1024 * 1024;

/// A file in the bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its key.
    pub key: String,
    /// The `ETag` of its content.
    pub etag: String,
    /// Its version, if the bucket keeps versions.
    pub version: Option<String>,
    /// Its size, in bytes.
    pub size: u64,
    /// Its content type.
    pub content_type: Option<String>,
    /// When it was stored, to the second.
    pub modified: DateTime<Utc>,
}

/// The key of a file to import; `None` if the name is not a relative path without `.` and `..`.
#[must_use]
pub fn import_key(tenant: &TenantId, name: &str) -> Option<String> {
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    let key = format!("{}{name}", imports_of(tenant));
    (name.split('/').all(plain) && tenant_of_import(&key).is_some()).then_some(key)
}

/// The tenant of the file at a key, if it is a file to import.
#[must_use]
pub fn tenant_of_import(key: &str) -> Option<TenantId> {
    let (folder, name) = key.strip_prefix(keys::IMPORTS)?.split_once('/')?;
    let tenant = keys::tenant_of_folder(folder)?;
    (!name.is_empty() && !name.ends_with('/') && !is_report(key)).then_some(tenant)
}

/// Whether a key is that of a report of an imported file.
#[must_use]
pub fn is_report(key: &str) -> bool {
    key.contains(keys::REPORT_SUFFIX)
}

impl Blobs {
    /// The `s3://` URI of a key.
    #[must_use]
    pub fn object_uri(&self, key: &str) -> String {
        self.uri(key)
    }

    /// The metadata of a file, in this version or the newest; `None` if it does not exist. One
    /// call.
    pub async fn file(&self, key: &str, version: Option<&str>) -> Result<Option<File>, Error> {
        let head = self.client.head_object().bucket(&self.bucket).key(key);
        let head = head.set_version_id(version.map(str::to_owned));
        let response = match head.send().await {
            Ok(response) => response,
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(HeadObjectError::is_not_found) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(unavailable("HeadObject", &error)),
        };
        let size = response.content_length().unwrap_or_default();
        Ok(Some(File {
            key: key.to_owned(),
            modified: instant(response.last_modified())?,
            etag: response.e_tag.unwrap_or_default(),
            version: response.version_id,
            size: u64::try_from(size).unwrap_or_default(),
            content_type: response.content_type,
        }))
    }

    /// A file with its content; `None` if it does not exist. One call.
    pub async fn open(&self, key: &str) -> Result<Option<(File, ByteStream)>, Error> {
        let Some(response) = self.get(key, None, 0).await? else {
            return Ok(None);
        };
        let size = response.content_length().unwrap_or_default();
        let file = File {
            key: key.to_owned(),
            modified: instant(response.last_modified())?,
            etag: response.e_tag.unwrap_or_default(),
            version: response.version_id,
            size: u64::try_from(size).unwrap_or_default(),
            content_type: response.content_type,
        };
        Ok(Some((file, response.body)))
    }

    /// The content of a file from `offset` on, in this version or the newest, with its `ETag`; `None`
    /// if it does not exist. One call.
    pub async fn read_from(
        &self,
        key: &str,
        version: Option<&str>,
        offset: u64,
    ) -> Result<Option<(String, ByteStream)>, Error> {
        let response = self.get(key, version, offset).await?;
        Ok(response.map(|response| (response.e_tag.unwrap_or_default(), response.body)))
    }

    async fn get(
        &self,
        key: &str,
        version: Option<&str>,
        offset: u64,
    ) -> Result<Option<GetObjectOutput>, Error> {
        let get = self.client.get_object().bucket(&self.bucket).key(key);
        let get = get.set_version_id(version.map(str::to_owned));
        let get = if offset > 0 {
            get.range(format!("bytes={offset}-"))
        } else {
            get
        };
        match get.send().await {
            Ok(response) => Ok(Some(response)),
            Err(error) if error.as_service_error().is_some_and(is_gone) => Ok(None),
            Err(error) => Err(unavailable("GetObject", &error)),
        }
    }

    /// Deletes a file. In a bucket with versions, deletes only this version, permanently. One call.
    pub async fn delete_file(&self, key: &str, version: Option<&str>) -> Result<(), Error> {
        self.client
            .delete_object()
            .bucket(&self.bucket)
            .key(key)
            .set_version_id(version.map(str::to_owned))
            .send()
            .await
            .map(|_| ())
            .map_err(|error| unavailable("DeleteObject", &error))
    }

    /// Deletes all versions of a file. Two calls for each, and one.
    pub async fn delete_for_good(&self, key: &str) -> Result<(), Error> {
        // In a bucket with versions, deleting the latest makes the one before it current.
        while let Some(file) = self.file(key, None).await? {
            self.delete_file(key, file.version.as_deref()).await?;
        }
        Ok(())
    }

    /// Stores a file. One call.
    pub async fn put_file(&self, key: &str, bytes: Vec<u8>) -> Result<(), Error> {
        self.replace(key, None, bytes).await
    }

    /// Stores a file; replaces another one only if it is unchanged.
    pub(crate) async fn replace(
        &self,
        key: &str,
        replaced: Option<&File>,
        bytes: Vec<u8>,
    ) -> Result<(), Error> {
        self.client
            .put_object()
            .bucket(&self.bucket)
            .key(key)
            .set_if_match(replaced.map(|file| file.etag.clone()))
            .set_content_type(replaced.and_then(|file| file.content_type.clone()))
            .body(ByteStream::from(bytes))
            .send()
            .await
            .map(|_| ())
            .map_err(|error| unavailable("PutObject", &error))
    }

    async fn begin_upload(&self, key: &str, replaced: Option<&File>) -> Result<String, Error> {
        let begun = self.client.create_multipart_upload();
        let begun = begun.set_content_type(replaced.and_then(|file| file.content_type.clone()));
        let begun = begun.bucket(&self.bucket).key(key).send().await;
        let begun = begun.map_err(|error| unavailable("CreateMultipartUpload", &error))?;
        let missing_id = || Error::unreadable("upload", "it has no id");
        begun.upload_id.ok_or_else(missing_id)
    }

    /// Begins an upload of a file of any size.
    #[must_use]
    pub fn upload(&self, key: impl Into<String>) -> Upload {
        Upload {
            blobs: self.clone(),
            key: key.into(),
            replaces: None,
            part: Vec::new(),
            parts: Vec::new(),
            id: None,
        }
    }

    /// Begins an upload that replaces a file, if that is unchanged when the upload finishes.
    pub(crate) fn upload_replacing(&self, file: File) -> Upload {
        let mut upload = self.upload(&file.key);
        upload.replaces = Some(file);
        upload
    }
}

/// Whether a file does not exist, or not in the requested version.
fn is_gone(error: &GetObjectError) -> bool {
    error.is_no_such_key() || error.code() == Some("NoSuchVersion")
}

/// The key of an intermediate file of an import.
#[must_use]
pub fn work_key(import: &ImportId, name: &str) -> String {
    format!("{}{name}", keys::import_work(&import.tenant, &import.id))
}

/// The key of a report of an imported file.
#[must_use]
pub fn report_key(key: &str, name: &str) -> String {
    format!("{key}{}{name}", keys::REPORT_SUFFIX)
}

/// An upload of a file. Memory holds one part. The file does not exist until the upload is
/// finished.
#[derive(Debug)]
pub struct Upload {
    blobs: Blobs,
    key: String,
    /// The file that it replaces, if that must be unchanged.
    replaces: Option<File>,
    part: Vec<u8>,
    parts: Vec<CompletedPart>,
    id: Option<String>,
}

impl Upload {
    /// Adds bytes. One call for each full part.
    pub async fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = PART.saturating_sub(self.part.len());
            let (fits, remainder) = rest.split_at(room.min(rest.len()));
            self.part.extend_from_slice(fits);
            rest = remainder;
            if self.part.len() >= PART {
                self.send_part().await?;
            }
        }
        Ok(())
    }

    async fn send_part(&mut self) -> Result<(), Error> {
        let Blobs { client, bucket } = &self.blobs;
        let id = match self.id.take() {
            Some(id) => id,
            None => {
                self.blobs
                    .begin_upload(&self.key, self.replaces.as_ref())
                    .await?
            }
        };
        self.id = Some(id.clone());
        let number = i32::try_from(self.parts.len() + 1).unwrap_or(i32::MAX);
        let sent = client
            .upload_part()
            .bucket(bucket)
            .key(&self.key)
            .upload_id(id)
            .part_number(number)
            .body(ByteStream::from(std::mem::take(&mut self.part)))
            .send()
            .await
            .map_err(|error| unavailable("UploadPart", &error))?;
        let part = CompletedPart::builder().part_number(number);
        self.parts.push(part.set_e_tag(sent.e_tag).build());
        Ok(())
    }

    /// Stores the rest, which completes the file. One call, or two for a file of several parts.
    pub async fn finish(mut self) -> Result<(), Error> {
        if self.id.is_none() {
            let replaced = self.replaces.as_ref();
            return self.blobs.replace(&self.key, replaced, self.part).await;
        }
        if !self.part.is_empty() {
            self.send_part().await?;
        }
        let parts = CompletedMultipartUpload::builder().set_parts(Some(self.parts));
        self.blobs
            .client
            .complete_multipart_upload()
            .bucket(&self.blobs.bucket)
            .key(&self.key)
            .set_upload_id(self.id)
            .set_if_match(self.replaces.map(|file| file.etag))
            .multipart_upload(parts.build())
            .send()
            .await
            .map(|_| ())
            .map_err(|error| unavailable("CompleteMultipartUpload", &error))
    }
}

/// The time at which an object was stored.
pub(crate) fn instant(modified: Option<&SdkDateTime>) -> Result<DateTime<Utc>, Error> {
    modified
        .and_then(|at| DateTime::from_timestamp(at.secs(), at.subsec_nanos()))
        .ok_or_else(|| Error::unreadable(LISTING, "an object has no time"))
}
