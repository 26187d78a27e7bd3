//! Parts of keys, escaped, and hashed if they are too long.

use hearback_domain::identity::identifier::TenantId;
use sha2::{Digest, Sha256};

/// Longest part of a partition key, in bytes after escaping: three parts and a kind fit into 2,048.
pub(super) const MAX_PART: usize = 600;
/// Longest part of a sort key: two parts, prefixes and separators fit into 1,024.
pub(super) const MAX_SORT_PART: usize = 400;
/// Longest part of a partition key that is a sort key of an index: two of them and a kind fit into
/// 1,024.
pub(super) const MAX_INDEXED_PART: usize = 500;
/// Longest part of the partition key of a day, which is a sort key of an index too: two of them, a kind, a
/// date and a shard fit into 1,024.
pub(super) const MAX_DAY_PART: usize = 480;
/// Begins the hash of a part that was too long. No escaped part begins with it.
pub(super) const HASHED: char = '~';
/// The name in a part of a key; `None` if it was too long and hashed.
#[must_use]
pub fn named(part: &str) -> Option<String> {
    (!part.starts_with(HASHED)).then(|| unescaped(part))
}

pub(super) fn join(kind: &str, tenant: &TenantId, name: &str) -> String {
    format!("{kind}#{}#{}", part(tenant.as_str()), part(name))
}

pub(super) fn part(raw: &str) -> String {
    escaped(raw, MAX_PART)
}

pub(super) fn sort_part(raw: &str) -> String {
    escaped(raw, MAX_SORT_PART)
}

/// Escapes `#`, `%` and `~`, and hashes what is too long.
pub(super) fn escaped(raw: &str, limit: usize) -> String {
    let mut escaped = String::with_capacity(raw.len());
    for character in raw.chars() {
        match character {
            '#' => escaped.push_str("%23"),
            '%' => escaped.push_str("%25"),
            HASHED => escaped.push_str("%7E"),
            other => escaped.push(other),
        }
    }
    if escaped.len() > limit {
        format!("{HASHED}{}", hex::encode(Sha256::digest(raw)))
    } else {
        escaped
    }
}

/// Reverses [`escaped`], unless the part was hashed.
pub(super) fn unescaped(part: &str) -> String {
    // `%25` last, so that its `%` does not form another escape.
    part.replace("%23", "#")
        .replace("%7E", "~")
        .replace("%25", "%")
}

/// A readable part of an S3 key: every character except ASCII letters, digits, `-` and `_` is
/// escaped, and a part that is too long for a file name is replaced by its SHA-256.
pub(super) fn file_part(raw: &str) -> String {
    const MAX: usize = 200;
    let escaped: String = (raw.bytes())
        .map(|byte| match byte {
            b'-' | b'_' => char::from(byte).to_string(),
            _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect();
    if escaped.len() > MAX {
        format!("{HASHED}{}", hex::encode(Sha256::digest(raw)))
    } else {
        escaped
    }
}

/// The first bytes of a digest, in hex.
pub(super) fn short(digest: [u8; 32], bytes: usize) -> String {
    hex::encode(digest.into_iter().take(bytes).collect::<Vec<_>>())
}
