//! Files of imports in the bucket: those that are imported, what is told of them, and what workers leave
//! for each other meanwhile.
//!
//! `imports/<tenant>/<file>`, and beside it `<file>.import/report.json` and `<file>.import/rejects.jsonl`;
//! `imports-work/<tenant>/<import>/…`.

use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::operation::get_object::GetObjectError;
use aws_sdk_s3::operation::head_object::HeadObjectError;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use hearback_domain::identifier::TenantId;

use crate::Error;
use crate::blobs::{Blobs, unavailable};
use crate::imports::ImportId;
use crate::keys;

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
            etag: found.e_tag().unwrap_or_default().to_owned(),
            version: found.version_id().map(str::to_owned),
            size: u64::try_from(size).unwrap_or_default(),
        }))
    }

    /// The bytes from `offset` on of a file in this version, or the newest, with the file's content as
    /// the bucket names it; `None` if it is not there. One call.
    pub async fn read_from(
        &self,
        key: &str,
        version: Option<&str>,
        offset: u64,
    ) -> Result<Option<(String, ByteStream)>, Error> {
        let get = self.client.get_object().bucket(&self.bucket).key(key);
        let get = get.set_version_id(version.map(str::to_owned));
        let get = if offset > 0 {
            get.range(format!("bytes={offset}-"))
        } else {
            get
        };
        match get.send().await {
            Ok(found) => Ok(Some((found.e_tag.unwrap_or_default(), found.body))),
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

    /// The keys of files that workers of an import left for each other, 1,000 at most, in order from
    /// behind `after`. One call.
    pub async fn list_work(
        &self,
        import: &ImportId,
        after: Option<&str>,
    ) -> Result<Vec<String>, Error> {
        let listed = self
            .client
            .list_objects_v2()
            .bucket(&self.bucket)
            .prefix(work_key(import, ""))
            .set_start_after(after.map(str::to_owned))
            .send()
            .await
            .map_err(|error| unavailable("ListObjectsV2", &error))?;
        let files = listed.contents.unwrap_or_default().into_iter();
        Ok(files.filter_map(|file| file.key).collect())
    }

    /// Stores a file. One call.
    pub async fn put_file(&self, key: &str, bytes: Vec<u8>) -> Result<(), Error> {
        self.client
            .put_object()
            .bucket(&self.bucket)
            .key(key)
            .body(ByteStream::from(bytes))
            .send()
            .await
            .map(|_| ())
            .map_err(|error| unavailable("PutObject", &error))
    }

    async fn begin_upload(&self, key: &str) -> Result<String, Error> {
        let begun = self.client.create_multipart_upload();
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
            part: Vec::new(),
            parts: Vec::new(),
            id: None,
        }
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
    part: Vec<u8>,
    parts: Vec<CompletedPart>,
    id: Option<String>,
}

impl Upload {
    /// Adds bytes. A call for each part that becomes full.
    pub async fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.part.extend_from_slice(bytes);
        if self.part.len() >= PART {
            self.send_part().await?;
        }
        Ok(())
    }

    async fn send_part(&mut self) -> Result<(), Error> {
        let Blobs { client, bucket } = &self.blobs;
        let id = match self.id.take() {
            Some(id) => id,
            None => self.blobs.begin_upload(&self.key).await?,
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
            return self.blobs.put_file(&self.key, self.part).await;
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
            .multipart_upload(parts.build())
            .send()
            .await
            .map(|_| ())
            .map_err(|error| unavailable("CompleteMultipartUpload", &error))
    }
}
