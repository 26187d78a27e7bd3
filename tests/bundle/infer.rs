//! Feedback in a message that names no turn.

use hearback_tests::app::{TestApp, TestResponse};
use hearback_tests::turns::{path, turn_body};
use reqwest::StatusCode;
use serde_json::{Value, json};

const INFER: &str = "/conversations/acme/order-service/feedback/infer";

#[tokio::test]
async fn a_message_without_a_turn_is_attached_to_the_turn_it_is_about() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    for (turn, query, answer) in [
        (
            "laptops",
            "gaming laptops under $1000",
            "Here are three business laptops.",
        ),
        ("hamster", "What do hamsters eat?", "Seeds and vegetables."),
        ("rome", "A train to Rome on Friday", "There is one at nine."),
    ] {
        app.put(&ada, &path(turn, "t"), &turn_body(query, answer))
            .await;
    }
    let body = json!({"message": "No, the business laptops are wrong, I asked for gaming laptops"});
    let inferred = app.post(&ada, INFER, &body).await;
    assert_eq!(inferred.status, StatusCode::OK);
    assert_eq!(inferred.body["detection"]["feedback_type"], "rejected");
    assert_eq!(inferred.body["targets"][0]["conversation_id"], "laptops");
    assert_eq!(inferred.body["targets"].as_array().unwrap().len(), 3);
    let target = &inferred.body["targets"][0];
    let (score, similarity) = (&target["score"], &target["similarity"]);
    let expected = 0.85 * similarity.as_f64().unwrap() + 0.15;
    assert!((score.as_f64().unwrap() - expected).abs() < 1e-3);
    let marked = app.get(&ada, &path("laptops", "t")).await.body;
    assert_eq!(marked["reactions"][0]["reaction"]["origin"], "machine");
    assert_eq!(marked["reactions"][0]["meta"]["rn"], inferred.body["rn"]);
    // A repeat is the same reaction, at another time.
    let again = app.post(&ada, INFER, &body).await;
    let id = |response: &TestResponse| {
        let rn = response.body["rn"].as_str().unwrap();
        rn.rsplit('-').next().unwrap().to_owned()
    };
    assert_eq!(id(&again), id(&inferred));
    // A message that resembles no turn is about none, however recent the turns are.
    let unlike = json!({"message": "That's wrong."});
    let unlike = app.post(&ada, INFER, &unlike).await.body;
    assert_eq!(unlike["detection"]["feedback_type"], "rejected");
    assert_eq!(unlike["rn"], Value::Null);
    // A message without feedback is attached to no turn, and another user has no turns.
    let nothing = app.post(&ada, INFER, &json!({"message": "hamsters"})).await;
    assert_eq!(nothing.body["rn"], Value::Null);
    let eve = app.post(&app.token("eve"), INFER, &body).await;
    assert_eq!(
        (&eve.body["targets"], &eve.body["rn"]),
        (&json!([]), &Value::Null)
    );
}

#[tokio::test]
async fn the_text_of_a_turn_is_not_feedback_on_its_own_answer() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let query = "Perfect, that works! The laptops are great";
    for (conversation, query) in [("c", query), ("d", "Which laptops are great?")] {
        let turn = turn_body(query, "Glad to hear it.");
        app.put(&ada, &path(conversation, "t"), &turn).await;
    }
    let inferred = app.post(&ada, INFER, &json!({"message": query})).await.body;
    let targets = inferred["targets"].as_array().unwrap();
    assert_eq!(targets.len(), 1, "{inferred}");
    assert_eq!(targets[0]["conversation_id"], "d", "{inferred}");
}
