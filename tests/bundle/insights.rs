//! Counts of hours and days: they follow what is late, replaced, withdrawn and erased.

mod reports;

use std::time::Duration;

use aws_lambda_events::sqs::SqsMessage;
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, Utc};
use hearback_domain::views::insights::{Counts, Dimension, Interval, TurnCounts};
use hearback_insights::Counter;
use hearback_lambda::clock::Clock;
use hearback_lambda::http::service;
use hearback_local::names::Names;
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::counted_hours::{all_messages, counts, expected};
use hearback_tests::engine::Engine;
use hearback_tests::events::{acceptance, id};
use hearback_tests::functions::{call, functions_of};
use hearback_tests::live::process;
use hearback_tests::queue;
use hearback_tests::rows::{attribute, rows};
use hearback_tests::turns::{SIGNALS, event_message, message, path};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

const PROJECT: &str = "order-service";

/// Waits until the counts of all hours and days are what the stored events give, and this many events hold.
async fn counted(app: &TestApp, events: u64) {
    let (clients, table) = (&app.bundle.clients, Names::default().table());
    let store = hearback_storage::Store::new(clients.dynamodb.clone(), table.clone());
    eventually(|| async {
        let stored = rows(&clients.dynamodb, &table).await;
        let expected = expected(&stored, "acme", PROJECT);
        let counts = counts(&store, "acme", PROJECT).await;
        let days = counts
            .iter()
            .filter(|(interval, _)| matches!(interval, Interval::Day(_)));
        let all = days.filter_map(|(_, day)| day.breakdowns.get(&Dimension::All));
        let all: u64 = all.map(|all| all.size().0).sum();
        (counts == expected && all == events).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_follow_what_is_late_replaced_withdrawn_and_erased() {
    let app = TestApp::start().await;
    let (ada, eve) = (app.token("ada"), app.token("eve"));
    let mut body = message("m", "How do I return an item?", "Within 30 days.");
    body["labels"] = json!({"model": "m-1", "prompt_version": "v7"});
    body["strategy"] = json!("short");
    let registered = app.put(&ada, &path("c", "t"), &body).await;
    assert_eq!(registered.status, StatusCode::CREATED);
    let feedback = format!("{}/feedback", path("c", "t"));
    for (token, verdict) in [(&ada, "ok"), (&eve, "ok"), (&eve, "not_ok")] {
        let body = json!({"reaction": verdict});
        let reacted = app.post(token, &feedback, &body).await;
        assert_eq!(reacted.status, StatusCode::OK, "{:?}", reacted.body);
    }
    counted(&app, 2).await;
    let signal = json!({"message_id": "m", "signal": "inaccurate", "reason": "14 days"});
    app.post(&ada, SIGNALS, &signal).await;
    let mut late = acceptance("eve");
    late["timestamp"] = json!("2026-01-04T09:10:00Z");
    let again = json!({"feedbackId": uuid::Uuid::new_v4()});
    let mut duplicate = late.clone();
    duplicate["feedbackId"] = again["feedbackId"].clone();
    for event in [&late, &duplicate] {
        let submitted = app.submit(&eve, event).await;
        assert_eq!(submitted.status, StatusCode::ACCEPTED);
    }
    // One that names no project is not counted.
    let mut elsewhere = acceptance("eve");
    elsewhere["context"] = json!({});
    app.submit(&eve, &elsewhere).await;
    counted(&app, 4).await;
    let withdraw = format!("/v1/feedback/{}", id(&late));
    let withdrawn = app.delete(&eve, &withdraw).await;
    assert_eq!(withdrawn.status, StatusCode::NO_CONTENT);
    counted(&app, 3).await;
    let cleared = app.post(&ada, &feedback, &json!({"reaction": null})).await;
    assert_eq!(cleared.status, StatusCode::OK);
    counted(&app, 2).await;
    let erased = app.delete(&eve, "/v1/users/eve/data").await;
    assert_eq!(erased.status, StatusCode::ACCEPTED);
    counted(&app, 1).await;
}

/// A counter on an engine.
fn counter(engine: &Engine) -> Counter {
    let dead_letters = engine.dead_letters(&engine.queues.insights_dead_letters);
    Counter::new(engine.store.clone(), Clock::system(), dead_letters)
}

fn hour() -> Interval {
    let at: DateTime<Utc> = "2026-01-04T09:00:00Z".parse().unwrap();
    Interval::hour_of(at)
}

/// The counts of all events of the hour.
async fn all(engine: &Engine) -> Counts {
    let counts = counts(&engine.store, "acme", PROJECT).await;
    let all = counts
        .get(&hour())
        .map(|hour| &hour.breakdowns[&Dimension::All]);
    all.map_or_else(Counts::default, |all| all.groups["all"].counts.clone())
}

/// An event of ada in the hour, about an artifact.
fn event(artifact: &str) -> Value {
    let mut event = acceptance("ada");
    event["artifactId"] = json!(artifact);
    event["timestamp"] = json!("2026-01-04T09:10:00Z");
    event
}

#[tokio::test]
async fn a_message_is_done_only_when_the_index_has_its_event() {
    let engine = Engine::start().await;
    let (first, second) = (event("a"), event("b"));
    for event in [&first, &second] {
        process(&engine, event).await;
    }
    let (client, table) = (&engine.clients.dynamodb, engine.names.table());
    let stored = rows(client, &table).await;
    let outcome = stored.iter().find(|row| {
        attribute(row, "SK") == "RESULT" && attribute(row, "PK").ends_with(&id(&second))
    });
    let outcome = outcome.unwrap();
    let set = async |update: &str, value: Option<AttributeValue>| {
        let update = client
            .update_item()
            .table_name(&table)
            .key("PK", outcome["PK"].clone())
            .key("SK", outcome["SK"].clone())
            .update_expression(update);
        let update = match value {
            Some(value) => update.expression_attribute_values(":at", value),
            None => update,
        };
        update.send().await.unwrap();
    };
    // As long as it has no sort key, the index does not have it.
    set("REMOVE occurred_at", None).await;
    let messages = all_messages(&engine).await;
    let batch = queue::batch(messages.clone());
    let response = counter(&engine).handle(batch.clone()).await;
    let failed = response.batch_item_failures.iter();
    let failed: Vec<_> = failed
        .map(|failure| failure.item_identifier.clone())
        .collect();
    let late = messages.iter().find(|message| {
        let body = message.body.as_deref().unwrap();
        body.contains(&id(&second))
    });
    assert_eq!(failed, [late.unwrap().message_id.clone().unwrap()]);
    assert_eq!(all(&engine).await.events, 1);
    // It arrives while the hour is counted again and again.
    let arrives = async {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        set(
            "SET occurred_at = :at",
            Some(outcome["occurred_at"].clone()),
        )
        .await;
    };
    let counter = counter(&engine);
    let (response, ()) = futures::future::join(counter.handle(batch), arrives).await;
    assert!(response.batch_item_failures.is_empty());
    assert_eq!(all(&engine).await.events, 2);
}

#[tokio::test]
async fn a_message_about_a_turn_is_done_only_when_the_index_has_it() {
    let engine = Engine::start().await;
    let mut body = message("m", "How do I return an item?", "Within 30 days.");
    body["ts"] = json!("2026-01-04T09:10:00Z");
    let turn = path("c", "t");
    let request = (Method::PUT, turn.as_str());
    let caller = (PROJECT, "");
    let (status, _) = call(&functions_of(&engine), caller, request, &body).await;
    assert_eq!(status, StatusCode::CREATED);
    let (client, table) = (&engine.clients.dynamodb, engine.names.table());
    let stored = rows(client, &table).await;
    let row = stored.iter().find(|row| attribute(row, "SK") == "TURN#t");
    let row = row.unwrap();
    let messages = queue::batch(all_messages(&engine).await);
    let set = async |name: &str, value: Option<AttributeValue>| {
        let update = client
            .update_item()
            .table_name(&table)
            .key("PK", row["PK"].clone())
            .key("SK", row["SK"].clone())
            .expression_attribute_names("#name", name);
        let update = match value {
            Some(value) => update
                .update_expression("SET #name = :value")
                .expression_attribute_values(":value", value),
            None => update.update_expression("REMOVE #name"),
        };
        update.send().await.unwrap();
    };
    let handle = async || {
        let handled = counter(&engine).handle(messages.clone()).await;
        (handled.batch_item_failures.len(), all(&engine).await.turns)
    };
    // As long as it has no partition key, the index does not have it.
    set("hour", None).await;
    assert_eq!(handle().await, (1, TurnCounts::default()));
    set("hour", Some(row["hour"].clone())).await;
    assert_eq!(handle().await, (0, TurnCounts::from([1, 0, 0, 0])));
    // Feedback has come since: another message follows, and this one is done.
    set("is_inferred", Some(AttributeValue::Bool(true))).await;
    assert_eq!(handle().await, (0, TurnCounts::from([1, 0, 1, 1])));
    let delete = client.delete_item().table_name(&table);
    let delete = delete.key("PK", row["PK"].clone());
    delete.key("SK", row["SK"].clone()).send().await.unwrap();
    assert_eq!(handle().await, (0, TurnCounts::default()));
}

#[tokio::test]
async fn a_retraction_may_come_first_and_name_another_project() {
    let engine = Engine::start().await;
    let event = event("a");
    process(&engine, &event).await;
    let processed = all_messages(&engine).await;
    let withdrawn = json!({
        "eventType": "feedback.retracted", "tenant": "acme", "projectId": "elsewhere",
        "feedbackId": event["feedbackId"], "userId": "ada"
    });
    let withdrawn = [hearback_tests::counted_hours::message(&withdrawn)];
    let handle = async |messages: &[SqsMessage]| {
        let batch = queue::batch(messages.to_vec());
        counter(&engine).handle(batch).await.batch_item_failures
    };
    assert!(handle(&withdrawn).await.is_empty());
    let counts = all(&engine).await;
    assert_eq!((counts.events, counts.retracted), (0, 1));
    assert!(handle(&processed).await.is_empty());
    assert_eq!(all(&engine).await, counts);
    // Of another event, the retraction is stored and its message is done before the event has an outcome.
    let later = self::event("b");
    let functions = engine.with_blobs(engine.store.clone());
    let functions = service(hearback_local::gateway::functions(
        functions,
        engine.erasures(),
    ));
    let caller = ("order-service", "");
    let submit = (Method::POST, "/v1/feedback/submit");
    let (status, _) = call(&functions, caller, submit, &later).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let path = format!("/v1/feedback/{}", id(&later));
    let (status, _) = call(&functions, caller, (Method::DELETE, &path), &Value::Null).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert!(handle(&all_messages(&engine).await).await.is_empty());
    let message = event_message(&engine, &later["feedbackId"]).await;
    let generator = engine.generator(engine.store.clone());
    let processed = generator.handle(queue::batch([message])).await;
    assert!(processed.batch_item_failures.is_empty());
    let mut of_later = all_messages(&engine).await;
    of_later.retain(|message| {
        let body = message.body.as_deref().unwrap();
        body.contains(&id(&later)) && body.contains("feedback.processed")
    });
    assert!(handle(&of_later).await.is_empty());
    let stored = rows(&engine.clients.dynamodb, &engine.names.table()).await;
    // The mark on the first event has no stored retraction here.
    let expected = expected(&stored, "acme", PROJECT);
    let of_later = expected[&hour()].breakdowns[&Dimension::All].groups["all"]
        .counts
        .retracted;
    assert_eq!(all(&engine).await.retracted, 1 + of_later);
}

#[tokio::test]
async fn a_poisoned_message_stops_no_other() {
    let engine = Engine::start().await;
    process(&engine, &event("a")).await;
    let mut messages = all_messages(&engine).await;
    for body in [json!({"eventType": "feedback.unknown"}), json!([])] {
        messages.push(hearback_tests::counted_hours::message(&body));
    }
    let response = counter(&engine)
        .handle(queue::batch(messages.clone()))
        .await;
    let failed = response.batch_item_failures.iter();
    let failed: Vec<_> = failed
        .map(|failure| Some(failure.item_identifier.clone()))
        .collect();
    let expected = messages[1..]
        .iter()
        .map(|message| message.message_id.clone());
    assert_eq!(failed, expected.collect::<Vec<_>>());
    assert_eq!(all(&engine).await.events, 1);
}

#[tokio::test]
async fn damaged_counts_are_counted_again() {
    let engine = Engine::start().await;
    process(&engine, &event("a")).await;
    let messages = all_messages(&engine).await;
    let count = async || {
        let batch = queue::batch(messages.clone());
        counter(&engine).handle(batch).await.batch_item_failures
    };
    assert!(count().await.is_empty());
    let (client, table) = (&engine.clients.dynamodb, engine.names.table());
    for row in rows(client, &table).await {
        if attribute(&row, "PK").starts_with("INSIGHTS#") {
            hearback_tests::rows::damage(client, &table, &row, "core").await;
        }
    }
    assert_eq!(all(&engine).await.events, 0);
    assert!(count().await.is_empty());
    assert_eq!(all(&engine).await.events, 1);
    let expected = expected(&rows(client, &table).await, "acme", PROJECT);
    assert_eq!(counts(&engine.store, "acme", PROJECT).await, expected);
}
