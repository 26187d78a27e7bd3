//! The retention of turns and of everything that belongs to them.

use std::collections::BTreeMap;

use axum::Router;
use axum::http::{Method, StatusCode};
use chrono::{DateTime, TimeDelta, Utc};
use hearback_domain::events::retention::Retention;
use hearback_lambda::App;
use hearback_lambda::clock::Clock;
use hearback_lambda::http::service;
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::engine::Engine;
use hearback_tests::events::acceptance;
use hearback_tests::faults::Faults;
use hearback_tests::function_set::{FunctionSet, TIME};
use hearback_tests::functions::call;
use hearback_tests::queue;
use hearback_tests::rows::rows;
use hearback_tests::turns::{
    BY_STATUS, PERIOD, SIGNALS, conversation_path, message, path, turn_body,
};
use hearback_turns::Registry;
use serde_json::{Value, json};

const DAYS: i64 = 30;

fn registered() -> DateTime<Utc> {
    DateTime::from_timestamp(TIME, 0).unwrap()
}

/// Ten days later.
fn later() -> DateTime<Utc> {
    registered() + TimeDelta::days(10)
}

/// The last second of the retention.
fn last() -> DateTime<Utc> {
    registered() + TimeDelta::days(DAYS) - TimeDelta::seconds(1)
}

/// The time at which the turn has expired, although the table has not deleted it yet.
fn expired() -> DateTime<Utc> {
    last() + TimeDelta::seconds(1)
}

fn functions_with(engine: &Engine, clock: fn() -> DateTime<Utc>, days: u16) -> Router {
    let mut app = engine.with_blobs(engine.store.clone());
    app.app = App {
        clock: Clock::of(clock),
        ..app.app
    };
    let registry = Registry::from(app).keeping(Retention::days(days));
    service(hearback_local::gateway::functions(
        registry,
        engine.erasures(),
    ))
}

fn functions(engine: &Engine, clock: fn() -> DateTime<Utc>) -> Router {
    functions_with(engine, clock, DAYS.try_into().unwrap())
}

async fn ask(functions: &Router, request: (Method, &str), body: &Value) -> (StatusCode, Value) {
    call(
        functions,
        ("order-service", "feedback:report"),
        request,
        body,
    )
    .await
}

/// The expiry of each kind of row, by the prefix of the sort key.
async fn expiries(engine: &Engine) -> BTreeMap<String, Option<i64>> {
    let rows = rows(&engine.clients.dynamodb, &engine.names.table()).await;
    let expiry = |row: &hearback_tests::rows::Row| -> Option<i64> {
        row.get("expires_at")?.as_n().ok()?.parse().ok()
    };
    rows.iter()
        .map(|row| {
            let (pk, sk) = (row["PK"].as_s().unwrap(), row["SK"].as_s().unwrap());
            let kind = if pk.starts_with("DAY#") {
                "MARKER"
            } else {
                sk.split('#').next().unwrap()
            };
            (kind.to_owned(), expiry(row))
        })
        .collect()
}

/// Registers a turn, and ten days later reacts to it and rates its message.
async fn with_feedback(engine: &Engine, days: u16) {
    let turn = (Method::PUT, &*path("c", "t"));
    let body = message("m", "gaming laptops", "Here are three.");
    let (status, _) = ask(&functions_with(engine, registered, days), turn, &body).await;
    assert_eq!(status, StatusCode::CREATED);
    let functions = functions_with(engine, later, days);
    let feedback = format!("{}/feedback", path("c", "t"));
    let (status, _) = ask(
        &functions,
        (Method::POST, &feedback),
        &json!({"reaction": "ok"}),
    )
    .await;
    assert_eq!(status, StatusCode::OK);
    let helpful = json!({"message_id": "m", "signal": "helpful"});
    let (status, _) = ask(&functions, (Method::POST, SIGNALS), &helpful).await;
    assert_eq!(status, StatusCode::CREATED);
}

#[tokio::test]
async fn everything_that_belongs_to_a_turn_expires_with_it() {
    let engine = Engine::start().await;
    with_feedback(&engine, DAYS.try_into().unwrap()).await;
    let expiries = expiries(&engine).await;
    for kind in ["TURN", "VEC", "MESSAGE", "REACTION", "SIGNAL"] {
        assert_eq!(expiries[kind], Some(expired().timestamp()), "{kind}");
    }
    // A marker of activity may be shared by the reactions of a day's turns.
    let marker = expiries["MARKER"].unwrap() - expired().timestamp();
    assert!((0..=86_400).contains(&marker), "{marker}");
}

#[tokio::test]
async fn without_a_retention_nothing_of_a_turn_expires() {
    let engine = Engine::start().await;
    with_feedback(&engine, 0).await;
    for (kind, expiry) in expiries(&engine).await {
        assert_eq!(expiry, None, "{kind}");
    }
}

#[tokio::test]
async fn no_read_returns_expired_items() {
    let engine = Engine::start().await;
    with_feedback(&engine, DAYS.try_into().unwrap()).await;
    let day = later().date_naive();
    let search = "/conversations/acme/order-service/strategies/search".to_owned();
    let feedback = format!("{}/feedback", path("c", "t"));
    let reads = [
        (Method::GET, path("c", "t"), Value::Null),
        (
            Method::GET,
            format!("{}/feedback-context", path("c", "t")),
            Value::Null,
        ),
        (
            Method::POST,
            format!("{}/turns-with-feedbacks", conversation_path("c")),
            json!({"days": 3650}),
        ),
        (
            Method::POST,
            format!("{}/turns-with-feedbacks", conversation_path("c")),
            json!({"turn_ids": ["t"]}),
        ),
        (
            Method::POST,
            format!("{}/timeline/refresh", conversation_path("c")),
            json!({"turn_ids": ["t"], "cache": {"ttl_seconds": 0}}),
        ),
        (
            Method::POST,
            PERIOD.to_owned(),
            json!({"start": format!("{day}T00:00:00Z"), "end": format!("{day}T23:59:59Z")}),
        ),
        (Method::GET, SIGNALS.to_owned(), Value::Null),
        (Method::POST, search, json!({"query": "gaming laptops"})),
        (Method::POST, feedback, json!({"reaction": "not_ok"})),
        (
            Method::POST,
            SIGNALS.to_owned(),
            json!({"message_id": "m", "signal": "unsafe"}),
        ),
    ];
    let (before, after) = (functions(&engine, last), functions(&engine, expired));
    // An empty bundle.
    let empty = functions(&engine.another().await, expired);
    for (method, path, body) in &reads {
        let request = || (method.clone(), path.as_str());
        let (shown, now) = (
            ask(&after, request(), body).await,
            ask(&empty, request(), body).await,
        );
        let plain = |(status, mut response): (StatusCode, Value)| {
            if let Some(members) = response.as_object_mut() {
                members.remove("request_id");
            }
            (status, response)
        };
        let now = plain(now);
        assert_eq!(plain(shown), now, "{method} {path}");
        assert_ne!(
            plain(ask(&before, request(), body).await),
            now,
            "{method} {path}"
        );
    }
}

/// Two days after the registration.
fn two_days_later() -> DateTime<Utc> {
    registered() + TimeDelta::days(2)
}

#[tokio::test]
async fn after_the_retention_of_an_event_its_turn_is_as_it_was_before() {
    let engine = Engine::start().await;
    let first_day = FunctionSet::at(&engine, &Faults::none(), Clock::of(registered));
    let mut turn = turn_body("gaming laptops", "Here are three.");
    turn["strategy"] = json!("commerce_search");
    assert!(first_day.request(Method::PUT, &path("c", "t"), &turn).await);
    let mut event = acceptance("ada");
    event["feedbackType"] = json!("rejection");
    event["data"] = json!({"comment": "I wanted gaming laptops"});
    event["context"] = json!({"projectId": "order-service", "conversationId": "c", "turnId": "t"});
    event["privacyFlags"] = json!({"retentionDays": 1});
    event.as_object_mut().unwrap().remove("timestamp");
    let submit = "/v1/feedback/submit";
    assert!(first_day.request(Method::POST, submit, &event).await);
    let messages = queue::batch(queue::submitted(&engine, "EVENT").await);
    let response = first_day.generator.handle(messages).await;
    assert!(response.batch_item_failures.is_empty());
    let seen = async |clock: fn() -> DateTime<Utc>| {
        let functions = functions(&engine, clock);
        let turn = path("c", "t");
        let context = format!("{turn}/feedback-context");
        let search = "/conversations/acme/order-service/strategies/search";
        let query = json!({"query": "gaming laptops"});
        let (_, turn) = ask(&functions, (Method::GET, &turn), &Value::Null).await;
        let (_, context) = ask(&functions, (Method::GET, &context), &Value::Null).await;
        let (_, found) = ask(&functions, (Method::POST, search), &query).await;
        let listed = async |scopes| {
            let list = (Method::GET, BY_STATUS);
            let (_, list) = call(&functions, ("order-service", scopes), list, &Value::Null).await;
            list["turns"].as_array().unwrap().len()
        };
        (
            turn["user_feedback_status"].clone(),
            context["rejection"].is_null(),
            found["strategies"].as_array().unwrap().len(),
            [listed("").await, listed("feedback:report").await],
        )
    };
    let given = seen(registered).await;
    assert_eq!(given, (json!("rejected"), false, 0, [1, 1]));
    let expired = seen(two_days_later).await;
    assert_eq!(expired, (json!("neutral"), true, 1, [0, 0]));
}

#[tokio::test]
async fn an_expired_id_can_be_reused_before_the_table_deletes_its_row() {
    let engine = Engine::start().await;
    with_feedback(&engine, DAYS.try_into().unwrap()).await;
    let functions = functions(&engine, expired);
    let turn = path("c", "t");
    let body = message("m", "other laptops", "Here are four.");
    let (status, response) = ask(&functions, (Method::PUT, &turn), &body).await;
    assert_eq!(status, StatusCode::CREATED, "{response}");
    let feedback = format!("{turn}/feedback");
    let (_, cleared) = ask(
        &functions,
        (Method::POST, &feedback),
        &json!({"reaction": null}),
    )
    .await;
    assert_eq!(cleared["message"], "There was nothing to clear.");
    let (_, recorded) = ask(
        &functions,
        (Method::POST, &feedback),
        &json!({"reaction": "ok"}),
    )
    .await;
    assert_eq!(recorded["reaction"], "ok");
    let helpful = json!({"message_id": "m", "signal": "helpful"});
    let (status, _) = ask(&functions, (Method::POST, SIGNALS), &helpful).await;
    assert_eq!(status, StatusCode::CREATED);
    let (_, read) = ask(&functions, (Method::GET, &turn), &Value::Null).await;
    assert_eq!(read["user"]["text"], "other laptops");
    assert_eq!(read["reactions"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_completion_does_not_extend_the_retention_of_a_turn() {
    let engine = Engine::start().await;
    let turn = path("c", "t");
    let open = json!({"user": {"text": "a"}});
    ask(&functions(&engine, registered), (Method::PUT, &turn), &open).await;
    let body = message("m", "a", "b");
    let (status, _) = ask(&functions(&engine, later), (Method::PUT, &turn), &body).await;
    assert_eq!(status, StatusCode::OK);
    for (kind, expiry) in expiries(&engine).await {
        assert_eq!(expiry, Some(expired().timestamp()), "{kind}");
    }
}

/// A minute after the first turn expires.
fn much_later() -> DateTime<Utc> {
    expired() + TimeDelta::minutes(1)
}

/// Registers a turn without a retention.
async fn register_without_retention(engine: &Engine, turn: &str) {
    let functions = functions_with(engine, registered, 0);
    ask(
        &functions,
        (Method::PUT, &path("c", turn)),
        &turn_body("a", "b"),
    )
    .await;
}

#[tokio::test]
async fn a_marker_shared_by_two_turns_outlives_both() {
    let engine = Engine::start().await;
    register_without_retention(&engine, "old").await;
    let turn = path("c", "new");
    ask(
        &functions(&engine, registered),
        (Method::PUT, &turn),
        &turn_body("a", "b"),
    )
    .await;
    let functions = functions(&engine, later);
    for turn in ["old", "new"] {
        let feedback = format!("{}/feedback", path("c", turn));
        ask(
            &functions,
            (Method::POST, &feedback),
            &json!({"reaction": "ok"}),
        )
        .await;
    }
    assert_eq!(expiries(&engine).await["MARKER"], None);
    let day = later().date_naive();
    let period = json!({"start": format!("{day}T00:00:00Z"), "end": format!("{day}T23:59:59Z")});
    let late = self::functions(&engine, much_later);
    let (_, report) = ask(&late, (Method::POST, PERIOD), &period).await;
    assert_eq!(
        report["items"][0]["feedback_counts"]["total"], 1,
        "{report}"
    );
}

#[tokio::test]
async fn the_local_bundle_deletes_the_log_of_a_turn_with_its_row() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    for turn in ["t", "u"] {
        app.put(&token, &path("c", turn), &turn_body("a", turn))
            .await;
    }
    let logs = || async {
        let s3 = &app.bundle.clients.s3;
        let bucket = hearback_local::names::Names::default().bucket();
        let listed = s3
            .list_objects_v2()
            .bucket(bucket)
            .prefix("turn-logs/")
            .send()
            .await;
        listed.unwrap().contents().len()
    };
    assert_eq!(logs().await, 2);
    let key = |name: &str| aws_sdk_dynamodb::types::AttributeValue::S(name.to_owned());
    let delete = app.bundle.clients.dynamodb.delete_item();
    let delete = delete.table_name(hearback_local::names::Names::default().table());
    let delete = delete.key("PK", key("CONV#acme#order-service#c"));
    delete.key("SK", key("TURN#t")).send().await.unwrap();
    eventually(|| async { (logs().await == 1).then_some(()) }).await;
    let read = app.get(&token, &path("c", "u")).await;
    assert_eq!(read.status, reqwest::StatusCode::OK);
}
