//! Measures how much space events take in the data folder, before and after delivered records are removed.
//!
//! `EVENTS=100000 cargo bench -p hearback-tests --bench folder`
//!
//! It fails if the stream's records or unused pages remain, or if an event takes more than 8 KB.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use hearback_local::bundle::Options;
use hearback_local::requeue::{RequeueOptions, requeue};
use hearback_storage::queued::ReceivedWindow;
use hearback_tests::app::TestApp;
use hearback_tests::events::acceptance;
use hearback_tests::options::number;
use reqwest::StatusCode;
use rusqlite::Connection;
use serde_json::{Value, json};

/// Events in one request.
const BATCH: usize = 100;
/// Number of users.
const USERS: usize = 200;
/// Maximum bytes of an event.
const MAX_EVENT_BYTES: u64 = 8_192;
/// Unused pages that a file may keep.
const MAX_UNUSED_PAGES: i64 = 256;

#[tokio::main]
async fn main() -> ExitCode {
    let events = number("EVENTS", 20_000);
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let data = folder.path().join("data");
    let app = TestApp::with_options(Options {
        data: Some(data.clone()),
        maintenance_interval: Duration::from_hours(24),
        ..TestApp::options()
    })
    .await;
    submit(&app, events).await;
    wait_until_processed(&app).await;
    app.bundle.stop().await;
    let full = report("before it is trimmed", &data, events);

    let app = TestApp::with_options(Options {
        data: Some(data.clone()),
        maintenance_interval: Duration::from_millis(200),
        ..TestApp::options()
    })
    .await;
    let trimmed = wait_for_maintenance(&data).await;
    app.bundle.stop().await;
    let kept = report("after", &data, events);
    println!(
        "trimmed: {trimmed}; {:.2} of what it was",
        kept as f64 / full as f64
    );
    if trimmed && kept / events as u64 <= MAX_EVENT_BYTES {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

async fn submit(app: &TestApp, events: usize) {
    let token = app.token_of("back-end", "acme", "feedback:on-behalf");
    for from in (0..events).step_by(BATCH) {
        let some = from..events.min(from + BATCH);
        let events: Vec<Value> = some
            .map(|at| acceptance(&format!("user-{}", at % USERS)))
            .collect();
        let body = json!({"events": events});
        let response = app.post(&token, "/v1/feedback/batch", &body).await;
        assert!(
            matches!(
                response.status,
                StatusCode::OK | StatusCode::ACCEPTED | StatusCode::MULTI_STATUS
            ),
            "{response:?}"
        );
    }
}

/// Waits until no event is queued.
async fn wait_until_processed(app: &TestApp) {
    let now = Utc::now();
    let order = RequeueOptions {
        window: ReceivedWindow {
            since: now - TimeDelta::days(1),
            until: now + TimeDelta::days(1),
        },
        segments: 1,
        rate: 1,
        dry_run: true,
    };
    let (bundle, queue) = (&app.bundle, &app.bundle.queues.signals);
    loop {
        let found = requeue(&bundle.store, &bundle.clients.sqs, queue, order).await;
        if found.unwrap().waiting.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Waits up to ten minutes until delivered records are removed and their pages freed. Returns whether they are.
async fn wait_for_maintenance(data: &Path) -> bool {
    for _ in 0..3_000 {
        let database = Connection::open(data.join("dynamodb.sqlite")).unwrap();
        let number = |sql: &str| database.query_row(sql, [], |row| row.get::<_, i64>(0));
        let records = number("SELECT count(*) FROM _stream_records").unwrap();
        let unused = number("PRAGMA freelist_count").unwrap();
        if records <= 1 && unused <= MAX_UNUSED_PAGES {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    false
}

/// Prints and returns the size of the files.
fn report(when: &str, data: &Path, events: usize) -> u64 {
    let size = |name: &str| std::fs::metadata(data.join(name)).map_or(0, |found| found.len());
    let (table, queues) = (size("dynamodb.sqlite"), size("sqs.sqlite"));
    let logs = size("dynamodb.sqlite-wal") + size("sqs.sqlite-wal");
    let all = table + queues + logs;
    println!(
        "{events} events, {when}: table {table}, queues {queues}, write-ahead logs {logs}; {} bytes an event",
        all / events as u64
    );
    all
}
