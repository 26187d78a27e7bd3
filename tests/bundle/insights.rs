//! Counts of hours and days: they follow what is late, replaced, withdrawn and erased.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_lambda_events::sqs::SqsMessage;
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, NaiveDate, Utc};
use hearback_domain::views::insights::{Counts, Dimension, Interval, TurnCounts};
use hearback_insights::Counter;
use hearback_lambda::clock::Clock;
use hearback_lambda::http::service;
use hearback_local::demo::month::Month;
use hearback_local::demo::{self, DemoTarget};
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

fn rating(user: &str, stars: u8, model: &str, at: &str) -> Value {
    let mut event = acceptance(user);
    event["feedbackType"] = json!("rating");
    event["data"] = json!({"rating": stars});
    event["artifactId"] = json!(format!("{model} {at}"));
    event["timestamp"] = json!(at);
    event["context"] = json!({"projectId": PROJECT, "labels": {"model": model}});
    event
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn insights_answer_by_interval_and_value() {
    let app = TestApp::start().await;
    let events = [
        rating("ada", 5, "m-1", "2026-11-02T23:59:59Z"),
        rating("eve", 2, "m-1", "2026-11-03T00:00:00Z"),
        rating("ada", 1, "m-2", "2026-11-03T10:00:00Z"),
        rating("ada", 1, "m-2", "2026-11-10T10:00:00Z"),
    ];
    for event in &events {
        let user = app.token(event["userId"].as_str().unwrap());
        let submitted = app.submit(&user, event).await;
        assert_eq!(
            submitted.status,
            StatusCode::ACCEPTED,
            "{:?}",
            submitted.body
        );
    }
    counted(&app, 4).await;
    let analyst = app.token_of("analyst", "acme", "feedback:report");
    let read = async |query: &str| {
        let path = format!("/v1/projects/{PROJECT}/insights?from=2026-11-01T00:00:00Z&{query}");
        let response = app.get(&analyst, &path).await;
        assert_eq!(response.status, StatusCode::OK, "{:?}", response.body);
        response.body
    };
    let november = "to=2026-12-01T00:00:00Z";
    let days = read(november).await;
    let starts = |report: &Value| {
        let intervals = report["intervals"].as_array().unwrap().clone();
        let parts = intervals.into_iter();
        parts
            .map(|part| json!([part["start"], part["events"]]))
            .collect::<Value>()
    };
    assert_eq!(
        starts(&days),
        json!([
            ["2026-11-02T00:00:00Z", 1],
            ["2026-11-03T00:00:00Z", 2],
            ["2026-11-10T00:00:00Z", 1]
        ])
    );
    assert_eq!(days["total"]["meanRating"], json!(2.25));
    assert_eq!(days["total"]["satisfactionRate"], json!(0.25));
    assert_eq!(days["total"]["byUser"]["users"], 2);
    assert_eq!(days["groups"], Value::Null);
    let hours = read(&format!("{november}&interval=hour")).await;
    assert_eq!(starts(&hours)[0], json!(["2026-11-02T23:00:00Z", 1]));
    assert_eq!(hours["total"], days["total"]);
    let weeks = read(&format!("{november}&interval=week&groupBy=label.model")).await;
    assert_eq!(
        starts(&weeks),
        json!([["2026-11-02T00:00:00Z", 3], ["2026-11-09T00:00:00Z", 1]])
    );
    assert_eq!(weeks["total"], days["total"]);
    let groups = weeks["groups"].as_array().unwrap();
    let values: Vec<_> = groups.iter().map(|group| &group["value"]).collect();
    assert_eq!(values, ["m-1", "m-2"]);
    assert_eq!(groups[1]["total"]["satisfactionHigh"].as_f64().unwrap(), {
        hearback_domain::views::insights::wilson(0.0, 2.0)
            .unwrap()
            .1
    });
    let origins = read(&format!("{november}&groupBy=origin")).await;
    assert_eq!(origins["groups"][0]["value"], "user");
    assert_eq!(origins["groups"][0]["total"]["byUser"], Value::Null);
    let nothing = read("to=2026-11-02T00:00:00Z&groupBy=agentId").await;
    assert_eq!(nothing["total"]["events"], 0);
    assert_eq!(nothing["total"]["satisfactionRate"], Value::Null);
    assert_eq!(
        (&nothing["intervals"], &nothing["groups"]),
        (&json!([]), &json!([]))
    );
}

/// The turns of a group, and how many of them have feedback: explicit, inferred, any.
fn turns_of(group: &Value) -> Value {
    let turns = &group["turns"];
    let names = ["registered", "explicit", "inferred", "any"];
    names.iter().map(|name| turns[*name].clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rates_come_with_the_share_of_turns_that_have_feedback() {
    let app = TestApp::start().await;
    let (ada, eve) = (app.token("ada"), app.token("eve"));
    let register = async |user: &str, conversation: &str, turn: &str, said: &str, minute: u32| {
        let name = format!("{conversation}-{turn}");
        let mut body = message(&name, said, "Within 30 days.");
        body["ts"] = json!(format!("2026-11-02T10:{minute:02}:00Z"));
        body["labels"] = json!({"model": if minute < 10 { "m-1" } else { "m-2" }});
        let registered = app.put(user, &path(conversation, turn), &body).await;
        assert_eq!(registered.status, StatusCode::CREATED);
    };
    register(&ada, "c", "1", "How do I return an item?", 0).await;
    // This is a rejection of the turn before, and a reaction follows to both.
    register(&ada, "c", "2", "No, I meant online orders", 1).await;
    register(&eve, "d", "1", "Is it open today?", 20).await;
    register(&eve, "e", "1", "Where is my parcel?", 40).await;
    let react = async |turn: &str, reaction: Value| {
        let feedback = format!("{}/feedback", path("c", turn));
        let body = json!({"reaction": reaction, "ts": "2026-11-02T11:00:00Z"});
        let reacted = app.post(&ada, &feedback, &body).await;
        assert_eq!(reacted.status, StatusCode::OK, "{:?}", reacted.body);
    };
    react("1", json!("not_ok")).await;
    react("2", json!("ok")).await;
    // A cleared reaction does not count, and neither does the reaction of somebody else.
    react("2", Value::Null).await;
    let others = format!("{}/feedback", path("d", "1"));
    let ok = json!({"reaction": "ok", "ts": "2026-11-02T11:00:00Z"});
    let reacted = app.post(&ada, &others, &ok).await;
    assert_eq!(reacted.status, StatusCode::OK);
    counted(&app, 3).await;
    let analyst = app.token_of("analyst", "acme", "feedback:report");
    let read = async |by: &str| {
        let period = "from=2026-11-02T00:00:00Z&to=2026-11-03T00:00:00Z&interval=hour";
        let path = format!("/v1/projects/{PROJECT}/insights?{period}&groupBy={by}");
        app.get(&analyst, &path).await.body
    };
    let models = read("label.model").await;
    assert_eq!(turns_of(&models["total"]), json!([4, 1, 1, 1]));
    assert_eq!(models["total"]["turns"]["anyShare"], json!(0.25));
    let groups: Vec<_> = models["groups"].as_array().unwrap().iter().collect();
    let of_models: Vec<_> = groups
        .iter()
        .map(|group| turns_of(&group["total"]))
        .collect();
    assert_eq!(of_models, [json!([2, 1, 1, 1]), json!([2, 0, 0, 0])]);
    // Events are counted by the time of the feedback, and turns by their `ts`.
    let first = &models["intervals"][0];
    assert_eq!(first["start"], "2026-11-02T10:00:00Z");
    assert_eq!(turns_of(first), json!([4, 1, 1, 1]));
    let channels = read("channel").await;
    assert_eq!(channels["groups"][0]["total"]["turns"], Value::Null);
    let values = channels["groups"].as_array().unwrap().iter();
    let values: Vec<_> = values.map(|group| group["value"].clone()).collect();
    assert_eq!(values, ["explicit", "implicit"], "turns have no channel");
    let erased = app.delete(&eve, "/v1/users/eve/data").await;
    assert_eq!(erased.status, StatusCode::ACCEPTED);
    eventually(|| async {
        let total = turns_of(&read("label.model").await["total"]);
        (total == json!([2, 1, 1, 1])).then_some(())
    })
    .await;
}

#[tokio::test]
async fn insights_need_the_scope_and_a_project_of_the_token() {
    let app = TestApp::start().await;
    let path = format!("/v1/projects/{PROJECT}/insights");
    let refused = app.get(&app.token("ada"), &path).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{:?}", refused.body);
    let analyst = app.token_of("analyst", "acme", "feedback:report");
    let other = app.get(&analyst, "/v1/projects/elsewhere/insights").await;
    assert_eq!(other.status, StatusCode::FORBIDDEN);
    let invalid = format!("{path}?groupBy=userId&interval=month&values=101&from=2026");
    let invalid = app.get(&analyst, &invalid).await;
    assert_eq!(invalid.status, StatusCode::BAD_REQUEST);
    let errors = invalid.body["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 4, "{errors:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worse_prompt_version_is_found_by_comparing() {
    let app = TestApp::start().await;
    let back_end = app.token_of("back-end", "acme", "feedback:on-behalf");
    // Of 150 users of each, nine of ten are content with v6, and four of ten with v7.
    let events: Vec<_> = (0..300)
        .map(|at| {
            let (version, content) = if at % 2 == 0 { ("v6", 9) } else { ("v7", 4) };
            let stars = if at / 2 % 10 < content { 5 } else { 1 };
            let mut event = rating(&format!("user-{at}"), stars, "m-1", "2026-11-03T10:00:00Z");
            event["context"]["labels"]["prompt_version"] = json!(version);
            event
        })
        .collect();
    let submitted = app
        .post(&back_end, "/v1/feedback/batch", &json!({"events": events}))
        .await;
    assert_eq!(submitted.status, StatusCode::ACCEPTED);
    counted(&app, 300).await;
    let analyst = app.token_of("analyst", "acme", "feedback:report");
    let compare = async |query: &str| {
        let path = format!(
            "/v1/projects/{PROJECT}/insights/compare?by=label.prompt_version&to=2026-11-04T00:00:00Z&{query}"
        );
        app.get(&analyst, &path).await
    };
    let worse = compare("a=v6&b=v7").await.body;
    assert_eq!(worse["verdict"], "worse", "{worse}");
    assert!((worse["difference"].as_f64().unwrap() + 0.5).abs() < 1e-9);
    assert!(worse["differenceHigh"].as_f64().unwrap() < 0.0);
    assert_eq!(worse["a"]["byUser"]["users"], 150);
    assert_eq!(worse["moreUsers"], Value::Null);
    assert_eq!(compare("a=v7&b=v6").await.body["verdict"], "better");
    let command = async |a: &str, b: &str| {
        let url = format!("http://{}", app.bundle.address);
        let asked = [
            "compare",
            "--project",
            PROJECT,
            "--by",
            "label.prompt_version",
            "--a",
            a,
            "--b",
            b,
            "--to",
            "2026-11-04T00:00:00Z",
            "--url",
            &url,
        ];
        let command = tokio::process::Command::new(hearback_tests::process::hearback())
            .args(asked)
            .env("HEARBACK_TOKEN", &analyst)
            .output()
            .await
            .unwrap();
        let output = [command.stdout, command.stderr].concat();
        let printed = String::from_utf8(output).unwrap();
        let last = printed.lines().last().unwrap().to_owned();
        (command.status.code(), last)
    };
    let last = |line: &str| format!("label.prompt_version: {line}");
    assert_eq!(command("v6", "v7").await, (Some(1), last("worse")));
    assert_eq!(command("v7", "v6").await, (Some(0), last("better")));
    let (code, reason) = command("v6", "").await;
    assert_eq!(code, Some(2));
    assert!(reason.contains("400 Bad Request: b must"), "{reason}");
    let unknown = compare("a=v6&b=v8").await.body;
    assert_eq!(unknown["verdict"], "cannot_tell_yet");
    assert_eq!(unknown["difference"], Value::Null);
    assert_eq!(unknown["b"]["events"], 0);
    let invalid = compare("a=v6&points=0").await;
    assert_eq!(invalid.status, StatusCode::BAD_REQUEST);
    assert_eq!(invalid.body["errors"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demo_is_counted_as_a_whole_and_may_be_repeated() {
    let app = TestApp::start().await;
    let last = NaiveDate::from_ymd_opt(2026, 11, 2).unwrap();
    let token = app.token_of("demo", "acme", "feedback:on-behalf feedback:report");
    let target = DemoTarget {
        url: format!("http://{}", app.bundle.address).parse().unwrap(),
        token: token.clone(),
        tenant: "acme".to_owned(),
        project: PROJECT.to_owned(),
    };
    let fill = async || {
        let mut month = Month::until(last, PROJECT);
        // Its last day is enough here.
        let today = format!("demo-{last}-{last}-");
        let conversations = &mut month.conversations;
        conversations.retain(|conversation| conversation.id.starts_with(&today));
        demo::fill(month, &target).await.unwrap()
    };
    let first = fill().await;
    assert!(first.inferred > 0 && first.given > 0, "{first:?}");
    let query = "from=2026-11-02T00:00:00Z&to=2026-11-03T00:00:00Z&groupBy=label.prompt_version";
    let path = format!("/v1/projects/{PROJECT}/insights?{query}");
    let insights = app.get(&token, &path).await.body;
    let groups = insights["groups"].as_array().unwrap();
    let values: BTreeSet<_> = groups.iter().map(|group| group["value"].as_str()).collect();
    assert_eq!(values, BTreeSet::from([Some("v6"), Some("v7")]));
    assert_eq!(fill().await, first, "the same is sent again");
    let repeated = app.get(&token, &path).await.body;
    assert_eq!(
        repeated["total"], insights["total"],
        "and nothing counts twice"
    );
}
