//! Turns and reactions under retries, redelivery, and death between any two of their calls.

use axum::Router;
use axum::http::{Method, StatusCode};
use hearback_domain::ledger::Withdrawal;
use hearback_lambda::clock::Clock;
use hearback_tests::engine::Engine;
use hearback_tests::faults::{Fault, Faults};
use hearback_tests::functions::{self, functions_of, stored_event as event};
use hearback_tests::hands::Hands;
use hearback_tests::turns::{conversation_path, path, reaction_message, said};
use serde_json::{Value, json};

use crate::exactly_once::deliver_through_a_death;

async fn call(functions: &Router, method: Method, path: &str, body: &Value) -> (StatusCode, Value) {
    functions::call(functions, ("order-service", ""), (method, path), body).await
}

/// The reactions of a conversation that stand.
async fn standing(functions: &Router, conversation: &str) -> Vec<Value> {
    let path = format!("{}/turns-with-feedbacks", conversation_path(conversation));
    let (status, report) = call(functions, Method::POST, &path, &json!({"days": 3650})).await;
    assert_eq!(status, StatusCode::OK);
    let turns = report["turns"].as_array().unwrap().iter();
    turns
        .flat_map(|turn| turn["reactions"].as_array().unwrap().clone())
        .collect()
}

/// The act that a message is about, and the one that it replaced.
fn acts(body: &str) -> (Value, Value) {
    let record: Value = serde_json::from_str(body).unwrap();
    let core = record["dynamodb"]["NewImage"]["core"]["S"]
        .as_str()
        .unwrap();
    let core: Value = serde_json::from_str(core).unwrap();
    (core["id"].clone(), core["replaces"].clone())
}

#[tokio::test]
async fn a_registration_that_died_anywhere_is_completed_by_the_next() {
    let engine = Engine::start().await;
    let whole = functions_of(&engine);
    let deaths = Faults::at_each_call(Fault::Died, async |faults| {
        let at = faults.at_call();
        let turn = path("c", &format!("t-{at}"));
        let mut body = said("a", "b");
        body["assistant"]["message_id"] = json!(format!("m-{at}"));
        let dying = Hands::at(&engine, faults, Clock::system());
        call(&dying.functions, Method::PUT, &turn, &body).await;
        let (status, _) = call(&whole, Method::PUT, &turn, &body).await;
        assert!(status.is_success(), "died at call {at}: {status}");
        let (status, read) = call(&whole, Method::GET, &turn, &Value::Null).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(read["assistant"], body["assistant"]);
    })
    .await;
    assert!(deaths >= 3, "only {deaths} deaths");
}

#[tokio::test]
async fn a_follow_up_that_died_anywhere_is_noted_once_after_a_retry() {
    let engine = Engine::start().await;
    let whole = functions_of(&engine);
    let deaths = Faults::at_each_call(Fault::Died, async |faults| {
        let at = faults.at_call();
        let conversation = format!("c-{at}");
        let first = path(&conversation, "t");
        call(
            &whole,
            Method::PUT,
            &first,
            &said("a question", "an answer"),
        )
        .await;
        let next = path(&conversation, "u");
        let rejection = said("No, that's wrong.", "another");
        let dying = Hands::at(&engine, faults, Clock::system());
        call(&dying.functions, Method::PUT, &next, &rejection).await;
        let (status, answer) = call(&whole, Method::PUT, &next, &rejection).await;
        assert!(status.is_success(), "died at call {at}: {status}");
        assert_eq!(answer["detection"]["feedback_type"], "rejected");
        let (_, marked) = call(&whole, Method::GET, &first, &Value::Null).await;
        assert_eq!(marked["user_feedback_status"], "rejected");
        assert_eq!(marked["rejection_detected_in"], "u");
        assert_eq!(marked["reactions"].as_array().unwrap().len(), 1);
    })
    .await;
    assert!(deaths >= 7, "only {deaths} deaths");
}

#[tokio::test]
async fn a_reaction_that_died_anywhere_stands_once_after_a_retry() {
    let engine = Engine::start().await;
    let whole = functions_of(&engine);
    let deaths = Faults::at_each_call(Fault::Died, async |faults| {
        let at = faults.at_call();
        let conversation = format!("c-{at}");
        let turn = path(&conversation, "t");
        call(&whole, Method::PUT, &turn, &said("a", "b")).await;
        let feedback = format!("{turn}/feedback");
        let body = json!({"reaction": "ok", "ts": "2025-11-06T15:30:00Z"});
        let dying = Hands::at(&engine, faults, Clock::system());
        call(&dying.functions, Method::POST, &feedback, &body).await;
        let (status, answer) = call(&whole, Method::POST, &feedback, &body).await;
        assert_eq!(status, StatusCode::OK);
        let artifacts = standing(&whole, &conversation).await;
        assert_eq!(artifacts.len(), 1);
        assert_eq!(artifacts[0]["meta"]["rn"], answer["rn"]);
        // The retry is the same act: it took the place of nothing.
        let message = reaction_message(&engine, &conversation, "ada").await;
        assert_eq!(acts(&message.body.unwrap()).1, Value::Null);
    })
    .await;
    assert!(deaths >= 3, "only {deaths} deaths");
}

#[tokio::test]
async fn what_follows_from_a_reaction_follows_once_wherever_it_died() {
    let engine = Engine::start().await;
    let whole = functions_of(&engine);
    let deaths = Faults::at_each_call(Fault::Died, async |faults| {
        let at = faults.at_call();
        let conversation = format!("c-{at}");
        let turn = path(&conversation, "t");
        call(&whole, Method::PUT, &turn, &said("a", "b")).await;
        let mut messages = Vec::new();
        for verdict in ["ok", "not_ok"] {
            let body = json!({"reaction": verdict, "text": "why", "mirror": true});
            call(&whole, Method::POST, &format!("{turn}/feedback"), &body).await;
            messages.push(reaction_message(&engine, &conversation, "ada").await);
        }
        deliver_through_a_death(&engine, faults, &messages).await;

        let (first, _) = acts(messages[0].body.as_deref().unwrap());
        let (second, replaced) = acts(messages[1].body.as_deref().unwrap());
        assert_eq!(replaced, first);
        let first = event(&engine.store, &first).await.expect("its event");
        let retraction = first.retraction.expect("its withdrawal");
        assert_eq!(retraction.reason, Withdrawal::Replaced);
        let second = event(&engine.store, &second).await.expect("its event");
        assert_eq!(second.retraction, None);
        assert_eq!(second.text.comment.as_deref(), Some("why"));
        let (_, read) = call(&whole, Method::GET, &turn, &Value::Null).await;
        assert_eq!(read["feedbacks"].as_array().unwrap().len(), 1, "{read}");
        assert_eq!(read["feedbacks"][0]["reaction"], "not_ok");
        assert_eq!(read["turn_log"]["entries"].as_array().unwrap().len(), 1);
    })
    .await;
    assert!(deaths >= 6, "only {deaths} deaths");
}
