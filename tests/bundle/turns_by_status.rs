//! Turns by how they were taken: whose are listed, in which order, page by page, and when they are no more.

use std::collections::BTreeSet;

use hearback_tests::app::{Answer, TestApp, eventually};
use hearback_tests::turns::{BY_STATUS, path, said};
use reqwest::StatusCode;
use serde_json::{Value, json};

const ACCEPTED: &str = "/conversations/acme/order-service/turns?user_feedback_status=accepted";

/// Registers a turn in a conversation, so many minutes after ten.
async fn register(app: &TestApp, token: &str, at: (&str, &str), (minute, query): (u32, &str)) {
    let mut body = said(query, "Here are three business laptops.");
    body["ts"] = json!(format!("2026-01-04T10:{minute:02}:00Z"));
    body["strategy"] = json!("commerce_search");
    body["agent_id"] = json!("seller");
    let answer = app.put(token, &path(at.0, at.1), &body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
}

async fn react(app: &TestApp, token: &str, at: (&str, &str), verdict: Value) {
    let feedback = format!("{}/feedback", path(at.0, at.1));
    let answer = app
        .post(token, &feedback, &json!({"reaction": verdict}))
        .await;
    assert_eq!(answer.status, StatusCode::OK);
}

fn turns(answer: &Answer) -> Vec<&str> {
    let turns = answer.body["turns"].as_array().unwrap().iter();
    turns
        .map(|turn| turn["turn_id"].as_str().unwrap())
        .collect()
}

/// Waits until a list is this.
async fn lists(app: &TestApp, token: &str, path: &str, expected: &[&str]) {
    eventually(|| async {
        let answer = app.get(token, path).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        (turns(&answer) == expected).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_user_lists_its_own_turns_and_a_reporter_those_of_the_project() {
    let app = TestApp::start().await;
    let (ada, eve) = (app.token("ada"), app.token("eve"));
    let report = app.token_of("analyst", "acme", "feedback:report");
    register(&app, &ada, ("c", "a1"), (0, "laptops under $1000")).await;
    register(&app, &ada, ("c", "a2"), (1, "No, I meant gaming laptops")).await;
    register(&app, &eve, ("d", "e1"), (2, "a train to Rome")).await;
    react(&app, &eve, ("d", "e1"), json!("not_ok")).await;
    lists(&app, &ada, BY_STATUS, &["a1"]).await;
    lists(&app, &eve, BY_STATUS, &["e1"]).await;
    lists(&app, &report, BY_STATUS, &["e1", "a1"]).await;
    let answer = app.get(&report, BY_STATUS).await;
    assert_eq!(
        answer.body["turns"][1],
        json!({
            "conversation_id": "c", "turn_id": "a1", "user_id": "ada", "ts": "2026-01-04T10:00:00Z",
            "user_feedback_status": "rejected", "feedback_confidence": 0.9,
            "rejection_detected_in": "a2", "correction_type": "explicit_correction",
            "strategy": "commerce_search", "artifact_type": null, "task_type": null,
            "agent_id": "seller"
        })
    );
    assert_eq!(answer.body["turns"][0]["feedback_confidence"], 1.0);
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
async fn a_turn_is_listed_by_what_counts_now() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let report = app.token_of("analyst", "acme", "feedback:report");
    register(&app, &ada, ("c", "t"), (0, "laptops under $1000")).await;
    register(&app, &ada, ("c", "u"), (1, "I need hamster food")).await;
    // An acceptance that is too weak for a reaction of the machine is listed too.
    for token in [&ada, &report] {
        lists(&app, token, ACCEPTED, &["t"]).await;
    }
    react(&app, &ada, ("c", "t"), json!("not_ok")).await;
    for token in [&ada, &report] {
        lists(&app, token, BY_STATUS, &["t"]).await;
        lists(&app, token, ACCEPTED, &[]).await;
    }
    react(&app, &ada, ("c", "t"), json!("neutral")).await;
    for token in [&ada, &report] {
        lists(&app, token, BY_STATUS, &[]).await;
    }
    // What is inferred meanwhile does not count, until its user withdraws theirs.
    let machine = app.token_of("back-end", "acme", "feedback:on-behalf");
    let judged = json!({"reaction": "not_ok", "origin": "machine", "confidence": 0.9});
    app.post(&machine, &format!("{}/feedback", path("c", "t")), &judged)
        .await;
    lists(&app, &report, BY_STATUS, &[]).await;
    react(&app, &ada, ("c", "t"), Value::Null).await;
    for token in [&ada, &report] {
        lists(&app, token, BY_STATUS, &["t"]).await;
        lists(&app, token, ACCEPTED, &[]).await;
    }
}

#[tokio::test]
async fn pages_follow_each_other_without_a_hole_and_a_cursor_is_of_its_query_alone() {
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
        assert_eq!(listed.len(), expected.len(), "none twice");
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
        let refused = app.get(token, &path).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{path}");
        assert_eq!(refused.body["errors"][0]["pointer"], "/cursor");
    }
}

#[tokio::test]
async fn what_cannot_be_listed_is_refused_by_the_name_of_its_parameter() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let turns = "/conversations/acme/order-service/turns";
    for (query, pointer) in [
        ("", "/user_feedback_status"),
        ("?user_feedback_status=neutral", "/user_feedback_status"),
        ("?user_feedback_status=rejected&limit=501", "/limit"),
        ("?user_feedback_status=rejected&from=today", "/from"),
    ] {
        let refused = app.get(&ada, &format!("{turns}{query}")).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(refused.body["errors"][0]["pointer"], pointer);
    }
}

#[tokio::test]
async fn who_is_erased_is_in_no_list_any_more() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let report = app.token_of("analyst", "acme", "feedback:report");
    register(&app, &ada, ("c", "t"), (0, "laptops under $1000")).await;
    react(&app, &ada, ("c", "t"), json!("not_ok")).await;
    lists(&app, &report, BY_STATUS, &["t"]).await;
    let erased = app.delete(&ada, "/v1/users/ada/data").await;
    assert_eq!(erased.status, StatusCode::ACCEPTED);
    lists(&app, &report, BY_STATUS, &[]).await;
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
