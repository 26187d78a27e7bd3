//! Costs of webhooks: to register them, and to send messages.

use aws_lambda_events::sqs::SqsMessage;
use axum::http::Method;
use chrono::{TimeDelta, Utc};
use hearback_lambda::clock::Clock;
use hearback_lambda::http::service;
use hearback_relay::{Relay, Sender, WebhookRegistry, Webhooks, webhook_routes};
use hearback_tests::engine::Cost;
use hearback_tests::functions::call;
use hearback_tests::queue;
use hearback_tests::webhook_target::{Answer, Target};
use serde_json::{Value, json};
use uuid::Uuid;

use super::Metered;

fn sender() -> Sender {
    Sender::new("127.0.0.0/8".parse().unwrap()).unwrap()
}

fn relay(metered: &Metered, clock: Clock) -> Relay<Webhooks> {
    let engine = &metered.engine;
    Relay::to_webhooks(
        engine.store_with(metered.meter.clone()),
        sender(),
        clock,
        (engine.clients.sqs.clone(), engine.queues.webhooks.clone()),
        engine.dead_letters(&engine.queues.webhooks_dead_letters),
    )
}

fn published() -> SqsMessage {
    let published =
        json!({"id": Uuid::new_v4(), "eventType": "feedback.processed", "tenant": "acme"});
    let mut message = SqsMessage::default();
    message.message_id = Some(Uuid::new_v4().to_string());
    message.body = Some(published.to_string());
    message
}

#[tokio::test]
async fn the_cost_of_a_message_does_not_depend_on_the_number_of_webhooks_that_accept_it() {
    let metered = Metered::start().await;
    let store = metered.engine.store_with(metered.meter.clone());
    let registry = WebhookRegistry::new(store, sender(), Clock::system());
    let functions = service(webhook_routes().router(registry));
    let cost_of = async |method: Method, path: &str, body: &Value| {
        let caller = ("order-service", "feedback:admin");
        let (status, body) = call(&functions, caller, (method, path), body).await;
        assert!(status.is_success(), "{path}: {body}");
        metered.meter.take()
    };
    let (first, second) = (Target::start().await, Target::start().await);
    let body = |target: &Target| json!({"url": target.url()});
    let put = Cost::calls(2).reads(1.0).writes(1.0);
    assert_eq!(
        cost_of(Method::PUT, "/v1/webhooks/first", &body(&first)).await,
        put
    );
    assert_eq!(
        cost_of(Method::PUT, "/v1/webhooks/second", &body(&second)).await,
        put
    );
    let one_read = Cost::calls(1).reads(1.0);
    assert_eq!(
        cost_of(Method::GET, "/v1/webhooks", &Value::Null).await,
        one_read
    );
    assert_eq!(
        cost_of(Method::POST, "/v1/webhooks/first/test", &Value::Null).await,
        one_read
    );
    assert_eq!(
        cost_of(Method::POST, "/v1/webhooks/first/secret", &Value::Null).await,
        put
    );

    let sent = relay(&metered, Clock::system());
    let batch = queue::batch((0..10).map(|_| published()));
    assert!(sent.handle(batch).await.batch_item_failures.is_empty());
    assert_eq!(metered.meter.take(), one_read, "ten messages, two webhooks");
    assert_eq!((first.calls().len(), second.calls().len()), (11, 10));

    first.answers([], Answer::Status(500));
    sent.handle(queue::batch([published()])).await;
    assert_eq!(metered.meter.take(), put, "a webhook that begins to fail");
    sent.handle(queue::batch([published()])).await;
    assert_eq!(
        metered.meter.take(),
        one_read,
        "a message that waits with it"
    );
    // An hour later one message tries it again: the claim, what it has claimed, and the result.
    let later = relay(&metered, Clock::of(|| Utc::now() + TimeDelta::hours(1)));
    later.handle(queue::batch([published()])).await;
    let tried = Cost::calls(4).reads(2.0).writes(2.0);
    assert_eq!(metered.meter.take(), tried);

    let removed = cost_of(Method::DELETE, "/v1/webhooks/second", &Value::Null).await;
    assert_eq!(removed, Cost::calls(1).writes(1.0));
}
