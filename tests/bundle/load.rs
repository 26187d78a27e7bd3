//! What the gateway does with more than it can do.

use std::time::Duration;

use hearback_local::gateway::Limits;
use hearback_tests::app::{Answer, TestApp, eventually};
use hearback_tests::events::{acceptance, id};
use hearback_tests::process::Process;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A request whose body is sent but for its last byte: it keeps its places until that comes.
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
            "POST {path} HTTP/1.1\r\nHost: hearback\r\nAuthorization: Bearer {token}\r\n\
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

    /// Sends the rest; answers the status line.
    async fn finish(mut self) -> String {
        self.socket.write_all(&self.rest).await.unwrap();
        self.answered().await
    }

    /// The status line, without sending any more.
    async fn answered(mut self) -> String {
        let mut answer = String::new();
        self.socket.read_to_string(&mut answer).await.unwrap();
        answer.lines().next().unwrap_or_default().to_owned()
    }
}

/// A bundle with room for so many small requests.
async fn with_room_for(requests: u32) -> TestApp {
    let limits = Limits {
        requests,
        ..Limits::default()
    };
    TestApp::within(limits).await
}

/// Submits until it is refused: a request that is held may not have come to its place yet.
async fn refused(app: &TestApp) -> (Value, Answer) {
    eventually(|| async {
        let event = acceptance("ada");
        let answer = app.submit(&app.token("ada"), &event).await;
        (answer.status != StatusCode::ACCEPTED).then_some((event, answer))
    })
    .await
}

async fn status_of(app: &TestApp, event: &Value) -> StatusCode {
    let path = format!("/v1/feedback/{}", id(event));
    app.get(&app.token("ada"), &path).await.status
}

#[tokio::test]
async fn a_request_without_room_is_refused_at_once_and_taken_when_there_is() {
    let app = with_room_for(2).await;
    let events = [acceptance("ada"), acceptance("ada")];
    let [first, second] = &events;
    let held = [
        Held::submit(&app, first).await,
        Held::submit(&app, second).await,
    ];

    let (event, answer) = refused(&app).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.headers["retry-after"], "1");
    assert_eq!(answer.headers["content-type"], "application/problem+json");
    insta::assert_json_snapshot!(answer.body, {".request_id" => "[id]"}, @r#"
    {
      "detail": "Too many requests are under way. Try again.",
      "error": "overloaded",
      "request_id": "[id]",
      "status": 503,
      "title": "Service Unavailable",
      "type": "about:blank"
    }
    "#);
    // Nothing is spent on whose token it is, and what costs nothing is not refused.
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

/// A batch of about so many bytes.
fn batch(bytes: usize) -> Value {
    let mut event = acceptance("ada");
    event["ignored"] = json!("x".repeat(bytes));
    json!({"events": [event]})
}

#[tokio::test]
async fn a_large_body_counts_as_several_small_ones() {
    const BATCH: &str = "/v1/feedback/batch";
    let app = with_room_for(8).await;
    let large = Held::post(&app, BATCH, &batch(60_000)).await;
    refused(&app).await;
    assert_eq!(large.finish().await, "HTTP/1.1 202 Accepted");

    // One is always taken, however large: where there is nothing else to do, it harms nobody.
    let largest = app.post(&app.token("ada"), BATCH, &batch(1_000_000)).await;
    assert_eq!(largest.body["queued"], 1);
    let small = Held::submit(&app, &acceptance("ada")).await;
    let refused = eventually(|| async {
        let answer = app.post(&app.token("ada"), BATCH, &batch(60_000)).await;
        (answer.status != StatusCode::ACCEPTED).then_some(answer)
    });
    assert_eq!(refused.await.body["error"], "overloaded");
    let other = app.submit(&app.token("ada"), &acceptance("ada")).await;
    assert_eq!(other.status, StatusCode::ACCEPTED, "there is room for it");
    assert_eq!(small.finish().await, "HTTP/1.1 202 Accepted");
}

#[tokio::test]
async fn who_sends_all_of_a_large_body_before_it_reads_hears_that_it_is_refused() {
    let app = with_room_for(1).await;
    let held = Held::submit(&app, &acceptance("ada")).await;
    refused(&app).await;
    let large = Held::post(&app, "/v1/feedback/batch", &batch(4_000_000)).await;
    assert_eq!(large.finish().await, "HTTP/1.1 503 Service Unavailable");
    assert_eq!(held.finish().await, "HTTP/1.1 202 Accepted");
}

#[tokio::test]
async fn a_body_that_never_ends_gives_its_place_back() {
    let limits = Limits {
        requests: 1,
        request_time: Duration::from_secs(1),
        ..Limits::default()
    };
    let app = TestApp::within(limits).await;
    let event = acceptance("ada");
    let held = Held::submit(&app, &event).await;
    let told = held.answered().await;
    assert_eq!(told, "HTTP/1.1 503 Service Unavailable");
    let other = app.submit(&app.token("ada"), &acceptance("ada")).await;
    assert_eq!(other.status, StatusCode::ACCEPTED);
    assert_eq!(status_of(&app, &event).await, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn connections_that_only_wait_make_room_for_others() {
    let limits = Limits {
        connections: 4,
        idle: Duration::from_millis(500),
        ..Limits::default()
    };
    let app = TestApp::within(limits).await;
    let mut waiting = Vec::new();
    for _ in 0..20 {
        waiting.push(TcpStream::connect(app.bundle.address).await.unwrap());
    }
    let answer = app.submit(&app.token("ada"), &acceptance("ada")).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn a_disk_that_stands_still_keeps_nobody_waiting_who_does_not_need_it() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::serve(folder.path(), 0).await;
    let client = reqwest::Client::new();
    let submit = || {
        let url = format!("http://{}/v1/feedback/submit", process.address);
        let submit = client.post(url).json(&acceptance("user-123"));
        submit.bearer_auth(&process.token).send()
    };
    let health = client.get(format!("http://{}/health", process.address));
    let file = rusqlite::Connection::open(folder.path().join("dynamodb.sqlite")).unwrap();
    // Nobody else can write now. The engine waits for five seconds before it gives a write up.
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    let waiting: Vec<_> = (0..32).map(|_| tokio::spawn(submit())).collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let answer = tokio::time::timeout(Duration::from_secs(2), health.send()).await;
    file.execute_batch("ROLLBACK").unwrap();
    let answer = answer.expect("a thread is free").unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    for answer in waiting {
        assert_eq!(
            answer.await.unwrap().unwrap().status(),
            StatusCode::ACCEPTED
        );
    }
}

#[tokio::test]
async fn more_connections_than_a_process_may_have_files_harm_nothing() {
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
    // Half of what it takes until the first of them is closed.
    let submitted = tokio::time::timeout(Limits::default().idle / 2, submitted).await;
    let submitted = submitted.expect("there is a file for it");
    assert_eq!(submitted.status(), StatusCode::ACCEPTED);
    eventually(|| async {
        let read = client.get(format!("{url}/{}", id(&event)));
        let read = read.bearer_auth(&process.token).send().await.unwrap();
        let outcome: Value = read.json().await.unwrap();
        (outcome["status"] == "processed").then_some(())
    })
    .await;
}
