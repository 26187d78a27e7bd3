//! Damaged files: `hearback serve` and `hearback check` name them, and a running bundle reports damage in its log and
//! at `/health`.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use hearback_tests::app::eventually;
use hearback_tests::events::acceptance;
use hearback_tests::process::{Process, run};
use hearback_tests::served::{Served, access};
use hearback_tests::turns::{path, turn_body};
use reqwest::{Method, StatusCode};
use rusqlite::Connection;
use serde_json::Value;

/// Submits an event, and returns the status.
async fn submit(served: &Served) -> StatusCode {
    let submit = served.by_back_end(Method::POST, "/v1/feedback/submit");
    submit
        .json(&acceptance("ada"))
        .send()
        .await
        .unwrap()
        .status()
}

/// Creates a folder with feedback, a turn and its log, and stops the bundle.
async fn create_folder(data: &Path) {
    let process = Process::serve(data, 0).await;
    let served = Served::by(&process, data);
    for _ in 0..30 {
        assert_eq!(submit(&served).await, StatusCode::ACCEPTED);
    }
    let turn = served.request("ada", Method::PUT, &path("c1", "t1"));
    let registered = turn
        .json(&turn_body("a question", "an answer"))
        .send()
        .await;
    assert!(registered.unwrap().status().is_success());
    served.settled().await;
    assert!(process.terminate().await);
    for file in ["dynamodb.sqlite", "sqs.sqlite"] {
        let database = Connection::open(data.join(file)).unwrap();
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        database.query_row(checkpoint, [], |_| Ok(())).unwrap();
    }
}

/// Flips ten bytes at the start of each of at most twenty pages, spread over the file after the first page.
fn damage(file: &Path) {
    const PAGE: u64 = 4096;
    let database = File::options().read(true).write(true).open(file).unwrap();
    let pages = database.metadata().unwrap().len() / PAGE;
    let damaged = 20.min(pages - 1);
    assert!(damaged > 0, "{} has {pages} pages", file.display());
    for page in (0..damaged).map(|n| 1 + n * (pages - 1) / damaged) {
        let mut bytes = [0; 10];
        database.read_exact_at(&mut bytes, page * PAGE).unwrap();
        let flipped = bytes.map(|byte| !byte);
        database.write_all_at(&flipped, page * PAGE).unwrap();
    }
}

/// Runs `hearback check`; returns whether it found no damage, and its output.
async fn check(data: &Path) -> (bool, String) {
    let ended = run(["check", "--data", data.to_str().unwrap()]).await;
    (
        ended.status.success(),
        String::from_utf8(ended.stdout).unwrap(),
    )
}

fn objects(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(objects(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn start_and_check_name_the_damaged_database() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["dynamodb.sqlite", "sqs.sqlite"] {
        let data = folder.path().join(format!("damaged {file}"));
        create_folder(&data).await;
        let (is_whole, lines) = check(&data).await;
        assert!(is_whole, "{lines}");
        damage(&data.join(file));

        let (is_whole, lines) = check(&data).await;
        assert!(!is_whole, "{lines}");
        for line in lines.lines() {
            let failed = line.starts_with(&format!("{file}: FAILED: "));
            assert_eq!(failed, !line.contains(": ok: "), "{lines}");
        }
        assert!(lines.contains(&format!("{file}: FAILED: ")), "{lines}");

        let data = data.to_str().unwrap();
        let ended = run(["serve", "--port", "0", "--data", data]).await;
        assert_eq!(ended.status.code(), Some(1));
        let stderr = String::from_utf8(ended.stderr).unwrap();
        assert!(stderr.contains(&format!("{file} is damaged: ")), "{stderr}");
        assert!(stderr.contains("Restore the whole folder"), "{stderr}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_finds_changed_values_and_objects() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    create_folder(data).await;
    let (is_whole, lines) = check(data).await;
    assert!(is_whole, "{lines}");
    let objects = objects(&data.join("s3/hearback-data"));
    let object = objects.first().expect("a turn has a log");
    let mut content = std::fs::read(object).unwrap();
    content[3] ^= 1;
    std::fs::write(object, content).unwrap();
    let database = Connection::open(data.join("dynamodb.sqlite")).unwrap();
    let changed = "UPDATE hearback SET item_json = substr(item_json, 2)
         WHERE rowid = (SELECT min(rowid) FROM hearback)";
    assert_eq!(database.execute(changed, []).unwrap(), 1);
    drop(database);

    let (is_whole, lines) = check(data).await;
    assert!(!is_whole);
    let within = object.strip_prefix(data).unwrap().display();
    let expected = format!("{within}: FAILED: its content does not match its checksum");
    assert!(lines.contains(&expected), "{lines}");
    assert!(lines.contains("dynamodb.sqlite: FAILED: 1 of"), "{lines}");
    assert!(lines.contains("sqs.sqlite: ok"), "{lines}");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_finds_a_truncated_item() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    create_folder(data).await;
    let database = Connection::open(data.join("dynamodb.sqlite")).unwrap();
    let cut = "UPDATE hearback SET item_json = json_set(item_json, '$.core.S', '{')
         WHERE json_extract(item_json, '$.SK.S') LIKE 'TURN#%'";
    let turns = database.execute(cut, []).unwrap();
    assert!(turns > 0);
    drop(database);
    let (is_whole, lines) = check(data).await;
    assert!(!is_whole);
    let expected = format!("dynamodb.sqlite: FAILED: {turns} of");
    assert!(lines.contains(&expected), "{lines}");
    assert!(lines.contains(", such as CONV#acme#"), "{lines}");
    assert!(lines.contains(" TURN#"), "{lines}");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_finds_a_missing_turn_log_and_a_damaged_position() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    create_folder(data).await;
    let (is_whole, lines) = check(data).await;
    assert!(is_whole, "{lines}");
    assert!(lines.contains("each of 1 turns has its log"), "{lines}");
    assert!(lines.contains("relay.json: ok"), "{lines}");
    let objects = objects(&data.join("s3/hearback-data"));
    let object = objects.first().expect("a turn has a log");
    std::fs::remove_file(object).unwrap();
    std::fs::write(data.join("relay.json"), "{\"shards\":").unwrap();

    let (is_whole, lines) = check(data).await;
    assert!(!is_whole, "{lines}");
    let within = object.strip_prefix(data.join("s3")).unwrap().display();
    let expected =
        format!("turn logs: FAILED: 1 of 1 turns have no log, the first at s3://{within}");
    assert!(lines.contains(&expected), "{lines}");
    assert!(lines.contains("relay.json: FAILED: "), "{lines}");
    assert!(
        !data.join("relay.json.damaged").exists(),
        "a check changes nothing"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn check_reads_a_folder_in_use_and_its_write_ahead_log() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let process = Process::serve(data, 0).await;
    let served = Served::by(&process, data);
    assert_eq!(submit(&served).await, StatusCode::ACCEPTED);
    let (is_whole, lines) = check(data).await;
    assert!(is_whole, "{lines}");
    process.kill().await;
    let (is_whole, lines) = check(data).await;
    assert!(is_whole, "{lines}");
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_found_by_a_running_bundle_is_reported_in_the_log_and_by_health() {
    let folder = tempfile::tempdir().unwrap();
    let (data, log) = (folder.path().join("data"), folder.path().join("log"));
    let process = Process::serve_quietly("", &data, File::create(&log).unwrap()).await;
    let served = Served::by(&process, &data);
    let health = async || {
        let response = reqwest::get(format!("http://{}/health", process.address)).await;
        let response = response.unwrap();
        (response.status(), response.json::<Value>().await.unwrap())
    };
    assert_eq!(submit(&served).await, StatusCode::ACCEPTED);
    served.settled().await;
    let (status, body) = health().await;
    assert_eq!(status, StatusCode::OK, "{body}");

    // The table's root page does not exist, so each write fails.
    let database = Connection::open(data.join("dynamodb.sqlite")).unwrap();
    database
        .pragma_update(None, "writable_schema", true)
        .unwrap();
    let root = "UPDATE sqlite_schema SET rootpage = 1000000 WHERE name = 'hearback'";
    assert_eq!(database.execute(root, []).unwrap(), 1);
    let version = database.pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0));
    let version = version.unwrap() + 1;
    database
        .pragma_update(None, "schema_version", version)
        .unwrap();
    drop(database);

    assert_eq!(submit(&served).await, StatusCode::SERVICE_UNAVAILABLE);
    let body = eventually(|| async {
        let (status, body) = health().await;
        (status == StatusCode::SERVICE_UNAVAILABLE).then_some(body)
    })
    .await;
    let failing = body["failing"].as_array().unwrap();
    let table = failing.iter().find(|failing| failing["part"] == "table");
    let reason = table.unwrap()["reason"].as_str().unwrap();
    assert!(reason.contains("malformed"), "{body}");
    let logged = std::fs::read_to_string(&log).unwrap();
    let line = logged
        .lines()
        .find(|line| line.contains("the DynamoDB engine failed"));
    let line = line.expect("the engine's failure is logged");
    assert!(line.contains("malformed"), "{line}");
    assert!(line.contains("dynamodb.sqlite"), "{line}");
    let alive = reqwest::get(format!("http://{}/health/live", process.address)).await;
    assert_eq!(
        alive.unwrap().status(),
        StatusCode::OK,
        "the bundle is still alive"
    );
    let _ = access(&data);
}
