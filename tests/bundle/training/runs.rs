//! Runs that time out, crash or meet large conversations.

use axum::http::Method;
use chrono::{TimeDelta, Utc};
use futures::stream::{self, StreamExt};
use hearback_export::Exporter;
use hearback_lambda::clock::Clock;
use hearback_tests::engine::Engine;
use hearback_tests::faults::{Fault, Faults};
use hearback_tests::functions::{call, functions_of};
use hearback_tests::period::{Extent, Project};
use hearback_tests::turns::{SIGNALS, message, path};
use serde_json::{Value, json};

use super::{Set, request, run_export};

/// An engine with feedback on many days, in large and small conversations: reactions, signals, and both.
async fn with_feedback(turns: u32) -> Engine {
    let engine = Engine::start().await;
    let functions = functions_of(&engine);
    let caller = ("order-service", "feedback:on-behalf");
    for n in 0..turns {
        let conversation = format!("c{}", if n % 3 == 0 { 0 } else { n % 7 });
        let turn = path(&conversation, &format!("t{n}"));
        let mut body = message(&format!("m{n}"), "question", &format!("answer {n}"));
        body["ts"] = json!(Utc::now() - TimeDelta::hours(40 + i64::from(n)));
        let (status, _) = call(&functions, caller, (Method::PUT, &turn), &body).await;
        assert!(status.is_success());
        if n % 4 != 1 {
            // Two users on two days; the turn is listed on the last day.
            for (user, hours) in [("eve", 30), ("bob", 2 + n % 28)] {
                let ts = Utc::now() - TimeDelta::hours(i64::from(hours));
                let body = json!({"reaction": "ok", "user_id": user, "ts": ts});
                let path = format!("{turn}/feedback");
                let (status, _) = call(&functions, caller, (Method::POST, &path), &body).await;
                assert!(status.is_success());
            }
        }
        if n % 4 <= 1 {
            let signal =
                json!({"message_id": format!("m{n}"), "signal": "edit", "reason": "better"});
            let (status, _) = call(&functions, caller, (Method::POST, SIGNALS), &signal).await;
            assert!(status.is_success());
        }
    }
    engine
}

#[tokio::test]
async fn the_set_is_complete_however_often_the_run_times_out() {
    let engine = with_feedback(120).await;
    let exporter = Exporter::new(engine.store.clone(), engine.blobs(), Clock::system());
    let s3 = &engine.clients.s3;
    let complete = Set::of(run_export(&exporter, &request(), false).await, s3).await;
    assert_eq!((complete.pairs.len(), complete.labels.len()), (60, 90));
    assert_eq!(complete.ids().len(), 150);
    let with_timeouts = Set::of(run_export(&exporter, &request(), true).await, s3).await;
    assert_eq!(
        (with_timeouts.pairs.len(), with_timeouts.labels.len()),
        (60, 90)
    );
    assert_eq!(with_timeouts.ids(), complete.ids());
    assert!(with_timeouts.run.labels.files.len() > 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_turn_of_a_large_conversation_is_exported_once() {
    let mut project = Project::start().await;
    let now = Utc::now();
    let extent = Extent {
        conversations: 1,
        reactions: 1_800,
        start: now - TimeDelta::days(4),
        days: 3,
    };
    project.add("large", extent).await;
    // A turn with more reactions than one query reads. Each character takes four bytes.
    project.register("large-0", "wide").await;
    let functions = functions_of(&project.engine);
    let caller = ("support", "feedback:on-behalf");
    let path = "/conversations/acme/support/large-0/turns/wide/feedback";
    stream::iter(0..300)
        .for_each_concurrent(16, async |user| {
            let body = json!({
                "reaction": "ok", "user_id": format!("user {user}"), "text": "🙂".repeat(900)
            });
            let (status, _) = call(&functions, caller, (Method::POST, path), &body).await;
            assert!(status.is_success());
        })
        .await;
    let engine = &project.engine;
    let exporter = Exporter::new(engine.store.clone(), engine.blobs(), Clock::system());
    let from = now.date_naive() - TimeDelta::days(4);
    let request = json!({"tenant": "acme", "training": {"project": "support", "from": from}});
    for with_timeouts in [false, true] {
        let set = Set::of(
            run_export(&exporter, &request, with_timeouts).await,
            &engine.clients.s3,
        )
        .await;
        // The other turns are not registered.
        assert_eq!(set.run.left_out.without_turn, 1_800);
        let [label] = set.labels.as_slice() else {
            panic!("{:?}", set.labels)
        };
        let feedback = label["provenance"]["feedback_ids"].as_array().unwrap();
        assert_eq!(feedback.len(), 300);
    }
}

#[tokio::test]
async fn a_run_that_crashes_at_any_bucket_call_leaves_the_previous_set_complete() {
    let engine = with_feedback(12).await;
    let s3 = &engine.clients.s3;
    let healthy = Exporter::new(engine.store.clone(), engine.blobs(), Clock::system());
    let before = run_export(&healthy, &request(), false).await;
    let manifest = before.manifest.clone().into_iter().collect::<Vec<_>>();
    let crashes = Faults::at_each_call(Fault::Crashed, async |faults| {
        let blobs = engine.failing_blobs(faults);
        let exporter = Exporter::new(engine.store.clone(), blobs, Clock::system());
        let response = exporter.handle(&request(), None).await;
        assert_eq!(response.is_err(), faults.crashed(), "{faults:?}");
        // The files that the manifest names are complete, from this run or the previous one.
        let mut named = Vec::new();
        hearback_local::export::copy(s3, &manifest, &mut named)
            .await
            .unwrap();
        let named: Value = serde_json::from_slice(&named).unwrap();
        for (kind, rows) in [("pairs", 6), ("labels", 9)] {
            let files: Vec<String> = serde_json::from_value(named[kind]["files"].clone()).unwrap();
            let mut lines = Vec::new();
            hearback_local::export::copy(s3, &files, &mut lines)
                .await
                .unwrap();
            let lines = lines.iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(lines, rows, "{faults:?}");
        }
    })
    .await;
    // Twelve turn logs, two files and the manifest.
    assert!(crashes >= 12 + 3, "{crashes}");
}
