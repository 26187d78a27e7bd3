//! Batches: an outcome for each entry, or a rejection of the whole batch.

use aws_sdk_sqs::{
    error::ProvideErrorMetadata,
    types::{
        BatchResultErrorEntry, ChangeMessageVisibilityBatchRequestEntry,
        DeleteMessageBatchRequestEntry, QueueAttributeName, SendMessageBatchRequestEntry,
        SendMessageBatchResultEntry,
    },
};

use crate::harness::{Engine, bodies};

fn entry(id: &str, body: &str) -> SendMessageBatchRequestEntry {
    SendMessageBatchRequestEntry::builder()
        .id(id)
        .message_body(body)
        .build()
        .unwrap()
}

#[tokio::test]
async fn invalid_entries_fail_alone() {
    let engine = Engine::start().await;
    let queue = engine
        .queue("jobs", &[(QueueAttributeName::MaximumMessageSize, "1024")])
        .await;
    let sent = engine
        .sqs
        .send_message_batch()
        .queue_url(&queue)
        .entries(entry("good", "one"))
        .entries(entry("long", &"x".repeat(1_025)))
        .entries(entry("bell", "\u{7}"))
        .entries(entry("also-good", "two"))
        .send()
        .await
        .unwrap();
    let good: Vec<_> = sent
        .successful()
        .iter()
        .map(SendMessageBatchResultEntry::id)
        .collect();
    assert_eq!(good, ["good", "also-good"]);
    let failed: Vec<_> = sent
        .failed()
        .iter()
        .map(|entry| (entry.id(), entry.code()))
        .collect();
    assert_eq!(
        failed,
        [
            ("long", "InvalidParameterValue"),
            ("bell", "InvalidMessageContents")
        ]
    );
    assert!(
        sent.failed()
            .iter()
            .all(BatchResultErrorEntry::sender_fault)
    );
    assert_eq!(bodies(&engine.receive(&queue).await), ["one", "two"]);
}

#[tokio::test]
async fn malformed_batch_is_rejected_as_a_whole() {
    let engine = Engine::start().await;
    let queue = engine.queue("jobs", &[]).await;
    let send = |entries: Vec<SendMessageBatchRequestEntry>| {
        engine
            .sqs
            .send_message_batch()
            .queue_url(&queue)
            .set_entries(Some(entries))
            .send()
    };
    let error = send(vec![]).await.unwrap_err().into_service_error();
    assert!(error.is_empty_batch_request());
    let eleven = (0..11).map(|n| entry(&n.to_string(), "x")).collect();
    let error = send(eleven).await.unwrap_err().into_service_error();
    assert!(error.is_too_many_entries_in_batch_request());
    let error = send(vec![entry("a", "x"), entry("a", "y")])
        .await
        .unwrap_err();
    assert!(error.into_service_error().is_batch_entry_ids_not_distinct());
    let error = send(vec![entry("a b", "x")])
        .await
        .unwrap_err()
        .into_service_error();
    assert!(error.is_invalid_batch_entry_id());
    let half = "x".repeat(600_000);
    let error = send(vec![entry("a", &half), entry("b", &half)])
        .await
        .unwrap_err();
    assert_eq!(
        error.code(),
        Some("AWS.SimpleQueueService.BatchRequestTooLong")
    );
    assert_eq!(engine.counts(&queue).await, ["0", "0", "0"]);
}

#[tokio::test]
async fn deleting_a_batch_reports_the_handle_that_is_garbage() {
    let engine = Engine::start().await;
    let queue = engine.queue("jobs", &[]).await;
    engine.send(&queue, "x").await;
    let handle = engine
        .receive(&queue)
        .await
        .remove(0)
        .receipt_handle
        .unwrap();
    let entry = |id: &str, handle: &str| {
        DeleteMessageBatchRequestEntry::builder()
            .id(id)
            .receipt_handle(handle)
            .build()
            .unwrap()
    };
    let deleted = engine
        .sqs
        .delete_message_batch()
        .queue_url(&queue)
        .entries(entry("good", &handle))
        .entries(entry("bad", "garbage"))
        .send()
        .await
        .unwrap();
    assert_eq!(deleted.successful()[0].id(), "good");
    assert_eq!(deleted.failed()[0].id(), "bad");
    assert_eq!(deleted.failed()[0].code(), "ReceiptHandleIsInvalid");
    assert_eq!(engine.counts(&queue).await, ["0", "0", "0"]);
}

#[tokio::test]
async fn a_batch_of_visibility_changes_makes_messages_due_again() {
    let engine = Engine::start().await;
    let queue = engine.queue("jobs", &[]).await;
    engine.send(&queue, "one").await;
    engine.send(&queue, "two").await;
    let received = engine.receive(&queue).await;
    let entry = |id: &str, handle: &str, timeout: i32| {
        ChangeMessageVisibilityBatchRequestEntry::builder()
            .id(id)
            .receipt_handle(handle)
            .visibility_timeout(timeout)
            .build()
            .unwrap()
    };
    let changed = engine
        .sqs
        .change_message_visibility_batch()
        .queue_url(&queue)
        .entries(entry("a", received[0].receipt_handle().unwrap(), 0))
        .entries(entry("b", received[1].receipt_handle().unwrap(), 43_201))
        .send()
        .await
        .unwrap();
    assert_eq!(changed.successful().len(), 1);
    assert_eq!(changed.failed()[0].code(), "InvalidParameterValue");
    assert_eq!(bodies(&engine.receive(&queue).await), ["one"]);
}
