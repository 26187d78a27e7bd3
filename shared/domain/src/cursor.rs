//! Cursors: where the next page of a report begins.
//!
//! A cursor is opaque, and signed together with the query that it belongs to: with another
//! query, another caller, or a changed byte it is refused, never taken for a new start.

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

/// The cursor is damaged, or of another query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a next_cursor of this very query")]
pub struct InvalidCursor;

/// Bytes of the signature.
const SIGNATURE: usize = 16;

impl Cursors {
    /// Cursors under `key`.
    #[must_use]
    pub fn new(key: impl Into<Vec<u8>>) -> Self {
        Self { key: key.into() }
    }

    /// A cursor to `place` in the report of a query, which `query` tells from every other.
    #[must_use]
    pub fn seal(&self, query: &[u8; 32], place: &impl Serialize) -> String {
        let place = serde_json::to_vec(place).unwrap_or_default();
        let mut sealed = self.sign(query, &place);
        sealed.extend(place);
        URL_SAFE_NO_PAD.encode(sealed)
    }

    /// The place that a cursor of this query leads to.
    pub fn open<T: DeserializeOwned>(
        &self,
        query: &[u8; 32],
        cursor: &str,
    ) -> Result<T, InvalidCursor> {
        let sealed = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| InvalidCursor)?;
        let (signature, place) = sealed.split_at_checked(SIGNATURE).ok_or(InvalidCursor)?;
        self.mac(query, place)
            .verify_truncated_left(signature)
            .map_err(|_| InvalidCursor)?;
        serde_json::from_slice(place).map_err(|_| InvalidCursor)
    }

    fn sign(&self, query: &[u8; 32], place: &[u8]) -> Vec<u8> {
        let whole = self.mac(query, place).finalize().into_bytes();
        whole.into_iter().take(SIGNATURE).collect()
    }

    fn mac(&self, query: &[u8; 32], place: &[u8]) -> Hmac<Sha256> {
        #[expect(
            clippy::expect_used,
            reason = "HMAC takes a key of any length; the error type cannot occur"
        )]
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("any key length");
        // The key may sign other things too: this says that it is a cursor.
        mac.update(b"hearback cursor");
        mac.update(query);
        mac.update(place);
        mac
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cursor_opens_with_its_own_query_and_key_alone() {
        let cursors = Cursors::new("key");
        let cursor = cursors.seal(&[1; 32], &"here");
        assert_eq!(cursors.open::<String>(&[1; 32], &cursor).unwrap(), "here");
        assert_eq!(
            cursors.open::<String>(&[2; 32], &cursor),
            Err(InvalidCursor)
        );
        let others = Cursors::new("other");
        assert_eq!(others.open::<String>(&[1; 32], &cursor), Err(InvalidCursor));
    }

    proptest! {
        #[test]
        fn a_cursor_with_a_changed_character_opens_nothing(at in 0..100_usize, to in "[A-Za-z0-9_-]") {
            let cursors = Cursors::new("key");
            let cursor = cursors.seal(&[1; 32], &"a place of some length");
            let at = at % cursor.len();
            let mut damaged = cursor.clone();
            damaged.replace_range(at..=at, &to);
            if damaged != cursor {
                prop_assert_eq!(cursors.open::<String>(&[1; 32], &damaged), Err(InvalidCursor));
            }
        }
    }
}
