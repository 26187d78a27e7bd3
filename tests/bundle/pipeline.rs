//! From a stored event to the subscribers' queues, through the running bundle.

use aws_sdk_sqs::types::Message;
use hearback_domain::learning::publication::Subject;
use hearback_local::names::Names;
use hearback_local::redrive::{DeadLetterQueue, redrive};
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::events::{acceptance, id};
use hearback_tests::turns::{path, turn_body};
use reqwest::StatusCode;
use serde_json::{Value, json};

async fn receive(app: &TestApp, queue_url: &str) -> Vec<Message> {
    app.bundle
        .clients
        .sqs
        .receive_message()
        .queue_url(queue_url)
        .max_number_of_messages(10)
        .message_attribute_names("All")
        .send()
        .await
        .unwrap()
        .messages
        .unwrap_or_default()
}

async fn published(app: &TestApp, subject: Subject) -> Value {
    let queue = app.bundle.queues.subject(subject).unwrap();
    let message = eventually(|| async { receive(app, queue).await.pop() }).await;
    serde_json::from_str(message.body().unwrap()).unwrap()
}

#[tokio::test]
async fn the_learning_signals_of_an_event_reach_the_queues_of_their_subjects() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let mut event = acceptance("ada");
    event["feedbackType"] = json!("rating");
    event["data"] = json!({"rating": 1});
    app.submit(&token, &event).await;
    let processed = published(&app, Subject::FeedbackProcessed).await;
    assert_eq!(processed["feedbackId"], event["feedbackId"]);
    assert_eq!(processed["outcome"], "rated");
    let reward = published(&app, Subject::Reward).await;
    assert_eq!(reward["reward"]["value"], -0.8);
    let policy = published(&app, Subject::Policy).await;
    assert_eq!(policy["policyUpdate"]["adjustmentType"], "weight_decay");
    let outcome = app.outcome(&token, &id(&event)).await;
    assert_eq!(outcome["signals"][0]["signalId"], reward["signalId"]);
    assert_eq!(outcome["signals"][1]["signalId"], policy["signalId"]);
}

#[tokio::test]
async fn equal_events_within_the_hour_count_once() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let mut first = acceptance("ada");
    first["timestamp"] = json!("2026-01-04T09:10:00Z");
    let mut second = first.clone();
    second["feedbackId"] = acceptance("ada")["feedbackId"].clone();
    second["timestamp"] = json!("2026-01-04T09:50:00Z");
    let mut next_hour = first.clone();
    next_hour["feedbackId"] = acceptance("ada")["feedbackId"].clone();
    next_hour["timestamp"] = json!("2026-01-04T10:00:00Z");
    for event in [&first, &second, &next_hour] {
        app.submit(&token, event).await;
        app.outcome(&token, &id(event)).await;
    }
    let outcome = app.outcome(&token, &id(&second)).await;
    assert_eq!(outcome["status"], "deduplicated");
    assert_eq!(outcome["duplicateOf"], first["feedbackId"]);
    assert_eq!(outcome["signals"], json!([]));
    assert_eq!(
        app.outcome(&token, &id(&next_hour)).await["status"],
        "processed"
    );
    let preferences = app.get(&token, "/v1/preferences/ada").await.body;
    assert_eq!(
        preferences["artifactPreferences"]["unknown"]["sampleCount"],
        2
    );
}

#[tokio::test]
async fn an_event_excluded_from_training_gives_no_signal_but_changes_preferences() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let mut event = acceptance("ada");
    event["privacyFlags"] = json!({"excludeFromTraining": true});
    app.submit(&token, &event).await;
    let outcome = app.outcome(&token, &id(&event)).await;
    assert_eq!(outcome["status"], "processed");
    assert_eq!(outcome["signals"], json!([]));
    let processed = published(&app, Subject::FeedbackProcessed).await;
    assert_eq!(processed["privacyFlags"]["excludeFromTraining"], true);
    let preferences = app.get(&token, "/v1/preferences/ada").await.body;
    assert_eq!(
        preferences["artifactPreferences"]["unknown"]["sampleCount"],
        1
    );
}

#[tokio::test]
async fn a_poison_message_goes_to_the_dlq_with_its_reason_and_affects_no_other() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let sqs = &app.bundle.clients.sqs;
    let queues = &app.bundle.queues;
    for body in ["no json", "{\"dynamodb\": {}}"] {
        let sent = sqs
            .send_message()
            .queue_url(&queues.signals)
            .message_body(body);
        sent.send().await.unwrap();
    }
    let event = acceptance("ada");
    app.submit(&token, &event).await;
    assert_eq!(
        app.outcome(&token, &id(&event)).await["status"],
        "processed"
    );

    let dead = eventually(|| async {
        let attributes = sqs
            .get_queue_attributes()
            .queue_url(&queues.dead_letters)
            .attribute_names(aws_sdk_sqs::types::QueueAttributeName::ApproximateNumberOfMessages)
            .send()
            .await
            .unwrap();
        let count = attributes.attributes.unwrap().into_values().next();
        (count.as_deref() == Some("2")).then_some(())
    });
    dead.await;
    let dead_letters = receive(&app, &queues.dead_letters).await;
    let reasons: Vec<_> = dead_letters
        .iter()
        .map(|message| {
            message.message_attributes().unwrap()["reason"]
                .string_value()
                .unwrap()
        })
        .collect();
    assert!(
        reasons
            .iter()
            .all(|reason| reason.starts_with("stored stream record cannot be read"))
    );
    assert!(
        reasons
            .iter()
            .any(|reason| reason.contains("it is not JSON")),
        "{reasons:?}"
    );

    // The dead letters are visible again after a second. Moved back, they fail again.
    let moved = eventually(|| async {
        let (clients, names) = (&app.bundle.clients, Names::default());
        let moved = redrive(
            clients,
            &names,
            &app.bundle.store,
            DeadLetterQueue::Signals,
            &[],
        )
        .await;
        let moved = moved.unwrap().moved;
        (moved > 0).then_some(moved)
    })
    .await;
    assert!(moved <= 2);
}

#[tokio::test]
async fn published_messages_about_a_turn_have_its_id_labels_and_times() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let turn = path("c", "t");
    let mut body = turn_body("How?", "So.");
    body["labels"] = json!({"model": "m1", "prompt_version": "v7"});
    body["trace_id"] = json!("4bf92f3577b34da6a3ce929d0e0e4736");
    body["span_id"] = json!("00f067aa0ba902b7");
    let registered = app.put(&token, &turn, &body).await;
    assert_eq!(registered.status, StatusCode::CREATED, "{registered:?}");
    let kept = app.get(&token, &turn).await.body;
    assert_eq!(kept["labels"], body["labels"]);
    assert_eq!(kept["span_id"], body["span_id"]);
    let reaction = json!({"reaction": "ok", "ts": "2026-01-04T09:30:00Z"});
    app.post(&token, &format!("{turn}/feedback"), &reaction)
        .await;
    for subject in [Subject::FeedbackProcessed, Subject::Reward] {
        let message = published(&app, subject).await;
        for (name, value) in [
            ("tenant", json!("acme")),
            ("projectId", json!("order-service")),
            ("conversationId", json!("c")),
            ("turnId", json!("t")),
            ("traceId", body["trace_id"].clone()),
            ("spanId", body["span_id"].clone()),
            ("labels", body["labels"].clone()),
            ("occurredAt", json!("2026-01-04T09:30:00Z")),
        ] {
            assert_eq!(message[name], value, "{name} of {message}");
        }
        assert!(message["publishedAt"].is_string());
    }
}

#[tokio::test]
async fn an_invalid_label_is_named() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let mut event = acceptance("ada");
    event["context"]["labels"] = json!({"model": "", "a b": "x"});
    let response = app.submit(&token, &event).await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    let errors = response.body["errors"].as_array().unwrap();
    let pointers: Vec<_> = errors.iter().map(|error| &error["pointer"]).collect();
    assert_eq!(pointers, ["/context/labels/a b", "/context/labels/model"]);
}

#[tokio::test]
async fn an_event_is_returned_completely_but_its_text_only_to_its_user() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let mut event = acceptance("ada");
    event["feedbackType"] = json!("modification");
    event["feedbackChannel"] = json!("correction");
    event["correctionData"] = json!({"originalValue": "null", "correctedValue": "undefined", "correctionType": "accuracy"});
    event["context"]["conversationId"] = json!("c");
    event["context"]["turnId"] = json!("t");
    event["context"]["labels"] = json!({"model": "m1"});
    event["timestamp"] = json!("2026-01-04T09:30:00Z");
    app.submit(&token, &event).await;
    let outcome = app.outcome(&token, &id(&event)).await;
    let mut expected = event.clone();
    expected["privacyFlags"]["excludeFromTraining"] = json!(false);
    assert_eq!(outcome["event"], expected);

    let back_end = app.token_of("back-end", "acme", "feedback:on-behalf");
    let outcome = app.outcome(&back_end, &id(&event)).await;
    expected["data"] = json!({"accepted": true, "rating": 4, "timeSpent": 45});
    expected["correctionData"] = json!({"correctionType": "accuracy"});
    assert_eq!(outcome["event"], expected);
}
