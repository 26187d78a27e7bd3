//! Message signals under retries, redelivery, and crashes between any two calls.

use axum::Router;
use axum::http::{Method, StatusCode};
use hearback_domain::learning::ledger::RetractionReason;
use hearback_lambda::clock::Clock;
use hearback_lambda::http::service;
use hearback_tests::engine::Engine;
use hearback_tests::faults::{Fault, Faults};
use hearback_tests::function_set::FunctionSet;
use hearback_tests::functions::{self, functions_of, stored_event as event};
use hearback_tests::meanwhile::Meanwhile;
use hearback_tests::turns::{SIGNALS, message, path, signal_message};
use serde_json::{Value, json};

use crate::exactly_once::{deliver, deliver_through_a_crash};

async fn call(functions: &Router, method: Method, path: &str, body: &Value) -> (StatusCode, Value) {
    functions::call(functions, ("order-service", ""), (method, path), body).await
}

async fn rows(functions: &Router, name: &str) -> Vec<Value> {
    let path = format!("{SIGNALS}?message_id={name}");
    let (status, page) = call(functions, Method::GET, &path, &Value::Null).await;
    assert_eq!(status, StatusCode::OK);
    page["feedback"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_message_signal_that_crashed_at_any_call_is_set_or_withdrawn_after_the_retry() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine);
    for method in [Method::POST, Method::DELETE] {
        let crashes = Faults::at_each_call(Fault::Crashed, async |faults| {
            let name = format!("m-{method}-{}", faults.at_call());
            let turn = path(&name, "t");
            call(&functions, Method::PUT, &turn, &message(&name, "a", "b")).await;
            let body = json!({"message_id": name, "signal": "edit", "reason": "better"});
            let (target, expected) = if method == Method::POST {
                (SIGNALS.to_owned(), 1)
            } else {
                call(&functions, Method::POST, SIGNALS, &body).await;
                (format!("{SIGNALS}?message_id={name}&signal=edit"), 0)
            };
            let crashing = FunctionSet::at(&engine, faults, Clock::system());
            call(&crashing.functions, method.clone(), &target, &body).await;
            let (status, _) = call(&functions, method.clone(), &target, &body).await;
            assert!(status.is_success(), "{name}: {status}");
            assert_eq!(rows(&functions, &name).await.len(), expected, "{name}");
        })
        .await;
        assert!(crashes >= 2, "only {crashes} crashes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_concurrent_contrary_signals_remains() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine);
    let exclusive =
        |name: &str, signal: &str| json!({"message_id": name, "signal": signal, "exclusive": true});
    let mut raced = 0;
    // The other request comes before the first signal is written, and before each read.
    for before in ["PutItem", "GetItem", "Query", "BatchGetItem"] {
        let name = format!("m-{before}");
        let turn = path(&name, "t");
        call(&functions, Method::PUT, &turn, &message(&name, "a", "b")).await;
        let other = {
            let (functions, body) = (functions.clone(), exclusive(&name, "not_helpful"));
            async move {
                let (status, _) = call(&functions, Method::POST, SIGNALS, &body).await;
                assert_eq!(status, StatusCode::CREATED);
            }
        };
        let meanwhile = Meanwhile::before(before, other);
        let store = engine.store_with(meanwhile.clone());
        let slow = hearback_local::gateway::functions(engine.with_blobs(store), engine.erasures());
        let (status, _) = call(
            &service(slow),
            Method::POST,
            SIGNALS,
            &exclusive(&name, "helpful"),
        )
        .await;
        assert_eq!(status, StatusCode::CREATED);
        raced += usize::from(meanwhile.is_done());
        if meanwhile.is_done() {
            assert_eq!(rows(&functions, &name).await.len(), 1, "{before}");
        }
    }
    assert!(raced >= 2, "{raced}");
}

#[tokio::test]
async fn a_message_signal_takes_effect_once_wherever_its_processing_crashed() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine);
    let generator = engine.generator(engine.store.clone());
    let crashes = Faults::at_each_call(Fault::Crashed, async |faults| {
        let at = faults.at_call();
        let name = format!("m-{at}");
        let turn = path(&name, "t");
        call(&functions, Method::PUT, &turn, &message(&name, "a", "b")).await;
        let mut messages = Vec::new();
        let mut event_ids = Vec::new();
        for text in ["one", "two"] {
            let body = json!({"message_id": name, "signal": "edit", "reason": text});
            call(&functions, Method::POST, SIGNALS, &body).await;
            event_ids.push(rows(&functions, &name).await[0]["feedback_id"].clone());
            messages.push(signal_message(&engine, "ada", &name, "edit").await);
        }
        deliver_through_a_crash(&engine, faults, &messages).await;

        let first = event(&engine.store, &event_ids[0]).await.expect("an event");
        let retraction = first.retraction.expect("a retraction");
        assert_eq!(retraction.reason, RetractionReason::Replaced);
        let second = event(&engine.store, &event_ids[1]).await.expect("an event");
        assert_eq!(second.retraction, None);
        assert_eq!(second.text.corrected_value.as_deref(), Some("two"));

        // After a withdrawal the tombstone retracts the event, and creates none.
        let withdrawal = format!("{SIGNALS}?message_id={name}&signal=edit");
        call(&functions, Method::DELETE, &withdrawal, &Value::Null).await;
        let tombstone = [signal_message(&engine, "ada", &name, "edit").await];
        deliver(&generator, &tombstone).await;
        let again = deliver(&generator, &tombstone).await;
        assert!(again.batch_item_failures.is_empty());
        let second = event(&engine.store, &event_ids[1]).await.expect("an event");
        let retraction = second.retraction.expect("a retraction");
        assert_eq!(retraction.reason, RetractionReason::Cleared);
        assert_eq!(retraction.replaced_by, None);
    })
    .await;
    assert!(crashes >= 4, "only {crashes} crashes");
}
