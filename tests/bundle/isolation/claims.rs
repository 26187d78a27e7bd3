//! Claims in forms that could be taken for another project's or tenant's.

use chrono::Utc;
use hearback_local::files::TOKEN_KEY_FILE;
use hearback_local::token::{AUDIENCE, ISSUER};
use hearback_tests::app::TestApp;
use hearback_tests::engine::Engine;
use hearback_tests::functions::{call_with, functions_of};
use hearback_tests::turns::turn_body;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::callers::{EVERY_SCOPE, lookalikes, signed};

const VICTIM: &str = "victim";
const TURN: &str = "/conversations/acme/victim/c/turns/t";
const FORGED: &str = "/conversations/acme/victim/c/turns/forged";

fn claims(tenant: &str, projects: &str) -> Value {
    json!({"sub": "mallory", "tenant": tenant, "projects": projects, "scope": EVERY_SCOPE})
}

/// The claim `projects` of a token for one project as API Gateway passes it on, for names that resemble the victim's,
/// and claims that are no list.
fn deliveries() -> Vec<String> {
    // A name with a space inside is passed on like two names; the issuer must not use it (see docs/security.md).
    let names = lookalikes(VICTIM).into_iter();
    let names = names.filter(|name| !name.trim().contains(' '));
    let mut deliveries: Vec<_> = names.map(|name| format!("[{name}]")).collect();
    let malformed = [
        "victim",
        "\"victim\"",
        "'victim'",
        "[\"victim\"",
        "[victim",
        "victim]",
        "{victim}",
        "[x\tvictim]",
        "[x\nvictim]",
        "[x  victim]",
        "x victim",
        "",
    ];
    deliveries.extend(malformed.map(str::to_owned));
    deliveries
}

#[tokio::test]
async fn a_forged_claim_gives_no_access_to_another_project() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine);
    let call = async |claims: &Value, method, path| {
        let body = turn_body("a question", "an answer");
        call_with(&functions, claims, (method, path), &body).await
    };
    let owner = claims("acme", "[victim]");
    let (status, body) = call(&owner, Method::PUT, TURN).await;
    assert!(status.is_success(), "{body}");
    assert_eq!(call(&owner, Method::GET, TURN).await.0, StatusCode::OK);
    let others = deliveries().into_iter().map(|it| claims("acme", &it));
    // A tenant that is an array in the token.
    let others = others.chain([
        claims("[acme]", "[victim]"),
        claims("[\"acme\"]", "[victim]"),
    ]);
    for hostile in others {
        for (method, path) in [(Method::GET, TURN), (Method::PUT, FORGED)] {
            let (status, body) = call(&hostile, method, path).await;
            let rejected = [
                StatusCode::UNAUTHORIZED,
                StatusCode::FORBIDDEN,
                StatusCode::NOT_FOUND,
            ];
            assert!(rejected.contains(&status), "{hostile}: {status} {body}");
        }
    }
    let (status, _) = call(&owner, Method::GET, FORGED).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_token_whose_claims_have_another_type_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let app = TestApp::on(Some(folder.path().to_owned())).await;
    let key = std::fs::read(folder.path().join(TOKEN_KEY_FILE)).unwrap();
    let now = Utc::now().timestamp();
    let valid = json!({
        "sub": "ada", "tenant": "acme", "projects": ["order-service"], "scope": "",
        "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + 3_600,
    });
    let status = async |claims: &Value| {
        let path = "/v1/preferences/ada";
        app.get(&signed(claims, &key), path).await.status
    };
    assert_ne!(status(&valid).await, StatusCode::UNAUTHORIZED);
    for (claim, value) in [
        ("sub", json!(["ada"])),
        ("sub", json!(1)),
        ("tenant", json!(["acme"])),
        ("tenant", json!({"acme": true})),
        ("tenant", json!(1)),
        ("projects", json!("x")),
        ("projects", json!("[order-service]")),
        ("projects", json!([["order-service"]])),
        ("projects", json!([1])),
        ("scope", json!(["feedback:admin"])),
    ] {
        let mut claims = valid.clone();
        claims[claim] = value;
        assert_eq!(status(&claims).await, StatusCode::UNAUTHORIZED, "{claims}");
    }
}
