//! A wall clock that is set while messages wait, in either direction, and a file that becomes smaller.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, SystemTime},
};

use aws_sdk_sqs::types::{QueueAttributeName, SendMessageBatchRequestEntry};
use hearback_sqs::{Sqs, clock::Clock};
use rusqlite::Connection;

use crate::harness::Engine;

const DAY: i64 = 24 * 60 * 60;

/// A wall clock that may be set, by seconds.
#[derive(Clone, Default)]
struct Wall(Arc<AtomicI64>);

impl Wall {
    fn set(&self, seconds: i64) {
        self.0.store(seconds, Ordering::SeqCst);
    }

    fn clock(&self) -> Clock {
        let offset = Arc::clone(&self.0);
        Clock::of(move || {
            let seconds = offset.load(Ordering::SeqCst);
            let by = Duration::from_secs(seconds.unsigned_abs());
            let now = SystemTime::now();
            if seconds < 0 { now - by } else { now + by }
        })
    }

    async fn engine(&self, file: &Path) -> Engine {
        Engine::serve(Sqs::open_by(file, "us-east-1", self.clock()).unwrap()).await
    }
}

/// Sends `count` messages that are due, and three that become due in a second.
async fn fill(engine: &Engine, queue: &str, due: usize) {
    for at in 0..due {
        engine.send(queue, &format!("due {at}")).await;
    }
    for at in 0..3 {
        let send = engine.sqs.send_message().queue_url(queue);
        let send = send.message_body(format!("delayed {at}")).delay_seconds(1);
        send.send().await.unwrap();
    }
}

/// Receives and deletes up to `count` messages, waiting up to `wait` seconds for each batch. Returns how many there
/// were.
async fn drain(engine: &Engine, queue: &str, (count, wait): (usize, i32)) -> usize {
    let mut received = 0;
    while received < count {
        let messages = engine.wait_for(queue, wait).await;
        if messages.is_empty() {
            break;
        }
        for message in &messages {
            engine.delete(queue, message).await;
        }
        received += messages.len();
    }
    received
}

#[tokio::test]
async fn setting_the_clock_back_delays_no_message() {
    let folder = tempfile::tempdir().unwrap();
    let wall = Wall::default();
    let engine = wall.engine(&folder.path().join("queues.db")).await;
    let visibility = [(QueueAttributeName::VisibilityTimeout, "1")];
    let queue = engine.queue("jobs", &visibility).await;
    for body in ["a", "b", "c"] {
        engine.send(&queue, body).await;
    }
    assert_eq!(
        engine.receive(&queue).await.len(),
        3,
        "in flight for a second"
    );
    fill(&engine, &queue, 40).await;
    wall.set(-2 * DAY);
    assert_eq!(
        drain(&engine, &queue, (40, 0)).await,
        40,
        "what was due is due, without waiting"
    );
    assert_eq!(
        drain(&engine, &queue, (6, 20)).await,
        6,
        "what was in flight or delayed comes within its second, not in two days"
    );
    // A step in the other direction, and a message that is sent between two steps.
    engine.send(&queue, "between").await;
    wall.set(0);
    assert_eq!(drain(&engine, &queue, (1, 0)).await, 1);
    assert_eq!(engine.counts(&queue).await, ["0", "0", "0"]);
}

#[tokio::test]
async fn setting_the_clock_forward_ends_no_visibility_timeout_early() {
    let folder = tempfile::tempdir().unwrap();
    let wall = Wall::default();
    let engine = wall.engine(&folder.path().join("queues.db")).await;
    let attributes = [
        (QueueAttributeName::VisibilityTimeout, "900"),
        (QueueAttributeName::MessageRetentionPeriod, "345600"),
    ];
    let queue = engine.queue("jobs", &attributes).await;
    engine.send(&queue, "in flight").await;
    assert_eq!(engine.receive(&queue).await.len(), 1);
    for at in 0..5 {
        engine.send(&queue, &format!("due {at}")).await;
    }
    let send = engine.sqs.send_message().queue_url(&queue);
    let send = send.message_body("delayed").delay_seconds(900);
    send.send().await.unwrap();
    for days in [2, 30, 3_650] {
        wall.set(days * DAY);
        assert_eq!(
            engine.counts(&queue).await,
            ["5", "1", "1"],
            "{days} days ahead nothing is lost, and nothing that is in flight is due"
        );
    }
    wall.set(0);
    assert_eq!(engine.counts(&queue).await, ["5", "1", "1"]);
    assert_eq!(drain(&engine, &queue, (5, 0)).await, 5);
    assert_eq!(engine.receive(&queue).await.len(), 0);
}

#[tokio::test]
async fn setting_the_clock_while_the_engine_is_down_loses_no_message() {
    for days in [-2, 30] {
        let folder = tempfile::tempdir().unwrap();
        let (wall, file) = (Wall::default(), folder.path().join("queues.db"));
        let engine = wall.engine(&file).await;
        let retention = [(QueueAttributeName::MessageRetentionPeriod, "345600")];
        let queue = engine.queue("jobs", &retention).await;
        fill(&engine, &queue, 20).await;
        drop(engine);
        wall.set(days * DAY);
        let engine = wall.engine(&file).await;
        let queue = engine.queue("jobs", &[]).await;
        assert_eq!(
            drain(&engine, &queue, (23, 20)).await,
            23,
            "{days} days from the last start"
        );
    }
}

/// Pages of the file, and those of them that are unused.
fn pages(file: &Path) -> (i64, i64) {
    let database = Connection::open(file).unwrap();
    let pragma = |name: &str| {
        let read = format!("PRAGMA {name}");
        database.query_row(&read, [], |row| row.get(0)).unwrap()
    };
    (pragma("page_count"), pragma("freelist_count"))
}

#[tokio::test]
async fn file_shrinks_after_a_backlog() {
    let folder = tempfile::tempdir().unwrap();
    let (wall, file) = (Wall::default(), folder.path().join("queues.db"));
    let engine = wall.engine(&file).await;
    let queue = engine.queue("jobs", &[]).await;
    let body = "x".repeat(64 * 1_024);
    for _ in 0..20 {
        let entries = (0..10).map(|at| {
            let entry = SendMessageBatchRequestEntry::builder().id(at.to_string());
            entry.message_body(&body).build().unwrap()
        });
        let send = engine.sqs.send_message_batch().queue_url(&queue);
        send.set_entries(Some(entries.collect()))
            .send()
            .await
            .unwrap();
    }
    let (full, _) = pages(&file);
    assert!(full > 3_000, "{full} pages");
    let purge = engine.sqs.purge_queue().queue_url(&queue);
    purge.send().await.unwrap();
    drop(engine);
    let _engine = wall.engine(&file).await;
    for _ in 0..600 {
        let (all, unused) = pages(&file);
        if all < 600 && unused <= 256 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{:?} pages are left", pages(&file));
}
