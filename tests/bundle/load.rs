//! The gateway under more load than its capacity.

use std::time::Duration;

use hearback_local::gateway::Limits;
use hearback_tests::app::{TestApp, TestResponse, eventually};
use hearback_tests::events::{acceptance, id};
use hearback_tests::process::Process;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const BATCH: &str = "/v1/feedback/batch";

/// A request whose body is sent except for the last byte. It occupies capacity until that arrives.
struct Held {
    socket: TcpStream,
    rest: Vec<u8>,
}

impl Held {
    async fn submit(app: &TestApp, event: &Value) -> Self {
        Self::post(app, "/v1/feedback/submit", event).await
    }

    async fn post(app: &TestApp, path: &str, body: &Value) -> Self {
        let (token, body) = (app.token("ada"), body.to_string());
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut socket = TcpStream::connect(app.bundle.address).await.unwrap();
        let (sent, rest) = body.split_at(body.len() - 1);
        socket.write_all(head.as_bytes()).await.unwrap();
        socket.write_all(sent.as_bytes()).await.unwrap();
        Self {
            socket,
            rest: rest.into(),
        }
    }

    /// Sends the last byte, and returns the status line.
    async fn finish(mut self) -> String {
        self.socket.write_all(&self.rest).await.unwrap();
        self.status_line().await
    }

    /// Returns the status line without sending more.
    async fn status_line(mut self) -> String {
        let mut response = String::new();
        self.socket.read_to_string(&mut response).await.unwrap();
        response.lines().next().unwrap_or_default().to_owned()
    }
}

/// A chunked request of which only this part of the body is sent.
async fn chunked(app: &TestApp, user: &str, sent: &[u8]) -> Held {
    let token = app.token(user);
    let head = format!(
        "POST /v1/feedback/batch HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let mut socket = TcpStream::connect(app.bundle.address).await.unwrap();
    socket.write_all(head.as_bytes()).await.unwrap();
    if !sent.is_empty() {
        let size = format!("{:x}\r\n", sent.len());
        socket.write_all(size.as_bytes()).await.unwrap();
        socket.write_all(sent).await.unwrap();
        socket.write_all(b"\r\n").await.unwrap();
    }
    let rest = b"0\r\n\r\n".to_vec();
    Held { socket, rest }
}

/// A bundle with capacity for this many small requests.
async fn with_capacity_for(requests: u32) -> TestApp {
    let limits = Limits {
        requests,
        ..Limits::default()
    };
    TestApp::within(limits).await
}

/// Submits events until one is rejected: a held request may not be counted yet.
async fn submit_until_rejected(app: &TestApp) -> (Value, TestResponse) {
    eventually(|| async {
        let event = acceptance("ada");
        let response = app.submit(&app.token("ada"), &event).await;
        (response.status != StatusCode::ACCEPTED).then_some((event, response))
    })
    .await
}

async fn status_of(app: &TestApp, event: &Value) -> StatusCode {
    let path = format!("/v1/feedback/{}", id(event));
    app.get(&app.token("ada"), &path).await.status
}

#[tokio::test]
async fn a_request_beyond_capacity_is_rejected_immediately_and_accepted_once_there_is_capacity() {
    let app = with_capacity_for(2).await;
    let events = [acceptance("ada"), acceptance("ada")];
    let [first, second] = &events;
    let held = [
        Held::submit(&app, first).await,
        Held::submit(&app, second).await,
    ];

    let (event, response) = submit_until_rejected(&app).await;
    assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers["retry-after"], "1");
    assert_eq!(response.headers["content-type"], "application/problem+json");
    insta::assert_json_snapshot!(response.masked(&["request_id"]), @r#"
    {
      "detail": "Too many requests are in progress. Try again.",
      "error": "overloaded",
      "request_id": "[masked]",
      "status": 503,
      "title": "Service Unavailable",
      "type": "about:blank"
    }
    "#);
    // The token is not verified before the capacity, and requests without cost are not rejected.
    let stranger = app.submit("no token", &acceptance("eve")).await;
    assert_eq!(stranger.status, StatusCode::SERVICE_UNAVAILABLE);
    let health = app.send(app.request(Method::GET, "/health")).await;
    assert_eq!(health.status, StatusCode::OK);

    for held in held {
        assert_eq!(held.finish().await, "HTTP/1.1 202 Accepted");
    }
    assert_eq!(status_of(&app, &event).await, StatusCode::NOT_FOUND);
    let again = app.submit(&app.token("ada"), &event).await;
    assert_eq!(again.status, StatusCode::ACCEPTED);
    for event in events.iter().chain([&event]) {
        let outcome = app.outcome(&app.token("ada"), &id(event)).await;
        assert_eq!(outcome["status"], "processed");
    }
}

/// A batch of about this many bytes.
fn batch(bytes: usize) -> Value {
    let mut event = acceptance("ada");
    event["ignored"] = json!("x".repeat(bytes));
    json!({"events": [event]})
}

#[tokio::test]
async fn a_large_body_counts_as_several_small_ones() {
    let app = with_capacity_for(8).await;
    let large = Held::post(&app, BATCH, &batch(60_000)).await;
    submit_until_rejected(&app).await;
    assert_eq!(large.finish().await, "HTTP/1.1 202 Accepted");

    // A single request is accepted whatever its size, when there are no others.
    let largest = app.post(&app.token("ada"), BATCH, &batch(1_000_000)).await;
    assert_eq!(largest.body["queued"], 1);
    let small = Held::submit(&app, &acceptance("ada")).await;
    let rejected = eventually(|| async {
        let response = app.post(&app.token("ada"), BATCH, &batch(60_000)).await;
        (response.status != StatusCode::ACCEPTED).then_some(response)
    });
    assert_eq!(rejected.await.body["error"], "overloaded");
    let other = app.submit(&app.token("ada"), &acceptance("ada")).await;
    assert_eq!(
        other.status,
        StatusCode::ACCEPTED,
        "there is capacity for it"
    );
    assert_eq!(small.finish().await, "HTTP/1.1 202 Accepted");
}

#[tokio::test]
async fn a_client_that_sends_a_large_body_before_reading_receives_the_rejection() {
    let app = with_capacity_for(1).await;
    let held = Held::submit(&app, &acceptance("ada")).await;
    submit_until_rejected(&app).await;
    let large = Held::post(&app, "/v1/feedback/batch", &batch(4_000_000)).await;
    assert_eq!(large.finish().await, "HTTP/1.1 503 Service Unavailable");
    assert_eq!(held.finish().await, "HTTP/1.1 202 Accepted");
}

#[tokio::test]
async fn a_client_that_sends_an_oversized_body_receives_413() {
    let app = TestApp::start().await;
    for _ in 0..10 {
        let signal = Held::post(&app, "/api/v1/feedback", &batch(3_000_000)).await;
        assert_eq!(signal.finish().await, "HTTP/1.1 413 Payload Too Large");
    }
}

#[tokio::test]
async fn an_endless_body_releases_its_capacity() {
    let limits = Limits {
        requests: 1,
        request_time: Duration::from_secs(1),
        ..Limits::default()
    };
    let app = TestApp::within(limits).await;
    let event = acceptance("ada");
    let held = Held::submit(&app, &event).await;
    let status_line = held.status_line().await;
    assert_eq!(status_line, "HTTP/1.1 503 Service Unavailable");
    let other = app.submit(&app.token("ada"), &acceptance("ada")).await;
    assert_eq!(other.status, StatusCode::ACCEPTED);
    assert_eq!(status_of(&app, &event).await, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn stalled_bodies_occupy_capacity_only_for_the_bytes_they_sent() {
    let limits = Limits {
        // Longer than the test takes.
        body_lag: Duration::from_mins(1),
        ..Limits::default()
    };
    let app = TestApp::within(limits).await;
    let mut stalled = Vec::new();
    // If each counted with its maximum size, two of them would occupy all 128 places.
    for user in ["eve", "eve", "mallory", "mallory", "ada", "ada"] {
        stalled.push(chunked(&app, user, b"{").await);
    }
    for user in ["ada", "eve", "grace"] {
        for _ in 0..20 {
            let response = app.submit(&app.token(user), &acceptance(user)).await;
            assert_eq!(response.status, StatusCode::ACCEPTED, "{}", response.body);
        }
    }
    let large = batch(1_000_000);
    let response = app.post(&app.token("ada"), BATCH, &large).await;
    assert_eq!(response.body["queued"], 1, "{}", response.body);
    for held in stalled {
        assert_eq!(held.finish().await, "HTTP/1.1 400 Bad Request", "not JSON");
    }
}

#[tokio::test]
async fn a_user_at_their_limit_leaves_capacity_for_others() {
    let limits = Limits {
        requests: 8,
        body_lag: Duration::from_mins(1),
        ..Limits::default()
    };
    let app = TestApp::within(limits).await;
    let mut stalled = Vec::new();
    for _ in 0..8 {
        stalled.push(chunked(&app, "eve", b"").await);
    }
    let rejected = eventually(|| async {
        let response = app.submit(&app.token("eve"), &acceptance("eve")).await;
        (response.status != StatusCode::ACCEPTED).then_some(response)
    });
    let rejected = rejected.await;
    assert_eq!(rejected.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(rejected.headers["retry-after"], "1");
    assert_eq!(rejected.body["error"], "overloaded");
    assert_eq!(
        rejected.body["detail"],
        "Too many requests of this user or tenant are in progress. Try again."
    );
    let other = app.submit(&app.token("ada"), &acceptance("ada")).await;
    assert_eq!(other.status, StatusCode::ACCEPTED, "{}", other.body);

    // A second user takes the rest of the tenant's share; another tenant still has capacity.
    let _further = chunked(&app, "mallory", b"").await;
    eventually(|| async {
        let response = app.submit(&app.token("ada"), &acceptance("ada")).await;
        (response.status != StatusCode::ACCEPTED).then_some(())
    })
    .await;
    let other_tenant = app.token_of("grace", "other", "");
    let preferences = app.get(&other_tenant, "/v1/preferences/grace").await;
    assert_ne!(preferences.status, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn a_body_that_outgrows_the_free_capacity_is_rejected_while_it_is_sent() {
    let app = with_capacity_for(4).await;
    let large = batch(4_000_000).to_string();
    // The user's share is three of the four places: a request is never rejected for its size alone.
    let growing = chunked(&app, "ada", large.as_bytes()).await;
    assert_eq!(growing.finish().await, "HTTP/1.1 202 Accepted");

    let held = Held::submit(&app, &acceptance("ada")).await;
    let other = Held::submit(&app, &acceptance("ada")).await;
    let rejected = eventually(|| async {
        let growing = chunked(&app, "ada", large.as_bytes()).await;
        let status_line = growing.finish().await;
        (status_line != "HTTP/1.1 202 Accepted").then_some(status_line)
    });
    assert_eq!(rejected.await, "HTTP/1.1 503 Service Unavailable");
    for held in [held, other] {
        assert_eq!(held.finish().await, "HTTP/1.1 202 Accepted");
    }
}

#[tokio::test]
async fn a_stalled_body_gets_a_response_and_releases_its_capacity() {
    let limits = Limits {
        requests: 1,
        body_lag: Duration::from_millis(500),
        ..Limits::default()
    };
    let app = TestApp::within(limits).await;
    let event = acceptance("ada");
    let large = batch(1_000_000).to_string();
    for sent in [None, Some(""), Some(large.as_str())] {
        let stalled = match sent {
            None => Held::submit(&app, &event).await,
            Some(sent) => chunked(&app, "ada", sent.as_bytes()).await,
        };
        assert_eq!(stalled.status_line().await, "HTTP/1.1 408 Request Timeout");
        let other = app.submit(&app.token("ada"), &acceptance("ada")).await;
        assert_eq!(other.status, StatusCode::ACCEPTED, "{}", other.body);
    }
    assert_eq!(status_of(&app, &event).await, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_idle_connection_is_closed_for_a_new_one() {
    let limits = Limits {
        connections: 4,
        // Longer than the test takes.
        idle: Duration::from_mins(10),
        ..Limits::default()
    };
    let app = TestApp::within(limits).await;
    let mut waiting = Vec::new();
    for at in 0..40 {
        let mut socket = TcpStream::connect(app.bundle.address).await.unwrap();
        // Some have sent a part of the request head.
        if at % 2 == 0 {
            socket
                .write_all(b"GET /health HTTP/1.1\r\nHost:")
                .await
                .unwrap();
        }
        waiting.push(socket);
    }
    let response = app.submit(&app.token("ada"), &acceptance("ada")).await;
    assert_eq!(response.status, StatusCode::ACCEPTED);
    let mut first = waiting.swap_remove(0);
    assert_eq!(
        first.read(&mut [0; 16]).await.unwrap(),
        0,
        "the connection is closed"
    );
}

#[tokio::test]
async fn a_busy_connection_is_not_closed_for_a_new_one() {
    let limits = Limits {
        connections: 2,
        body_lag: Duration::from_mins(1),
        idle: Duration::from_mins(10),
        ..Limits::default()
    };
    let app = TestApp::within(limits).await;
    let held = [
        Held::submit(&app, &acceptance("ada")).await,
        Held::submit(&app, &acceptance("ada")).await,
    ];
    let mut waiting = Vec::new();
    for _ in 0..10 {
        waiting.push(TcpStream::connect(app.bundle.address).await.unwrap());
    }
    for held in held {
        assert_eq!(held.finish().await, "HTTP/1.1 202 Accepted");
    }
    let response = app.submit(&app.token("ada"), &acceptance("ada")).await;
    assert_eq!(response.status, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn a_blocked_disk_does_not_delay_requests_that_do_not_need_it() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::serve(folder.path(), 0).await;
    let client = reqwest::Client::new();
    let submit = || {
        let url = format!("http://{}/v1/feedback/submit", process.address);
        let submit = client.post(url).json(&acceptance("user-123"));
        submit.bearer_auth(&process.token).send()
    };
    let health = client.get(format!("http://{}/health/live", process.address));
    let file = rusqlite::Connection::open(folder.path().join("dynamodb.sqlite")).unwrap();
    // The lock blocks all writes. The engine waits five seconds before a write fails.
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    let waiting: Vec<_> = (0..32).map(|_| tokio::spawn(submit())).collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let response = tokio::time::timeout(Duration::from_secs(2), health.send()).await;
    file.execute_batch("ROLLBACK").unwrap();
    let response = response.expect("a thread is free").unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    for response in waiting {
        assert_eq!(
            response.await.unwrap().unwrap().status(),
            StatusCode::ACCEPTED
        );
    }
}

#[tokio::test]
async fn the_bundle_survives_more_connections_than_file_descriptors() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::serve_with_files(folder.path(), 256).await;
    let client = reqwest::Client::new();
    let url = format!("http://{}/v1/feedback", process.address);
    let event = acceptance("user-123");
    let mut waiting = Vec::new();
    let submitted = async {
        for _ in 0..400 {
            waiting.push(TcpStream::connect(&process.address).await.unwrap());
        }
        let submit = client.post(format!("{url}/submit")).json(&event);
        submit.bearer_auth(&process.token).send().await.unwrap()
    };
    // Half of the time after which the first of them is closed.
    let submitted = tokio::time::timeout(Limits::default().idle / 2, submitted).await;
    let submitted = submitted.expect("a file descriptor for the request");
    assert_eq!(submitted.status(), StatusCode::ACCEPTED);
    eventually(|| async {
        let read = client.get(format!("{url}/{}", id(&event)));
        let read = read.bearer_auth(&process.token).send().await.unwrap();
        let outcome: Value = read.json().await.unwrap();
        (outcome["status"] == "processed").then_some(())
    })
    .await;
}
