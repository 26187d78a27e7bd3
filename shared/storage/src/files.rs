//! Files of imports in the bucket: those that are imported, what is told of them, and what workers leave
//! for each other meanwhile.
//!
//! `imports/<tenant>/<file>`, and beside it `<file>.import/report.json` and `<file>.import/rejects.jsonl`;
//! `imports-work/<tenant>/<import>/…`.

use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::operation::get_object::{GetObjectError, GetObjectOutput};
use aws_sdk_s3::operation::head_object::HeadObjectError;
pub use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use chrono::{DateTime, Utc};
use hearback_domain::identifier::TenantId;

use crate::Error;
use crate::blobs::{Blobs, unavailable};
use crate::imports::ImportId;
use crate::keys;
use crate::versions::instant;

/// The name of the report of an import.
pub const REPORT: &str = "report.json";
/// The name of the file of what is no event.
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

/// Whether rejected lines lie at a key.
#[must_use]
pub fn is_rejects(key: &str) -> bool {
    let name = key.rsplit('/').next().unwrap_or_default();
    is_report(key) && name.starts_with("rejects")
}
/// Bytes of a part of an upload; a part but the last has 5 MiB at least.
const PART: usize = 8 * 1024 * 1024;

/// A file that lies in the bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its key.
    pub key: String,
    /// Its content, by the bucket.
    pub etag: String,
    /// Its version, if the bucket keeps versions.
    pub version: Option<String>,
    /// Its size, in bytes.
    pub size: u64,
    /// What it says that it holds.
    pub content_type: Option<String>,
    /// When it was stored, to the second.
    pub modified: DateTime<Utc>,
}

/// The key of a file to import: `None` if the name is empty or no plain path.
#[must_use]
pub fn import_key(tenant: &TenantId, name: &str) -> Option<String> {
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    let key = format!("{}{name}", keys::imports_of(tenant));
    (name.split('/').all(plain) && whose(&key).is_some()).then_some(key)
}

/// Whose file lies at a key, if it is one to import.
#[must_use]
pub fn whose(key: &str) -> Option<TenantId> {
    let (folder, name) = key.strip_prefix(keys::IMPORTS)?.split_once('/')?;
    let tenant = keys::tenant_of_folder(folder)?;
    (!name.is_empty() && !name.ends_with('/') && !is_report(key)).then_some(tenant)
}

/// Whether what is told of an imported file lies at a key.
#[must_use]
pub fn is_report(key: &str) -> bool {
    key.contains(keys::BESIDE)
}

impl Blobs {
    /// Where a key is, as an `s3://` URI.
    #[must_use]
    pub fn place(&self, key: &str) -> String {
        self.uri(key)
    }

    /// A file, if it is there: in this version, or the newest. One call.
    pub async fn file(&self, key: &str, version: Option<&str>) -> Result<Option<File>, Error> {
        let found = self.client.head_object().bucket(&self.bucket).key(key);
        let found = found.set_version_id(version.map(str::to_owned));
        let found = match found.send().await {
            Ok(found) => found,
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(HeadObjectError::is_not_found) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(unavailable("HeadObject", &error)),
        };
        let size = found.content_length().unwrap_or_default();
        Ok(Some(File {
            key: key.to_owned(),
            modified: instant(found.last_modified())?,
            etag: found.e_tag.unwrap_or_default(),
            version: found.version_id,
            size: u64::try_from(size).unwrap_or_default(),
            content_type: found.content_type,
        }))
    }

    /// A file with its bytes, if it is there. One call.
    pub async fn open(&self, key: &str) -> Result<Option<(File, ByteStream)>, Error> {
        let Some(found) = self.get(key, None, 0).await? else {
            return Ok(None);
        };
        let size = found.content_length().unwrap_or_default();
        let file = File {
            key: key.to_owned(),
            modified: instant(found.last_modified())?,
            etag: found.e_tag.unwrap_or_default(),
            version: found.version_id,
            size: u64::try_from(size).unwrap_or_default(),
            content_type: found.content_type,
        };
        Ok(Some((file, found.body)))
    }

    /// The bytes from `offset` on of a file in this version, or the newest, with the file's content as
    /// the bucket names it; `None` if it is not there. One call.
    pub async fn read_from(
        &self,
        key: &str,
        version: Option<&str>,
        offset: u64,
    ) -> Result<Option<(String, ByteStream)>, Error> {
        let found = self.get(key, version, offset).await?;
        Ok(found.map(|found| (found.e_tag.unwrap_or_default(), found.body)))
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
            Ok(found) => Ok(Some(found)),
            Err(error) if error.as_service_error().is_some_and(is_gone) => Ok(None),
            Err(error) => Err(unavailable("GetObject", &error)),
        }
    }

    /// Deletes a file, in that version alone if the bucket keeps versions, and then for good. One call.
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

    /// Deletes a file in all its versions. Two calls for each, and one.
    pub async fn delete_for_good(&self, key: &str) -> Result<(), Error> {
        // Where versions are kept, the one before comes back when the last is deleted.
        while let Some(file) = self.file(key, None).await? {
            self.delete_file(key, file.version.as_deref()).await?;
        }
        Ok(())
    }

    /// Stores a file. One call.
    pub async fn put_file(&self, key: &str, bytes: Vec<u8>) -> Result<(), Error> {
        self.put_over(key, None, bytes).await
    }

    /// Stores a file, in the place of another only if it is still that one.
    pub(crate) async fn put_over(
        &self,
        key: &str,
        over: Option<&File>,
        bytes: Vec<u8>,
    ) -> Result<(), Error> {
        self.client
            .put_object()
            .bucket(&self.bucket)
            .key(key)
            .set_if_match(over.map(|over| over.etag.clone()))
            .set_content_type(over.and_then(|over| over.content_type.clone()))
            .body(ByteStream::from(bytes))
            .send()
            .await
            .map(|_| ())
            .map_err(|error| unavailable("PutObject", &error))
    }

    async fn begin_upload(&self, key: &str, over: Option<&File>) -> Result<String, Error> {
        let begun = self.client.create_multipart_upload();
        let begun = begun.set_content_type(over.and_then(|over| over.content_type.clone()));
        let begun = begun.bucket(&self.bucket).key(key).send().await;
        let begun = begun.map_err(|error| unavailable("CreateMultipartUpload", &error))?;
        let without = || Error::unreadable("upload", "it has no id");
        begun.upload_id.ok_or_else(without)
    }

    /// Begins to store a file of any size.
    #[must_use]
    pub fn upload(&self, key: impl Into<String>) -> Upload {
        Upload {
            blobs: self.clone(),
            key: key.into(),
            over: None,
            part: Vec::new(),
            parts: Vec::new(),
            id: None,
        }
    }

    /// Begins to store a file in the place of another, which happens only if it is still that one when
    /// all is there.
    pub(crate) fn upload_over(&self, file: File) -> Upload {
        let mut upload = self.upload(&file.key);
        upload.over = Some(file);
        upload
    }
}

/// Whether a file is not there, or not in the version that was asked for.
fn is_gone(error: &GetObjectError) -> bool {
    error.is_no_such_key() || error.code() == Some("NoSuchVersion")
}

/// The key of a file that workers of an import leave for each other.
#[must_use]
pub fn work_key(import: &ImportId, name: &str) -> String {
    format!("{}{name}", keys::import_work(&import.tenant, &import.id))
}

/// The key of what is told of an imported file.
#[must_use]
pub fn beside(key: &str, name: &str) -> String {
    format!("{key}{}{name}", keys::BESIDE)
}

/// A file that is being stored, in memory for one part of it. It is there, whole, once it is finished,
/// and not before.
#[derive(Debug)]
pub struct Upload {
    blobs: Blobs,
    key: String,
    /// In whose place it comes, if that matters.
    over: Option<File>,
    part: Vec<u8>,
    parts: Vec<CompletedPart>,
    id: Option<String>,
}

impl Upload {
    /// Adds bytes. A call for each part that becomes full.
    pub async fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = PART.saturating_sub(self.part.len());
            let (fits, behind) = rest.split_at(room.min(rest.len()));
            self.part.extend_from_slice(fits);
            rest = behind;
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
                    .begin_upload(&self.key, self.over.as_ref())
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

    /// Stores what is left, and so the file. One call, or two for a file of several parts.
    pub async fn finish(mut self) -> Result<(), Error> {
        if self.id.is_none() {
            let over = self.over.as_ref();
            return self.blobs.put_over(&self.key, over, self.part).await;
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
            .set_if_match(self.over.map(|over| over.etag))
            .multipart_upload(parts.build())
            .send()
            .await
            .map(|_| ())
            .map_err(|error| unavailable("CompleteMultipartUpload", &error))
    }
}
