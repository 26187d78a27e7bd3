//! Costs of counting an hour.

use axum::http::Method;
use hearback_insights::Counter;
use hearback_lambda::clock::Clock;
use hearback_tests::counted_hours::all_messages;
use hearback_tests::engine::Cost;
use hearback_tests::events::acceptance;
use hearback_tests::functions::call;
use hearback_tests::queue;
use serde_json::{Value, json};

use super::Metered;

fn counter(metered: &Metered) -> Counter {
    let engine = &metered.engine;
    Counter::new(
        engine.store_with(metered.meter.clone()),
        Clock::system(),
        engine.dead_letters(&engine.queues.insights_dead_letters),
    )
}

/// Counts all events that are stored.
async fn count(metered: &Metered) -> Cost {
    let messages = queue::batch(all_messages(&metered.engine).await);
    let response = counter(metered).handle(messages).await;
    assert!(response.batch_item_failures.is_empty());
    metered.meter.take()
}

async fn store(metered: &Metered, events: &[Value]) {
    for event in events {
        metered
            .call(Method::POST, "/v1/feedback/submit", event)
            .await;
    }
    metered.generate(events).await;
}

#[tokio::test]
async fn counting_an_hour_matches_the_cost_card() {
    let metered = Metered::start().await;
    let event = |model: Option<&str>| {
        let mut event = acceptance("ada");
        event["timestamp"] = json!("2026-01-04T09:00:00Z");
        event["context"] = json!({"projectId": "order-service"});
        if let Some(model) = model {
            event["context"]["labels"] = json!({"model": model});
        }
        event["artifactId"] = json!(format!("{model:?}"));
        event
    };
    store(&metered, &[event(None)]).await;
    // Reads whether the event is retracted, the head of the hour and the eight shards of its events, and puts the head.
    // Reads the head of the day and of its hours, and puts the head of the day.
    let one = Cost::calls(14).reads(8.0).writes(2.0);
    assert_eq!(count(&metered).await, one);
    assert_eq!(count(&metered).await, one, "the same for each batch");
    // Another event to read, and for each other dimension two rows more, of the hour and of the day, and a read of those
    // of the hours.
    store(&metered, &[event(Some("m-1"))]).await;
    let labelled = Cost::calls(3).reads(2.0).writes(2.0);
    assert_eq!(count(&metered).await, one + labelled);
    let others: Vec<_> = (0..30)
        .map(|at| event(Some(&format!("m-{}", at % 3))))
        .collect();
    store(&metered, &others).await;
    let more = count(&metered).await;
    assert_eq!(more.calls, (one + labelled).calls);
}

#[tokio::test]
async fn a_report_reads_the_counts_of_its_period_whatever_lies_outside_of_it() {
    let metered = Metered::start().await;
    let event = |at: String| {
        let mut event = acceptance("ada");
        event["artifactId"] = json!(at);
        event["timestamp"] = json!(at);
        event["context"] = json!({"projectId": "order-service", "labels": {"model": "m-1"}});
        event
    };
    let of_days = |days: std::ops::Range<u32>, month: u32| {
        let days = days.map(|day| event(format!("2026-{month:02}-{day:02}T09:00:00Z")));
        days.collect::<Vec<_>>()
    };
    let read = async || {
        let path = "/v1/projects/order-service/insights?from=2026-11-01T00:00:00Z\
                    &to=2026-12-01T00:00:00Z&groupBy=label.model";
        let functions = &metered.functions;
        let caller = ("order-service", "feedback:report");
        let (status, body) = call(functions, caller, (Method::GET, path), &Value::Null).await;
        assert!(status.is_success(), "{body}");
        (body["total"]["events"].clone(), metered.meter.take())
    };
    store(&metered, &of_days(1..27, 11)).await;
    count(&metered).await;
    let (events, cost) = read().await;
    assert_eq!(events, 26);
    // The heads of 26 days, which have half a KB each, and their counts by model.
    assert_eq!(cost, Cost::calls(2).reads(7.0));
    for month in 1..=10 {
        store(&metered, &of_days(1..27, month)).await;
    }
    count(&metered).await;
    assert_eq!(read().await, (events, cost));
}
