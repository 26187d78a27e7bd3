//! Turns before the previous one: what they add to a detection.

use axum::http::StatusCode;
use hearback_tests::app::{TestApp, TestResponse};
use hearback_tests::turns::{path, turn_body};
use serde_json::{Value, json};

const CLINIC: &str = "what's the quickest way to the clinic";
const BY_CAR: &str = "By car it's 18 minutes via Ring Road, or 15 via the toll tunnel.";
const AGAIN: &str = "i cannot drive. the quickest way to the clinic";

/// Registers a turn of a conversation at this minute after ten.
async fn register(
    app: &TestApp,
    token: &str,
    (conversation, turn): (&str, &str),
    (minute, query, answer): (u32, &str, &str),
) -> TestResponse {
    let mut body = turn_body(query, answer);
    body["ts"] = json!(format!("2026-01-04T10:{minute:02}:00Z"));
    let response = app.put(token, &path(conversation, turn), &body).await;
    assert_eq!(response.status, StatusCode::CREATED, "{:?}", response.body);
    response
}

/// The cue of the next message, after a first turn with the query about the clinic.
async fn cue(app: &TestApp, first: (&str, &str), conversation: &str) -> Value {
    let ada = app.token("ada");
    let (user, of) = first;
    let answer = "The quickest way is the A4 to exit 12, about 20 minutes.";
    register(app, &app.token(user), (of, "t1"), (0, CLINIC, answer)).await;
    register(app, &ada, (conversation, "t2"), (1, "i dont drive", BY_CAR)).await;
    let next = register(app, &ada, (conversation, "t3"), (2, AGAIN, "Bus 7.")).await;
    let detection = &next.body["detection"];
    assert_eq!(detection["previous_turn_id"], "t2");
    detection["evidence"][0]["cue"].clone()
}

#[tokio::test]
async fn a_request_that_an_earlier_turn_made_rejects_the_previous_one() {
    let app = TestApp::start().await;
    assert_eq!(cue(&app, ("ada", "c"), "c").await, "asked_before");
    let previous = app.get(&app.token("ada"), &path("c", "t2")).await;
    assert_eq!(previous.body["user_feedback_status"], "rejected");
    let correction = &previous.body["user_feedback"]["correction_type"];
    assert_eq!(correction, "rephrased");
}

#[tokio::test]
async fn turns_of_others_and_of_other_conversations_say_nothing() {
    let app = TestApp::start().await;
    assert_ne!(cue(&app, ("bob", "c"), "c").await, "asked_before");
    assert_ne!(cue(&app, ("ada", "d"), "e").await, "asked_before");
}
