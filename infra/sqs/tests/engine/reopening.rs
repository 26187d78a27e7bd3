//! State that outlives the process.

use aws_sdk_sqs::types::QueueAttributeName;
use hearback_sqs::{Error, Sqs};
use rusqlite::Connection;

use crate::harness::{Engine, bodies, receive_count};

#[tokio::test]
async fn reopening_the_file_keeps_queues_messages_and_counts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("queues.db");
    let first = Engine::serve(Sqs::open(&file, "eu-central-1").unwrap()).await;
    let queue = first
        .queue("jobs", &[(QueueAttributeName::VisibilityTimeout, "900")])
        .await;
    for body in ["deleted", "in flight", "received", "untouched"] {
        first.send(&queue, body).await;
    }
    let request = first
        .sqs
        .receive_message()
        .queue_url(&queue)
        .max_number_of_messages(3);
    let received = request.send().await.unwrap().messages.unwrap();
    first.delete(&queue, &received[0]).await;
    first.hide(&queue, &received[2], 0).await;
    drop(first);

    let second = Engine::serve(Sqs::open(&file, "eu-central-1").unwrap()).await;
    let url = second
        .sqs
        .get_queue_url()
        .queue_name("jobs")
        .send()
        .await
        .unwrap();
    let queue = url.queue_url().unwrap();
    assert_eq!(
        second
            .attribute(queue, QueueAttributeName::VisibilityTimeout)
            .await,
        "900"
    );
    let arn = second.attribute(queue, QueueAttributeName::QueueArn).await;
    assert_eq!(arn, "arn:aws:sqs:eu-central-1:000000000000:jobs");
    assert_eq!(second.counts(queue).await, ["2", "1", "0"]);
    let mut due = second.receive(queue).await;
    due.sort_by_key(|message| message.body.clone());
    assert_eq!(bodies(&due), ["received", "untouched"]);
    assert_eq!(receive_count(&due[0]), "2");
    assert_eq!(receive_count(&due[1]), "1");
    second.delete(queue, &received[1]).await;
    assert_eq!(
        second.counts(queue).await,
        ["0", "2", "0"],
        "a handle outlives the process too"
    );
}

#[test]
fn file_that_is_no_database_or_has_another_schema_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text.db");
    std::fs::write(&file, "not a database, not even close to one").unwrap();
    assert!(matches!(
        Sqs::open(&file, "us-east-1"),
        Err(Error::Storage(_))
    ));
    let file = folder.path().join("newer.db");
    let newer = Connection::open(&file).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    assert!(matches!(
        Sqs::open(&file, "us-east-1"),
        Err(Error::Schema { found: 99, .. })
    ));
}
