//! Of several events with one dedupe key the first that was received counts, and of one batch, message or file the first
//! by position, in whatever order they are processed.

use axum::Router;
use axum::http::{Method, StatusCode};
use chrono::{TimeDelta, Utc};
use hearback_domain::events::import::PIECE_BYTES;
use hearback_domain::learning::publication::Outcome;
use hearback_tests::engine::Engine;
use hearback_tests::events::{acceptance, ingested, ingested_at};
use hearback_tests::faults::{Fault, Faults};
use hearback_tests::functions::{call, functions_of, stored_event};
use hearback_tests::queue;
use hearback_tests::turns::{event_message, path, turn_body};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::imports;

const TRIES: usize = 40;

/// Pairs of events with one dedupe key: all first events, then all second ones.
struct Pairs {
    events: Vec<Value>,
}

impl Pairs {
    fn new() -> Self {
        let timestamp = json!("2026-11-21T08:30:00Z");
        let firsts = (0..TRIES).map(|_| {
            let mut first = acceptance("ada");
            first["timestamp"] = timestamp.clone();
            // The first event has a longer retention than the second; its claim must be kept as long.
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

    /// Processes every second event before any first one, and asserts that the first counts.
    async fn assert_first_wins(&self, engine: &Engine) {
        let generator = engine.generator(engine.store.clone());
        let last_come_first: Vec<_> = self.events.iter().rev().collect();
        for some in last_come_first.chunks(10) {
            let mut messages = Vec::new();
            for event in some {
                messages.push(event_message(engine, &event["feedbackId"]).await);
            }
            let response = generator.handle(queue::batch(messages)).await;
            assert!(response.batch_item_failures.is_empty());
        }
        let (firsts, seconds) = self.events.split_at(TRIES);
        let mut lost = 0;
        for (first, second) in firsts.iter().zip(seconds) {
            let outcome = |event: &Value| {
                let id = event["feedbackId"].clone();
                async move {
                    let stored = stored_event(&engine.store, &id).await.unwrap();
                    let preceded_by = stored.preceded_by();
                    (stored.outcome.unwrap(), preceded_by)
                }
            };
            let first_id: Uuid = first["feedbackId"].as_str().unwrap().parse().unwrap();
            let processed = matches!(outcome(first).await, (Outcome::Processed(_), None));
            let deduplicated = match outcome(second).await {
                (_, Some(preceded_by)) => preceded_by == first_id,
                (Outcome::Deduplicated { duplicate_of, .. }, None) => duplicate_of == first_id,
                (Outcome::Processed(_), None) => false,
            };
            lost += usize::from(!(processed && deduplicated));
        }
        assert_eq!(
            lost, 0,
            "pairs of {TRIES} in which the first event did not count"
        );
    }
}

#[tokio::test]
async fn the_first_of_two_equal_events_in_a_batch_counts() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine);
    let pairs = Pairs::new();
    let request = (Method::POST, "/v1/feedback/batch");
    let body = json!({"events": pairs.events});
    let (status, response) = call(&functions, ("order-service", ""), request, &body).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    assert_eq!(response["queued"], 2 * TRIES);
    pairs.assert_first_wins(&engine).await;
}

#[tokio::test]
async fn the_first_of_two_equal_events_in_a_message_counts() {
    let engine = Engine::start().await;
    let pairs = Pairs::new();
    let ingest = engine.ingest(engine.store.clone());
    let message = ingested(&json!({"events": pairs.events}));
    // A message may come twice.
    for _ in 0..2 {
        let response = ingest.handle(message.clone()).await;
        assert!(response.batch_item_failures.is_empty());
    }
    pairs.assert_first_wins(&engine).await;
}

#[tokio::test]
async fn the_first_of_two_equal_events_in_two_messages_counts() {
    let engine = Engine::start().await;
    let pairs = Pairs::new();
    let ingest = engine.ingest(engine.store.clone());
    let (firsts, seconds) = pairs.events.split_at(TRIES);
    let sent = Utc::now();
    // The message that was sent last comes first.
    for (sent, events) in [
        (sent, seconds),
        (sent - TimeDelta::milliseconds(10), firsts),
    ] {
        let message = ingested_at(sent, &json!({"events": events}));
        let response = ingest.handle(message).await;
        assert!(response.batch_item_failures.is_empty());
    }
    pairs.assert_first_wins(&engine).await;
}

#[tokio::test]
async fn the_first_of_two_equal_events_in_a_piece_of_a_file_counts() {
    let engine = Engine::start().await;
    let pairs = Pairs::new();
    let lines = pairs.events.iter().map(Value::to_string);
    let file = lines.collect::<Vec<_>>().join("\n").into_bytes();
    let importer = engine.importer(engine.store.clone());
    imports::import_with(&engine, &importer, file, None).await;
    pairs.assert_first_wins(&engine).await;
}

#[tokio::test]
async fn the_first_of_two_equal_events_counts_although_the_piece_was_handed_over_between_them() {
    let engine = Engine::start().await;
    let pairs = Pairs::new();
    let lines = pairs.events.iter().map(Value::to_string);
    let file = lines.collect::<Vec<_>>().join("\n").into_bytes();
    // The first worker fails among the second events; the next worker processes the rest.
    let failing_call = u32::try_from(TRIES + TRIES / 4).unwrap();
    let failing = engine.failing_store(&Faults::at(failing_call, Fault::Unreachable));
    imports::import_with(&engine, &engine.importer(failing), file, None).await;
    let importer = engine.importer(engine.store.clone());
    while imports::step(&engine, &importer, None).await.is_some() {}
    pairs.assert_first_wins(&engine).await;
}

/// Processes one event, as the generator at the end of the queue does.
async fn process(engine: &Engine, event: &Value) {
    let message = event_message(engine, &event["feedbackId"]).await;
    let generator = engine.generator(engine.store.clone());
    let response = generator.handle(queue::batch(vec![message])).await;
    assert!(response.batch_item_failures.is_empty());
}

#[tokio::test]
async fn the_first_of_two_equal_events_in_two_requests_counts() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine);
    let turn = (Method::PUT, path("c", "t"));
    let body = turn_body("a question", "an answer");
    let request = (turn.0, turn.1.as_str());
    let (status, _) = call(&functions, ("order-service", ""), request, &body).await;
    assert_eq!(status, StatusCode::CREATED);
    let mut events = Vec::new();
    for accepted in [true, false, true] {
        let mut event = acceptance("ada");
        event["artifactId"] = json!("artifact-1");
        event["timestamp"] = json!("2026-11-21T08:30:00Z");
        event["data"] = json!({"accepted": accepted, "rating": if accepted { 5 } else { 1 }});
        event["context"]["conversationId"] = json!("c");
        event["context"]["turnId"] = json!("t");
        let submit = (Method::POST, "/v1/feedback/submit");
        let (status, _) = call(&functions, ("order-service", ""), submit, &event).await;
        assert_eq!(status, StatusCode::ACCEPTED);
        events.push(event);
    }
    // The last comes first, and each again.
    for event in events.iter().rev().chain(&events) {
        process(&engine, event).await;
    }
    let read = async |path: String| {
        let request = (Method::GET, path.as_str());
        let (status, body) = call(&functions, ("order-service", ""), request, &Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        body
    };
    let id = |event: &Value| event["feedbackId"].as_str().unwrap().to_owned();
    let first = read(format!("/v1/feedback/{}", id(&events[0]))).await;
    assert_eq!(first["status"], "processed");
    assert_eq!(first["counted"]["as"], "ok");
    // The second was the first for a while: the third is a duplicate of it.
    for (later, earlier) in [(&events[1], &events[0]), (&events[2], &events[1])] {
        let later = read(format!("/v1/feedback/{}", id(later))).await;
        assert_eq!(later["status"], "deduplicated");
        assert_eq!(later["duplicateOf"], id(earlier));
        assert_eq!(later["counted"]["reason"], "deduplicated");
        assert!(later["retractedAt"].is_string(), "{later}");
        assert_eq!(later["replacedBy"], Value::Null);
    }
    // Preferences learned once, from the event that was processed first.
    let preferences = read("/v1/preferences/ada".to_owned()).await;
    let learned = &preferences["artifactPreferences"]["unknown"];
    assert_eq!(learned["sampleCount"], 1, "{preferences}");
    assert_eq!(learned["averageRating"], 5.0);
}

#[tokio::test]
async fn an_event_submitted_after_an_equal_one_was_withdrawn_counts_in_any_order() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine);
    let request = async |method: Method, path: String, body: &Value| {
        call(&functions, ("ada", ""), (method, &path), body).await.0
    };
    let generator = engine.generator(engine.store.clone());
    // In which batches the withdrawn and the next event are processed.
    for order in [
        vec![vec![0, 1]],
        vec![vec![0], vec![1]],
        vec![vec![1], vec![0]],
    ] {
        let withdrawn = acceptance("ada");
        let mut next = withdrawn.clone();
        next["feedbackId"] = json!(Uuid::new_v4());
        let submit = "/v1/feedback/submit".to_owned();
        let status = request(Method::POST, submit.clone(), &withdrawn).await;
        assert_eq!(status, StatusCode::ACCEPTED);
        let path = format!("/v1/feedback/{}", withdrawn["feedbackId"].as_str().unwrap());
        let status = request(Method::DELETE, path, &Value::Null).await;
        assert_eq!(status, StatusCode::NO_CONTENT);
        let status = request(Method::POST, submit, &next).await;
        assert_eq!(status, StatusCode::ACCEPTED);
        let events = [&withdrawn, &next];
        // Each is delivered twice.
        for batch in order.iter().chain(&order) {
            let mut messages = Vec::new();
            for event in batch {
                messages.push(event_message(&engine, &events[*event]["feedbackId"]).await);
            }
            let response = generator.handle(queue::batch(messages)).await;
            assert!(response.batch_item_failures.is_empty());
        }
        let stored = stored_event(&engine.store, &next["feedbackId"]).await;
        let stored = stored.unwrap();
        let outcome = stored.outcome.unwrap();
        assert!(
            matches!(outcome, Outcome::Processed(_)) && stored.retraction.is_none(),
            "{order:?}: {outcome:?}, {:?}",
            stored.retraction
        );
    }
}

/// An event whose worker crashes, and one or two equal ones.
struct Interrupted {
    engine: Engine,
    functions: Router,
    events: Vec<Value>,
}

impl Interrupted {
    async fn new() -> Self {
        let engine = Engine::start().await;
        let functions = functions_of(&engine);
        Self {
            engine,
            functions,
            events: Vec::new(),
        }
    }

    async fn submit(&mut self) {
        let mut event = acceptance("ada");
        event["timestamp"] = json!("2026-11-21T08:30:00Z");
        event["artifactId"] = json!("artifact-1");
        let submit = (Method::POST, "/v1/feedback/submit");
        let (status, _) = call(&self.functions, ("ada", ""), submit, &event).await;
        assert_eq!(status, StatusCode::ACCEPTED);
        self.events.push(event);
    }

    async fn withdraw(&self, event: usize) {
        let id = self.events[event]["feedbackId"].as_str().unwrap();
        let path = format!("/v1/feedback/{id}");
        let request = (Method::DELETE, path.as_str());
        let (status, _) = call(&self.functions, ("ada", ""), request, &Value::Null).await;
        assert_eq!(status, StatusCode::NO_CONTENT);
    }

    async fn process(&self, event: usize) {
        process(&self.engine, &self.events[event]).await;
    }

    async fn process_with(&self, event: usize, faults: &Faults) {
        let message = event_message(&self.engine, &self.events[event]["feedbackId"]).await;
        let generator = self.engine.generator(self.engine.failing_store(faults));
        generator.handle(queue::batch(vec![message])).await;
    }

    /// The events that were processed, and from how many preferences learned.
    async fn counted(&self) -> (Vec<usize>, u64) {
        let mut processed = Vec::new();
        for (at, event) in self.events.iter().enumerate() {
            let stored = stored_event(&self.engine.store, &event["feedbackId"]).await;
            if matches!(stored.unwrap().outcome.unwrap(), Outcome::Processed(_)) {
                processed.push(at);
            }
        }
        let request = (Method::GET, "/v1/preferences/ada");
        let (_, body) = call(&self.functions, ("ada", ""), request, &Value::Null).await;
        let learned = &body["artifactPreferences"]["unknown"]["sampleCount"];
        (processed, learned.as_u64().unwrap())
    }
}

#[tokio::test]
async fn preferences_learn_from_an_event_withdrawn_during_processing_only_if_it_is_processed() {
    let calls = Faults::at_each_call(Fault::Crashed, async |faults| {
        let mut test = Interrupted::new().await;
        test.submit().await;
        test.withdraw(0).await;
        test.process_with(0, faults).await;
        test.submit().await;
        for event in [1, 0, 1] {
            test.process(event).await;
        }
        let (processed, learned) = test.counted().await;
        assert!(processed.contains(&1), "{faults:?}: {processed:?}");
        assert_eq!(processed.len() as u64, learned, "{faults:?}: {processed:?}");
    })
    .await;
    assert!(calls > 4, "{calls}");
}

#[tokio::test]
async fn a_retracted_duplicate_never_counts_again() {
    let calls = Faults::at_each_call(Fault::Crashed, async |faults| {
        let mut test = Interrupted::new().await;
        test.submit().await;
        test.submit().await;
        // The first takes the place of the second, is withdrawn, and leaves it to the third.
        test.process_with(1, faults).await;
        test.process(0).await;
        test.withdraw(0).await;
        test.submit().await;
        for event in [2, 1, 0, 2] {
            test.process(event).await;
        }
        let mut counting = 0;
        for event in &test.events[1..] {
            let stored = stored_event(&test.engine.store, &event["feedbackId"]).await;
            let stored = stored.unwrap();
            let processed = matches!(stored.outcome, Some(Outcome::Processed(_)));
            counting += u32::from(processed && stored.retraction.is_none());
        }
        let (processed, learned) = test.counted().await;
        assert_eq!(counting, 1, "{faults:?}: {processed:?}");
        assert_eq!(learned, 2, "{faults:?}: {processed:?}");
    })
    .await;
    assert!(calls > 4, "{calls}");
}

#[tokio::test]
async fn the_first_of_two_equal_events_in_two_pieces_of_a_file_counts() {
    let engine = Engine::start().await;
    let pairs = Pairs::new();
    let lines = pairs.events.iter().map(Value::to_string);
    // Blank space that divides the file between the first events and the second ones.
    let gap = " ".repeat(1023) + "\n";
    let lines: Vec<_> = lines.collect();
    let (firsts, seconds) = lines.split_at(TRIES);
    let pieces = usize::try_from(PIECE_BYTES).unwrap() / gap.len() + 1;
    let file = [firsts.join("\n"), gap.repeat(pieces), seconds.join("\n")].join("\n");
    let importer = engine.importer(engine.store.clone());
    imports::import_with(&engine, &importer, file.into_bytes(), None).await;
    while imports::step(&engine, &importer, None).await.is_some() {}
    pairs.assert_first_wins(&engine).await;
}

#[tokio::test]
async fn an_event_that_is_not_stored_does_not_claim_its_dedupe_key() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine);
    // The id is known with another dedupe key, so that the batch stores nothing under it.
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
    let (_, response) = call(&functions, ("order-service", ""), batch, &body).await;
    assert_eq!(response["results"][1]["status"], "duplicate");
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
