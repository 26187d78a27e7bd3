//! Verifies AWS Signature Version 4: computes the signature of the received request, and compares.

use std::time::SystemTime;

use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use aws_smithy_runtime_api::client::identity::Identity;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};
use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use subtle::ConstantTimeEq;

use super::keys::KeyPair;
use super::rejection::EngineRejection;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const DATE: &str = "x-amz-date";
/// The header that names the operation.
const TARGET: &str = "x-amz-target";
/// Maximum clock skew of a request, as in AWS.
const MAX_SKEW: TimeDelta = TimeDelta::minutes(15);

const UNSIGNED: EngineRejection = EngineRejection {
    code: "MissingAuthenticationTokenException",
    message: "The request is not signed (AWS Signature Version 4, in the headers).",
};
const INCOMPLETE: EngineRejection = EngineRejection {
    code: "IncompleteSignatureException",
    message: "The Authorization header is incomplete, or x-amz-date is missing.",
};
const WRONG_KEY: EngineRejection = EngineRejection {
    code: "UnrecognizedClientException",
    message: "The request is not signed with the key pair of the data folder (credentials.json).",
};
const WRONG_TIME: EngineRejection = EngineRejection {
    code: "InvalidSignatureException",
    message: "Signature expired or not yet valid: its time differs by more than 15 minutes.",
};
const WRONG_SCOPE: EngineRejection = EngineRejection {
    code: "InvalidSignatureException",
    message: "The credential is scoped to another date or service.",
};
const MISMATCH: EngineRejection = EngineRejection {
    code: "InvalidSignatureException",
    message: "The request signature does not match: it was made with another secret, or for another request.",
};

/// Verifies the signatures of one service's requests.
pub(super) struct Verifier {
    access_key_id: String,
    identity: Identity,
    service: &'static str,
}

/// The content of an `Authorization` header, not verified yet.
#[derive(Debug)]
pub(super) struct Claim {
    at: DateTime<Utc>,
    region: String,
    signed_headers: Vec<HeaderName>,
    signature: String,
}

impl Verifier {
    /// A verifier for requests of this service that are signed with these keys.
    pub(super) fn new(keys: &KeyPair, service: &'static str) -> Self {
        Self {
            access_key_id: keys.access_key_id.clone(),
            identity: keys.credentials().into(),
            service,
        }
    }

    /// Parses the `Authorization` header, and rejects requests that no signature could make valid.
    pub(super) fn claim(
        &self,
        headers: &HeaderMap,
        now: DateTime<Utc>,
    ) -> Result<Claim, EngineRejection> {
        let authorization = single(headers, &header::AUTHORIZATION).ok_or(UNSIGNED)?;
        let fields = authorization.strip_prefix(ALGORITHM).ok_or(UNSIGNED)?;
        let field = |name: &str| {
            let mut found = fields
                .split([',', ' '])
                .filter_map(|field| field.strip_prefix(name)?.strip_prefix('='));
            found
                .next()
                .filter(|_| found.next().is_none())
                .ok_or(INCOMPLETE)
        };
        let signed_headers = field("SignedHeaders")?.split(';');
        let signed_headers: Result<Vec<_>, _> = signed_headers.map(str::parse).collect();
        let signed_headers: Vec<HeaderName> = signed_headers.map_err(|_| INCOMPLETE)?;
        let date_header = HeaderName::from_static(DATE);
        let date = single(headers, &date_header).ok_or(INCOMPLETE)?;
        let at = NaiveDateTime::parse_from_str(date, "%Y%m%dT%H%M%SZ").map_err(|_| INCOMPLETE)?;
        let at = at.and_utc();

        let scope: Vec<&str> = field("Credential")?.split('/').collect();
        let [id, day, region, service, "aws4_request"] = scope[..] else {
            return Err(INCOMPLETE);
        };
        if id != self.access_key_id {
            return Err(WRONG_KEY);
        }
        if (now - at).abs() > MAX_SKEW {
            return Err(WRONG_TIME);
        }
        if service != self.service || !date.starts_with(day) || day.len() != 8 {
            return Err(WRONG_SCOPE);
        }
        let mandatory = [header::HOST, date_header, HeaderName::from_static(TARGET)];
        let mut unsigned = mandatory
            .iter()
            .filter(|name| !signed_headers.contains(name));
        if unsigned.any(|name| headers.contains_key(name)) {
            return Err(MISMATCH);
        }
        Ok(Claim {
            at,
            region: region.to_owned(),
            signed_headers,
            signature: field("Signature")?.to_owned(),
        })
    }

    /// Verifies the signature of the claim.
    pub(super) fn verify(
        &self,
        claim: &Claim,
        head: &Parts,
        body: &[u8],
    ) -> Result<(), EngineRejection> {
        let signature = self.signature(claim, head, body).ok_or(MISMATCH)?;
        let same = signature.as_bytes().ct_eq(claim.signature.as_bytes());
        if bool::from(same) {
            Ok(())
        } else {
            Err(MISMATCH)
        }
    }

    /// The signature that the request would have if it were signed with our keys.
    fn signature(&self, claim: &Claim, head: &Parts, body: &[u8]) -> Option<String> {
        let mut names = claim.signed_headers.iter();
        if !names.all(|name| head.headers.contains_key(name)) {
            return None;
        }
        let signed = claim.signed_headers.iter().flat_map(|name| {
            let values = head.headers.get_all(name).iter();
            values.map(|value| Some((name.as_str(), value.to_str().ok()?)))
        });
        let signed: Vec<_> = signed.collect::<Option<_>>()?;
        let mut settings = SigningSettings::default();
        // The claim lists the signed headers.
        settings.excluded_headers = None;
        let params = v4::SigningParams::builder()
            .identity(&self.identity)
            .region(&claim.region)
            .name(self.service)
            .time(SystemTime::from(claim.at))
            .settings(settings)
            .build()
            .ok()?;
        let path = head.uri.path_and_query()?.as_str();
        let request = SignableRequest::new(
            head.method.as_str(),
            // Only path and query of the URL are signed; the host is a header.
            format!("http://localhost{path}"),
            signed.into_iter(),
            SignableBody::Bytes(body),
        );
        let signed = sign(request.ok()?, &params.into()).ok()?;
        Some(signed.signature().to_owned())
    }
}

/// The value of a header that occurs exactly once.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::{HeaderValue, Method, Request};

    use super::*;

    const BODY: &[u8] = br#"{"TableName":"hearback"}"#;

    fn keys() -> KeyPair {
        KeyPair {
            access_key_id: "LOCALONE".to_owned(),
            secret_access_key: "secret".to_owned(),
        }
    }

    fn now() -> DateTime<Utc> {
        "2026-11-22T08:00:30Z".parse().unwrap()
    }

    /// A request as an SDK signs it.
    fn request(keys: &KeyPair, (region, service): (&str, &str), at: DateTime<Utc>) -> Parts {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri("/")
            .header("host", "127.0.0.1:3001")
            .header("x-amz-target", "DynamoDB_20120810.Scan")
            .header("user-agent", "changes on the way")
            .body(Body::empty())
            .unwrap();
        let identity = keys.credentials().into();
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(region)
            .name(service)
            .time(at.into())
            .settings(SigningSettings::default())
            .build()
            .unwrap();
        let headers = request.headers().iter();
        let headers = headers.map(|(name, value)| (name.as_str(), value.to_str().unwrap()));
        let signable = SignableRequest::new(
            "POST",
            "http://127.0.0.1:3001/",
            headers,
            SignableBody::Bytes(BODY),
        );
        let (instructions, _) = sign(signable.unwrap(), &params.into())
            .unwrap()
            .into_parts();
        instructions.apply_to_request_http1x(&mut request);
        request.into_parts().0
    }

    fn valid() -> Parts {
        request(&keys(), ("eu-central-1", "dynamodb"), now())
    }

    fn check(head: &Parts, body: &[u8]) -> Result<(), EngineRejection> {
        check_at(head, body, now())
    }

    fn check_at(head: &Parts, body: &[u8], now: DateTime<Utc>) -> Result<(), EngineRejection> {
        let verifier = Verifier::new(&keys(), "dynamodb");
        let claim = verifier.claim(&head.headers, now)?;
        verifier.verify(&claim, head, body)
    }

    /// The valid request with a changed `Authorization` header.
    fn rewritten(from: &str, to: &str) -> Parts {
        let mut head = valid();
        let authorization = head.headers[header::AUTHORIZATION].to_str().unwrap();
        assert!(authorization.contains(from), "{authorization}");
        let authorization = authorization.replace(from, to).parse().unwrap();
        head.headers.insert(header::AUTHORIZATION, authorization);
        head
    }

    #[test]
    fn a_request_that_is_signed_with_the_key_pair_is_accepted() {
        assert_eq!(check(&valid(), BODY), Ok(()));
        let mut head = valid();
        head.headers
            .insert("user-agent", HeaderValue::from_static("was not signed"));
        assert_eq!(check(&head, BODY), Ok(()));
    }

    #[test]
    fn a_request_that_was_changed_in_any_part_is_rejected() {
        let change = |change: &dyn Fn(&mut Parts)| {
            let mut head = valid();
            change(&mut head);
            check(&head, BODY)
        };
        assert_eq!(check(&valid(), b"{}"), Err(MISMATCH));
        assert_eq!(check(&valid(), b""), Err(MISMATCH));
        assert_eq!(change(&|head| head.method = Method::PUT), Err(MISMATCH));
        assert_eq!(
            change(&|head| head.uri = "/?a=b".parse().unwrap()),
            Err(MISMATCH)
        );
        assert_eq!(
            change(&|head| head.uri = "/x".parse().unwrap()),
            Err(MISMATCH)
        );
        for (name, value) in [
            ("host", "127.0.0.1:3002"),
            ("x-amz-target", "DynamoDB_20120810.DeleteTable"),
            ("x-amz-date", "20261122T080031Z"),
        ] {
            let value = HeaderValue::from_static(value);
            let changed = |head: &mut Parts| {
                head.headers.insert(name, value.clone());
            };
            assert_eq!(change(&changed), Err(MISMATCH), "{name}");
        }
        let twice = |head: &mut Parts| {
            head.headers
                .append("x-amz-target", HeaderValue::from_static("x"));
        };
        assert_eq!(change(&twice), Err(MISMATCH));
        let none = |head: &mut Parts| {
            head.headers.remove("x-amz-target");
        };
        assert_eq!(change(&none), Err(MISMATCH));
    }

    #[test]
    fn a_request_that_is_signed_with_other_keys_is_rejected() {
        let other = |access_key_id: &str, secret: &str| {
            let keys = KeyPair {
                access_key_id: access_key_id.to_owned(),
                secret_access_key: secret.to_owned(),
            };
            check(&request(&keys, ("us-east-1", "dynamodb"), now()), BODY)
        };
        assert_eq!(other("LOCALONE", "another"), Err(MISMATCH));
        assert_eq!(other("LOCALTWO", "secret"), Err(WRONG_KEY));
        assert_eq!(other("local", "local"), Err(WRONG_KEY));
    }

    #[test]
    fn a_signature_is_valid_within_15_minutes_of_its_time() {
        let edge = TimeDelta::minutes(15);
        let second = TimeDelta::seconds(1);
        for (shift, expected) in [
            (edge, Ok(())),
            (-edge, Ok(())),
            (edge + second, Err(WRONG_TIME)),
            (-edge - second, Err(WRONG_TIME)),
            (TimeDelta::days(365), Err(WRONG_TIME)),
        ] {
            assert_eq!(check_at(&valid(), BODY, now() + shift), expected, "{shift}");
        }
    }

    #[test]
    fn a_credential_of_another_service_or_day_is_rejected() {
        let sqs = request(&keys(), ("us-east-1", "sqs"), now());
        assert_eq!(check(&sqs, BODY), Err(WRONG_SCOPE));
        assert_eq!(
            check(&rewritten("20261122/", "20261121/"), BODY),
            Err(WRONG_SCOPE)
        );
        assert_eq!(
            check(&rewritten("20261122/", "2026/"), BODY),
            Err(WRONG_SCOPE)
        );
        assert_eq!(
            check(&rewritten("eu-central-1", "us-east-1"), BODY),
            Err(MISMATCH)
        );
    }

    #[test]
    fn an_incomplete_or_altered_authorization_is_rejected() {
        for (from, to, expected) in [
            ("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA1", UNSIGNED),
            ("AWS4-HMAC-SHA256", "Bearer", UNSIGNED),
            ("Credential=", "Credentials=", INCOMPLETE),
            ("Signature=", "Signature=0 Signature=", INCOMPLETE),
            ("Signature=", "Signed=", INCOMPLETE),
            ("Signature=", "Signature=0", MISMATCH),
            ("/aws4_request", "/aws4_request/more", INCOMPLETE),
            ("/aws4_request", "", INCOMPLETE),
            ("host;", "", MISMATCH),
            ("host;", "host;host;", MISMATCH),
            ("host;", "host;x-never-sent;", MISMATCH),
            (";x-amz-target", "", MISMATCH),
            ("x-amz-date;", "", MISMATCH),
        ] {
            assert_eq!(
                check(&rewritten(from, to), BODY),
                Err(expected),
                "{from} to {to}"
            );
        }
    }

    #[test]
    fn a_request_without_the_headers_of_a_signature_is_rejected() {
        let without = |name: &str| {
            let mut head = valid();
            head.headers.remove(name);
            check(&head, BODY)
        };
        assert_eq!(without("authorization"), Err(UNSIGNED));
        assert_eq!(without("x-amz-date"), Err(INCOMPLETE));
        let mut head = valid();
        let again = head.headers[header::AUTHORIZATION].clone();
        head.headers.append(header::AUTHORIZATION, again);
        assert_eq!(
            check(&head, BODY),
            Err(UNSIGNED),
            "two Authorization headers are ambiguous"
        );
    }
}
