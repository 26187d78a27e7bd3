//! Other users of the machine cannot access the data folder, whatever its previous permissions and the umask.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hearback_tests::events::acceptance;
use hearback_tests::process::{Process, run};
use hearback_tests::served::Served;
use hearback_tests::turns::{path, turn_body};
use reqwest::Method;

/// Everything in a folder, itself included.
fn everything(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(everything(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path)
        .unwrap()
        .permissions()
        .mode()
        & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Asserts that only the owner can access the files, and returns their number.
fn assert_private(folder: &Path) -> usize {
    let all = everything(folder);
    for path in &all {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(
            mode(path),
            expected,
            "{} is {:o}",
            path.display(),
            mode(path)
        );
    }
    all.len()
}

/// Creates every kind of file: the table, queues, turn logs, an imported file and its report, exports.
async fn create_files(process: &Process, data: &Path) {
    let served = Served::by(process, data);
    let submit = served.by_back_end(Method::POST, "/v1/feedback/submit");
    assert_eq!(
        submit
            .json(&acceptance("ada"))
            .send()
            .await
            .unwrap()
            .status(),
        202
    );
    let turn = served.request("ada", Method::PUT, &path("c1", "t1"));
    let registered = turn
        .json(&turn_body("a question", "an answer"))
        .send()
        .await;
    assert!(registered.unwrap().status().is_success());
    served.settled().await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{}\nnot JSON\n", acceptance("eve"))).unwrap();
    let file = file.path().to_str().unwrap();
    let data = data.to_str().unwrap();
    for command in [
        vec!["import", file, "--data", data],
        vec![
            "export",
            "--training",
            "--project",
            "order-service",
            "--data",
            data,
        ],
        vec!["token", "--sub", "ada", "--tenant", "acme", "--data", data],
    ] {
        let ended = run(&command).await;
        assert!(
            ended.status.success(),
            "{}",
            String::from_utf8_lossy(&ended.stderr)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_file_of_a_new_folder_is_accessible_to_its_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("a/data");
    let process = Process::serve_after("umask 000", &data).await;
    create_files(&process, &data).await;
    let files = assert_private(&data);
    assert!(files > 20, "{files} is too few: {:?}", everything(&data));
    let expected_files = [
        "dynamodb.sqlite-wal",
        "sqs.sqlite-wal",
        "credentials.json",
        "token.key",
    ];
    assert!(expected_files.iter().all(|name| data.join(name).exists()));
    assert!(process.terminate().await);
    assert_private(&data);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_readable_by_others_is_made_private() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let process = Process::serve(&data, 0).await;
    create_files(&process, &data).await;
    assert!(process.terminate().await);
    // Permissions of an older version or an archive, and a link to a file outside.
    for path in everything(&data) {
        set_mode(&path, if path.is_dir() { 0o755 } else { 0o644 });
    }
    let outside = folder.path().join("outside");
    std::fs::write(&outside, "foreign").unwrap();
    set_mode(&outside, 0o644);
    std::os::unix::fs::symlink(&outside, data.join("link")).unwrap();
    let process = Process::serve(&data, 0).await;
    std::fs::remove_file(data.join("link")).unwrap();
    assert_private(&data);
    create_files(&process, &data).await;
    assert_private(&data);
    assert_eq!(mode(&outside), 0o644, "a link is not followed");
}

#[tokio::test]
async fn a_folder_with_files_of_another_user_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    std::fs::create_dir(&home).unwrap();
    set_mode(&home, 0o755);
    std::fs::write(home.join("document"), "foreign").unwrap();
    set_mode(&home.join("document"), 0o644);
    let ended = run(["serve", "--port", "0", "--data", home.to_str().unwrap()]).await;
    assert!(!ended.status.success());
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert!(
        stderr.contains("choose another folder with --data"),
        "{stderr}"
    );
    assert_eq!((mode(&home), mode(&home.join("document"))), (0o755, 0o644));
    assert_eq!(everything(&home).len(), 2, "nothing was written");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_folder_gets_a_random_key_pair_that_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let keys = |data: &Path| std::fs::read(data.join("credentials.json")).unwrap();
    assert!(Process::serve(&one, 0).await.terminate().await);
    let key_pair = keys(&one);
    let again = Process::serve(&one, 0).await;
    Served::by(&again, &one).settled().await;
    assert_eq!(keys(&one), key_pair, "a restart reads the same key pair");
    let other = Process::serve(&two, 0).await;
    assert_ne!(keys(&two), key_pair);
    assert!(other.terminate().await);
}

#[tokio::test]
async fn an_empty_secret_is_rejected() {
    for name in ["credentials.json", "token.key", "pseudonym.key"] {
        let folder = tempfile::tempdir().unwrap();
        set_mode(folder.path(), 0o700);
        std::fs::write(folder.path().join(name), "").unwrap();
        let ended = run([
            "serve",
            "--port",
            "0",
            "--data",
            folder.path().to_str().unwrap(),
        ])
        .await;
        assert!(!ended.status.success(), "{name}");
        let stderr = String::from_utf8(ended.stderr).unwrap();
        assert!(
            stderr.contains(name) && stderr.contains("empty"),
            "{stderr}"
        );
    }
}
