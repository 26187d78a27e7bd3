//! `POST`, `GET` and `DELETE /api/v1/feedback`, over HTTP.

mod access;

use hearback_tests::app::{TestApp, TestResponse};
use hearback_tests::ledger::{everything, ledger};
use hearback_tests::turns::{SIGNALS, message, path};
use reqwest::StatusCode;
use serde_json::{Value, json};

pub const ALL: [&str; 6] = [
    "helpful",
    "not_helpful",
    "inaccurate",
    "unsafe",
    "edit",
    "regenerate",
];

/// A bundle in which ada has the turn `t` of the conversation `c`, whose answer is the message `m`.
pub async fn with_message() -> (TestApp, String) {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let mut turn = message("m", "a", "b");
    turn["trace_id"] = json!("trace-of-the-turn");
    turn["artifact_type"] = json!("answer");
    let response = app.put(&token, &path("c", "t"), &turn).await;
    assert_eq!(response.status, StatusCode::CREATED);
    (app, token)
}

pub async fn submit_signal(app: &TestApp, token: &str, body: Value) -> TestResponse {
    app.post(token, SIGNALS, &body).await
}

pub async fn withdraw(app: &TestApp, token: &str, signal: &str) -> TestResponse {
    let path = format!("{SIGNALS}?message_id=m&signal={signal}");
    app.delete(token, &path).await
}

pub async fn rows(app: &TestApp, token: &str, query: &str) -> Vec<Value> {
    let page = app.get(token, &format!("{SIGNALS}{query}")).await;
    assert_eq!(page.status, StatusCode::OK, "{:?}", page.body);
    page.body["feedback"].as_array().unwrap().clone()
}

pub fn signal(name: &str) -> Value {
    json!({"message_id": "m", "signal": name})
}

#[tokio::test]
async fn each_of_the_six_signals_is_accepted_listed_and_withdrawn() {
    let (app, token) = with_message().await;
    for name in ALL {
        let response = submit_signal(&app, &token, signal(name)).await;
        assert_eq!(response.status, StatusCode::CREATED, "{name}");
        let id = response.body["id"].as_str().unwrap();
        assert!(id.starts_with("fb_") && id.len() == 35, "{id}");
        assert_eq!(response.body, json!({"id": id}));
    }
    let listed = rows(&app, &token, "?message_id=m").await;
    let names: Vec<_> = listed.iter().map(|row| row["signal"].clone()).collect();
    let mut sorted = ALL;
    sorted.sort_unstable();
    assert_eq!(names, sorted);
    let row = &listed[1];
    assert_eq!(
        *row,
        json!({
            "id": row["id"], "message_id": "m", "workspace_id": "order-service", "chat_id": null,
            "trace_id": "trace-of-the-turn", "signal": "helpful", "reason": null,
            "exclude_from_training": false, "feedback_id": row["feedback_id"],
            "created_at": row["created_at"], "updated_at": row["updated_at"],
        })
    );
    for name in ALL {
        let withdrawn = withdraw(&app, &token, name).await;
        assert_eq!(
            (withdrawn.status, withdrawn.body),
            (StatusCode::NO_CONTENT, Value::Null)
        );
        let again = withdraw(&app, &token, name).await;
        assert_eq!(again.status, StatusCode::NO_CONTENT, "{name}");
    }
    assert_eq!(rows(&app, &token, "").await, Vec::<Value>::new());
}

#[tokio::test]
async fn an_exclusive_signal_withdraws_the_contrary_ones_of_its_user_only() {
    let (app, ada) = with_message().await;
    let eve = app.token("eve");
    let names = async |token: &str| {
        let rows = rows(&app, token, "?message_id=m").await;
        let mut names: Vec<_> = rows.iter().map(|row| row["signal"].clone()).collect();
        names.sort_by_key(Value::to_string);
        names
    };
    for name in ["not_helpful", "inaccurate", "unsafe", "edit"] {
        submit_signal(&app, &ada, signal(name)).await;
    }
    submit_signal(&app, &eve, signal("not_helpful")).await;
    let mut helpful = signal("helpful");
    helpful["exclusive"] = json!(true);
    for status in [StatusCode::CREATED, StatusCode::OK] {
        assert_eq!(
            submit_signal(&app, &ada, helpful.clone()).await.status,
            status
        );
        assert_eq!(names(&ada).await, ["edit", "helpful"]);
    }
    assert_eq!(names(&eve).await, ["not_helpful"]);
    // Two complaints are not contrary to each other.
    for name in ["inaccurate", "not_helpful"] {
        let mut complaint = signal(name);
        complaint["exclusive"] = json!(true);
        submit_signal(&app, &ada, complaint).await;
    }
    assert_eq!(names(&ada).await, ["edit", "inaccurate", "not_helpful"]);
}

#[tokio::test]
async fn a_repeat_replaces_in_place_and_keeps_its_id() {
    let (app, token) = with_message().await;
    let first = submit_signal(&app, &token, signal("not_helpful")).await;
    let mut again = signal("not_helpful");
    again["reason"] = json!("Wrong tool");
    let second = submit_signal(&app, &token, again).await;
    assert_eq!(second.status, StatusCode::OK);
    assert_eq!(second.body, first.body);
    let listed = rows(&app, &token, "").await;
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["reason"], "Wrong tool");
    // Another user's signal is separate.
    let eve = submit_signal(&app, &app.token("eve"), signal("not_helpful")).await;
    assert_eq!(eve.status, StatusCode::CREATED);
    assert_ne!(eve.body["id"], first.body["id"]);
}

#[tokio::test]
async fn a_repeat_without_a_reason_keeps_the_reason_and_null_erases_it() {
    let (app, token) = with_message().await;
    let reason = || async { rows(&app, &token, "").await[0]["reason"].clone() };
    let with = json!({"message_id": "m", "signal": "inaccurate", "reason": "It is 1969"});
    submit_signal(&app, &token, with).await;
    submit_signal(&app, &token, signal("inaccurate")).await;
    assert_eq!(reason().await, "It is 1969");
    let without = json!({"message_id": "m", "signal": "inaccurate", "reason": null});
    let erased = submit_signal(&app, &token, without).await;
    assert_eq!(erased.status, StatusCode::OK);
    assert_eq!(reason().await, Value::Null);
    // A withdrawn reason does not return.
    let with = json!({"message_id": "m", "signal": "inaccurate", "reason": "It is 1969"});
    submit_signal(&app, &token, with).await;
    withdraw(&app, &token, "inaccurate").await;
    let created_again = submit_signal(&app, &token, signal("inaccurate")).await;
    assert_eq!(created_again.status, StatusCode::CREATED);
    assert_eq!(reason().await, Value::Null);
}

#[tokio::test]
async fn trace_and_chat_are_kept_until_a_request_changes_them() {
    let (app, token) = with_message().await;
    let mut body = signal("helpful");
    submit_signal(&app, &token, body.clone()).await;
    let row = || async { rows(&app, &token, "").await.remove(0) };
    assert_eq!(row().await["trace_id"], "trace-of-the-turn");
    body["trace_id"] = json!("4f3a");
    body["chat_id"] = json!("chat_xyz");
    assert_eq!(
        submit_signal(&app, &token, body).await.status,
        StatusCode::OK
    );
    let named = row().await;
    assert_eq!(
        (&named["trace_id"], &named["chat_id"]),
        (&json!("4f3a"), &json!("chat_xyz"))
    );
    let mut nulls = signal("helpful");
    nulls["trace_id"] = Value::Null;
    nulls["chat_id"] = Value::Null;
    submit_signal(&app, &token, nulls).await;
    let mut kept = row().await;
    kept["updated_at"] = named["updated_at"].clone();
    assert_eq!(kept, named);
    // Setting them is not a new act, so nothing new is learned.
    assert_eq!(ledger(&app, &token, 1).await.len(), 1);
}

#[tokio::test]
async fn limits_count_characters_and_a_body_has_at_most_16_kib() {
    let (app, token) = with_message().await;
    let long = |name: &str, length: usize| {
        let mut body = signal("not_helpful");
        body[name] = json!("é".repeat(length));
        body
    };
    for (name, most) in [("reason", 4096), ("chat_id", 256), ("trace_id", 256)] {
        assert!(
            submit_signal(&app, &token, long(name, most))
                .await
                .status
                .is_success(),
            "{name}"
        );
        let rejected = submit_signal(&app, &token, long(name, most + 1)).await;
        assert_eq!(rejected.status, StatusCode::BAD_REQUEST, "{name}");
        let pointer = format!("/{name}");
        assert_eq!(rejected.body["errors"][0]["pointer"], pointer);
    }
    // An id of the maximum length is unknown; a longer one is invalid.
    let unknown = submit_signal(&app, &token, long("message_id", 256)).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    let rejected = submit_signal(&app, &token, long("message_id", 257)).await;
    assert_eq!(rejected.status, StatusCode::BAD_REQUEST);
    let rejected = submit_signal(&app, &token, long("reason", 8192)).await;
    assert_eq!(rejected.status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn every_invalid_member_is_named_and_nothing_is_written() {
    let (app, token) = with_message().await;
    let before = everything(&app).await;
    let broken =
        json!({"message_id": "", "signal": "useful", "reason": 1, "user_id": 7, "mood": 1});
    let response = submit_signal(&app, &token, broken).await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    let pointers = |response: &TestResponse| -> Vec<String> {
        let errors = response.body["errors"].as_array().unwrap().iter();
        let mut pointers: Vec<_> = errors
            .map(|error| error["pointer"].as_str().unwrap().to_owned())
            .collect();
        pointers.sort_unstable();
        pointers
    };
    assert_eq!(
        pointers(&response),
        ["/message_id", "/mood", "/reason", "/signal", "/user_id"]
    );
    let response = submit_signal(&app, &token, json!({})).await;
    assert_eq!(pointers(&response), ["/message_id", "/signal"]);
    let response = app
        .delete(&token, &format!("{SIGNALS}?signal=useful"))
        .await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    assert_eq!(pointers(&response), ["/message_id", "/signal"]);
    let response = app
        .get(&token, &format!("{SIGNALS}?signal=useful&limit=501"))
        .await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    assert_eq!(pointers(&response), ["/limit", "/signal"]);
    assert_eq!(everything(&app).await, before);
}

#[tokio::test]
async fn the_pages_list_every_signal_and_a_cursor_is_valid_for_its_own_query_only() {
    let (app, token) = with_message().await;
    for number in 0..7 {
        let name = format!("m{number}");
        let turn = path("c", &format!("t{number}"));
        app.put(&token, &turn, &message(&name, "a", "b")).await;
        for signal in ["helpful", "edit"] {
            let body = json!({"message_id": name, "signal": signal});
            assert_eq!(
                submit_signal(&app, &token, body).await.status,
                StatusCode::CREATED
            );
        }
    }
    let walk = |filter: &'static str| {
        let (app, token) = (&app, &token);
        async move {
            let mut seen = Vec::new();
            let mut cursor = String::new();
            loop {
                let query = format!("{SIGNALS}?limit=3{filter}{cursor}");
                let page = app.get(token, &query).await;
                assert_eq!(page.status, StatusCode::OK);
                let rows = page.body["feedback"].as_array().unwrap();
                assert!(rows.len() <= 3);
                let name = |row: &Value| format!("{}/{}", row["message_id"], row["signal"]);
                seen.extend(rows.iter().map(name));
                match page.body["next_cursor"].as_str() {
                    Some(next) => cursor = format!("&cursor={next}"),
                    None => return seen,
                }
            }
        }
    };
    let all = walk("").await;
    assert_eq!(all.len(), 14);
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), 14);
    let edits = walk("&signal=edit").await;
    assert_eq!(edits.len(), 7);
    assert!(edits.iter().all(|name| name.ends_with("\"edit\"")));

    let page = app.get(&token, &format!("{SIGNALS}?limit=3")).await;
    let cursor = page.body["next_cursor"].as_str().unwrap();
    let eve = app.token("eve");
    for (token, query) in [
        (&token, format!("?signal=edit&cursor={cursor}")),
        (&token, format!("?message_id=m&cursor={cursor}")),
        (&token, format!("?cursor=x{cursor}")),
        (&eve, format!("?cursor={cursor}")),
    ] {
        let rejected = app.get(token, &format!("{SIGNALS}{query}")).await;
        assert_eq!(rejected.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(rejected.body["errors"][0]["pointer"], "/cursor");
    }
}
