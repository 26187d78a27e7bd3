//! `hearback` as a process: what survives its death, and what its commands say.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::process::Output;

use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::types::QueueAttributeName;
use hearback_lambda::aws::Aws;
use hearback_local::bundle::ENDPOINTS_FILE;
use hearback_local::data_dir::{read_json, secret};
use hearback_local::engines::Endpoints;
use hearback_local::names::Names;
use hearback_local::token::{Claims, KEY_FILE, Tokens};
use hearback_storage::table::{PK, SK};
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::events::{acceptance, id};
use hearback_tests::process::{Process, run};
use reqwest::StatusCode;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// The users that give feedback while the process is killed.
const USERS: [&str; 3] = ["ada", "eve", "kim"];
/// Tasks that submit for each user.
const WRITERS: usize = 3;

/// `hearback` with these arguments and this folder.
async fn on_folder(data: &Path, arguments: &[&str]) -> Output {
    let mut all: Vec<OsString> = arguments.iter().map(Into::into).collect();
    all.extend(["--data".into(), data.as_os_str().to_owned()]);
    run(all).await
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A token of a user of `acme` that the bundle on this folder takes.
fn token(data: &Path, user: &str) -> String {
    let claims = Claims {
        sub: user.to_owned(),
        tenant: "acme".to_owned(),
        projects: Vec::new(),
        scope: String::new(),
    };
    let tokens = Tokens::new(&secret(data, KEY_FILE).unwrap());
    tokens.sign(claims).unwrap()
}

/// GETs a path; answers the status, and the body as JSON.
async fn get(process: &Process, token: &str, path: &str) -> (StatusCode, Value) {
    let request = reqwest::Client::new().get(format!("http://{}{path}", process.address));
    let response = request.bearer_auth(token).send().await.unwrap();
    let status = response.status();
    (status, response.json().await.unwrap_or_default())
}

/// Submits an event; answers the status if there was an answer.
async fn submit(
    client: &reqwest::Client,
    address: &str,
    token: &str,
    event: &Value,
) -> Option<StatusCode> {
    let request = client.post(format!("http://{address}/v1/feedback/submit"));
    let sent = request.bearer_auth(token).json(event).send().await.ok()?;
    Some(sent.status())
}

/// Waits until an event is no longer queued, and answers what came of it.
async fn outcome(process: &Process, token: &str, feedback_id: &str) -> Value {
    let path = format!("/v1/feedback/{feedback_id}");
    eventually(|| async {
        let (status, body) = get(process, token, &path).await;
        (status == StatusCode::OK && body["status"] != "queued").then_some(body)
    })
    .await
}

/// Ids that were sent, and whether it was answered that they were stored.
type Sent = BTreeMap<String, bool>;

/// Submits events of one user until there is no answer any more; says so of each that is stored.
async fn write(
    address: String,
    token: String,
    user: &'static str,
    stored: mpsc::UnboundedSender<()>,
) -> (&'static str, Sent) {
    let client = reqwest::Client::new();
    let mut sent = Sent::new();
    loop {
        let event = acceptance(user);
        let answer = submit(&client, &address, &token, &event).await;
        sent.insert(id(&event), answer == Some(StatusCode::ACCEPTED));
        match answer {
            Some(StatusCode::ACCEPTED) => {
                let _ = stored.send(());
            }
            Some(other) => panic!("{other}"),
            None => return (user, sent),
        }
    }
}

/// Lets all users submit, kills the process after so many answers, and notes what was sent.
async fn kill_after(answers: usize, data: &Path, sent: &mut BTreeMap<&'static str, Sent>) {
    let process = Process::serve(data, 0).await;
    let (stored, mut answered) = mpsc::unbounded_channel();
    let mut writers = JoinSet::new();
    for user in USERS.repeat(WRITERS) {
        let (address, token) = (process.address.clone(), token(data, user));
        writers.spawn(write(address, token, user, stored.clone()));
    }
    for _ in 0..answers {
        answered.recv().await.unwrap();
    }
    process.kill().await;
    for (user, ids) in writers.join_all().await {
        sent.entry(user).or_default().extend(ids);
    }
}

/// Waits until nothing is left in the queue of the signal generator, nor in its hands.
async fn idle(data: &Path) {
    let file = data.join(ENDPOINTS_FILE);
    let endpoints: Endpoints = read_json(&file).unwrap().unwrap();
    let client = aws_sdk_sqs::Client::new(&Aws::local(endpoints.sqs).config());
    let queue = client
        .get_queue_url()
        .queue_name(Names::default().signals());
    let queue = queue.send().await.unwrap().queue_url.unwrap();
    let counts = [
        QueueAttributeName::ApproximateNumberOfMessages,
        QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
    ];
    eventually(|| async {
        let attributes = client
            .get_queue_attributes()
            .queue_url(&queue)
            .set_attribute_names(Some(counts.to_vec()))
            .send();
        let attributes = attributes.await.unwrap().attributes.unwrap();
        counts
            .iter()
            .all(|count| attributes[count] == "0")
            .then_some(())
    })
    .await;
}

/// The versions of a user's preferences, the newest first.
async fn history(process: &Process, token: &str, user: &str) -> Vec<Value> {
    let mut versions = Vec::new();
    let mut before = String::new();
    loop {
        let path = format!("/v1/preferences/{user}/history?limit=500{before}");
        let (_, page) = get(process, token, &path).await;
        versions.extend(page["versions"].as_array().unwrap().iter().cloned());
        match page["next"].as_u64() {
            Some(next) => before = format!("&before={next}"),
            None => return versions,
        }
    }
}

/// The ids that are stored, each of which must have come to its one reward.
async fn settled(process: &Process, token: &str, sent: &Sent) -> BTreeSet<String> {
    let mut stored = BTreeSet::new();
    for (feedback_id, acknowledged) in sent {
        let path = format!("/v1/feedback/{feedback_id}");
        let (status, _) = get(process, token, &path).await;
        if !acknowledged && status == StatusCode::NOT_FOUND {
            continue;
        }
        assert_eq!(status, StatusCode::OK, "an acknowledged event is there");
        let outcome = outcome(process, token, feedback_id).await;
        assert_eq!(outcome["status"], "processed");
        let signals = outcome["signals"].as_array().unwrap();
        let rewards = signals
            .iter()
            .filter(|signal| signal["signalType"] == "reward");
        assert_eq!(rewards.count(), 1, "{outcome}");
        stored.insert(feedback_id.clone());
    }
    stored
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_kill_9_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let mut sent = BTreeMap::new();
    // 0: killed while it carries on with what the one before left.
    for answers in [30, 70, 1, 0, 110, 45] {
        kill_after(answers, data, &mut sent).await;
    }

    let process = Process::serve(data, 0).await;
    let mut stored = BTreeMap::new();
    for (user, ids) in &sent {
        let settled = settled(&process, &token(data, user), ids).await;
        stored.insert(*user, settled);
    }
    idle(data).await;
    for (user, stored) in stored {
        let token = token(data, user);
        let (_, preferences) = get(&process, &token, &format!("/v1/preferences/{user}")).await;
        let learned = &preferences["artifactPreferences"]["unknown"];
        assert_eq!(learned["sampleCount"], stored.len(), "{user}");

        let versions = history(&process, &token, user).await;
        let numbers: Vec<_> = versions
            .iter()
            .map(|version| version["preferenceVersion"].as_u64().unwrap())
            .collect();
        let newest = preferences["preferenceVersion"].as_u64().unwrap();
        let gapless: Vec<_> = (1..=newest).rev().collect();
        assert_eq!(numbers, gapless, "{user}");
        let mut taught: Vec<_> = versions
            .iter()
            .flat_map(|version| version["cause"]["feedbackIds"].as_array().unwrap())
            .map(|feedback_id| feedback_id.as_str().unwrap().to_owned())
            .collect();
        taught.sort_unstable();
        assert_eq!(taught, Vec::from_iter(stored), "each taught once");
    }
}

#[tokio::test]
async fn a_second_start_on_a_folder_in_use_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let first = Process::serve(folder.path(), 0).await;
    let second = on_folder(folder.path(), &["serve", "--port", "0"]).await;
    assert_eq!(second.status.code(), Some(1));
    let said = text(&second.stderr);
    assert!(
        said.contains(&folder.path().display().to_string()),
        "{said}"
    );
    assert!(
        said.contains("stop that one, or choose another folder with --data"),
        "{said}"
    );
    let (status, _) = get(&first, &first.token, "/health").await;
    assert_eq!(status, StatusCode::OK, "the first goes on");
}

#[tokio::test]
async fn a_port_in_use_says_so() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let folder = tempfile::tempdir().unwrap();
    let ended = on_folder(folder.path(), &["serve", "--port", &port]).await;
    assert_eq!(ended.status.code(), Some(1));
    let said = text(&ended.stderr);
    assert!(said.contains(&format!("port {port} is in use")), "{said}");
    assert!(said.contains("choose another with --port"), "{said}");
}

#[tokio::test]
async fn sigterm_ends_it_cleanly() {
    let folder = tempfile::tempdir().unwrap();
    let event = acceptance("ada");
    let token = token(folder.path(), "ada");
    let first = Process::serve(folder.path(), 0).await;
    let client = reqwest::Client::new();
    let answer = submit(&client, &first.address, &token, &event).await;
    assert_eq!(answer, Some(StatusCode::ACCEPTED));
    assert!(first.terminate().await);

    let second = Process::serve(folder.path(), 0).await;
    let outcome = outcome(&second, &token, &id(&event)).await;
    assert_eq!(outcome["status"], "processed");
}

#[tokio::test]
async fn the_token_command_prints_a_token_that_the_gateway_takes() {
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
    // Only on behalf of others may somebody else's preferences be read.
    let others = "/v1/preferences/ada/resolved";
    let (status, _) = get(&process, token, others).await;
    assert_eq!(status, StatusCode::OK);
    let (status, _) = get(&process, &process.token, others).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}

/// What the page or one of its files loads or links to.
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

fn is_elsewhere(reference: &str) -> bool {
    ["http://", "https://", "//"]
        .iter()
        .any(|start| reference.starts_with(start))
}

#[tokio::test]
async fn health_openapi_and_docs_need_no_token() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::serve(folder.path(), 0).await;
    let fetch = async |path: &str| {
        let answer = reqwest::get(format!("http://{}{path}", process.address)).await;
        let answer = answer.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        answer.text().await.unwrap()
    };
    fetch("/health").await;
    let api: Value = serde_json::from_str(&fetch("/openapi.json").await).unwrap();
    assert!(api["paths"]["/v1/feedback/submit"]["post"].is_object());

    // The page is whole without any other host.
    let page = fetch("/docs").await;
    let parts = references(&page);
    assert!(parts.iter().any(|part| part.ends_with(".js")), "{parts:?}");
    assert!(parts.iter().any(|part| part.ends_with(".css")), "{parts:?}");
    let elsewhere: Vec<_> = parts.iter().filter(|part| is_elsewhere(part)).collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
    let scripts_and_styles = parts
        .iter()
        .filter(|part| part.ends_with(".js") || part.ends_with(".css"));
    for part in scripts_and_styles {
        let file = fetch(&format!("/docs/{}", part.trim_start_matches("./"))).await;
        let mut elsewhere = references(&file);
        elsewhere.retain(|reference| is_elsewhere(reference));
        assert!(elsewhere.is_empty(), "{part}: {elsewhere:?}");
    }
}

#[tokio::test]
async fn tail_prints_what_was_published() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::serve(folder.path(), 0).await;
    let event = acceptance("user-123");
    let client = reqwest::Client::new();
    let answer = submit(&client, &process.address, &process.token, &event).await;
    assert_eq!(answer, Some(StatusCode::ACCEPTED));
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
    // A version that cannot be read keeps the user's events from being worked off.
    let damaged = [
        (PK, AttributeValue::S("PREF#acme#ada".to_owned())),
        (SK, AttributeValue::S("V#0000000001".to_owned())),
    ];
    clients
        .dynamodb
        .put_item()
        .table_name(Names::default().table())
        .set_item(Some(
            damaged
                .clone()
                .map(|(name, key)| (name.to_owned(), key))
                .into(),
        ))
        .send()
        .await
        .unwrap();
    let token = app.token("ada");
    let event = acceptance("ada");
    app.submit(&token, &event).await;
    let reason = eventually(|| async {
        let seen = clients
            .sqs
            .receive_message()
            .queue_url(&app.bundle.queues.dead_letters)
            .visibility_timeout(0)
            .message_attribute_names("All")
            .send();
        let letter = seen.await.unwrap().messages.unwrap_or_default().pop()?;
        let attributes = letter.message_attributes?;
        attributes["reason"].string_value.clone()
    })
    .await;
    assert!(!reason.is_empty());

    // Once that is repaired, what had failed is tried again.
    clients
        .dynamodb
        .delete_item()
        .table_name(Names::default().table())
        .set_key(Some(
            damaged.map(|(name, key)| (name.to_owned(), key)).into(),
        ))
        .send()
        .await
        .unwrap();
    let printed = on_folder(folder.path(), &["redrive"]).await;
    assert!(printed.status.success());
    let said = text(&printed.stdout);
    assert!(said.contains(&reason), "{said}");
    assert!(said.ends_with("1 dead letter moved back\n"), "{said}");
    let outcome = app.outcome(&token, &id(&event)).await;
    assert_eq!(outcome["status"], "processed");
}

#[tokio::test]
async fn a_command_for_a_folder_without_a_bundle_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let ended = on_folder(folder.path(), &["tail", "--drain"]).await;
    assert_eq!(ended.status.code(), Some(1));
    let said = text(&ended.stderr);
    assert!(said.contains("no bundle was started on"), "{said}");
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
        "6 turns registered, 0 known before, 0 refused\n",
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
