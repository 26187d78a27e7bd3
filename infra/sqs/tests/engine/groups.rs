//! Fair queues: groups share a queue's consumers.

use aws_sdk_sqs::{error::ProvideErrorMetadata, types::MessageSystemAttributeName};

use crate::harness::{Engine, bodies, system};

async fn send(engine: &Engine, queue: &str, group: &str, body: &str) {
    let send = engine.sqs.send_message().queue_url(queue);
    let send = send.message_group_id(group).message_body(body);
    send.send().await.unwrap();
}

async fn receive(engine: &Engine, queue: &str, most: i32) -> Vec<aws_sdk_sqs::types::Message> {
    let receive = engine.sqs.receive_message().queue_url(queue);
    let receive = receive
        .max_number_of_messages(most)
        .message_system_attribute_names(MessageSystemAttributeName::All);
    let received = receive.send().await.unwrap();
    received.messages.unwrap_or_default()
}

/// The bodies in the order of receives, of which each is done before the next.
async fn one_by_one(engine: &Engine, queue: &str) -> String {
    let mut order = String::new();
    while let Some(message) = receive(engine, queue, 1).await.pop() {
        order += message.body().unwrap();
        engine.delete(queue, &message).await;
    }
    order
}

#[tokio::test]
async fn a_group_with_a_backlog_does_not_keep_another_waiting() {
    let engine = Engine::start().await;
    let queue = engine.queue("jobs", &[]).await;
    for _ in 0..5 {
        send(&engine, &queue, "noisy", "n").await;
    }
    for _ in 0..2 {
        send(&engine, &queue, "quiet", "q").await;
    }
    assert_eq!(one_by_one(&engine, &queue).await, "nqnqnnn");
}

#[tokio::test]
async fn a_group_that_has_nothing_in_flight_comes_first() {
    let engine = Engine::start().await;
    let queue = engine.queue("jobs", &[]).await;
    for _ in 0..5 {
        send(&engine, &queue, "noisy", "n").await;
    }
    assert_eq!(bodies(&receive(&engine, &queue, 3).await), ["n", "n", "n"]);
    for _ in 0..2 {
        send(&engine, &queue, "quiet", "q").await;
    }
    engine.send(&queue, "of nobody").await;
    let received = receive(&engine, &queue, 10).await;
    assert_eq!(bodies(&received), ["of nobody", "q", "q", "n", "n"]);
}

#[tokio::test]
async fn a_received_message_has_its_group_id() {
    let engine = Engine::start().await;
    let queue = engine.queue("jobs", &[]).await;
    send(&engine, &queue, "acme", "x").await;
    engine.send(&queue, "y").await;
    let received = receive(&engine, &queue, 10).await;
    let group = |at: usize| system(&received[at], &MessageSystemAttributeName::MessageGroupId);
    assert_eq!(bodies(&received), ["y", "x"]);
    assert_eq!([group(0), group(1)], [None, Some("acme".to_owned())]);
    let long = "g".repeat(129);
    for name in ["", "a b", "ä", &long] {
        let send = engine.sqs.send_message().queue_url(&queue);
        let send = send.message_group_id(name).message_body("x").send().await;
        assert_eq!(send.unwrap_err().code(), Some("InvalidParameterValue"));
    }
}
