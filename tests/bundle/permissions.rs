//! Each function's role allows what the function calls. No engine here checks that; AWS does.

use axum::Router;
use axum::http::Method;
use hearback_erasure::Requests;
use hearback_export::Exporter;
use hearback_lambda::clock::Clock;
use hearback_lambda::dead_letters::DeadLetters;
use hearback_lambda::http::service;
use hearback_lambda::{App, WithBlobs};
use hearback_signals::Generator;
use hearback_tests::engine::Engine;
use hearback_tests::events::{acceptance, ingested};
use hearback_tests::functions::call;
use hearback_tests::permissions::{Permission, Recorder};
use hearback_tests::queue;
use hearback_tests::template::resource;
use hearback_tests::turns::{
    BY_STATUS, PERIOD, SIGNALS, conversation_path, event_message, message, path, reaction_message,
    signal_message,
};
use serde_json::{Value, json};

use crate::erasure_steps::world::World;
use crate::{erasure, imports};

/// What the role of a function of the template allows, each on a pattern of resources.
fn allowed(function: &str) -> Vec<Permission> {
    let policies = resource(function)["Policies"].clone();
    let statements = policies[0]["Statement"].as_array().unwrap().iter();
    statements
        .map(|statement| {
            let resource = match &statement["Resource"] {
                Value::Object(of) if of.contains_key("GetAtt") => {
                    format!("${{{}}}", of["GetAtt"].as_str().unwrap())
                }
                of => of["Sub"].as_str().unwrap().to_owned(),
            };
            let action = statement["Action"].as_str().unwrap();
            (action.to_owned(), resource)
        })
        .collect()
}

/// Whether a role allows a call: the action, on a resource that a pattern of its takes in.
fn allows(role: &[Permission], (action, resource): &Permission) -> bool {
    role.iter().any(|(allowed, pattern)| {
        let takes_in = match pattern.strip_suffix('*') {
            Some(prefix) => resource.starts_with(prefix),
            None => resource == pattern,
        };
        allowed == action && takes_in
    })
}

/// A table and a bucket whose calls are noted, with something in them.
struct Watched {
    engine: Engine,
    recorder: Recorder,
}

impl Watched {
    async fn start() -> Self {
        Self {
            engine: Engine::start().await,
            recorder: Recorder::default(),
        }
    }

    fn app(&self) -> App {
        self.engine
            .app(self.engine.store_with(self.recorder.clone()))
    }

    fn with_blobs(&self) -> WithBlobs {
        WithBlobs {
            app: self.app(),
            blobs: self.engine.blobs_with(self.recorder.clone()),
        }
    }

    /// Makes calls with all functions, unnoted: what a function finds.
    async fn prepare(&self, calls: &[(Method, &str, Value)]) {
        let whole = self.engine.with_blobs(self.engine.store.clone());
        let functions = hearback_local::gateway::functions(whole, self.engine.erasures());
        make(&service(functions), calls).await;
    }

    /// Holds what was noted against the role of a function.
    fn check(&self, function: &str) {
        let refused = self.refused(function);
        assert!(refused.is_empty(), "{function} may not {refused:?}");
    }

    /// What was noted, and the role of a function does not allow.
    fn refused(&self, function: &str) -> Vec<Permission> {
        let called = self.recorder.take();
        assert!(!called.is_empty(), "{function} called nothing");
        let role = allowed(function);
        let refused = called.into_iter().filter(|call| !allows(&role, call));
        refused.collect()
    }
}

async fn make(functions: &Router, calls: &[(Method, &str, Value)]) {
    for (method, path, body) in calls {
        let caller = ("order-service billing", "");
        let (status, answer) = call(functions, caller, (method.clone(), path), body).await;
        assert!(status.is_success(), "{method} {path}: {status} {answer}");
    }
}

fn turn() -> (Method, &'static str, Value) {
    let mut turn = message("m", "question", "answer");
    turn["trace_id"] = json!("4f3a");
    (
        Method::PUT,
        "/conversations/acme/order-service/c/turns/t",
        turn,
    )
}

fn reaction() -> (Method, &'static str, Value) {
    let path = "/conversations/acme/order-service/c/turns/t/feedback";
    (
        Method::POST,
        path,
        json!({"reaction": "ok", "mirror": true}),
    )
}

fn signal() -> (Method, &'static str, Value) {
    let body = json!({"message_id": "m", "signal": "edit", "reason": "x", "chat_id": "elsewhere"});
    (Method::POST, SIGNALS, body)
}

#[tokio::test]
async fn a_role_allows_the_keys_that_it_names_and_no_other() {
    let watched = Watched::start().await;
    let blobs = watched.engine.blobs_with(watched.recorder.clone());
    for key in ["exports/x.jsonl", "turn-logs/x.json", "turn-logs-of-others"] {
        blobs.put_file(key, b"{}".to_vec()).await.unwrap();
    }
    let put = |key: &str| ("s3:PutObject".to_owned(), format!("${{Bucket.Arn}}/{key}"));
    let refused = [put("exports/x.jsonl"), put("turn-logs-of-others")];
    assert_eq!(watched.refused("TurnsFunction"), refused);
}

#[tokio::test]
async fn submit_may_what_it_calls() {
    let watched = Watched::start().await;
    watched.prepare(&[turn()]).await;
    let functions = service(hearback_submit::routes().router(watched.app()));
    let gone = format!("{SIGNALS}?message_id=m&signal=edit");
    let calls = [
        (Method::POST, "/v1/feedback/submit", acceptance("ada")),
        reaction(),
        signal(),
        (Method::DELETE, &gone, Value::Null),
    ];
    make(&functions, &calls).await;
    watched.check("SubmitFunction");
}

#[tokio::test]
async fn batch_may_what_it_calls() {
    let watched = Watched::start().await;
    let functions = service(hearback_batch::routes().router(watched.app().into()));
    let events = json!({"events": [acceptance("ada")]});
    make(&functions, &[(Method::POST, "/v1/feedback/batch", events)]).await;
    watched.check("BatchFunction");
}

#[tokio::test]
async fn ingest_may_what_it_calls() {
    let watched = Watched::start().await;
    let engine = &watched.engine;
    let ingest = engine.ingest(engine.store_with(watched.recorder.clone()));
    let batch = ingested(&acceptance("ada"));
    assert!(ingest.handle(batch).await.batch_item_failures.is_empty());
    watched.check("IngestFunction");
}

#[tokio::test]
async fn imports_may_what_it_calls() {
    let watched = Watched::start().await;
    let engine = &watched.engine;
    let (store, blobs) = (
        engine.store_with(watched.recorder.clone()),
        engine.blobs_with(watched.recorder.clone()),
    );
    let importer = engine.importer_with(store, blobs);
    let mut anonymous = acceptance("ada");
    anonymous["privacyFlags"] = json!({"anonymize": true});
    let lines = format!("no event\n{anonymous}");
    for packed in [
        lines.clone().into_bytes(),
        zstd::encode_all(lines.as_bytes(), 1).unwrap(),
    ] {
        imports::import_with(engine, &importer, packed, None).await;
    }
    // The bucket keeps versions.
    imports::import_with(engine, &importer, b"7".to_vec(), Some("v1")).await;
    watched.check("ImportsFunction");
}

#[tokio::test]
async fn turns_may_what_it_calls() {
    let watched = Watched::start().await;
    let functions = service(hearback_turns::routes().router(watched.with_blobs().into()));
    let (_, _, first) = turn();
    let mut next = first.clone();
    next["user"]["text"] = json!("No, that's wrong.");
    next["assistant"]["message_id"] = json!("n");
    let path = path("c", "u");
    let next = (Method::PUT, path.as_str(), next);
    make(&functions, &[turn(), next.clone(), turn(), next]).await;
    let (_, _, mut whole) = turn();
    whole["assistant"]["message_id"] = json!("o");
    let mut open = whole.clone();
    open.as_object_mut().unwrap().remove("assistant");
    let third = format!("{}/turns/v", conversation_path("c"));
    let steps = [open, whole].map(|body| (Method::PUT, third.as_str(), body));
    make(&functions, &steps).await;
    watched.check("TurnsFunction");
}

#[tokio::test]
async fn retrieval_may_what_it_calls() {
    let watched = Watched::start().await;
    let event = acceptance("ada");
    let submitted = (Method::POST, "/v1/feedback/submit", event.clone());
    watched
        .prepare(&[turn(), reaction(), signal(), submitted])
        .await;
    let functions = service(hearback_retrieval::routes().router(watched.with_blobs()));
    let status = format!("/v1/feedback/{}", event["feedbackId"].as_str().unwrap());
    let turns = format!("{}/turns-with-feedbacks", conversation_path("c"));
    let timeline = format!("{}/timeline/refresh", conversation_path("c"));
    let day = chrono::Utc::now().date_naive();
    let period = json!({"start": format!("{day}T00:00:00Z"), "end": format!("{day}T23:59:59Z")});
    let calls = [
        (Method::GET, status.as_str(), Value::Null),
        (Method::GET, &path("c", "t"), Value::Null),
        (Method::POST, &turns, json!({"include_turn_logs": true})),
        (
            Method::POST,
            &timeline,
            json!({"turn_ids": ["t"], "cache": {"ttl_seconds": 0}}),
        ),
        (Method::POST, PERIOD, period),
        (Method::GET, SIGNALS, Value::Null),
        (Method::GET, BY_STATUS, Value::Null),
    ];
    make(&functions, &calls).await;
    // Over all of a project it is an index.
    let caller = ("order-service", "feedback:report");
    let (status, _) = call(&functions, caller, (Method::GET, BY_STATUS), &Value::Null).await;
    assert!(status.is_success());
    watched.check("RetrievalFunction");
}

#[tokio::test]
async fn preferences_may_what_it_calls() {
    let watched = Watched::start().await;
    let functions = service(hearback_preferences::routes().router(watched.app()));
    let own = "/v1/preferences/ada";
    let calls = [
        (Method::PUT, own, json!({"preferenceVersion": 0})),
        (Method::GET, own, Value::Null),
        (Method::POST, "/v1/preferences/ada/reset", Value::Null),
        (Method::GET, "/v1/preferences/ada/history", Value::Null),
        (Method::GET, "/v1/preferences/ada/resolved", Value::Null),
    ];
    make(&functions, &calls).await;
    watched.check("PreferencesFunction");
}

#[tokio::test]
async fn erasure_and_eraser_may_what_they_call() {
    let watched = Watched::start().await;
    let engine = &watched.engine;
    let world = World::of(engine);
    world.leave().await;
    let requests = Requests::new(watched.app(), engine.erasures());
    let functions = service(hearback_erasure::routes().router(requests));
    let path = erasure::data("ada");
    let progress = format!("{path}/erasure");
    let calls = [
        (Method::DELETE, path.as_str(), Value::Null),
        (Method::GET, progress.as_str(), Value::Null),
    ];
    make(&functions, &calls).await;
    watched.check("ErasureFunction");
    let (store, blobs) = (
        engine.store_with(watched.recorder.clone()),
        engine.blobs_with(watched.recorder.clone()),
    );
    world.finish_by(&engine.eraser(store, blobs)).await;
    watched.check("EraserFunction");
}

#[tokio::test]
async fn signals_may_what_it_calls() {
    let watched = Watched::start().await;
    let event = acceptance("ada");
    let submitted = (Method::POST, "/v1/feedback/submit", event.clone());
    watched
        .prepare(&[turn(), reaction(), signal(), submitted])
        .await;
    let engine = &watched.engine;
    let generator = Generator::new(
        engine.store_with(watched.recorder.clone()),
        engine.blobs_with(watched.recorder.clone()),
        DeadLetters::new(engine.clients.sqs.clone(), &engine.queues.dead_letters),
        Clock::system(),
    );
    let batch = queue::batch([
        event_message(engine, &event["feedbackId"]).await,
        reaction_message(engine, "c", "ada").await,
        signal_message(engine, "ada", "m", "edit").await,
    ]);
    // Twice: a redelivery asks for more. And once its user is erased, for something else.
    for at in 0..3 {
        if at == 2 {
            let erase = erasure::data("ada");
            watched
                .prepare(&[(Method::DELETE, &erase, Value::Null)])
                .await;
        }
        let answer = generator.handle(batch.clone()).await;
        assert!(answer.batch_item_failures.is_empty());
    }
    watched.check("SignalsFunction");
}

#[tokio::test]
async fn export_may_what_it_calls() {
    let watched = Watched::start().await;
    watched.prepare(&[turn(), signal(), reaction()]).await;
    let exporter = Exporter::new(
        watched.engine.store_with(watched.recorder.clone()),
        watched.engine.blobs_with(watched.recorder.clone()),
        Clock::system(),
    );
    let today = chrono::Utc::now().date_naive().to_string();
    let training = json!({"training": {"project": "order-service", "from": today}});
    for asked in [json!({"trace_id": "4f3a"}), json!({"day": today}), training] {
        let mut request = asked;
        request["tenant"] = json!("acme");
        exporter.handle(&request, None).await.unwrap();
    }
    watched.check("ExportFunction");
}
