//! A row or a log that cannot be read, between good ones, stops none of those that read, process or erase the others.

mod imports;
mod preferences;
mod warnings;
mod writers;

use std::path::Path;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use axum::http::Method;
use chrono::{TimeDelta, Utc};
use hearback_export::Exporter;
use hearback_lambda::clock::Clock;
use hearback_local::names::Names;
use hearback_local::redrive::{DeadLetterQueue, RedriveSummary, redrive};
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::events::{acceptance, id};
use hearback_tests::queue::count;
use hearback_tests::rows::{Row, attribute, damage, rows};
use hearback_tests::stored::Stored;
use hearback_tests::turns::{BY_STATUS, PERIOD, SIGNALS, conversation_path, message, path};
use serde_json::{Value, json};

/// What is damaged.
struct Case {
    name: &'static str,
    is_damaged: fn(&Row) -> bool,
    part: Part,
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// The row itself.
    Core,
    /// The log of the row's turn.
    Log,
    /// What the local bucket keeps of objects.
    Metadata,
}

fn is_about_t2(row: &Row) -> bool {
    attribute(row, "core").contains("\"t2\"")
}

const CASES: [Case; 7] = [
    Case {
        name: "the vector of a turn",
        is_damaged: |row| attribute(row, "SK").starts_with("VEC#") && is_about_t2(row),
        part: Part::Core,
    },
    Case {
        name: "a turn",
        is_damaged: |row| attribute(row, "SK") == "TURN#t2",
        part: Part::Core,
    },
    Case {
        name: "an activity marker",
        is_damaged: |row| {
            attribute(row, "PK").starts_with("DAY#") && attribute(row, "core").contains("\"c2\"")
        },
        part: Part::Core,
    },
    Case {
        name: "a message signal",
        is_damaged: |row| attribute(row, "SK").starts_with("SIGNAL#m-t2#"),
        part: Part::Core,
    },
    Case {
        name: "a reaction",
        is_damaged: |row| attribute(row, "SK") == "REACTION#t2#user#ada",
        part: Part::Core,
    },
    Case {
        name: "the log of a turn",
        is_damaged: |row| attribute(row, "SK") == "TURN#t2",
        part: Part::Log,
    },
    Case {
        name: "the metadata of logs",
        is_damaged: |row| attribute(row, "SK") == "TURN#t2",
        part: Part::Metadata,
    },
];

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

/// Cuts a turn's log off.
async fn cut_log(app: &TestApp, row: &Row) {
    let uri = attribute(row, "hosted_uri");
    let key = uri.strip_prefix("s3://hearback-data/").unwrap();
    let cut = b"{\"user\": {".to_vec();
    app.bundle.blobs.put_file(key, cut).await.unwrap();
}

/// Runs both exports, which count what they cannot read.
async fn exports(app: &TestApp, case: &str) {
    let mut unreadable = 0;
    let bundle = &app.bundle;
    let exporter = Exporter::new(bundle.store.clone(), bundle.blobs.clone(), Clock::system());
    for request in [
        json!({"tenant": "acme", "day": Utc::now().date_naive()}),
        json!({"tenant": "acme", "training": {"project": "order-service"}}),
    ] {
        let exported = exporter.handle(&request, None).await;
        let exported = exported.unwrap_or_else(|error| panic!("{case}: {request}: {error}"));
        let exported = serde_json::to_value(exported).unwrap();
        assert!(exported["manifest"].is_string(), "{case}: {exported}");
        let rows = exported
            .pointer("/labels/rows")
            .unwrap_or(&exported["rows"]);
        assert!(rows.as_u64().unwrap() >= 3, "{case}: {exported}");
        unreadable += exported["left_out"]["unreadable"].as_u64().unwrap();
    }
    // They read no vectors. The reaction and the signal were replaced by then.
    let read = ["a turn", "the log of a turn", "an activity marker"];
    assert_eq!(unreadable > 0, read.contains(&case), "{case}");
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

#[tokio::test]
async fn damaged_rows_do_not_stop_readers_workers_exports_or_erasures() {
    futures::future::join_all(CASES.into_iter().map(check)).await;
}

async fn check(
    Case {
        name,
        is_damaged,
        part,
    }: Case,
) {
    let folder = tempfile::tempdir().unwrap();
    let app = TestApp::on((part == Part::Metadata).then(|| folder.path().to_owned())).await;
    give_feedback(&app, "ada", &[("c1", "t1"), ("c2", "t2"), ("c1", "t3")]).await;
    give_feedback(&app, "eve", &[("c3", "t4")]).await;
    settled(&app).await;
    let dynamodb = &app.bundle.clients.dynamodb;
    let damaged: Vec<_> = table(&app).await.into_iter().filter(is_damaged).collect();
    assert!(!damaged.is_empty(), "{name}");
    for row in &damaged {
        match part {
            Part::Core => damage(dynamodb, &Names::default().table(), row, "core").await,
            Part::Log => cut_log(&app, row).await,
            Part::Metadata => {
                let cut = |path: &Path| std::fs::write(path, "{").unwrap();
                assert!(for_each_metadata(folder.path(), &cut) > 0);
            }
        }
    }
    let token = app.token("ada");
    let reader = app.token_of("ada", "acme", "feedback:report");
    let project = "/conversations/acme/order-service";
    for conversation in ["c1", "c2"] {
        let turn = path(conversation, "t9");
        let body = message(&format!("m-{conversation}"), "No, that is wrong.", "Sorry.");
        let put = app.put(&token, &turn, &body).await;
        assert_eq!(put.status, 201, "{name}: {:?}", put.body);
    }
    let hour = TimeDelta::hours(1);
    let period =
        json!({"start": Utc::now() - hour, "end": Utc::now() + hour, "include_turns": true});
    for (caller, asked, body) in [
        (
            &token,
            format!("{project}/feedback/infer"),
            json!({"message": "The laptop of t1 was wrong."}),
        ),
        (
            &token,
            format!("{project}/strategies/search"),
            json!({"query": "Where is the laptop?"}),
        ),
        (&reader, PERIOD.to_owned(), period.clone()),
        (&token, PERIOD.to_owned(), period.clone()),
        (
            &reader,
            format!("{}/turns-with-feedbacks", conversation_path("c1")),
            json!({"include_turn_logs": true}),
        ),
        (
            &reader,
            format!("{}/turns-with-feedbacks", conversation_path("c2")),
            json!({"include_turn_logs": true}),
        ),
    ] {
        let response = app.post(caller, &asked, &body).await;
        assert_eq!(response.status, 200, "{name}: {asked}: {:?}", response.body);
        if asked == PERIOD {
            let listed = response.body.to_string();
            assert!(listed.contains("\"c1\""), "{name}: {listed}");
        }
    }
    for (caller, asked) in [
        (&token, BY_STATUS.to_owned()),
        (&reader, BY_STATUS.to_owned()),
        (&token, SIGNALS.to_owned()),
    ] {
        let response = app.get(caller, &asked).await;
        assert_eq!(response.status, 200, "{name}: {asked}: {:?}", response.body);
        let listed = response.body.to_string();
        for turn in ["t1", "t3"] {
            assert!(listed.contains(turn), "{name}: {asked}: {listed}");
        }
    }
    for (conversation, turn) in [("c1", "t1"), ("c2", "t2"), ("c1", "t3")] {
        let context = format!("{}/feedback-context", path(conversation, turn));
        let response = app.get(&token, &context).await;
        // Nothing can be said about a turn that cannot be read itself.
        let expected = if (name, turn) == ("a turn", "t2") {
            500
        } else {
            200
        };
        assert_eq!(
            response.status, expected,
            "{name}: {context}: {:?}",
            response.body
        );
    }
    if name != "a turn" {
        react_again(&app, name).await;
    }
    for turn in ["t1", "t2"] {
        let mut event = acceptance("ada");
        event["context"]["conversationId"] = json!(if turn == "t1" { "c1" } else { "c2" });
        event["context"]["turnId"] = json!(turn);
        app.submit(&token, &event).await;
        let outcome = app.outcome(&token, &id(&event)).await;
        assert_eq!(outcome["status"], "processed", "{name}: {turn}");
        let withdraw = format!("/v1/feedback/{}", id(&event));
        let withdrawn = app.delete(&token, &withdraw).await;
        assert_eq!(withdrawn.status, 204, "{name}: {:?}", withdrawn.body);
    }
    exports(&app, name).await;
    let (_, erasure) = tokio::join!(erase(&app, "eve"), erase(&app, "ada"));
    assert_eq!(erasure["removed"]["turns"], 5, "{name}: {erasure}");
    let left = table(&app).await;
    let left = left
        .iter()
        .filter(|row| format!("{row:?}").contains("\"ada\""));
    assert_eq!(left.count(), 0, "{name}");
}

/// Feedback replaces what its user gave before, also where that cannot be read.
async fn react_again(app: &TestApp, case: &str) {
    let token = app.token("ada");
    let (reaction, signal) = (
        json!({"reaction": "not_ok", "text": "It is in the van."}),
        json!({"message_id": "m-t2", "signal": "not_helpful", "reason": "not there"}),
    );
    let at = path("c2", "t2");
    let reacted = app.post(&token, &format!("{at}/feedback"), &reaction).await;
    assert_eq!(reacted.status, 200, "{case}: {:?}", reacted.body);
    assert_eq!(reacted.body["applied"], true, "{case}");
    let sent = app.post(&token, SIGNALS, &signal).await;
    assert!(sent.status.is_success(), "{case}: {:?}", sent.body);
    let context = app.get(&token, &format!("{at}/feedback-context")).await;
    let read = context.body.to_string();
    for text in ["It is in the van.", "not there"] {
        assert!(read.contains(text), "{case}: {text}: {read}");
    }
}

/// Damages what the local bucket keeps of objects. Returns their number.
fn for_each_metadata(folder: &Path, damage: &dyn Fn(&Path)) -> usize {
    let mut damaged = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.to_str().unwrap().ends_with(".internal.json") {
            damage(&path);
            damaged += 1;
        } else if path.is_dir() {
            damaged += for_each_metadata(&path, damage);
        }
    }
    damaged
}

#[tokio::test]
async fn a_log_that_cannot_be_deleted_becomes_a_dead_letter_and_blocks_no_other_record() {
    let folder = tempfile::tempdir().unwrap();
    let app = TestApp::on(Some(folder.path().to_owned())).await;
    let (clients, names) = (&app.bundle.clients, Names::default());
    give_feedback(&app, "ada", &[("c1", "t1"), ("c2", "t2")]).await;
    settled(&app).await;
    // The engine fails for every object: it cannot read a folder as a file, nor put it aside.
    let replace = |path: &Path| {
        std::fs::remove_file(path).unwrap();
        std::fs::create_dir(path).unwrap();
    };
    assert!(for_each_metadata(folder.path(), &replace) > 0);
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
    let dead_letter_queue = &app.bundle.queues.stream_dead_letters;
    let both =
        eventually(|| async { (count(&clients.sqs, dead_letter_queue).await == 2).then_some(()) });
    tokio::time::timeout(Duration::from_secs(60), both)
        .await
        .unwrap();
    let outcome = app.outcome(&app.token("ada"), &id(&event)).await;
    assert_eq!(outcome["status"], "processed");
    let received = clients.sqs.receive_message().queue_url(dead_letter_queue);
    let received = received.max_number_of_messages(10).visibility_timeout(0);
    let received = received.message_attribute_names("All").send().await;
    for dead_letter in received.unwrap().messages.unwrap() {
        let body: Value = serde_json::from_str(dead_letter.body().unwrap()).unwrap();
        let turn = body["dynamodb"]["Keys"]["SK"]["S"].as_str().unwrap();
        assert!(turn.starts_with("TURN#t"), "{body}");
        assert!(body["log"].as_str().unwrap().starts_with("s3://"), "{body}");
        let reason = dead_letter.message_attributes().unwrap()["reason"].string_value();
        assert!(
            reason.unwrap().contains("log was not deleted"),
            "{reason:?}"
        );
    }
    // A dead letter whose log still cannot be deleted, or that names nothing, is not removed.
    let nothing = clients
        .sqs
        .send_message()
        .queue_url(dead_letter_queue)
        .message_body("{}");
    nothing.send().await.unwrap();
    let summary = redrive(
        clients,
        &names,
        &app.bundle.store,
        DeadLetterQueue::Stream,
        &[],
    )
    .await;
    let expected = RedriveSummary {
        moved: 0,
        remaining: 3,
    };
    assert_eq!(summary.unwrap(), expected);
    let logs = async || app.bundle.blobs.list("turn-logs/", None).await.unwrap();
    assert_eq!(logs().await.len(), 2);
    // Once the bucket works, the log that a dead letter names is deleted.
    let repair = |path: &Path| std::fs::remove_dir(path).unwrap();
    assert!(for_each_metadata(folder.path(), &repair) > 0);
    let summary = redrive(
        clients,
        &names,
        &app.bundle.store,
        DeadLetterQueue::Stream,
        &[],
    )
    .await;
    let expected = RedriveSummary {
        moved: 1,
        remaining: 2,
    };
    assert_eq!(summary.unwrap(), expected);
    assert_eq!(logs().await.len(), 1);
    // An erasure deletes the other, too.
    erase(&app, "ada").await;
    assert_eq!(logs().await.len(), 0);
}
