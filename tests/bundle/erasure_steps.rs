//! Erasing a person step by step: what meets an erasure while it is open, and what comes late, twice or not
//! at all.

pub mod world;

use axum::http::{Method, StatusCode};
use chrono::{DateTime, TimeDelta, Utc};
use hearback_domain::erasure::{Kind, Traces};
use hearback_domain::privacy::Pseudonyms;
use hearback_erasure::{Eraser, Erasures};
use hearback_lambda::clock::Clock;
use hearback_lambda::http::service;
use hearback_local::gateway;
use hearback_storage::erasures::{Extent, Found, Listing};
use hearback_storage::preferences::Freshness;
use hearback_tests::engine::Engine;
use hearback_tests::events::{acceptance, ingested};
use hearback_tests::faults::Faults;
use hearback_tests::functions::call;
use hearback_tests::hands::Hands;
use hearback_tests::stored::Stored;
use hearback_tests::turns::{SIGNALS, event_message, message, path};
use serde_json::{Value, json};

use crate::erasure::{EVE, data};
use world::{ON_BEHALF, SUBMIT, World};

const ADMIN: (&str, &str) = ("root", "feedback:admin");
/// No time is left, so that an invocation gets on by little.
const OVER: Option<DateTime<Utc>> = Some(DateTime::UNIX_EPOCH);

#[tokio::test]
async fn while_an_erasure_is_open_nothing_new_is_kept() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    let (turn, next, preferences) = (path("c", "t"), path("c", "t2"), "/v1/preferences/ada");
    let put = |message_id: &str| message(message_id, "Which?", "This.");
    let (status, _) = world.ask((Method::PUT, &turn), &put("m")).await;
    assert_eq!(status, StatusCode::CREATED);
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
    ] {
        let (status, told) = world.ask((method, path), &body).await;
        assert_eq!(status, StatusCode::CONFLICT, "{path}");
        assert_eq!(told["error"], "erasure_in_progress");
    }
    // Also what the machine says in the user's name.
    let said = json!({"reaction": "not_ok", "origin": "machine", "confidence": 0.9});
    let post = (Method::POST, &*reaction);
    let (status, _) = call(&world.functions, ON_BEHALF, post, &said).await;
    assert_eq!(status, StatusCode::CONFLICT);
    let (event, delivery) = world.said("x").await;
    assert!(world.is_there(&event).await);
    world.generate([delivery.clone()]).await;
    assert!(!world.is_there(&event).await);

    // Done, it holds for what was received before, however late that is worked off.
    let late = world.said("x").await;
    world.finish().await;
    let told = world.told().await;
    assert_eq!(
        (&told["status"], &told["removed"]["turns"]),
        (&json!("done"), &json!(1))
    );
    for (event, delivery) in [late, (event, delivery)] {
        world.generate([delivery]).await;
        assert!(!world.is_there(&event).await);
    }
    assert_eq!(world.told().await["removed"]["events"], 2);
    // And for nothing that comes after.
    let (event, delivery) = world.said("x").await;
    world.generate([delivery]).await;
    assert!(world.is_processed(&event).await);
    let version = json!({"preferenceVersion": 1});
    let (status, _) = world.ask((Method::PUT, preferences), &version).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn an_erasure_holds_for_both_names_until_one_time() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    world.erase().await;
    let eraser = world.eraser();
    let mut meanwhile = Vec::new();
    while world.told().await["status"] == "pending" {
        for anonymize in [false, true] {
            meanwhile.push(world.worked_off(anonymize).await);
        }
        assert!(world.step(&eraser, OVER).await);
    }
    for event in &meanwhile {
        assert!(!world.is_there(event).await);
    }
    for anonymize in [false, true] {
        let event = world.worked_off(anonymize).await;
        assert!(world.is_processed(&event).await);
    }
}

#[tokio::test]
async fn a_pseudonym_that_is_erased_by_itself_is_waited_for() {
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
    let (status, refused) = delete("ada").await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(refused["error"], "erasure_in_progress");
    world.finish().await;
    let (status, both) = delete("ada").await;
    assert_eq!(status, StatusCode::ACCEPTED);
    // By its pseudonym it is the same one.
    assert_eq!(delete(&pseudonym).await.1["erasureId"], both["erasureId"]);
    world.finish().await;
    assert_eq!(world.told().await["status"], "done");
}

#[tokio::test]
async fn an_erasure_whose_message_is_lost_is_begun_anew_when_it_is_asked_for_a_day_later() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    let asked_for = world.erase().await;
    world.taken().await.unwrap();
    let tomorrow = Clock::of(|| Utc::now() + TimeDelta::hours(25));
    let tomorrow = Hands::at(&engine, &Faults::none(), tomorrow);
    // By the pseudonym it is the same, and no work of its own.
    for (name, messages) in [(&*world.pseudonym(), 0), ("ada", 1)] {
        let delete = (Method::DELETE, &*data(name));
        let (_, again) = call(&tomorrow.functions, ADMIN, delete, &Value::Null).await;
        assert_eq!(again["erasureId"], asked_for["erasureId"]);
        assert_eq!(world.waiting().await, messages);
    }
    world.finish().await;
    assert_eq!(world.told().await["status"], "done");
}

#[tokio::test]
async fn an_erasure_ends_though_the_key_of_pseudonyms_is_another_by_then() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    let before = world.worked_off(true).await;
    world.erase().await;
    let mut rotated = engine.with_blobs(engine.store.clone());
    rotated.app.pseudonyms = Pseudonyms::new("another");
    let rotated = World {
        engine: &engine,
        functions: service(gateway::functions(rotated, engine.erasures())),
    };
    let after = rotated.worked_off(true).await;
    world.finish().await;
    assert_eq!(rotated.told().await["status"], "done");
    assert!(!world.is_there(&before).await);
    // Nobody can tell any more whose this is.
    assert!(world.is_there(&after).await);
}

#[tokio::test]
async fn what_came_after_an_erasure_is_not_removed_by_a_worker_who_does_not_know_that_it_is_done() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    world.erase().await;
    let (tenant, user) = ("acme".try_into().unwrap(), "ada".try_into().unwrap());
    let owner = (&tenant, &user);
    let open = engine.store.erasure(owner, Freshness::Latest);
    let open = open.await.unwrap().unwrap();
    world.finish().await;
    let (event, delivery) = world.said("x").await;
    world.generate([delivery]).await;
    let claims = (Listing::Claims, Extent::Few);
    let kept = engine.store.kept_of(owner, claims, None).await.unwrap();
    let units = kept.found.into_iter().map(|found| match found {
        Found::Event { unit, .. } => unit,
        other => panic!("{other:?}"),
    });
    let units: Vec<_> = units.collect();
    assert_eq!(units.len(), 1);
    let late = engine
        .store
        .erase(owner, Some(&open), Kind::Events, units)
        .await;
    assert!(late.is_err(), "{late:?}");
    assert!(world.is_there(&event).await);
}

#[tokio::test]
async fn what_one_invocation_does_not_do_the_next_does() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    world.leave().await;
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
async fn a_message_that_comes_twice_closes_nothing_early() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    world.leave().await;
    world.erase().await;
    // Asked for again it is under way already.
    world.erase().await;
    assert_eq!(world.waiting().await, 1);
    let patient = TimeDelta::minutes(15);
    let (store, blobs) = (engine.store.clone(), engine.blobs());
    let queue = engine.clients.sqs.clone();
    let erasures = Erasures::new(queue, &engine.queues.erasures, patient);
    // A clock that is ahead: the time to settle has passed.
    let clock = Clock::of(|| Utc::now() + TimeDelta::minutes(16));
    let letters = engine.letters(&engine.queues.erasures_dead_letters);
    let eraser = Eraser::new(store, blobs, clock, (erasures, letters));
    let mut messages = Vec::new();
    while let Some(message) = world.taken().await {
        messages.push(message);
    }
    for message in messages.iter().chain(&messages) {
        world.hand(&eraser, message).await;
    }
    let told = world.told().await;
    assert_eq!(told["removed"]["turns"], 1, "{told}");
    assert_eq!(told["status"], "pending", "{told}");
}

#[tokio::test]
async fn what_is_remembered_for_an_erasure_is_forgotten_though_another_stands() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    let first = world.erase().await;
    let message = world.taken().await.unwrap();
    world.hand(&world.eraser(), &message).await;
    assert_eq!(world.told().await["status"], "done");
    let second = world.erase().await;
    // A worker that was slow remembers things for the first, and dies.
    let (blobs, tenant) = (engine.blobs(), "acme".try_into().unwrap());
    let id = first["erasureId"].as_str().unwrap().parse().unwrap();
    let slow = blobs.put_traces(&tenant, id, &Traces::default()).await;
    slow.unwrap();
    world.hand(&world.eraser(), &message).await;
    assert_eq!(blobs.traces(&tenant, id).await.unwrap(), None);
    // Of the second nothing is done.
    let standing = world.told().await;
    assert_eq!(
        (&standing["erasureId"], &standing["status"]),
        (&second["erasureId"], &json!("pending"))
    );
}

#[tokio::test]
async fn events_of_one_name_are_removed_once_and_another_users_never() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    let mut event = acceptance("ada");
    // Two claims of ada's name an event that expired and was sent again by her, and one that eve has now.
    for (at, then_of) in [("x", "ada"), ("y", EVE)] {
        event["feedbackId"] = json!(uuid::Uuid::new_v4());
        for artifact in ["1", "2"] {
            event["artifactId"] = json!(format!("{at}{artifact}"));
            let delivery = world.submitted(&event).await;
            world.generate([delivery]).await;
            if artifact == "1" || then_of == EVE {
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
    let told = world.told().await;
    assert_eq!(
        (&told["status"], &told["removed"]["events"]),
        (&json!("done"), &json!(1))
    );
    assert!(world.is_there(&eves["feedbackId"]).await);
    let stored = Stored::read(&engine.clients, &engine.names).await;
    assert_eq!(stored.with("CLAIM#"), Vec::<&str>::new());
}

#[tokio::test]
async fn what_was_handed_over_before_stays_erased_however_often_it_is_delivered() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    let event = acceptance("ada");
    let mut batch = ingested(&event);
    let sent = Utc::now().timestamp_millis().to_string();
    let attributes = &mut batch.records[0].attributes;
    attributes.insert("SentTimestamp".to_owned(), sent);
    world.erase().await;
    world.finish().await;
    let ingest = engine.ingest(engine.store.clone());
    assert!(ingest.handle(batch).await.batch_item_failures.is_empty());
    let delivery = event_message(&engine, &event["feedbackId"]).await;
    world.generate([delivery]).await;
    assert!(!world.is_there(&event["feedbackId"]).await);
}

#[tokio::test]
async fn what_is_sent_again_after_an_erasure_outlives_what_is_delivered_from_before() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    let event = acceptance("ada");
    let before = world.submitted(&event).await;
    world.generate([before.clone()]).await;
    world.erase().await;
    world.finish().await;
    assert!(!world.is_there(&event["feedbackId"]).await);

    let after = world.submitted(&event).await;
    for deliveries in [vec![&before], vec![&before, &after], vec![&before]] {
        world.generate(deliveries.into_iter().cloned()).await;
    }
    assert!(world.is_processed(&event["feedbackId"]).await);
}

#[tokio::test]
async fn what_is_sent_again_while_it_is_erased_goes_with_what_is_delivered_from_before() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    let event = acceptance("ada");
    let before = world.submitted(&event).await;
    world.erase().await;
    world.generate([before.clone()]).await;
    let after = world.submitted(&event).await;
    world.generate([before, after]).await;
    assert!(!world.is_there(&event["feedbackId"]).await);
}
