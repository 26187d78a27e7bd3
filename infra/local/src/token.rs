//! Tokens of the local gateway: JWTs signed with a key of the data folder.
//!
//! This replaces both the issuer and the HTTP API's authorizer, with the same claims.

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
/// The audience of local tokens.
pub const AUDIENCE: &str = "hearback";
/// Validity of a token.
const VALID_DAYS: i64 = 30;

/// The claims of a token (docs/reference/tokens.md#claims).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The user.
    pub sub: String,
    /// The tenant.
    pub tenant: String,
    /// Projects, the most recent first.
    #[serde(default)]
    pub projects: Vec<String>,
    /// Space-separated scopes.
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

/// Signs and verifies tokens with one key.
#[derive(Clone)]
pub struct Tokens {
    signing: EncodingKey,
    verifying: DecodingKey,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tokens(..)")
    }
}

impl Tokens {
    /// Uses this key.
    #[must_use]
    pub fn new(key: &[u8]) -> Self {
        install_crypto();
        Self {
            signing: EncodingKey::from_secret(key),
            verifying: DecodingKey::from_secret(key),
        }
    }

    /// Signs a token with these claims, valid for 30 days.
    pub fn sign(&self, claims: Claims) -> Result<String> {
        self.sign_for(claims, TimeDelta::days(VALID_DAYS))
    }

    /// Signs a token that is valid for this long.
    pub fn sign_for(&self, claims: Claims, valid: TimeDelta) -> Result<String> {
        let now = Utc::now();
        let signed = Signed {
            claims,
            iss: ISSUER.to_owned(),
            aud: AUDIENCE.to_owned(),
            iat: now.timestamp(),
            exp: (now + valid).timestamp(),
        };
        Ok(jsonwebtoken::encode(
            &Header::new(Algorithm::HS256),
            &signed,
            &self.signing,
        )?)
    }

    /// The claims of a token, and when it expires, in seconds since 1970; `None` if it is not valid.
    #[must_use]
    pub fn verify(&self, token: &str) -> Option<(Claims, i64)> {
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_issuer(&[ISSUER]);
        validation.set_audience(&[AUDIENCE]);
        validation.validate_nbf = true;
        // An HTTP API's authorizer allows no clock skew either.
        validation.leeway = 0;
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        let token = jsonwebtoken::decode::<Signed>(token, &self.verifying, &validation).ok()?;
        // `crit` lists extensions that must be understood (RFC 7515, section 4.1.11); none is supported here.
        let is_supported = token.header.crit.is_none();
        let Signed { claims, exp, .. } = token.claims;
        is_supported.then_some((claims, exp))
    }
}

/// HMAC-SHA256, the only algorithm that local tokens need. The library's own providers would add RSA and a second
/// cryptography library to the dependencies.
struct Hs256(Hmac<Sha256>);

impl Hs256 {
    fn new(key: &[u8]) -> Result<Self, JwtError> {
        Hmac::new_from_slice(key)
            .map(Self)
            .map_err(|_| ErrorKind::InvalidKeyFormat.into())
    }

    fn mac(&self, message: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(message);
        mac
    }
}

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        Ok(self.mac(message).finalize().into_bytes().to_vec())
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        self.mac(message)
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
        // A provider that was installed before supports HS256 too.
        let _ = CRYPTO.install_default();
    });
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
    fn a_token_is_valid_under_its_own_key_only() {
        let tokens = Tokens::new(b"one key");
        let token = tokens.sign(claims()).unwrap();
        assert_eq!(tokens.verify(&token).unwrap().0, claims());
        assert_eq!(Tokens::new(b"another").verify(&token), None);
    }

    /// Whether a token that is signed with our key, with these members changed, is valid.
    fn is_valid(header: &Header, changes: &[(&str, Value)]) -> bool {
        let tokens = Tokens::new(b"one key");
        let now = Utc::now().timestamp();
        let mut claims = json!({
            "sub": "ada", "tenant": "acme", "iss": ISSUER, "aud": AUDIENCE, "iat": now - 60, "exp": now + 60
        });
        for (name, value) in changes {
            claims[*name] = value.clone();
        }
        let token = jsonwebtoken::encode(header, &claims, &tokens.signing).unwrap();
        tokens.verify(&token).is_some()
    }

    #[test]
    fn a_token_is_valid_between_nbf_and_exp() {
        let header = Header::new(Algorithm::HS256);
        let now = Utc::now().timestamp();
        assert!(is_valid(&header, &[]));
        for (name, at, expected) in [
            ("nbf", json!(now), true),
            ("nbf", json!(now - 3_600), true),
            ("nbf", json!(now + 5), false),
            ("nbf", json!(now + 3_600), false),
            ("nbf", json!("soon"), false),
            ("nbf", Value::Null, false),
            ("exp", json!(now + 30), true),
            ("exp", json!(now - 1), false),
            ("exp", json!((now + 30).to_string()), false),
            ("exp", Value::Null, false),
            // `iat` does not limit validity: a clock that is set back must not end all sessions.
            ("iat", json!(now + 3_600), true),
            ("iat", json!("now"), false),
        ] {
            assert_eq!(
                is_valid(&header, &[(name, at.clone())]),
                expected,
                "{name} {at}"
            );
        }
    }

    #[test]
    fn a_token_with_critical_extensions_is_not_valid() {
        for crit in [
            vec!["exp"],
            vec!["b64"],
            vec!["urn:example:bound", "exp"],
            vec![],
        ] {
            let crit = Some(crit.into_iter().map(str::to_owned).collect());
            let header = Header {
                crit,
                ..Header::new(Algorithm::HS256)
            };
            assert!(!is_valid(&header, &[]), "{:?}", header.crit);
        }
        let mut header = Header::new(Algorithm::HS256);
        header.extras.insert("unknown", true);
        assert!(
            is_valid(&header, &[]),
            "other members of the header are ignored"
        );
    }

    #[test]
    fn a_token_that_was_changed_or_has_no_signature_is_not_valid() {
        let tokens = Tokens::new(b"one key");
        let token = tokens.sign(claims()).unwrap();
        let (signed, _) = token.rsplit_once('.').unwrap();
        assert_eq!(tokens.verify(&format!("{signed}.")), None);
        // {"alg":"none"}
        let (_, rest) = signed.split_once('.').unwrap();
        assert_eq!(tokens.verify(&format!("eyJhbGciOiJub25lIn0.{rest}.")), None);
    }
}
