//! Costs of reads and reports, and of requests that are rejected before any read.

use axum::http::{Method, StatusCode};
use chrono::{TimeDelta, Utc};
use futures::StreamExt;
use hearback_domain::turns::embedded::Embedded;
use hearback_tests::engine::Cost;
use hearback_tests::events::acceptance;
use hearback_tests::functions::{Caller, call, call_as};
use hearback_tests::turns::{FEED, PERIOD, conversation_path, path, turn_body};
use serde_json::{Value, json};

use super::Metered;

#[tokio::test]
async fn reads_of_events_and_preferences_match_the_cost_card() {
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
    assert_eq!(
        get(event_path).await,
        (StatusCode::OK, Cost::calls(1).reads(1.0))
    );
    for page in ["", "/history", "/resolved"] {
        let spent = get(format!("/v1/preferences/ada{page}")).await;
        assert_eq!(spent, (StatusCode::OK, Cost::calls(1).reads(1.0)), "{page}");
    }
    // Preferences of another user are rejected before any read.
    for page in ["", "/history", "/resolved"] {
        let spent = get(format!("/v1/preferences/eve{page}")).await;
        assert_eq!(spent, (StatusCode::FORBIDDEN, Cost::FREE), "{page}");
    }
}

#[tokio::test]
async fn listing_events_costs_a_call_a_partition_and_the_entries() {
    let metered = Metered::start().await;
    let shards = metered.engine.store.feed_shards();
    let events: Vec<_> = (0..3).map(|_| acceptance("ada")).collect();
    for event in &events {
        metered
            .call(Method::POST, "/v1/feedback/submit", event)
            .await;
    }
    metered.generate(&events).await;
    // Under the name and the pseudonym, and the entries.
    let (status, spent) = metered.call(Method::GET, FEED, &Value::Null).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(spent, Cost::calls(3).reads(4.0));
    // The events of others change nothing.
    let bob = Caller {
        user: "bob",
        tenant: "acme",
        project: "order-service",
        scope: "",
    };
    let others: Vec<_> = (0..40).map(|_| acceptance("bob")).collect();
    for event in &others {
        let request = (Method::POST, "/v1/feedback/submit");
        let (status, body) = call_as(&metered.functions, bob, request, event).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{body}");
    }
    metered.generate(&others).await;
    metered.meter.take();
    let (_, spent) = metered.call(Method::GET, FEED, &Value::Null).await;
    assert_eq!(spent, Cost::calls(3).reads(4.0));
    // The tenant's, from an hour ago on: of a day, or of two at midnight.
    let since = (Utc::now() - TimeDelta::hours(1)).format("%FT%TZ");
    let caller = ("order-service", "feedback:report");
    let request = (Method::GET, &*format!("{FEED}?since={since}"));
    let (status, _) = call(&metered.functions, caller, request, &Value::Null).await;
    assert_eq!(status, StatusCode::OK);
    let spent = metered.meter.take();
    let day = Cost::calls(shards).reads(0.5 * f64::from(shards));
    let entries = Cost::calls(1).reads(43.0);
    assert!(
        [day + entries, day + day + entries].contains(&spent),
        "{spent:?}"
    );
}

#[tokio::test]
async fn changing_preferences_costs_three_calls_and_one_write_unit() {
    let metered = Metered::start().await;
    let change = json!({"preferenceVersion": 0});
    let spent = metered
        .call(Method::PUT, "/v1/preferences/ada", &change)
        .await;
    // Reading a user without preferences costs half of a consistent read.
    assert_eq!(
        spent,
        (StatusCode::OK, Cost::calls(3).reads(2.0).writes(1.0))
    );
    let spent = metered
        .call(Method::POST, "/v1/preferences/ada/reset", &Value::Null)
        .await;
    assert_eq!(
        spent,
        (StatusCode::OK, Cost::calls(3).reads(2.0).writes(1.0))
    );
}

/// Stores 5,000 turns of ada, a minute apart, the last of them now.
async fn with_a_year_of_turns(metered: &Metered) {
    let store = &metered.engine.store;
    let now = Utc::now();
    let turns = (0..5_000_i64).map(|number| {
        let body = turn_body(
            &format!("question {number} about topic {}", number % 700),
            "answer",
        );
        let at = serde_json::from_value(json!({
            "tenant": "acme", "project": "order-service",
            "conversation_id": format!("conversation-{}", number / 10),
            "turn_id": format!("turn_{number:013}"),
        }));
        let ada = hearback_domain::identity::caller::Caller {
            user: "ada".try_into().unwrap(),
            tenant: "acme".try_into().unwrap(),
            projects: Vec::new(),
            scopes: Vec::new(),
        };
        let ts = now - chrono::TimeDelta::minutes(number);
        let turn = hearback_domain::turns::turn::Turn::parse(at.unwrap(), &body, &ada, ts).unwrap();
        (turn.core.clone(), Embedded::of(&turn.texts()))
    });
    futures::stream::iter(turns)
        .for_each_concurrent(16, |(turn, embedded)| async move {
            store.put_vector(&turn, &embedded).await.unwrap();
        })
        .await;
}

#[tokio::test]
async fn locating_a_target_among_5000_turns_takes_one_query() {
    let metered = Metered::start().await;
    with_a_year_of_turns(&metered).await;
    let infer = "/conversations/acme/order-service/feedback/infer";
    let message = json!({"message": "What about topic 511?"});
    let (status, spent) = metered.call(Method::POST, infer, &message).await;
    assert_eq!(status, StatusCode::OK);
    // The pages of one query, at half a read for each 4 KB, and the check for an open erasure.
    assert!(spent.calls <= 6, "{spent:?}");
    assert!(spent.reads > 100.0 && spent.reads <= 501.0, "{spent:?}");
    // Turns that exist, so that the first 25 candidates suffice.
    let asked = "question 4711 about topic 511";
    for number in 0..5 {
        let turn = path(&format!("again-{number}"), "t");
        let body = turn_body(asked, "b");
        let (status, _) = metered.call(Method::PUT, &turn, &body).await;
        assert_eq!(status, StatusCode::CREATED);
    }
    let search = "/conversations/acme/order-service/strategies/search";
    let query = json!({"query": asked});
    let (status, spent) = metered.call(Method::POST, search, &query).await;
    assert_eq!(status, StatusCode::OK);
    // The same query, and 25 candidates in one call, each a read whether or not it exists.
    assert!(spent.calls <= 5 && spent.writes == 0.0, "{spent:?}");
    assert!(spent.reads > 100.0 && spent.reads <= 500.0, "{spent:?}");
}

#[tokio::test]
async fn a_request_for_another_tenant_or_project_is_rejected_before_any_read() {
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
            assert_eq!(spent, (StatusCode::FORBIDDEN, Cost::FREE), "{path}");
        }
    }
}

#[tokio::test]
async fn reports_match_the_cost_card() {
    let metered = Metered::start().await;
    let turn = path("c", "t");
    metered.call(Method::PUT, &turn, &turn_body("a", "b")).await;
    let reaction = json!({"reaction": "ok", "ts": "2025-11-06T15:30:00Z"});
    metered
        .call(Method::POST, &format!("{turn}/feedback"), &reaction)
        .await;
    let spent = metered.call(Method::GET, &turn, &Value::Null).await;
    assert_eq!(spent, (StatusCode::OK, Cost::calls(2).reads(2.0)));
    let turns = format!("{}/turns-with-feedbacks", conversation_path("c"));
    let spent = metered
        .call(Method::POST, &turns, &json!({"days": 3650}))
        .await;
    assert_eq!(spent, (StatusCode::OK, Cost::calls(1).reads(1.0)));
    let timeline = format!("{}/timeline/refresh", conversation_path("c"));
    let request = json!({"turn_ids": ["t"], "cache": {"ttl_seconds": 0}});
    let spent = metered.call(Method::POST, &timeline, &request).await;
    assert_eq!(spent, (StatusCode::OK, Cost::calls(1).reads(1.0)));
    let day = json!({"start": "2025-11-06T00:00:00Z", "end": "2025-11-06T23:59:59Z"});
    let all = json!({"start": "1970-01-01T00:00:00Z", "end": "2999-01-01T00:00:00Z"});
    // The index and the conversation, for one day as for all of time.
    for period in [&day, &all] {
        let spent = metered.call(Method::POST, PERIOD, period).await;
        assert_eq!(spent, (StatusCode::OK, Cost::calls(2).reads(1.5)));
    }
    // Across users: four shards of a day, and the conversation.
    let across_users = (StatusCode::OK, Cost::calls(5).reads(5.0));
    assert_eq!(metered.report(&day).await, across_users);
    // Which of several acts is their user's voice is decided without another read.
    let inferred = json!({
        "reaction": "not_ok", "origin": "machine", "confidence": 0.9, "ts": "2025-11-06T15:30:00Z"
    });
    let (back_end, feedback) = (
        ("order-service", "feedback:on-behalf"),
        format!("{turn}/feedback"),
    );
    let request = (Method::POST, feedback.as_str());
    let (status, _) = call(&metered.functions, back_end, request, &inferred).await;
    assert_eq!(status, StatusCode::OK);
    metered.meter.take();
    assert_eq!(metered.report(&day).await, across_users);
    // All of time: four shards of today, the months, and two reads of each day of the one month.
    let (status, spent) = metered.report(&all).await;
    assert_eq!(status, StatusCode::OK);
    assert!(spent.calls < 260 && spent.writes == 0.0, "{spent:?}");
}
