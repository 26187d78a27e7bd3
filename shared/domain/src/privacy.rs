//! Keyed pseudonyms: what stands in for a user who asked not to be named.
//!
//! The same user of the same tenant always gets the same pseudonym, so that feedback still adds
//! up, and nobody without the key can tell whose it is.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use uuid::{Builder, Uuid};

use crate::identifier::{NotAnIdentifier, SessionId, TenantId, UserId};

/// What replaces free text that was removed. It tells that something was written, not what.
pub const REMOVED: &str = "[removed]";

/// Makes pseudonyms with one secret key.
#[derive(Clone)]
pub struct Pseudonyms {
    key: Vec<u8>,
}

impl std::fmt::Debug for Pseudonyms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pseudonyms(..)")
    }
}

impl Pseudonyms {
    /// Pseudonyms under `key`; another key gives other pseudonyms.
    #[must_use]
    pub fn new(key: impl Into<Vec<u8>>) -> Self {
        Self { key: key.into() }
    }

    /// The pseudonym of a user.
    pub fn user(&self, tenant: &TenantId, user: &UserId) -> Result<UserId, NotAnIdentifier> {
        UserId::try_from(self.of("user", tenant, user.as_str()))
    }

    /// The pseudonym of a session.
    pub fn session(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<SessionId, NotAnIdentifier> {
        SessionId::try_from(self.of("session", tenant, session.as_str()))
    }

    /// What an act's event is called, of the act's own id: without the key nobody can call an event of
    /// theirs so first.
    #[must_use]
    pub fn act(&self, tenant: &TenantId, id: Uuid) -> Uuid {
        Builder::from_sha1_bytes(self.mac("act", tenant, &id.to_string())).into_uuid()
    }

    fn of(&self, kind: &str, tenant: &TenantId, name: &str) -> String {
        format!("anon-{}", hex::encode(self.mac(kind, tenant, name)))
    }

    /// 128 bits of a MAC over the kind, the tenant and the name, each with its length, so that no two
    /// different inputs are the same bytes.
    fn mac(&self, kind: &str, tenant: &TenantId, name: &str) -> [u8; 16] {
        #[expect(
            clippy::expect_used,
            reason = "HMAC takes a key of any length; the error type cannot occur"
        )]
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("any key length");
        for part in [kind, tenant.as_str(), name] {
            mac.update(&part.len().to_be_bytes());
            mac.update(part.as_bytes());
        }
        let digest = mac.finalize().into_bytes();
        let mut half = [0; 16];
        for (byte, of) in half.iter_mut().zip(digest) {
            *byte = of;
        }
        half
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pseudonym(key: &str, tenant: &str, user: &str) -> UserId {
        Pseudonyms::new(key)
            .user(&tenant.try_into().unwrap(), &user.try_into().unwrap())
            .unwrap()
    }

    #[test]
    fn a_pseudonym_is_stable_and_bound_to_key_tenant_and_user() {
        let one = pseudonym("k", "acme", "ada");
        assert_eq!(one, pseudonym("k", "acme", "ada"));
        assert_ne!(one, pseudonym("other", "acme", "ada"));
        assert_ne!(one, pseudonym("k", "other", "ada"));
        assert_ne!(one, pseudonym("k", "acme", "eve"));
        assert!(!one.as_str().contains("ada"));
    }
}
