//! Deleted messages leave no bytes in the files.

use std::path::Path;
use std::time::Duration;

use aws_sdk_sqs::types::QueueAttributeName;
use hearback_sqs::Sqs;
use tokio::time::{sleep, timeout};

use crate::harness::{Engine, bodies};

/// Bodies of all sizes, from less than a row's page to many pages.
fn body(word: &str, number: usize) -> String {
    format!("{word}-{number:04} ").repeat(1 + number * number % 4_000)
}

fn is_in_a_file(folder: &Path, words: &[u8]) -> bool {
    let files = std::fs::read_dir(folder).unwrap();
    let mut bytes = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
    bytes.any(|bytes| bytes.windows(words.len()).any(|window| window == words))
}

/// Waits until the words are in no file of the folder.
async fn is_forgotten(folder: &Path, words: &[u8]) {
    let forgotten = async {
        while is_in_a_file(folder, words) {
            sleep(Duration::from_millis(200)).await;
        }
    };
    let text = String::from_utf8_lossy(words);
    let in_time = timeout(Duration::from_mins(1), forgotten).await;
    assert!(in_time.is_ok(), "{text} is still in a file");
}

#[tokio::test]
async fn deleted_message_leaves_no_bytes_in_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("queues.db");
    let engine = Engine::serve(Sqs::open(&file, "us-east-1").unwrap()).await;
    let hidden = [(QueueAttributeName::VisibilityTimeout, "900")];
    let queue = engine.queue("jobs", &hidden).await;
    for number in 0..120 {
        let word = if number % 3 == 0 { "kept" } else { "gone" };
        engine.send(&queue, &body(word, number)).await;
    }
    assert!(is_in_a_file(folder.path(), b"gone-0119"));
    let mut kept = Vec::new();
    loop {
        let received = engine.receive(&queue).await;
        if received.is_empty() {
            break;
        }
        for message in received {
            if message.body().unwrap().starts_with("gone") {
                engine.delete(&queue, &message).await;
            } else {
                kept.push(message);
            }
        }
    }
    assert_eq!(kept.len(), 40);
    is_forgotten(folder.path(), b"gone-").await;
    for message in &kept {
        engine.hide(&queue, message, 0).await;
    }
    let again = engine.receive(&queue).await;
    for (message, body) in again.iter().zip(bodies(&again)) {
        assert!(body.starts_with("kept"), "{message:?}");
    }

    // A purged queue and a deleted one leave nothing either.
    engine
        .sqs
        .purge_queue()
        .queue_url(&queue)
        .send()
        .await
        .unwrap();
    is_forgotten(folder.path(), b"kept-").await;
    engine.send(&queue, &body("last", 90)).await;
    engine
        .sqs
        .delete_queue()
        .queue_url(&queue)
        .send()
        .await
        .unwrap();
    is_forgotten(folder.path(), b"last-").await;
}

#[tokio::test]
async fn next_start_removes_what_a_killed_process_left_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("queues.db");
    let copied = tempfile::tempdir().unwrap();
    let engine = Engine::serve(Sqs::open(&file, "us-east-1").unwrap()).await;
    let queue = engine.queue("jobs", &[]).await;
    engine.send(&queue, "gone-0001").await;
    let received = engine.receive(&queue).await;
    engine.delete(&queue, &received[0]).await;
    // The disk as it is when the process is killed.
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copied.path().join(file.file_name())).unwrap();
    }
    assert!(is_in_a_file(copied.path(), b"gone-0001"));
    let _next = Sqs::open(&copied.path().join("queues.db"), "us-east-1").unwrap();
    assert!(!is_in_a_file(copied.path(), b"gone-0001"));
}
