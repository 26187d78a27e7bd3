//! How the bundle starts and stops, and what the commands print.

use std::process::Stdio;

use aws_sdk_dynamodb::types::AttributeValue;
use hearback_local::names::Names;
use hearback_storage::table::{PK, SK};
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::events::{acceptance, id};
use hearback_tests::process::{Process, hearback};
use hearback_tests::rows::{Row, rows};
use hearback_tests::stored::Stored;
use hearback_tests::turns::{path, turn_body};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use super::{get, on_folder, outcome, submit, text, token};

#[tokio::test]
async fn a_second_start_on_a_folder_in_use_is_rejected_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let first = Process::serve(folder.path(), 0).await;
    let second = on_folder(folder.path(), &["serve", "--port", "0"]).await;
    assert_eq!(second.status.code(), Some(1));
    let stderr = text(&second.stderr);
    assert!(
        stderr.contains(&folder.path().display().to_string()),
        "{stderr}"
    );
    assert!(
        stderr.contains("stop that one, or choose another folder with --data"),
        "{stderr}"
    );
    let (status, _) = get(&first, &first.token, "/health").await;
    assert_eq!(status, StatusCode::OK, "the first bundle keeps running");
}

#[tokio::test]
async fn a_start_on_a_port_in_use_is_rejected_with_the_reason() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let folder = tempfile::tempdir().unwrap();
    let ended = on_folder(folder.path(), &["serve", "--port", &port]).await;
    assert_eq!(ended.status.code(), Some(1));
    let stderr = text(&ended.stderr);
    assert!(
        stderr.contains(&format!("port {port} is in use")),
        "{stderr}"
    );
    assert!(stderr.contains("choose another with --port"), "{stderr}");
}

#[tokio::test]
async fn sigterm_stops_the_bundle_cleanly() {
    let folder = tempfile::tempdir().unwrap();
    let event = acceptance("ada");
    let token = token(folder.path(), "ada");
    let first = Process::serve(folder.path(), 0).await;
    let client = reqwest::Client::new();
    let response = submit(&client, &first.address, &token, &event).await;
    assert_eq!(response, Some(StatusCode::ACCEPTED));
    assert!(first.terminate().await);

    let second = Process::serve(folder.path(), 0).await;
    let outcome = outcome(&second, &token, &id(&event)).await;
    assert_eq!(outcome["status"], "processed");
}

#[tokio::test]
async fn the_token_command_prints_a_token_that_the_gateway_accepts() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::serve(folder.path(), 0).await;
    let arguments = [
        "token",
        "--sub",
        "back-end",
        "--tenant",
        "acme",
        "--projects",
        "order-service,billing",
        "--scope",
        "feedback:report feedback:on-behalf",
    ];
    let printed = on_folder(folder.path(), &arguments).await;
    assert!(printed.status.success());
    let token = text(&printed.stdout).lines().last().unwrap();
    // Only the scope `feedback:on-behalf` permits reading preferences of others.
    let others = "/v1/preferences/ada/resolved";
    let (status, _) = get(&process, token, others).await;
    assert_eq!(status, StatusCode::OK);
    let (status, _) = get(&process, &process.token, others).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn commands_reject_names_that_no_token_can_have() {
    let folder = tempfile::tempdir().unwrap();
    let token = ["token", "--sub", "ada", "--tenant", "acme"];
    let replay = ["replay", "conversations.jsonl"];
    for (command, option, value) in [
        (&token[..], "--projects", ""),
        (&token[..], "--projects", "a,,b"),
        (&["token", "--sub", "ada"], "--tenant", ""),
        (&["feed"], "--projects", ""),
        (&replay[..], "--project", ""),
        (&["replay", "f", "--project", "p"], "--sub", ""),
    ] {
        let ended = on_folder(folder.path(), &[command, &[option, value]].concat()).await;
        assert_eq!(ended.status.code(), Some(2), "{command:?}");
        let stderr = text(&ended.stderr);
        assert!(stderr.contains(&format!("'{option} <")), "{stderr}");
        assert!(ended.stdout.is_empty());
    }
}

/// The references of a page or file.
fn references(file: &str) -> Vec<&str> {
    ["src=", "href=", "url(", "@import "]
        .iter()
        .flat_map(|before| file.split(before).skip(1))
        .filter_map(|after| {
            let after = after.trim_start_matches(['"', '\'']);
            after.split(['"', '\'', ')', '>', ' ', ';']).next()
        })
        .collect()
}

fn is_external(reference: &str) -> bool {
    ["http://", "https://", "//"]
        .iter()
        .any(|start| reference.starts_with(start))
}

#[tokio::test]
async fn health_openapi_and_docs_need_no_token() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::serve(folder.path(), 0).await;
    let fetch = async |path: &str| {
        let response = reqwest::get(format!("http://{}{path}", process.address)).await;
        let response = response.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        response.text().await.unwrap()
    };
    fetch("/health").await;
    let api: Value = serde_json::from_str(&fetch("/openapi.json").await).unwrap();
    assert!(api["paths"]["/v1/feedback/submit"]["post"].is_object());

    // The page loads nothing from other hosts.
    let page = fetch("/docs").await;
    let parts = references(&page);
    assert!(parts.iter().any(|part| part.ends_with(".js")), "{parts:?}");
    assert!(parts.iter().any(|part| part.ends_with(".css")), "{parts:?}");
    let external: Vec<_> = parts.iter().filter(|part| is_external(part)).collect();
    assert!(external.is_empty(), "{external:?}");
    let scripts_and_styles = parts
        .iter()
        .filter(|part| part.ends_with(".js") || part.ends_with(".css"));
    for part in scripts_and_styles {
        let file = fetch(&format!("/docs/{}", part.trim_start_matches("./"))).await;
        let mut external = references(&file);
        external.retain(|reference| is_external(reference));
        assert!(external.is_empty(), "{part}: {external:?}");
    }
}

#[tokio::test]
async fn tail_prints_what_was_published() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::serve(folder.path(), 0).await;
    let event = acceptance("user-123");
    let client = reqwest::Client::new();
    let response = submit(&client, &process.address, &process.token, &event).await;
    assert_eq!(response, Some(StatusCode::ACCEPTED));
    let tail = ["tail", "--drain", "--subject", "learning.signals.reward"];
    let line = eventually(|| async {
        let printed = on_folder(folder.path(), &tail).await;
        assert!(printed.status.success());
        text(&printed.stdout).lines().next().map(ToOwned::to_owned)
    })
    .await;
    let signal: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(signal["eventType"], "learning.signal.generated");
    assert_eq!(signal["signalType"], "reward");
    assert_eq!(signal["sourceEvent"]["feedbackId"], event["feedbackId"]);
}

#[tokio::test]
async fn redrive_moves_dead_letters_back() {
    let folder = tempfile::tempdir().unwrap();
    let app = TestApp::on(Some(folder.path().to_owned())).await;
    let clients = &app.bundle.clients;
    // A reaction whose text cannot be read is not processed.
    let token = app.token("ada");
    app.put(&token, &path("c", "t"), &turn_body("a", "b")).await;
    let feedback = format!("{}/feedback", path("c", "t"));
    let reaction = json!({"reaction": "not_ok", "text": "no"});
    app.post(&token, &feedback, &reaction).await;
    Stored::settled(clients, &Names::default()).await;
    let table = Names::default().table();
    let stored = rows(&clients.dynamodb, &table).await;
    let with = |key: &str| {
        stored
            .iter()
            .find(|row| row[SK].as_s().unwrap().starts_with(key))
    };
    let (reaction, event) = (with("REACTION#").unwrap(), with("EVENT").unwrap());
    let put = async |row: Row| {
        let put = clients.dynamodb.put_item().table_name(&table);
        put.set_item(Some(row)).send().await.unwrap();
    };
    let mut damaged = reaction.clone();
    damaged.insert("text".to_owned(), AttributeValue::N("1".to_owned()));
    put(damaged).await;
    let reason = eventually(|| async {
        let received = clients
            .sqs
            .receive_message()
            .queue_url(&app.bundle.queues.dead_letters)
            .visibility_timeout(0)
            .message_attribute_names("All")
            .send();
        let message = received.await.unwrap().messages.unwrap_or_default().pop()?;
        let attributes = message.message_attributes?;
        attributes["reason"].string_value.clone()
    })
    .await;
    assert!(!reason.is_empty());

    // After the repair the redriven message is processed: it stores the reaction's event again.
    put(reaction.clone()).await;
    Stored::settled(clients, &Names::default()).await;
    let delete = clients.dynamodb.delete_item().table_name(&table);
    let delete = delete.key(PK, event[PK].clone()).key(SK, event[SK].clone());
    delete.send().await.unwrap();
    let printed = on_folder(folder.path(), &["redrive"]).await;
    assert!(printed.status.success());
    let stdout = text(&printed.stdout);
    assert!(stdout.contains(&reason), "{stdout}");
    assert!(stdout.ends_with("1 dead letter moved back\n"), "{stdout}");
    eventually(|| async {
        let stored = rows(&clients.dynamodb, &table).await;
        let is_event = |row: &Row| row[PK] == event[PK] && row[SK] == event[SK];
        stored.iter().any(is_event).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_command_on_a_folder_without_a_running_bundle_fails_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let ended = on_folder(folder.path(), &["tail", "--drain"]).await;
    assert_eq!(ended.status.code(), Some(1));
    let stderr = text(&ended.stderr);
    assert!(stderr.contains("no bundle was started on"), "{stderr}");
}

#[tokio::test]
async fn a_replay_registers_every_turn_once() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::serve(folder.path(), 0).await;
    let file = folder.path().join("conversations.jsonl");
    let line = |conversation: &str| {
        let turn = |n: u32| {
            serde_json::json!({
                "turn_id": format!("turn/{n}"), "user": format!("question {n}"),
                "assistant": {"text": "answer", "message_id": format!("{conversation}-{n}")}
            })
        };
        let turns = [turn(1), turn(2), turn(3)];
        serde_json::json!({"conversation_id": conversation, "turns": turns}).to_string()
    };
    std::fs::write(&file, format!("{}\n\n{}\n", line("a"), line("b"))).unwrap();
    let path = file.to_str().unwrap();
    let replay = ["replay", path, "--project", "support"];
    let first = on_folder(folder.path(), &replay).await;
    assert_eq!(
        text(&first.stdout),
        "6 turns registered, 0 known before, 0 rejected\n",
        "{}",
        text(&first.stderr)
    );
    let second = on_folder(folder.path(), &replay).await;
    assert!(second.status.success());
    assert_eq!(
        text(&second.stdout),
        "nothing changed: all 6 turns were known\n"
    );

    std::fs::write(&file, line("a").replace("question 2", "another")).unwrap();
    let changed = on_folder(folder.path(), &replay).await;
    assert!(!changed.status.success());
    assert!(text(&changed.stderr).contains("a/turn/2: 409 Conflict turn_conflict"));
    std::fs::write(&file, "{}").unwrap();
    let broken = on_folder(folder.path(), &replay).await;
    assert!(text(&broken.stderr).contains("line 1"));
    assert!(process.terminate().await);
    let stopped = on_folder(folder.path(), &replay).await;
    assert!(!stopped.status.success());
}

#[tokio::test]
async fn feed_prints_each_event_once_across_a_restart() {
    /// Messages of an acceptance: it was processed, and gives a reward and a policy update.
    const MESSAGES: usize = 3;
    let folder = tempfile::tempdir().unwrap();
    let ada = token(folder.path(), "ada");
    let client = reqwest::Client::new();
    let first = Process::serve(folder.path(), 0).await;
    submit(&client, &first.address, &ada, &acceptance("ada")).await;
    let (since, count) = ("2026-01-01T00:00:00Z", (2 * MESSAGES).to_string());
    let mut printing = Command::new(hearback())
        .args(["feed", "--sub", "ada", "--since", since, "--count", &count])
        .arg("--data")
        .arg(folder.path())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(printing.stdout.take().unwrap()).lines();
    let mut printed: Vec<Value> = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        printed.push(serde_json::from_str(&line).unwrap());
        if printed.len() == MESSAGES {
            break;
        }
    }
    first.kill().await;
    let second = Process::serve(folder.path(), 0).await;
    submit(&client, &second.address, &ada, &acceptance("ada")).await;
    while let Some(line) = lines.next_line().await.unwrap() {
        printed.push(serde_json::from_str(&line).unwrap());
    }
    assert!(printing.wait().await.unwrap().success());
    let (_, page) = get(&second, &ada, "/v1/feedback/events").await;
    let listed = page["events"].as_array().unwrap();
    assert_eq!(printed.len(), listed.len());
    for event in listed {
        assert!(printed.contains(event), "{event}");
    }
}

#[tokio::test]
async fn feed_says_which_option_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let _process = Process::serve(folder.path(), 0).await;
    for (arguments, status, message) in [
        (&["feed"][..], 2, "<--sub <USER>|--projects <LIST>>"),
        (
            &["feed", "--sub", "ada", "--channels", "other"],
            1,
            "/filter/channels/0",
        ),
        (
            &["feed", "--projects", "a", "--after", "never"],
            1,
            "/after",
        ),
        (
            &["feed", "--sub", "ada", "--since", "2026-11-25"],
            2,
            "must be a date and time with an offset",
        ),
        (
            &["feed", "--sub", "ada", "--label", "model"],
            2,
            "must be KEY=VALUE",
        ),
    ] {
        let ended = on_folder(folder.path(), arguments).await;
        assert_eq!(ended.status.code(), Some(status), "{arguments:?}");
        let stderr = text(&ended.stderr);
        assert!(stderr.contains(message), "{stderr}");
    }
}
