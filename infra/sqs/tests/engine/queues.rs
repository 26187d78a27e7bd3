//! Queues: created, found, listed, configured, purged, deleted.

use aws_sdk_sqs::{error::ProvideErrorMetadata, types::QueueAttributeName};

use crate::harness::Engine;

#[tokio::test]
async fn creating_a_queue_again_with_the_same_attributes_gives_the_same_queue() {
    let engine = Engine::start().await;
    let first = engine
        .queue("jobs", &[(QueueAttributeName::VisibilityTimeout, "5")])
        .await;
    assert_eq!(
        first,
        format!("http://{}/000000000000/jobs", engine.address)
    );
    assert_eq!(
        first,
        engine
            .queue("jobs", &[(QueueAttributeName::VisibilityTimeout, "5")])
            .await
    );
    assert_eq!(first, engine.queue("jobs", &[]).await);
}

#[tokio::test]
async fn creating_a_queue_again_with_another_attribute_is_rejected() {
    let engine = Engine::start().await;
    engine
        .queue("jobs", &[(QueueAttributeName::VisibilityTimeout, "5")])
        .await;
    let error = engine
        .sqs
        .create_queue()
        .queue_name("jobs")
        .attributes(QueueAttributeName::VisibilityTimeout, "6")
        .send()
        .await
        .unwrap_err()
        .into_service_error();
    assert!(error.is_queue_name_exists());
}

#[tokio::test]
async fn an_unknown_queue_is_parsed_as_queue_does_not_exist() {
    let engine = Engine::start().await;
    let url = format!("http://{}/000000000000/nowhere", engine.address);
    let send = engine
        .sqs
        .send_message()
        .queue_url(&url)
        .message_body("x")
        .send()
        .await;
    assert!(
        send.unwrap_err()
            .into_service_error()
            .is_queue_does_not_exist()
    );
    let receive = engine
        .sqs
        .receive_message()
        .queue_url(&url)
        .wait_time_seconds(20)
        .send()
        .await;
    assert!(
        receive
            .unwrap_err()
            .into_service_error()
            .is_queue_does_not_exist()
    );
    let find = engine
        .sqs
        .get_queue_url()
        .queue_name("nowhere")
        .send()
        .await;
    assert!(
        find.unwrap_err()
            .into_service_error()
            .is_queue_does_not_exist()
    );
}

#[tokio::test]
async fn fifo_queue_is_rejected_with_a_reason() {
    let engine = Engine::start().await;
    let error = engine
        .sqs
        .create_queue()
        .queue_name("jobs.fifo")
        .send()
        .await
        .unwrap_err();
    let error = error.into_service_error();
    assert!(error.is_unsupported_operation());
    assert_eq!(
        error.message(),
        Some("A FIFO queue is not supported by this engine.")
    );
}

#[tokio::test]
async fn unsupported_or_out_of_range_attributes_are_rejected() {
    let engine = Engine::start().await;
    let create = |name, value| {
        engine
            .sqs
            .create_queue()
            .queue_name("jobs")
            .attributes(name, value)
            .send()
    };
    let error = create(QueueAttributeName::VisibilityTimeout, "43201")
        .await
        .unwrap_err();
    assert!(error.into_service_error().is_invalid_attribute_value());
    let error = create(QueueAttributeName::MaximumMessageSize, "1048577")
        .await
        .unwrap_err();
    assert!(error.into_service_error().is_invalid_attribute_value());
    let error = create(QueueAttributeName::Policy, "{}").await.unwrap_err();
    assert!(error.into_service_error().is_invalid_attribute_name());
    let error = create(QueueAttributeName::from("Colour"), "red")
        .await
        .unwrap_err();
    assert!(error.into_service_error().is_invalid_attribute_name());
}

#[tokio::test]
async fn queue_returns_its_defaults_and_settings() {
    let engine = Engine::start().await;
    let queue = engine.queue("jobs", &[]).await;
    engine
        .sqs
        .set_queue_attributes()
        .queue_url(&queue)
        .attributes(QueueAttributeName::DelaySeconds, "7")
        .send()
        .await
        .unwrap();
    let all = engine
        .sqs
        .get_queue_attributes()
        .queue_url(&queue)
        .attribute_names(QueueAttributeName::All)
        .send()
        .await
        .unwrap()
        .attributes
        .unwrap();
    let expected = [
        (
            QueueAttributeName::QueueArn,
            "arn:aws:sqs:us-east-1:000000000000:jobs",
        ),
        (QueueAttributeName::VisibilityTimeout, "30"),
        (QueueAttributeName::MessageRetentionPeriod, "345600"),
        (QueueAttributeName::DelaySeconds, "7"),
        (QueueAttributeName::ReceiveMessageWaitTimeSeconds, "0"),
        (QueueAttributeName::MaximumMessageSize, "1048576"),
        (QueueAttributeName::ApproximateNumberOfMessages, "0"),
        (
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
            "0",
        ),
        (QueueAttributeName::ApproximateNumberOfMessagesDelayed, "0"),
    ];
    for (name, value) in expected {
        assert_eq!(all.get(&name).map(String::as_str), Some(value), "{name}");
    }
    assert!(
        all[&QueueAttributeName::CreatedTimestamp]
            .parse::<u64>()
            .unwrap()
            > 1_700_000_000
    );
    assert_eq!(all.len(), 11);
}

#[tokio::test]
async fn queues_are_listed_by_prefix_and_page_by_page() {
    let engine = Engine::start().await;
    for name in ["b-1", "a-1", "a-3", "a-2"] {
        engine.queue(name, &[]).await;
    }
    let mut pages = Vec::new();
    let mut stream = engine
        .sqs
        .list_queues()
        .queue_name_prefix("a-")
        .into_paginator()
        .page_size(2)
        .send();
    while let Some(page) = stream.next().await {
        pages.push(page.unwrap().queue_urls.unwrap());
    }
    let url = |name| format!("http://{}/000000000000/{name}", engine.address);
    assert_eq!(pages, [vec![url("a-1"), url("a-2")], vec![url("a-3")]]);
    let all = engine.sqs.list_queues().send().await.unwrap();
    assert_eq!(all.queue_urls().len(), 4);
    assert_eq!(all.next_token(), None);
}

#[tokio::test]
async fn a_purge_empties_one_queue_of_all_its_messages() {
    let engine = Engine::start().await;
    let queue = engine.queue("jobs", &[]).await;
    let other = engine.queue("other", &[]).await;
    engine.send(&queue, "in flight").await;
    let received = engine.receive(&queue).await;
    engine.send(&queue, "visible").await;
    engine.send(&other, "kept").await;
    engine
        .sqs
        .purge_queue()
        .queue_url(&queue)
        .send()
        .await
        .unwrap();
    assert_eq!(engine.counts(&queue).await, ["0", "0", "0"]);
    assert_eq!(engine.counts(&other).await, ["1", "0", "0"]);
    engine.delete(&queue, &received[0]).await;
}

#[tokio::test]
async fn a_deleted_queue_is_gone_and_its_successor_starts_empty() {
    let engine = Engine::start().await;
    let queue = engine.queue("jobs", &[]).await;
    engine.send(&queue, "old").await;
    let old = engine.receive(&queue).await.remove(0);
    engine
        .sqs
        .delete_queue()
        .queue_url(&queue)
        .send()
        .await
        .unwrap();
    let again = engine
        .sqs
        .delete_queue()
        .queue_url(&queue)
        .send()
        .await
        .unwrap_err();
    assert!(again.into_service_error().is_queue_does_not_exist());
    let queue = engine.queue("jobs", &[]).await;
    assert_eq!(engine.counts(&queue).await, ["0", "0", "0"]);
    let handle = old.receipt_handle().unwrap();
    let error = engine
        .sqs
        .delete_message()
        .queue_url(&queue)
        .receipt_handle(handle)
        .send()
        .await;
    assert!(
        error
            .unwrap_err()
            .into_service_error()
            .is_receipt_handle_is_invalid()
    );
}
