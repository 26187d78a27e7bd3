//! `PUT` and `GET /conversations/{tenant}/{project}/{conversation_id}/turns/{turn_id}`, over HTTP.

use futures::future::join_all;
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::turns::{conversation_path, path, turn_body};
use reqwest::StatusCode;
use serde_json::{Value, json};

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
    let response = app.put(&token, &path, &body).await;
    assert_eq!(response.status, StatusCode::CREATED);
    let registered = json!({
        "conversation_id": "c1", "turn_id": "t1", "user_id": "ada", "status": "complete",
        "ts": "2025-11-06T15:00:00Z", "tags": ["artifact:turn.log", "turn:t1", "track:A"], "detection": null
    });
    assert_eq!(response.body, registered);

    let again = app.put(&token, &path, &body).await;
    assert_eq!((again.status, again.body), (StatusCode::OK, registered));

    let mut other = body.clone();
    other["assistant"]["text"] = json!("Otherwise.");
    let rejected = app.put(&token, &path, &other).await;
    assert_eq!(rejected.status, StatusCode::CONFLICT);
    assert_eq!(rejected.body["error"], "turn_conflict");

    let read = app.get(&token, &path).await;
    assert_eq!(read.status, StatusCode::OK);
    assert_eq!(read.body["user"], body["user"]);
    assert_eq!(read.body["assistant"], body["assistant"]);
    assert_eq!(read.body["turn_log"], body["turn_log"]);
    assert_eq!(read.body["trace_id"], "trace-1");
    assert_eq!(read.body["reactions"], json!([]));
}

#[tokio::test]
async fn a_turn_without_a_time_may_be_repeated_later() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let first = app.put(&token, &path("c", "t"), &turn_body("a", "b")).await;
    let second = app.put(&token, &path("c", "t"), &turn_body("a", "b")).await;
    assert_eq!(second.status, StatusCode::OK);
    assert_eq!(second.body, first.body);
}

#[tokio::test]
async fn one_of_racing_registrations_wins_and_only_its_log_remains() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let bodies: Vec<_> = (0..12)
        .map(|n| {
            let mut body = turn_body("question", &format!("answer {}", n % 4));
            body["assistant"]["message_id"] = json!(format!("msg-{}", n % 4));
            body
        })
        .collect();
    let path = path("c", "t");
    let responses = join_all(bodies.iter().map(|body| app.put(&token, &path, body))).await;
    let created: Vec<_> = responses
        .iter()
        .zip(&bodies)
        .filter(|(response, _)| response.status == StatusCode::CREATED)
        .collect();
    let [(_, winner)] = created.as_slice() else {
        panic!("{responses:?}")
    };
    for (response, body) in responses.iter().zip(&bodies) {
        let expected = if body == *winner {
            response.status == StatusCode::CREATED || response.status == StatusCode::OK
        } else {
            response.status == StatusCode::CONFLICT
        };
        assert!(expected, "{response:?}");
    }
    let read = app.get(&token, &path).await.body;
    assert_eq!(read["assistant"], winner["assistant"]);
    // The losing registrations claimed no message id: each is free for another turn.
    for n in 0..4 {
        let name = format!("msg-{n}");
        if winner["assistant"]["message_id"] == json!(name) {
            continue;
        }
        let mut body = turn_body("x", "y");
        body["assistant"]["message_id"] = json!(name);
        let other = hearback_tests::turns::path("c", &format!("other-{n}"));
        let response = app.put(&token, &other, &body).await;
        assert_eq!(response.status, StatusCode::CREATED, "{:?}", response.body);
    }
}

#[tokio::test]
async fn a_message_id_belongs_to_one_turn() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let mut body = turn_body("a", "b");
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
async fn a_turn_of_another_user_is_not_found_and_another_project_is_forbidden() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    app.put(&ada, &path("c", "t"), &turn_body("a", "b")).await;
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
        let write = app.put(&ada, path, &turn_body("a", "b")).await;
        assert_eq!(write.status, StatusCode::FORBIDDEN, "{path}");
    }
}

#[tokio::test]
async fn a_body_of_four_mebibytes_is_accepted_and_a_larger_one_rejected() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let room = 4 * 1024 * 1024 - turn_body("a", "").to_string().len();
    let accepted = turn_body("a", &"x".repeat(room));
    assert_eq!(accepted.to_string().len(), 4 * 1024 * 1024);
    let response = app.put(&token, &path("c", "t"), &accepted).await;
    assert_eq!(response.status, StatusCode::CREATED);
    let rejected = turn_body("a", &"x".repeat(room + 1));
    let response = app.put(&token, &path("c", "u"), &rejected).await;
    assert_eq!(response.status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn the_turns_of_a_conversation_are_listed_with_and_without_feedback() {
    let app = TestApp::start().await;
    let (ada, eve) = (app.token("ada"), app.token("eve"));
    let list = format!("{}/turns", conversation_path("c"));
    let analyst = app.token_of("analyst", "acme", "feedback:report");
    let empty = app.get(&analyst, &list).await;
    assert_eq!(empty.body, json!({"turns": [], "next_cursor": null}));
    for (user, turn) in [(&ada, "t3"), (&ada, "t1"), (&eve, "t2")] {
        let body = turn_body("laptops under $1000", "These are for business.");
        assert_eq!(
            app.put(user, &path("c", turn), &body).await.status,
            StatusCode::CREATED
        );
    }
    let open = json!({"user": {"text": "And for games?"}});
    app.put(&ada, &path("c", "t4"), &open).await;
    app.put(&ada, &path("d", "t5"), &open).await;
    let react = format!("{}/feedback", path("c", "t1"));
    app.post(&ada, &react, &json!({"reaction": "not_ok"})).await;
    let ids = async |token: &str, query: &str| {
        let page = app.get(token, &format!("{list}{query}")).await.body;
        let turns = page["turns"].as_array().unwrap().iter();
        let ids = turns.map(|turn| turn["turn_id"].as_str().unwrap().to_owned());
        (ids.collect::<Vec<_>>(), page["next_cursor"].clone())
    };
    let all = (vec!["t1", "t2", "t3", "t4"], Value::Null);
    let seen = ids(&analyst, "").await;
    assert_eq!((seen.0.iter().map(String::as_str).collect(), seen.1), all);
    assert_eq!(ids(&ada, "").await.0, ["t1", "t3", "t4"]);
    assert_eq!(ids(&eve, "").await.0, ["t2"]);
    let back_end = app.token_of("back-end", "acme", "feedback:on-behalf");
    assert_eq!(ids(&back_end, "").await.0, Vec::<String>::new());
    assert_eq!(ids(&back_end, "?user_id=eve").await.0, ["t2"]);
    // Turn by turn.
    let (mut found, mut query) = (Vec::new(), "?limit=1".to_owned());
    loop {
        let (page, next) = ids(&ada, &query).await;
        found.extend(page);
        let Some(next) = next.as_str() else { break };
        query = format!("?limit=1&cursor={next}");
    }
    assert_eq!(found, ["t1", "t3", "t4"]);
    eventually(|| async {
        let page = app.get(&ada, &list).await.body;
        (page["turns"][0]["user_feedback_status"] == "rejected").then_some(())
    })
    .await;
}
