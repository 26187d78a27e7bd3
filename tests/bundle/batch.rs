//! Batches of events in one request or one message of the ingest queue.

use aws_sdk_sqs::types::{Message, MessageAttributeValue};
use hearback_lambda::queue::LAST_RECEIVES;
use hearback_storage::Store;
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::engine::Engine;
use hearback_tests::events::{acceptance, id, ingested};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::submit::found_in_files;

const BATCH: &str = "/v1/feedback/batch";

#[tokio::test]
async fn an_invalid_event_of_a_batch_does_not_affect_the_others() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let [known, new, mut unknown, mut wrong] = [(); 4].map(|()| acceptance("ada"));
    app.submit(&ada, &known).await;
    unknown["feedbackType"] = json!("shrug");
    wrong["data"]["rating"] = json!(9);
    let foreign = acceptance("eve");
    let events = json!([known, new, unknown, wrong, foreign, "no event", new]);
    let response = app.post(&ada, BATCH, &json!({ "events": events })).await;
    assert_eq!(response.status, StatusCode::ACCEPTED);
    let counts = ["queued", "duplicates", "rejected", "failed"];
    assert_eq!(
        counts.map(|name| response.body[name].as_u64()),
        [1, 2, 4, 0].map(Some)
    );
    let results = response.body["results"].as_array().unwrap();
    let outcomes: Vec<_> = results
        .iter()
        .map(|result| {
            let status = result["status"].as_str().unwrap();
            let pointer = &result["error"]["errors"][0]["pointer"];
            (status, result["error"]["status"].as_u64(), pointer.as_str())
        })
        .collect();
    assert_eq!(
        outcomes,
        [
            ("duplicate", None, None),
            ("queued", None, None),
            ("rejected", Some(422), Some("/events/2/feedbackType")),
            ("rejected", Some(400), Some("/events/3/data/rating")),
            ("rejected", Some(403), Some("/events/4")),
            ("rejected", Some(400), Some("/events/5")),
            ("duplicate", None, None),
        ]
    );
    assert_eq!(results[1]["feedbackId"], new["feedbackId"]);
    let key = results[1]["dedupeKey"].as_str().unwrap();
    assert!(key.starts_with("ada:artifact-"), "{key}");
    // A queued event of a batch is processed like any other.
    let outcome = app.outcome(&ada, &id(&new)).await;
    assert_eq!(outcome["status"], "processed");
    let rejected = app.get(&ada, &format!("/v1/feedback/{}", id(&wrong))).await;
    assert_eq!(rejected.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_batch_is_limited_to_1000_events_and_4_mib() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    for body in [
        json!({}),
        json!([]),
        json!({"events": {}}),
        json!({"events": []}),
        json!({"events": vec![0; 1_001]}),
    ] {
        let response = app.post(&ada, BATCH, &body).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST);
        assert!(response.body["errors"][0]["pointer"].is_string());
    }
    let large = json!({"events": ["x".repeat(4 * 1024 * 1024)]});
    let response = app.post(&ada, BATCH, &large).await;
    assert_eq!(response.status, StatusCode::PAYLOAD_TOO_LARGE);

    let events: Vec<_> = (0..1_000).map(|_| acceptance("ada")).collect();
    let response = app.post(&ada, BATCH, &json!({ "events": events })).await;
    assert_eq!(response.body["queued"], 1_000);
    let again = app.post(&ada, BATCH, &json!({ "events": events })).await;
    assert_eq!(again.body["duplicates"], 1_000);
}

/// Sends a message to the ingest queue.
async fn send(app: &TestApp, body: &str, tenant: Option<&str>) {
    let send = app.bundle.clients.sqs.send_message();
    let send = send.queue_url(&app.bundle.queues.ingest).message_body(body);
    let send = match tenant {
        None => send,
        Some(tenant) => {
            let attribute = MessageAttributeValue::builder()
                .data_type("String")
                .string_value(tenant);
            send.message_attributes("tenant", attribute.build().unwrap())
        }
    };
    send.send().await.unwrap();
}

/// Waits for `count` dead letters, and returns their bodies and reasons.
async fn dead_letters(
    sqs: &aws_sdk_sqs::Client,
    queue: &str,
    count: usize,
) -> Vec<(String, String)> {
    let mut dead_letters: Vec<Message> = Vec::new();
    while dead_letters.len() < count {
        let received = sqs.receive_message();
        let received = received
            .queue_url(queue)
            .message_attribute_names("All")
            .visibility_timeout(60)
            .max_number_of_messages(10)
            .wait_time_seconds(5);
        dead_letters.extend(received.send().await.unwrap().messages.unwrap_or_default());
    }
    let with_reason = |message: &Message| {
        let reason = &message.message_attributes().unwrap()["reason"];
        let reason = reason.string_value().unwrap().to_owned();
        (message.body().unwrap().to_owned(), reason)
    };
    let mut with_reasons: Vec<_> = dead_letters.iter().map(with_reason).collect();
    with_reasons.sort();
    with_reasons
}

#[tokio::test]
async fn the_ingest_queue_accepts_one_event_or_many_of_any_user() {
    let app = TestApp::start().await;
    let [one, two, three] = ["ada", "eve", "bob"].map(acceptance);
    send(&app, &one.to_string(), Some("acme")).await;
    let many = json!({"events": [two, three]}).to_string();
    send(&app, &many, Some("acme")).await;
    // The queue delivers at least once.
    send(&app, &many, Some("acme")).await;
    for event in [&one, &two, &three] {
        let token = app.token(event["userId"].as_str().unwrap());
        eventually(|| async {
            let found = app
                .get(&token, &format!("/v1/feedback/{}", id(event)))
                .await;
            found.status.is_success().then_some(())
        })
        .await;
    }
}

/// The running bundle removes raw data from its files; no restart is needed.
#[tokio::test]
async fn an_anonymous_event_from_the_queue_leaves_no_raw_data_in_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let app = TestApp::on(Some(folder.path().to_owned())).await;
    let raw = ["ada.lovelace", "session-of-ada", "ada@example.org"];
    let mut events = Vec::new();
    for _ in 0..40 {
        let mut event = acceptance(raw[0]);
        event["sessionId"] = json!(raw[1]);
        event["privacyFlags"] = json!({"anonymize": true});
        event["data"]["comment"] = json!(format!("Write to {}, {}", raw[2], "x ".repeat(900)));
        send(&app, &event.to_string(), Some("acme")).await;
        events.push(event);
    }
    // A rejected event is removed from the queue, too.
    let mut bad = events[0].clone();
    bad["data"]["rating"] = json!(9);
    send(&app, &bad.to_string(), Some("acme")).await;
    let ada = app.token(raw[0]);
    for event in &events {
        eventually(|| async {
            let path = format!("/v1/feedback/{}", id(event));
            let found = app.get(&ada, &path).await;
            found.status.is_success().then_some(())
        })
        .await;
    }
    eventually(|| async {
        let found = found_in_files(folder.path(), &raw);
        found.is_none().then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_queued_event_cannot_use_the_name_of_a_pseudonym() {
    let app = TestApp::start().await;
    let event = acceptance("anon-0123456789abcdef0123456789abcdef");
    send(&app, &event.to_string(), Some("acme")).await;
    let queue = &app.bundle.queues.ingest_dead_letters;
    let dead_letters = dead_letters(&app.bundle.clients.sqs, queue, 1).await;
    let (body, reason) = &dead_letters[0];
    assert_eq!(*body, event.to_string());
    let reserved = "invalid_request: /userId must not begin with anon-, as pseudonyms do";
    assert_eq!(reason, reserved);
}

#[tokio::test]
async fn a_message_that_is_not_an_event_goes_to_the_dlq_with_its_reason() {
    let app = TestApp::start().await;
    let good = acceptance("ada");
    let mut bad = acceptance("ada");
    bad["data"]["rating"] = json!(9);
    let mut anonymous = bad.clone();
    anonymous["privacyFlags"] = json!({"anonymize": true});
    anonymous["userId"] = json!("raw-name");
    let events = json!({"events": [bad, good, anonymous]}).to_string();
    send(&app, &events, Some("acme")).await;
    send(&app, "no json", Some("acme")).await;
    send(
        &app,
        r#"{"userId": "raw-name", "privacyFlags": {"anonymize":"#,
        Some("acme"),
    )
    .await;
    send(&app, &good.to_string(), None).await;

    let queue = &app.bundle.queues.ingest_dead_letters;
    let dead_letters = dead_letters(&app.bundle.clients.sqs, queue, 5).await;
    let text = format!("{dead_letters:?}");
    assert!(!text.contains("raw-name"), "{text}");
    let reason_of = |body: &str| {
        let found = dead_letters.iter().find(|(message, _)| message == body);
        found.map(|(_, reason)| reason.as_str())
    };
    let rating = "invalid_request: /data/rating must be an integer from 1 to 5";
    assert_eq!(reason_of(&bad.to_string()), Some(rating));
    let missing = "the message attribute tenant is missing";
    assert_eq!(reason_of(&good.to_string()), Some(missing));
    // A message that is not JSON may be a truncated anonymous event, so its body is removed.
    let removed = dead_letters.iter().filter(|(body, _)| body == "[removed]");
    let reasons: Vec<_> = removed.map(|(_, reason)| reason.as_str()).collect();
    assert_eq!(
        reasons,
        ["not JSON: line 1, column 2", "not JSON: line 1, column 52"]
    );
    let shape = dead_letters
        .iter()
        .find(|(message, _)| message.contains("userId\":\"[removed]"));
    let shape: Value = serde_json::from_str(&shape.unwrap().0).unwrap();
    assert_eq!(shape["feedbackId"], anonymous["feedbackId"]);
    // The valid event is processed despite the others.
    let ada = app.token("ada");
    assert_eq!(app.outcome(&ada, &id(&good)).await["status"], "processed");
}

/// A store whose table does not exist.
fn missing_table(engine: &Engine) -> Store {
    Store::new(engine.clients.dynamodb.clone(), "missing")
}

#[tokio::test]
async fn an_event_that_cannot_be_stored_goes_to_the_dlq_without_its_personal_data() {
    let engine = Engine::start().await;
    let ada = acceptance("ada");
    let mut anonymous = acceptance("raw-name");
    anonymous["privacyFlags"] = json!({"anonymize": true});
    let mut batch = ingested(&json!({"events": [ada, anonymous, "no event"]}));
    let attributes = &mut batch.records[0].attributes;
    let count = "ApproximateReceiveCount".to_owned();
    attributes.insert(count.clone(), (LAST_RECEIVES - 1).to_string());
    let ingest = engine.ingest(missing_table(&engine));
    let response = ingest.handle(batch.clone()).await;
    assert_eq!(
        response.batch_item_failures.len(),
        1,
        "the message is redelivered"
    );
    let attributes = &mut batch.records[0].attributes;
    attributes.insert(count, LAST_RECEIVES.to_string());
    let response = ingest.handle(batch).await;
    assert!(response.batch_item_failures.is_empty());

    let queue = &engine.queues.ingest_dead_letters;
    // The invalid event goes to the DLQ once, and not at each receive.
    let dead_letters = dead_letters(&engine.clients.sqs, queue, 3).await;
    assert_eq!(dead_letters.len(), 3, "{dead_letters:?}");
    let ada = ada.to_string();
    let stored = dead_letters.iter().find(|(message, _)| *message == ada);
    assert!(
        stored.unwrap().1.starts_with("PutItem failed"),
        "{dead_letters:?}"
    );
    assert!(
        !format!("{dead_letters:?}").contains("raw-name"),
        "{dead_letters:?}"
    );
    assert!(format!("{dead_letters:?}").contains(&id(&anonymous)));
}

#[tokio::test]
async fn a_dead_letter_carries_its_tenant_so_that_redrive_can_send_it_back() {
    let engine = Engine::start().await;
    let event = acceptance("ada");
    let mut batch = ingested(&event);
    let attributes = &mut batch.records[0].attributes;
    let count = "ApproximateReceiveCount".to_owned();
    attributes.insert(count, LAST_RECEIVES.to_string());
    let ingest = engine.ingest(missing_table(&engine));
    assert!(ingest.handle(batch).await.batch_item_failures.is_empty());
    let received = engine.clients.sqs.receive_message();
    let received = received.queue_url(&engine.queues.ingest_dead_letters);
    let received = received.message_attribute_names("All").send().await;
    let message = received.unwrap().messages.unwrap().remove(0);
    let tenant = &message.message_attributes.as_ref().unwrap()["tenant"];
    assert_eq!(tenant.string_value(), Some("acme"));
    assert_eq!(message.body(), Some(event.to_string().as_str()));
}
