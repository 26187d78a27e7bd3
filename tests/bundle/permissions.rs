//! Each function's role allows the calls that the function makes. AWS enforces roles; the engines of the tests do
//! not.

mod workers;

use std::collections::BTreeSet;

use axum::Router;
use axum::http::Method;
use hearback_erasure::Requests;
use hearback_insights::Counter;
use hearback_lambda::clock::Clock;
use hearback_lambda::http::service;
use hearback_lambda::{App, WithBlobs};
use hearback_operations::{DeadLetterQueue, Queues};
use hearback_relay::{Sender, WebhookRegistry, webhook_routes};
use hearback_tests::counted_hours::{self, all_messages};
use hearback_tests::engine::Engine;
use hearback_tests::events::acceptance;
use hearback_tests::functions::call;
use hearback_tests::live::{LiveFunctions, process};
use hearback_tests::permissions::{Permission, Recorder};
use hearback_tests::queue;
use hearback_tests::rows::damage_pointers;
use hearback_tests::template::{each, resource, resources};
use hearback_tests::turns::{BY_STATUS, FEED, PERIOD, SIGNALS, conversation_path, message, path};
use serde_json::{Value, json};

use crate::erasure;
use crate::erasure_steps::world::World;

const INSIGHTS: &str = "/v1/projects/order-service/insights?groupBy=label.model";

/// The folders of the bucket.
const FOLDERS: [&str; 5] = [
    "turn-logs",
    "exports",
    "imports",
    "imports-work",
    "erasures",
];

/// The permissions of a function's role in the template, each with a pattern of resources.
fn allowed(function: &str) -> Vec<Permission> {
    // The console calls nothing, and its role allows nothing.
    let policies = resource(function)["Policies"].clone();
    let statements = policies[0]["Statement"].as_array();
    assert_eq!(statements.is_none(), function == "ConsoleFunction");
    let statements = statements.into_iter().flatten();
    statements
        .flat_map(|statement| {
            let actions = each(&statement["Action"]).into_iter();
            let resources = each(&statement["Resource"]);
            actions.flat_map(move |action| {
                let action = action.as_str().unwrap().to_owned();
                let listed = prefixes(&action, statement);
                let patterns = resources.iter().flat_map(|of| {
                    let arn = arn(of);
                    match &listed {
                        Some(prefixes) => prefixes
                            .iter()
                            .map(|prefix| format!("{arn}?prefix={prefix}"))
                            .collect(),
                        None => vec![arn],
                    }
                });
                let allowed = patterns.map(|pattern| (action.clone(), pattern));
                allowed.collect::<Vec<_>>()
            })
        })
        .collect()
}

fn arn(resource: &Value) -> String {
    match resource {
        Value::Object(of) if of.contains_key("GetAtt") => {
            format!("${{{}}}", of["GetAtt"].as_str().unwrap())
        }
        of => of["Sub"].as_str().unwrap().to_owned(),
    }
}

/// The prefixes to which a statement limits an action that lists keys.
fn prefixes(action: &str, statement: &Value) -> Option<Vec<String>> {
    action.starts_with("s3:ListBucket").then(|| {
        let prefixes = each(&statement["Condition"]["StringLikeIfExists"]["s3:prefix"]);
        let text = |prefix: &Value| {
            prefix
                .as_str()
                .expect("every listing has a prefix")
                .to_owned()
        };
        prefixes.iter().map(text).collect()
    })
}

/// Whether a role allows a call: the action, on a resource that matches a pattern.
fn allows(role: &[Permission], (action, resource): &Permission) -> bool {
    role.iter().any(|(allowed, pattern)| {
        let matches = match pattern.strip_suffix('*') {
            Some(prefix) => resource.starts_with(prefix),
            None => resource == pattern,
        };
        allowed == action && matches
    })
}

/// A table and a bucket whose calls are recorded.
struct Recorded {
    engine: Engine,
    recorder: Recorder,
}

impl Recorded {
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

    /// Makes calls with all functions, without recording them.
    async fn prepare(&self, calls: &[(Method, &str, Value)]) {
        let with_blobs = self.engine.with_blobs(self.engine.store.clone());
        let functions = hearback_local::gateway::functions(with_blobs, self.engine.erasures());
        make_calls(&service(functions), calls).await;
    }

    /// Asserts that a function's role allows the recorded calls.
    fn check(&self, function: &str) {
        let rejected = self.denied(function);
        assert!(rejected.is_empty(), "{function} may not {rejected:?}");
    }

    /// The recorded calls that a function's role does not allow.
    fn denied(&self, function: &str) -> Vec<Permission> {
        let called = self.recorder.take();
        assert!(!called.is_empty(), "{function} made no calls");
        let role = allowed(function);
        let rejected = called.into_iter().filter(|call| !allows(&role, call));
        rejected.collect()
    }
}

async fn make_calls(functions: &Router, calls: &[(Method, &str, Value)]) {
    for (method, path, body) in calls {
        let caller = ("order-service billing", "");
        let (status, response) = call(functions, caller, (method.clone(), path), body).await;
        assert!(status.is_success(), "{method} {path}: {status} {response}");
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

fn about_the_turn() -> Value {
    let mut event = acceptance("ada");
    event["context"]["conversationId"] = json!("c");
    event["context"]["turnId"] = json!("t");
    event
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

#[test]
fn roles_grant_access_to_objects_by_whole_folders() {
    let functions = resources("AWS::Serverless::Function").into_iter();
    let patterns = functions.flat_map(|(function, _)| allowed(&function));
    let mut count = 0;
    for (action, pattern) in patterns.filter(|(action, _)| action.starts_with("s3:")) {
        // `imports*` would be the files of a folder `imports-of-others`, too.
        let folder = pattern
            .strip_suffix("/*")
            .and_then(|at| at.rsplit(['/', '=']).next());
        let folder = folder.unwrap_or_else(|| panic!("{action} on {pattern}"));
        assert!(FOLDERS.contains(&folder), "{action} on {pattern}");
        count += 1;
    }
    assert!(count > 20, "{count}");
}

#[tokio::test]
async fn a_role_allows_only_the_keys_that_it_names() {
    let recorded = Recorded::start().await;
    let blobs = recorded.engine.blobs_with(recorded.recorder.clone());
    for key in ["exports/x.jsonl", "turn-logs/x.json", "turn-logs-of-others"] {
        blobs.put_file(key, b"{}".to_vec()).await.unwrap();
    }
    let put = |key: &str| ("s3:PutObject".to_owned(), format!("${{Bucket.Arn}}/{key}"));
    let rejected = [put("exports/x.jsonl"), put("turn-logs-of-others")];
    assert_eq!(recorded.denied("TurnsFunction"), rejected);
}

#[tokio::test]
async fn the_role_of_submit_allows_its_calls() {
    let recorded = Recorded::start().await;
    recorded.prepare(&[turn()]).await;
    let functions = service(hearback_submit::routes().router(recorded.app()));
    let withdrawal = format!("{SIGNALS}?message_id=m&signal=edit");
    let event = about_the_turn();
    let submitted = format!("/v1/feedback/{}", event["feedbackId"].as_str().unwrap());
    let calls = [
        (Method::POST, "/v1/feedback/submit", event),
        (Method::DELETE, &submitted, Value::Null),
        reaction(),
        signal(),
        (Method::DELETE, &withdrawal, Value::Null),
    ];
    make_calls(&functions, &calls).await;
    recorded.check("SubmitFunction");
}

#[tokio::test]
async fn the_role_of_batch_allows_its_calls() {
    let recorded = Recorded::start().await;
    let functions = service(hearback_batch::routes().router(recorded.app().into()));
    let events = json!({"events": [acceptance("ada")]});
    make_calls(&functions, &[(Method::POST, "/v1/feedback/batch", events)]).await;
    recorded.check("BatchFunction");
}

#[tokio::test]
async fn the_role_of_turns_allows_its_calls() {
    let recorded = Recorded::start().await;
    let functions = service(hearback_turns::routes().router(recorded.with_blobs().into()));
    let (_, _, first) = turn();
    let mut next = first.clone();
    next["user"]["text"] = json!("No, that's wrong.");
    next["assistant"]["message_id"] = json!("n");
    let path = path("c", "u");
    let next = (Method::PUT, path.as_str(), next);
    make_calls(&functions, &[turn(), next.clone(), turn(), next]).await;
    let (_, _, mut complete) = turn();
    complete["assistant"]["message_id"] = json!("o");
    let mut open = complete.clone();
    open.as_object_mut().unwrap().remove("assistant");
    let third = format!("{}/turns/v", conversation_path("c"));
    let steps = [open, complete].map(|body| (Method::PUT, third.as_str(), body));
    make_calls(&functions, &steps).await;
    recorded.check("TurnsFunction");
}

#[tokio::test]
async fn the_role_of_retrieval_allows_its_calls() {
    let recorded = Recorded::start().await;
    let event = acceptance("ada");
    let submitted = (Method::POST, "/v1/feedback/submit", event.clone());
    recorded
        .prepare(&[turn(), reaction(), signal(), submitted])
        .await;
    let functions = service(hearback_retrieval::routes().router(recorded.with_blobs()));
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
        (Method::GET, FEED, Value::Null),
    ];
    make_calls(&functions, &calls).await;
    // For a whole project or tenant, the lists read other indexes.
    let caller = ("order-service", "feedback:report");
    for list in [BY_STATUS, FEED, INSIGHTS] {
        let (status, _) = call(&functions, caller, (Method::GET, list), &Value::Null).await;
        assert!(status.is_success());
    }
    recorded.check("RetrievalFunction");
}

#[tokio::test]
async fn the_roles_of_stream_and_fanout_allow_their_calls() {
    let recorded = Recorded::start().await;
    let store = recorded.engine.store_with(recorded.recorder.clone());
    let functions = LiveFunctions::on(&recorded.engine, store).await;
    let mut sockets = Vec::new();
    for (id, scope) in [("own", ""), ("tenant", "feedback:report"), ("left", "")] {
        let ticket = functions.ticket(scope).await;
        sockets.push(functions.connect(id, &ticket).await);
        functions
            .live
            .receive(id, r#"{"action":"subscribe"}"#)
            .await;
    }
    functions.live.disconnect("left").await.unwrap();
    recorded.check("StreamFunction");
    process(&recorded.engine, &acceptance("ada")).await;
    assert!(functions.publish("ada").await);
    // A client that left without a word.
    sockets.clear();
    assert!(functions.publish("ada").await);
    recorded.check("FanoutFunction");
}

#[tokio::test]
async fn the_role_of_insights_allows_its_calls() {
    let recorded = Recorded::start().await;
    let engine = &recorded.engine;
    let (kept, mut withdrawn) = (acceptance("ada"), acceptance("ada"));
    withdrawn["artifactId"] = json!("another");
    for event in [&kept, &withdrawn] {
        process(engine, event).await;
    }
    let withdraw = format!("/v1/feedback/{}", withdrawn["feedbackId"].as_str().unwrap());
    recorded
        .prepare(&[(Method::DELETE, &withdraw, Value::Null)])
        .await;
    let mut messages = all_messages(engine).await;
    // An event that is not stored, as after an erasure.
    let gone = json!({
        "eventType": "feedback.retracted", "tenant": "acme", "projectId": "order-service",
        "feedbackId": uuid::Uuid::new_v4(), "userId": "ada", "timestamp": "2026-01-04T09:00:00Z"
    });
    messages.push(counted_hours::message(&gone));
    let counter = Counter::new(
        engine.store_with(recorded.recorder.clone()),
        Clock::system(),
        engine.dead_letters(&engine.queues.insights_dead_letters),
    );
    counter.handle(queue::batch(messages)).await;
    recorded.check("InsightsFunction");
}

#[tokio::test]
async fn the_role_of_webhooks_allows_its_calls() {
    let recorded = Recorded::start().await;
    let store = recorded.engine.store_with(recorded.recorder.clone());
    let sender = Sender::new("127.0.0.0/8".parse().unwrap()).unwrap();
    let registry = WebhookRegistry::new(store, sender, Clock::system());
    let functions = service(webhook_routes().router(registry));
    let hook = "/v1/webhooks/crm";
    // Nothing listens there.
    let url = json!({"url": "http://127.0.0.1:1/"});
    let caller = ("order-service", "feedback:admin");
    for (method, route, body) in [
        (Method::PUT, hook, &url),
        (Method::PUT, hook, &url),
        (Method::GET, "/v1/webhooks", &Value::Null),
        (Method::POST, "/v1/webhooks/crm/secret", &Value::Null),
        (Method::POST, "/v1/webhooks/crm/test", &Value::Null),
        (Method::DELETE, hook, &Value::Null),
    ] {
        let (status, body) = call(&functions, caller, (method, route), body).await;
        assert!(status.is_success(), "{route}: {body}");
    }
    recorded.check("WebhooksFunction");
}

#[tokio::test]
async fn the_role_of_operations_allows_its_calls_and_no_others() {
    let recorded = Recorded::start().await;
    let engine = &recorded.engine;
    let config = engine.access.sqs().config();
    let config = aws_sdk_sqs::config::Builder::from(&config)
        .interceptor(recorded.recorder.clone())
        .build();
    let queues = Queues::beside(
        aws_sdk_sqs::Client::from_conf(config),
        &engine.queues.signals,
    );
    let functions = service(hearback_operations::routes().router(queues));
    let caller = ("order-service", "feedback:operate");
    let send = async |queue: &str, body: &str| {
        let url = engine.queues.signals.strip_suffix("signals").unwrap();
        let url = format!("{url}{queue}-dead-letters");
        let send = engine.clients.sqs.send_message().queue_url(url);
        send.message_body(body).send().await.unwrap();
    };
    let subjects = [
        r#"{"eventType": "feedback.processed"}"#,
        r#"{"signalType": "reward"}"#,
        r#"{"signalType": "policy_update"}"#,
        r#"{"signalType": "exploration_hint"}"#,
    ];
    let local = |queue: &DeadLetterQueue| *queue != DeadLetterQueue::Deliveries;
    for queue in DeadLetterQueue::all().filter(local) {
        let bodies: &[&str] = match queue {
            DeadLetterQueue::Subjects => &subjects,
            _ => &["{}"],
        };
        for body in bodies {
            send(queue.as_str(), body).await;
        }
    }
    let list = (Method::GET, "/v1/operations/queues");
    let (status, body) = call(&functions, caller, list, &Value::Null).await;
    assert!(status.is_success(), "{body}");
    let redriven = DeadLetterQueue::all().filter(|queue| queue.is_redrivable());
    for queue in redriven.filter(local) {
        let path = format!("/v1/operations/dead-letters/{}/redrive", queue.as_str());
        let request = (Method::POST, path.as_str());
        let (_, body) = call(&functions, caller, request, &Value::Null).await;
        assert_eq!(body["failed"], 0, "{body}");
    }
    // The queue that only a deployed stack has is used like that of the subjects.
    let mut called = recorded.recorder.take();
    let of_subjects = called.clone().into_iter();
    let of_subjects = of_subjects.filter(|(_, queue)| queue.ends_with("-subjects-dead-letters"));
    called.extend(
        of_subjects.map(|(action, queue)| (action, queue.replace("-subjects-", "-deliveries-"))),
    );
    let role: BTreeSet<_> = allowed("OperationsFunction").into_iter().collect();
    assert_eq!(called, role);
}

#[tokio::test]
async fn the_role_of_preferences_allows_its_calls() {
    let recorded = Recorded::start().await;
    let functions = service(hearback_preferences::routes().router(recorded.app()));
    let own = "/v1/preferences/ada";
    let calls = [
        (Method::PUT, own, json!({"preferenceVersion": 0})),
        (Method::GET, own, Value::Null),
        (Method::POST, "/v1/preferences/ada/reset", Value::Null),
        (Method::GET, "/v1/preferences/ada/history", Value::Null),
        (Method::GET, "/v1/preferences/ada/resolved", Value::Null),
    ];
    make_calls(&functions, &calls).await;
    recorded.check("PreferencesFunction");
}

#[tokio::test]
async fn the_roles_of_erasure_and_eraser_allow_their_calls() {
    let recorded = Recorded::start().await;
    let engine = &recorded.engine;
    let world = World::of(engine);
    world.create_data().await;
    damage_pointers(&engine.clients.dynamodb, &engine.names.table()).await;
    let requests = Requests::new(recorded.app(), engine.erasures());
    let functions = service(hearback_erasure::routes().router(requests));
    let path = erasure::data("ada");
    let progress = format!("{path}/erasure");
    let calls = [
        (Method::DELETE, path.as_str(), Value::Null),
        (Method::GET, progress.as_str(), Value::Null),
    ];
    make_calls(&functions, &calls).await;
    recorded.check("ErasureFunction");
    let (store, blobs) = (
        engine.store_with(recorded.recorder.clone()),
        engine.blobs_with(recorded.recorder.clone()),
    );
    world.finish_by(&engine.eraser(store, blobs)).await;
    recorded.check("EraserFunction");
}
