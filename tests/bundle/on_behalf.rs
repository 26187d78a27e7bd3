//! A back end that acts for the users of its tenant, by `user_id`.

use chrono::{TimeDelta, Utc};
use hearback_local::names::Names;
use hearback_tests::app::TestApp;
use hearback_tests::stored::Stored;
use hearback_tests::turns::{PERIOD, SIGNALS, conversation_path, message, path, turn_body};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// Sends a request, with the user as `user_id` in its body or query if there is one. Returns the status and the body.
async fn ask(
    app: &TestApp,
    token: &str,
    (method, path, body): (Method, &str, Option<Value>),
    user: Option<&str>,
) -> (StatusCode, String) {
    let (mut path, mut body) = (path.to_owned(), body);
    match (user, &mut body) {
        (Some(user), Some(body)) => body["user_id"] = json!(user),
        (Some(user), None) => path += &format!("?user_id={user}"),
        (None, _) => {}
    }
    let mut request = app.request(method, &path).bearer_auth(token);
    if let Some(body) = &body {
        request = request.json(body);
    }
    let response = request.send().await.unwrap();
    (response.status(), response.text().await.unwrap())
}

/// A response without scores that decrease over time.
fn without_scores(response: &str) -> Value {
    let mut body = serde_json::from_str(response).unwrap_or_else(|_| json!(response));
    let targets = body.get_mut("targets").and_then(Value::as_array_mut);
    for target in targets.into_iter().flatten() {
        target["score"].take();
    }
    body
}

#[tokio::test]
async fn a_back_end_gets_the_response_of_the_user() {
    let app = TestApp::start().await;
    let (ada, eve) = (app.token("ada"), app.token("eve"));
    // The token also has the scope for reports over all users, which must not widen the view of one user.
    let back_end = app.token_of("back-end", "acme", "feedback:on-behalf feedback:report");
    let first = message(
        "m-1",
        "Which laptops are there?",
        "These are business laptops.",
    );
    app.put(&ada, &path("c", "t-1"), &first).await;
    let second = turn_body("No, I meant gaming laptops", "These are gaming laptops.");
    app.put(&ada, &path("c", "t-2"), &second).await;
    for (token, text) in [(&ada, "What I wanted."), (&eve, "Eve's own words.")] {
        let body = json!({"reaction": "ok", "text": text});
        let path = format!("{}/feedback", path("c", "t-2"));
        assert_eq!(app.post(token, &path, &body).await.status, StatusCode::OK);
    }
    let signal = json!({"message_id": "m-1", "signal": "inaccurate", "reason": "Not for games."});
    let response = app.post(&ada, SIGNALS, &signal).await;
    assert_eq!(response.status, StatusCode::CREATED);

    // The store is settled, so that responses no longer change.
    Stored::settled(&app.bundle.clients, &Names::default()).await;

    let hour = TimeDelta::hours(1);
    let turns_with_feedbacks = format!("{}/turns-with-feedbacks", conversation_path("c"));
    let refresh = format!("{}/timeline/refresh", conversation_path("c"));
    let context = format!("{}/feedback-context", path("c", "t-1"));
    let search = "/conversations/acme/order-service/strategies/search".to_owned();
    let infer = "/conversations/acme/order-service/feedback/infer".to_owned();
    let window =
        json!({"start": Utc::now() - hour, "end": Utc::now() + hour, "include_turns": true});
    let reads = [
        (Method::GET, path("c", "t-2"), None),
        (Method::GET, context, None),
        (Method::GET, SIGNALS.to_owned(), None),
        (
            Method::POST,
            turns_with_feedbacks,
            Some(json!({"include_turn_logs": true})),
        ),
        (
            Method::POST,
            refresh,
            Some(json!({"turn_ids": ["t-1", "t-2"], "cache": {"ttl_seconds": 0}})),
        ),
        (Method::POST, PERIOD.to_owned(), Some(window)),
        (
            Method::POST,
            search,
            Some(json!({"query": "Which laptops are there?"})),
        ),
        (
            Method::POST,
            infer,
            Some(json!({"message": "What is the weather in Paris?"})),
        ),
    ];
    for (method, path, body) in reads {
        let request = || (method.clone(), path.as_str(), body.clone());
        let from_user = ask(&app, &ada, request(), None).await;
        assert_eq!(from_user.0, StatusCode::OK, "{path}: {}", from_user.1);
        let from_back_end = ask(&app, &back_end, request(), Some("ada")).await;
        assert_eq!(
            from_back_end.0,
            StatusCode::OK,
            "{path}: {}",
            from_back_end.1
        );
        let (from_back_end, from_user) = (
            without_scores(&from_back_end.1),
            without_scores(&from_user.1),
        );
        assert_eq!(
            from_back_end, from_user,
            "{path} responds differently to a back end"
        );
        let (rejected, _) = ask(&app, &eve, request(), Some("ada")).await;
        assert_eq!(rejected, StatusCode::FORBIDDEN, "{path}");
        let (invalid, problem) = ask(&app, &back_end, request(), Some("")).await;
        assert_eq!(invalid, StatusCode::BAD_REQUEST, "{path}: {problem}");
        let problem: Value = serde_json::from_str(&problem).unwrap();
        assert_eq!(problem["errors"][0]["pointer"], "/user_id", "{path}");
    }
}

#[tokio::test]
async fn a_back_end_submits_and_withdraws_a_users_signal() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let back_end = app.token_of("back-end", "acme", "feedback:on-behalf");
    let turn = message(
        "m-1",
        "Which laptops are there?",
        "These are business laptops.",
    );
    app.put(&ada, &path("c", "t-1"), &turn).await;
    let signal = json!({"message_id": "m-1", "signal": "helpful", "user_id": "ada"});
    let sent = app.post(&back_end, SIGNALS, &signal).await;
    assert_eq!(sent.status, StatusCode::CREATED, "{:?}", sent.body);
    let listed = app.get(&ada, SIGNALS).await;
    assert_eq!(listed.body["feedback"][0]["id"], sent.body["id"]);
    let own = app.get(&back_end, SIGNALS).await;
    assert_eq!(
        own.body["feedback"],
        json!([]),
        "the signal belongs to the user"
    );

    let path = "/api/v1/feedback?message_id=m-1&signal=helpful&user_id=ada";
    let withdrawn = app.delete(&back_end, path).await;
    assert_eq!(withdrawn.status, StatusCode::NO_CONTENT);
    let listed = app.get(&ada, SIGNALS).await;
    assert_eq!(listed.body["feedback"], json!([]));
}
