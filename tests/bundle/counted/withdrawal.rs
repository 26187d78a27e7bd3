//! The withdrawal of events: what no longer counts, what counts instead, and who may withdraw.

use super::*;

fn event_path(event: &Value) -> String {
    format!("/v1/feedback/{}", event["feedbackId"].as_str().unwrap())
}

async fn withdraw_event(app: &TestApp, token: &str, event: &Value) {
    let response = app.delete(token, &event_path(event)).await;
    assert_eq!(response.status, StatusCode::NO_CONTENT, "{}", response.body);
}

#[tokio::test]
async fn a_withdrawn_event_no_longer_counts_and_the_one_before_it_does() {
    let (app, ada) = with_turn().await;
    accept_by_the_next_turn(&app, &ada).await;
    let mut rating = about_the_turn("ada", "rating", json!({"rating": 1}));
    rating["timestamp"] = json!("2026-01-04T10:02:00Z");
    let mut acceptance = about_the_turn("ada", "artifact-acceptance", json!({"accepted": true}));
    acceptance["timestamp"] = json!("2026-01-04T10:03:00Z");
    submit(&app, &ada, &rating).await;
    wait_for_status(&app, &ada, "rejected").await;
    submit(&app, &ada, &acceptance).await;
    wait_for_status(&app, &ada, "accepted").await;
    // The machine reaction inferred from the next turn counts, too.
    reported(&app, &ada, 3).await;

    withdraw_event(&app, &ada, &acceptance).await;
    wait_for_status(&app, &ada, "rejected").await;
    let turn = reported(&app, &ada, 2).await;
    assert!(turn.to_string().contains("not_ok"), "{turn}");
    // What was inferred counts again.
    withdraw_event(&app, &ada, &rating).await;
    wait_for_status(&app, &ada, "accepted").await;
    reported(&app, &ada, 1).await;
    withdraw_event(&app, &ada, &rating).await;

    let record = app.get(&ada, &event_path(&rating)).await.body;
    assert_eq!(record["status"], "retracted");
    assert_eq!(record["counted"]["reason"], "retracted");
    assert_eq!(record["replacedBy"], Value::Null);
    assert_eq!(record["event"]["data"]["rating"], 1);
}

#[tokio::test]
async fn after_a_withdrawal_the_next_event_with_its_dedupe_key_counts() {
    let (app, ada) = with_turn().await;
    let rated = |rating: u8| {
        let mut event = about_the_turn("ada", "rating", json!({"rating": rating}));
        event["artifactId"] = json!("the answer");
        event["timestamp"] = json!("2026-01-04T10:02:00Z");
        event
    };
    let [first, duplicate, second, third] = [1, 2, 5, 3].map(rated);
    let outcome = async |event: &Value| {
        let id = event["feedbackId"].as_str().unwrap();
        app.outcome(&ada, id).await
    };
    submit(&app, &ada, &first).await;
    assert_eq!(outcome(&first).await["status"], "processed");
    submit(&app, &ada, &duplicate).await;
    assert_eq!(outcome(&duplicate).await["status"], "deduplicated");
    withdraw_event(&app, &ada, &first).await;
    submit(&app, &ada, &second).await;
    assert_eq!(outcome(&second).await["status"], "processed");
    wait_for_status(&app, &ada, "accepted").await;
    submit(&app, &ada, &third).await;
    let third = outcome(&third).await;
    assert_eq!(third["status"], "deduplicated");
    assert_eq!(third["duplicateOf"], second["feedbackId"]);
}

#[tokio::test]
async fn an_event_is_withdrawn_by_its_user_or_by_a_back_end_with_its_project() {
    let (app, ada) = with_turn().await;
    let event = about_the_turn("ada", "rejection", json!({}));
    submit(&app, &ada, &event).await;
    wait_for_status(&app, &ada, "rejected").await;
    let unknown = "/v1/feedback/00000000-0000-4000-8000-000000000000";
    for (token, path, status) in [
        (app.token("eve"), &*event_path(&event), 404),
        (
            app.token_of("ada", "umbrella", "feedback:on-behalf"),
            &*event_path(&event),
            404,
        ),
        (ada.clone(), unknown, 404),
        (ada.clone(), "/v1/feedback/none", 404),
    ] {
        let response = app.delete(&token, path).await;
        assert_eq!(response.status, status, "{path}: {}", response.body);
    }
    let id = event["feedbackId"].as_str().unwrap();
    assert_eq!(app.outcome(&ada, id).await["status"], "processed");
    let service = app.token_of("service", "acme", "feedback:on-behalf");
    withdraw_event(&app, &service, &event).await;
    wait_for_status(&app, &ada, "neutral").await;
}

#[tokio::test]
async fn the_event_of_a_reaction_is_withdrawn_with_the_reaction() {
    let (app, ada) = with_turn().await;
    let feedback = format!("{}/feedback", path("c", "t"));
    let reaction = app.post(&ada, &feedback, &json!({"reaction": "ok"})).await;
    let id = reaction.body["feedback_id"].as_str().unwrap().to_owned();
    app.outcome(&ada, &id).await;
    let response = app.delete(&ada, &format!("/v1/feedback/{id}")).await;
    assert_eq!(response.status, StatusCode::CONFLICT, "{}", response.body);
    assert_eq!(response.body["error"], "not_withdrawable");
}
