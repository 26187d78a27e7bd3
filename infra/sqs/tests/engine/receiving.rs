//! Visibility, its change, delays and long polls.

use std::time::{Duration, Instant};

use aws_sdk_sqs::{error::ProvideErrorMetadata, types::QueueAttributeName};

use crate::harness::{Engine, bodies, receive_count};

const GENEROUS: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_received_message_is_hidden_until_its_timeout_and_counted_exactly_once_per_receive() {
    let engine = Engine::start().await;
    let queue = engine
        .queue("jobs", &[(QueueAttributeName::VisibilityTimeout, "1")])
        .await;
    engine.send(&queue, "x").await;
    for count in 1..=3 {
        let received = engine.wait_for(&queue, 20).await;
        assert_eq!(receive_count(&received[0]), count.to_string());
        assert_eq!(engine.receive(&queue).await.len(), 0);
    }
}

#[tokio::test]
async fn a_visibility_of_zero_makes_a_message_due_at_once() {
    let engine = Engine::start().await;
    let queue = engine.queue("jobs", &[]).await;
    engine.send(&queue, "x").await;
    let first = engine.receive(&queue).await.remove(0);
    engine.hide(&queue, &first, 0).await;
    let second = engine.receive(&queue).await.remove(0);
    assert_eq!(receive_count(&second), "2");
    assert_ne!(first.receipt_handle(), second.receipt_handle());
}

#[tokio::test]
async fn a_longer_visibility_keeps_a_message_hidden_past_its_first_timeout() {
    let engine = Engine::start().await;
    let queue = engine
        .queue("jobs", &[(QueueAttributeName::VisibilityTimeout, "2")])
        .await;
    engine.send(&queue, "x").await;
    let received = engine.receive(&queue).await.remove(0);
    engine.hide(&queue, &received, 600).await;
    assert_eq!(engine.wait_for(&queue, 3).await.len(), 0);
    assert_eq!(engine.counts(&queue).await, ["0", "1", "0"]);
}

#[tokio::test]
async fn only_the_last_receive_changes_visibility_but_any_receive_deletes() {
    let engine = Engine::start().await;
    let queue = engine.queue("jobs", &[]).await;
    engine.send(&queue, "x").await;
    let first = engine.receive(&queue).await.remove(0);
    engine.hide(&queue, &first, 0).await;
    let change = |handle: &str, timeout: i32| {
        let request = engine.sqs.change_message_visibility().queue_url(&queue);
        request
            .receipt_handle(handle)
            .visibility_timeout(timeout)
            .send()
    };
    let handle = first.receipt_handle().unwrap();
    let error = change(handle, 5).await.unwrap_err().into_service_error();
    assert!(
        error.is_message_not_inflight(),
        "due again, so not in flight"
    );
    let second = engine.receive(&queue).await.remove(0);
    let error = change(handle, 0).await.unwrap_err().into_service_error();
    assert!(
        error.is_message_not_inflight(),
        "in flight for another consumer"
    );
    engine.delete(&queue, &first).await;
    let error = change(second.receipt_handle().unwrap(), 5)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some("InvalidParameterValue"), "deleted");
    assert_eq!(engine.counts(&queue).await, ["0", "0", "0"]);
}

#[tokio::test]
async fn a_receive_with_a_timeout_of_zero_brings_each_message_once() {
    let engine = Engine::start().await;
    let queue = engine.queue("jobs", &[]).await;
    engine.send(&queue, "one").await;
    engine.send(&queue, "two").await;
    for _ in 0..2 {
        let request = engine
            .sqs
            .receive_message()
            .queue_url(&queue)
            .max_number_of_messages(10);
        let received = request
            .visibility_timeout(0)
            .send()
            .await
            .unwrap()
            .messages
            .unwrap();
        let mut bodies = bodies(&received);
        bodies.sort_unstable();
        assert_eq!(bodies, ["one", "two"]);
    }
}

#[tokio::test]
async fn a_long_poll_wakes_when_a_message_is_sent() {
    let engine = Engine::start().await;
    let queue = engine.queue("jobs", &[]).await;
    let started = Instant::now();
    let (received, ()) = tokio::join!(engine.wait_for(&queue, 20), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        engine.send(&queue, "x").await;
    });
    assert_eq!(bodies(&received), ["x"]);
    assert!(started.elapsed() < GENEROUS);
}

#[tokio::test]
async fn a_receive_without_a_wait_time_uses_that_of_the_queue() {
    let engine = Engine::start().await;
    let wait = QueueAttributeName::ReceiveMessageWaitTimeSeconds;
    let queue = engine.queue("jobs", &[(wait, "20")]).await;
    let receive = engine.sqs.receive_message().queue_url(&queue).send();
    let (received, ()) = tokio::join!(receive, async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        engine.send(&queue, "x").await;
    });
    assert_eq!(bodies(received.unwrap().messages()), ["x"]);
    assert_eq!(engine.receive(&queue).await.len(), 0, "zero overrides it");
}

#[tokio::test]
async fn a_long_poll_wakes_when_a_delay_is_over() {
    let engine = Engine::start().await;
    let queue = engine
        .queue("jobs", &[(QueueAttributeName::DelaySeconds, "900")])
        .await;
    let request = engine
        .sqs
        .send_message()
        .queue_url(&queue)
        .message_body("soon");
    request.delay_seconds(1).send().await.unwrap();
    engine.send(&queue, "later").await;
    assert_eq!(engine.counts(&queue).await, ["0", "0", "2"]);
    let started = Instant::now();
    assert_eq!(bodies(&engine.wait_for(&queue, 20).await), ["soon"]);
    assert!(started.elapsed() < GENEROUS);
    assert_eq!(engine.counts(&queue).await, ["0", "1", "1"]);
}

#[tokio::test]
async fn long_poll_ends_with_an_error_when_the_queue_is_deleted() {
    let engine = Engine::start().await;
    let queue = engine.queue("jobs", &[]).await;
    let receive = engine
        .sqs
        .receive_message()
        .queue_url(&queue)
        .wait_time_seconds(20)
        .send();
    let started = Instant::now();
    let (received, ()) = tokio::join!(receive, async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        engine
            .sqs
            .delete_queue()
            .queue_url(&queue)
            .send()
            .await
            .unwrap();
    });
    assert!(
        received
            .unwrap_err()
            .into_service_error()
            .is_queue_does_not_exist()
    );
    assert!(started.elapsed() < GENEROUS);
}

#[tokio::test]
async fn messages_are_shared_out_among_concurrent_receivers() {
    let engine = Engine::start().await;
    let queue = engine.queue("jobs", &[]).await;
    let polls = (0..8).map(|_| {
        let request = engine
            .sqs
            .receive_message()
            .queue_url(&queue)
            .wait_time_seconds(20);
        tokio::spawn(request.send())
    });
    let polls: Vec<_> = polls.collect();
    for n in 0..8 {
        engine.send(&queue, &n.to_string()).await;
    }
    let mut received = Vec::new();
    for poll in polls {
        let messages = poll.await.unwrap().unwrap().messages.unwrap();
        received.extend(messages.into_iter().filter_map(|message| message.body));
    }
    received.sort();
    assert_eq!(received, ["0", "1", "2", "3", "4", "5", "6", "7"]);
}

#[tokio::test]
async fn receive_outside_the_limits_is_rejected() {
    let engine = Engine::start().await;
    let queue = engine.queue("jobs", &[]).await;
    let receive = || engine.sqs.receive_message().queue_url(&queue);
    for request in [
        receive().max_number_of_messages(0),
        receive().max_number_of_messages(11),
        receive().wait_time_seconds(21),
        receive().visibility_timeout(43_201),
    ] {
        assert_eq!(
            request.send().await.unwrap_err().code(),
            Some("InvalidParameterValue")
        );
    }
}
