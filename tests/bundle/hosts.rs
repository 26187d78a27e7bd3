//! The gateway's `Host` check: a page whose name resolves to this machine (DNS rebinding) can neither read nor write.
//! Also the security headers of every response.

use hearback_local::bundle::{Bundle, Options};
use hearback_local::hosts::Hosts;
use hearback_tests::app::TestApp;
use hearback_tests::events::{acceptance, id};
use hearback_tests::process::run;
use reqwest::StatusCode;
use serde_json::Value;

/// Every path without a token, one that needs a token, and an unknown one.
const PATHS: [&str; 8] = [
    "/health",
    "/openapi.json",
    "/docs",
    "/docs/",
    "/demo",
    "/demo/demo.js",
    "/v1/preferences/ada",
    "/nothing",
];

async fn get(address: &str, path: &str, host: &str) -> reqwest::Response {
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let request = client
        .build()
        .unwrap()
        .get(format!("http://{address}{path}"));
    request.header("host", host).send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_another_host_is_rejected_on_every_route() {
    let app = TestApp::start().await;
    let address = app.bundle.address.to_string();
    for path in PATHS {
        for host in [
            "evil.example",
            "evil.example:3000",
            "127.0.0.1.evil.example",
            "192.168.1.2",
        ] {
            let response = get(&address, path, host).await;
            assert_eq!(
                response.status(),
                StatusCode::MISDIRECTED_REQUEST,
                "{path} {host}"
            );
            assert_eq!(
                response.headers()["content-type"],
                "application/problem+json"
            );
            let problem: Value = response.json().await.unwrap();
            assert_eq!(problem["error"], "unknown_host");
        }
        for host in ["localhost", "127.0.0.1", "[::1]:3000", &address] {
            let response = get(&address, path, host).await;
            assert_ne!(
                response.status(),
                StatusCode::MISDIRECTED_REQUEST,
                "{path} {host}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_another_host_has_no_effect_even_with_a_token() {
    let app = TestApp::start().await;
    let event = acceptance("ada");
    let submit = format!("http://{}/v1/feedback/submit", app.bundle.address);
    let request = reqwest::Client::new()
        .post(submit)
        .bearer_auth(app.token("ada"));
    let response = request
        .header("host", "evil.example")
        .json(&event)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::MISDIRECTED_REQUEST);
    let path = format!("/v1/feedback/{}", id(&event));
    let read = app.get(&app.token("ada"), &path).await;
    assert_eq!(read.status, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_allowed_hosts_are_served() {
    let bundle = Bundle::start(Options {
        port: 0,
        data: None,
        hosts: Hosts::with(vec!["feedback.example".parse().unwrap()]),
        ..Options::default()
    });
    let bundle = bundle.await.unwrap();
    let address = bundle.address.to_string();
    for (host, status) in [
        ("feedback.example", StatusCode::OK),
        ("Feedback.Example:443", StatusCode::OK),
        ("localhost", StatusCode::OK),
        ("evil.feedback.example", StatusCode::MISDIRECTED_REQUEST),
    ] {
        assert_eq!(
            get(&address, "/health", host).await.status(),
            status,
            "{host}"
        );
    }
    bundle.stop().await;
}

#[tokio::test]
async fn a_host_with_a_scheme_or_a_port_cannot_be_allowed() {
    for host in ["https://feedback.example", "feedback.example:443", "*"] {
        let ended = run(["serve", "--memory", "--allowed-host", host]).await;
        let stderr = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("without a scheme and a port"), "{stderr}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_response_has_security_headers() {
    let app = TestApp::start().await;
    let address = app.bundle.address.to_string();
    for path in PATHS
        .into_iter()
        .chain(["/docs/swagger-ui-bundle.js", "/docs/nothing"])
    {
        for host in [address.as_str(), "evil.example"] {
            let response = get(&address, path, host).await;
            let headers = response.headers();
            assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
            assert_eq!(headers["referrer-policy"], "no-referrer", "{path}");
            let policies: Vec<_> = headers.get_all("content-security-policy").iter().collect();
            assert_eq!(policies.len(), 1, "{path}");
            let policy = policies[0].to_str().unwrap();
            for rule in [
                "default-src ",
                "frame-ancestors 'none'",
                "form-action 'none'",
                "base-uri 'none'",
            ] {
                assert!(policy.contains(rule), "{path}: {policy}");
            }
            for open in [
                "*",
                "http:",
                "https:",
                "'unsafe-eval'",
                "script-src 'self' 'unsafe-inline'",
            ] {
                assert!(!policy.contains(open), "{path}: {policy}");
            }
            let mut names = headers.keys();
            assert!(
                !names.any(|name| name.as_str().starts_with("access-control-")),
                "{path}"
            );
        }
    }
}
