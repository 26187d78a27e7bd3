//! `POST …/timeline/refresh`, over HTTP. The texts themselves have golden files in the domain.

use aws_sdk_dynamodb::types::AttributeValue;
use hearback_tests::app::TestApp;
use hearback_tests::turns::{conversation_path, path, said};
use reqwest::StatusCode;
use serde_json::{Value, json};

#[tokio::test]
async fn an_agent_hears_of_feedback_while_hot_and_has_it_once_cold() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let mut turn = said("a", "b");
    turn["ts"] = json!("2025-11-06T15:00:00Z");
    app.put(&token, &path("c", "t"), &turn).await;
    let reaction = json!({"reaction": "not_ok", "text": "Too long", "ts": "2025-11-06T15:30:00Z"});
    app.post(&token, &format!("{}/feedback", path("c", "t")), &reaction)
        .await;

    let refresh = format!("{}/timeline/refresh", conversation_path("c"));
    let mut request = json!({
        "turn_ids": ["t"],
        "cache": {"ttl_seconds": 300, "last_touch": chrono::Utc::now()}
    });
    let hot = app.post(&token, &refresh, &request).await;
    assert_eq!(hot.status, StatusCode::OK, "{:?}", hot.body);
    let line = "[NEW USER FEEDBACKS]\n  - turn t | turn_ts=2025-11-06T15:00:00Z | \
                feedback_ts=2025-11-06T15:30:00Z | reaction=not_ok | text=Too long";
    assert_eq!(
        hot.body,
        json!({"cache": "hot", "announce": line, "blocks": [], "last_known_feedback_ts": null})
    );

    request["cache"]["ttl_seconds"] = json!(0);
    let cold = app.post(&token, &refresh, &request).await.body;
    assert_eq!(cold["cache"], "cold");
    assert_eq!(
        cold["announce"],
        json!(format!("{line}\n  (incorporated into turn timeline)"))
    );
    assert_eq!(cold["last_known_feedback_ts"], "2025-11-06T15:30:00Z");
    assert_eq!(cold["blocks"][0]["path"], "ar:t.feedback.user");

    request["blocks"] = cold["blocks"].clone();
    request["last_known_feedback_ts"] = cold["last_known_feedback_ts"].clone();
    let known = app.post(&token, &refresh, &request).await.body;
    assert_eq!(known["announce"], Value::Null);

    // Somebody else's feedback is not theirs to hear.
    request["blocks"] = json!([]);
    let eve = app.post(&app.token("eve"), &refresh, &request).await.body;
    assert_eq!(eve["announce"], Value::Null);
}

#[tokio::test]
async fn a_reaction_of_an_older_system_is_read_and_a_broken_one_skipped() {
    let app = TestApp::start().await;
    for (name, text) in [
        (
            "1",
            "{'turn_id': 't', 'text': \"It's\", 'reaction': None, 'ts': '2025-11-06T15:30:00Z'}",
        ),
        ("2", "reaction: {broken"),
    ] {
        let text_of = |text: &str| AttributeValue::S(text.to_owned());
        app.bundle
            .clients
            .dynamodb
            .put_item()
            .table_name("hearback")
            .item("PK", text_of("CONV#acme#order-service#c"))
            .item("SK", text_of(&format!("REACTION#t#machine#{name}")))
            .item("text", text_of(text))
            .send()
            .await
            .unwrap();
    }
    let agent = app.token_of("agent", "acme", "feedback:report");
    let refresh = format!("{}/timeline/refresh", conversation_path("c"));
    let request = json!({"turn_ids": ["t"], "cache": {"ttl_seconds": 0}});
    let cold = app.post(&agent, &refresh, &request).await;
    assert_eq!(cold.status, StatusCode::OK);
    assert_eq!(cold.body["blocks"].as_array().unwrap().len(), 1);
    assert_eq!(cold.body["blocks"][0]["hidden"], true);
}

#[tokio::test]
async fn what_one_user_took_back_does_not_hide_what_another_says() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    app.put(&ada, &path("c", "t"), &said("a", "b")).await;
    let feedback = format!("{}/feedback", path("c", "t"));
    app.post(&ada, &feedback, &json!({"reaction": "not_ok"}))
        .await;
    let eve = app.token("eve");
    app.post(&eve, &feedback, &json!({"reaction": "ok"})).await;
    app.post(&eve, &feedback, &json!({"reaction": null})).await;
    let agent = app.token_of("agent", "acme", "feedback:report");
    let refresh = format!("{}/timeline/refresh", conversation_path("c"));
    let request = json!({"turn_ids": ["t"], "cache": {"ttl_seconds": 0}});
    let cold = app.post(&agent, &refresh, &request).await.body;
    assert_eq!(cold["blocks"][0]["meta"]["reaction"], "not_ok");
}
