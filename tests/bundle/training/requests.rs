//! Requests to the function, and the command.

use std::process::Stdio;

use chrono::{TimeDelta, Utc};
use hearback_export::{Answer, Failure};
use hearback_tests::app::TestApp;
use serde_json::{Value, json};

use super::{TrainingApp, request, with_sample_feedback};

#[tokio::test]
async fn an_invalid_request_is_rejected_with_its_pointers() {
    let app = with_sample_feedback().await;
    let exporter = app.exporter();
    let rejected = async |request: Value| {
        let Err(Failure::Invalid(errors)) = exporter.handle(&request, None).await else {
            panic!("accepted: {request}")
        };
        let mut pointers: Vec<_> = errors.into_iter().map(|error| error.pointer).collect();
        pointers.sort_unstable();
        pointers.join(" ")
    };
    let request_of = |training: Value| json!({"tenant": "acme", "training": training});
    let broken = request_of(json!({"from": "yesterday", "days": 3}));
    let pointers = rejected(broken).await;
    assert_eq!(pointers, "/training/days /training/from /training/project");
    let backwards = request_of(json!({"project": "p", "from": "2026-01-02", "to": "2026-01-01"}));
    assert_eq!(rejected(backwards).await, "/training/from");
    // The position of other days is rejected, because it would skip rows.
    let past = Some(Utc::now() - TimeDelta::days(1));
    let Ok(Answer::Training(started)) = exporter.handle(&request(), past).await else {
        panic!("expected training")
    };
    let today = Utc::now().date_naive();
    for training in [
        json!({"project": "billing"}),
        json!({"project": "order-service", "from": today}),
    ] {
        let mut other = request_of(training);
        other["resume"] = json!(started.resume);
        assert_eq!(rejected(other).await, "/resume");
    }
}

#[tokio::test]
async fn the_command_prints_rows_or_writes_a_file_of_each_kind() {
    let folder = tempfile::tempdir().unwrap();
    let app = TrainingApp(TestApp::on(Some(folder.path().to_owned())).await);
    app.turn(("c", "t"), "question", "answer").await;
    app.rate("ada", "t", json!({"signal": "edit", "reason": "better"}))
        .await;
    app.react("ada", ("c", "t"), json!("not_ok")).await;
    let set = folder.path().join("set");
    let run = async |options: &[&str]| {
        let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_hearback-under-test"))
            .args(["export", "--data"])
            .arg(folder.path())
            .args(options)
            .stdin(Stdio::null())
            .output()
            .await
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        (output.status.success(), output.stdout, stderr)
    };
    let training = ["--training", "--project", "order-service"];
    let (done, printed, stderr) = run(&training).await;
    assert!(done, "{stderr}");
    assert!(stderr.starts_with("1 pairs and 1 labels from "), "{stderr}");
    let printed = String::from_utf8(printed).unwrap();
    let lines: Vec<_> = printed.lines().collect();
    let out = set.to_str().unwrap();
    let (done, silent, stderr) = run(&[training.as_slice(), &["--out", out]].concat()).await;
    assert!(done && silent.is_empty(), "{stderr}");
    for (name, line) in ["pairs.jsonl", "labels.jsonl"].into_iter().zip(lines) {
        let file = std::fs::read_to_string(set.join(name)).unwrap();
        assert_eq!(file, format!("{line}\n"));
    }
    for options in [
        ["--training"].as_slice(),
        &["--day", "2026-11-21", "--project", "order-service"],
        &["--training", "--project", "p", "--day", "2026-11-21"],
    ] {
        assert!(!run(options).await.0, "{options:?}");
    }
}
