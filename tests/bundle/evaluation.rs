//! The evaluation read: by trace and by day, over all users, with question and answer.

use std::process::Stdio;

use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use chrono::{TimeDelta, Utc};
use hearback_export::{Answer, Exporter, Failure};
use hearback_lambda::clock::Clock;
use hearback_storage::Store;
use hearback_tests::app::TestApp;
use hearback_tests::engine::Engine;
use hearback_tests::turns::{SIGNALS, message, path};
use reqwest::StatusCode;
use serde_json::{Map, Value, json};

/// A bundle with a turn for each number: message `m<n>`, trace `trace<n % 2>`, with question and answer.
async fn with_messages(count: usize) -> TestApp {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    for number in 0..count {
        let (question, answer) = (format!("question {number}"), format!("answer {number}"));
        let mut turn = message(&format!("m{number}"), &question, &answer);
        turn["trace_id"] = json!(format!("trace{}", number % 2));
        let path = path("c", &format!("t{number}"));
        let registered = app.put(&ada, &path, &turn).await;
        assert_eq!(registered.status, StatusCode::CREATED);
    }
    app
}

async fn submit_signal(app: &TestApp, user: &str, message: usize, mut body: Value) {
    body["message_id"] = json!(format!("m{message}"));
    let response = app.post(&app.token(user), SIGNALS, &body).await;
    assert!(response.status.is_success(), "{}", response.status);
}

fn exporter(app: &TestApp) -> Exporter {
    Exporter::new(
        app.bundle.store.clone(),
        app.bundle.blobs.clone(),
        Clock::system(),
    )
}

fn today() -> String {
    Utc::now().date_naive().to_string()
}

/// The rows of a day, the earliest first.
async fn rows_of_day(app: &TestApp, request: Value) -> Vec<Value> {
    let request: Map<String, Value> = serde_json::from_value(request).unwrap();
    let mut out = Vec::new();
    let s3 = &app.bundle.clients.s3;
    let summary = hearback_local::export::export(&exporter(app), s3, request, &mut out).await;
    let rows: Vec<Value> = String::from_utf8(out)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(summary.unwrap().rows, rows.len() as u64);
    rows
}

#[tokio::test]
async fn a_trace_returns_the_feedback_of_all_users_with_question_and_answers() {
    let app = with_messages(3).await;
    submit_signal(
        &app,
        "ada",
        0,
        json!({"signal": "edit", "reason": "what I wanted"}),
    )
    .await;
    submit_signal(
        &app,
        "eve",
        2,
        json!({"signal": "not_helpful", "reason": "wrong tool"}),
    )
    .await;
    submit_signal(&app, "eve", 1, json!({"signal": "helpful"})).await;
    submit_signal(
        &app,
        "eve",
        0,
        json!({"signal": "helpful", "exclude_from_training": true}),
    )
    .await;
    submit_signal(&app, "eve", 0, json!({"signal": "unsafe"})).await;
    let withdrawal = format!("{SIGNALS}?message_id=m0&signal=unsafe");
    app.delete(&app.token("eve"), &withdrawal).await;

    let request = json!({"tenant": "acme", "trace_id": "trace0"});
    let response = exporter(&app).handle(&request, None).await.unwrap();
    let response = serde_json::to_value(response).unwrap();
    let [edit, thumb] = response["rows"].as_array().unwrap().as_slice() else {
        panic!("{response}")
    };
    assert_eq!(
        *edit,
        json!({
            "id": edit["id"], "prompt": "question 0", "original_answer": "answer 0",
            "preferred_answer": "what I wanted", "signal": "edit", "reason": null,
            "ts": edit["ts"], "trace_id": "trace0", "feedback_id": edit["feedback_id"],
            "message_id": "m0", "workspace_id": "order-service", "conversation_id": "c",
            "turn_id": "t0",
        })
    );
    assert_eq!(thumb["prompt"], "question 2");
    assert_eq!(thumb["signal"], "not_helpful");
    assert_eq!(thumb["reason"], "wrong tool");
    assert_eq!(thumb["preferred_answer"], Value::Null);
    assert_eq!(
        response["left_out"],
        json!({"excluded": 1, "without_turn": 0, "unreadable": 0})
    );
    assert_eq!(response["resume"], Value::Null);
    // Another tenant's trace of the same name is separate.
    let other = json!({"tenant": "other", "trace_id": "trace0"});
    let Answer::Trace(page) = exporter(&app).handle(&other, None).await.unwrap() else {
        panic!("expected a trace")
    };
    assert_eq!(page.rows, []);
}

#[tokio::test]
async fn the_pages_of_a_trace_list_every_row() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    // Four long rows exceed a response; the short rows between them are not lost.
    let long = "long ".repeat(330_000);
    for number in 0..40 {
        let response = if number % 10 == 3 {
            long.as_str()
        } else {
            "short"
        };
        let mut turn = message(&format!("m{number}"), "question", response);
        turn["trace_id"] = json!("one");
        app.put(&ada, &path("c", &format!("t{number}")), &turn)
            .await;
        submit_signal(&app, "ada", number, json!({"signal": "helpful"})).await;
    }
    let mut request = json!({"tenant": "acme", "trace_id": "one"});
    let (mut seen, mut pages) = (Vec::new(), 0);
    loop {
        let Answer::Trace(page) = exporter(&app).handle(&request, None).await.unwrap() else {
            panic!("expected a trace")
        };
        pages += 1;
        assert!(serde_json::to_vec(&page).unwrap().len() < 6_000_000);
        seen.extend(page.rows.into_iter().map(|row| row.message_id));
        match page.resume {
            Some(resume) => request["resume"] = json!(resume),
            None => break,
        }
    }
    assert!(pages > 1, "{pages}");
    seen.sort();
    let mut expected: Vec<_> = (0..40).map(|number| format!("m{number}")).collect();
    expected.sort();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_row_with_a_changed_trace_is_found_by_the_new_trace_only() {
    let app = with_messages(1).await;
    submit_signal(&app, "ada", 0, json!({"signal": "helpful"})).await;
    submit_signal(
        &app,
        "ada",
        0,
        json!({"signal": "helpful", "trace_id": "later"}),
    )
    .await;
    for (trace, expected) in [("trace0", 0), ("later", 1)] {
        let rows = rows_of_day(&app, json!({"tenant": "acme", "trace_id": trace})).await;
        assert_eq!(rows.len(), expected, "{trace}");
    }
}

#[tokio::test]
async fn a_day_is_written_completely_however_often_the_run_times_out() {
    let app = with_messages(4).await;
    // Enough users for every shard of the day, and for several steps in some shards.
    for user in 0..150 {
        for (message, signal) in [(0, "helpful"), (1, "edit"), (3, "not_helpful")] {
            let body = json!({"signal": signal, "reason": format!("by {user}")});
            submit_signal(&app, &format!("user{user}"), message, body).await;
        }
    }
    let request = json!({"tenant": "acme", "day": today()});
    let all = rows_of_day(&app, request.clone()).await;
    assert_eq!(all.len(), 450);
    let ids = |rows: &[Value]| -> std::collections::BTreeSet<String> {
        rows.iter()
            .map(|row| row["feedback_id"].to_string())
            .collect()
    };
    assert_eq!(ids(&all).len(), 450);

    // With the deadline in the past each response has the position at which to resume.
    let past = Utc::now() - TimeDelta::days(1);
    let mut request_of_run = request;
    let mut runs = 0;
    let last = loop {
        runs += 1;
        let response = exporter(&app)
            .handle(&request_of_run, Some(past))
            .await
            .unwrap();
        let Answer::Day(exported) = response else {
            panic!("expected a day")
        };
        match &exported.resume {
            Some(resume) => request_of_run["resume"] = json!(resume),
            None => break exported,
        }
    };
    assert!(runs > 4, "{runs}");
    assert_eq!(last.rows, 450);
    let mut rows = Vec::new();
    for file in &last.files {
        rows.extend(lines_of(&app, file).await);
    }
    assert_eq!(ids(&rows), ids(&all));
    // The manifest names the files of the last completed run.
    let manifest = lines_of(&app, last.manifest.as_ref().unwrap()).await;
    assert_eq!(manifest[0]["files"], json!(last.files));
    // Another day has no rows.
    let empty = rows_of_day(&app, json!({"tenant": "acme", "day": "2025-11-06"})).await;
    assert_eq!(empty, Vec::<Value>::new());
}

async fn lines_of(app: &TestApp, uri: &str) -> Vec<Value> {
    let (bucket, key) = uri.strip_prefix("s3://").unwrap().split_once('/').unwrap();
    let s3 = &app.bundle.clients.s3;
    let found = s3
        .get_object()
        .bucket(bucket)
        .key(key)
        .send()
        .await
        .unwrap();
    let bytes = found.body.collect().await.unwrap().into_bytes();
    let lines = bytes.split(|byte| *byte == b'\n');
    lines
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

#[tokio::test]
async fn an_invalid_request_is_rejected_with_its_pointers() {
    let app = TestApp::start().await;
    let broken = json!({"day": "yesterday", "user": "ada"});
    let Err(Failure::Invalid(errors)) = exporter(&app).handle(&broken, None).await else {
        panic!("accepted")
    };
    let mut pointers: Vec<_> = errors.into_iter().map(|error| error.pointer).collect();
    pointers.sort_unstable();
    assert_eq!(pointers, ["/day", "/tenant", "/user"]);
    // The position of another day is rejected, because it would skip rows.
    let past = Utc::now() - TimeDelta::days(1);
    let app = with_messages(1).await;
    submit_signal(&app, "ada", 0, json!({"signal": "helpful"})).await;
    let request = json!({"tenant": "acme", "day": today()});
    let Answer::Day(started) = exporter(&app).handle(&request, Some(past)).await.unwrap() else {
        panic!("expected a day")
    };
    let resume = started
        .resume
        .expect("a position, since the deadline has passed");
    for (day, resume) in [("2025-11-06", "?"), ("2025-11-06", resume.as_str())] {
        let damaged = json!({"tenant": "acme", "day": day, "resume": resume});
        let Err(Failure::Invalid(errors)) = exporter(&app).handle(&damaged, None).await else {
            panic!("accepted")
        };
        assert_eq!(errors[0].pointer, "/resume");
    }
}

#[tokio::test]
async fn a_table_without_the_indexes_gets_them_at_the_next_start() {
    let engine = Engine::start().await;
    let store = Store::new(engine.clients.dynamodb.clone(), "older");
    let attribute = |name| {
        AttributeDefinition::builder()
            .attribute_name(name)
            .attribute_type(ScalarAttributeType::S)
            .build()
            .unwrap()
    };
    let key = |name, kind| {
        KeySchemaElement::builder()
            .attribute_name(name)
            .key_type(kind)
            .build()
            .unwrap()
    };
    let older = engine.clients.dynamodb.create_table().table_name("older");
    older
        .attribute_definitions(attribute("PK"))
        .attribute_definitions(attribute("SK"))
        .key_schema(key("PK", KeyType::Hash))
        .key_schema(key("SK", KeyType::Range))
        .billing_mode(BillingMode::PayPerRequest)
        .send()
        .await
        .unwrap();
    store.create_table().await.unwrap();
    store.create_table().await.unwrap();
    let exporter = Exporter::new(store, engine.blobs(), Clock::system());
    for selection in [json!({"trace_id": "t"}), json!({"day": today()})] {
        let mut request = selection;
        request["tenant"] = json!("acme");
        exporter.handle(&request, None).await.unwrap();
    }
}

#[tokio::test]
async fn the_command_prints_rows_as_json_lines() {
    let folder = tempfile::tempdir().unwrap();
    let app = TestApp::on(Some(folder.path().to_owned())).await;
    let token = app.token("ada");
    app.put(
        &token,
        &path("c", "t"),
        &message("m0", "question", "answer"),
    )
    .await;
    submit_signal(
        &app,
        "ada",
        0,
        json!({"signal": "edit", "reason": "better", "trace_id": "4f3a"}),
    )
    .await;
    for (option, value) in [("--trace", "4f3a"), ("--day", &today())] {
        let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_hearback-under-test"))
            .args(["export", option, value, "--data"])
            .arg(folder.path())
            .stdin(Stdio::null())
            .output()
            .await
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        let row: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(row["preferred_answer"], "better");
        assert!(stderr.starts_with("1 rows; left out: 0"), "{stderr}");
    }
}
