//! The examples of `docs/what-feedback-means.md`. With `HEARBACK_WRITE_DOCS=1` their results are written.

use chrono::{TimeDelta, Utc};
use hearback_local::names::Names;
use hearback_tests::events::acceptance;
use hearback_tests::page::PageTable;
use hearback_tests::stored::Stored;
use hearback_tests::turns::{SIGNALS, conversation_path, path};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Set, TrainingApp};

const EXAMPLES: PageTable = PageTable {
    page: "what-feedback-means.md",
    table: "examples",
};

/// What a reaction ends with whose time is in the future.
const AHEAD: &str = " with a clock four minutes ahead";

/// The id of the event that rates a turn.
fn rating_of(turn: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, turn.as_bytes())
}

/// Gives the feedback that a step describes. The conversation and the turn have the same name.
async fn give(app: &TrainingApp, turn: &str, step: &str) {
    let (who, what) = step.split_once(": ").expect("who, and what");
    match (who, what.split_once(' ')) {
        ("ada's next message", _) => {
            let next = format!("{turn}-next");
            let message = what.trim_matches('"');
            app.turn((turn, &next), message, "You are welcome.").await;
        }
        ("ada withdraws", None) => {
            let token = app.0.token("ada");
            let signal = format!("{SIGNALS}?message_id=m-{turn}&signal={what}");
            assert_eq!(app.0.delete(&token, &signal).await.status, 204);
        }
        ("ada withdraws", Some(("the", "rating"))) => {
            let token = app.0.token("ada");
            let event = format!("/v1/feedback/{}", rating_of(turn));
            assert_eq!(app.0.delete(&token, &event).await.status, 204);
        }
        (user, Some(("reacts", reaction))) if reaction.ends_with(AHEAD) => {
            let reaction = reaction.trim_end_matches(AHEAD);
            let ts = Utc::now() + TimeDelta::minutes(4);
            let body = json!({"reaction": reaction, "ts": ts});
            let feedback = format!("{}/feedback", path(turn, turn));
            let token = app.0.token(user);
            assert_eq!(app.0.post(&token, &feedback, &body).await.status, 200);
        }
        (user, Some(("reacts", reaction))) => {
            app.react(user, (turn, turn), json!(reaction)).await;
        }
        (user, Some(("rates", rating))) => {
            let mut event = acceptance(user);
            event["feedbackId"] = json!(rating_of(turn));
            event["feedbackType"] = json!("rating");
            event["data"] = json!({"rating": rating.parse::<u8>().unwrap()});
            let context =
                json!({"projectId": "order-service", "conversationId": turn, "turnId": turn});
            event["context"] = context;
            event.as_object_mut().unwrap().remove("timestamp");
            let token = app.0.token(user);
            assert_eq!(app.0.submit(&token, &event).await.status, 202);
        }
        (user, Some((signal, "without training"))) => {
            let body = json!({"signal": signal, "exclude_from_training": true});
            app.rate(user, turn, body).await;
        }
        (user, None) => app.rate(user, turn, json!({"signal": what})).await,
        _ => panic!("unknown step: {step}"),
    }
}

#[tokio::test]
async fn the_examples_of_the_page_have_the_documented_results() {
    let page = EXAMPLES.read();
    let examples: Vec<_> = page
        .lines()
        .skip(2)
        .map(|row| row.split('|').nth(1).unwrap().trim())
        .collect();
    let app = TrainingApp::start().await;
    for (row, example) in examples.iter().enumerate() {
        let turn = format!("t{row}");
        app.turn((&turn, &turn), "How do I return it?", "Within 30 days.")
            .await;
        for step in example.split(", then ") {
            give(&app, &turn, step).await;
            // Feedback of one instant is sorted by its id.
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    }
    Stored::settled(&app.0.bundle.clients, &Names::default()).await;
    let set = app.export().await;
    let mut table =
        "| feedback on ada's turn | status | label | satisfaction_rate |\n|---|---|---|---|\n"
            .to_owned();
    for (row, example) in examples.iter().enumerate() {
        let [status, label, rate] = results(&app, &set, &format!("t{row}")).await;
        table += &format!("| {example} | {status} | {label} | {rate} |\n");
    }
    assert_eq!(EXAMPLES.read_or_write(&table), table);
}

/// The status, the label and the satisfaction rate of a turn, as the page shows them.
async fn results(app: &TrainingApp, set: &Set, turn: &str) -> [String; 3] {
    let shown = |value: &Value| match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let read = app.0.get(&app.0.token("ada"), &path(turn, turn)).await.body;
    let label = set
        .label_of(turn)
        .map_or(Value::Null, |row| row["label"].clone());
    let report = format!("{}/turns-with-feedbacks", conversation_path(turn));
    let analyst = app.0.token_of("analyst", "acme", "feedback:report");
    let turns = json!({"turn_ids": [turn]});
    let page = app.0.post(&analyst, &report, &turns).await.body;
    let rate = &page["turns"][0]["satisfaction_rate"];
    [&read["user_feedback_status"], &label, rate].map(shown)
}
