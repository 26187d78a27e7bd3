//! Keys. Every partition key begins with its kind and its tenant, and is injective: two
//! different names never give the same key.
//!
//! Parts are joined by `#`, so a `#` within a part is escaped. A part whose UTF-8 is too long for
//! a key (2,048 bytes for a partition key, 1,024 for a sort key) is replaced by its SHA-256.

use hearback_domain::dedupe::DedupeKey;
use hearback_domain::identifier::{TenantId, UserId};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Sort key of an event.
pub const EVENT: &str = "EVENT";
/// Sort key of what came of it.
pub const RESULT: &str = "RESULT";
/// Sort key of a dedupe claim.
pub const DEDUPE: &str = "DEDUPE";
/// What the sort keys of preference versions begin with.
pub const VERSION_PREFIX: &str = "V#";

/// Longest part, in bytes after escaping. Two parts and a kind fit into a partition key.
const MAX_PART: usize = 800;
/// Begins the hash of a part that was too long. No escaped part begins with it.
const HASHED: char = '~';

/// The partition of an event and all that came of it.
#[must_use]
pub fn event(tenant: &TenantId, feedback_id: Uuid) -> String {
    join("EVENT", tenant, &feedback_id.to_string())
}

/// The partition of a dedupe claim.
#[must_use]
pub fn dedupe(tenant: &TenantId, key: &DedupeKey) -> String {
    join("DEDUPE", tenant, &hex::encode(key.fingerprint()))
}

/// The partition of a user's preferences.
#[must_use]
pub fn preferences(tenant: &TenantId, user: &UserId) -> String {
    join("PREF", tenant, user.as_str())
}

/// The sort key of a preference version; sorts as the numbers do.
#[must_use]
pub fn version(number: u64) -> String {
    format!("{VERSION_PREFIX}{number:010}")
}

fn join(kind: &str, tenant: &TenantId, name: &str) -> String {
    format!("{kind}#{}#{}", part(tenant.as_str()), part(name))
}

/// Escapes `#`, `%` and `~`, and hashes what is too long.
fn part(raw: &str) -> String {
    let mut escaped = String::with_capacity(raw.len());
    for character in raw.chars() {
        match character {
            '#' => escaped.push_str("%23"),
            '%' => escaped.push_str("%25"),
            HASHED => escaped.push_str("%7E"),
            other => escaped.push(other),
        }
    }
    if escaped.len() > MAX_PART {
        format!("{HASHED}{}", hex::encode(Sha256::digest(raw)))
    } else {
        escaped
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name() -> impl Strategy<Value = String> {
        prop_oneof![
            "[#%~a2357E]{1,6}",
            "\\PC{1,256}",
            // Four bytes a character, and escapes of three: beyond what a key can hold.
            "[🙂#]{250,256}",
        ]
    }

    proptest! {
        #[test]
        fn different_names_have_different_keys(a in (name(), name()), b in (name(), name())) {
            let key = |(tenant, user): &(String, String)| {
                Some(preferences(
                    &tenant.as_str().try_into().ok()?,
                    &user.as_str().try_into().ok()?,
                ))
            };
            if let (Some(key_a), Some(key_b)) = (key(&a), key(&b)) {
                prop_assert_eq!(a == b, key_a == key_b);
            }
        }

        #[test]
        fn a_key_fits_into_the_table(tenant in name(), user in name()) {
            if let (Ok(tenant), Ok(user)) = (tenant.as_str().try_into(), user.as_str().try_into()) {
                prop_assert!(preferences(&tenant, &user).len() <= 2048);
            }
        }

        #[test]
        fn versions_sort_as_numbers(a in 0..9_999_999_999_u64, b in 0..9_999_999_999_u64) {
            prop_assert_eq!(a.cmp(&b), version(a).cmp(&version(b)));
        }
    }
}
