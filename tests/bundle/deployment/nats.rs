//! The function `nats`, without a server that it can reach.

use hearback_relay::{NATS_DEAD_LETTERS_URL, NATS_QUEUE_URL, NATS_URL};
use hearback_tests::queue::drain;

use super::*;

#[tokio::test]
async fn nats_reports_an_undelivered_message_and_sends_an_invalid_one_to_the_dlq() {
    let engine = Engine::start().await;
    let dead_letters = engine.queues.nats_dead_letters.as_str();
    let settings = [
        // Nothing listens there.
        (NATS_URL, "nats://127.0.0.1:1"),
        (NATS_QUEUE_URL, &engine.queues.nats),
        (NATS_DEAD_LETTERS_URL, dead_letters),
    ];
    let nats = start(&engine, "nats", &settings).await;
    let mut batch = event(QUEUED);
    let records = batch["Records"].as_array_mut().unwrap();
    let published = json!({
        "id": "0d9f5a2e-8f1b-5c44-9d3e-1d3f6d5a7b10", "eventType": "feedback.processed", "tenant": "acme",
    });
    records[0]["body"] = json!(published.to_string());
    let sent = chrono::Utc::now().timestamp_millis().to_string();
    records[0]["attributes"]["SentTimestamp"] = json!(sent);
    records[1]["body"] = json!("{}");
    let response = nats.invoke(&batch).await.unwrap();
    let failed = response["batchItemFailures"].as_array().unwrap();
    assert_eq!(failed.len(), 1, "{response}");
    assert_eq!(
        failed[0]["itemIdentifier"],
        batch["Records"][0]["messageId"]
    );
    let dead_letters = drain(&engine.clients.sqs, dead_letters).await;
    let bodies: Vec<_> = dead_letters
        .into_iter()
        .map(|message| message.body)
        .collect();
    assert_eq!(bodies, [Some("{}".to_owned())]);
}
