//! What feedback about a turn inherits of it.

use hearback_domain::learning::publication::Subject;

use super::*;

#[tokio::test]
async fn an_event_inherits_what_its_turn_says_about_the_answer() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let mut turn = turn_body("What is new?", "Nothing.");
    turn["labels"] = json!({"model": "the turn's", "prompt_version": "v7"});
    turn["artifact_type"] = json!("summary");
    turn["trace_id"] = json!("4f3a");
    turn["span_id"] = json!("00f0");
    let response = app.put(&ada, &path("c", "t"), &turn).await;
    assert_eq!(response.status, StatusCode::CREATED, "{}", response.body);
    let mut event = about_the_turn("ada", "rating", json!({"rating": 5}));
    event["context"]["labels"] = json!({"model": "the event's"});
    submit(&app, &ada, &event).await;
    let outcome = app
        .outcome(&ada, event["feedbackId"].as_str().unwrap())
        .await;
    assert_eq!(
        outcome["signals"][0]["features"],
        json!({
            "artifactType": "summary", "label.model": "the event's", "label.prompt_version": "v7"
        })
    );
    let learned = app.get(&ada, "/v1/preferences/ada").await.body;
    let learned = &learned["artifactPreferences"]["summary"];
    assert_eq!(learned["averageRating"], 5.0, "{learned}");
    // So does what subscribers receive of it, and of its withdrawal.
    let context = json!({
        "traceId": "4f3a", "spanId": "00f0",
        "labels": {"model": "the event's", "prompt_version": "v7"},
    });
    let id = event["feedbackId"].as_str().unwrap();
    let path = format!("/v1/feedback/{id}");
    assert_eq!(app.delete(&ada, &path).await.status, StatusCode::NO_CONTENT);
    for kind in ["feedback.processed", "feedback.retracted"] {
        let message = published(&app, kind).await;
        assert_eq!(message["feedbackId"], *id);
        for (name, value) in context.as_object().unwrap() {
            assert_eq!(message[name], *value, "{kind}: {message}");
        }
    }
}

/// The first published message of a kind.
async fn published(app: &TestApp, kind: &str) -> Value {
    let queue = (app.bundle.queues).subject(Subject::FeedbackProcessed);
    let queue = queue.unwrap();
    eventually(|| async {
        let received = app.bundle.clients.sqs.receive_message().queue_url(queue);
        let received = received.max_number_of_messages(10).visibility_timeout(0);
        let messages = received.send().await.unwrap().messages.unwrap_or_default();
        let mut bodies = messages
            .iter()
            .map(|message| serde_json::from_str::<Value>(message.body().unwrap()).unwrap());
        bodies.find(|body| body["eventType"] == kind)
    })
    .await
}

#[tokio::test]
async fn feedback_artifacts_inherit_track_bundle_and_user_type_from_their_turn() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let mut turn = message("m", "What is new?", "Nothing.");
    turn["track_id"] = json!("A");
    turn["user_type"] = json!("privileged");
    turn["bundle_id"] = json!("with.codegen");
    app.put(&ada, &path("c", "t"), &turn).await;
    rate(&app, &ada, "helpful", None).await;
    submit(
        &app,
        &ada,
        &about_the_turn("ada", "rating", json!({"rating": 5})),
    )
    .await;
    let turn = reported(&app, &ada, 2).await;
    for artifact in turn["reactions"].as_array().unwrap() {
        assert_eq!(artifact["meta"]["track_id"], "A", "{artifact}");
        assert_eq!(artifact["meta"]["user_type"], "privileged", "{artifact}");
        assert_eq!(artifact["bundle_id"], "with.codegen", "{artifact}");
    }
}
