//! Rejects object keys that the S3 engine cannot store.
//!
//! The engine stores an object in a file whose path is the key, and its metadata in a file next to the buckets whose
//! name contains the key in base64. A key that is no valid path would cause an internal error, or address the file of
//! another key.

use s3s::access::{S3Access, S3AccessContext};
use s3s::dto::{
    CopyObjectInput, CopySource, CreateMultipartUploadInput, DeleteObjectsInput,
    UploadPartCopyInput,
};
use s3s::path::S3Path;
use s3s::{S3Error, S3Request, S3Result, s3_error};

/// The longest file name, in bytes, on common file systems.
const MAX_NAME: usize = 255;
/// Length of a metadata file's name without bucket and key.
const AFFIXES: usize = ".bucket-.object-.metadata.json".len();
/// The same for a multipart upload.
const UPLOAD_AFFIXES: usize = AFFIXES + ".upload-00000000-0000-0000-0000-000000000000".len();

/// Rejects requests with keys that the engine cannot store, and unsigned requests.
pub(super) struct ObjectKeys;

#[async_trait::async_trait]
impl S3Access for ObjectKeys {
    async fn check(&self, request: &mut S3AccessContext<'_>) -> S3Result<()> {
        if request.credentials().is_none() {
            return Err(s3_error!(AccessDenied, "Signature is required"));
        }
        match request.s3_path() {
            S3Path::Object { bucket, key } => check(bucket, key),
            S3Path::Root | S3Path::Bucket { .. } => Ok(()),
        }
    }

    async fn create_multipart_upload(
        &self,
        request: &mut S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<()> {
        let CreateMultipartUploadInput { bucket, key, .. } = &request.input;
        if key.len() > max_key_length(bucket, UPLOAD_AFFIXES) {
            return Err(too_long());
        }
        Ok(())
    }

    async fn copy_object(&self, request: &mut S3Request<CopyObjectInput>) -> S3Result<()> {
        check_source(&request.input.copy_source)
    }

    async fn upload_part_copy(&self, request: &mut S3Request<UploadPartCopyInput>) -> S3Result<()> {
        check_source(&request.input.copy_source)
    }

    async fn delete_objects(&self, request: &mut S3Request<DeleteObjectsInput>) -> S3Result<()> {
        let DeleteObjectsInput { bucket, delete, .. } = &request.input;
        delete
            .objects
            .iter()
            .try_for_each(|object| check(bucket, &object.key))
    }
}

fn check_source(source: &CopySource) -> S3Result<()> {
    match source {
        CopySource::Bucket { bucket, key, .. } => check(bucket, key),
        CopySource::AccessPoint { .. } | CopySource::Outpost { .. } => Err(s3_error!(
            NotImplemented,
            "This engine has no access points"
        )),
    }
}

fn check(bucket: &str, key: &str) -> S3Result<()> {
    if key.len() > max_key_length(bucket, AFFIXES) {
        return Err(too_long());
    }
    // A trailing slash denotes a folder.
    let mut segments = key.strip_suffix('/').unwrap_or(key).split('/');
    segments.try_for_each(|segment| match segment {
        "" | "." | ".." => Err(s3_error!(
            InvalidArgument,
            "This engine stores objects as files: no part of a key between slashes may be empty, . or .."
        )),
        segment if segment.contains('\0') => {
            Err(s3_error!(InvalidArgument, "The key contains a null character"))
        }
        segment if segment.len() > MAX_NAME => Err(too_long()),
        _ => Ok(()),
    })
}

fn too_long() -> S3Error {
    s3_error!(
        KeyTooLongError,
        "This engine stores objects as files: the key is too long for a file name"
    )
}

/// The maximum length of a key in this bucket, in bytes.
fn max_key_length(bucket: &str, affixes: usize) -> usize {
    let digits = MAX_NAME.saturating_sub(affixes + base64_length(bucket.len()));
    // Four digits encode three bytes; an incomplete group of n digits encodes n - 1.
    digits / 4 * 3 + (digits % 4).saturating_sub(1)
}

/// The length of unpadded base64.
fn base64_length(bytes: usize) -> usize {
    (bytes * 4).div_ceil(3)
}
