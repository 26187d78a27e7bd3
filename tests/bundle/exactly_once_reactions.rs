//! Turns and reactions under retries, redelivery, and crashes between any two calls.

use axum::Router;
use axum::http::{Method, StatusCode};
use hearback_domain::learning::ledger::RetractionReason;
use hearback_lambda::clock::Clock;
use hearback_tests::engine::Engine;
use hearback_tests::faults::{Fault, Faults};
use hearback_tests::function_set::FunctionSet;
use hearback_tests::functions::{self, functions_of, stored_event as event};
use hearback_tests::turns::{conversation_path, path, reaction_message, turn_body};
use serde_json::{Value, json};

use crate::exactly_once::deliver_through_a_crash;

async fn call(functions: &Router, method: Method, path: &str, body: &Value) -> (StatusCode, Value) {
    functions::call(functions, ("order-service", ""), (method, path), body).await
}

/// The current reactions of a conversation.
async fn current_reactions(functions: &Router, conversation: &str) -> Vec<Value> {
    let path = format!("{}/turns-with-feedbacks", conversation_path(conversation));
    let (status, report) = call(functions, Method::POST, &path, &json!({"days": 3650})).await;
    assert_eq!(status, StatusCode::OK);
    let turns = report["turns"].as_array().unwrap().iter();
    turns
        .flat_map(|turn| turn["reactions"].as_array().unwrap().clone())
        .collect()
}

/// The act of a message, and the one that it replaces.
fn act_ids(body: &str) -> (Value, Value) {
    let record: Value = serde_json::from_str(body).unwrap();
    let core = record["dynamodb"]["NewImage"]["core"]["S"]
        .as_str()
        .unwrap();
    let core: Value = serde_json::from_str(core).unwrap();
    (core["id"].clone(), core["replaces"].clone())
}

#[tokio::test]
async fn a_registration_that_crashed_at_any_call_is_completed_by_the_retry() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine);
    let crashes = Faults::at_each_call(Fault::Crashed, async |faults| {
        let at = faults.at_call();
        let turn = path("c", &format!("t-{at}"));
        let mut body = turn_body("a", "b");
        body["assistant"]["message_id"] = json!(format!("m-{at}"));
        let crashing = FunctionSet::at(&engine, faults, Clock::system());
        call(&crashing.functions, Method::PUT, &turn, &body).await;
        let (status, _) = call(&functions, Method::PUT, &turn, &body).await;
        assert!(status.is_success(), "crashed at call {at}: {status}");
        let (status, read) = call(&functions, Method::GET, &turn, &Value::Null).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(read["assistant"], body["assistant"]);
    })
    .await;
    assert!(crashes >= 3, "only {crashes} crashes");
}

#[tokio::test]
async fn a_follow_up_that_crashed_at_any_call_is_recorded_once_after_the_retry() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine);
    let crashes = Faults::at_each_call(Fault::Crashed, async |faults| {
        let at = faults.at_call();
        let conversation = format!("c-{at}");
        let first = path(&conversation, "t");
        call(
            &functions,
            Method::PUT,
            &first,
            &turn_body("a question", "an answer"),
        )
        .await;
        let next = path(&conversation, "u");
        let rejection = turn_body("No, that's wrong.", "another");
        let crashing = FunctionSet::at(&engine, faults, Clock::system());
        call(&crashing.functions, Method::PUT, &next, &rejection).await;
        let (status, response) = call(&functions, Method::PUT, &next, &rejection).await;
        assert!(status.is_success(), "crashed at call {at}: {status}");
        assert_eq!(response["detection"]["feedback_type"], "rejected");
        let (_, marked) = call(&functions, Method::GET, &first, &Value::Null).await;
        assert_eq!(marked["user_feedback_status"], "rejected");
        assert_eq!(marked["rejection_detected_in"], "u");
        assert_eq!(marked["reactions"].as_array().unwrap().len(), 1);
    })
    .await;
    assert!(crashes >= 7, "only {crashes} crashes");
}

#[tokio::test]
async fn a_reaction_that_crashed_at_any_call_exists_once_after_the_retry() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine);
    let crashes = Faults::at_each_call(Fault::Crashed, async |faults| {
        let at = faults.at_call();
        let conversation = format!("c-{at}");
        let turn = path(&conversation, "t");
        call(&functions, Method::PUT, &turn, &turn_body("a", "b")).await;
        let feedback = format!("{turn}/feedback");
        let body = json!({"reaction": "ok", "ts": "2025-11-06T15:30:00Z"});
        let crashing = FunctionSet::at(&engine, faults, Clock::system());
        call(&crashing.functions, Method::POST, &feedback, &body).await;
        let (status, response) = call(&functions, Method::POST, &feedback, &body).await;
        assert_eq!(status, StatusCode::OK);
        let artifacts = current_reactions(&functions, &conversation).await;
        assert_eq!(artifacts.len(), 1);
        assert_eq!(artifacts[0]["meta"]["rn"], response["rn"]);
        // The retry is the same act, and replaces nothing.
        let message = reaction_message(&engine, &conversation, "ada").await;
        assert_eq!(act_ids(&message.body.unwrap()).1, Value::Null);
    })
    .await;
    assert!(crashes >= 3, "only {crashes} crashes");
}

#[tokio::test]
async fn a_reaction_takes_effect_once_wherever_its_processing_crashed() {
    let engine = Engine::start().await;
    let functions = functions_of(&engine);
    let crashes = Faults::at_each_call(Fault::Crashed, async |faults| {
        let at = faults.at_call();
        let conversation = format!("c-{at}");
        let turn = path(&conversation, "t");
        call(&functions, Method::PUT, &turn, &turn_body("a", "b")).await;
        let mut messages = Vec::new();
        for verdict in ["ok", "not_ok"] {
            let body = json!({"reaction": verdict, "text": "why", "mirror": true});
            call(&functions, Method::POST, &format!("{turn}/feedback"), &body).await;
            messages.push(reaction_message(&engine, &conversation, "ada").await);
        }
        deliver_through_a_crash(&engine, faults, &messages).await;

        let (first, _) = act_ids(messages[0].body.as_deref().unwrap());
        let (second, replaced) = act_ids(messages[1].body.as_deref().unwrap());
        assert_eq!(replaced, first);
        let first = event(&engine.store, &first).await.expect("an event");
        let retraction = first.retraction.expect("a retraction");
        assert_eq!(retraction.reason, RetractionReason::Replaced);
        let second = event(&engine.store, &second).await.expect("an event");
        assert_eq!(second.retraction, None);
        assert_eq!(second.text.comment.as_deref(), Some("why"));
        let (_, read) = call(&functions, Method::GET, &turn, &Value::Null).await;
        assert_eq!(read["feedbacks"].as_array().unwrap().len(), 1, "{read}");
        assert_eq!(read["feedbacks"][0]["reaction"], "not_ok");
        assert_eq!(read["turn_log"]["entries"].as_array().unwrap().len(), 1);
    })
    .await;
    assert!(crashes >= 6, "only {crashes} crashes");
}
