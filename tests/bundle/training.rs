//! The training export: rows in the format of trainers, without feedback that is excluded from training.

mod meaning;
mod requests;
mod rows;
mod runs;

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{TimeDelta, Utc};
use hearback_export::{Answer, Exporter, TrainingSet};
use hearback_lambda::clock::Clock;
use hearback_local::names::{DEFAULT_STACK, Names};
use hearback_tests::app::TestApp;
use hearback_tests::turns::{SIGNALS, message, path};
use reqwest::StatusCode;
use serde_json::{Value, json};

/// A bundle with helpers for turns and feedback.
struct TrainingApp(TestApp);

impl TrainingApp {
    async fn start() -> Self {
        Self(TestApp::start().await)
    }

    /// Registers a turn of ada with the message `m-<turn>`.
    async fn turn(&self, (conversation, turn): (&str, &str), question: &str, answer: &str) {
        let body = message(&format!("m-{turn}"), question, answer);
        let path = path(conversation, turn);
        let registered = self.0.put(&self.0.token("ada"), &path, &body).await;
        assert_eq!(registered.status, StatusCode::CREATED);
    }

    async fn react(&self, user: &str, (conversation, turn): (&str, &str), reaction: Value) {
        let path = format!("{}/feedback", path(conversation, turn));
        let body = json!({"reaction": reaction});
        let response = self.0.post(&self.0.token(user), &path, &body).await;
        assert_eq!(response.status, StatusCode::OK);
    }

    async fn rate(&self, user: &str, turn: &str, mut body: Value) {
        body["message_id"] = json!(format!("m-{turn}"));
        let response = self.0.post(&self.0.token(user), SIGNALS, &body).await;
        assert!(response.status.is_success(), "{}", response.status);
    }

    fn exporter(&self) -> Exporter {
        let bundle = &self.0.bundle;
        Exporter::new(bundle.store.clone(), bundle.blobs.clone(), Clock::system())
    }

    /// Runs an export to its end, and reads its rows.
    async fn export(&self) -> Set {
        let run = run_export(&self.exporter(), &request(), false).await;
        Set::of(run, &self.0.bundle.clients.s3).await
    }

    /// Expires an item in the table itself, without any function.
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

/// A request for a few days; a year takes longer and has the same rows.
fn request() -> Value {
    let from = Utc::now().date_naive() - TimeDelta::days(9);
    json!({"tenant": "acme", "training": {"project": "order-service", "from": from}})
}

/// Runs an export to its end; with `with_timeouts` the deadline passes after each step.
async fn run_export(exporter: &Exporter, request: &Value, with_timeouts: bool) -> TrainingSet {
    let until = with_timeouts.then(|| Utc::now() - TimeDelta::days(1));
    let mut request = request.clone();
    for invocation in 1.. {
        let Answer::Training(run) = exporter.handle(&request, until).await.unwrap() else {
            panic!("expected training")
        };
        let Some(resume) = &run.resume else {
            assert!(!with_timeouts || invocation > 5, "{invocation}");
            return run;
        };
        request["resume"] = json!(resume);
    }
    unreachable!()
}

/// The rows that a run wrote.
struct Set {
    pairs: Vec<Value>,
    labels: Vec<Value>,
    run: TrainingSet,
}

impl Set {
    async fn of(run: TrainingSet, s3: &aws_sdk_s3::Client) -> Self {
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

/// A rejected turn, the accepted one after it, and one with an edit and another user's signal.
async fn with_sample_feedback() -> TrainingApp {
    let app = TrainingApp::start().await;
    app.turn(("c", "t1"), "laptops under $1000", "business laptops")
        .await;
    app.turn(("c", "t2"), REJECTION, "gaming laptops").await;
    app.turn(("c", "t3"), "Thanks!", "You are welcome.").await;
    app.turn(("d", "t4"), "How do I return it?", "Within 30 days.")
        .await;
    let edit = json!({"signal": "edit", "reason": "Within 60 days."});
    app.rate("ada", "t4", edit).await;
    app.rate("eve", "t4", json!({"signal": "not_helpful"}))
        .await;
    app.react("eve", ("c", "t3"), json!("ok")).await;
    app
}
