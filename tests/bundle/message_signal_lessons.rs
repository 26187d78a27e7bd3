//! What follows from a signal on a message: what is learned from it, and that it is withdrawn.

use futures::future::join_all;
use hearback_domain::publication::Subject;
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::functions::stored_event;
use hearback_tests::ledger::{events, ledger, of_status};
use serde_json::{Value, json};

use crate::message_signals::{ALL, rows, say, signal, take_back, with_message};

/// What a signal is in the ledger: channel, type, and what it teaches.
async fn taught(name: &str) -> Value {
    let (app, token) = with_message().await;
    let body = json!({"message_id": "m", "signal": name, "reason": "because"});
    say(&app, &token, body).await;
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
async fn each_signal_teaches_what_the_one_ledger_says() {
    let taught = join_all(ALL.map(taught)).await;
    let reward = |channel: &str, kind: &str, value: f64, confidence: f64, comment: Value| {
        json!({
            "channel": channel, "type": kind, "reward": [value, confidence], "policy": null,
            "comment": comment, "corrected": null,
        })
    };
    let acceptance = "artifact-acceptance";
    assert_eq!(
        taught,
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
async fn what_is_excluded_from_training_teaches_no_model() {
    let (app, token) = with_message().await;
    let body = json!({"message_id": "m", "signal": "helpful", "exclude_from_training": true});
    say(&app, &token, body).await;
    let events = ledger(&app, &token, 1).await;
    assert_eq!(events[0]["signals"], json!([]));
    // A repeat that does not say keeps it.
    say(&app, &token, signal("helpful")).await;
    assert_eq!(
        rows(&app, &token, "").await[0]["exclude_from_training"],
        true
    );
    assert_eq!(ledger(&app, &token, 1).await.len(), 1);
}

#[tokio::test]
async fn what_was_replaced_or_taken_back_is_withdrawn_from_those_who_heard() {
    let (app, token) = with_message().await;
    let edit = |text: &str| json!({"message_id": "m", "signal": "edit", "reason": text});
    say(&app, &token, edit("one")).await;
    say(&app, &token, edit("two")).await;
    // The same again is no act.
    say(&app, &token, edit("two")).await;
    let events = eventually(|| async {
        let events = ledger(&app, &token, 2).await;
        (of_status(&events, "retracted").len() == 1).then_some(events)
    })
    .await;
    let (replaced, stands) = (
        of_status(&events, "retracted")[0],
        of_status(&events, "processed")[0],
    );
    assert_eq!(replaced["replacedBy"], stands["feedbackId"]);
    take_back(&app, &token, "edit").await;
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
    let heard = eventually(|| async {
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
    assert_eq!(heard["feedbackId"], stands["feedbackId"]);
    // Said anew, it is an act of its own.
    say(&app, &token, edit("two")).await;
    let events = ledger(&app, &token, 3).await;
    assert_eq!(of_status(&events, "processed").len(), 1);
}

#[tokio::test]
async fn racing_posts_and_deletes_leave_one_state_and_the_ledger_agrees() {
    let (app, token) = with_message().await;
    let (app, token) = (&app, token.as_str());
    join_all((0..24_u32).map(|number| async move {
        let answer = if number % 3 == 0 {
            take_back(app, token, "not_helpful").await
        } else {
            say(app, token, signal("not_helpful")).await
        };
        assert!(answer.status.is_success(), "{}", answer.status);
    }))
    .await;
    for last in ["taken back", "said"] {
        let expected = match last {
            "said" => {
                say(app, token, signal("not_helpful")).await;
                1
            }
            _ => {
                take_back(app, token, "not_helpful").await;
                0
            }
        };
        assert_eq!(rows(app, token, "").await.len(), expected, "{last}");
        // What stands in the ledger is what stands in the row.
        eventually(|| async {
            let row = rows(app, token, "").await.pop();
            let standing = standing_events(app, token).await;
            let act = row.map(|row| row["feedback_id"].clone());
            (standing == act.into_iter().collect::<Vec<_>>()).then_some(())
        })
        .await;
    }
}

/// The events that nothing withdrew.
async fn standing_events(app: &TestApp, token: &str) -> Vec<Value> {
    let mut events = events(app, token).await;
    events.retain(|event| event["status"] != "retracted");
    let ids = events
        .into_iter()
        .map(|event| event["core"]["feedbackId"].clone());
    ids.collect()
}

#[tokio::test]
async fn others_see_that_preferences_learned_and_not_from_which_act() {
    let (app, ada) = with_message().await;
    say(&app, &ada, signal("not_helpful")).await;
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
