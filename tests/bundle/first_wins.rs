//! Of several events with one dedupe key in one batch, message or file, the first by position counts, whichever
//! of them is processed first.

use axum::http::{Method, StatusCode};
use hearback_domain::publication::Outcome;
use hearback_tests::engine::Engine;
use hearback_tests::events::{acceptance, ingested};
use hearback_tests::faults::{Fault, Faults};
use hearback_tests::functions::{call, functions_of, stored_event};
use hearback_tests::queue;
use hearback_tests::turns::event_message;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::imports;

const TRIES: usize = 200;

/// Pairs of events with one dedupe key: first all that come first, then all that come second.
struct Pairs {
    events: Vec<Value>,
}

impl Pairs {
    fn new() -> Self {
        let timestamp = json!("2026-11-21T08:30:00Z");
        let firsts = (0..TRIES).map(|_| {
            let mut first = acceptance("ada");
            first["timestamp"] = timestamp.clone();
            // The first is kept for longer than the second, and so has to be its claim.
            first["privacyFlags"]["retentionDays"] = json!(200);
            first
        });
        let firsts: Vec<_> = firsts.collect();
        let seconds = firsts.iter().map(|first| {
            let mut second = first.clone();
            second["feedbackId"] = json!(Uuid::new_v4());
            second["privacyFlags"]["retentionDays"] = json!(30);
            second
        });
        let seconds: Vec<_> = seconds.collect();
        Self {
            events: [firsts, seconds].concat(),
        }
    }

    /// Has the generator process every second event before any first one, and asserts that the first counts.
    async fn assert_first_wins(&self, engine: &Engine) {
        let generator = engine.generator(engine.store.clone());
        let last_come_first: Vec<_> = self.events.iter().rev().collect();
        for some in last_come_first.chunks(10) {
            let mut messages = Vec::new();
            for event in some {
                messages.push(event_message(engine, &event["feedbackId"]).await);
            }
            let answer = generator.handle(queue::batch(messages)).await;
            assert!(answer.batch_item_failures.is_empty());
        }
        let (firsts, seconds) = self.events.split_at(TRIES);
        let mut lost = 0;
        for (first, second) in firsts.iter().zip(seconds) {
            let outcome = |event: &Value| {
                let id = event["feedbackId"].clone();
                async move {
                    let stored = stored_event(&engine.store, &id).await.unwrap();
                    stored.outcome.unwrap()
                }
            };
            let first_id: Uuid = first["feedbackId"].as_str().unwrap().parse().unwrap();
            let processed = matches!(outcome(first).await, Outcome::Processed(_));
            let deduplicated = matches!(
                outcome(second).await,
                Outcome::Deduplicated { duplicate_of, .. } if duplicate_of == first_id
            );
            lost += usize::from(!(processed && deduplicated));
        }
        assert_eq!(
            lost, 0,
            "of {TRIES} pairs so many were not won by the first"
        );
    }
}

#[tokio::test]
async fn of_two_equal_acts_in_one_batch_the_first_counts() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine);
    let pairs = Pairs::new();
    let request = (Method::POST, "/v1/feedback/batch");
    let body = json!({"events": pairs.events});
    let (status, told) = call(&functions, ("order-service", ""), request, &body).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    assert_eq!(told["queued"], 2 * TRIES);
    pairs.assert_first_wins(&engine).await;
}

#[tokio::test]
async fn of_two_equal_acts_in_one_message_the_first_counts() {
    let engine = Engine::start().await;
    let pairs = Pairs::new();
    let ingest = engine.ingest(engine.store.clone());
    let message = ingested(&json!({"events": pairs.events}));
    // A message may come twice.
    for _ in 0..2 {
        let answer = ingest.handle(message.clone()).await;
        assert!(answer.batch_item_failures.is_empty());
    }
    pairs.assert_first_wins(&engine).await;
}

#[tokio::test]
async fn of_two_equal_acts_in_one_piece_of_a_file_the_first_counts() {
    let engine = Engine::start().await;
    let pairs = Pairs::new();
    let lines = pairs.events.iter().map(Value::to_string);
    let file = lines.collect::<Vec<_>>().join("\n").into_bytes();
    let importer = engine.importer(engine.store.clone());
    imports::import_with(&engine, &importer, file, None).await;
    pairs.assert_first_wins(&engine).await;
}

#[tokio::test]
async fn of_two_equal_acts_in_a_piece_that_was_handed_over_between_them_the_first_counts() {
    let engine = Engine::start().await;
    let pairs = Pairs::new();
    let lines = pairs.events.iter().map(Value::to_string);
    let file = lines.collect::<Vec<_>>().join("\n").into_bytes();
    // The first worker fails amid the second ones, of which the next takes the rest.
    let amid = u32::try_from(TRIES + TRIES / 4).unwrap();
    let failing = engine.failing_store(&Faults::at(amid, Fault::Unreachable));
    imports::import_with(&engine, &engine.importer(failing), file, None).await;
    let importer = engine.importer(engine.store.clone());
    while imports::step(&engine, &importer, None).await.is_some() {}
    pairs.assert_first_wins(&engine).await;
}

#[tokio::test]
async fn an_event_that_is_not_stored_is_first_of_nothing() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine);
    // Known with another key, so that nothing of this batch is stored under its id.
    let known = acceptance("ada");
    let submit = (Method::POST, "/v1/feedback/submit");
    call(&functions, ("order-service", ""), submit, &known).await;
    let mut broken = acceptance("ada");
    broken["data"]["rating"] = json!(9);
    let mut repeat = acceptance("ada");
    repeat["feedbackId"] = known["feedbackId"].clone();
    let mut only = repeat.clone();
    only["feedbackId"] = json!(Uuid::new_v4());
    let mut third = only.clone();
    third["feedbackId"] = json!(Uuid::new_v4());
    let batch = (Method::POST, "/v1/feedback/batch");
    let body = json!({"events": [broken, repeat, only, third]});
    let (_, told) = call(&functions, ("order-service", ""), batch, &body).await;
    assert_eq!(told["results"][1]["status"], "duplicate");
    let generator = engine.generator(engine.store.clone());
    let messages = [
        event_message(&engine, &third["feedbackId"]).await,
        event_message(&engine, &only["feedbackId"]).await,
    ];
    for message in messages {
        generator.handle(queue::batch([message])).await;
    }
    let outcome = stored_event(&engine.store, &only["feedbackId"]).await;
    let outcome = outcome.unwrap().outcome.unwrap();
    assert!(matches!(outcome, Outcome::Processed(_)), "{outcome:?}");
}
