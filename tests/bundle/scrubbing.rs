//! Scrubbing a long text does not block other requests.

use axum::http::{Method, StatusCode};
use hearback_lambda::anonymous::AT_ONCE;
use hearback_tests::engine::Engine;
use hearback_tests::events::acceptance;
use hearback_tests::functions::{call, functions_of};
use serde_json::{Value, json};
use std::sync::mpsc;
use tokio::runtime::Builder;
use tokio::task::{spawn_blocking, yield_now};

/// A caller without projects and scopes.
const ADA: (&str, &str) = ("", "");

/// An anonymous event with the worst text for the scrubber.
fn worst(bytes: usize) -> Value {
    let mut event = acceptance("ada");
    event["privacyFlags"] = json!({"anonymize": true});
    event["correctionData"] = json!({"originalValue": "1 ".repeat(bytes / 2)});
    event
}

/// Sends other requests while a request with this body waits for the only blocking thread, which is occupied. The
/// waiting request cannot be answered before that thread is free.
fn assert_others_are_served_during(path: &str, body: &Value, expected: StatusCode) -> Value {
    let engines = Builder::new_multi_thread().enable_all().build().unwrap();
    let engine = engines.block_on(Engine::start());
    // One thread, as on Lambda.
    let mut requests = Builder::new_current_thread();
    let requests = requests.enable_all().max_blocking_threads(1).build();
    requests.unwrap().block_on(async {
        let (free, blocked) = mpsc::channel::<()>();
        let thread = spawn_blocking(move || blocked.recv());
        let functions = functions_of(&engine);
        let worst = {
            let (functions, path, body) = (functions.clone(), path.to_owned(), body.clone());
            tokio::spawn(async move { call(&functions, ADA, (Method::POST, &path), &body).await })
        };
        // Let it start before the others.
        yield_now().await;
        for _ in 0..20 {
            let other = acceptance("ada");
            let request = (Method::POST, "/v1/feedback/submit");
            let (status, response) = call(&functions, ADA, request, &other).await;
            assert_eq!(status, StatusCode::ACCEPTED, "{response}");
        }
        assert!(
            !worst.is_finished(),
            "it was scrubbed on the thread of other requests"
        );
        free.send(()).unwrap();
        thread.await.unwrap().unwrap();
        let (status, response) = worst.await.unwrap();
        assert_eq!(status, expected, "{response}");
        response
    })
}

#[test]
fn scrubbing_the_worst_batch_does_not_block_other_requests() {
    // Each text is short enough for the thread of the request; all of them together are not.
    let events: Vec<Value> = (0..16).map(|_| worst(AT_ONCE)).collect();
    let body = json!({"events": events});
    let response =
        assert_others_are_served_during("/v1/feedback/batch", &body, StatusCode::ACCEPTED);
    assert_eq!(response["queued"], 16);
}

#[test]
fn scrubbing_the_worst_event_does_not_block_other_requests() {
    let event = worst(4 * AT_ONCE);
    let response =
        assert_others_are_served_during("/v1/feedback/submit", &event, StatusCode::ACCEPTED);
    assert_eq!(response["feedbackId"], event["feedbackId"]);
}
