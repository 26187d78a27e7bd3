//! Similar turns by the embedded embedder: paraphrases, and vectors that an earlier version stored.

use chrono::Utc;
use hearback_domain::turns::embedded::Embedded;
use hearback_domain::turns::embedding::{LEXICAL, LEXICAL_DIMENSIONS};
use hearback_tests::app::TestApp;
use hearback_tests::turns::{path, turn_body};
use reqwest::StatusCode;
use serde_json::json;

const SEARCH: &str = "/conversations/acme/order-service/strategies/search";

#[tokio::test]
async fn a_paraphrase_finds_its_turn_without_a_model() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    for (turn, query) in [
        ("t1", "cheap laptops for the university"),
        ("t2", "what do hamsters eat"),
        ("t3", "night trains to Rome"),
    ] {
        let body = turn_body(query, "Here are three.");
        let registered = app.put(&ada, &path("c", turn), &body).await;
        assert_eq!(registered.status, StatusCode::CREATED);
    }
    for (query, turn) in [
        ("affordable notebook computers for students", "t1"),
        ("a railway journey to Italy", "t3"),
    ] {
        let found = app.post(&ada, SEARCH, &json!({ "query": query })).await;
        let first = &found.body["strategies"][0]["turn_id"];
        assert_eq!(first, turn, "{query}: {}", found.body);
    }
}

#[tokio::test]
async fn vectors_of_an_earlier_version_are_still_found() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let query = "cheap laptops for the university";
    let body = turn_body(query, "Here are three.");
    app.put(&ada, &path("c", "t1"), &body).await;
    let at = json!({
        "tenant": "acme", "project": "order-service", "conversation_id": "c", "turn_id": "t1"
    });
    let at = serde_json::from_value(at).unwrap();
    let store = &app.bundle.store;
    let row = store.turn(&at, Utc::now()).await.unwrap().unwrap();
    let mut earlier = Embedded::of(query);
    earlier.vector.truncate(LEXICAL_DIMENSIONS);
    LEXICAL.clone_into(&mut earlier.embedder);
    store.put_vector(&row.core, &earlier).await.unwrap();
    let found = app
        .post(&ada, SEARCH, &json!({ "query": query }))
        .await
        .body;
    assert_eq!(found["vectors"]["candidates"], 1);
    assert_eq!(found["strategies"][0]["turn_id"], "t1");
}
