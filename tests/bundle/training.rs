//! The training export: rows that trainers read, and nothing that no model may learn from.

use std::collections::BTreeSet;
use std::process::Stdio;

use aws_sdk_dynamodb::types::AttributeValue;
use axum::http::Method;
use chrono::{TimeDelta, Utc};
use futures::stream::{self, StreamExt};
use hearback_export::{Answer, Exporter, Failure, Trained};
use hearback_lambda::clock::Clock;
use hearback_local::names::{DEFAULT_STACK, Names};
use hearback_tests::app::TestApp;
use hearback_tests::engine::Engine;
use hearback_tests::events::acceptance;
use hearback_tests::faults::{Fault, Faults};
use hearback_tests::functions::{call, functions_of};
use hearback_tests::period::{Extent, Project};
use hearback_tests::turns::{SIGNALS, message, path};
use reqwest::StatusCode;
use serde_json::{Value, json};

/// A bundle, as users of it talk to it.
struct Told(TestApp);

impl Told {
    async fn start() -> Self {
        Self(TestApp::start().await)
    }

    /// A turn of ada, whose answer is `m-<turn>`.
    async fn turn(&self, (conversation, turn): (&str, &str), question: &str, answer: &str) {
        let body = message(&format!("m-{turn}"), question, answer);
        let path = path(conversation, turn);
        let registered = self.0.put(&self.0.token("ada"), &path, &body).await;
        assert_eq!(registered.status, StatusCode::CREATED);
    }

    async fn react(&self, user: &str, (conversation, turn): (&str, &str), reaction: Value) {
        let path = format!("{}/feedback", path(conversation, turn));
        let body = json!({"reaction": reaction});
        let answer = self.0.post(&self.0.token(user), &path, &body).await;
        assert_eq!(answer.status, StatusCode::OK);
    }

    async fn say(&self, user: &str, turn: &str, mut body: Value) {
        body["message_id"] = json!(format!("m-{turn}"));
        let answer = self.0.post(&self.0.token(user), SIGNALS, &body).await;
        assert!(answer.status.is_success(), "{}", answer.status);
    }

    fn exporter(&self) -> Exporter {
        let bundle = &self.0.bundle;
        Exporter::new(bundle.store.clone(), bundle.blobs.clone(), Clock::system())
    }

    /// What a run from beginning to end writes.
    async fn export(&self) -> Set {
        let run = trained(&self.exporter(), &request(), false).await;
        Set::of(run, &self.0.bundle.clients.s3).await
    }

    /// Changes an item below everything that could mind.
    async fn expire(&self, pk: &str, sk: &str) {
        let bundle = &self.0.bundle;
        let past = (Utc::now() - TimeDelta::minutes(1)).timestamp();
        let update = bundle.clients.dynamodb.update_item();
        update
            .table_name(Names::new(DEFAULT_STACK).table())
            .key("PK", AttributeValue::S(pk.to_owned()))
            .key("SK", AttributeValue::S(sk.to_owned()))
            .update_expression("SET expires_at = :past")
            .condition_expression("attribute_exists(PK)")
            .expression_attribute_values(":past", AttributeValue::N(past.to_string()))
            .send()
            .await
            .unwrap();
    }
}

/// Of a few days: to look into a year takes time, and there is nothing in it.
fn request() -> Value {
    let from = Utc::now().date_naive() - TimeDelta::days(9);
    json!({"tenant": "acme", "training": {"project": "order-service", "from": from}})
}

/// The end of a run; of one whose time is up after each step, if `hurried`.
async fn trained(exporter: &Exporter, request: &Value, hurried: bool) -> Trained {
    let until = hurried.then(|| Utc::now() - TimeDelta::days(1));
    let mut request = request.clone();
    for invocation in 1.. {
        let Answer::Training(run) = exporter.handle(&request, until).await.unwrap() else {
            panic!("training was asked for")
        };
        let Some(resume) = &run.resume else {
            assert!(!hurried || invocation > 5, "{invocation}");
            return run;
        };
        request["resume"] = json!(resume);
    }
    unreachable!()
}

/// What a run wrote.
struct Set {
    pairs: Vec<Value>,
    labels: Vec<Value>,
    run: Trained,
}

impl Set {
    async fn of(run: Trained, s3: &aws_sdk_s3::Client) -> Self {
        let mut rows = [Vec::new(), Vec::new()];
        for (written, rows) in [&run.pairs, &run.labels].into_iter().zip(&mut rows) {
            let mut out = Vec::new();
            hearback_local::export::copy(s3, &written.files, &mut out)
                .await
                .unwrap();
            let lines = String::from_utf8(out).unwrap();
            rows.extend(
                lines
                    .lines()
                    .map(|line| serde_json::from_str(line).unwrap()),
            );
            assert_eq!(written.rows, rows.len() as u64);
        }
        let [pairs, labels] = rows;
        Self { pairs, labels, run }
    }

    fn label_of(&self, turn: &str) -> Option<&Value> {
        let of_turn = |label: &&Value| label["provenance"]["turn_ids"] == json!([turn]);
        self.labels.iter().find(of_turn)
    }

    fn ids(&self) -> BTreeSet<String> {
        let rows = self.pairs.iter().chain(&self.labels);
        rows.map(|row| row["id"].as_str().unwrap().to_owned())
            .collect()
    }
}

const REJECTION: &str = "No, I meant gaming laptops not business laptops";

/// A turn that is rejected, one that is accepted after it, one with an edit and a thumb of others.
async fn told() -> Told {
    let told = Told::start().await;
    told.turn(("c", "t1"), "laptops under $1000", "business laptops")
        .await;
    told.turn(("c", "t2"), REJECTION, "gaming laptops").await;
    told.turn(("c", "t3"), "Thanks!", "You are welcome.").await;
    told.turn(("d", "t4"), "How do I return it?", "Within 30 days.")
        .await;
    let edit = json!({"signal": "edit", "reason": "Within 60 days."});
    told.say("ada", "t4", edit).await;
    told.say("eve", "t4", json!({"signal": "not_helpful"}))
        .await;
    told.react("eve", ("c", "t3"), json!("ok")).await;
    told
}

#[tokio::test]
async fn rows_are_what_trainers_read_with_where_they_come_from() {
    let told = told().await;
    let set = told.export().await;
    let [corrected, edit] = set.pairs.as_slice() else {
        panic!("{:?}", set.pairs)
    };
    let from = |row: &Value, turns: Value, messages: Value| {
        json!({
            "tenant": "acme", "project": "order-service",
            "conversation_id": row["provenance"]["conversation_id"], "turn_ids": turns,
            "message_ids": messages, "feedback_ids": row["provenance"]["feedback_ids"],
        })
    };
    assert_eq!(
        *corrected,
        json!({
            "type": "pair", "id": corrected["id"], "source": "rejected_then_accepted",
            "prompt": format!("laptops under $1000\n\n{REJECTION}"),
            "chosen": "gaming laptops", "rejected": "business laptops",
            "correction": "explicit_correction", "origin": "machine", "confidence": 0.7,
            "ts": corrected["ts"],
            "provenance": from(corrected, json!(["t1", "t2"]), json!(["m-t1", "m-t2"])),
        })
    );
    assert_eq!(
        *edit,
        json!({
            "type": "pair", "id": edit["id"], "source": "edit",
            "prompt": "How do I return it?", "chosen": "Within 60 days.",
            "rejected": "Within 30 days.", "correction": "edit", "origin": "user",
            "confidence": 1.0, "ts": edit["ts"],
            "provenance": from(edit, json!(["t4"]), json!(["m-t4"])),
        })
    );
    let label = set.label_of("t4").unwrap();
    assert_eq!(
        *label,
        json!({
            "type": "label", "id": label["id"], "prompt": "How do I return it?",
            "completion": "Within 30 days.", "label": false, "origin": "user", "confidence": 1.0,
            "ts": label["ts"], "provenance": from(label, json!(["t4"]), json!(["m-t4"])),
        })
    );
    let labels: Vec<_> = ["t1", "t2", "t3"]
        .map(|turn| set.label_of(turn).unwrap())
        .iter()
        .map(|row| (row["label"].clone(), row["origin"].clone()))
        .collect();
    let (yes, no) = (json!(true), json!(false));
    let machine = json!("machine");
    assert_eq!(
        labels,
        [
            (no, machine.clone()),
            (yes.clone(), machine),
            (yes, json!("user"))
        ]
    );
    // Each feedback id is an event of the ledger; nobody is named.
    let ids = corrected["provenance"]["feedback_ids"].as_array().unwrap();
    assert_eq!(ids.len(), 2);
    for row in set.pairs.iter().chain(&set.labels) {
        let text = row.to_string();
        assert!(!text.contains("ada") && !text.contains("eve"), "{text}");
        assert!(!text.contains("null"), "{text}");
    }
    for id in ids {
        let ada = told.0.token("ada");
        let event = told.0.outcome(&ada, id.as_str().unwrap()).await;
        assert_eq!(event["status"], "processed");
    }
}

#[tokio::test]
async fn an_event_about_a_turn_is_a_label_and_a_correction_is_a_pair() {
    let told = Told::start().await;
    told.turn(("c", "t"), "How many?", "There are 41, sir.")
        .await;
    told.turn(("c", "u"), "How few?", "There are 7, sir.").await;
    let about = |turn: &str, user: &str, more: Value| {
        let mut event = acceptance(user);
        event["data"] = json!({});
        event["context"] =
            json!({"projectId": "order-service", "conversationId": "c", "turnId": turn});
        event
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        event
    };
    let correction = |corrected: Value| json!({"feedbackChannel": "correction", "feedbackType": "modification", "correctionData": corrected});
    let part = correction(json!({"originalValue": "41", "correctedValue": "42"}));
    let whole = correction(json!({"correctedValue": "Forty-two."}));
    let mut excluded = correction(json!({"correctedValue": "excluded"}));
    excluded["privacyFlags"] = json!({"excludeFromTraining": true});
    let rated = json!({"feedbackType": "rating", "data": {"rating": 5}});
    let events = [
        about("t", "eve", part),
        about("t", "zoe", whole),
        about("t", "ike", excluded),
        about("t", "ike", correction(json!({"correctionType": "format"}))),
        about("u", "eve", rated),
    ];
    for event in &events {
        let token = told.0.token(event["userId"].as_str().unwrap());
        assert_eq!(
            told.0.submit(&token, event).await.status,
            StatusCode::ACCEPTED
        );
        let id = event["feedbackId"].as_str().unwrap();
        assert_eq!(told.0.outcome(&token, id).await["status"], "processed");
    }
    let set = told.export().await;
    let mut chosen: Vec<_> = set
        .pairs
        .iter()
        .map(|pair| pair["chosen"].clone())
        .collect();
    chosen.sort_by_key(Value::to_string);
    assert_eq!(chosen, ["Forty-two.", "There are 42, sir."]);
    for pair in &set.pairs {
        assert_eq!(pair["rejected"], "There are 41, sir.");
        assert_eq!(pair["source"], "edit");
    }
    let of_part = set
        .pairs
        .iter()
        .find(|pair| pair["chosen"] == chosen[1])
        .unwrap();
    assert_eq!(
        of_part["provenance"]["feedback_ids"],
        json!([events[0]["feedbackId"]])
    );
    assert_eq!(set.label_of("t"), None, "a correction is no verdict");
    let label = set.label_of("u").unwrap();
    assert_eq!(
        (&label["label"], &label["origin"]),
        (&json!(true), &json!("user"))
    );
    assert_eq!(
        label["provenance"]["feedback_ids"],
        json!([events[4]["feedbackId"]])
    );
    assert_eq!(set.run.left_out.excluded, 1);
}

#[tokio::test]
async fn the_same_rows_have_the_same_ids_in_every_run() {
    let told = told().await;
    let (one, two) = (told.export().await, told.export().await);
    assert_eq!(one.ids(), two.ids());
    assert_eq!(one.ids().len(), 6);
    // The manifest names the files of the run that was completed last.
    let s3 = &told.0.bundle.clients.s3;
    assert_eq!(one.run.manifest, two.run.manifest);
    let mut manifest = Vec::new();
    hearback_local::export::copy(
        s3,
        &two.run.manifest.clone().into_iter().collect::<Vec<_>>(),
        &mut manifest,
    )
    .await
    .unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest, serde_json::to_value(&two.run).unwrap());
}

#[tokio::test]
async fn what_no_model_may_learn_from_never_appears() {
    let told = told().await;
    for turn in [
        "excluded",
        "retracted",
        "cleared",
        "expired",
        "erased",
        "gone",
        "contested",
    ] {
        told.turn(("e", turn), "question", &format!("answer {turn}"))
            .await;
        told.react("eve", ("e", turn), json!("ok")).await;
        let edit = json!({"signal": "edit", "reason": format!("better {turn}")});
        told.say("eve", turn, edit).await;
    }
    assert_eq!(told.export().await.ids().len(), 6 + 14);

    let edit = json!({"signal": "edit", "exclude_from_training": true});
    told.say("eve", "excluded", edit).await;
    for turn in ["retracted", "cleared"] {
        let gone = format!("{SIGNALS}?message_id=m-{turn}&signal=edit");
        let answer = told.0.delete(&told.0.token("eve"), &gone).await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT);
        told.react("eve", ("e", turn), Value::Null).await;
    }
    // Their time has come, and the table has not deleted them yet.
    let conversation = "CONV#acme#order-service#e";
    told.expire(conversation, "REACTION#expired#user#eve").await;
    told.expire("USER#acme#eve", "SIGNAL#m-expired#edit").await;
    told.expire(conversation, "TURN#gone").await;
    let bundle = &told.0.bundle;
    let erase = bundle.clients.dynamodb.delete_item();
    erase
        .table_name(Names::new(DEFAULT_STACK).table())
        .key("PK", AttributeValue::S(conversation.to_owned()))
        .key("SK", AttributeValue::S("TURN#erased".to_owned()))
        .send()
        .await
        .unwrap();
    told.react("ada", ("e", "contested"), json!("not_ok")).await;

    let set = told.export().await;
    let left: BTreeSet<_> = (set.pairs.iter().chain(&set.labels))
        .filter(|row| row["provenance"]["conversation_id"] == "e")
        .map(|row| (row["type"].clone().to_string(), row["rejected"].to_string()))
        .collect();
    // Of two people who contradict each other the one's edit is still a pair.
    let pair = ("\"pair\"".to_owned(), "\"answer contested\"".to_owned());
    assert_eq!(left, BTreeSet::from([pair]));
    let left_out = set.run.left_out;
    assert_eq!((left_out.excluded, left_out.contested), (1, 1));
    assert_eq!(left_out.without_turn, 2);
}

#[tokio::test]
async fn only_what_was_said_on_these_days_of_this_project_counts() {
    let told = told().await;
    let today = Utc::now().date_naive();
    for (project, from, to, rows) in [
        ("order-service", today, today, 6),
        (
            "order-service",
            today - TimeDelta::days(9),
            today - TimeDelta::days(1),
            0,
        ),
        ("billing", today, today, 0),
    ] {
        let training = json!({"project": project, "from": from, "to": to});
        let request = json!({"tenant": "acme", "training": training});
        let run = trained(&told.exporter(), &request, false).await;
        assert_eq!(run.pairs.rows + run.labels.rows, rows, "{project} {from}");
    }
}

/// An engine with feedback on many days, in conversations large and small, by reaction, by signal, and by
/// both.
async fn with_feedback(turns: u32) -> Engine {
    let engine = Engine::start().await;
    let functions = functions_of(&engine);
    let caller = ("order-service", "feedback:on-behalf");
    for n in 0..turns {
        let conversation = format!("c{}", if n % 3 == 0 { 0 } else { n % 7 });
        let turn = path(&conversation, &format!("t{n}"));
        let mut body = message(&format!("m{n}"), "question", &format!("answer {n}"));
        body["ts"] = json!(Utc::now() - TimeDelta::hours(40 + i64::from(n)));
        let (status, _) = call(&functions, caller, (Method::PUT, &turn), &body).await;
        assert!(status.is_success());
        if n % 4 != 1 {
            // Two people on two days: the turn is listed on the last.
            for (user, hours) in [("eve", 30), ("bob", 2 + n % 28)] {
                let ts = Utc::now() - TimeDelta::hours(i64::from(hours));
                let body = json!({"reaction": "ok", "user_id": user, "ts": ts});
                let path = format!("{turn}/feedback");
                let (status, _) = call(&functions, caller, (Method::POST, &path), &body).await;
                assert!(status.is_success());
            }
        }
        if n % 4 <= 1 {
            let said = json!({"message_id": format!("m{n}"), "signal": "edit", "reason": "better"});
            let (status, _) = call(&functions, caller, (Method::POST, SIGNALS), &said).await;
            assert!(status.is_success());
        }
    }
    engine
}

#[tokio::test]
async fn the_set_is_whole_however_often_its_time_is_up() {
    let engine = with_feedback(120).await;
    let exporter = Exporter::new(engine.store.clone(), engine.blobs(), Clock::system());
    let s3 = &engine.clients.s3;
    let whole = Set::of(trained(&exporter, &request(), false).await, s3).await;
    assert_eq!((whole.pairs.len(), whole.labels.len()), (60, 90));
    assert_eq!(whole.ids().len(), 150);
    let hurried = Set::of(trained(&exporter, &request(), true).await, s3).await;
    assert_eq!((hurried.pairs.len(), hurried.labels.len()), (60, 90));
    assert_eq!(hurried.ids(), whole.ids());
    assert!(hurried.run.labels.files.len() > 2);
}

#[tokio::test]
async fn every_turn_of_a_large_conversation_is_met_once() {
    let mut project = Project::start().await;
    let now = Utc::now();
    let extent = Extent {
        conversations: 1,
        reactions: 1_800,
        start: now - TimeDelta::days(4),
        days: 3,
    };
    project.add("large", extent).await;
    // More than one query reads of a single turn, too: a character takes four bytes.
    project.register("large-0", "wide").await;
    let functions = functions_of(&project.engine);
    let caller = ("support", "feedback:on-behalf");
    let path = "/conversations/acme/support/large-0/turns/wide/feedback";
    stream::iter(0..300)
        .for_each_concurrent(16, async |user| {
            let body = json!({
                "reaction": "ok", "user_id": format!("user {user}"), "text": "🙂".repeat(900)
            });
            let (status, _) = call(&functions, caller, (Method::POST, path), &body).await;
            assert!(status.is_success());
        })
        .await;
    let engine = &project.engine;
    let exporter = Exporter::new(engine.store.clone(), engine.blobs(), Clock::system());
    let from = now.date_naive() - TimeDelta::days(4);
    let request = json!({"tenant": "acme", "training": {"project": "support", "from": from}});
    for hurried in [false, true] {
        let set = Set::of(
            trained(&exporter, &request, hurried).await,
            &engine.clients.s3,
        )
        .await;
        // The others were never registered.
        assert_eq!(set.run.left_out.without_turn, 1_800);
        let [label] = set.labels.as_slice() else {
            panic!("{:?}", set.labels)
        };
        let feedback = label["provenance"]["feedback_ids"].as_array().unwrap();
        assert_eq!(feedback.len(), 300);
    }
}

#[tokio::test]
async fn a_run_that_dies_at_any_call_to_the_bucket_leaves_the_last_set_whole() {
    let engine = with_feedback(12).await;
    let s3 = &engine.clients.s3;
    let healthy = Exporter::new(engine.store.clone(), engine.blobs(), Clock::system());
    let before = trained(&healthy, &request(), false).await;
    let manifest = before.manifest.clone().into_iter().collect::<Vec<_>>();
    let deaths = Faults::at_each_call(Fault::Died, async |faults| {
        let blobs = engine.failing_blobs(faults);
        let exporter = Exporter::new(engine.store.clone(), blobs, Clock::system());
        let answer = exporter.handle(&request(), None).await;
        assert_eq!(answer.is_err(), faults.died(), "{faults:?}");
        // What the manifest names is there and whole, of this run or of the one before.
        let mut named = Vec::new();
        hearback_local::export::copy(s3, &manifest, &mut named)
            .await
            .unwrap();
        let named: Value = serde_json::from_slice(&named).unwrap();
        for (kind, rows) in [("pairs", 6), ("labels", 9)] {
            let files: Vec<String> = serde_json::from_value(named[kind]["files"].clone()).unwrap();
            let mut lines = Vec::new();
            hearback_local::export::copy(s3, &files, &mut lines)
                .await
                .unwrap();
            let lines = lines.iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(lines, rows, "{faults:?}");
        }
    })
    .await;
    // A log for each turn, two files and the manifest.
    assert!(deaths >= 12 + 3, "{deaths}");
}

#[tokio::test]
async fn a_request_that_breaks_the_schema_is_told_where() {
    let told = told().await;
    let exporter = told.exporter();
    let refused = async |request: Value| {
        let Err(Failure::Invalid(errors)) = exporter.handle(&request, None).await else {
            panic!("taken: {request}")
        };
        let mut pointers: Vec<_> = errors.into_iter().map(|error| error.pointer).collect();
        pointers.sort_unstable();
        pointers.join(" ")
    };
    let asked = |training: Value| json!({"tenant": "acme", "training": training});
    let broken = asked(json!({"from": "yesterday", "days": 3}));
    let pointers = refused(broken).await;
    assert_eq!(pointers, "/training/days /training/from /training/project");
    let backwards = asked(json!({"project": "p", "from": "2026-01-02", "to": "2026-01-01"}));
    assert_eq!(refused(backwards).await, "/training/from");
    // Of other days it would skip rows of these.
    let past = Some(Utc::now() - TimeDelta::days(1));
    let Ok(Answer::Training(begun)) = exporter.handle(&request(), past).await else {
        panic!("training was asked for")
    };
    let today = Utc::now().date_naive();
    for training in [
        json!({"project": "billing"}),
        json!({"project": "order-service", "from": today}),
    ] {
        let mut other = asked(training);
        other["resume"] = json!(begun.resume);
        assert_eq!(refused(other).await, "/resume");
    }
}

#[tokio::test]
async fn the_command_prints_rows_or_writes_a_file_of_each_kind() {
    let folder = tempfile::tempdir().unwrap();
    let told = Told(TestApp::on(Some(folder.path().to_owned())).await);
    told.turn(("c", "t"), "question", "answer").await;
    told.say("ada", "t", json!({"signal": "edit", "reason": "better"}))
        .await;
    told.react("ada", ("c", "t"), json!("not_ok")).await;
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
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.success(), output.stdout, said)
    };
    let training = ["--training", "--project", "order-service"];
    let (done, printed, said) = run(&training).await;
    assert!(done, "{said}");
    assert!(said.starts_with("1 pairs and 1 labels from "), "{said}");
    let printed = String::from_utf8(printed).unwrap();
    let lines: Vec<_> = printed.lines().collect();
    let out = set.to_str().unwrap();
    let (done, silent, said) = run(&[training.as_slice(), &["--out", out]].concat()).await;
    assert!(done && silent.is_empty(), "{said}");
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
