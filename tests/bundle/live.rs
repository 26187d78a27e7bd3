//! The live feed: who may connect, what a connection receives, and how it ends.

use std::sync::Arc;
use std::time::Duration;

use axum::http::Method;
use chrono::TimeDelta;
use hearback_lambda::clock::Clock;
use hearback_local::gateway::Limits;
use hearback_local::token::Claims;
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::engine::Engine;
use hearback_tests::events::acceptance;
use hearback_tests::faults::Faults;
use hearback_tests::functions::{call, functions_of};
use hearback_tests::live::{
    LiveClient, LiveFunctions, TICKET, TestSockets, process, received, sent, subscribe_to_all,
    ticket,
};
use hearback_tests::turns::{FEED, SIGNALS, message, path};
use reqwest::StatusCode;
use serde_json::{Value, json};

/// Messages of an acceptance: it was processed, and gives a reward and a policy update.
const MESSAGES: usize = 3;
/// The data of Ada.
const DATA: &str = "/v1/users/ada/data";

async fn submit(app: &TestApp, token: &str, event: &Value) -> String {
    let response = app.submit(token, event).await;
    assert_eq!(response.status, StatusCode::ACCEPTED, "{}", response.body);
    response.body["feedbackId"].as_str().unwrap().to_owned()
}

async fn listed(app: &TestApp, token: &str, query: &str) -> Vec<Value> {
    let page = app.get(token, &format!("{FEED}?{query}")).await;
    page.body["events"].as_array().unwrap().clone()
}

fn ids(events: &[Value]) -> Vec<&str> {
    let mut ids: Vec<_> = events
        .iter()
        .map(|event| event["eventId"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    ids
}

#[tokio::test]
async fn a_subscriber_receives_what_is_published() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let (mut live, _) = LiveClient::subscribed(&app, &ada, None).await;
    for _ in 0..2 {
        submit(&app, &ada, &acceptance("ada")).await;
    }
    let (events, _) = live.events(2 * MESSAGES).await;
    let expected = listed(&app, &ada, "").await;
    assert_eq!(ids(&events), ids(&expected));
    for event in events {
        assert!(expected.contains(&event), "{event}");
    }
    // What the user withdraws is published too.
    let first = submit(&app, &ada, &acceptance("ada")).await;
    live.events(MESSAGES).await;
    let withdrawn = app.delete(&ada, &format!("/v1/feedback/{first}")).await;
    assert_eq!(withdrawn.status, StatusCode::NO_CONTENT);
    let (events, _) = live.events(1).await;
    assert_eq!(events[0]["eventType"], "feedback.retracted");
    assert_eq!(events[0]["feedbackId"], json!(first));
}

#[tokio::test]
async fn resuming_after_a_recent_event_repeats_the_last_seconds() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    for _ in 0..3 {
        let id = submit(&app, &ada, &acceptance("ada")).await;
        app.outcome(&ada, &id).await;
    }
    let all = listed(&app, &ada, "").await;
    let after = all[1]["eventId"].as_str().unwrap();
    let (mut live, subscribed) = LiveClient::subscribed(&app, &ada, Some(after)).await;
    assert_ne!(
        subscribed["lastEventId"], after,
        "an entry that becomes visible late may precede it"
    );
    let (events, last) = live.events(3 * MESSAGES).await;
    assert_eq!(ids(&events), ids(&all));
    // A client that resumes there receives what it did not receive, and maybe some of that again.
    submit(&app, &ada, &acceptance("ada")).await;
    live.events(MESSAGES).await;
    drop(live);
    let (mut live, _) = LiveClient::subscribed(&app, &ada, Some(&last)).await;
    let (events, _) = live.events(4 * MESSAGES).await;
    assert_eq!(ids(&events), ids(&listed(&app, &ada, "").await));
}

#[tokio::test]
async fn resuming_after_an_older_event_sends_only_later_ones() {
    let engine = Engine::start().await;
    for _ in 0..2 {
        process(&engine, &acceptance("ada")).await;
    }
    let asked = (Method::GET, FEED);
    let caller = ("order-service", "");
    let (_, page) = call(&functions_of(&engine), caller, asked, &Value::Null).await;
    let all: Vec<_> = page["events"].as_array().unwrap().iter().collect();
    let after = json!({"action": "subscribe", "after": all[1]["eventId"]});
    let sockets = Arc::new(TestSockets::start().await);
    let half_a_minute_later = Clock::of(|| chrono::Utc::now() + TimeDelta::seconds(30));
    let functions = LiveFunctions::at((&engine, half_a_minute_later), &Faults::none(), sockets);
    let ticket = functions.ticket("").await;
    let mut frames = functions.connect("c", &ticket).await;
    functions.live.receive("c", &after.to_string()).await;
    assert!(functions.publish("ada").await);
    let expected = all[2..]
        .iter()
        .map(|event| event["eventId"].as_str().unwrap().to_owned());
    assert_eq!(received(&sent(&mut frames)), expected.collect());
}

#[tokio::test]
async fn a_ticket_opens_one_connection() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let url = ticket(&app, &ada).await;
    let mut live = LiveClient::connect(&url).await.unwrap();
    live.is_quiet().await;
    let (base, _) = url.split_once('?').unwrap();
    let forged = format!("{base}?ticket={}", "0".repeat(64));
    let empty = format!("{base}?ticket=");
    let as_token = format!("{base}?ticket={ada}");
    for url in [&url, &forged, &empty, &as_token, &base.to_owned()] {
        assert_eq!(LiveClient::connect(url).await.err(), Some(401), "{url}");
    }
    let without = app.send(app.request(reqwest::Method::POST, TICKET)).await;
    assert_eq!(without.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_ticket_expires_after_a_minute() {
    let engine = Engine::start().await;
    let functions = LiveFunctions::on(&engine, engine.store.clone()).await;
    let ticket = functions.ticket("").await;
    let later = chrono::Utc::now() + TimeDelta::seconds(61);
    assert_eq!(
        engine.store.take_ticket(&ticket, later).await.unwrap(),
        None
    );
}

#[tokio::test]
async fn what_a_client_does_not_read_is_sent_later() {
    let engine = Engine::start().await;
    let functions = LiveFunctions::on(&engine, engine.store.clone()).await;
    let ticket = functions.ticket("").await;
    let mut frames = functions.connect("slow", &ticket).await;
    let subscribe = r#"{"action":"subscribe"}"#;
    functions.live.receive("slow", subscribe).await;
    for _ in 0..40 {
        functions.live.receive("slow", r#"{"action":"ping"}"#).await;
    }
    process(&engine, &acceptance("ada")).await;
    // No more frames may wait for it. Nothing fails, and another client is served.
    let ticket = functions.ticket("").await;
    let mut other = functions.connect("other", &ticket).await;
    functions.live.receive("other", &subscribe_to_all()).await;
    assert!(functions.publish("ada").await);
    let waiting = sent(&mut frames);
    assert_eq!(waiting.len(), 32);
    assert!(waiting.iter().all(|frame| frame["type"] != "events"));
    assert_eq!(received(&sent(&mut other)).len(), MESSAGES);
    // It has read everything.
    assert!(functions.publish("ada").await);
    assert_eq!(received(&sent(&mut frames)).len(), MESSAGES);
    assert_eq!(
        received(&sent(&mut other)).len(),
        0,
        "nothing is sent twice"
    );
}

#[tokio::test]
async fn a_connection_receives_only_what_its_token_allows() {
    let app = TestApp::start().await;
    let (ada, bob) = (app.token("ada"), app.token("bob"));
    let report = app.token_of("analyst", "acme", "feedback:report");
    let other_tenant = app.token_of("ada", "other", "feedback:report");
    let (mut of_ada, _) = LiveClient::subscribed(&app, &ada, None).await;
    let (mut of_bob, _) = LiveClient::subscribed(&app, &bob, None).await;
    let (mut of_report, _) = LiveClient::subscribed(&app, &report, None).await;
    let (mut of_other, _) = LiveClient::subscribed(&app, &other_tenant, None).await;
    // A message signal is private: only its user receives it.
    let turn = message("m-1", "a question", "an answer");
    let registered = app.put(&bob, &path("c", "t"), &turn).await;
    assert_eq!(registered.status, StatusCode::CREATED);
    let signal = json!({"message_id": "m-1", "signal": "helpful"});
    let sent = app.post(&bob, SIGNALS, &signal).await;
    assert!(sent.status.is_success(), "{}", sent.body);
    let (private, _) = of_bob.events(1).await;
    submit(&app, &ada, &acceptance("ada")).await;
    let (own, _) = of_ada.events(MESSAGES).await;
    let (tenant, _) = of_report.events(MESSAGES).await;
    assert_eq!(ids(&tenant), ids(&own));
    assert!(own.iter().all(|event| !private.contains(event)));
    of_other.is_quiet().await;
    // Bob's connection receives nothing of Ada.
    let id = submit(&app, &bob, &acceptance("bob")).await;
    let (events, _) = of_bob.events(MESSAGES).await;
    assert!(events.iter().any(|event| event["feedbackId"] == json!(id)));
    let listed = listed(&app, &bob, "").await;
    assert!(events.iter().all(|event| listed.contains(event)));
}

#[tokio::test]
async fn filters_select_events() {
    let app = TestApp::start().await;
    let report = app.token_of("analyst", "acme", "feedback:report");
    let mut live = LiveClient::of(&app, &report).await;
    let filter = json!({"eventTypes": ["feedback.processed"], "labels": {"model": "a"}});
    let subscribe = json!({"action": "subscribe", "filter": filter});
    assert_eq!(live.ask(&subscribe).await["type"], "subscribed");
    let ada = app.token("ada");
    let mut labelled = Vec::new();
    for model in ["b", "a", "b", "a"] {
        let mut event = acceptance("ada");
        event["context"]["labels"] = json!({"model": model});
        labelled.push((model, submit(&app, &ada, &event).await));
    }
    let (events, _) = live.events(2).await;
    for event in events {
        assert_eq!(event["eventType"], "feedback.processed");
        let id = event["feedbackId"].as_str().unwrap();
        assert!(labelled.contains(&("a", id.to_owned())));
    }
    // Another subscription replaces it.
    let filter = json!({"eventTypes": ["learning.signal.generated"], "labels": {"model": "b"}});
    let subscribe = json!({"action": "subscribe", "filter": filter});
    assert_eq!(live.ask(&subscribe).await["type"], "subscribed");
    let mut event = acceptance("ada");
    event["context"]["labels"] = json!({"model": "b"});
    submit(&app, &ada, &event).await;
    let (events, _) = live.events(1).await;
    assert_eq!(events[0]["eventType"], "learning.signal.generated");
    // A project that the token does not have.
    let subscribe = json!({"action": "subscribe", "filter": {"projectId": "another"}});
    let rejected = live.ask(&subscribe).await;
    assert_eq!(
        (&rejected["type"], &rejected["error"]),
        (&json!("error"), &json!("forbidden"))
    );
}

#[tokio::test]
async fn an_invalid_frame_gets_an_error_and_the_connection_stays_open() {
    let app = TestApp::start().await;
    let mut live = LiveClient::of(&app, &app.token("ada")).await;
    for (frame, pointer) in [
        ("", ""),
        ("{", ""),
        ("[1]", ""),
        ("{}", "/action"),
        (r#"{"action":"unsubscribe"}"#, "/action"),
        (r#"{"action":"subscribe","after":"x"}"#, "/after"),
        (
            r#"{"action":"subscribe","filter":{"channels":["no"]}}"#,
            "/filter/channels/0",
        ),
        (r#"{"action":"subscribe","user":"bob"}"#, "/user"),
    ] {
        live.send(frame).await;
        let answer = live.receive().await.unwrap();
        assert_eq!(answer["type"], "error", "{frame}: {answer}");
        assert_eq!(answer["error"], "invalid_request", "{frame}: {answer}");
        assert_eq!(answer["errors"][0]["pointer"], pointer, "{frame}: {answer}");
    }
    live.is_quiet().await;
}

#[tokio::test]
async fn a_frame_or_message_that_is_too_large_ends_only_its_own_connection() {
    let app = TestApp::start().await;
    let mut other = LiveClient::of(&app, &app.token("bob")).await;
    let mut live = LiveClient::of(&app, &app.token("ada")).await;
    live.send(&"x".repeat(40_000)).await;
    assert_eq!(live.receive().await, None);
    // As long as a message may be, in several frames.
    let mut live = LiveClient::of(&app, &app.token("ada")).await;
    let ping = r#"{"action":"ping"}"#;
    let padding = 128 * 1024 - ping.len();
    live.send_in_frames(&format!("{ping}{}", " ".repeat(padding)))
        .await;
    assert_eq!(live.receive().await, Some(json!({"type": "pong"})));
    live.send_in_frames(&format!("{ping}{}", " ".repeat(padding + 1)))
        .await;
    assert_eq!(live.receive().await, None);
    other.is_quiet().await;
}

#[tokio::test]
async fn a_connection_ends_after_118_minutes() {
    let engine = Engine::start().await;
    let sockets = Arc::new(TestSockets::start().await);
    let faults = Faults::none();
    let now = LiveFunctions::at((&engine, Clock::system()), &faults, sockets.clone());
    let mut frames = now.connect("c", &now.ticket("").await).await;
    let before = Clock::of(|| chrono::Utc::now() + TimeDelta::minutes(117));
    let before = LiveFunctions::at((&engine, before), &faults, sockets.clone());
    assert!(before.check("c").await);
    assert_eq!(sent(&mut frames), Vec::<Value>::new());
    let after = Clock::of(|| chrono::Utc::now() + TimeDelta::minutes(118));
    let after = LiveFunctions::at((&engine, after), &faults, sockets);
    assert!(after.check("c").await);
    let goodbye = json!({"type": "goodbye", "reason": "max_duration"});
    assert_eq!(sent(&mut frames), [goodbye, json!({"type": "closed"})]);
}

#[tokio::test]
async fn an_idle_connection_ends() {
    let limits = Limits {
        socket_idle: Duration::from_secs(1),
        ..Limits::default()
    };
    let app = TestApp::within(limits).await;
    let mut live = LiveClient::of(&app, &app.token("ada")).await;
    live.is_quiet().await;
    assert_eq!(live.receive().await, None);
}

#[tokio::test]
async fn a_connection_ends_when_its_token_expires() {
    let app = TestApp::start().await;
    let claims = Claims {
        sub: "ada".to_owned(),
        tenant: "acme".to_owned(),
        projects: Vec::new(),
        scope: String::new(),
    };
    let token = app.bundle.tokens.sign_for(claims, TimeDelta::seconds(3));
    let (mut live, _) = LiveClient::subscribed(&app, &token.unwrap(), None).await;
    let goodbye = live.receive().await.unwrap();
    assert_eq!(
        goodbye,
        json!({"type": "goodbye", "reason": "token_expired"})
    );
    assert_eq!(live.receive().await, None);
}

#[tokio::test]
async fn a_stopping_bundle_sends_goodbye_to_its_connections() {
    let app = TestApp::start().await;
    let (mut live, _) = LiveClient::subscribed(&app, &app.token("ada"), None).await;
    app.bundle.stop().await;
    let goodbye = live.receive().await.unwrap();
    assert_eq!(goodbye, json!({"type": "goodbye", "reason": "shutdown"}));
    assert_eq!(live.receive().await, None);
}

#[tokio::test]
async fn an_erased_user_receives_nothing_more() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let unused = ticket(&app, &ada).await;
    let (mut live, _) = LiveClient::subscribed(&app, &ada, None).await;
    let requested = app.delete(&ada, DATA).await;
    assert_eq!(requested.status, StatusCode::ACCEPTED, "{}", requested.body);
    eventually(|| async {
        let erasure = app.get(&ada, &format!("{DATA}/erasure")).await;
        (erasure.body["status"] == "done").then_some(())
    })
    .await;
    assert_eq!(LiveClient::connect(&unused).await.err(), Some(401));
    // Its next frame finds the connection closed.
    live.send(&json!({"action": "subscribe"}).to_string()).await;
    assert_eq!(live.receive().await, None);
}
