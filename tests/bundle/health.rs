//! Readiness and liveness differ, and the log is brief about a lasting problem.

use std::fs::File;

use futures::future::join_all;
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::events::acceptance;
use hearback_tests::process::Process;
use hearback_tests::served::Served;
use reqwest::{Method, StatusCode};
use serde_json::Value;

async fn get(address: &str, path: &str) -> (StatusCode, Value) {
    let response = reqwest::get(format!("http://{address}{path}"))
        .await
        .unwrap();
    (response.status(), response.json().await.unwrap())
}

fn parts(body: &Value) -> Vec<&str> {
    let failing = body["failing"].as_array().unwrap();
    failing
        .iter()
        .filter_map(|at| at["part"].as_str())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_makes_the_bundle_unready_but_alive_without_flooding_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let (data, log) = (folder.path().join("data"), folder.path().join("log"));
    // No file may grow beyond 1 MB: writes fail as they do on a full disk.
    let full = "trap '' XFSZ\nulimit -f 2000";
    let process = Process::serve_quietly(full, &data, File::create(&log).unwrap()).await;
    let served = Served::by(&process, &data);
    assert_eq!(get(&process.address, "/health").await.0, StatusCode::OK);
    let submit = || async {
        let submit = served.by_back_end(Method::POST, "/v1/feedback/submit");
        let response = submit.json(&acceptance("ada")).send().await;
        response.unwrap().status()
    };
    loop {
        let status = submit().await;
        if status == StatusCode::SERVICE_UNAVAILABLE {
            break;
        }
        assert_eq!(status, StatusCode::ACCEPTED);
    }
    // A write is tried three times before its request is rejected.
    let statuses = join_all((0..50).map(|_| submit())).await;
    let rejected = |status: &&StatusCode| **status == StatusCode::SERVICE_UNAVAILABLE;
    assert!(statuses.iter().filter(rejected).count() > 25);
    let body = eventually(|| async {
        let (status, body) = get(&process.address, "/health").await;
        (status == StatusCode::SERVICE_UNAVAILABLE).then_some(body)
    })
    .await;
    assert!(parts(&body).contains(&"table"), "{body}");
    let alive = get(&process.address, "/health/live").await;
    assert_eq!(alive, (StatusCode::OK, serde_json::json!({"status": "ok"})));
    process.kill().await;
    let logged = std::fs::read_to_string(log).unwrap();
    let lines = logged.lines().count();
    assert!(
        (1..20).contains(&lines),
        "{lines} lines for 50 rejections: {logged}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_bucket_makes_the_bundle_unready() {
    let app = TestApp::start().await;
    let health = || app.send(app.request(Method::GET, "/health"));
    let response = health().await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    assert_eq!(response.body["status"], "ok");
    assert_eq!(response.body["failing"], serde_json::json!([]));
    let (s3, bucket) = (&app.bundle.clients.s3, "hearback-data");
    s3.delete_bucket().bucket(bucket).send().await.unwrap();
    let response = eventually(|| async {
        let response = health().await;
        (response.status == StatusCode::SERVICE_UNAVAILABLE).then_some(response)
    })
    .await;
    assert_eq!(parts(&response.body), ["bucket"], "{}", response.body);
    assert_eq!(response.body["status"], "degraded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_rejected_requests_is_reported_without_flooding_the_log() {
    for (token, size, reason) in [
        (Some("forged"), 1, "401 unauthorized"),
        (None, 300_000, "413 body_too_large (tenant \"acme\")"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (data, log) = (folder.path().join("data"), folder.path().join("log"));
        let process = Process::serve_quietly("", &data, File::create(&log).unwrap()).await;
        let client = reqwest::Client::new();
        for _ in 0..500 {
            let url = format!("http://{}/v1/feedback/submit", process.address);
            let post = client.post(url).body("x".repeat(size));
            let post = post.bearer_auth(token.unwrap_or(&process.token));
            let status = post.send().await.unwrap().status().as_u16();
            assert!(reason.starts_with(&status.to_string()), "{status}");
        }
        process.kill().await;
        let logged = std::fs::read_to_string(log).unwrap();
        let warning = format!("requests are being rejected: 1 x {reason}");
        assert!(logged.contains(&warning), "{logged}");
        assert!(logged.lines().count() < 4, "{logged}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_at_a_port_of_an_engine_is_reported_without_flooding_the_log() {
    for (engine, port) in [("dynamodb", "DynamoDB"), ("sqs", "SQS"), ("s3", "S3")] {
        let folder = tempfile::tempdir().unwrap();
        let (data, log) = (folder.path().join("data"), folder.path().join("log"));
        let process = Process::serve_quietly("", &data, File::create(&log).unwrap()).await;
        let endpoints = std::fs::read(data.join("endpoints.json")).unwrap();
        let endpoints: Value = serde_json::from_slice(&endpoints).unwrap();
        let url = format!("{}/hearback-data/x", endpoints[engine].as_str().unwrap());
        let client = reqwest::Client::new();
        for _ in 0..500 {
            let unsigned = client.get(&url).send().await.unwrap();
            assert_eq!(unsigned.status(), StatusCode::FORBIDDEN);
        }
        process.kill().await;
        let logged = std::fs::read_to_string(log).unwrap();
        let warning = format!("requests are being rejected: 1 x 403 at the {port} port");
        assert!(logged.contains(&warning), "{logged}");
        assert!(logged.lines().count() < 4, "{logged}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_line_of_a_request_has_its_tenant_and_no_user() {
    let folder = tempfile::tempdir().unwrap();
    let (data, log) = (folder.path().join("data"), folder.path().join("log"));
    let process = Process::serve_logging(&data, File::create(&log).unwrap()).await;
    let served = Served::by(&process, &data);
    for path in ["/v1/preferences/secret-user", "/v1/feedback/no-uuid"] {
        let read = served.request("secret-user", Method::GET, path);
        read.send().await.unwrap();
    }
    let url = format!("http://{}/v1/preferences/secret-user", process.address);
    reqwest::get(url).await.unwrap();
    assert!(process.terminate().await);
    let logged = std::fs::read_to_string(log).unwrap();
    let mut answered = logged.lines().filter(|line| line.contains("answered"));
    let [known, rejected, unauthorized] = std::array::from_fn(|_| answered.next().unwrap());
    assert!(known.contains(r#"tenant="acme""#), "{known}");
    assert!(rejected.contains(r#"tenant="acme""#), "{rejected}");
    assert!(!unauthorized.contains("tenant"), "{unauthorized}");
    assert!(!logged.contains("secret-user"), "{logged}");
}
