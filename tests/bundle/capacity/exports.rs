//! Costs of the evaluation read and the training export.

use axum::http::Method;
use chrono::Utc;
use hearback_export::Exporter;
use hearback_lambda::clock::Clock;
use hearback_tests::engine::Cost;
use hearback_tests::turns::{SIGNALS, message, path};
use serde_json::json;

use super::Metered;

#[tokio::test]
async fn the_evaluation_read_matches_the_cost_card() {
    let metered = Metered::start().await;
    for number in 0..3 {
        let mut body = message(&format!("m{number}"), "a", "b");
        body["trace_id"] = json!("4f3a");
        let turn = path("c", &format!("t{number}"));
        metered.call(Method::PUT, &turn, &body).await;
        let signal = json!({"message_id": format!("m{number}"), "signal": "helpful"});
        metered.call(Method::POST, SIGNALS, &signal).await;
    }
    let store = metered.engine.store_with(metered.meter.clone());
    let exporter = Exporter::new(store, metered.engine.blobs(), Clock::system());
    let request = json!({"tenant": "acme", "trace_id": "4f3a"});
    exporter.handle(&request, None).await.unwrap();
    // The index, the three rows in one call, and the turn of each.
    assert_eq!(metered.meter.take(), Cost::calls(5).reads(6.5));
    let request = json!({"tenant": "acme", "day": Utc::now().date_naive().to_string()});
    exporter.handle(&request, None).await.unwrap();
    // Reads the four shards of the day, the three rows in one call, and the turn of each. One shard has all rows,
    // because they belong to one user.
    assert_eq!(metered.meter.take(), Cost::calls(8).reads(8.0));
}

#[tokio::test]
async fn the_training_export_matches_the_cost_card() {
    let metered = Metered::start().await;
    for number in 0..3 {
        let turn = path("c", &format!("t{number}"));
        let body = message(&format!("m{number}"), "a", "b");
        metered.call(Method::PUT, &turn, &body).await;
        let feedback = format!("{turn}/feedback");
        let reaction = json!({"reaction": "ok"});
        metered.call(Method::POST, &feedback, &reaction).await;
    }
    let store = metered.engine.store_with(metered.meter.clone());
    let exporter = Exporter::new(store, metered.engine.blobs(), Clock::system());
    let today = Utc::now().date_naive();
    let request =
        json!({"tenant": "acme", "training": {"project": "order-service", "from": today}});
    metered.meter.take();
    exporter.handle(&request, None).await.unwrap();
    // Reads the four shards of the day in the index, the four shards of its activity markers, the conversation, and
    // its turns in one call.
    let without = metered.meter.take();
    assert_eq!(without, Cost::calls(10).reads(10.0));
    let edit = json!({"message_id": "m0", "signal": "edit", "reason": "c"});
    metered.call(Method::POST, SIGNALS, &edit).await;
    metered.meter.take();
    exporter.handle(&request, None).await.unwrap();
    // Reads the signal and its turn, and the turn with its reactions once more, to check that the run covered it.
    let with = metered.meter.take();
    assert_eq!(with, Cost::calls(13).reads(13.0));
}
