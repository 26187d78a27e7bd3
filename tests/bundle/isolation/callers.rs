//! The kinds of callers, in the order of the table's columns.

use chrono::Utc;
use hearback_local::token::{AUDIENCE, Claims, ISSUER};
use hearback_tests::app::TestApp;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use super::owner::{OWNER, PROJECT, TENANT};

pub const EVERY_SCOPE: &str = "feedback:on-behalf feedback:report feedback:admin feedback:operate";
const OTHER_TENANT: &str = "umbrella";
const NAMESAKES_TENANT: &str = "globex";
const OTHER_PROJECT: &str = "billing";

/// A kind of caller.
pub struct Caller {
    /// The name in the table.
    pub name: &'static str,
    /// The values of the header `Authorization` to try.
    pub authorizations: Vec<Option<String>>,
    /// The claims of its tokens, as text.
    pub claims: String,
    /// The claims of its first token, if that is valid.
    valid: Option<Claims>,
    /// Its user, if it has a valid token.
    pub user: &'static str,
    /// The tenant and project in which it looks for the owner's conversations.
    pub at: (&'static str, &'static str),
}

/// Every kind of caller. `key` is that of the gateway, and `pseudonym` the owner's.
pub fn callers(app: &TestApp, key: &[u8], pseudonym: &str) -> Vec<Caller> {
    let mut all = unauthenticated(key, pseudonym);
    let acme = (TENANT, PROJECT);
    let others = (OTHER_TENANT, PROJECT);
    let namesakes = (NAMESAKES_TENANT, PROJECT);
    let billing = (TENANT, OTHER_PROJECT);
    all.extend([
        authenticated(app, ("other tenant", acme), ("mallory", others), "").also(
            app,
            &lookalikes(TENANT),
            |claims, name| claims.tenant = name,
        ),
        authenticated(
            app,
            ("namesake", namesakes),
            (OWNER, namesakes),
            EVERY_SCOPE,
        ),
        authenticated(app, ("other project", acme), ("bea", billing), EVERY_SCOPE).also(
            app,
            &lookalikes(PROJECT),
            |claims, name| claims.projects = vec![name],
        ),
        authenticated(app, ("elsewhere", billing), (OWNER, billing), ""),
        authenticated(app, ("other user", acme), ("eve", acme), "")
            .also(app, &lookalikes(OWNER), |claims, name| claims.sub = name)
            .also(app, &scopes(), |claims, scope| claims.scope = scope),
        authenticated(
            app,
            ("on-behalf", acme),
            ("back-end", acme),
            "feedback:on-behalf",
        ),
        authenticated(app, ("report", acme), ("analyst", acme), "feedback:report"),
        authenticated(app, ("admin", acme), ("root", acme), "feedback:admin"),
        authenticated(app, ("owner", acme), (OWNER, acme), ""),
    ]);
    all
}

impl Caller {
    /// Whether its tokens are valid.
    pub fn is_authenticated(&self) -> bool {
        self.valid.is_some()
    }

    /// Adds a token for each of these values of a claim.
    fn also(mut self, app: &TestApp, values: &[String], set: impl Fn(&mut Claims, String)) -> Self {
        for value in values {
            let mut claims = self.valid.clone().expect("a caller with a token");
            set(&mut claims, value.clone());
            self.claims += &format!("{claims:?}");
            let token = app.bundle.tokens.sign(claims).unwrap();
            self.authorizations.push(Some(bearer(&token)));
        }
        self
    }
}

/// Names that differ from this one, and would equal it for code that trims, splits, decodes, folds case or
/// normalises.
pub fn lookalikes(name: &str) -> Vec<String> {
    let (first, rest) = name.split_at(1);
    vec![
        format!("[{name}]"),
        format!("[[{name}]]"),
        format!("\"{name}\""),
        format!("[\"{name}\"]"),
        format!(" {name}"),
        format!("{name} "),
        format!("x {name}"),
        format!("x\u{a0}{name}"),
        format!("x\u{2003}{name}"),
        format!("{name}\u{200b}"),
        format!("{name},x"),
        format!("{name}#"),
        format!("{name}#x"),
        format!("x#{name}"),
        format!("{name}/"),
        format!("../{name}"),
        format!("{name}/../{name}"),
        format!("%{:02x}{rest}", first.as_bytes()[0]),
        format!("{name}%00"),
        format!("{name}*"),
        name.to_uppercase(),
        format!("{first}\u{301}{rest}"),
        // Full-width letters.
        format!(
            "{}{rest}",
            char::from_u32(u32::from(first.as_bytes()[0]) + 0xfee0).unwrap()
        ),
    ]
}

/// Invalid scopes that would be valid for code that splits at anything but a space.
fn scopes() -> Vec<String> {
    let glued = ["\u{a0}", "\t", "\n", ",", "\u{2003}", ";", "+"];
    let mut scopes: Vec<_> = glued
        .map(|between| EVERY_SCOPE.replace(' ', between))
        .into();
    scopes.extend([
        format!("[{}]", EVERY_SCOPE.replace(' ', ",")),
        EVERY_SCOPE.to_uppercase(),
        EVERY_SCOPE.replace("feedback:", "feedback:feedback:"),
        "feedback:* feedback feedback: *".to_owned(),
    ]);
    scopes
}

/// A caller with a valid token, its user, tenant and project.
fn authenticated(
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
        valid: Some(claims.clone()),
        authorizations: vec![Some(bearer(&app.bundle.tokens.sign(claims).unwrap()))],
        user,
        at,
    }
}

/// Callers whose tokens are invalid, but would otherwise be the owner's with every scope.
fn unauthenticated(key: &[u8], pseudonym: &str) -> Vec<Caller> {
    let now = Utc::now().timestamp();
    let valid = json!({
        "sub": OWNER, "tenant": TENANT, "projects": [PROJECT], "scope": EVERY_SCOPE,
        "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + 3_600,
    });
    let with = |name: &str, values: &[Value]| -> Vec<_> {
        let changed = values.iter().map(|value| {
            let mut claims = valid.clone();
            claims[name] = value.clone();
            // A null value removes the claim.
            let claims = claims.as_object_mut().unwrap();
            claims.retain(|_, value| !value.is_null());
            Some(bearer(&signed(&json!(claims), key)))
        });
        changed.collect()
    };
    let token = signed(&valid, key);
    let (_, payload_and_signature) = token.split_once('.').unwrap();
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
                text(&token),
            ],
        ),
        ("expired", with("exp", &[json!(now - 3_600), Value::Null])),
        (
            "other key",
            vec![
                Some(bearer(&signed(&valid, b"another key"))),
                Some(bearer(&signed(&valid, b""))),
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
        (
            "pseudonym",
            with("sub", &[json!(pseudonym), json!("anon-"), json!("anon-1")]),
        ),
    ];
    let caller = |(name, authorizations)| Caller {
        name,
        authorizations,
        claims: String::new(),
        valid: None,
        user: OWNER,
        at: (TENANT, PROJECT),
    };
    kinds.into_iter().map(caller).collect()
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

pub fn signed(claims: &Value, key: &[u8]) -> String {
    let key = EncodingKey::from_secret(key);
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &key).unwrap()
}
