//! The file in which the S3 engine keeps an object's metadata, which has its checksums.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

/// What the engine keeps of an object; nothing of an object without metadata.
pub(crate) fn read(root: &Path, bucket: &str, key: &str) -> Result<Map<String, Value>> {
    match fs::read(file(root, bucket, key)) {
        Ok(bytes) => serde_json::from_slice(&bytes).context("its metadata is not valid JSON"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Map::new()),
        Err(error) => Err(error.into()),
    }
}

/// Renames metadata that is not valid JSON, without which the engine reads the object. With it, it fails whenever the
/// object is read.
pub(crate) fn put_aside_damaged(root: &Path, bucket: &str, key: &str) -> io::Result<bool> {
    let path = file(root, bucket, key);
    let Ok(bytes) = fs::read(&path) else {
        return Ok(false);
    };
    if serde_json::from_slice::<Map<String, Value>>(&bytes).is_ok() {
        return Ok(false);
    }
    fs::rename(&path, path.with_extension("damaged")).map(|()| true)
}

fn file(root: &Path, bucket: &str, key: &str) -> PathBuf {
    let encoded = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
    root.join(format!(
        ".bucket-{}.object-{}.internal.json",
        encoded(bucket),
        encoded(key)
    ))
}
