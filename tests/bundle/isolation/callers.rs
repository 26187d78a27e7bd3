//! The kinds of callers, in the order of the table's columns.

use chrono::Utc;
use hearback_local::token::{AUDIENCE, Claims, ISSUER};
use hearback_tests::app::TestApp;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use super::owner::{OWNER, PROJECT, TENANT};

const EVERY_SCOPE: &str = "feedback:on-behalf feedback:report feedback:admin";
const OTHER_TENANT: &str = "umbrella";
const NAMESAKES_TENANT: &str = "globex";
const OTHER_PROJECT: &str = "billing";

/// A kind of caller.
pub struct Caller {
    /// As the table names it.
    pub name: &'static str,
    /// What it puts into the header `Authorization`; each is tried.
    pub authorizations: Vec<Option<String>>,
    /// What its token says.
    pub claims: String,
    /// Its user, if it has a token that is good.
    pub user: &'static str,
    /// Tenant and project below which it looks for the owner's conversations.
    pub at: (&'static str, &'static str),
}

/// Every kind of caller. `key` is that of the gateway.
pub fn callers(app: &TestApp, key: &[u8]) -> Vec<Caller> {
    let mut all = nobodies(key);
    let acme = (TENANT, PROJECT);
    let others = (OTHER_TENANT, PROJECT);
    let namesakes = (NAMESAKES_TENANT, PROJECT);
    let billing = (TENANT, OTHER_PROJECT);
    all.extend([
        somebody(app, ("other tenant", acme), ("mallory", others), ""),
        somebody(
            app,
            ("namesake", namesakes),
            (OWNER, namesakes),
            EVERY_SCOPE,
        ),
        somebody(app, ("other project", acme), ("bea", billing), EVERY_SCOPE),
        somebody(app, ("elsewhere", billing), (OWNER, billing), ""),
        somebody(app, ("other user", acme), ("eve", acme), ""),
        somebody(
            app,
            ("on-behalf", acme),
            ("back-end", acme),
            "feedback:on-behalf",
        ),
        somebody(app, ("report", acme), ("analyst", acme), "feedback:report"),
        somebody(app, ("admin", acme), ("root", acme), "feedback:admin"),
        somebody(app, ("owner", acme), (OWNER, acme), ""),
    ]);
    all
}

/// A caller with a token that is good: who it is, and in which tenant and project.
fn somebody(
    app: &TestApp,
    (name, at): (&'static str, (&'static str, &'static str)),
    (user, (tenant, project)): (&'static str, (&str, &str)),
    scope: &str,
) -> Caller {
    let claims = Claims {
        sub: user.to_owned(),
        tenant: tenant.to_owned(),
        projects: vec![project.to_owned()],
        scope: scope.to_owned(),
    };
    Caller {
        name,
        claims: format!("{claims:?}"),
        authorizations: vec![Some(bearer(&app.bundle.tokens.sign(claims).unwrap()))],
        user,
        at,
    }
}

/// Callers who would be the owner with every scope, had they a token that is good.
fn nobodies(key: &[u8]) -> Vec<Caller> {
    let now = Utc::now().timestamp();
    let good = json!({
        "sub": OWNER, "tenant": TENANT, "projects": [PROJECT], "scope": EVERY_SCOPE,
        "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + 3_600,
    });
    let with = |name: &str, values: &[Value]| -> Vec<_> {
        let changed = values.iter().map(|value| {
            let mut claims = good.clone();
            claims[name] = value.clone();
            // What is null is left out.
            let claims = claims.as_object_mut().unwrap();
            claims.retain(|_, value| !value.is_null());
            Some(bearer(&signed(&json!(claims), key)))
        });
        changed.collect()
    };
    let whole = signed(&good, key);
    let (_, payload_and_signature) = whole.split_once('.').unwrap();
    let (payload, _) = payload_and_signature.split_once('.').unwrap();
    let text = |text: &str| Some(text.to_owned());
    let long = "x".repeat(257);
    let kinds = [
        (
            "no token",
            vec![
                None,
                text("Bearer"),
                text("Bearer "),
                text("Basic em9lNTQxNzo="),
                text(&whole),
            ],
        ),
        ("expired", with("exp", &[json!(now - 3_600), Value::Null])),
        (
            "other key",
            vec![
                Some(bearer(&signed(&good, b"another key"))),
                Some(bearer(&signed(&good, b""))),
            ],
        ),
        (
            "issuer",
            with("iss", &[json!("https://else.where"), Value::Null]),
        ),
        ("audience", with("aud", &[json!("another"), Value::Null])),
        (
            "alg none",
            // {"alg":"none"}
            vec![
                Some(bearer(&format!("eyJhbGciOiJub25lIn0.{payload}."))),
                Some(bearer(&format!(
                    "eyJhbGciOiJub25lIn0.{payload_and_signature}"
                ))),
            ],
        ),
        (
            "no sub",
            with("sub", &[Value::Null, json!(""), json!(long)]),
        ),
        (
            "no tenant",
            with("tenant", &[Value::Null, json!(""), json!(long)]),
        ),
    ];
    let nobody = |(name, authorizations)| Caller {
        name,
        authorizations,
        claims: String::new(),
        user: OWNER,
        at: (TENANT, PROJECT),
    };
    kinds.into_iter().map(nobody).collect()
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

fn signed(claims: &Value, key: &[u8]) -> String {
    let key = EncodingKey::from_secret(key);
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &key).unwrap()
}
