//! Turns by status: whose are listed, in which order, page by page, and when they leave the list.

use std::collections::BTreeSet;

use hearback_tests::app::{TestApp, TestResponse, eventually};
use hearback_tests::turns::{BY_STATUS, path, turn_body};
use reqwest::StatusCode;
use serde_json::{Value, json};

const ACCEPTED: &str = "/conversations/acme/order-service/turns?user_feedback_status=accepted";

/// Registers a turn in a conversation, this many minutes after ten.
async fn register(app: &TestApp, token: &str, at: (&str, &str), (minute, query): (u32, &str)) {
    let mut body = turn_body(query, "Here are three business laptops.");
    body["ts"] = json!(format!("2026-01-04T10:{minute:02}:00Z"));
    body["strategy"] = json!("commerce_search");
    body["agent_id"] = json!("seller");
    let response = app.put(token, &path(at.0, at.1), &body).await;
    assert_eq!(response.status, StatusCode::CREATED, "{}", response.body);
}

async fn react(app: &TestApp, token: &str, at: (&str, &str), verdict: Value) {
    let feedback = format!("{}/feedback", path(at.0, at.1));
    let response = app
        .post(token, &feedback, &json!({"reaction": verdict}))
        .await;
    assert_eq!(response.status, StatusCode::OK);
}

fn turns(response: &TestResponse) -> Vec<&str> {
    let turns = response.body["turns"].as_array().unwrap().iter();
    turns
        .map(|turn| turn["turn_id"].as_str().unwrap())
        .collect()
}

/// Waits until a list has exactly these turns.
async fn wait_for_list(app: &TestApp, token: &str, path: &str, expected: &[&str]) {
    eventually(|| async {
        let response = app.get(token, path).await;
        assert_eq!(response.status, StatusCode::OK, "{}", response.body);
        (turns(&response) == expected).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_user_lists_their_own_turns_and_a_reporter_those_of_the_project() {
    let app = TestApp::start().await;
    let (ada, eve) = (app.token("ada"), app.token("eve"));
    let report = app.token_of("analyst", "acme", "feedback:report");
    register(&app, &ada, ("c", "a1"), (0, "laptops under $1000")).await;
    register(&app, &ada, ("c", "a2"), (1, "No, I meant gaming laptops")).await;
    register(&app, &eve, ("d", "e1"), (2, "a train to Rome")).await;
    react(&app, &eve, ("d", "e1"), json!("not_ok")).await;
    wait_for_list(&app, &ada, BY_STATUS, &["a1"]).await;
    wait_for_list(&app, &eve, BY_STATUS, &["e1"]).await;
    wait_for_list(&app, &report, BY_STATUS, &["e1", "a1"]).await;
    let response = app.get(&report, BY_STATUS).await;
    assert_eq!(
        response.body["turns"][1],
        json!({
            "conversation_id": "c", "turn_id": "a1", "user_id": "ada", "ts": "2026-01-04T10:00:00Z",
            "user_feedback_status": "rejected", "feedback_confidence": 0.9,
            "rejection_detected_in": "a2", "correction_type": "explicit_correction", "corrected": false,
            "strategy": "commerce_search", "artifact_type": null, "task_type": null,
            "agent_id": "seller"
        })
    );
    assert_eq!(response.body["turns"][0]["feedback_confidence"], 1.0);
    for token in [&ada, &report] {
        let one = "&from=2026-01-04T10:01:00Z&to=2026-01-04T10:02:00Z";
        let within = app.get(token, &format!("{BY_STATUS}{one}")).await;
        let expected: &[&str] = if token == &ada { &[] } else { &["e1"] };
        assert_eq!(turns(&within), expected);
        let first = "&from=2026-01-04T10:00:00Z&to=2026-01-04T10:00:00Z";
        let first = app.get(token, &format!("{BY_STATUS}{first}")).await;
        assert_eq!(turns(&first), ["a1"]);
    }
}

#[tokio::test]
async fn a_turn_is_listed_by_its_current_status() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let report = app.token_of("analyst", "acme", "feedback:report");
    register(&app, &ada, ("c", "t"), (0, "laptops under $1000")).await;
    register(&app, &ada, ("c", "u"), (1, "What do hamsters eat?")).await;
    // An acceptance with a low confidence has no machine reaction, but is listed.
    for token in [&ada, &report] {
        wait_for_list(&app, token, ACCEPTED, &["t"]).await;
    }
    react(&app, &ada, ("c", "t"), json!("not_ok")).await;
    for token in [&ada, &report] {
        wait_for_list(&app, token, BY_STATUS, &["t"]).await;
        wait_for_list(&app, token, ACCEPTED, &[]).await;
    }
    react(&app, &ada, ("c", "t"), json!("neutral")).await;
    for token in [&ada, &report] {
        wait_for_list(&app, token, BY_STATUS, &[]).await;
    }
    // A machine reaction does not count until the user withdraws theirs.
    let machine = app.token_of("back-end", "acme", "feedback:on-behalf");
    let inferred = json!({"reaction": "not_ok", "origin": "machine", "confidence": 0.9});
    app.post(&machine, &format!("{}/feedback", path("c", "t")), &inferred)
        .await;
    wait_for_list(&app, &report, BY_STATUS, &[]).await;
    react(&app, &ada, ("c", "t"), Value::Null).await;
    for token in [&ada, &report] {
        wait_for_list(&app, token, BY_STATUS, &["t"]).await;
        wait_for_list(&app, token, ACCEPTED, &[]).await;
    }
}

#[tokio::test]
async fn the_pages_list_every_turn_and_a_cursor_is_valid_for_its_own_query_only() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let report = app.token_of("analyst", "acme", "feedback:report");
    let mut expected = BTreeSet::new();
    for minute in 0..9 {
        let (conversation, turn) = (format!("c{minute}"), format!("t{minute}"));
        register(&app, &ada, (&conversation, &turn), (minute / 2, "laptops")).await;
        if minute != 4 {
            react(&app, &ada, (&conversation, &turn), json!("not_ok")).await;
            expected.insert(turn);
        }
    }
    for token in [&ada, &report] {
        eventually(|| async {
            let all = app.get(token, BY_STATUS).await;
            (turns(&all).len() == expected.len()).then_some(())
        })
        .await;
        let (mut path, mut listed, mut times) = (format!("{BY_STATUS}&limit=3"), vec![], vec![]);
        loop {
            let page = app.get(token, &path).await;
            assert!(turns(&page).len() <= 3);
            listed.extend(turns(&page).into_iter().map(ToOwned::to_owned));
            let of_page = page.body["turns"].as_array().unwrap().iter();
            times.extend(of_page.map(|turn| turn["ts"].as_str().unwrap().to_owned()));
            let Some(cursor) = page.body["next_cursor"].as_str() else {
                break;
            };
            path = format!("{BY_STATUS}&limit=3&cursor={cursor}");
        }
        assert_eq!(listed.len(), expected.len(), "no duplicates");
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), expected);
        assert!(times.is_sorted_by(|one, other| one >= other), "{times:?}");
    }
    let page = app.get(&ada, &format!("{BY_STATUS}&limit=3")).await;
    let cursor = page.body["next_cursor"].as_str().unwrap();
    let foreign = [
        (&ada, format!("{ACCEPTED}&cursor={cursor}")),
        (&report, format!("{BY_STATUS}&cursor={cursor}")),
        (
            &ada,
            format!("{BY_STATUS}&from=2026-01-04T10:00:00Z&cursor={cursor}"),
        ),
        (&ada, format!("{BY_STATUS}&cursor=x{cursor}")),
    ];
    for (token, path) in foreign {
        let rejected = app.get(token, &path).await;
        assert_eq!(rejected.status, StatusCode::BAD_REQUEST, "{path}");
        assert_eq!(rejected.body["errors"][0]["pointer"], "/cursor");
    }
}

#[tokio::test]
async fn an_invalid_query_is_rejected_with_the_name_of_its_parameter() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let turns = "/conversations/acme/order-service/turns";
    for (query, pointer) in [
        ("", "/user_feedback_status"),
        ("?user_feedback_status=neutral", "/user_feedback_status"),
        ("?user_feedback_status=rejected&limit=501", "/limit"),
        ("?user_feedback_status=rejected&from=today", "/from"),
    ] {
        let rejected = app.get(&ada, &format!("{turns}{query}")).await;
        assert_eq!(rejected.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(rejected.body["errors"][0]["pointer"], pointer);
    }
}

#[tokio::test]
async fn an_erased_user_has_no_turns_in_any_list() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let report = app.token_of("analyst", "acme", "feedback:report");
    register(&app, &ada, ("c", "t"), (0, "laptops under $1000")).await;
    react(&app, &ada, ("c", "t"), json!("not_ok")).await;
    wait_for_list(&app, &report, BY_STATUS, &["t"]).await;
    let erased = app.delete(&ada, "/v1/users/ada/data").await;
    assert_eq!(erased.status, StatusCode::ACCEPTED);
    wait_for_list(&app, &report, BY_STATUS, &[]).await;
    let indexed = app.bundle.clients.dynamodb.query();
    for status in ["accepted", "rejected"] {
        for shard in 0..app.bundle.store.shards() {
            let key = format!("STATUS#acme#order-service#{status}#{shard}");
            let found = indexed
                .clone()
                .table_name(hearback_local::names::Names::default().table())
                .index_name("by_status")
                .key_condition_expression("#status = :key")
                .expression_attribute_names("#status", "status")
                .expression_attribute_values(
                    ":key",
                    aws_sdk_dynamodb::types::AttributeValue::S(key),
                )
                .send()
                .await
                .unwrap();
            assert_eq!(found.count(), 0);
        }
    }
}
