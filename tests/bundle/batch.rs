//! Many events in one request, and by the ingest queue.

use aws_sdk_sqs::types::{Message, MessageAttributeValue};
use hearback_lambda::queue::LAST_RECEIVES;
use hearback_storage::Store;
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::engine::Engine;
use hearback_tests::events::{acceptance, id, ingested};
use reqwest::StatusCode;
use serde_json::{Value, json};

const BATCH: &str = "/v1/feedback/batch";

#[tokio::test]
async fn one_bad_event_harms_no_other() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let [known, new, mut unknown, mut wrong] = [(); 4].map(|()| acceptance("ada"));
    app.submit(&ada, &known).await;
    unknown["feedbackType"] = json!("shrug");
    wrong["data"]["rating"] = json!(9);
    let foreign = acceptance("eve");
    let events = json!([known, new, unknown, wrong, foreign, "no event", new]);
    let answer = app.post(&ada, BATCH, &json!({ "events": events })).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED);
    let counts = ["queued", "duplicates", "rejected", "failed"];
    assert_eq!(
        counts.map(|name| answer.body[name].as_u64()),
        [1, 2, 4, 0].map(Some)
    );
    let results = answer.body["results"].as_array().unwrap();
    let told: Vec<_> = results
        .iter()
        .map(|result| {
            let status = result["status"].as_str().unwrap();
            let pointer = &result["error"]["errors"][0]["pointer"];
            (status, result["error"]["status"].as_u64(), pointer.as_str())
        })
        .collect();
    assert_eq!(
        told,
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
    // What was queued is worked off like any other.
    let outcome = app.outcome(&ada, &id(&new)).await;
    assert_eq!(outcome["status"], "processed");
    let refused = app.get(&ada, &format!("/v1/feedback/{}", id(&wrong))).await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_batch_has_1_to_1000_events_and_4_mib() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    for body in [
        json!({}),
        json!([]),
        json!({"events": {}}),
        json!({"events": []}),
        json!({"events": vec![0; 1_001]}),
    ] {
        let answer = app.post(&ada, BATCH, &body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
        assert!(answer.body["errors"][0]["pointer"].is_string());
    }
    let large = json!({"events": ["x".repeat(4 * 1024 * 1024)]});
    let answer = app.post(&ada, BATCH, &large).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);

    let events: Vec<_> = (0..1_000).map(|_| acceptance("ada")).collect();
    let answer = app.post(&ada, BATCH, &json!({ "events": events })).await;
    assert_eq!(answer.body["queued"], 1_000);
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

/// Waits for so many dead letters, and answers each with its reason.
async fn dead_letters(
    sqs: &aws_sdk_sqs::Client,
    queue: &str,
    count: usize,
) -> Vec<(String, String)> {
    let mut letters: Vec<Message> = Vec::new();
    while letters.len() < count {
        let received = sqs.receive_message();
        let received = received
            .queue_url(queue)
            .message_attribute_names("All")
            .visibility_timeout(60)
            .max_number_of_messages(10)
            .wait_time_seconds(5);
        letters.extend(received.send().await.unwrap().messages.unwrap_or_default());
    }
    let told = |letter: &Message| {
        let reason = &letter.message_attributes().unwrap()["reason"];
        let reason = reason.string_value().unwrap().to_owned();
        (letter.body().unwrap().to_owned(), reason)
    };
    let mut told: Vec<_> = letters.iter().map(told).collect();
    told.sort();
    told
}

#[tokio::test]
async fn the_ingest_queue_takes_one_event_or_many_of_any_user() {
    let app = TestApp::start().await;
    let [one, two, three] = ["ada", "eve", "bob"].map(acceptance);
    send(&app, &one.to_string(), Some("acme")).await;
    let many = json!({"events": [two, three]}).to_string();
    send(&app, &many, Some("acme")).await;
    // Twice: at least once is what a queue promises.
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

#[tokio::test]
async fn what_is_no_event_is_a_dead_letter_with_its_reason() {
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
    let letters = dead_letters(&app.bundle.clients.sqs, queue, 5).await;
    let text = format!("{letters:?}");
    assert!(!text.contains("raw-name"), "{text}");
    let reason_of = |body: &str| {
        let found = letters.iter().find(|(letter, _)| letter == body);
        found.map(|(_, reason)| reason.as_str())
    };
    let rating = "invalid_request: /data/rating must be an integer from 1 to 5";
    assert_eq!(reason_of(&bad.to_string()), Some(rating));
    let missing = "the message attribute tenant is missing";
    assert_eq!(reason_of(&good.to_string()), Some(missing));
    // What is no JSON may be an anonymous event, cut off before it says so.
    let removed = letters.iter().filter(|(body, _)| body == "[removed]");
    let reasons: Vec<_> = removed.map(|(_, reason)| reason.as_str()).collect();
    assert_eq!(
        reasons,
        ["not JSON: line 1, column 2", "not JSON: line 1, column 52"]
    );
    let shape = letters
        .iter()
        .find(|(letter, _)| letter.contains("userId\":\"[removed]"));
    let shape: Value = serde_json::from_str(&shape.unwrap().0).unwrap();
    assert_eq!(shape["feedbackId"], anonymous["feedbackId"]);
    // Its neighbours harmed it not.
    let ada = app.token("ada");
    assert_eq!(app.outcome(&ada, &id(&good)).await["status"], "processed");
}

/// A table that is not there.
fn nowhere(engine: &Engine) -> Store {
    Store::new(engine.clients.dynamodb.clone(), "nowhere")
}

#[tokio::test]
async fn what_can_never_be_stored_is_a_dead_letter_without_what_is_to_be_anonymous() {
    let engine = Engine::start().await;
    let ada = acceptance("ada");
    let mut anonymous = acceptance("raw-name");
    anonymous["privacyFlags"] = json!({"anonymize": true});
    let mut batch = ingested(&json!({"events": [ada, anonymous, "no event"]}));
    let attributes = &mut batch.records[0].attributes;
    let count = "ApproximateReceiveCount".to_owned();
    attributes.insert(count.clone(), (LAST_RECEIVES - 1).to_string());
    let ingest = engine.ingest(nowhere(&engine));
    let answer = ingest.handle(batch.clone()).await;
    assert_eq!(answer.batch_item_failures.len(), 1, "it comes again");
    let attributes = &mut batch.records[0].attributes;
    attributes.insert(count, LAST_RECEIVES.to_string());
    let answer = ingest.handle(batch).await;
    assert!(answer.batch_item_failures.is_empty());

    let queue = &engine.queues.ingest_dead_letters;
    // What is no event is told once, and not each time that the message comes.
    let letters = dead_letters(&engine.clients.sqs, queue, 3).await;
    assert_eq!(letters.len(), 3, "{letters:?}");
    let ada = ada.to_string();
    let stored = letters.iter().find(|(letter, _)| *letter == ada);
    assert!(
        stored.unwrap().1.starts_with("PutItem failed"),
        "{letters:?}"
    );
    assert!(!format!("{letters:?}").contains("raw-name"), "{letters:?}");
    assert!(format!("{letters:?}").contains(&id(&anonymous)));
}

#[tokio::test]
async fn a_dead_letter_has_its_tenant_so_that_it_can_be_moved_back() {
    let engine = Engine::start().await;
    let event = acceptance("ada");
    let mut batch = ingested(&event);
    let attributes = &mut batch.records[0].attributes;
    let count = "ApproximateReceiveCount".to_owned();
    attributes.insert(count, LAST_RECEIVES.to_string());
    let ingest = engine.ingest(nowhere(&engine));
    assert!(ingest.handle(batch).await.batch_item_failures.is_empty());
    let received = engine.clients.sqs.receive_message();
    let received = received.queue_url(&engine.queues.ingest_dead_letters);
    let received = received.message_attribute_names("All").send().await;
    let letter = received.unwrap().messages.unwrap().remove(0);
    let tenant = &letter.message_attributes.as_ref().unwrap()["tenant"];
    assert_eq!(tenant.string_value(), Some("acme"));
    assert_eq!(letter.body(), Some(event.to_string().as_str()));
}
