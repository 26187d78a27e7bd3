//! Costs of events: submitting, importing and processing them, and erasing a user.

use axum::http::{Method, StatusCode};
use hearback_tests::engine::Cost;
use hearback_tests::events::{acceptance, ingested};
use hearback_tests::queue;
use hearback_tests::turns::{path, turn_body};
use serde_json::{Value, json};

use super::Metered;
use crate::erasure_steps::world::World;
use crate::{erasure, imports};

#[tokio::test]
async fn submitting_an_event_costs_one_call_and_one_write_unit() {
    let metered = Metered::start().await;
    let submit = "/v1/feedback/submit";
    let event = acceptance("ada");
    let spent = metered.call(Method::POST, submit, &event).await;
    assert_eq!(spent, (StatusCode::ACCEPTED, Cost::calls(1).writes(1.0)));
    // A repeat is rejected by the same single call.
    let spent = metered.call(Method::POST, submit, &event).await;
    assert_eq!(spent, (StatusCode::CONFLICT, Cost::calls(1).writes(1.0)));
    // An invalid event is rejected without a call.
    let mut broken = acceptance("ada");
    broken["data"]["rating"] = json!(9);
    let spent = metered.call(Method::POST, submit, &broken).await;
    assert_eq!(spent, (StatusCode::BAD_REQUEST, Cost::FREE));
    let spent = metered.call(Method::POST, submit, &acceptance("eve")).await;
    assert_eq!(spent, (StatusCode::FORBIDDEN, Cost::FREE));
}

#[tokio::test]
async fn an_event_costs_one_write_unit_by_batch_queue_or_file() {
    let metered = Metered::start().await;
    let events: Vec<_> = (0..100).map(|_| acceptance("ada")).collect();
    let body = json!({ "events": events });
    for _ in 0..2 {
        // New events, then repeats.
        let (status, spent) = metered
            .call(Method::POST, "/v1/feedback/batch", &body)
            .await;
        assert_eq!(status, StatusCode::ACCEPTED);
        assert_eq!(spent, Cost::calls(100).writes(100.0));
    }
    let engine = &metered.engine;
    let ingest = engine.ingest(engine.store_with(metered.meter.clone()));
    let batch = ingested(&json!({"events": [acceptance("ada"), acceptance("eve")]}));
    assert!(ingest.handle(batch).await.batch_item_failures.is_empty());
    assert_eq!(metered.meter.take(), Cost::calls(2).writes(2.0));

    let lines: Vec<_> = (0..100).map(|_| acceptance("ada").to_string()).collect();
    let importer = engine.importer(engine.store_with(metered.meter.clone()));
    imports::import_with(engine, &importer, lines.join("\n").into_bytes(), None).await;
    let lines = Cost::calls(100).writes(100.0);
    // The import's row is created, gets its number of pieces, is read, and gets its report. The piece is
    // read, finished in a transaction of two, and read for the report.
    let import = Cost::calls(9).reads(5.0).writes(7.0);
    assert_eq!(metered.meter.take(), lines + import);
}

#[tokio::test]
async fn processing_an_event_costs_six_write_units_and_one_read_unit() {
    let metered = Metered::start().await;
    let event = acceptance("ada");
    metered
        .call(Method::POST, "/v1/feedback/submit", &event)
        .await;
    // Reads the newest preference version; puts the claim, the version, and the outcome, which is in two feeds and in
    // the hour of its project.
    assert_eq!(
        metered.generate(std::slice::from_ref(&event)).await,
        Cost::calls(5).reads(1.0).writes(6.0)
    );
    // A redelivery reads the version, finds its own claim, and finds the outcome.
    assert_eq!(
        metered.generate(&[event]).await,
        Cost::calls(4).reads(1.5).writes(1.0)
    );
}

#[tokio::test]
async fn processing_an_event_about_a_turn_also_updates_its_turn_and_activity_markers() {
    let metered = Metered::start().await;
    metered
        .call(Method::PUT, &path("c", "t"), &turn_body("a", "b"))
        .await;
    let about = |artifact: &str| {
        let mut event = acceptance("ada");
        event["artifactId"] = json!(artifact);
        event["timestamp"] = json!("2026-01-04T09:00:00Z");
        event["context"]["conversationId"] = json!("c");
        event["context"]["turnId"] = json!("t");
        event
    };
    let mut seen = Vec::new();
    for artifact in ["a", "b"] {
        let event = about(artifact);
        metered
            .call(Method::POST, "/v1/feedback/submit", &event)
            .await;
        seen.push(metered.generate(&[event]).await);
    }
    let event = Cost::calls(5).reads(1.0).writes(6.0);
    // Reads the turn and the comment. Writes the markers of the month (1) and the minute (2), the row that the
    // event counts by (1), and the turn's status with its entries in two indexes (3).
    let first_about_the_turn = Cost::calls(6).reads(2.0).writes(7.0);
    assert_eq!(seen[0], event + first_about_the_turn);
    // Another process finds both markers, and an earlier act that sets the status: its first update fails (1), and the
    // second one adds the act to a row that then has more than 1 KB (2), and leaves the index entries.
    let later_about_the_turn = Cost::calls(7).reads(2.0).writes(6.0);
    assert_eq!(seen[1], event + later_about_the_turn);
}

#[tokio::test]
async fn withdrawing_an_event_costs_one_write_call_and_the_units_of_what_it_undoes() {
    let metered = Metered::start().await;
    metered
        .call(Method::PUT, &path("c", "t"), &turn_body("a", "b"))
        .await;
    let mut event = acceptance("ada");
    event["context"]["conversationId"] = json!("c");
    event["context"]["turnId"] = json!("t");
    metered
        .call(Method::POST, "/v1/feedback/submit", &event)
        .await;
    metered.generate(std::slice::from_ref(&event)).await;
    let path = format!("/v1/feedback/{}", event["feedbackId"].as_str().unwrap());
    // Reads the event with its outcome, and as what it counts for the turn.
    let read = metered.call(Method::GET, &path, &Value::Null).await;
    assert_eq!(read, (StatusCode::OK, Cost::calls(2).reads(2.0)));
    // Reads the event with its outcome, whether the user is being erased, and the turn. Writes the retraction, which is
    // larger than 1 KB with the event's core (2), with its entries in the author index and in two feeds (3).
    let withdrawn = metered.call(Method::DELETE, &path, &Value::Null).await;
    assert_eq!(
        withdrawn,
        (
            StatusCode::NO_CONTENT,
            Cost::calls(4).reads(3.0).writes(5.0)
        )
    );
    let engine = &metered.engine;
    let generator = engine.generator(engine.store_with(metered.meter.clone()));
    let messages = queue::batch(queue::submitted(engine, "RETRACTION").await);
    let response = generator.handle(messages).await;
    assert!(response.batch_item_failures.is_empty());
    // Reads the erasure and the turn. Finds the markers of the month (1) and the minute (1), and the row that the event
    // counts by (1), which it replaces (1). Finds the act that sets the turn's status (1), and removes the status with its
    // index entry (2), and changes that by hour (1).
    assert_eq!(metered.meter.take(), Cost::calls(8).reads(1.5).writes(8.0));
    let again = metered.call(Method::DELETE, &path, &Value::Null).await;
    assert_eq!(again, (StatusCode::NO_CONTENT, Cost::calls(2).reads(2.0)));
}

#[tokio::test]
async fn the_outcome_of_a_reaction_with_labels_and_a_trace_fits_two_write_units() {
    let metered = Metered::start().await;
    let turn = path(
        "0b9c7f1e-2d43-4c8a-9f10-6a5d3e8b7c21",
        "7e1d5c3b-9a80-4f6e-8b27-1c4d0f9e6a53",
    );
    let mut body = turn_body("How do I return an item?", "Within 30 days.");
    body["trace_id"] = json!("4bf92f3577b34da6a3ce929d0e0e4736");
    body["span_id"] = json!("00f067aa0ba902b7");
    body["artifact_type"] = json!("answer");
    body["task_type"] = json!("customer-support");
    body["agent_id"] = json!("support-agent");
    body["labels"] = json!({"model": "claude-opus-4-1", "prompt_version": "2026-11-21.3"});
    metered.call(Method::PUT, &turn, &body).await;
    let reaction = json!({"reaction": "not_ok", "text": "That is not what I asked."});
    let feedback = format!("{turn}/feedback");
    metered.call(Method::POST, &feedback, &reaction).await;
    let engine = &metered.engine;
    let generator = engine.generator(engine.store_with(metered.meter.clone()));
    let reactions = queue::batch(queue::submitted(engine, "REACTION#").await);
    generator.handle(reactions).await;
    metered.meter.take();
    let events = queue::batch(queue::submitted(engine, "EVENT").await);
    assert_eq!(events.records.len(), 1);
    generator.handle(events).await;
    // Claim, version and outcome: a reward and a policy update, all that is published with them, and the facts that insights
    // count (2). And its entries in the two feeds and in the hour of its project.
    assert_eq!(metered.meter.take(), Cost::calls(5).reads(1.0).writes(7.0));
}

#[tokio::test]
async fn a_duplicate_costs_a_rejected_claim_and_an_indexed_outcome() {
    let metered = Metered::start().await;
    let first = acceptance("ada");
    let mut second = first.clone();
    second["feedbackId"] = json!(uuid::Uuid::new_v4());
    for event in [&first, &second] {
        metered
            .call(Method::POST, "/v1/feedback/submit", event)
            .await;
    }
    metered.generate(&[first]).await;
    assert_eq!(
        metered.generate(&[second]).await,
        Cost::calls(5).reads(2.0).writes(3.0)
    );
}

#[tokio::test]
async fn an_erasure_matches_the_cost_card() {
    let metered = Metered::start().await;
    let engine = &metered.engine;
    let data = erasure::data("ada");
    let erase = || metered.call(Method::DELETE, &data, &Value::Null);
    let pass = async || {
        let store = engine.store_with(metered.meter.clone());
        let eraser = engine.eraser(store, engine.blobs());
        World::of(engine).finish_by(&eraser).await;
        metered.meter.take()
    };
    // Checks for an open erasure, and opens one for the user and the pseudonym.
    let accepted = (StatusCode::ACCEPTED, Cost::calls(2).reads(1.0).writes(4.0));
    assert_eq!(erase().await, accepted);
    // Reads the erasure, lists files and rows five times each for both names, and records the end.
    let nothing = pass().await;
    assert_eq!(nothing, Cost::calls(22).reads(19.0).writes(4.0));
    let events: Vec<_> = (0..10).map(|_| acceptance("ada")).collect();
    for event in &events {
        metered
            .call(Method::POST, "/v1/feedback/submit", event)
            .await;
    }
    metered.generate(&events).await;
    erase().await;
    // Two passes. The first records that it found something. It checks before each of two pages that the events still
    // have to be removed, and once to which user they belong. It removes them in two transactions, and the preference
    // version learned from them in a third.
    let (listings, removals, empty_pass) = (21, 7, 22);
    assert_eq!(
        pass().await,
        Cost::calls(listings + removals + empty_pass)
            .reads(50.0)
            .writes(123.0)
    );
    // An event that is not processed yet: reads the erasure twice, and removes the event in a transaction.
    let late = acceptance("ada");
    metered
        .call(Method::POST, "/v1/feedback/submit", &late)
        .await;
    erase().await;
    assert_eq!(
        metered.generate(&[late]).await,
        Cost::calls(3).reads(1.5).writes(8.0)
    );
}

#[tokio::test]
async fn the_events_of_one_user_in_a_batch_share_one_preference_version() {
    let metered = Metered::start().await;
    let events: Vec<_> = (0..10).map(|_| acceptance("ada")).collect();
    for event in &events {
        metered
            .call(Method::POST, "/v1/feedback/submit", event)
            .await;
    }
    // Ten claims, ten outcomes in two feeds and in the hour of their project, and one version for all of them.
    assert_eq!(
        metered.generate(&events).await,
        Cost::calls(23).reads(1.0).writes(51.0)
    );
}
