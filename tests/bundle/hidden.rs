//! Feedback of others changes nothing for a caller who may not see it: neither responses nor the number of calls to
//! the table and the bucket, which the response time would reveal.

use std::collections::BTreeSet;

use axum::Router;
use axum::http::{Method, StatusCode};
use chrono::{DateTime, TimeDelta, Utc};
use hearback_lambda::http::service;
use hearback_tests::engine::{Engine, Meter};
use hearback_tests::functions::{Caller, call_as, functions_of};
use hearback_tests::period::{Extent, Project};
use hearback_tests::turns::{BY_STATUS, FEED, PERIOD, SIGNALS, conversation_path, message, path};
use serde_json::{Value, json};

const ADA: Caller<'_> = Caller {
    user: "ada",
    tenant: "acme",
    project: "order-service",
    scope: "",
};
const EVE: Caller<'_> = Caller { user: "eve", ..ADA };

struct World {
    engine: Engine,
    /// Functions whose calls are metered.
    functions: Router,
    meter: Meter,
}

impl World {
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

    /// Registers a turn, and gives a reaction of `ago` days ago and a signal, as one user.
    async fn give_feedback(
        &self,
        caller: Caller<'_>,
        (conversation, turn): (&str, &str),
        ago: i64,
    ) {
        let functions = functions_of(&self.engine);
        let at = path(conversation, turn);
        let name = format!("message-{conversation}-{turn}");
        let registered = message(&name, "Which gaming laptops are there?", "None.");
        let ts = Utc::now() - TimeDelta::days(ago);
        let reaction = json!({"reaction": "not_ok", "ts": ts, "text": "No."});
        let signal = json!({"message_id": name, "signal": "not_helpful"});
        for (method, path, body) in [
            (Method::PUT, &*at, &registered),
            (Method::POST, &*format!("{at}/feedback"), &reaction),
            (Method::POST, SIGNALS, &signal),
        ] {
            let request = (method, path);
            let (status, response) = call_as(&functions, caller, request, body).await;
            assert!(status.is_success(), "{path}: {response}");
        }
    }

    /// Ada's responses to all requests, each with its number of calls.
    async fn responses(&self, now: DateTime<Utc>) -> Vec<(String, StatusCode, Value, u32)> {
        let mut responses = Vec::new();
        for (method, path, body) in requests(now) {
            self.meter.take();
            let request = (method, &*path);
            let (status, mut response) = call_as(&self.functions, ADA, request, &body).await;
            if let Some(response) = response.as_object_mut() {
                response.remove("request_id");
                // It has the time.
                response.remove("last_event_id");
            }
            let calls = self.meter.take().calls;
            responses.push((format!("{path} {body}"), status, response, calls));
        }
        responses
    }
}

/// Requests of Ada for everything that may exist.
fn requests(now: DateTime<Utc>) -> Vec<(Method, String, Value)> {
    let get = |path: String| (Method::GET, path, Value::Null);
    let post = |path: String, body: Value| (Method::POST, path, body);
    let mut all: Vec<_> = [BY_STATUS, SIGNALS, FEED]
        .map(|list| get(list.to_owned()))
        .into();
    for (conversation, turn) in [("c1", "t1"), ("c1", "t2"), ("c2", "t3"), ("c9", "t9")] {
        let at = path(conversation, turn);
        let within = conversation_path(conversation);
        all.push(get(at.clone()));
        all.push(get(format!("{at}/feedback-context")));
        for turns in [1, 12] {
            let turns: Vec<_> = (0..turns).map(|n| format!("t{}", n + 1)).collect();
            let body = json!({"turn_ids": turns, "cache": {"ttl_seconds": 0}});
            all.push(post(format!("{within}/timeline/refresh"), body));
            let body = json!({"turn_ids": turns, "include_turn_logs": true});
            all.push(post(format!("{within}/turns-with-feedbacks"), body));
        }
        let body = json!({"include_turn_logs": true});
        all.push(post(format!("{within}/turns-with-feedbacks"), body));
    }
    for days in [0, 1, 40, 800, 20_000] {
        let start = now - TimeDelta::days(days);
        let body = json!({"start": start, "end": now + TimeDelta::minutes(1)});
        all.push(post(PERIOD.to_owned(), body));
        let body = json!({"start": start, "end": now - TimeDelta::days(days / 2)});
        all.push(post(PERIOD.to_owned(), body));
    }
    all
}

#[tokio::test]
async fn feedback_of_others_changes_neither_a_response_nor_its_number_of_calls() {
    for own in [false, true] {
        let world = World::start().await;
        if own {
            for (conversation, ago) in [("c1", 0), ("c6", 2), ("c7", 500)] {
                world.give_feedback(ADA, (conversation, "t1"), ago).await;
            }
        }
        let now = Utc::now();
        let before = world.responses(now).await;
        for (conversation, ago) in [("c2", 0), ("c3", 3), ("c4", 35), ("c5", 400)] {
            world.give_feedback(EVE, (conversation, "t3"), ago).await;
        }
        if own {
            // In Ada's conversation, and about her turn.
            world.give_feedback(EVE, ("c1", "t2"), 1).await;
            let reaction = (Method::POST, &*format!("{}/feedback", path("c1", "t1")));
            let body = json!({"reaction": "ok"});
            let functions = functions_of(&world.engine);
            let (status, response) = call_as(&functions, EVE, reaction, &body).await;
            assert_eq!(status, StatusCode::OK, "{response}");
        }
        let after = world.responses(now).await;
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(before, after);
        }
        let calls = before.iter().map(|(.., calls)| calls);
        assert!(
            calls.clone().all(|calls| *calls > 0),
            "every request makes calls"
        );
        assert!(calls.clone().all(|calls| *calls < 25), "{before:?}");
    }
}

/// A report over many markers: more than a page of them on one day, and many days.
#[tokio::test]
async fn the_calls_of_a_users_own_report_depend_on_their_own_feedback_only() {
    let mut project = Project::of_one_user().await;
    let day = |days: u32, conversations: u32, start: &str| Extent {
        conversations,
        reactions: conversations,
        start: start.parse().unwrap(),
        days,
    };
    project
        .add("busy", day(1, 250, "2025-09-05T00:00:00Z"))
        .await;
    project
        .add("calm", day(30, 30, "2025-08-01T00:00:00Z"))
        .await;
    let request = json!({
        "start": "1970-01-01T00:00:00Z", "end": "2999-01-01T00:00:00Z", "limit": 500
    });
    let report = project.report(&request, async |_| {}).await;
    let names: BTreeSet<_> = (report.items.iter())
        .map(|item| item["conversation_id"].as_str().unwrap())
        .collect();
    assert_eq!(
        (names.len(), report.items.len(), report.pages),
        (280, 280, 1)
    );
    // Three pages of the index, and one call for each conversation.
    assert_eq!(report.cost.calls, 3 + 280);
}
