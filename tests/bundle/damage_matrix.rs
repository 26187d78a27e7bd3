//! Each attribute of a row of each kind is damaged in each way, one at a time. No list fails, and none loses what is
//! about another turn. `HEARBACK_CRASH_POINTS=all` visits every pair of a damage and a request.

mod workers;

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use axum::Router;
use axum::http::{Method, StatusCode};
use chrono::{TimeDelta, Utc};
use hearback_local::names::Names;
use hearback_tests::app::TestApp;
use hearback_tests::engine::Engine;
use hearback_tests::events::{acceptance, id};
use hearback_tests::functions::{call, functions_of};
use hearback_tests::options::{commit, given};
use hearback_tests::rows::{Row, attribute, rows};
use hearback_tests::stored::Stored;
use hearback_tests::turns::{
    BY_STATUS, FEED, PERIOD, SIGNALS, conversation_path, message, path, turn_body,
};
use serde_json::{Value, json};

/// The turn that nothing damaged is about.
const FIRST: &str = "turn-one";
/// One in this many pairs of a damage and a request is tested. Each commit selects different ones.
const SAMPLED: usize = 4;

/// Feedback of each kind about two conversations, processed. Returns the event about the first one.
async fn give_feedback(app: &TestApp) -> String {
    let token = app.token("ada");
    let mut about_first = String::new();
    for (conversation, turn) in [("conv-one", FIRST), ("conv-two", "turn-two")] {
        let at = path(conversation, turn);
        let question = format!("Where is the laptop of {turn}?");
        let mut body = message(&format!("m-{turn}"), &question, "It is in the shop.");
        body["labels"] = json!({"prompt": "p1"});
        body["trace_id"] = json!(format!("trace-{turn}"));
        assert_eq!(app.put(&token, &at, &body).await.status, 201);
        let reaction = json!({"reaction": "not_ok", "text": "no"});
        let reacted = app.post(&token, &format!("{at}/feedback"), &reaction).await;
        assert_eq!(reacted.status, 200, "{:?}", reacted.body);
        let signal = json!({"message_id": format!("m-{turn}"), "signal": "not_helpful"});
        let sent = app.post(&token, SIGNALS, &signal).await;
        assert_eq!(sent.status, 201, "{:?}", sent.body);
        for kind in ["artifact-acceptance", "rejection"] {
            let mut event = acceptance("ada");
            event["feedbackType"] = json!(kind);
            event["context"]["projectId"] = json!("order-service");
            event["context"]["conversationId"] = json!(conversation);
            event["context"]["turnId"] = json!(turn);
            app.submit(&token, &event).await;
            app.outcome(&token, &id(&event)).await;
            if turn == FIRST {
                about_first = id(&event);
            }
        }
        let next = turn_body("No, that is wrong.", "Sorry.");
        let next_path = path(conversation, &format!("{turn}-next"));
        assert_eq!(app.put(&token, &next_path, &next).await.status, 201);
    }
    Stored::settled(&app.bundle.clients, &Names::default()).await;
    about_first
}

/// A request that lists, or is about the first turn.
struct Request {
    method: Method,
    path: String,
    body: Value,
    scope: &'static str,
}

fn requests(about_first: &str) -> Vec<Request> {
    let hour = TimeDelta::hours(1);
    let period =
        json!({"start": Utc::now() - hour, "end": Utc::now() + hour, "include_turns": true});
    let project = "/conversations/acme/order-service";
    let first = path("conv-one", FIRST);
    let report = |conversation| format!("{}/turns-with-feedbacks", conversation_path(conversation));
    let timeline =
        json!({"turn_ids": [FIRST, "turn-two"], "blocks": [], "cache": {"ttl_seconds": 0}});
    let gets = [
        BY_STATUS.to_owned(),
        SIGNALS.to_owned(),
        FEED.to_owned(),
        format!("{first}/feedback-context"),
        format!("/v1/feedback/{about_first}"),
        "/v1/preferences/ada".to_owned(),
        "/v1/preferences/ada/history".to_owned(),
        "/v1/preferences/ada/resolved?projectId=order-service".to_owned(),
        format!("{SIGNALS}?message_id=m-{FIRST}"),
    ];
    let gets = gets.map(|path| (Method::GET, path, Value::Null));
    let posts = [
        (PERIOD.to_owned(), period),
        (report("conv-one"), json!({})),
        (report("conv-two"), json!({})),
        (
            format!("{}/timeline/refresh", conversation_path("conv-one")),
            timeline,
        ),
        (
            format!("{project}/feedback/infer"),
            json!({"message": "The laptop of turn-one was wrong."}),
        ),
        (
            format!("{project}/strategies/search"),
            json!({"query": "Where is the laptop of turn-one?"}),
        ),
    ];
    let posts = posts.map(|(path, body)| (Method::POST, path, body));
    let scopes = ["", "feedback:report"];
    let all = gets.into_iter().chain(posts);
    all.flat_map(|(method, path, body)| {
        scopes.map(|scope| Request {
            method: method.clone(),
            path: path.clone(),
            body: body.clone(),
            scope,
        })
    })
    .collect()
}

async fn sent(functions: &Router, request: &Request) -> (StatusCode, String) {
    let asked = (request.method.clone(), request.path.as_str());
    let caller = ("order-service", request.scope);
    let (status, body) = call(functions, caller, asked, &request.body).await;
    (status, body.to_string())
}

/// The row with one of its attributes damaged.
fn damaged(row: &Row) -> Vec<(String, Row)> {
    let mut all = Vec::new();
    for (name, value) in row {
        if ["PK", "SK"].contains(&name.as_str()) {
            continue;
        }
        let mut with = |damage: &str, value: Option<AttributeValue>| {
            let mut row = row.clone();
            row.remove(name);
            row.extend(value.map(|value| (name.clone(), value)));
            all.push((format!("{name}: {damage}"), row));
        };
        with("missing", None);
        match value {
            AttributeValue::S(text) => {
                let cut: String = text.chars().take(1).collect();
                with("cut", Some(AttributeValue::S(cut)));
                with("of another type", Some(AttributeValue::N("7".to_owned())));
                if text.starts_with('{') {
                    with("empty", Some(AttributeValue::S("{}".to_owned())));
                }
            }
            _ => with("of another type", Some(AttributeValue::S("x".to_owned()))),
        }
    }
    all
}

/// One row of each kind that is not about the first conversation, by the prefixes of its keys.
fn one_of_each_kind(rows: &[Row], about_first: &str) -> BTreeMap<(String, String), Row> {
    let kind = |row: &Row| {
        let prefix = |name| attribute(row, name).split('#').next().unwrap().to_owned();
        let sort = prefix("SK");
        // Versions of preferences and positions have no prefix.
        (
            prefix("PK"),
            sort.trim_end_matches(char::is_numeric).to_owned(),
        )
    };
    let others = rows.iter().filter(|row| {
        let text = format!("{row:?}");
        !["conv-one", FIRST, about_first]
            .iter()
            .any(|name| text.contains(name))
    });
    others.map(|row| (kind(row), row.clone())).collect()
}

#[tokio::test]
async fn one_damaged_attribute_fails_no_list_and_hides_no_other_row() {
    let app = TestApp::start().await;
    let about_first = give_feedback(&app).await;
    let rows = rows(&app.bundle.clients.dynamodb, &Names::default().table()).await;
    drop(app);
    // No worker reads the copy.
    let engine = Engine::start().await;
    let table = engine.names.table();
    let put = async |row: &Row| {
        let put = engine.clients.dynamodb.put_item().table_name(&table);
        put.set_item(Some(row.clone())).send().await
    };
    for row in &rows {
        put(row).await.unwrap();
    }
    let functions = functions_of(&engine);
    let requests = requests(&about_first);
    let mut expected = Vec::new();
    for request in &requests {
        let (status, body) = sent(&functions, request).await;
        assert!(status.is_success(), "{}: {status} {body}", request.path);
        expected.push(body.contains(FIRST));
    }
    let visits_all = given::<String>("HEARBACK_CRASH_POINTS").is_some_and(|points| points == "all");
    let sampled = if visits_all { 1 } else { SAMPLED };
    let (mut failures, mut damages, mut pairs) = (Vec::new(), 0, commit());
    let kinds = one_of_each_kind(&rows, &about_first);
    for (kind, row) in &kinds {
        for (damage, damaged) in damaged(row) {
            // An index key cannot be of another type.
            if put(&damaged).await.is_err() {
                continue;
            }
            damages += 1;
            for (request, shows) in requests.iter().zip(&expected) {
                pairs += 1;
                if !pairs.is_multiple_of(sampled) {
                    continue;
                }
                let (status, body) = sent(&functions, request).await;
                let fails = status.is_server_error() || *shows && !body.contains(FIRST);
                if fails {
                    let Request { path, scope, .. } = request;
                    failures.push(format!(
                        "{kind:?} {damage}: {path} {scope}: {status} {body}"
                    ));
                }
            }
        }
        put(row).await.unwrap();
    }
    println!("{} kinds, {damages} damages", kinds.len());
    assert!(kinds.len() > 10 && damages > 100);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
