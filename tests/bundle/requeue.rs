//! `hearback requeue` sends stored feedback that was never processed, and preferences learn from it exactly once.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use chrono::{TimeDelta, Utc};
use hearback_local::files::POSITION_FILE;
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::events::{acceptance, id};
use hearback_tests::process::run;
use hearback_tests::turns::{SIGNALS, message, path};
use reqwest::{Method, StatusCode};
use rusqlite::Connection;
use serde_json::{Value, json};

/// Runs `hearback` on a folder, and returns its output.
async fn command(data: &Path, arguments: &[&str]) -> String {
    let mut all: Vec<_> = arguments.iter().map(|text| text.to_string()).collect();
    all.extend(["--data".to_owned(), data.display().to_string()]);
    let ended = run(all).await;
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.success(), "{stderr}");
    String::from_utf8(ended.stdout).unwrap()
}

/// The counts of a run that found nothing.
const NONE: &str = "0 events, 0 reactions, 0 signals, 0 withdrawals; sent: 0";

/// The counts of waiting items and sent messages in the command's output.
fn counted(output: &str) -> &str {
    output.trim().split_once("waiting: ").unwrap().1
}

async fn learned(app: &TestApp, token: &str) -> Value {
    let preferences = app.get(token, "/v1/preferences/ada").await.body;
    preferences["artifactPreferences"]["unknown"]["sampleCount"].clone()
}

#[tokio::test]
async fn events_lost_by_the_stream_are_requeued_and_processed_once() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let position = data.join(POSITION_FILE);
    std::fs::set_permissions(data, Permissions::from_mode(0o700)).unwrap();
    let app = TestApp::on(Some(data.to_owned())).await;
    let token = app.token("ada");
    let withdrawn = path("another", "withdrawn");
    let registered = app
        .put(&token, &withdrawn, &message("w", "How?", "So."))
        .await;
    assert_eq!(registered.status, StatusCode::CREATED);
    let withdrawn = format!("{withdrawn}/feedback");
    let reaction = json!({"reaction": "ok", "ts": Utc::now()});
    app.post(&token, &withdrawn, &reaction).await;
    eventually(|| async { (learned(&app, &token).await == 1).then_some(()) }).await;
    app.bundle.stop().await;
    // A relay that cannot read its position delivers nothing, and reports that.
    std::fs::remove_file(&position).unwrap();
    std::fs::create_dir(&position).unwrap();
    let app = TestApp::on(Some(data.to_owned())).await;
    let withdrawal = json!({"reaction": null});
    let withdrawal = app.post(&token, &withdrawn, &withdrawal).await;
    assert_eq!(withdrawal.body["cleared"], true);
    let turn = path("c", "t");
    let registered = app.put(&token, &turn, &message("m", "How?", "So.")).await;
    assert_eq!(registered.status, StatusCode::CREATED);
    let reaction = json!({"reaction": "ok", "ts": Utc::now()});
    app.post(&token, &format!("{turn}/feedback"), &reaction)
        .await;
    let signal = json!({"message_id": "m", "signal": "helpful"});
    let response = app.post(&token, SIGNALS, &signal).await;
    assert_eq!(response.status, StatusCode::CREATED, "{response:?}");
    let mut withdrawn = acceptance("ada");
    withdrawn["context"] =
        json!({"projectId": "order-service", "conversationId": "c", "turnId": "t"});
    app.submit(&token, &withdrawn).await;
    let withdrawn = id(&withdrawn);
    let response = app
        .delete(&token, &format!("/v1/feedback/{withdrawn}"))
        .await;
    assert_eq!(response.status, StatusCode::NO_CONTENT, "{response:?}");
    let mut lost = Vec::new();
    for _ in 0..25 {
        let event = acceptance("ada");
        app.submit(&token, &event).await;
        lost.push(id(&event));
    }
    eventually(|| async {
        let health = app.send(app.request(Method::GET, "/health")).await.body;
        (health["status"] == "degraded" && health["failing"][0]["loop"] == "relay").then_some(())
    })
    .await;
    let database = Connection::open(data.join("dynamodb.sqlite")).unwrap();
    database.execute("DELETE FROM _stream_records", []).unwrap();
    drop(database);
    app.bundle.stop().await;
    std::fs::remove_dir(&position).unwrap();

    let app = TestApp::on(Some(data.to_owned())).await;
    let after = acceptance("ada");
    app.submit(&token, &after).await;
    app.outcome(&token, &id(&after)).await;
    for event in &lost {
        let kept = app.get(&token, &format!("/v1/feedback/{event}")).await;
        assert_eq!(kept.body["status"], "queued", "no message was delivered");
    }
    let until = (Utc::now() + TimeDelta::hours(1)).to_rfc3339();
    let requeue = ["requeue", "--until", &until];
    let ended = command(data, &["requeue"]).await;
    assert_eq!(
        counted(&ended),
        NONE,
        "recent items may still be in progress"
    );
    let dry = command(data, &[&requeue[..], &["--dry-run"]].concat()).await;
    assert_eq!(
        counted(&dry),
        "26 events, 2 reactions, 1 signals, 1 withdrawals; sent: 0"
    );
    let sent = command(data, &requeue).await;
    assert_eq!(
        counted(&sent),
        "26 events, 2 reactions, 1 signals, 1 withdrawals; sent: 30"
    );
    for event in &lost {
        assert_eq!(app.outcome(&token, event).await["status"], "processed");
    }
    // The events of the reaction and the signal are delivered by the stream.
    let learned_from = lost.len() + 5;
    command_until_none(data, &requeue).await;
    eventually(|| async { (learned(&app, &token).await == learned_from).then_some(()) }).await;
    let sent = command(data, &[&requeue[..], &["--segments", "4"]].concat()).await;
    assert_eq!(counted(&sent), NONE);
    assert_eq!(learned(&app, &token).await, learned_from, "nothing changed");
}

/// Runs the command until nothing is waiting.
async fn command_until_none(data: &Path, requeue: &[&str]) {
    eventually(|| async {
        let output = command(data, requeue).await;
        (counted(&output) == NONE).then_some(())
    })
    .await;
}
