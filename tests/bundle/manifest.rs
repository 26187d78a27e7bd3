//! A data folder starts only if it is complete: a missing part, or one of another folder, is rejected with
//! instructions, unless the operator accepts the loss.

use std::ffi::OsString;
use std::path::Path;
use std::process::Output;

use hearback_local::bundle::{Bundle, Options};
use hearback_local::files::MANIFEST_FILE;
use hearback_local::manifest::{self, FolderPart};
use hearback_tests::app::eventually;
use hearback_tests::events::acceptance;
use hearback_tests::process::{Process, run};
use hearback_tests::served::Served;
use reqwest::Method;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use serde_json::Value;

/// The parts that can be lost, the manifest included.
const LOSSES: [FolderPart; 7] = FolderPart::ALL;

/// Copies a folder that is not in use.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn remove(path: &Path) {
    if path.is_dir() {
        std::fs::remove_dir_all(path).unwrap();
    } else {
        std::fs::remove_file(path).unwrap();
    }
}

/// Leaves a write-ahead log with a table of its own next to a database, as a crash does.
fn leave_log(database: &Path) {
    let connection = Connection::open(database).unwrap();
    let option = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    connection.set_db_config(option, true).unwrap();
    connection.execute("CREATE TABLE logged (id)", []).unwrap();
    drop(connection);
    let log = database.with_extension("sqlite-wal");
    assert!(log.metadata().unwrap().len() > 0);
}

/// Whether no write-ahead log is left: SQLite removes it with the last connection.
fn is_closed(data: &Path) -> bool {
    let logs = ["dynamodb.sqlite-wal", "sqs.sqlite-wal"];
    !logs.iter().any(|log| data.join(log).exists())
}

/// Creates a folder with a processed event, and stops the bundle.
async fn create_folder(data: &Path) {
    let process = Process::serve(data, 0).await;
    let served = Served::by(&process, data);
    let submit = served.by_back_end(Method::POST, "/v1/feedback/submit");
    let submitted = submit.json(&acceptance("ada")).send().await.unwrap();
    assert_eq!(submitted.status(), 202);
    served.settled().await;
    assert!(process.terminate().await);
    // An exit may come before the last connection is closed.
    start(data, &[]).await.unwrap();
}

/// Starts and stops a bundle on the folder, in this process.
async fn start(data: &Path, accept: &[FolderPart]) -> Result<(), String> {
    let options = Options {
        port: 0,
        data: Some(data.to_owned()),
        accept: accept.to_vec(),
        ..Options::default()
    };
    let bundle = Bundle::start(options).await;
    let bundle = bundle.map_err(|error| format!("{error:#}"))?;
    bundle.stop().await;
    // Before, a copy would not be that of one moment.
    eventually(|| async { is_closed(data).then_some(()) }).await;
    Ok(())
}

async fn command(data: &Path, arguments: &[&str]) -> Output {
    let mut all: Vec<OsString> = arguments.iter().map(Into::into).collect();
    all.extend(["--data".into(), data.as_os_str().to_owned()]);
    run(all).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_with_a_missing_part_fails_until_its_loss_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let complete = folder.path().join("complete");
    create_folder(&complete).await;
    for part in LOSSES {
        let data = folder.path().join(format!("without {}", part.name()));
        copy(&complete, &data);
        remove(&data.join(part.name()));
        let error = start(&data, &[]).await.unwrap_err();
        for expected in [
            format!("{} is missing", part.name()),
            "Restore the whole folder from one backup".to_owned(),
            format!("--accept {}", part.name()),
        ] {
            assert!(error.contains(&expected), "{error}");
        }
        assert!(
            !data.join(part.name()).exists(),
            "a failed start must not replace {}",
            part.name()
        );
        let check = command(&data, &["check"]).await;
        assert_eq!(check.status.code(), Some(1), "{}", part.name());

        let another = LOSSES.iter().find(|other| **other != part).unwrap();
        start(&data, &[*another]).await.unwrap_err();
        start(&data, &[part]).await.unwrap();
        start(&data, &[]).await.expect("the loss is accepted once");
        assert_eq!(manifest::check(&data).unwrap(), []);
    }
    start(&complete, &[]).await.expect("nothing is missing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_another_folder_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
    create_folder(&ours).await;
    create_folder(&theirs).await;
    for part in LOSSES
        .into_iter()
        .filter(|part| *part != FolderPart::Manifest)
    {
        let data = folder.path().join(format!("mixed {}", part.name()));
        copy(&ours, &data);
        let (from, to) = (theirs.join(part.name()), data.join(part.name()));
        let is_database = part.name().ends_with(".sqlite");
        if is_database {
            leave_log(&to);
        }
        remove(&to);
        if from.is_dir() {
            copy(&from, &to);
        } else {
            std::fs::copy(&from, &to).unwrap();
        }
        let error = start(&data, &[]).await.unwrap_err();
        let expected = format!("{} does not belong to this folder", part.name());
        assert!(error.contains(&expected), "{error}");
        start(&data, &[part]).await.unwrap();
        start(&data, &[])
            .await
            .expect("the part belongs to the folder now");
        if is_database {
            let database = Connection::open(&to).unwrap();
            let is_applied = database.table_exists(None, "logged").unwrap();
            assert!(!is_applied, "the log was of another database");
        }
    }
    // An emptied database is recognised, too.
    std::fs::write(ours.join(FolderPart::Queues.name()), "").unwrap();
    let error = start(&ours, &[]).await.unwrap_err();
    assert!(
        error.contains("sqs.sqlite does not belong to this folder"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn all_missing_parts_are_reported_together() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    create_folder(&data).await;
    remove(&data.join(FolderPart::Queues.name()));
    remove(&data.join(FolderPart::PseudonymKey.name()));
    let ended = command(&data, &["serve", "--port", "0"]).await;
    assert_eq!(ended.status.code(), Some(1));
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert!(
        stderr.contains("sqs.sqlite is missing (messages in queues"),
        "{stderr}"
    );
    assert!(stderr.contains("pseudonym.key is missing"), "{stderr}");
    assert!(
        stderr.contains("`--accept sqs.sqlite --accept pseudonym.key` once"),
        "{stderr}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_or_damaged_manifest_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    create_folder(&data).await;
    let path = data.join(MANIFEST_FILE);
    let kept = std::fs::read(&path).unwrap();
    let newer = r#"{"format": 2, "who knows": []}"#;
    std::fs::write(&path, newer).unwrap();
    let error = start(&data, &[]).await.unwrap_err();
    assert!(error.contains("has format 2"), "{error}");
    assert!(
        error.contains("a newer version wrote the folder"),
        "{error}"
    );
    let error = start(&data, &[FolderPart::Manifest]).await.unwrap_err();
    assert!(error.contains("has format 2"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), newer);

    // A damaged manifest can be accepted as lost, because the parts have marks of their own.
    std::fs::write(&path, &kept[..kept.len() / 2]).unwrap();
    let error = start(&data, &[]).await.unwrap_err();
    assert!(error.contains("manifest.json is damaged"), "{error}");
    assert!(error.contains("--accept manifest.json"), "{error}");
    start(&data, &[FolderPart::Manifest]).await.unwrap();
    start(&data, &[]).await.unwrap();
}

/// Makes a folder look like one of a version without manifests.
fn remove_manifest_and_marks(data: &Path) {
    remove(&data.join(MANIFEST_FILE));
    remove(&data.join("credentials.json"));
    remove(&data.join("s3/.hearback-folder"));
    for file in ["dynamodb.sqlite", "sqs.sqlite"] {
        let database = Connection::open(data.join(file)).unwrap();
        database.pragma_update(None, "application_id", 0).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_complete_folder_without_a_manifest_is_adopted() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    create_folder(&data).await;
    remove_manifest_and_marks(&data);
    let without = folder.path().join("without");
    copy(&data, &without);
    remove(&without.join("dynamodb.sqlite"));
    let error = start(&without, &[]).await.unwrap_err();
    assert!(error.contains("dynamodb.sqlite is missing"), "{error}");

    start(&data, &[]).await.unwrap();
    let kept = std::fs::read(data.join(MANIFEST_FILE)).unwrap();
    let kept: Value = serde_json::from_slice(&kept).unwrap();
    assert_eq!(kept["format"], 1);
    assert_eq!(kept["parts"].as_object().unwrap().len(), LOSSES.len() - 1);
    remove(&data.join("sqs.sqlite"));
    start(&data, &[]).await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_start_interrupted_anywhere_leaves_a_usable_folder() {
    let folder = tempfile::tempdir().unwrap();
    let complete = folder.path().join("complete");
    start(&complete, &[]).await.unwrap();
    let written = std::fs::read(complete.join(MANIFEST_FILE)).unwrap();
    let written: Value = serde_json::from_slice(&written).unwrap();
    let begun = serde_json::json!({"format": 1, "id": written["id"], "parts": {}});
    // The order in which the parts are created. All are created and marked before the manifest names any.
    let parts = [
        "dynamodb.sqlite",
        "sqs.sqlite",
        "s3",
        "credentials.json",
        "endpoints.json",
        "token.key",
        "pseudonym.key",
    ];
    for ended_after in 0..=parts.len() {
        let data = folder.path().join(format!("ended after {ended_after}"));
        copy(&complete, &data);
        std::fs::write(data.join(MANIFEST_FILE), begun.to_string()).unwrap();
        let later = parts[ended_after..]
            .iter()
            .chain(["gateway.json", "relay.json"].iter());
        for file in later.filter(|file| data.join(file).exists()) {
            remove(&data.join(file));
        }
        start(&data, &[]).await.unwrap();
        assert_eq!(manifest::check(&data).unwrap(), []);
    }
    // Killed soon after the start, repeatedly.
    let data = folder.path().join("killed");
    for milliseconds in [1, 3, 5, 10, 15, 20, 30, 40, 60, 90] {
        let mut child = tokio::process::Command::new(hearback_tests::process::hearback())
            .args(["serve", "--port", "0", "--data"])
            .arg(&data)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(milliseconds)).await;
        child.kill().await.unwrap();
    }
    start(&data, &[]).await.expect("a start after the kills");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_created_table_is_created_again() {
    let folder = tempfile::tempdir().unwrap();
    let complete = folder.path().join("complete");
    start(&complete, &[]).await.unwrap();
    let without_stream =
        "UPDATE _tables SET stream_enabled = 0, stream_label = NULL, ttl_enabled = 0;";
    for (name, step) in [
        ("no stream", without_stream.to_owned()),
        (
            "no index",
            format!("{without_stream} DROP TABLE \"hearback::gsi::by_status\";"),
        ),
        ("no items", format!("{without_stream} DROP TABLE hearback;")),
        (
            "no expiry",
            "UPDATE _tables SET ttl_enabled = 0, ttl_attribute = NULL;".to_owned(),
        ),
    ] {
        let data = folder.path().join(name);
        copy(&complete, &data);
        let database = Connection::open(data.join("dynamodb.sqlite")).unwrap();
        database.execute_batch(&step).unwrap();
        drop(database);
        create_folder(&data).await;
        let database = Connection::open(data.join("dynamodb.sqlite")).unwrap();
        let expires = "SELECT ttl_enabled FROM _tables WHERE table_name = 'hearback'";
        let expires: bool = database.query_row(expires, [], |row| row.get(0)).unwrap();
        assert!(expires, "{name}: items must expire");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_serve_replaces_a_missing_key() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    create_folder(&data).await;
    remove(&data.join("token.key"));
    remove(&data.join("credentials.json"));
    for arguments in [
        &["token", "--sub", "ada", "--tenant", "acme"][..],
        &["tail", "--drain"][..],
    ] {
        let ended = command(&data, arguments).await;
        assert_eq!(ended.status.code(), Some(1));
        let stderr = String::from_utf8(ended.stderr).unwrap();
        assert!(stderr.contains("is missing"), "{stderr}");
    }
    assert!(!data.join("token.key").exists());
    assert!(!data.join("credentials.json").exists());
}
