//! A row or a log that cannot be read, between good ones, stops none of those that read, process or erase the others.

use std::path::Path;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use hearback_local::names::Names;
use hearback_local::redrive::{DeadLetterQueue, RedriveSummary, redrive};
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::events::{acceptance, id};
use hearback_tests::queue::count;
use hearback_tests::rows::{Row, attribute, rows};
use hearback_tests::stored::Stored;
use hearback_tests::turns::{SIGNALS, message, path};
use serde_json::{Value, json};

async fn table(app: &TestApp) -> Vec<Row> {
    rows(&app.bundle.clients.dynamodb, &Names::default().table()).await
}

async fn settled(app: &TestApp) {
    Stored::settled(&app.bundle.clients, &Names::default()).await;
}

/// Turns of two conversations, each rejected by a reaction and by a message signal.
async fn give_feedback(app: &TestApp, user: &str, turns: &[(&str, &str)]) {
    let token = app.token(user);
    for (conversation, turn) in turns {
        let at = path(conversation, turn);
        let question = format!("Where is the laptop of {turn}?");
        let body = message(&format!("m-{turn}"), &question, "It is in the shop.");
        assert_eq!(app.put(&token, &at, &body).await.status, 201);
        let reaction = json!({"reaction": "not_ok", "text": "no"});
        let reacted = app.post(&token, &format!("{at}/feedback"), &reaction).await;
        assert_eq!(reacted.status, 200, "{:?}", reacted.body);
        let signal = json!({"message_id": format!("m-{turn}"), "signal": "not_helpful"});
        let sent = app.post(&token, SIGNALS, &signal).await;
        assert_eq!(sent.status, 201, "{:?}", sent.body);
    }
}

async fn erase(app: &TestApp, user: &str) -> Value {
    let (token, path) = (app.token(user), format!("/v1/users/{user}/data"));
    assert_eq!(app.delete(&token, &path).await.status, 202);
    eventually(|| async {
        let body = app.get(&token, &format!("{path}/erasure")).await.body;
        (body["status"] == "done").then_some(body)
    })
    .await
}

/// Makes the bucket's engine fail for every object.
fn damage_metadata(folder: &Path) -> usize {
    let mut damaged = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            damaged += damage_metadata(&path);
        } else if path.to_str().unwrap().ends_with(".internal.json") {
            std::fs::write(&path, "{").unwrap();
            damaged += 1;
        }
    }
    damaged
}

#[tokio::test]
async fn a_log_that_cannot_be_deleted_becomes_a_dead_letter_and_stops_no_record() {
    let folder = tempfile::tempdir().unwrap();
    let app = TestApp::on(Some(folder.path().to_owned())).await;
    let (clients, names) = (&app.bundle.clients, Names::default());
    give_feedback(&app, "ada", &[("c1", "t1"), ("c2", "t2")]).await;
    settled(&app).await;
    assert!(damage_metadata(folder.path()) > 0);
    for row in table(&app).await {
        let key = attribute(&row, "SK");
        if !key.starts_with("TURN#") {
            continue;
        }
        if key == "TURN#t1" {
            let mut row = row.clone();
            let uri = AttributeValue::S("s3://hearback-data/".to_owned());
            row.insert("hosted_uri".to_owned(), uri);
            let put = clients.dynamodb.put_item().table_name(names.table());
            put.set_item(Some(row)).send().await.unwrap();
        }
        let delete = clients.dynamodb.delete_item().table_name(names.table());
        let delete = delete
            .key("PK", row["PK"].clone())
            .key("SK", row["SK"].clone());
        delete.send().await.unwrap();
    }
    let event = acceptance("ada");
    app.submit(&app.token("ada"), &event).await;
    let letters = &app.bundle.queues.stream_dead_letters;
    let both = eventually(|| async { (count(&clients.sqs, letters).await == 2).then_some(()) });
    tokio::time::timeout(Duration::from_secs(60), both)
        .await
        .unwrap();
    let outcome = app.outcome(&app.token("ada"), &id(&event)).await;
    assert_eq!(outcome["status"], "processed");
    let received = clients.sqs.receive_message().queue_url(letters);
    let received = received.max_number_of_messages(10).visibility_timeout(0);
    let received = received.message_attribute_names("All").send().await;
    for letter in received.unwrap().messages.unwrap() {
        let body: Value = serde_json::from_str(letter.body().unwrap()).unwrap();
        let turn = body["dynamodb"]["Keys"]["SK"]["S"].as_str().unwrap();
        assert!(turn.starts_with("TURN#t"), "{body}");
        assert!(body["log"].as_str().unwrap().starts_with("s3://"), "{body}");
        let reason = letter.message_attributes().unwrap()["reason"].string_value();
        assert!(
            reason.unwrap().contains("log was not deleted"),
            "{reason:?}"
        );
    }
    // A letter whose log still cannot be deleted, or that names nothing, is not removed.
    let nothing = clients
        .sqs
        .send_message()
        .queue_url(letters)
        .message_body("{}");
    nothing.send().await.unwrap();
    let summary = redrive(clients, &names, &app.bundle.store, DeadLetterQueue::Stream).await;
    let expected = RedriveSummary {
        moved: 0,
        remaining: 3,
    };
    assert_eq!(summary.unwrap(), expected);
    // An erasure deletes the logs nevertheless.
    erase(&app, "ada").await;
    let logs = app.bundle.blobs.list("turn-logs/", None).await.unwrap();
    assert!(logs.is_empty(), "{logs:?}");
}
