//! `hearback` as a process: what survives when it is killed, and what its commands print.

mod commands;
mod kills;

use std::ffi::OsString;
use std::path::Path;
use std::process::Output;

use hearback_local::files::TOKEN_KEY_FILE;
use hearback_local::secrets::secret;
use hearback_local::token::{Claims, Tokens};
use hearback_tests::app::eventually;
use hearback_tests::process::{Process, run};
use reqwest::StatusCode;
use serde_json::Value;

/// `hearback` with these arguments and this folder.
async fn on_folder(data: &Path, arguments: &[&str]) -> Output {
    let mut all: Vec<OsString> = arguments.iter().map(Into::into).collect();
    all.extend(["--data".into(), data.as_os_str().to_owned()]);
    run(all).await
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The claims of a user of `acme`.
fn claims(user: &str, scope: &str) -> Claims {
    Claims {
        sub: user.to_owned(),
        tenant: "acme".to_owned(),
        projects: Vec::new(),
        scope: scope.to_owned(),
    }
}

/// A token of a user of `acme` that the bundle on this folder accepts.
fn token(data: &Path, user: &str) -> String {
    signed(data, claims(user, ""))
}

/// A token that the bundle on this folder accepts.
fn signed(data: &Path, claims: Claims) -> String {
    let tokens = Tokens::new(&secret(data, TOKEN_KEY_FILE).unwrap());
    tokens.sign(claims).unwrap()
}

/// GETs a path; returns the status and the JSON body.
async fn get(process: &Process, token: &str, path: &str) -> (StatusCode, Value) {
    let request = reqwest::Client::new().get(format!("http://{}{path}", process.address));
    let response = request.bearer_auth(token).send().await.unwrap();
    let status = response.status();
    (status, response.json().await.unwrap_or_default())
}

/// Submits an event; returns the status if there was a response.
async fn submit(
    client: &reqwest::Client,
    address: &str,
    token: &str,
    event: &Value,
) -> Option<StatusCode> {
    let request = client.post(format!("http://{address}/v1/feedback/submit"));
    let sent = request.bearer_auth(token).json(event).send().await.ok()?;
    Some(sent.status())
}

/// Waits until an event is no longer queued, and returns its outcome.
async fn outcome(process: &Process, token: &str, feedback_id: &str) -> Value {
    let path = format!("/v1/feedback/{feedback_id}");
    eventually(|| async {
        let (status, body) = get(process, token, &path).await;
        (status == StatusCode::OK && body["status"] != "queued").then_some(body)
    })
    .await
}
