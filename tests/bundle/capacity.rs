//! The cost card: calls and capacity units of every operation, by `ReturnConsumedCapacity`.
//! `docs/data-model.md` shows the same figures. A change that costs more fails here.

use axum::Router;
use axum::http::{Method, StatusCode};
use chrono::Utc;
use futures::StreamExt;
use futures::future::join_all;
use hearback_domain::embedded::Embedded;
use hearback_export::Exporter;
use hearback_lambda::clock::Clock;
use hearback_lambda::http::service;
use hearback_tests::engine::{Cost, Engine, Meter};
use hearback_tests::events::{acceptance, ingested};
use hearback_tests::functions::call;
use hearback_tests::queue;
use hearback_tests::turns::{
    BY_STATUS, PERIOD, SIGNALS, conversation_path, event_message, message, path, reaction_message,
    said, signal_message,
};
use serde_json::{Value, json};

use crate::erasure_steps::world::World;
use crate::{erasure, imports};

/// The functions on a table whose calls are counted.
struct Metered {
    engine: Engine,
    meter: Meter,
    functions: Router,
}

impl Metered {
    async fn start() -> Self {
        let engine = Engine::start().await;
        let meter = Meter::default();
        let app = engine.with_blobs(engine.store_with(meter.clone()));
        Self {
            functions: service(hearback_local::gateway::functions(app, engine.erasures())),
            engine,
            meter,
        }
    }

    /// Calls a function as API Gateway does, and answers what that cost.
    async fn call(&self, method: Method, path: &str, body: &Value) -> (StatusCode, Cost) {
        let caller = ("order-service", "");
        let (status, _) = call(&self.functions, caller, (method, path), body).await;
        (status, self.meter.take())
    }

    /// Delivers stored events to the signal generator as one batch.
    async fn generate(&self, events: &[Value]) -> Cost {
        let generator = self
            .engine
            .generator(self.engine.store_with(self.meter.clone()));
        let messages = events.iter();
        let messages = messages.map(|event| event_message(&self.engine, &event["feedbackId"]));
        let batch = queue::batch(join_all(messages).await);
        assert!(generator.handle(batch).await.batch_item_failures.is_empty());
        self.meter.take()
    }

    /// Delivers ada's signal on the message `m` to the signal generator.
    async fn generate_of_signal(&self, signal: &str) -> Cost {
        let metered = self.engine.store_with(self.meter.clone());
        let batch = queue::batch([signal_message(&self.engine, "ada", "m", signal).await]);
        let answer = self.engine.generator(metered).handle(batch).await;
        assert!(answer.batch_item_failures.is_empty());
        self.meter.take()
    }

    /// Delivers ada's reaction to the turn `t` of the conversation `c` to the signal generator.
    async fn generate_of_reaction(&self) -> Cost {
        let metered = self.engine.store_with(self.meter.clone());
        let batch = queue::batch([reaction_message(&self.engine, "c", "ada").await]);
        let answer = self.engine.generator(metered).handle(batch).await;
        assert!(answer.batch_item_failures.is_empty());
        self.meter.take()
    }
}

fn cost(calls: u32, reads: f64, writes: f64) -> Cost {
    Cost {
        calls,
        reads,
        writes,
    }
}

#[tokio::test]
async fn a_submit_is_one_call_and_one_write_unit() {
    let metered = Metered::start().await;
    let submit = "/v1/feedback/submit";
    let event = acceptance("ada");
    let spent = metered.call(Method::POST, submit, &event).await;
    assert_eq!(spent, (StatusCode::ACCEPTED, cost(1, 0.0, 1.0)));
    // A repeat is refused by the same single call.
    let spent = metered.call(Method::POST, submit, &event).await;
    assert_eq!(spent, (StatusCode::CONFLICT, cost(1, 0.0, 1.0)));
    // What is refused by the rules costs nothing.
    let mut broken = acceptance("ada");
    broken["data"]["rating"] = json!(9);
    let spent = metered.call(Method::POST, submit, &broken).await;
    assert_eq!(spent, (StatusCode::BAD_REQUEST, cost(0, 0.0, 0.0)));
    let spent = metered.call(Method::POST, submit, &acceptance("eve")).await;
    assert_eq!(spent, (StatusCode::FORBIDDEN, cost(0, 0.0, 0.0)));
}

#[tokio::test]
async fn an_event_costs_the_same_write_whichever_way_it_comes() {
    let metered = Metered::start().await;
    let events: Vec<_> = (0..100).map(|_| acceptance("ada")).collect();
    let body = json!({ "events": events });
    for _ in 0..2 {
        // New, and then known.
        let (status, spent) = metered
            .call(Method::POST, "/v1/feedback/batch", &body)
            .await;
        assert_eq!(status, StatusCode::ACCEPTED);
        assert_eq!(spent, cost(100, 0.0, 100.0));
    }
    let engine = &metered.engine;
    let ingest = engine.ingest(engine.store_with(metered.meter.clone()));
    let batch = ingested(&json!({"events": [acceptance("ada"), acceptance("eve")]}));
    assert!(ingest.handle(batch).await.batch_item_failures.is_empty());
    assert_eq!(metered.meter.take(), cost(2, 0.0, 2.0));

    let lines: Vec<_> = (0..100).map(|_| acceptance("ada").to_string()).collect();
    let importer = engine.importer(engine.store_with(metered.meter.clone()));
    imports::import_with(engine, &importer, lines.join("\n").into_bytes(), None).await;
    // The file's row is entered, told how many pieces it has, looked at, and told of its report; its
    // piece is looked at, finished in a transaction of two, and read for the report.
    assert_eq!(metered.meter.take(), cost(100 + 9, 5.0, 100.0 + 7.0));
}

#[tokio::test]
async fn an_event_is_worked_off_in_three_more_write_units_and_half_a_read() {
    let metered = Metered::start().await;
    let event = acceptance("ada");
    metered
        .call(Method::POST, "/v1/feedback/submit", &event)
        .await;
    // The user's newest version; claim, version, outcome.
    assert_eq!(
        metered.generate(std::slice::from_ref(&event)).await,
        cost(5, 1.0, 3.0)
    );
    // A redelivery: the version again, the claim that is held, the outcome that is there.
    assert_eq!(metered.generate(&[event]).await, cost(4, 1.5, 1.0));
}

#[tokio::test]
async fn an_event_about_a_turn_is_worked_off_in_two_more_calls_and_what_marks_and_own_turns_cost() {
    let metered = Metered::start().await;
    metered
        .call(Method::PUT, &path("c", "t"), &said("a", "b"))
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
    // Beside the event: its turn; its comment; the markers of the month and of the minute; its row; its turn's own.
    assert_eq!(seen[0], cost(5 + 6, 1.0 + 2.0, 3.0 + 1.0 + 2.0 + 1.0 + 2.0));
    // Another process, which finds the month and the minute marked, and the same said of the turn.
    assert_eq!(seen[1], cost(5 + 6, 1.0 + 2.0, 3.0 + 4.0));
}

#[tokio::test]
async fn the_outcome_of_an_act_on_a_turn_with_labels_and_a_trace_is_one_write_unit() {
    let metered = Metered::start().await;
    let turn = path(
        "0b9c7f1e-2d43-4c8a-9f10-6a5d3e8b7c21",
        "7e1d5c3b-9a80-4f6e-8b27-1c4d0f9e6a53",
    );
    let mut body = said("How do I return an item?", "Within 30 days.");
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
    // Claim, version and outcome: a reward and a policy update, and all that is published with them.
    assert_eq!(metered.meter.take(), cost(5, 1.0, 3.0));
}

#[tokio::test]
async fn a_duplicate_is_a_claim_in_vain_and_an_outcome_in_the_index() {
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
    assert_eq!(metered.generate(&[second]).await, cost(4, 1.0, 3.0));
}

#[tokio::test]
async fn an_erasure_costs_what_the_card_says() {
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
    // Whether one is open, and this one, for the user's name and the pseudonym.
    let asked = (StatusCode::ACCEPTED, cost(2, 1.0, 4.0));
    assert_eq!(erase().await, asked);
    // The row, five listings of each name for the files and five for the rows, and that it is done.
    let nothing = pass().await;
    assert_eq!(nothing, cost(22, 19.0, 4.0));
    let events: Vec<_> = (0..10).map(|_| acceptance("ada")).collect();
    for event in &events {
        metered
            .call(Method::POST, "/v1/feedback/submit", event)
            .await;
    }
    metered.generate(&events).await;
    erase().await;
    // Two passes, of which the first notes that it found something, looks before each of two pages whether
    // it is still to be removed, and once whose the events are, and removes them in two transactions and
    // the version that they taught in another.
    assert_eq!(pass().await, cost(21 + 7 + 22, 50.0, 93.0));
    // An event that is not worked off yet: the row twice, and a transaction.
    let late = acceptance("ada");
    metered
        .call(Method::POST, "/v1/feedback/submit", &late)
        .await;
    erase().await;
    assert_eq!(metered.generate(&[late]).await, cost(3, 1.5, 8.0));
}

#[tokio::test]
async fn a_batch_of_one_user_shares_the_version() {
    let metered = Metered::start().await;
    let events: Vec<_> = (0..10).map(|_| acceptance("ada")).collect();
    for event in &events {
        metered
            .call(Method::POST, "/v1/feedback/submit", event)
            .await;
    }
    // Ten claims, ten outcomes, and one version for all of them.
    assert_eq!(metered.generate(&events).await, cost(23, 1.0, 21.0));
}

#[tokio::test]
async fn reads_cost_what_the_card_says() {
    let metered = Metered::start().await;
    let event = acceptance("ada");
    metered
        .call(Method::POST, "/v1/feedback/submit", &event)
        .await;
    metered.generate(std::slice::from_ref(&event)).await;
    let get = |path: String| {
        let metered = &metered;
        async move { metered.call(Method::GET, &path, &Value::Null).await }
    };
    let event_path = format!("/v1/feedback/{}", event["feedbackId"].as_str().unwrap());
    assert_eq!(get(event_path).await, (StatusCode::OK, cost(1, 1.0, 0.0)));
    for page in ["", "/history", "/resolved"] {
        let spent = get(format!("/v1/preferences/ada{page}")).await;
        assert_eq!(spent, (StatusCode::OK, cost(1, 1.0, 0.0)), "{page}");
    }
    // Another user's is refused before anything is read.
    for page in ["", "/history", "/resolved"] {
        let spent = get(format!("/v1/preferences/eve{page}")).await;
        assert_eq!(spent, (StatusCode::FORBIDDEN, cost(0, 0.0, 0.0)), "{page}");
    }
}

#[tokio::test]
async fn changing_preferences_is_one_read_and_one_write() {
    let metered = Metered::start().await;
    let change = json!({"preferenceVersion": 0});
    let spent = metered
        .call(Method::PUT, "/v1/preferences/ada", &change)
        .await;
    // Reading a user who has none costs half of a consistent read.
    assert_eq!(spent, (StatusCode::OK, cost(3, 2.0, 1.0)));
    let spent = metered
        .call(Method::POST, "/v1/preferences/ada/reset", &Value::Null)
        .await;
    assert_eq!(spent, (StatusCode::OK, cost(3, 2.0, 1.0)));
}

#[tokio::test]
async fn registering_a_turn_is_one_look_and_a_write_for_each_item() {
    let metered = Metered::start().await;
    let turn = path("c", "t");
    let mut body = said("How?", "So.");
    let register = |body: Value| {
        let (metered, turn) = (&metered, &turn);
        async move { metered.call(Method::PUT, turn, &body).await }
    };
    // Whether it is known, and what it may follow; its place among its user's turns, and its row.
    assert_eq!(
        register(body.clone()).await,
        (StatusCode::CREATED, cost(5, 3.0, 2.0))
    );
    // A repeat is told by the look alone, and so is another body.
    assert_eq!(
        register(body.clone()).await,
        (StatusCode::OK, cost(2, 2.0, 0.0))
    );
    body["assistant"]["message_id"] = json!("message");
    assert_eq!(
        register(body.clone()).await,
        (StatusCode::CONFLICT, cost(2, 2.0, 0.0))
    );
    let other = path("c", "u");
    let mut elsewhere = body.clone();
    elsewhere["ts"] = json!("2026-01-04T10:00:00Z");
    let spent = metered.call(Method::PUT, &other, &elsewhere).await;
    assert_eq!(spent, (StatusCode::CREATED, cost(6, 3.0, 3.0)));
}

#[tokio::test]
async fn a_turn_in_two_steps_costs_its_completion_beside() {
    let metered = Metered::start().await;
    let turn = path("c", "t");
    let register = |body: &Value| {
        let (metered, turn, body) = (&metered, &turn, body.clone());
        async move { metered.call(Method::PUT, turn, &body).await }
    };
    let open = json!({"user": {"text": "How?"}});
    let opened = register(&open).await;
    assert_eq!(
        opened,
        (StatusCode::CREATED, cost(5, 3.0, 2.0)),
        "as with its answer"
    );
    // Its row, its vector, and its message.
    let body = message("m", "How?", "So.");
    let completed = register(&body).await;
    assert_eq!(completed, (StatusCode::OK, cost(5, 2.0, 3.0)), "completed");
    let opened = register(&open).await;
    assert_eq!(
        opened,
        (StatusCode::OK, cost(2, 2.0, 0.0)),
        "the first body again"
    );
    // It sees to it that the vector is the answer's.
    let completed = register(&body).await;
    assert_eq!(
        completed,
        (StatusCode::OK, cost(3, 2.0, 1.0)),
        "the second body again"
    );
}

#[tokio::test]
async fn a_turn_that_follows_another_is_noted_with_it_in_a_write_for_each_note() {
    let metered = Metered::start().await;
    metered
        .call(Method::PUT, &path("c", "t"), &said("a", "b"))
        .await;
    let rejection = said("No, that's wrong.", "b");
    let follow_up = path("c", "u");
    let register = || async { metered.call(Method::PUT, &follow_up, &rejection).await };
    // The turn before; its status with its entry in the index, and the machine's reaction with the markers of its
    // month and minute.
    let first = register().await;
    assert_eq!(first, (StatusCode::CREATED, cost(10, 4.0, 8.0)));
    // A repeat sees to it that all of it was done.
    let again = register().await;
    assert_eq!(again, (StatusCode::OK, cost(6, 3.0, 3.0)));
    let context = |turn: &str| format!("{}/feedback-context", path("c", turn));
    let neutral = metered.call(Method::GET, &context("u"), &Value::Null).await;
    assert_eq!(neutral, (StatusCode::OK, cost(1, 1.0, 0.0)));
    // The turn, and the preferences of its user.
    let rejected = metered.call(Method::GET, &context("t"), &Value::Null).await;
    assert_eq!(rejected, (StatusCode::OK, cost(2, 1.5, 0.0)));
    // The turn before, of which the next rejection in a row asks how it was taken.
    let third = metered.call(Method::PUT, &path("c", "v"), &rejection).await;
    // Whether its marker is a new one depends on the minute.
    let (status, spent) = third;
    assert_eq!(status, StatusCode::CREATED);
    assert_eq!((spent.calls, spent.reads), (10, 5.0));
}

#[tokio::test]
async fn a_reaction_of_the_machine_is_noted_with_its_turn_in_one_write() {
    let metered = Metered::start().await;
    let turn = path("c", "t");
    metered.call(Method::PUT, &turn, &said("a", "b")).await;
    let feedback = format!("{turn}/feedback");
    let body = json!({"reaction": "not_ok", "origin": "machine", "confidence": 0.9});
    let caller = ("order-service", "feedback:on-behalf");
    let request = (Method::POST, feedback.as_str());
    let (status, _) = call(&metered.functions, caller, request, &body).await;
    assert_eq!(status, StatusCode::OK);
    // The turn, and whether its user is erased; its status with its entry in the index, the markers of its month
    // and minute, and the reaction.
    assert_eq!(metered.meter.take(), cost(6, 2.0, 6.0));
    // The vectors of the caller's own turns, and the turns.
    let listed = metered.call(Method::GET, BY_STATUS, &Value::Null).await;
    assert_eq!(listed, (StatusCode::OK, cost(2, 2.0, 0.0)));
    // The four shards of the project, and the turns.
    let caller = ("order-service", "feedback:report");
    let request = (Method::GET, BY_STATUS);
    call(&metered.functions, caller, request, &Value::Null).await;
    assert_eq!(metered.meter.take(), cost(5, 3.0, 0.0));
}

#[tokio::test]
async fn a_reaction_is_one_write_unit_and_one_for_a_marker_that_is_new() {
    let metered = Metered::start().await;
    let turn = path("c", "t");
    metered.call(Method::PUT, &turn, &said("a", "b")).await;
    let feedback = format!("{turn}/feedback");
    let react = |body: Value| {
        let (metered, feedback) = (&metered, &feedback);
        async move { metered.call(Method::POST, feedback, &body).await }
    };
    let at = |second: u32, verdict: Value| json!({"reaction": verdict, "ts": format!("2025-11-06T15:30:{second:02}Z")});
    // The turn and what stands, in one call; the markers of the month and of the minute.
    let first = react(at(0, json!("ok"))).await;
    assert_eq!(first, (StatusCode::OK, cost(5, 3.0, 4.0)));
    // Its words; how the turn was taken, with its entry in the index, and its event.
    assert_eq!(metered.generate_of_reaction().await, cost(4, 1.5, 3.0));
    // This process marked that minute already.
    let replaced = react(at(1, json!("not_ok"))).await;
    assert_eq!(replaced, (StatusCode::OK, cost(3, 3.0, 1.0)));
    // And the withdrawal of what it replaced; the turn's row at the second try, which knows what was said before; the
    // entry goes from one place of the index to another.
    assert_eq!(metered.generate_of_reaction().await, cost(6, 1.5, 7.0));
    let superseded = react(at(0, json!("ok"))).await;
    assert_eq!(superseded, (StatusCode::OK, cost(2, 3.0, 0.0)));
    let cleared = react(at(2, Value::Null)).await;
    assert_eq!(cleared, (StatusCode::OK, cost(3, 3.0, 1.0)));
    let nothing = react(at(3, Value::Null)).await;
    assert_eq!(nothing, (StatusCode::OK, cost(2, 3.0, 0.0)));
    // Another minute of the same month.
    let later = react(json!({"reaction": "ok", "ts": "2025-11-06T15:31:00Z"})).await;
    assert_eq!(later, (StatusCode::OK, cost(4, 3.0, 3.0)));
    let unknown = format!("{}/feedback", path("c", "unknown"));
    let spent = metered
        .call(Method::POST, &unknown, &json!({"reaction": "ok"}))
        .await;
    assert_eq!(spent, (StatusCode::NOT_FOUND, cost(2, 3.0, 0.0)));
}

#[tokio::test]
async fn a_signal_is_two_reads_and_a_write_with_its_index_entries() {
    let metered = Metered::start().await;
    let turn = path("c", "t");
    let mut body = message("m", "a", "b");
    body["trace_id"] = json!("4f3a");
    metered.call(Method::PUT, &turn, &body).await;
    let say = |body: Value| {
        let metered = &metered;
        async move { metered.call(Method::POST, SIGNALS, &body).await }
    };
    let signal = |reason: &str| json!({"message_id": "m", "signal": "edit", "reason": reason});
    // What stands, and the message in the one project of the token; the turn; the row, and its entries by trace and by day.
    let created = say(signal("one")).await;
    assert_eq!(created, (StatusCode::CREATED, cost(4, 4.0, 3.0)));
    // Its reason; its event.
    assert_eq!(metered.generate_of_signal("edit").await, cost(3, 1.5, 1.0));
    // The indexes hold keys, which do not change.
    let replaced = say(signal("two")).await;
    assert_eq!(replaced, (StatusCode::OK, cost(4, 4.0, 1.0)));
    // And the withdrawal of what it replaced.
    assert_eq!(metered.generate_of_signal("edit").await, cost(4, 1.5, 3.0));
    let repeated = say(signal("two")).await;
    assert_eq!(repeated, (StatusCode::OK, cost(3, 4.0, 0.0)));
    let listed = metered.call(Method::GET, SIGNALS, &Value::Null).await;
    assert_eq!(listed, (StatusCode::OK, cost(1, 1.0, 0.0)));
    let target = format!("{SIGNALS}?message_id=m&signal=edit");
    let gone = metered.call(Method::DELETE, &target, &Value::Null).await;
    assert_eq!(gone, (StatusCode::NO_CONTENT, cost(2, 1.0, 3.0)));
    assert_eq!(metered.generate_of_signal("edit").await, cost(2, 0.5, 2.0));
    let again = metered.call(Method::DELETE, &target, &Value::Null).await;
    assert_eq!(again, (StatusCode::NO_CONTENT, cost(1, 1.0, 0.0)));
    // One that counts: its reason, its row among the turn's reactions with the marker of its minute and that of its
    // month, the turn's row with its entry by status, its event.
    say(json!({"message_id": "m", "signal": "helpful"})).await;
    assert_eq!(
        metered.generate_of_signal("helpful").await,
        cost(7, 1.5, 7.0)
    );
    let target = format!("{SIGNALS}?message_id=m&signal=helpful");
    metered.call(Method::DELETE, &target, &Value::Null).await;
    assert_eq!(
        metered.generate_of_signal("helpful").await,
        cost(6, 0.5, 7.0)
    );
    // A chat in none of the caller's other projects, of which it has none, costs nothing.
    let chat = say(json!({"message_id": "m", "signal": "unsafe", "chat_id": "elsewhere"})).await;
    assert_eq!(chat, (StatusCode::CREATED, cost(4, 4.0, 3.0)));
}

#[tokio::test]
async fn an_unknown_and_a_foreign_message_cost_the_same() {
    let metered = Metered::start().await;
    let turn = "/conversations/acme/billing/c/turns/t";
    let caller = ("billing", "");
    let body = message("foreign", "a", "b");
    call(&metered.functions, caller, (Method::PUT, turn), &body).await;
    metered.meter.take();
    let signal = |name: &str| json!({"message_id": name, "signal": "helpful"});
    let foreign = metered
        .call(Method::POST, SIGNALS, &signal("foreign"))
        .await;
    let unknown = metered
        .call(Method::POST, SIGNALS, &signal("unknown"))
        .await;
    assert_eq!(foreign, (StatusCode::NOT_FOUND, cost(2, 3.0, 0.0)));
    assert_eq!(unknown, foreign);
}

#[tokio::test]
async fn the_evaluation_read_costs_what_the_card_says() {
    let metered = Metered::start().await;
    for number in 0..3 {
        let mut body = message(&format!("m{number}"), "a", "b");
        body["trace_id"] = json!("4f3a");
        let turn = path("c", &format!("t{number}"));
        metered.call(Method::PUT, &turn, &body).await;
        let signal = json!({"message_id": format!("m{number}"), "signal": "helpful"});
        metered.call(Method::POST, SIGNALS, &signal).await;
    }
    let store = metered.engine.store_with(metered.meter.clone());
    let exporter = Exporter::new(store, metered.engine.blobs(), Clock::system());
    let request = json!({"tenant": "acme", "trace_id": "4f3a"});
    exporter.handle(&request, None).await.unwrap();
    // The index, the three rows in one call, and the turn of each.
    assert_eq!(metered.meter.take(), cost(5, 6.5, 0.0));
    let request = json!({"tenant": "acme", "day": Utc::now().date_naive().to_string()});
    exporter.handle(&request, None).await.unwrap();
    // The four shards of a day; all are of one user, and so in one of them.
    assert_eq!(metered.meter.take(), cost(8, 8.0, 0.0));
}

#[tokio::test]
async fn the_training_export_costs_what_the_card_says() {
    let metered = Metered::start().await;
    for number in 0..3 {
        let turn = path("c", &format!("t{number}"));
        let body = message(&format!("m{number}"), "a", "b");
        metered.call(Method::PUT, &turn, &body).await;
        let feedback = format!("{turn}/feedback");
        let reaction = json!({"reaction": "ok"});
        metered.call(Method::POST, &feedback, &reaction).await;
    }
    let store = metered.engine.store_with(metered.meter.clone());
    let exporter = Exporter::new(store, metered.engine.blobs(), Clock::system());
    let today = Utc::now().date_naive();
    let request =
        json!({"tenant": "acme", "training": {"project": "order-service", "from": today}});
    metered.meter.take();
    exporter.handle(&request, None).await.unwrap();
    // The four shards of the day in the index and of its markers; the conversation, and its turns in one
    // call.
    let without = metered.meter.take();
    assert_eq!(without, cost(10, 10.0, 0.0));
    let edit = json!({"message_id": "m0", "signal": "edit", "reason": "c"});
    metered.call(Method::POST, SIGNALS, &edit).await;
    metered.meter.take();
    exporter.handle(&request, None).await.unwrap();
    // The signal with its turn, and once more to see that its turn was met, with the reactions to that.
    let with = metered.meter.take();
    assert_eq!(with, cost(13, 13.0, 0.0));
}

/// Gives ada 5,000 turns, the last of them now, a minute apart.
async fn with_a_year_of_turns(metered: &Metered) {
    let store = &metered.engine.store;
    let now = Utc::now();
    let turns = (0..5_000_i64).map(|number| {
        let body = said(
            &format!("question {number} about topic {}", number % 700),
            "answer",
        );
        let at = serde_json::from_value(json!({
            "tenant": "acme", "project": "order-service",
            "conversation_id": format!("conversation-{}", number / 10),
            "turn_id": format!("turn_{number:013}"),
        }));
        let ada = hearback_domain::caller::Caller {
            user: "ada".try_into().unwrap(),
            tenant: "acme".try_into().unwrap(),
            projects: Vec::new(),
            scopes: Vec::new(),
        };
        let ts = now - chrono::TimeDelta::minutes(number);
        let turn = hearback_domain::turn::Turn::parse(at.unwrap(), &body, &ada, ts).unwrap();
        (turn.core.clone(), Embedded::lexical(&turn.texts()))
    });
    futures::stream::iter(turns)
        .for_each_concurrent(16, |(turn, embedded)| async move {
            store.put_vector(&turn, &embedded).await.unwrap();
        })
        .await;
}

#[tokio::test]
async fn locating_a_target_among_5000_turns_is_one_query() {
    let metered = Metered::start().await;
    with_a_year_of_turns(&metered).await;
    let search = "/conversations/acme/order-service/strategies/search";
    let query = json!({"query": "question 4711 about topic 511"});
    let (status, spent) = metered.call(Method::POST, search, &query).await;
    assert_eq!(status, StatusCode::OK);
    // The pages of one query, at half a read for each 4 KB, and the five turns in one call, each a
    // read whether or not it is there.
    assert!(spent.calls <= 4, "{spent:?}");
    assert!(spent.reads <= 400.0, "{spent:?}");
    assert!(spent.reads > 100.0 && spent.writes == 0.0, "{spent:?}");
    // The same, and whether the user is erased.
    let infer = "/conversations/acme/order-service/feedback/infer";
    let said = json!({"message": "What about topic 511?"});
    let (status, inferred) = metered.call(Method::POST, infer, &said).await;
    assert_eq!(status, StatusCode::OK);
    assert!(
        inferred.calls <= 5 && inferred.reads <= 401.0,
        "{inferred:?}"
    );
}

#[tokio::test]
async fn a_foreign_tenant_or_project_is_refused_before_anything_is_read() {
    let metered = Metered::start().await;
    let body = json!({
        "reaction": "ok", "user": {"text": "a"}, "assistant": {"text": "b"}
    });
    for root in [
        "/conversations/other/order-service",
        "/conversations/acme/other",
    ] {
        for (method, rest) in [
            (Method::PUT, "/c/turns/t"),
            (Method::GET, "/c/turns/t"),
            (Method::POST, "/c/turns/t/feedback"),
            (Method::POST, "/c/turns-with-feedbacks"),
            (Method::POST, "/c/timeline/refresh"),
            (Method::POST, "/feedback/conversations-in-period"),
        ] {
            let path = format!("{root}{rest}");
            let spent = metered.call(method, &path, &body).await;
            assert_eq!(spent, (StatusCode::FORBIDDEN, cost(0, 0.0, 0.0)), "{path}");
        }
    }
}

#[tokio::test]
async fn reports_cost_what_the_card_says() {
    let metered = Metered::start().await;
    let turn = path("c", "t");
    metered.call(Method::PUT, &turn, &said("a", "b")).await;
    let reaction = json!({"reaction": "ok", "ts": "2025-11-06T15:30:00Z"});
    metered
        .call(Method::POST, &format!("{turn}/feedback"), &reaction)
        .await;
    let spent = metered.call(Method::GET, &turn, &Value::Null).await;
    assert_eq!(spent, (StatusCode::OK, cost(2, 2.0, 0.0)));
    let turns = format!("{}/turns-with-feedbacks", conversation_path("c"));
    let spent = metered
        .call(Method::POST, &turns, &json!({"days": 3650}))
        .await;
    assert_eq!(spent, (StatusCode::OK, cost(1, 1.0, 0.0)));
    let timeline = format!("{}/timeline/refresh", conversation_path("c"));
    let request = json!({"turn_ids": ["t"], "cache": {"ttl_seconds": 0}});
    let spent = metered.call(Method::POST, &timeline, &request).await;
    assert_eq!(spent, (StatusCode::OK, cost(1, 1.0, 0.0)));
    // Four shards of a day, and the conversation.
    let period = json!({"start": "2025-11-06T00:00:00Z", "end": "2025-11-06T23:59:59Z"});
    let spent = metered.call(Method::POST, PERIOD, &period).await;
    assert_eq!(spent, (StatusCode::OK, cost(5, 5.0, 0.0)));
    // All of time: four shards of today, the months, and two looks at each day of the one month.
    let period = json!({"start": "1970-01-01T00:00:00Z", "end": "2999-01-01T00:00:00Z"});
    let (status, spent) = metered.call(Method::POST, PERIOD, &period).await;
    assert_eq!(status, StatusCode::OK);
    assert!(spent.calls < 260 && spent.writes == 0.0, "{spent:?}");
}
