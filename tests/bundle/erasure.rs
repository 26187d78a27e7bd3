//! Erasing a person: nothing of theirs is left, and nothing of anybody else's is touched.

use std::time::Duration;

use aws_lambda_events::sqs::{SqsEvent, SqsMessage};
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::types::QueueAttributeName;
use axum::Router;
use axum::http::Method;
use chrono::{DateTime, TimeDelta, Utc};
use futures::future::join_all;
use hearback_domain::erasure::Kind;
use hearback_domain::privacy::Pseudonyms;
use hearback_erasure::{Eraser, Erasures};
use hearback_export::Exporter;
use hearback_lambda::clock::Clock;
use hearback_lambda::http::service;
use hearback_local::names::Names;
use hearback_storage::erasures::{Extent, Found, Listing};
use hearback_storage::preferences::Freshness;
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::engine::Engine;
use hearback_tests::events::{acceptance, ingested};
use hearback_tests::faults::Faults;
use hearback_tests::functions::{call, functions_of, stored_event};
use hearback_tests::hands::Hands;
use hearback_tests::queue;
use hearback_tests::stored::{Stored, rows};
use hearback_tests::turns::{SIGNALS, message, path, reaction_message};
use reqwest::StatusCode;
use serde_json::{Value, json};

/// Whose name and words nothing else has.
const ZOE: &str = "zoe-5417";
const WORDS: &str = "cinnamon-and-vetiver";

const EVE: &str = "eve-8830";

pub fn data(user: &str) -> String {
    format!("/v1/users/{user}/data")
}

fn progress(user: &str) -> String {
    format!("{}/erasure", data(user))
}

async fn put_turn(app: &TestApp, user: &str, (conversation, turn): (&str, &str), words: &str) {
    let mut body = message(&format!("m-{turn}"), words, "An answer of some length.");
    body["trace_id"] = json!("trace-1");
    body["turn_log"] = json!({"text": format!("log of {words}"), "entries": []});
    let path = path(conversation, turn);
    let answer = app.put(&app.token(user), &path, &body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{:?}", answer.body);
}

async fn react(app: &TestApp, user: &str, (conversation, turn): (&str, &str), words: &str) {
    let path = format!("{}/feedback", path(conversation, turn));
    let body = json!({"reaction": "not_ok", "text": words, "mirror": true});
    let answer = app.post(&app.token(user), &path, &body).await;
    assert_eq!(answer.status, StatusCode::OK, "{:?}", answer.body);
}

async fn submit(app: &TestApp, user: &str, words: &str, privacy: Value) -> String {
    let mut event = acceptance(user);
    event["artifactId"] = json!("artifact-1");
    event["data"]["comment"] = json!(words);
    event["privacyFlags"] = privacy;
    let answer = app.submit(&app.token(user), &event).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{:?}", answer.body);
    answer.body["feedbackId"].as_str().unwrap().to_owned()
}

/// Does all that a user can do. `turn` is theirs, and `other` somebody else's.
async fn live(app: &TestApp, user: &str, words: &str, [turn, next, other]: [(&str, &str); 3]) {
    let token = app.token(user);
    let patch = json!({"preferenceVersion": 0, "contextPreferences": {words: {"preferredAgents": [words]}}});
    let patched = app
        .put(&token, &format!("/v1/preferences/{user}"), &patch)
        .await;
    assert_eq!(patched.status, StatusCode::OK, "{:?}", patched.body);
    put_turn(app, user, turn, words).await;
    put_turn(app, user, next, &format!("No, I meant {words}")).await;
    react(app, user, turn, words).await;
    react(app, user, other, words).await;
    for (message, signal) in [(turn.1, "edit"), (other.1, "edit"), (other.1, "helpful")] {
        let body = json!({"message_id": format!("m-{message}"), "signal": signal, "reason": words});
        let answer = app.post(&token, SIGNALS, &body).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{:?}", answer.body);
    }
    let first = submit(app, user, words, json!({})).await;
    app.outcome(&token, &first).await;
    // The same again within the hour is a duplicate.
    let again = submit(app, user, words, json!({})).await;
    assert_eq!(app.outcome(&token, &again).await["status"], "deduplicated");
    submit(app, user, words, json!({"anonymize": true})).await;
}

/// The store, once nothing is on its way.
async fn settled(app: &TestApp) -> Stored {
    Stored::settled(&app.bundle.clients, &Names::default()).await
}

async fn stored(app: &TestApp) -> Stored {
    Stored::read(&app.bundle.clients, &Names::default()).await
}

async fn export(app: &TestApp) {
    let bundle = &app.bundle;
    let exporter = Exporter::new(bundle.store.clone(), bundle.blobs.clone(), Clock::system());
    let day = Utc::now().date_naive();
    for request in [
        json!({"tenant": "acme", "day": day}),
        json!({"tenant": "acme", "training": {"project": "order-service"}}),
    ] {
        exporter.handle(&request, None).await.unwrap();
    }
}

/// Asks for an erasure, and waits until it is done.
async fn erased(app: &TestApp, user: &str) -> Value {
    let token = app.token(user);
    let asked = app.delete(&token, &data(user)).await;
    assert_eq!(asked.status, StatusCode::ACCEPTED, "{:?}", asked.body);
    assert_eq!(asked.headers["location"], progress(user));
    assert_eq!(asked.body["status"], "pending");
    eventually(|| async {
        let told = app.get(&token, &progress(user)).await.body;
        assert_eq!(told["erasureId"], asked.body["erasureId"]);
        (told["status"] == "done").then_some(told)
    })
    .await
}

#[tokio::test]
async fn nothing_of_a_person_is_left_and_all_of_others_is() {
    let app = TestApp::start().await;
    put_turn(&app, EVE, ("c9", "t9"), "What is the fee?").await;
    put_turn(&app, EVE, ("c8", "t8"), "And the term?").await;
    live(&app, ZOE, WORDS, [("c1", "t1"), ("c1", "t2"), ("c9", "t9")]).await;
    live(
        &app,
        "ike-2093",
        "dill-4471",
        [("c2", "t3"), ("c2", "t4"), ("c9", "t9")],
    )
    .await;
    assert_eq!(settled(&app).await.with("(\"SK\", S(\"EVENT\"))").len(), 18);
    export(&app).await;
    let before = settled(&app).await;
    assert!(before.with(WORDS).len() > 15 && before.with(ZOE).len() > 15);

    let told = erased(&app, ZOE).await;
    let removed = &told["removed"];
    let expected = json!({
        // An event, a duplicate, an anonymous one, two reactions, three signals, and what the machine
        // made of the second turn.
        "events": 9, "turns": 2, "reactions": 3, "signals": 3, "preferenceVersions": 1,
        "exportRows": removed["exportRows"], "importFiles": 0, "rejectedLines": 0,
    });
    let versions = removed["preferenceVersions"].as_u64().unwrap();
    let mut counted = removed.clone();
    counted["preferenceVersions"] = json!(1);
    assert_eq!(counted, expected, "{told}");
    assert!(
        versions > 1 && removed["exportRows"].as_u64().unwrap() > 3,
        "{told}"
    );

    let after = stored(&app).await;
    assert_eq!(after.with(WORDS), Vec::<&str>::new());
    // That she was erased is all that is known of her.
    let left = after.with(ZOE);
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].contains("(\"SK\", S(\"ERASURE\"))"), "{left:?}");
    let pseudonyms = after.with("USER#acme#anon-");
    let erasures = after.with("\"ERASURE\"");
    assert_eq!(erasures.len(), 2);
    assert!(pseudonyms.iter().any(|item| erasures.contains(item)));

    // Items of others are as they were; but for the turn whose log was rid of a mirror.
    let others: Vec<_> = before
        .items
        .iter()
        .filter(|item| {
            item.contains("ike-2093") || item.contains(EVE) || item.contains("dill-4471")
        })
        .collect();
    let changed: Vec<_> = others
        .iter()
        .filter(|item| !after.items.contains(item))
        .collect();
    assert!(
        changed.len() == 1 && changed[0].contains("TURN#t9"),
        "{changed:#?}"
    );
    let reader = app.token_of(EVE, "acme", "feedback:report");
    let report = app.get(&reader, &path("c9", "t9")).await;
    assert!(
        report.body.to_string().contains("dill-4471"),
        "{:?}",
        report.body
    );
    for words in ["dill-4471", "What is the fee?"] {
        let files = |stored: &Stored| {
            let all = stored
                .objects
                .iter()
                .filter(|(key, _)| key.starts_with("exports/"));
            all.map(|(_, body)| String::from_utf8_lossy(body).matches(words).count())
                .sum::<usize>()
        };
        assert!(files(&after) > 0, "{words}");
        assert!(words != "dill-4471" || files(&before) == files(&after));
    }

    // She may come back, and is new.
    let id = submit(&app, ZOE, "hello", json!({})).await;
    let token = app.token(ZOE);
    assert_eq!(app.outcome(&token, &id).await["status"], "processed");
    let preferences = app.get(&token, &format!("/v1/preferences/{ZOE}")).await;
    assert_eq!(
        preferences.body["preferenceVersion"], 1,
        "{:?}",
        preferences.body
    );
}

#[tokio::test]
async fn only_the_user_and_administrators_erase() {
    let app = TestApp::start().await;
    let (own, other) = (app.token("ada"), app.token(EVE));
    let on_behalf = app.token_of(EVE, "acme", "feedback:on-behalf feedback:report");
    let admin = app.token_of(EVE, "acme", "feedback:admin");
    for token in [&other, &on_behalf] {
        for answer in [
            app.delete(token, &data("ada")).await,
            app.get(token, &progress("ada")).await,
        ] {
            assert_eq!(answer.status, StatusCode::FORBIDDEN);
            assert_eq!(answer.body["error"], "forbidden", "{:?}", answer.body);
        }
    }
    assert_eq!(
        app.get(&own, &progress("ada")).await.status,
        StatusCode::NOT_FOUND
    );
    let asked = app.delete(&admin, &data("ada")).await;
    assert_eq!(asked.status, StatusCode::ACCEPTED);
    // Asked for again it is the same.
    let again = app.delete(&own, &data("ada")).await;
    assert_eq!(again.body["erasureId"], asked.body["erasureId"]);
    // Of another tenant nobody learns anything.
    let foreign = app.token_of("ada", "globex", "feedback:admin");
    assert_eq!(
        app.get(&foreign, &progress("ada")).await.status,
        StatusCode::NOT_FOUND
    );
    let told = erased(&app, "ada").await;
    assert_eq!(told["removed"]["events"], 0);
    let anew = app.delete(&own, &data("ada")).await;
    assert_ne!(anew.body["erasureId"], asked.body["erasureId"]);
}

#[tokio::test]
async fn while_an_erasure_is_open_nothing_new_is_kept() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine, None);
    let turn = (Method::PUT, path("c", "t"), message("m", "Which?", "This."));
    assert_eq!(asked(&functions, &turn).await.0, StatusCode::CREATED);
    let version = json!({"preferenceVersion": 0, "globalPreferences": {"learningMode": true}});
    let preferences = "/v1/preferences/ada".to_owned();
    let erase = (Method::DELETE, data("ada"), Value::Null);
    assert_eq!(asked(&functions, &erase).await.0, StatusCode::ACCEPTED);

    let reaction = format!("{}/feedback", path("c", "t"));
    for refused in [
        (
            Method::PUT,
            path("c", "t2"),
            message("m2", "Which?", "This."),
        ),
        (Method::POST, reaction, json!({"reaction": "ok"})),
        (
            Method::POST,
            SIGNALS.to_owned(),
            json!({"message_id": "m", "signal": "helpful"}),
        ),
        (
            Method::POST,
            "/conversations/acme/order-service/feedback/infer".to_owned(),
            json!({"message": "No, that is wrong."}),
        ),
        (Method::PUT, preferences.clone(), version.clone()),
        (Method::POST, format!("{preferences}/reset"), Value::Null),
    ] {
        let (status, body) = asked(&functions, &refused).await;
        assert_eq!(status, StatusCode::CONFLICT, "{refused:?}");
        assert_eq!(body["error"], "erasure_in_progress");
    }
    // Also what the machine says in the user's name.
    let said = json!({"reaction": "not_ok", "origin": "machine", "confidence": 0.9});
    let machine = ("order-service", "feedback:on-behalf");
    let reaction = format!("{}/feedback", path("c", "t"));
    let (status, _) = call(&functions, machine, (Method::POST, &reaction), &said).await;
    assert_eq!(status, StatusCode::CONFLICT);
    let (event, delivery) = sent(&engine, &functions, "x").await;
    assert!(stored_event(&engine, &event).await.is_some());
    generated(&engine, delivery.clone()).await;
    assert!(stored_event(&engine, &event).await.is_none());

    // Done, it holds for what was received before, however late that is worked off.
    let late = sent(&engine, &functions, "x").await;
    work(&engine, &eraser(&engine), None).await;
    let told = asked(&functions, &(Method::GET, progress("ada"), Value::Null))
        .await
        .1;
    assert_eq!(
        (&told["status"], &told["removed"]["turns"]),
        (&json!("done"), &json!(1))
    );
    for (event, delivery) in [late, (event, delivery)] {
        generated(&engine, delivery).await;
        assert!(stored_event(&engine, &event).await.is_none());
    }
    let told = asked(&functions, &(Method::GET, progress("ada"), Value::Null))
        .await
        .1;
    assert_eq!(told["removed"]["events"], 2);
    // And for nothing that comes after.
    let (event, delivery) = sent(&engine, &functions, "x").await;
    generated(&engine, delivery).await;
    let event = stored_event(&engine, &event).await.unwrap();
    assert!(event.outcome.is_some());
    let (status, _) = asked(
        &functions,
        &(Method::PUT, preferences, json!({"preferenceVersion": 1})),
    )
    .await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn an_erasure_holds_for_both_names_until_one_time() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine, None);
    asked(&functions, &(Method::DELETE, data("ada"), Value::Null)).await;
    let progress = (Method::GET, progress("ada"), Value::Null);
    // A worker that has no time gets on by little.
    let (eraser, over) = (eraser(&engine), Some(DateTime::UNIX_EPOCH));
    let mut meanwhile = Vec::new();
    while asked(&functions, &progress).await.1["status"] == "pending" {
        for anonymize in [false, true] {
            meanwhile.push(worked_off(&engine, &functions, anonymize).await);
        }
        assert_eq!(step(&engine, &eraser, over).await, Some(false));
    }
    for id in &meanwhile {
        assert!(stored_event(&engine, id).await.is_none());
    }
    for anonymize in [false, true] {
        let id = worked_off(&engine, &functions, anonymize).await;
        let stored = stored_event(&engine, &id).await.unwrap();
        assert!(stored.outcome.is_some(), "{stored:?}");
    }
}

#[tokio::test]
async fn a_pseudonym_that_is_erased_by_itself_is_waited_for() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine, None);
    let pseudonym = pseudonym(&engine, "ada");
    let admin = ("root", "feedback:admin");
    let delete = async |user: &str| {
        let request = (Method::DELETE, data(user));
        let request = (request.0, request.1.as_str());
        call(&functions, admin, request, &Value::Null).await
    };
    let (status, alone) = delete(&pseudonym).await;
    assert_eq!(
        (status, &alone["status"]),
        (StatusCode::ACCEPTED, &json!("pending"))
    );
    let (status, refused) = delete("ada").await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(refused["error"], "erasure_in_progress");
    work(&engine, &eraser(&engine), None).await;
    let (status, both) = delete("ada").await;
    assert_eq!(status, StatusCode::ACCEPTED);
    // By its pseudonym it is the same one.
    assert_eq!(delete(&pseudonym).await.1["erasureId"], both["erasureId"]);
    work(&engine, &eraser(&engine), None).await;
    let (_, done) = asked(&functions, &(Method::GET, progress("ada"), Value::Null)).await;
    assert_eq!(done["status"], "done");
}

#[tokio::test]
async fn an_erasure_whose_message_is_lost_is_begun_anew_when_it_is_asked_for_a_day_later() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine, None);
    let erase = (Method::DELETE, data("ada"), Value::Null);
    let (_, asked_for) = asked(&functions, &erase).await;
    taken(&engine).await.unwrap();
    let tomorrow = Clock::of(|| Utc::now() + TimeDelta::hours(25));
    let tomorrow = Hands::at(&engine, &Faults::none(), tomorrow);
    // By the pseudonym it is the same, and no work of its own.
    for (name, messages) in [(&*pseudonym(&engine, "ada"), 0), ("ada", 1)] {
        let route = (Method::DELETE, &*data(name));
        let admin = ("root", "feedback:admin");
        let (_, again) = call(&tomorrow.functions, admin, route, &Value::Null).await;
        assert_eq!(again["erasureId"], asked_for["erasureId"]);
        assert_eq!(waiting(&engine).await, messages);
    }
    work(&engine, &eraser(&engine), None).await;
    let (_, done) = asked(&functions, &(Method::GET, progress("ada"), Value::Null)).await;
    assert_eq!(done["status"], "done");
}

#[tokio::test]
async fn an_erasure_ends_though_the_key_of_pseudonyms_is_another_by_then() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine, None);
    let before = worked_off(&engine, &functions, true).await;
    asked(&functions, &(Method::DELETE, data("ada"), Value::Null)).await;
    let mut rotated = engine.with_blobs(engine.store.clone());
    rotated.app.pseudonyms = Pseudonyms::new("another");
    let rotated = service(hearback_local::gateway::functions(
        rotated,
        engine.erasures(),
    ));
    let after = worked_off(&engine, &rotated, true).await;
    work(&engine, &eraser(&engine), None).await;
    let (_, done) = asked(&rotated, &(Method::GET, progress("ada"), Value::Null)).await;
    assert_eq!(done["status"], "done");
    assert!(stored_event(&engine, &before).await.is_none());
    // Nobody can tell any more whose this is.
    assert!(stored_event(&engine, &after).await.is_some());
}

#[tokio::test]
async fn what_came_after_an_erasure_is_not_removed_by_a_worker_who_does_not_know_that_it_is_done() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine, None);
    asked(&functions, &(Method::DELETE, data("ada"), Value::Null)).await;
    let (tenant, user) = ("acme".try_into().unwrap(), "ada".try_into().unwrap());
    let owner = (&tenant, &user);
    let open = engine.store.erasure(owner, Freshness::Latest);
    let open = open.await.unwrap().unwrap();
    work(&engine, &eraser(&engine), None).await;
    let (event, delivery) = sent(&engine, &functions, "x").await;
    generated(&engine, delivery).await;
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
    assert!(stored_event(&engine, &event).await.is_some());
}

fn pseudonym(engine: &Engine, user: &str) -> String {
    let pseudonyms = engine.app(engine.store.clone()).pseudonyms;
    let (tenant, user) = ("acme".try_into().unwrap(), user.try_into().unwrap());
    pseudonyms.user(&tenant, &user).unwrap().to_string()
}

type Request = (Method, String, Value);

async fn asked(functions: &Router, (method, path, body): &Request) -> (StatusCode, Value) {
    call(
        functions,
        ("order-service", ""),
        (method.clone(), path),
        body,
    )
    .await
}

/// Submits an event, and makes the message that the pipe would send of it.
async fn sent(engine: &Engine, functions: &Router, artifact: &str) -> (Value, SqsMessage) {
    let mut event = acceptance("ada");
    event["artifactId"] = json!(artifact);
    event["data"]["comment"] = json!(WORDS);
    let delivery = delivered(engine, functions, &event).await;
    (event["feedbackId"].clone(), delivery)
}

/// The same of an event that is given.
async fn delivered(engine: &Engine, functions: &Router, event: &Value) -> SqsMessage {
    let path = "/v1/feedback/submit".to_owned();
    let (status, answer) = asked(functions, &(Method::POST, path, event.clone())).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    let stored = stored_event(engine, &event["feedbackId"]).await.unwrap();
    submitted(&serde_json::to_string(&stored.core).unwrap())
}

/// Submits an event that may be anonymous, has it worked off, and answers its id.
async fn worked_off(engine: &Engine, functions: &Router, anonymize: bool) -> Value {
    let mut event = acceptance("ada");
    event["privacyFlags"] = json!({"anonymize": anonymize});
    let delivery = delivered(engine, functions, &event).await;
    generated(engine, delivery).await;
    event["feedbackId"].clone()
}

/// The message that the pipe sends of an event.
fn submitted(core: &str) -> SqsMessage {
    let record = json!({
        "eventName": "INSERT",
        "dynamodb": {"Keys": {}, "NewImage": {"core": {"S": core}}}
    });
    let mut message = SqsMessage::default();
    message.message_id = Some(uuid::Uuid::new_v4().to_string());
    message.body = Some(record.to_string());
    message
}

async fn generated(engine: &Engine, message: SqsMessage) {
    generated_at_once(engine, vec![message]).await;
}

async fn generated_at_once(engine: &Engine, messages: Vec<SqsMessage>) {
    let mut batch = SqsEvent::default();
    batch.records = messages;
    let response = engine.generator(engine.store.clone()).handle(batch).await;
    assert!(response.batch_item_failures.is_empty());
}

fn eraser(engine: &Engine) -> Eraser {
    engine.eraser(engine.store.clone(), engine.blobs())
}

/// Works off one message, and answers whether that failed; `None` if there is none.
async fn step(engine: &Engine, eraser: &Eraser, until: Option<DateTime<Utc>>) -> Option<bool> {
    let handle = async |batch: SqsEvent| eraser.handle(batch, until).await;
    queue::step(&engine.clients.sqs, &engine.queues.erasures, handle).await
}

/// Works off everything that is there, and answers how many messages that were.
pub async fn work(engine: &Engine, eraser: &Eraser, until: Option<DateTime<Utc>>) -> usize {
    let mut messages = 0;
    while let Some(failed) = step(engine, eraser, until).await {
        assert!(!failed);
        messages += 1;
    }
    messages
}

/// What ada leaves in an engine: a turn of her own and one of eve's, what she says of both, an event that
/// is worked off, one that is not, one that came second, and a row of an export.
pub async fn leave(engine: &Engine, functions: &Router) {
    let caller = ("order-service", "feedback:on-behalf");
    let mut eves = message("m9", "Which?", "This.");
    eves["user_id"] = json!(EVE);
    let eves_turn = path("c9", "t");
    let (status, _) = call(functions, caller, (Method::PUT, &eves_turn), &eves).await;
    assert!(status.is_success(), "{status}");
    let react = json!({"reaction": "not_ok", "text": WORDS, "mirror": true});
    let edit = |message: &str| json!({"message_id": message, "signal": "edit", "reason": WORDS});
    let turn = path("c", "t");
    for request in [
        (Method::PUT, turn.clone(), message("m", WORDS, "This.")),
        (Method::POST, format!("{turn}/feedback"), react.clone()),
        (Method::POST, format!("{eves_turn}/feedback"), react),
        (Method::POST, SIGNALS.to_owned(), edit("m")),
        (Method::POST, SIGNALS.to_owned(), edit("m9")),
    ] {
        let (status, body) = asked(functions, &request).await;
        assert!(status.is_success(), "{request:?}: {body}");
    }
    generated(engine, reaction_message(engine, "c9", "ada").await).await;
    for artifact in ["x", "x"] {
        let (_, delivery) = sent(engine, functions, artifact).await;
        generated(engine, delivery).await;
    }
    sent(engine, functions, "y").await;
    let line = |turn: &str| {
        json!({"id": "fb_1", "conversation_id": "c", "turn_id": turn, "prompt": turn}).to_string()
    };
    let lines = format!("{}\n{}\n", line("t"), line("t7"));
    let key = "exports/signals/acme/2026-01-04/1/1-00001.jsonl";
    engine
        .blobs()
        .put_file(key, lines.into_bytes())
        .await
        .unwrap();
}

/// The erasure is done, and nothing of ada's is left; what was removed is counted once.
async fn assert_gone(engine: &Engine, functions: &Router, at: &str) {
    let told = asked(functions, &(Method::GET, progress("ada"), Value::Null))
        .await
        .1;
    let mut removed = told["removed"].clone();
    // A line is counted after it was removed: one that the process died in between is not.
    assert!(removed["exportRows"].as_u64().unwrap() <= 1, "{at}: {told}");
    removed["exportRows"] = json!(1);
    let expected = json!({
        "events": 2, "turns": 1, "reactions": 2, "signals": 2, "preferenceVersions": 1,
        "exportRows": 1, "importFiles": 0, "rejectedLines": 0,
    });
    assert_eq!(
        (&told["status"], &removed),
        (&json!("done"), &expected),
        "{at}"
    );
    // What still waited for the signal generator is removed when its turn comes.
    let mut waiting = rows(&engine.clients.dynamodb, &engine.names.table()).await;
    waiting.retain(|row| row["SK"].as_s().unwrap() == "EVENT");
    for event in waiting {
        generated(engine, submitted(event["core"].as_s().unwrap())).await;
    }
    let stored = Stored::read(&engine.clients, &engine.names).await;
    assert_eq!(stored.with(WORDS), Vec::<&str>::new(), "{at}");
    let own = stored.with("#ada");
    let is_erasure = |item: &&str| item.contains("\"ERASURE\"");
    assert!(own.iter().all(is_erasure), "{at}: {own:#?}");
    let told = asked(functions, &(Method::GET, progress("ada"), Value::Null))
        .await
        .1;
    assert_eq!(told["removed"]["events"], 4, "{at}");
    let rows = stored.with("fb_1");
    assert!(
        rows.len() == 1 && stored.with("\"t7\"") == rows,
        "{at}: {rows:?}"
    );
}

#[tokio::test]
async fn what_one_invocation_does_not_do_the_next_does() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine, None);
    leave(&engine, &functions).await;
    asked(&functions, &(Method::DELETE, data("ada"), Value::Null)).await;
    let over = Some(DateTime::UNIX_EPOCH);
    let messages = work(&engine, &eraser(&engine), over).await;
    assert!(messages > 4, "{messages}");
    assert_gone(&engine, &functions, "handed on").await;
}

/// An event, and how it ended: `None` if it is gone.
async fn fate(app: &TestApp, token: &str, id: &str) -> Option<Value> {
    eventually(|| async {
        let answer = app.get(token, &format!("/v1/feedback/{id}")).await;
        let queued = answer.body["status"] == "queued";
        (!queued).then(|| (answer.status == StatusCode::OK).then_some(answer.body))
    })
    .await
}

#[tokio::test]
async fn what_is_submitted_meanwhile_is_erased_or_whole() {
    let app = TestApp::start().await;
    let token = app.token(ZOE);
    let submit = |at: u32| {
        let (app, token) = (&app, &token);
        async move {
            tokio::time::sleep(Duration::from_millis(50) * at).await;
            let answer = app.submit(token, &acceptance(ZOE)).await;
            assert_eq!(answer.status, StatusCode::ACCEPTED);
            answer.body["feedbackId"].as_str().unwrap().to_owned()
        }
    };
    // They go on until after it is done.
    let (ids, told) = tokio::join!(join_all((0..120).map(submit)), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        erased(&app, ZOE).await
    });
    let late = submit(0).await;
    let until: DateTime<Utc> = told["finishedAt"].as_str().unwrap().parse().unwrap();
    let mut kept = 0;
    for id in ids.iter().chain([&late]) {
        if let Some(event) = fate(&app, &token, id).await {
            assert_eq!(event["status"], "processed", "{event}");
            let received: DateTime<Utc> = event["receivedAt"].as_str().unwrap().parse().unwrap();
            assert!(received > until, "{event}");
            kept += 1;
        }
    }
    assert!((1..ids.len()).contains(&kept), "{kept}");
    // Each that is kept was learned from, and nothing else was.
    let preferences = app
        .get(&token, &format!("/v1/preferences/{ZOE}"))
        .await
        .body;
    let learned = &preferences["artifactPreferences"]["unknown"]["sampleCount"];
    assert_eq!(*learned, json!(kept), "{preferences}");
    let stored = stored(&app).await;
    for kind in ["S(\"EVENT\")", "S(\"RESULT\")", "S(\"CLAIM#"] {
        let rows = stored
            .items
            .iter()
            .filter(|item| item.contains(kind))
            .count();
        assert_eq!(rows, kept, "{kind}");
    }
    let told = app.get(&token, &progress(ZOE)).await.body;
    assert_eq!(told["removed"]["events"], json!(ids.len() + 1 - kept));
}

#[tokio::test]
async fn a_message_that_comes_twice_closes_nothing_early() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine, None);
    leave(&engine, &functions).await;
    asked(&functions, &(Method::DELETE, data("ada"), Value::Null)).await;
    let again = asked(&functions, &(Method::DELETE, data("ada"), Value::Null)).await;
    assert_eq!(again.0, StatusCode::ACCEPTED);
    // Asked for again it is under way already.
    assert_eq!(waiting(&engine).await, 1);
    let patient = TimeDelta::minutes(15);
    let (store, blobs) = (engine.store.clone(), engine.blobs());
    let queue = engine.clients.sqs.clone();
    let erasures = Erasures::new(queue, &engine.queues.erasures, patient);
    // A clock that is ahead: the time to settle has passed.
    let clock = Clock::of(|| Utc::now() + TimeDelta::minutes(16));
    let eraser = Eraser::new(store, blobs, clock, erasures);
    let mut messages = Vec::new();
    while let Some(message) = taken(&engine).await {
        messages.push(message);
    }
    for message in messages.iter().chain(&messages) {
        let mut batch = SqsEvent::default();
        batch.records = vec![message.clone()];
        let response = eraser.handle(batch, None).await;
        assert!(response.batch_item_failures.is_empty());
    }
    let told = asked(&functions, &(Method::GET, progress("ada"), Value::Null))
        .await
        .1;
    assert_eq!(told["removed"]["turns"], 1, "{told}");
    assert_eq!(told["status"], "pending", "{told}");
}

/// How many messages there are, also such as are to come later.
async fn waiting(engine: &Engine) -> u32 {
    let told = engine.clients.sqs.get_queue_attributes();
    let told = told.queue_url(&engine.queues.erasures);
    let told = told.attribute_names(QueueAttributeName::All).send().await;
    let told = told.unwrap().attributes.unwrap();
    let number = |name: QueueAttributeName| told[&name].parse::<u32>().unwrap();
    number(QueueAttributeName::ApproximateNumberOfMessages)
        + number(QueueAttributeName::ApproximateNumberOfMessagesDelayed)
}

/// Takes a message out of the queue.
async fn taken(engine: &Engine) -> Option<SqsMessage> {
    let (sqs, queue) = (&engine.clients.sqs, &engine.queues.erasures);
    let received = sqs.receive_message().queue_url(queue).send().await;
    let message = received.unwrap().messages?.into_iter().next()?;
    let delete = sqs.delete_message().queue_url(queue);
    let delete = delete.set_receipt_handle(message.receipt_handle.clone());
    delete.send().await.unwrap();
    let mut record = SqsMessage::default();
    record.body = message.body;
    Some(record)
}

#[tokio::test]
async fn events_of_one_name_are_removed_once_and_another_users_never() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine, None);
    let mut event = acceptance("ada");
    // Two claims of ada's name an event that expired and was sent again by her, and one that eve has now.
    for (at, then_of) in [("x", "ada"), ("y", EVE)] {
        event["feedbackId"] = json!(uuid::Uuid::new_v4());
        for artifact in ["1", "2"] {
            event["artifactId"] = json!(format!("{at}{artifact}"));
            let (status, _) = asked(
                &functions,
                &(
                    Method::POST,
                    "/v1/feedback/submit".to_owned(),
                    event.clone(),
                ),
            )
            .await;
            assert_eq!(status, StatusCode::ACCEPTED);
            let stored = stored_event(&engine, &event["feedbackId"]).await.unwrap();
            let core = serde_json::to_string(&stored.core).unwrap();
            generated(&engine, submitted(&core)).await;
            if artifact == "1" || then_of == EVE {
                forget_event(&engine, &event["feedbackId"]).await;
            }
        }
    }
    let mut eves = event.clone();
    eves["userId"] = json!(EVE);
    let on_behalf = ("order-service", "feedback:on-behalf");
    let submit = (Method::POST, "/v1/feedback/submit");
    let (status, _) = call(&functions, on_behalf, submit, &eves).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    asked(&functions, &(Method::DELETE, data("ada"), Value::Null)).await;
    work(&engine, &eraser(&engine), None).await;
    let told = asked(&functions, &(Method::GET, progress("ada"), Value::Null))
        .await
        .1;
    assert_eq!(
        (&told["status"], &told["removed"]["events"]),
        (&json!("done"), &json!(1))
    );
    assert!(stored_event(&engine, &eves["feedbackId"]).await.is_some());
    let stored = Stored::read(&engine.clients, &engine.names).await;
    assert_eq!(stored.with("CLAIM#"), Vec::<&str>::new());
}

/// What the table does with an event whose time has come.
async fn forget_event(engine: &Engine, id: &Value) {
    for kind in ["EVENT", "RESULT"] {
        let delete = engine.clients.dynamodb.delete_item();
        let key = format!("EVENT#acme#{}", id.as_str().unwrap());
        let delete = delete.table_name(engine.names.table());
        let delete = delete.key("PK", AttributeValue::S(key));
        let delete = delete.key("SK", AttributeValue::S(kind.to_owned()));
        delete.send().await.unwrap();
    }
}

#[tokio::test]
async fn what_was_handed_over_before_stays_erased_however_often_it_is_delivered() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine, None);
    let event = acceptance("ada");
    let mut batch = ingested(&event);
    let sent = Utc::now().timestamp_millis().to_string();
    let attributes = &mut batch.records[0].attributes;
    attributes.insert("SentTimestamp".to_owned(), sent);
    asked(&functions, &(Method::DELETE, data("ada"), Value::Null)).await;
    work(&engine, &eraser(&engine), None).await;
    let ingest = engine.ingest(engine.store.clone());
    assert!(ingest.handle(batch).await.batch_item_failures.is_empty());
    let stored = stored_event(&engine, &event["feedbackId"]).await.unwrap();
    let core = serde_json::to_string(&stored.core).unwrap();
    generated(&engine, submitted(&core)).await;
    assert!(stored_event(&engine, &event["feedbackId"]).await.is_none());
}

#[tokio::test]
async fn what_is_sent_again_after_an_erasure_outlives_what_is_delivered_from_before() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine, None);
    let submit = |event: &Value| {
        let path = "/v1/feedback/submit".to_owned();
        (Method::POST, path, event.clone())
    };
    let event = acceptance("ada");
    assert_eq!(
        asked(&functions, &submit(&event)).await.0,
        StatusCode::ACCEPTED
    );
    let core = async || {
        let stored = stored_event(&engine, &event["feedbackId"]).await.unwrap();
        serde_json::to_string(&stored.core).unwrap()
    };
    let before = core().await;
    generated(&engine, submitted(&before)).await;
    asked(&functions, &(Method::DELETE, data("ada"), Value::Null)).await;
    work(&engine, &eraser(&engine), None).await;
    assert!(stored_event(&engine, &event["feedbackId"]).await.is_none());

    assert_eq!(
        asked(&functions, &submit(&event)).await.0,
        StatusCode::ACCEPTED
    );
    let after = core().await;
    let batches: [&[_]; 3] = [&[&before], &[&before, &after], &[&before]];
    for deliveries in batches {
        let deliveries = deliveries.iter().map(|core| submitted(core));
        generated_at_once(&engine, deliveries.collect()).await;
    }
    let stored = stored_event(&engine, &event["feedbackId"]).await.unwrap();
    assert!(stored.outcome.is_some(), "{stored:?}");
}

#[tokio::test]
async fn what_is_sent_again_while_it_is_erased_goes_with_what_is_delivered_from_before() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine, None);
    let event = acceptance("ada");
    let before = delivered(&engine, &functions, &event).await;
    asked(&functions, &(Method::DELETE, data("ada"), Value::Null)).await;
    generated(&engine, before.clone()).await;
    let after = delivered(&engine, &functions, &event).await;
    generated_at_once(&engine, vec![before, after]).await;
    assert!(stored_event(&engine, &event["feedbackId"]).await.is_none());
}
