//! The functions `webhooks` and `webhook-sender`, with a target on this machine.

use hearback_relay::{WEBHOOK_NETWORKS, WEBHOOKS_DEAD_LETTERS_URL, WEBHOOKS_QUEUE_URL};
use hearback_tests::queue::drain;
use hearback_tests::webhook_target::Target;

use super::*;

#[tokio::test]
async fn a_webhook_that_was_put_receives_a_message_of_the_queue() {
    let engine = Engine::start().await;
    let target = Target::start().await;
    let dead_letters = engine.queues.webhooks_dead_letters.as_str();
    let settings = [
        (WEBHOOK_NETWORKS, "127.0.0.0/8"),
        (WEBHOOKS_QUEUE_URL, engine.queues.webhooks.as_str()),
        (WEBHOOKS_DEAD_LETTERS_URL, dead_letters),
    ];
    let webhooks = start(&engine, "webhooks", &settings).await;
    let mut request = event(SUBMIT);
    let (method, path) = ("PUT", "/v1/webhooks/crm");
    request["routeKey"] = json!("ANY /v1/webhooks/{name}");
    request["rawPath"] = json!(path);
    request["requestContext"]["http"]["method"] = json!(method);
    request["requestContext"]["http"]["path"] = json!(path);
    request["requestContext"]["authorizer"]["jwt"]["claims"]["scope"] = json!("feedback:admin");
    request["body"] = json!(json!({"url": target.url()}).to_string());
    let response = webhooks.invoke(&request).await.unwrap();
    assert_eq!(response["statusCode"], 201, "{response}");
    let tenant = &request["requestContext"]["authorizer"]["jwt"]["claims"]["tenant"];

    let sender = start(&engine, "webhook-sender", &settings).await;
    let mut batch = event(QUEUED);
    let records = batch["Records"].as_array_mut().unwrap();
    let published = json!({
        "id": "0d9f5a2e-8f1b-5c44-9d3e-1d3f6d5a7b10", "eventType": "feedback.processed", "tenant": tenant,
    });
    records[0]["body"] = json!(published.to_string());
    records[1]["body"] = json!("{}");
    let response = sender.invoke(&batch).await.unwrap();
    assert_eq!(response["batchItemFailures"], json!([]), "{response}");
    let [received] = target.calls().try_into().unwrap();
    assert_eq!(received.body, published);
    let dead_letters = drain(&engine.clients.sqs, dead_letters).await;
    assert_eq!(dead_letters.len(), 1);
}
