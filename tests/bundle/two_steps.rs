//! Turns that are registered in two steps: opened with the user's message, completed with the answer.

use futures::future::join_all;
use hearback_tests::app::{TestApp, TestResponse, eventually};
use hearback_tests::turns::{SIGNALS, conversation_path, path, turn_body};
use reqwest::StatusCode;
use serde_json::{Value, json};

/// The body that opens a turn, this many minutes after ten.
fn opening(minute: u32, text: &str) -> Value {
    json!({"user": {"text": text}, "ts": format!("2026-01-04T10:{minute:02}:00Z")})
}

/// The same body with an answer.
fn completion(minute: u32, text: &str, answer: &str) -> Value {
    let mut body = opening(minute, text);
    body["assistant"] = json!({"text": answer});
    body
}

const QUESTION: &str = "laptops under $1000";
const REJECTION: &str = "No, I meant gaming laptops not business laptops";

async fn one_turn(app: &TestApp, token: &str, turn: &str) -> Value {
    let response = app.get(token, &path("c", turn)).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    response.body
}

fn assert_conflict(response: &TestResponse, differs: &str) {
    assert_eq!(response.status, StatusCode::CONFLICT, "{}", response.body);
    assert_eq!(response.body["error"], "turn_conflict");
    let detail = response.body["detail"].as_str().unwrap();
    assert!(detail.contains(differs), "{detail}");
}

#[tokio::test]
async fn opening_a_turn_returns_the_detection_before_the_answer() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let first = completion(0, QUESTION, "Here are three business laptops.");
    let complete = app.put(&ada, &path("c", "t1"), &first).await;
    assert_eq!(complete.status, StatusCode::CREATED);
    assert_eq!(complete.body["status"], "complete");
    // Opening the turn returns the detection about the turn before.
    let open = opening(1, REJECTION);
    let opened = app.put(&ada, &path("c", "t2"), &open).await;
    assert_eq!(opened.status, StatusCode::CREATED, "{}", opened.body);
    assert_eq!(opened.body["status"], "open");
    assert_eq!(opened.body["detection"]["feedback_type"], "rejected");
    let before = one_turn(&app, &ada, "t1").await;
    assert_eq!(before["rejection_detected_in"], "t2");
    // An open turn has no answer.
    let read = one_turn(&app, &ada, "t2").await;
    assert_eq!(read["status"], "open");
    assert_eq!(read["user"], open["user"]);
    assert_eq!(read.get("assistant"), None);
    assert_eq!(read["user_feedback_status"], "neutral");
    let context = format!("{}/feedback-context", path("c", "t2"));
    assert_eq!(app.get(&ada, &context).await.status, StatusCode::OK);
    let timeline = format!("{}/timeline/refresh", conversation_path("c"));
    let request = json!({"turn_ids": ["t1", "t2"], "cache": {"ttl_seconds": 0}});
    let refreshed = app.post(&ada, &timeline, &request).await;
    assert_eq!(refreshed.body["blocks"].as_array().unwrap().len(), 1);
    // The answer completes the turn. A repeat of either body changes nothing.
    let body = completion(1, REJECTION, "These are gaming laptops.");
    let completed = app.put(&ada, &path("c", "t2"), &body).await;
    assert_eq!(completed.status, StatusCode::OK, "{}", completed.body);
    assert_eq!(completed.body["status"], "complete");
    assert_eq!(completed.body["detection"], opened.body["detection"]);
    for repeated in [&open, &body] {
        let again = app.put(&ada, &path("c", "t2"), repeated).await;
        assert_eq!(
            (again.status, &again.body),
            (StatusCode::OK, &completed.body)
        );
    }
    let read = one_turn(&app, &ada, "t2").await;
    assert_eq!(read["status"], "complete");
    assert_eq!(read["assistant"], body["assistant"]);
    assert_eq!(
        one_turn(&app, &ada, "t1").await["user_feedback"],
        before["user_feedback"]
    );
    // The next turn is about this answer.
    let thanks = app
        .put(&ada, &path("c", "t3"), &opening(2, "Thanks!"))
        .await;
    assert_eq!(thanks.body["detection"]["previous_turn_id"], "t2");
}

#[tokio::test]
async fn a_different_body_is_rejected_and_the_response_names_the_difference() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let at = path("c", "t");
    let mut open = opening(0, "a");
    open["trace_id"] = json!("trace-1");
    app.put(&ada, &at, &open).await;
    assert_conflict(&app.put(&ada, &at, &opening(0, "other")).await, "user");
    let mut other = completion(0, "a", "b");
    other["trace_id"] = json!("trace-2");
    assert_conflict(&app.put(&ada, &at, &other).await, "trace_id");
    assert_conflict(&app.put(&ada, &at, &completion(1, "a", "b")).await, "ts");
    assert_eq!(one_turn(&app, &ada, "t").await["status"], "open");
    // A completion adds members that the first body left out.
    let mut body = completion(0, "a", "b");
    body["agent_id"] = json!("router");
    body["turn_log"] = json!({"text": "log"});
    assert_eq!(app.put(&ada, &at, &body).await.status, StatusCode::OK);
    let read = one_turn(&app, &ada, "t").await;
    assert_eq!(
        (&read["trace_id"], &read["agent_id"], &read["turn_log"]),
        (&json!("trace-1"), &json!("router"), &json!({"text": "log"}))
    );
    let mut other = body.clone();
    other["assistant"]["text"] = json!("c");
    assert_conflict(&app.put(&ada, &at, &other).await, "assistant");
    // A turn registered in one step conflicts in the same way.
    let one = path("c", "one");
    app.put(&ada, &one, &completion(3, "a", "b")).await;
    assert_conflict(
        &app.put(&ada, &one, &completion(3, "a", "c")).await,
        "assistant",
    );
    // The opening body may arrive after the completion.
    let late = app.put(&ada, &one, &opening(3, "a")).await;
    assert_eq!(
        (late.status, &late.body["status"]),
        (StatusCode::OK, &json!("complete"))
    );
}

#[tokio::test]
async fn the_same_body_of_another_user_is_rejected_as_a_turn_of_another_user() {
    let app = TestApp::start().await;
    let (ada, eve) = (app.token("ada"), app.token("eve"));
    let at = path("c", "t");
    app.put(&ada, &at, &completion(0, "a", "b")).await;
    assert_conflict(
        &app.put(&eve, &at, &completion(0, "a", "b")).await,
        "another user",
    );
    // A back end may repeat it for the turn's user.
    let service = app.token_of("service", "acme", "feedback:on-behalf");
    let mut body = completion(0, "a", "b");
    body["user_id"] = json!("ada");
    assert_eq!(app.put(&service, &at, &body).await.status, StatusCode::OK);
}

#[tokio::test]
async fn an_open_turn_has_no_follow_ups_and_is_not_found_by_searches() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    app.put(&ada, &path("c", "t1"), &opening(0, QUESTION)).await;
    let next = app
        .put(&ada, &path("c", "t2"), &opening(1, REJECTION))
        .await;
    assert_eq!(next.body["detection"], Value::Null);
    let read = one_turn(&app, &ada, "t1").await;
    assert_eq!(
        (&read["user_feedback_status"], &read["user_feedback"]),
        (&json!("neutral"), &Value::Null)
    );
    let search = "/conversations/acme/order-service/strategies/search";
    let query = json!({"query": QUESTION});
    let found = || app.post(&ada, search, &query);
    assert_eq!(found().await.body["strategies"], json!([]));
    let infer = "/conversations/acme/order-service/feedback/infer";
    let wrong = json!({"message": "The laptops under $1000 are wrong, I meant others"});
    let inferred = app.post(&ada, infer, &wrong).await.body;
    assert_eq!(
        (&inferred["targets"], &inferred["rn"]),
        (&json!([]), &Value::Null)
    );
    // Once completed it is found, also by the words of its answer.
    let body = completion(0, QUESTION, "Here are three Thinkpads.");
    app.put(&ada, &path("c", "t1"), &body).await;
    let similarity = |found: &TestResponse| found.body["strategies"][0]["similarity"].as_f64();
    let before = eventually(|| async { similarity(&found().await) }).await;
    let thinkpads = json!({"query": "Thinkpads"});
    let by_answer = app.post(&ada, search, &thinkpads).await;
    assert!(
        similarity(&by_answer).unwrap() > 0.2 && before > 0.2,
        "{}",
        by_answer.body
    );
}

#[tokio::test]
async fn feedback_on_an_open_turn_survives_its_completion() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    app.put(&ada, &path("c", "t"), &opening(0, "a")).await;
    let feedback = format!("{}/feedback", path("c", "t"));
    let reaction = json!({"reaction": "not_ok", "text": "too slow", "mirror": true});
    assert_eq!(
        app.post(&ada, &feedback, &reaction).await.status,
        StatusCode::OK
    );
    eventually(|| async {
        let read = one_turn(&app, &ada, "t").await;
        let mirrored = read["feedbacks"].as_array()?.len() == 1;
        (mirrored && read["user_feedback_status"] == "rejected").then_some(())
    })
    .await;
    let mut body = completion(0, "a", "b");
    body["assistant"]["message_id"] = json!("m");
    body["turn_log"] = json!({"text": "log", "entries": [{"type": "tool"}]});
    assert_eq!(
        app.put(&ada, &path("c", "t"), &body).await.status,
        StatusCode::OK
    );
    let read = one_turn(&app, &ada, "t").await;
    assert_eq!(read["user_feedback_status"], "rejected");
    assert_eq!(read["feedbacks"].as_array().unwrap().len(), 1);
    assert_eq!(read["turn_log"]["entries"].as_array().unwrap().len(), 2);
    let text = read["turn_log"]["text"].as_str().unwrap();
    assert!(
        text.starts_with("log\n[feedback user") && text.ends_with("too slow"),
        "{text}"
    );
    // The message is known after the completion.
    let helpful = json!({"message_id": "m", "signal": "helpful"});
    assert_eq!(
        app.post(&ada, SIGNALS, &helpful).await.status,
        StatusCode::CREATED
    );
}

#[tokio::test]
async fn one_of_racing_completions_wins_and_only_its_log_remains() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let at = path("c", "t");
    app.put(&ada, &at, &opening(0, "a")).await;
    let bodies: Vec<_> = (0..12)
        .map(|n| {
            let mut body = completion(0, "a", &format!("answer {}", n % 4));
            body["assistant"]["message_id"] = json!(format!("m-{}", n % 4));
            body
        })
        .collect();
    let responses = join_all(bodies.iter().map(|body| app.put(&ada, &at, body))).await;
    let read = one_turn(&app, &ada, "t").await;
    for (response, body) in responses.iter().zip(&bodies) {
        let expected = if body["assistant"] == read["assistant"] {
            StatusCode::OK
        } else {
            StatusCode::CONFLICT
        };
        assert_eq!(response.status, expected, "{}", response.body);
    }
    // The other message ids are free for other turns.
    for n in 0..4 {
        let name = json!(format!("m-{n}"));
        let mut body = turn_body("x", "y");
        body["assistant"]["message_id"] = name.clone();
        let response = app
            .put(&ada, &path("c", &format!("other-{n}")), &body)
            .await;
        let is_taken = read["assistant"]["message_id"] == name;
        assert_eq!(
            response.status == StatusCode::CONFLICT,
            is_taken,
            "{}",
            response.body
        );
    }
}

#[tokio::test]
async fn the_language_of_a_turn_is_validated_stored_and_used() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let mut first = completion(0, "Welche Laptops gibt es?", "Hier sind drei.");
    first["language"] = json!("pt_BR");
    let rejected = app.put(&ada, &path("c", "t1"), &first).await;
    assert_eq!(rejected.status, StatusCode::BAD_REQUEST);
    assert_eq!(rejected.body["errors"][0]["pointer"], "/language");
    first["language"] = json!("de-AT");
    app.put(&ada, &path("c", "t1"), &first).await;
    assert_eq!(one_turn(&app, &ada, "t1").await["language"], "de-AT");
    let mut next = opening(1, "Das ist falsch.");
    next["language"] = json!("ja");
    let detected = |response: &TestResponse| response.body["detection"]["feedback_type"].clone();
    // As Japanese the message has no feedback; as German it rejects.
    let japanese = app.put(&ada, &path("c", "t2"), &next).await;
    let alone = json!({"message": "Das ist falsch.", "language": "ja", "prev_query": "Welche Laptops gibt es?",
        "prev_response": "Hier sind drei."});
    let expected = app.post(&ada, "/v1/feedback/detect", &alone).await;
    assert_eq!(detected(&japanese), expected.body["feedback_type"]);
    assert_eq!(
        japanese.body["detection"]["evidence"],
        expected.body["evidence"]
    );
}

#[tokio::test]
async fn an_erasure_removes_open_turns() {
    let app = TestApp::start().await;
    let ada = app.token_of("ada", "acme", "feedback:admin");
    app.put(&ada, &path("c", "t"), &opening(0, "a secret"))
        .await;
    let erase = app.delete(&ada, "/v1/users/ada/data").await;
    assert_eq!(erase.status, StatusCode::ACCEPTED, "{}", erase.body);
    let rejected = app
        .put(&ada, &path("c", "t"), &completion(0, "a secret", "b"))
        .await;
    assert_eq!(rejected.body["error"], "erasure_in_progress");
    let done = eventually(|| async {
        let body = app.get(&ada, "/v1/users/ada/data/erasure").await.body;
        (body["status"] == "done").then_some(body)
    })
    .await;
    assert_eq!(done["removed"]["turns"], 1, "{done}");
    assert_eq!(
        app.get(&ada, &path("c", "t")).await.status,
        StatusCode::NOT_FOUND
    );
}
