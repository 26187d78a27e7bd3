//! Erasure step by step: requests while an erasure is open, and messages that are late, repeated or lost.

pub mod world;

use axum::http::{Method, StatusCode};
use chrono::{DateTime, TimeDelta, Utc};
use hearback_domain::export::erasure::{ErasureIds, RemovedKind};
use hearback_domain::identity::identifier::UserRef;
use hearback_domain::identity::privacy::Pseudonyms;
use hearback_erasure::{Eraser, Erasures};
use hearback_lambda::clock::Clock;
use hearback_lambda::http::service;
use hearback_local::gateway;
use hearback_storage::erasures::{DataSource, PageSize, PersonalData};
use hearback_storage::preferences::Freshness;
use hearback_tests::engine::Engine;
use hearback_tests::events::{acceptance, ingested_at};
use hearback_tests::faults::Faults;
use hearback_tests::function_set::FunctionSet;
use hearback_tests::functions::call;
use hearback_tests::stored::Stored;
use hearback_tests::turns::{SIGNALS, event_message, message, path};
use serde_json::{Value, json};

use crate::erasure::{EVE, data};
use world::{ON_BEHALF, SUBMIT, World};

const ADMIN: (&str, &str) = ("root", "feedback:admin");
/// A deadline in the past, so that each invocation does one step.
const OVER: Option<DateTime<Utc>> = Some(DateTime::UNIX_EPOCH);

#[tokio::test]
async fn no_new_data_of_the_user_is_kept_while_an_erasure_is_open() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    let (turn, next, preferences) = (path("c", "t"), path("c", "t2"), "/v1/preferences/ada");
    let put = |message_id: &str| message(message_id, "Which?", "This.");
    let (status, _) = world.ask((Method::PUT, &turn), &put("m")).await;
    assert_eq!(status, StatusCode::CREATED);
    let (before, _) = world.submit_words("w").await;
    let withdraw = format!("/v1/feedback/{}", before.as_str().unwrap());
    world.erase().await;

    let version = json!({"preferenceVersion": 0, "globalPreferences": {"learningMode": true}});
    let reaction = format!("{turn}/feedback");
    let reset = format!("{preferences}/reset");
    let infer = "/conversations/acme/order-service/feedback/infer";
    for (method, path, body) in [
        (Method::PUT, &*next, put("m2")),
        (Method::POST, &*reaction, json!({"reaction": "ok"})),
        (
            Method::POST,
            SIGNALS,
            json!({"message_id": "m", "signal": "helpful"}),
        ),
        (
            Method::POST,
            infer,
            json!({"message": "No, that is wrong."}),
        ),
        (Method::PUT, preferences, version),
        (Method::POST, &*reset, Value::Null),
        (Method::DELETE, &*withdraw, Value::Null),
    ] {
        let (status, response) = world.ask((method, path), &body).await;
        assert_eq!(status, StatusCode::CONFLICT, "{path}");
        assert_eq!(response["error"], "erasure_in_progress");
    }
    // Machine reactions for the user are rejected, too.
    let reaction_of_machine = json!({"reaction": "not_ok", "origin": "machine", "confidence": 0.9});
    let post = (Method::POST, &*reaction);
    let (status, _) = call(&world.functions, ON_BEHALF, post, &reaction_of_machine).await;
    assert_eq!(status, StatusCode::CONFLICT);
    let (event, delivery) = world.submit_words("x").await;
    assert!(world.exists(&event).await);
    world.generate([delivery.clone()]).await;
    assert!(!world.exists(&event).await);

    // Once done, the erasure covers what was received before, however late that is processed.
    let late = world.submit_words("x").await;
    world.finish().await;
    let response = world.progress().await;
    assert_eq!(
        (&response["status"], &response["removed"]["turns"]),
        (&json!("done"), &json!(1))
    );
    for (event, delivery) in [late, (event, delivery)] {
        world.generate([delivery]).await;
        assert!(!world.exists(&event).await);
    }
    assert_eq!(world.progress().await["removed"]["events"], 2);
    // It does not cover what is received later.
    let (event, delivery) = world.submit_words("x").await;
    world.generate([delivery]).await;
    assert!(world.is_processed(&event).await);
    let version = json!({"preferenceVersion": 1});
    let (status, _) = world.ask((Method::PUT, preferences), &version).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn an_erasure_covers_the_user_and_the_pseudonym_up_to_the_same_time() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    world.erase().await;
    let eraser = world.eraser();
    let mut meanwhile = Vec::new();
    while world.progress().await["status"] == "pending" {
        for anonymize in [false, true] {
            meanwhile.push(world.submit_and_process(anonymize).await);
        }
        assert!(world.step(&eraser, OVER).await);
    }
    for event in &meanwhile {
        assert!(!world.exists(event).await);
    }
    for anonymize in [false, true] {
        let event = world.submit_and_process(anonymize).await;
        assert!(world.is_processed(&event).await);
    }
}

#[tokio::test]
async fn an_erasure_waits_for_the_separate_erasure_of_its_pseudonym() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    let pseudonym = world.pseudonym();
    let delete = async |user: &str| {
        let delete = (Method::DELETE, &*data(user));
        call(&world.functions, ADMIN, delete, &Value::Null).await
    };
    let (status, alone) = delete(&pseudonym).await;
    assert_eq!(
        (status, &alone["status"]),
        (StatusCode::ACCEPTED, &json!("pending"))
    );
    let (status, rejected) = delete("ada").await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(rejected["error"], "erasure_in_progress");
    world.finish().await;
    let (status, both) = delete("ada").await;
    assert_eq!(status, StatusCode::ACCEPTED);
    // A request for the pseudonym returns the same erasure.
    assert_eq!(delete(&pseudonym).await.1["erasureId"], both["erasureId"]);
    world.finish().await;
    assert_eq!(world.progress().await["status"], "done");
}

#[tokio::test]
async fn an_erasure_with_a_lost_message_restarts_when_requested_a_day_later() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    let first = world.erase().await;
    world.take_message().await.unwrap();
    let tomorrow = Clock::of(|| Utc::now() + TimeDelta::hours(25));
    let tomorrow = FunctionSet::at(&engine, &Faults::none(), tomorrow);
    // A request for the pseudonym returns the same erasure and sends no message.
    for (name, messages) in [(&*world.pseudonym(), 0), ("ada", 1)] {
        let delete = (Method::DELETE, &*data(name));
        let (_, again) = call(&tomorrow.functions, ADMIN, delete, &Value::Null).await;
        assert_eq!(again["erasureId"], first["erasureId"]);
        assert_eq!(world.waiting().await, messages);
    }
    world.finish().await;
    assert_eq!(world.progress().await["status"], "done");
}

#[tokio::test]
async fn an_erasure_completes_although_the_pseudonym_key_has_changed() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    let before = world.submit_and_process(true).await;
    world.erase().await;
    let mut rotated = engine.with_blobs(engine.store.clone());
    rotated.app.pseudonyms = Pseudonyms::new("another");
    let rotated = World {
        engine: &engine,
        functions: service(gateway::functions(rotated, engine.erasures())),
    };
    let after = rotated.submit_and_process(true).await;
    world.finish().await;
    assert_eq!(rotated.progress().await["status"], "done");
    assert!(!world.exists(&before).await);
    // Without the old key the event cannot be attributed to the user.
    assert!(world.exists(&after).await);
}

#[tokio::test]
async fn a_worker_with_a_stale_erasure_does_not_remove_newer_data() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    world.erase().await;
    let (tenant, user) = ("acme".try_into().unwrap(), "ada".try_into().unwrap());
    let owner = UserRef::new(&tenant, &user);
    let open = engine.store.erasure(owner, Freshness::Latest);
    let open = open.await.unwrap().unwrap();
    world.finish().await;
    let (event, delivery) = world.submit_words("x").await;
    world.generate([delivery]).await;
    let kept = engine
        .store
        .personal_data(owner, DataSource::Claims, PageSize::Removal, None)
        .await
        .unwrap();
    let units = kept.found.into_iter().map(|found| match found {
        PersonalData::Event { unit, .. } => unit,
        other => panic!("{other:?}"),
    });
    let units: Vec<_> = units.collect();
    assert_eq!(units.len(), 1);
    let late = engine
        .store
        .erase(owner, Some(&open), RemovedKind::Events, units)
        .await;
    assert!(late.is_err(), "{late:?}");
    assert!(world.exists(&event).await);
}

#[tokio::test]
async fn the_next_invocation_continues_an_unfinished_pass() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    world.create_data().await;
    world.erase().await;
    let eraser = world.eraser();
    let mut messages = 0;
    while world.step(&eraser, OVER).await {
        messages += 1;
    }
    assert!(messages > 4, "{messages}");
    world.assert_gone().await;
}

#[tokio::test]
async fn a_redelivered_message_does_not_close_the_erasure_early() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    world.create_data().await;
    world.erase().await;
    // A repeated request sends no second message.
    world.erase().await;
    assert_eq!(world.waiting().await, 1);
    let settle_time = TimeDelta::minutes(15);
    let (store, blobs) = (engine.store.clone(), engine.blobs());
    let queue = engine.clients.sqs.clone();
    let erasures = Erasures::new(queue, &engine.queues.erasures, settle_time);
    // The clock is ahead, so the time to settle has passed.
    let clock = Clock::of(|| Utc::now() + TimeDelta::minutes(16));
    let dead_letters = engine.dead_letters(&engine.queues.erasures_dead_letters);
    let eraser = Eraser::new(store, blobs, clock, erasures, dead_letters);
    let mut messages = Vec::new();
    while let Some(message) = world.take_message().await {
        messages.push(message);
    }
    for message in messages.iter().chain(&messages) {
        world.deliver(&eraser, message).await;
    }
    let progress = world.progress().await;
    assert_eq!(progress["removed"]["turns"], 1, "{progress}");
    assert_eq!(progress["status"], "pending", "{progress}");
}

#[tokio::test]
async fn the_records_of_an_erasure_are_removed_although_another_is_open() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    let first = world.erase().await;
    let message = world.take_message().await.unwrap();
    world.deliver(&world.eraser(), &message).await;
    assert_eq!(world.progress().await["status"], "done");
    let second = world.erase().await;
    // A slow worker of the first erasure stores a record and then crashes.
    let (blobs, tenant) = (engine.blobs(), "acme".try_into().unwrap());
    let id = first["erasureId"].as_str().unwrap().parse().unwrap();
    let slow = blobs.put_traces(&tenant, id, &ErasureIds::default()).await;
    slow.unwrap();
    world.deliver(&world.eraser(), &message).await;
    assert_eq!(blobs.traces(&tenant, id).await.unwrap(), None);
    // The second erasure has made no progress.
    let progress = world.progress().await;
    assert_eq!(
        (&progress["erasureId"], &progress["status"]),
        (&second["erasureId"], &json!("pending"))
    );
}

#[tokio::test]
async fn the_events_of_a_user_are_removed_once_and_those_of_others_never() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    let mut event = acceptance("ada");
    // Two claims of ada's refer to an event that expired: one was submitted again by ada, one by eve.
    for (at, new_user) in [("x", "ada"), ("y", EVE)] {
        event["feedbackId"] = json!(uuid::Uuid::new_v4());
        for artifact in ["1", "2"] {
            event["artifactId"] = json!(format!("{at}{artifact}"));
            let delivery = world.submitted(&event).await;
            world.generate([delivery]).await;
            if artifact == "1" || new_user == EVE {
                world.expire(&event["feedbackId"]).await;
            }
        }
    }
    let mut eves = event.clone();
    eves["userId"] = json!(EVE);
    let submit = (Method::POST, SUBMIT);
    let (status, _) = call(&world.functions, ON_BEHALF, submit, &eves).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    world.erase().await;
    world.finish().await;
    let progress = world.progress().await;
    assert_eq!(
        (&progress["status"], &progress["removed"]["events"]),
        (&json!("done"), &json!(1))
    );
    assert!(world.exists(&eves["feedbackId"]).await);
    let stored = Stored::read(&engine.clients, &engine.names).await;
    assert_eq!(stored.with("CLAIM#"), Vec::<&str>::new());
}

#[tokio::test]
async fn an_event_queued_before_an_erasure_stays_erased_however_often_it_is_delivered() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    let event = acceptance("ada");
    let batch = ingested_at(Utc::now(), &event);
    world.erase().await;
    world.finish().await;
    let ingest = engine.ingest(engine.store.clone());
    assert!(ingest.handle(batch).await.batch_item_failures.is_empty());
    let delivery = event_message(&engine, &event["feedbackId"]).await;
    world.generate([delivery]).await;
    assert!(!world.exists(&event["feedbackId"]).await);
}

#[tokio::test]
async fn an_event_resubmitted_after_an_erasure_survives_late_deliveries_of_the_erased_one() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    let event = acceptance("ada");
    let before = world.submitted(&event).await;
    world.generate([before.clone()]).await;
    world.erase().await;
    world.finish().await;
    assert!(!world.exists(&event["feedbackId"]).await);

    let after = world.submitted(&event).await;
    for deliveries in [vec![&before], vec![&before, &after], vec![&before]] {
        world.generate(deliveries.into_iter().cloned()).await;
    }
    assert!(world.is_processed(&event["feedbackId"]).await);
}

#[tokio::test]
async fn an_event_resubmitted_during_an_erasure_is_erased_with_the_earlier_one() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    let event = acceptance("ada");
    let before = world.submitted(&event).await;
    world.erase().await;
    world.generate([before.clone()]).await;
    let after = world.submitted(&event).await;
    world.generate([before, after]).await;
    assert!(!world.exists(&event["feedbackId"]).await);
}
