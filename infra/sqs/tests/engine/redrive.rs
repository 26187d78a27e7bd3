//! Dead-letter queues.

use aws_sdk_sqs::{
    error::ProvideErrorMetadata,
    types::{Message, MessageSystemAttributeName, QueueAttributeName},
};

use crate::harness::{Engine, receive_count, system};

const DEAD: &str = "arn:aws:sqs:us-east-1:000000000000:dead";

/// A queue that moves messages after `count` receives; `count` is JSON.
async fn queue_with_policy(engine: &Engine, name: &str, count: &str) -> String {
    let policy = format!(r#"{{"deadLetterTargetArn":"{DEAD}","maxReceiveCount":{count}}}"#);
    engine
        .queue(name, &[(QueueAttributeName::RedrivePolicy, &policy)])
        .await
}

/// Receives the one message repeatedly, and makes it due again each time.
async fn receive_times(engine: &Engine, queue: &str, times: usize) -> Message {
    let mut last = None;
    for _ in 0..times {
        let message = engine.receive(queue).await.remove(0);
        engine.hide(queue, &message, 0).await;
        last = Some(message);
    }
    last.unwrap()
}

#[tokio::test]
async fn a_message_received_five_times_moves_to_the_dead_letter_queue() {
    let engine = Engine::start().await;
    let dead = engine.queue("dead", &[]).await;
    let queue = queue_with_policy(&engine, "jobs", "5").await;
    engine.send(&queue, "x").await;
    let last = receive_times(&engine, &queue, 5).await;
    assert_eq!(receive_count(&last), "5");
    assert_eq!(
        engine.counts(&dead).await,
        ["0", "0", "0"],
        "moved by the sixth, not before"
    );
    assert_eq!(engine.receive(&queue).await.len(), 0);
    assert_eq!(engine.counts(&queue).await, ["0", "0", "0"]);
    let moved = engine.receive(&dead).await.remove(0);
    assert_eq!(moved.message_id(), last.message_id());
    assert_eq!(moved.body(), Some("x"));
    let sent = MessageSystemAttributeName::SentTimestamp;
    assert_eq!(system(&moved, &sent), system(&last, &sent));
    let source = system(
        &moved,
        &MessageSystemAttributeName::DeadLetterQueueSourceArn,
    );
    assert_eq!(
        source.as_deref(),
        Some("arn:aws:sqs:us-east-1:000000000000:jobs")
    );
    assert_eq!(receive_count(&moved), "6", "counted over all queues");
}

#[tokio::test]
async fn a_receive_that_moves_one_message_still_brings_the_next() {
    let engine = Engine::start().await;
    let dead = engine.queue("dead", &[]).await;
    let queue = queue_with_policy(&engine, "jobs", r#""1""#).await;
    engine.send(&queue, "spent").await;
    receive_times(&engine, &queue, 1).await;
    engine.send(&queue, "fresh").await;
    assert_eq!(engine.receive(&queue).await[0].body(), Some("fresh"));
    assert_eq!(engine.receive(&dead).await[0].body(), Some("spent"));
}

#[tokio::test]
async fn a_long_poll_of_the_dead_letter_queue_wakes_when_a_message_moves() {
    let engine = Engine::start().await;
    let dead = engine.queue("dead", &[]).await;
    let queue = queue_with_policy(&engine, "jobs", "1").await;
    engine.send(&queue, "x").await;
    receive_times(&engine, &queue, 1).await;
    let (moved, none) = tokio::join!(engine.wait_for(&dead, 20), engine.receive(&queue));
    assert_eq!(moved.len(), 1);
    assert_eq!(none.len(), 0);
}

#[tokio::test]
async fn without_its_dead_letter_queue_a_message_keeps_being_received() {
    let engine = Engine::start().await;
    let dead = engine.queue("dead", &[]).await;
    let queue = queue_with_policy(&engine, "jobs", "1").await;
    engine.send(&queue, "x").await;
    engine
        .sqs
        .delete_queue()
        .queue_url(&dead)
        .send()
        .await
        .unwrap();
    assert_eq!(receive_count(&receive_times(&engine, &queue, 3).await), "3");
    let dead = engine.queue("dead", &[]).await;
    assert_eq!(engine.receive(&queue).await.len(), 0);
    assert_eq!(receive_count(&engine.receive(&dead).await[0]), "4");
}

#[tokio::test]
async fn an_old_handle_does_not_reach_a_message_that_has_moved() {
    let engine = Engine::start().await;
    let dead = engine.queue("dead", &[]).await;
    let queue = queue_with_policy(&engine, "jobs", "1").await;
    engine.send(&queue, "x").await;
    let old = receive_times(&engine, &queue, 1).await;
    assert_eq!(engine.receive(&queue).await.len(), 0);
    engine.delete(&queue, &old).await;
    assert_eq!(engine.counts(&dead).await, ["1", "0", "0"]);
}

#[tokio::test]
async fn policy_without_a_queue_or_a_count_is_rejected() {
    let engine = Engine::start().await;
    let create = |policy: String| {
        let request = engine.sqs.create_queue().queue_name("jobs");
        request
            .attributes(QueueAttributeName::RedrivePolicy, policy)
            .send()
    };
    let policy =
        |count: &str| format!(r#"{{"deadLetterTargetArn":"{DEAD}","maxReceiveCount":{count}}}"#);
    let error = create(policy("5")).await.unwrap_err();
    assert_eq!(error.code(), Some("InvalidParameterValue"));
    engine.queue("dead", &[]).await;
    for invalid in [
        policy("0"),
        policy("1001"),
        policy(r#""many""#),
        "{}".to_owned(),
    ] {
        let error = create(invalid).await.unwrap_err().into_service_error();
        assert!(error.is_invalid_attribute_value());
    }
    create(policy("5")).await.unwrap();
}

#[tokio::test]
async fn policy_can_be_read_back_and_removed() {
    let engine = Engine::start().await;
    engine.queue("dead", &[]).await;
    let queue = queue_with_policy(&engine, "jobs", r#""5""#).await;
    let policy = engine
        .attribute(&queue, QueueAttributeName::RedrivePolicy)
        .await;
    assert_eq!(
        policy,
        format!(r#"{{"deadLetterTargetArn":"{DEAD}","maxReceiveCount":5}}"#)
    );
    engine
        .sqs
        .set_queue_attributes()
        .queue_url(&queue)
        .attributes(QueueAttributeName::RedrivePolicy, "")
        .send()
        .await
        .unwrap();
    assert_eq!(
        engine
            .attribute(&queue, QueueAttributeName::RedrivePolicy)
            .await,
        ""
    );
}
