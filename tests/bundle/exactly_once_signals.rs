//! Signals on messages under retries, redelivery, and death between any two of their calls.

use axum::Router;
use axum::http::{Method, StatusCode};
use hearback_domain::ledger::Withdrawal;
use hearback_lambda::clock::Clock;
use hearback_tests::engine::Engine;
use hearback_tests::faults::{Fault, Faults};
use hearback_tests::functions::{self, functions_of, stored_event as event};
use hearback_tests::hands::Hands;
use hearback_tests::turns::{SIGNALS, message, path, signal_message};
use serde_json::{Value, json};

use crate::exactly_once::{deliver, deliver_through_a_death};

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
async fn a_signal_that_died_anywhere_stands_or_is_gone_after_a_retry() {
    let engine = Engine::start().await;
    let whole = functions_of(&engine);
    for method in [Method::POST, Method::DELETE] {
        let deaths = Faults::at_each_call(Fault::Died, async |faults| {
            let name = format!("m-{method}-{}", faults.at_call());
            let turn = path(&name, "t");
            call(&whole, Method::PUT, &turn, &message(&name, "a", "b")).await;
            let body = json!({"message_id": name, "signal": "edit", "reason": "better"});
            let (target, expected) = if method == Method::POST {
                (SIGNALS.to_owned(), 1)
            } else {
                call(&whole, Method::POST, SIGNALS, &body).await;
                (format!("{SIGNALS}?message_id={name}&signal=edit"), 0)
            };
            let dying = Hands::at(&engine, faults, Clock::system());
            call(&dying.functions, method.clone(), &target, &body).await;
            let (status, _) = call(&whole, method.clone(), &target, &body).await;
            assert!(status.is_success(), "{name}: {status}");
            assert_eq!(rows(&whole, &name).await.len(), expected, "{name}");
        })
        .await;
        assert!(deaths >= 2, "only {deaths} deaths");
    }
}

#[tokio::test]
async fn what_follows_from_a_signal_follows_once_wherever_it_died() {
    let engine = Engine::start().await;
    let whole = functions_of(&engine);
    let generator = engine.generator(engine.store.clone());
    let deaths = Faults::at_each_call(Fault::Died, async |faults| {
        let at = faults.at_call();
        let name = format!("m-{at}");
        let turn = path(&name, "t");
        call(&whole, Method::PUT, &turn, &message(&name, "a", "b")).await;
        let mut messages = Vec::new();
        let mut acts = Vec::new();
        for text in ["one", "two"] {
            let body = json!({"message_id": name, "signal": "edit", "reason": text});
            call(&whole, Method::POST, SIGNALS, &body).await;
            acts.push(rows(&whole, &name).await[0]["feedback_id"].clone());
            messages.push(signal_message(&engine, "ada", &name, "edit").await);
        }
        deliver_through_a_death(&engine, faults, &messages).await;

        let first = event(&engine.store, &acts[0]).await.expect("its event");
        let withdrawn = first.retraction.expect("its withdrawal");
        assert_eq!(withdrawn.reason, Withdrawal::Replaced);
        let second = event(&engine.store, &acts[1]).await.expect("its event");
        assert_eq!(second.retraction, None);
        assert_eq!(second.text.corrected_value.as_deref(), Some("two"));

        // Taken back: the tombstone withdraws it, and makes no event of its own.
        let gone = format!("{SIGNALS}?message_id={name}&signal=edit");
        call(&whole, Method::DELETE, &gone, &Value::Null).await;
        let tombstone = [signal_message(&engine, "ada", &name, "edit").await];
        deliver(&generator, &tombstone).await;
        let again = deliver(&generator, &tombstone).await;
        assert!(again.batch_item_failures.is_empty());
        let second = event(&engine.store, &acts[1]).await.expect("its event");
        let withdrawn = second.retraction.expect("its withdrawal");
        assert_eq!(withdrawn.reason, Withdrawal::Cleared);
        assert_eq!(withdrawn.replaced_by, None);
    })
    .await;
    assert!(deaths >= 4, "only {deaths} deaths");
}
