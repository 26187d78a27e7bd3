//! Tokens of the machine-local gateway: JWTs signed with a key of the data folder.
//!
//! In AWS the HTTP API's authorizer checks tokens of the deployer's own issuer; this stands in
//! for both on a developer's machine, with the same claims.

use std::sync::Once;

use anyhow::Result;
use chrono::{TimeDelta, Utc};
use hmac::{Hmac, KeyInit, Mac};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error as JwtError, ErrorKind};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use signature::{Signer, Verifier};

/// The issuer of local tokens.
pub const ISSUER: &str = "https://hearback.local";
/// Whom local tokens are for.
pub const AUDIENCE: &str = "hearback";
/// The file of the signing key in the data folder.
pub const KEY_FILE: &str = "token.key";
/// How long a token is good.
const VALID_DAYS: i64 = 30;

/// The claims of a token (product specification, section 1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The user.
    pub sub: String,
    /// The tenant.
    pub tenant: String,
    /// Projects, the most recent first.
    #[serde(default)]
    pub projects: Vec<String>,
    /// Scopes, with spaces between.
    #[serde(default)]
    pub scope: String,
}

#[derive(Serialize, Deserialize)]
struct Signed {
    #[serde(flatten)]
    claims: Claims,
    iss: String,
    aud: String,
    iat: i64,
    exp: i64,
}

/// Signs and checks tokens with one key.
#[derive(Clone)]
pub struct Tokens {
    signing: EncodingKey,
    checking: DecodingKey,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tokens(..)")
    }
}

impl Tokens {
    /// Tokens under this key.
    #[must_use]
    pub fn new(key: &[u8]) -> Self {
        install_crypto();
        Self {
            signing: EncodingKey::from_secret(key),
            checking: DecodingKey::from_secret(key),
        }
    }

    /// A token with these claims.
    pub fn sign(&self, claims: Claims) -> Result<String> {
        let now = Utc::now();
        let signed = Signed {
            claims,
            iss: ISSUER.to_owned(),
            aud: AUDIENCE.to_owned(),
            iat: now.timestamp(),
            exp: (now + TimeDelta::days(VALID_DAYS)).timestamp(),
        };
        Ok(jsonwebtoken::encode(
            &Header::new(Algorithm::HS256),
            &signed,
            &self.signing,
        )?)
    }

    /// The claims of a token, if it is ours and good.
    #[must_use]
    pub fn check(&self, token: &str) -> Option<Claims> {
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_issuer(&[ISSUER]);
        validation.set_audience(&[AUDIENCE]);
        validation.validate_nbf = true;
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        jsonwebtoken::decode::<Signed>(token, &self.checking, &validation)
            .ok()
            .map(|token| token.claims.claims)
    }
}

/// HMAC-SHA256 is the only algorithm that local tokens need. The library's own providers would
/// bring RSA and a second cryptography library into the tree.
struct Hs256(Hmac<Sha256>);

impl Hs256 {
    fn new(key: &[u8]) -> Result<Self, JwtError> {
        Hmac::new_from_slice(key)
            .map(Self)
            .map_err(|_| ErrorKind::InvalidKeyFormat.into())
    }

    fn over(&self, message: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(message);
        mac
    }
}

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        Ok(self.over(message).finalize().into_bytes().to_vec())
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        self.over(message)
            .verify_slice(signature)
            .map_err(|_| signature::Error::new())
    }
}

impl JwtSigner for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

static CRYPTO: CryptoProvider = CryptoProvider {
    signer_factory: |algorithm, key| match algorithm {
        Algorithm::HS256 => Ok(Box::new(Hs256::new(key.as_bytes())?)),
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    },
    verifier_factory: |algorithm, key| match algorithm {
        Algorithm::HS256 => Ok(Box::new(Hs256::new(key.try_get_as_bytes()?)?)),
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    },
    key_utils: KeyUtils::new_unimplemented(),
};

fn install_crypto() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Somebody else's provider, if there is one, knows HS256 too.
        let _ = CRYPTO.install_default();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> Claims {
        Claims {
            sub: "ada".to_owned(),
            tenant: "acme".to_owned(),
            projects: vec!["support".to_owned()],
            scope: String::new(),
        }
    }

    #[test]
    fn a_token_is_good_under_its_own_key_and_no_other() {
        let tokens = Tokens::new(b"one key");
        let token = tokens.sign(claims()).unwrap();
        assert_eq!(tokens.check(&token), Some(claims()));
        assert_eq!(Tokens::new(b"another").check(&token), None);
    }

    #[test]
    fn a_token_is_not_good_before_its_time() {
        let tokens = Tokens::new(b"one key");
        let in_an_hour = (Utc::now() + TimeDelta::hours(1)).timestamp();
        let an_hour_ago = in_an_hour - 7200;
        for (nbf, good) in [(an_hour_ago, true), (in_an_hour, false)] {
            let claims = serde_json::json!({
                "sub": "ada", "tenant": "acme", "iss": ISSUER, "aud": AUDIENCE,
                "iat": an_hour_ago, "nbf": nbf, "exp": in_an_hour + 3600
            });
            let header = Header::new(Algorithm::HS256);
            let token = jsonwebtoken::encode(&header, &claims, &tokens.signing).unwrap();
            assert_eq!(tokens.check(&token).is_some(), good, "nbf {nbf}");
        }
    }

    #[test]
    fn a_token_that_was_changed_or_has_no_signature_is_not_good() {
        let tokens = Tokens::new(b"one key");
        let token = tokens.sign(claims()).unwrap();
        let (signed, _) = token.rsplit_once('.').unwrap();
        assert_eq!(tokens.check(&format!("{signed}.")), None);
        // {"alg":"none"}
        let (_, rest) = signed.split_once('.').unwrap();
        assert_eq!(tokens.check(&format!("eyJhbGciOiJub25lIn0.{rest}.")), None);
    }
}
