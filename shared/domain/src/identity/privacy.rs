//! Keyed pseudonyms, which replace user and session ids in anonymous events.
//!
//! A user of a tenant always has the same pseudonym, so that their feedback can be aggregated. The pseudonym cannot be
//! computed without the key.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use uuid::{Builder, Uuid};

use crate::identity::identifier::{
    InvalidIdentifier, PSEUDONYM_PREFIX, SessionId, TenantId, UserId,
};

/// Computes pseudonyms with a secret key.
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
    /// Pseudonyms with `key`. Another key gives other pseudonyms.
    #[must_use]
    pub fn new(key: impl Into<Vec<u8>>) -> Self {
        Self { key: key.into() }
    }

    /// The pseudonym of a user.
    pub fn user(&self, tenant: &TenantId, user: &UserId) -> Result<UserId, InvalidIdentifier> {
        UserId::or_pseudonym(self.pseudonym("user", tenant, user.as_str()))
    }

    /// The pseudonym of a session.
    pub fn session(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<SessionId, InvalidIdentifier> {
        SessionId::try_from(self.pseudonym("session", tenant, session.as_str()))
    }

    /// The id of the event of a feedback act, from the id of the act. Callers cannot compute it without the key, so
    /// they cannot submit an event with this id first.
    #[must_use]
    pub fn event_id(&self, tenant: &TenantId, id: Uuid) -> Uuid {
        Builder::from_sha1_bytes(self.mac("act", tenant, &id.to_string())).into_uuid()
    }

    fn pseudonym(&self, kind: &str, tenant: &TenantId, name: &str) -> String {
        let mac = hex::encode(self.mac(kind, tenant, name));
        format!("{PSEUDONYM_PREFIX}{mac}")
    }

    /// 128 bits of a MAC over the kind, the tenant and the name, each prefixed with its length, so that the input is
    /// unambiguous.
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
        for (byte, source) in half.iter_mut().zip(digest) {
            *byte = source;
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
