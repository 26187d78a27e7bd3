//! A message whose outlet is unavailable is retried for a day, with pauses that grow.

use std::time::Duration;

use aws_lambda_events::sqs::SqsMessage;
use aws_sdk_sqs::types::QueueAttributeName;
use chrono::{TimeDelta, Utc};
use hearback_relay::{Backoff, Nats, NatsSettings, Relay};
use hearback_tests::app::eventually;
use hearback_tests::engine::Engine;
use hearback_tests::queue::{batch, count, drain};
use serde_json::json;

/// A relay to a server that does not exist.
fn relay(engine: &Engine) -> Relay<Nats> {
    let settings = NatsSettings {
        servers: "nats://127.0.0.1:1".parse().unwrap(),
        prefix: None,
        credentials: None,
    };
    let backoff = Backoff::new(engine.clients.sqs.clone(), &engine.queues.nats);
    let dead_letters = engine.dead_letters(&engine.queues.nats_dead_letters);
    Relay::new(Nats::new(settings), backoff, dead_letters)
}

fn published() -> String {
    let id = "0d9f5a2e-8f1b-5c44-9d3e-1d3f6d5a7b10";
    json!({"id": id, "eventType": "feedback.processed", "tenant": "acme"}).to_string()
}

/// Sends a message, and receives it as one that was sent this long ago.
async fn received(engine: &Engine, waited: TimeDelta) -> SqsMessage {
    let (sqs, queue) = (&engine.clients.sqs, &engine.queues.nats);
    let send = sqs.send_message().queue_url(queue);
    send.message_body(published()).send().await.unwrap();
    let receive = sqs.receive_message().queue_url(queue);
    let received = receive.send().await.unwrap().messages.unwrap().remove(0);
    let mut message = SqsMessage::default();
    message.message_id = received.message_id;
    message.receipt_handle = received.receipt_handle;
    message.body = received.body;
    let sent = (Utc::now() - waited).timestamp_millis().to_string();
    message.attributes.insert("SentTimestamp".to_owned(), sent);
    let receives = ("ApproximateReceiveCount".to_owned(), "3".to_owned());
    message.attributes.extend([receives]);
    message
}

/// Whether no message of the outlet's queue can be received now.
async fn is_hidden(engine: &Engine) -> bool {
    let attributes = engine.clients.sqs.get_queue_attributes();
    let attributes = attributes
        .queue_url(&engine.queues.nats)
        .attribute_names(QueueAttributeName::ApproximateNumberOfMessages);
    let attributes = attributes.send().await.unwrap().attributes.unwrap();
    attributes[&QueueAttributeName::ApproximateNumberOfMessages] == "0"
}

#[tokio::test]
async fn the_delay_before_a_retry_equals_the_age_of_the_message() {
    let engine = Engine::start().await;
    let message = received(&engine, TimeDelta::seconds(5)).await;
    let failed = relay(&engine).handle(batch([message])).await;
    assert_eq!(failed.batch_item_failures.len(), 1);
    // Longer than the visibility timeout of the queue, which is a second here.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(is_hidden(&engine).await);
    eventually(|| async { (!is_hidden(&engine).await).then_some(()) }).await;
}

#[tokio::test]
async fn a_message_that_is_not_delivered_for_a_day_goes_to_the_dlq() {
    let engine = Engine::start().await;
    let (sqs, dead_letters) = (&engine.clients.sqs, &engine.queues.nats_dead_letters);
    let message = received(&engine, TimeDelta::hours(23)).await;
    let failed = relay(&engine).handle(batch([message])).await;
    assert_eq!(failed.batch_item_failures.len(), 1);
    assert_eq!(count(sqs, dead_letters).await, 0);
    let message = received(&engine, TimeDelta::hours(25)).await;
    let failed = relay(&engine).handle(batch([message])).await;
    assert_eq!(failed.batch_item_failures.len(), 0);
    let dead_letters = drain(sqs, dead_letters).await;
    assert_eq!(dead_letters[0].body, Some(published()));
}
