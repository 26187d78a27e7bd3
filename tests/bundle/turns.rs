//! `PUT` and `GET /conversations/{tenant}/{project}/{conversation_id}/turns/{turn_id}`, over HTTP.

use futures::future::join_all;
use hearback_tests::app::TestApp;
use hearback_tests::turns::{path, said};
use reqwest::StatusCode;
use serde_json::json;

#[tokio::test]
async fn a_turn_is_registered_once_and_read_back() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let body = json!({
        "ts": "2025-11-06T17:00:00+02:00",
        "user": {"text": "How?", "lang": "en"},
        "assistant": {"text": "So.", "message_id": "msg-1"},
        "trace_id": "trace-1", "track_id": "A", "quality_score": 0.8,
        "embedding": [0.1, -0.5, 0.25],
        "turn_log": {"entries": [{"type": "tool"}], "text": "log"}
    });
    let path = path("c1", "t1");
    let answer = app.put(&token, &path, &body).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    let registered = json!({
        "conversation_id": "c1", "turn_id": "t1", "user_id": "ada", "status": "complete",
        "ts": "2025-11-06T15:00:00Z", "tags": ["artifact:turn.log", "turn:t1", "track:A"], "detection": null
    });
    assert_eq!(answer.body, registered);

    let again = app.put(&token, &path, &body).await;
    assert_eq!((again.status, again.body), (StatusCode::OK, registered));

    let mut other = body.clone();
    other["assistant"]["text"] = json!("Otherwise.");
    let refused = app.put(&token, &path, &other).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert_eq!(refused.body["error"], "turn_conflict");

    let read = app.get(&token, &path).await;
    assert_eq!(read.status, StatusCode::OK);
    assert_eq!(read.body["user"], body["user"]);
    assert_eq!(read.body["assistant"], body["assistant"]);
    assert_eq!(read.body["turn_log"], body["turn_log"]);
    assert_eq!(read.body["trace_id"], "trace-1");
    assert_eq!(read.body["reactions"], json!([]));
}

#[tokio::test]
async fn a_turn_without_a_time_may_be_sent_again_later() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let first = app.put(&token, &path("c", "t"), &said("a", "b")).await;
    let second = app.put(&token, &path("c", "t"), &said("a", "b")).await;
    assert_eq!(second.status, StatusCode::OK);
    assert_eq!(second.body, first.body);
}

#[tokio::test]
async fn of_racing_registrations_one_wins_and_leaves_its_own_log() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let bodies: Vec<_> = (0..12)
        .map(|n| {
            let mut body = said("question", &format!("answer {}", n % 4));
            body["assistant"]["message_id"] = json!(format!("msg-{}", n % 4));
            body
        })
        .collect();
    let path = path("c", "t");
    let answers = join_all(bodies.iter().map(|body| app.put(&token, &path, body))).await;
    let created: Vec<_> = answers
        .iter()
        .zip(&bodies)
        .filter(|(answer, _)| answer.status == StatusCode::CREATED)
        .collect();
    let [(_, winner)] = created.as_slice() else {
        panic!("{answers:?}")
    };
    for (answer, body) in answers.iter().zip(&bodies) {
        let expected = if body == *winner {
            answer.status == StatusCode::CREATED || answer.status == StatusCode::OK
        } else {
            answer.status == StatusCode::CONFLICT
        };
        assert!(expected, "{answer:?}");
    }
    let read = app.get(&token, &path).await.body;
    assert_eq!(read["assistant"], winner["assistant"]);
    // Nobody else's message was kept by the race: each is free for a turn of its own.
    for n in 0..4 {
        let name = format!("msg-{n}");
        if winner["assistant"]["message_id"] == json!(name) {
            continue;
        }
        let mut body = said("x", "y");
        body["assistant"]["message_id"] = json!(name);
        let other = hearback_tests::turns::path("c", &format!("other-{n}"));
        let answer = app.put(&token, &other, &body).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{:?}", answer.body);
    }
}

#[tokio::test]
async fn a_message_is_of_one_turn() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let mut body = said("a", "b");
    body["assistant"]["message_id"] = json!("msg");
    let first = app.put(&token, &path("c", "t1"), &body).await;
    assert_eq!(first.status, StatusCode::CREATED);
    let second = app.put(&token, &path("c", "t2"), &body).await;
    assert_eq!(second.status, StatusCode::CONFLICT);
    assert_eq!(second.body["error"], "message_conflict");
    assert_eq!(
        app.get(&token, &path("c", "t2")).await.status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn what_is_somebody_elses_is_not_found_and_what_the_token_does_not_hold_is_forbidden() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    app.put(&ada, &path("c", "t"), &said("a", "b")).await;
    let eve = app.token("eve");
    let unknown = app.get(&ada, &path("c", "unknown")).await;
    let foreign = app.get(&eve, &path("c", "t")).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    assert_eq!(foreign.status, unknown.status);
    assert_eq!(foreign.body["error"], unknown.body["error"]);
    let report = app.token_of("eve", "acme", "feedback:report");
    assert_eq!(
        app.get(&report, &path("c", "t")).await.status,
        StatusCode::OK
    );

    for path in [
        "/conversations/acme/other-project/c/turns/t",
        "/conversations/other/order-service/c/turns/t",
    ] {
        let read = app.get(&ada, path).await;
        assert_eq!(read.status, StatusCode::FORBIDDEN, "{path}");
        let write = app.put(&ada, path, &said("a", "b")).await;
        assert_eq!(write.status, StatusCode::FORBIDDEN, "{path}");
    }
}

#[tokio::test]
async fn a_body_of_four_mebibytes_is_taken_and_a_larger_one_is_not() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let room = 4 * 1024 * 1024 - said("a", "").to_string().len();
    let taken = said("a", &"x".repeat(room));
    assert_eq!(taken.to_string().len(), 4 * 1024 * 1024);
    let answer = app.put(&token, &path("c", "t"), &taken).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    let refused = said("a", &"x".repeat(room + 1));
    let answer = app.put(&token, &path("c", "u"), &refused).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
}
