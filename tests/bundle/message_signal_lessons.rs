//! The effects of message signals: learning, and retraction.

use futures::future::join_all;
use hearback_domain::learning::publication::Subject;
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::functions::stored_event;
use hearback_tests::ledger::{events, ledger, of_status};
use serde_json::{Value, json};

use crate::message_signals::{ALL, rows, signal, submit_signal, with_message, withdraw};

/// The event of a signal in the ledger: channel, type and learning signals.
async fn event_of(name: &str) -> Value {
    let (app, token) = with_message().await;
    let body = json!({"message_id": "m", "signal": name, "reason": "because"});
    submit_signal(&app, &token, body).await;
    let events = ledger(&app, &token, 1).await;
    let event = &events[0];
    assert_eq!(event["core"]["artifactId"], "m");
    assert_eq!(event["core"]["context"]["artifactType"], "answer");
    assert_eq!(event["dedupeKey"], event["feedbackId"]);
    let stored = stored_event(&app.bundle.store, &event["feedbackId"]).await;
    let stored = stored.unwrap();
    let signal = &event["signals"][0];
    json!({
        "channel": event["core"]["channel"],
        "type": event["core"]["feedbackType"],
        "reward": [signal["reward"]["value"], signal["reward"]["confidence"]],
        "policy": signal["policyUpdate"]["adjustmentType"],
        "comment": stored.text.comment,
        "corrected": stored.text.corrected_value,
    })
}

#[tokio::test]
async fn each_message_signal_gives_the_documented_event_and_learning_signals() {
    let event_of = join_all(ALL.map(event_of)).await;
    let reward = |channel: &str, kind: &str, value: f64, confidence: f64, comment: Value| {
        json!({
            "channel": channel, "type": kind, "reward": [value, confidence], "policy": null,
            "comment": comment, "corrected": null,
        })
    };
    let acceptance = "artifact-acceptance";
    assert_eq!(
        event_of,
        [
            reward("explicit", acceptance, 0.75, 0.8, Value::Null),
            reward("explicit", acceptance, -0.75, 0.8, Value::Null),
            reward("explicit", "rejection", -0.75, 0.84, json!("because")),
            reward("explicit", "rejection", -0.75, 0.84, json!("because")),
            json!({
                "channel": "correction", "type": "modification", "reward": [null, null],
                "policy": "feature_add", "comment": null, "corrected": "because",
            }),
            reward("implicit", "rejection", -0.75, 0.3, Value::Null),
        ]
    );
}

#[tokio::test]
async fn feedback_excluded_from_training_gives_no_learning_signals() {
    let (app, token) = with_message().await;
    let body = json!({"message_id": "m", "signal": "helpful", "exclude_from_training": true});
    submit_signal(&app, &token, body).await;
    let events = ledger(&app, &token, 1).await;
    assert_eq!(events[0]["signals"], json!([]));
    // A repeat without the member keeps it.
    submit_signal(&app, &token, signal("helpful")).await;
    assert_eq!(
        rows(&app, &token, "").await[0]["exclude_from_training"],
        true
    );
    assert_eq!(ledger(&app, &token, 1).await.len(), 1);
}

#[tokio::test]
async fn replaced_and_withdrawn_signals_are_retracted_from_subscribers() {
    let (app, token) = with_message().await;
    let edit = |text: &str| json!({"message_id": "m", "signal": "edit", "reason": text});
    submit_signal(&app, &token, edit("one")).await;
    submit_signal(&app, &token, edit("two")).await;
    // A repeat is the same act.
    submit_signal(&app, &token, edit("two")).await;
    let events = eventually(|| async {
        let events = ledger(&app, &token, 2).await;
        (of_status(&events, "retracted").len() == 1).then_some(events)
    })
    .await;
    let (replaced, current) = (
        of_status(&events, "retracted")[0],
        of_status(&events, "processed")[0],
    );
    assert_eq!(replaced["replacedBy"], current["feedbackId"]);
    withdraw(&app, &token, "edit").await;
    eventually(|| async {
        let events = ledger(&app, &token, 2).await;
        (of_status(&events, "retracted").len() == 2).then_some(())
    })
    .await;
    let queue = app
        .bundle
        .queues
        .subject(Subject::FeedbackProcessed)
        .unwrap();
    let retraction = eventually(|| async {
        let received = app.bundle.clients.sqs.receive_message().queue_url(queue);
        let received = received.max_number_of_messages(10).visibility_timeout(0);
        let messages = received.send().await.unwrap().messages.unwrap_or_default();
        let bodies: Vec<Value> = messages
            .iter()
            .map(|message| serde_json::from_str(message.body().unwrap()).unwrap())
            .collect();
        bodies
            .into_iter()
            .find(|body| body["eventType"] == "feedback.retracted" && body["reason"] == "cleared")
    })
    .await;
    assert_eq!(retraction["feedbackId"], current["feedbackId"]);
    // Submitted again, it is a new act.
    submit_signal(&app, &token, edit("two")).await;
    let events = ledger(&app, &token, 3).await;
    assert_eq!(of_status(&events, "processed").len(), 1);
}

#[tokio::test]
async fn concurrent_submissions_and_withdrawals_leave_a_state_that_matches_the_ledger() {
    let (app, token) = with_message().await;
    let (app, token) = (&app, token.as_str());
    join_all((0..24_u32).map(|number| async move {
        let response = if number % 3 == 0 {
            withdraw(app, token, "not_helpful").await
        } else {
            submit_signal(app, token, signal("not_helpful")).await
        };
        assert!(response.status.is_success(), "{}", response.status);
    }))
    .await;
    for last in ["withdrawn", "submitted"] {
        let expected = match last {
            "submitted" => {
                submit_signal(app, token, signal("not_helpful")).await;
                1
            }
            _ => {
                withdraw(app, token, "not_helpful").await;
                0
            }
        };
        assert_eq!(rows(app, token, "").await.len(), expected, "{last}");
        // The current event of the ledger is that of the current row.
        eventually(|| async {
            let row = rows(app, token, "").await.pop();
            let current = current_events(app, token).await;
            let act = row.map(|row| row["feedback_id"].clone());
            (current == act.into_iter().collect::<Vec<_>>()).then_some(())
        })
        .await;
    }
}

/// The events that are not retracted.
async fn current_events(app: &TestApp, token: &str) -> Vec<Value> {
    let mut events = events(app, token).await;
    events.retain(|event| event["status"] != "retracted");
    let ids = events
        .into_iter()
        .map(|event| event["core"]["feedbackId"].clone());
    ids.collect()
}

#[tokio::test]
async fn others_see_that_preferences_changed_but_not_from_which_act() {
    let (app, ada) = with_message().await;
    submit_signal(&app, &ada, signal("not_helpful")).await;
    ledger(&app, &ada, 1).await;
    let back_end = app.token_of("back-end", "acme", "feedback:on-behalf");
    let history = "/v1/preferences/ada/history";
    let own = app.get(&ada, history).await.body;
    assert_eq!(
        own["versions"][0]["cause"]["feedbackIds"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let seen = app.get(&back_end, history).await.body;
    assert_eq!(
        seen["versions"][0]["cause"],
        json!({"kind": "feedback", "feedbackIds": []})
    );
}
