//! Unambiguous digests of several strings.

use sha2::{Digest, Sha256};
use uuid::Uuid;

/// The SHA-256 over all parts, each prefixed with its length.
#[must_use]
pub fn digest<'a>(parts: impl IntoIterator<Item = &'a str>) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part.len().to_be_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

/// A name-based UUID (version 5) of all parts.
pub(crate) fn uuid<'a>(namespace: Uuid, parts: impl IntoIterator<Item = &'a str>) -> Uuid {
    Uuid::new_v5(&namespace, &digest(parts))
}
