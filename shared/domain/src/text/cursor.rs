//! Cursors: signed positions of the next page of a list.
//!
//! A cursor is opaque, and signed together with its query: it is rejected with another query, by another caller, or if
//! a byte of it was changed.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::Sha256;

/// Signs cursors with one secret key.
#[derive(Clone)]
pub struct Cursors {
    key: Vec<u8>,
}

impl std::fmt::Debug for Cursors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cursors(..)")
    }
}

/// The cursor was changed, or belongs to another query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a next_cursor of the same query")]
pub struct InvalidCursor;

/// Bytes of the signature.
const SIGNATURE: usize = 16;

impl Cursors {
    /// Cursors that are signed with `key`.
    #[must_use]
    pub fn new(key: impl Into<Vec<u8>>) -> Self {
        Self { key: key.into() }
    }

    /// A cursor to a position in the results of a query; `query` is the fingerprint of the query.
    #[must_use]
    pub fn seal(&self, query: &[u8; 32], position: &impl Serialize) -> String {
        let position = serde_json::to_vec(position).unwrap_or_default();
        let mut sealed = self.sign(query, &position);
        sealed.extend(position);
        URL_SAFE_NO_PAD.encode(sealed)
    }

    /// The position in a cursor of this query.
    pub fn open<T: DeserializeOwned>(
        &self,
        query: &[u8; 32],
        cursor: &str,
    ) -> Result<T, InvalidCursor> {
        let sealed = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| InvalidCursor)?;
        let (signature, position) = sealed.split_at_checked(SIGNATURE).ok_or(InvalidCursor)?;
        self.mac(query, position)
            .verify_truncated_left(signature)
            .map_err(|_| InvalidCursor)?;
        serde_json::from_slice(position).map_err(|_| InvalidCursor)
    }

    fn sign(&self, query: &[u8; 32], position: &[u8]) -> Vec<u8> {
        let tag = self.mac(query, position).finalize().into_bytes();
        tag.into_iter().take(SIGNATURE).collect()
    }

    fn mac(&self, query: &[u8; 32], position: &[u8]) -> Hmac<Sha256> {
        #[expect(
            clippy::expect_used,
            reason = "HMAC takes a key of any length; the error type cannot occur"
        )]
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("any key length");
        // Domain separation: the key may sign other data, too.
        mac.update(b"hearback cursor");
        mac.update(query);
        mac.update(position);
        mac
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cursor_is_valid_only_with_its_own_query_and_key() {
        let cursors = Cursors::new("key");
        let cursor = cursors.seal(&[1; 32], &"here");
        assert_eq!(cursors.open::<String>(&[1; 32], &cursor).unwrap(), "here");
        assert_eq!(
            cursors.open::<String>(&[2; 32], &cursor),
            Err(InvalidCursor)
        );
        let other_key = Cursors::new("other");
        assert_eq!(
            other_key.open::<String>(&[1; 32], &cursor),
            Err(InvalidCursor)
        );
    }

    proptest! {
        #[test]
        fn a_cursor_with_a_changed_character_is_rejected(at in 0..100_usize, to in "[A-Za-z0-9_-]") {
            let cursors = Cursors::new("key");
            let cursor = cursors.seal(&[1; 32], &"a position of some length");
            let at = at % cursor.len();
            let mut damaged = cursor.clone();
            damaged.replace_range(at..=at, &to);
            if damaged != cursor {
                prop_assert_eq!(cursors.open::<String>(&[1; 32], &damaged), Err(InvalidCursor));
            }
        }
    }
}
