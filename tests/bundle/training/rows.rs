//! The rows of an export.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{TimeDelta, Utc};
use hearback_local::names::{DEFAULT_STACK, Names};
use hearback_tests::events::acceptance;
use hearback_tests::stored::Stored;
use hearback_tests::turns::{SIGNALS, path};
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{REJECTION, Set, TrainingApp, run_export, with_sample_feedback};

#[tokio::test]
async fn rows_have_the_format_of_trainers_and_name_their_source() {
    let app = with_sample_feedback().await;
    let set = app.export().await;
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
    // Each feedback id is an event of the ledger. No user is named.
    let ids = corrected["provenance"]["feedback_ids"].as_array().unwrap();
    assert_eq!(ids.len(), 2);
    for row in set.pairs.iter().chain(&set.labels) {
        let mut row = row.clone();
        // Hexadecimal ids may contain "ada".
        row["id"] = json!("");
        row["provenance"]["feedback_ids"] = json!([]);
        let text = row.to_string();
        assert!(!text.contains("ada") && !text.contains("eve"), "{text}");
        assert!(!text.contains("null"), "{text}");
    }
    for id in ids {
        let ada = app.0.token("ada");
        let event = app.0.outcome(&ada, id.as_str().unwrap()).await;
        assert_eq!(event["status"], "processed");
    }
}

#[tokio::test]
async fn an_event_about_a_turn_gives_a_label_and_a_correction_gives_a_pair() {
    let app = TrainingApp::start().await;
    app.turn(("c", "t"), "How many?", "There are 41, sir.")
        .await;
    app.turn(("c", "u"), "How few?", "There are 7, sir.").await;
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
    let complete = correction(json!({"correctedValue": "Forty-two."}));
    let mut excluded = correction(json!({"correctedValue": "excluded"}));
    excluded["privacyFlags"] = json!({"excludeFromTraining": true});
    let rated = json!({"feedbackType": "rating", "data": {"rating": 5}});
    let events = [
        about("t", "eve", part),
        about("t", "zoe", complete),
        about("t", "ike", excluded),
        about("t", "ike", correction(json!({"correctionType": "format"}))),
        about("u", "eve", rated),
    ];
    for event in &events {
        let token = app.0.token(event["userId"].as_str().unwrap());
        assert_eq!(
            app.0.submit(&token, event).await.status,
            StatusCode::ACCEPTED
        );
        let id = event["feedbackId"].as_str().unwrap();
        assert_eq!(app.0.outcome(&token, id).await["status"], "processed");
    }
    let set = app.export().await;
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
    let from_part = set
        .pairs
        .iter()
        .find(|pair| pair["chosen"] == chosen[1])
        .unwrap();
    assert_eq!(
        from_part["provenance"]["feedback_ids"],
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
async fn row_ids_are_the_same_in_every_run() {
    let app = with_sample_feedback().await;
    let (one, two) = (app.export().await, app.export().await);
    assert_eq!(one.ids(), two.ids());
    assert_eq!(one.ids().len(), 6);
    // The manifest names the files of the last completed run.
    let s3 = &app.0.bundle.clients.s3;
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
async fn feedback_excluded_from_training_is_not_exported() {
    let app = with_sample_feedback().await;
    for turn in [
        "excluded",
        "retracted",
        "cleared",
        "expired",
        "erased",
        "gone",
        "contested",
    ] {
        app.turn(("e", turn), "question", &format!("answer {turn}"))
            .await;
        app.react("eve", ("e", turn), json!("ok")).await;
        let edit = json!({"signal": "edit", "reason": format!("better {turn}")});
        app.rate("eve", turn, edit).await;
    }
    assert_eq!(app.export().await.ids().len(), 6 + 14);

    let edit = json!({"signal": "edit", "exclude_from_training": true});
    app.rate("eve", "excluded", edit).await;
    for turn in ["retracted", "cleared"] {
        let withdrawal = format!("{SIGNALS}?message_id=m-{turn}&signal=edit");
        let response = app.0.delete(&app.0.token("eve"), &withdrawal).await;
        assert_eq!(response.status, StatusCode::NO_CONTENT);
        app.react("eve", ("e", turn), Value::Null).await;
    }
    // Expired rows that the table has not deleted yet.
    let conversation = "CONV#acme#order-service#e";
    app.expire(conversation, "REACTION#expired#user#eve").await;
    app.expire("USER#acme#eve", "SIGNAL#m-expired#edit").await;
    app.expire(conversation, "TURN#gone").await;
    let bundle = &app.0.bundle;
    let erase = bundle.clients.dynamodb.delete_item();
    erase
        .table_name(Names::new(DEFAULT_STACK).table())
        .key("PK", AttributeValue::S(conversation.to_owned()))
        .key("SK", AttributeValue::S("TURN#erased".to_owned()))
        .send()
        .await
        .unwrap();
    app.react("ada", ("e", "contested"), json!("not_ok")).await;

    let set = app.export().await;
    let left: BTreeSet<_> = (set.pairs.iter().chain(&set.labels))
        .filter(|row| row["provenance"]["conversation_id"] == "e")
        .map(|row| (row["type"].clone().to_string(), row["rejected"].to_string()))
        .collect();
    // A label needs agreement, but the edit of one user is still a pair.
    let pair = ("\"pair\"".to_owned(), "\"answer contested\"".to_owned());
    assert_eq!(left, BTreeSet::from([pair]));
    let left_out = set.run.left_out;
    assert_eq!((left_out.excluded, left_out.contested), (1, 1));
    assert_eq!(left_out.without_turn, 2);
}

#[tokio::test]
async fn an_excluded_rejection_of_the_chosen_answer_leaves_out_its_pair_and_its_label() {
    let app = with_sample_feedback().await;
    let mut event = acceptance("ada");
    event["feedbackType"] = json!("rejection");
    event["data"] = json!({});
    event["context"] = json!({"projectId": "order-service", "conversationId": "c", "turnId": "t2"});
    event["privacyFlags"] = json!({"excludeFromTraining": true});
    let ada = app.0.token("ada");
    let response = app.0.submit(&ada, &event).await;
    assert_eq!(response.status, StatusCode::ACCEPTED);
    Stored::settled(&app.0.bundle.clients, &Names::default()).await;
    let set = app.export().await;
    let sources: Vec<_> = set.pairs.iter().map(|pair| &pair["source"]).collect();
    assert_eq!(sources, ["edit"]);
    assert_eq!(set.label_of("t2"), None);
    assert_eq!(set.label_of("t1").unwrap()["label"], false);
}

#[tokio::test]
async fn an_excluded_event_without_a_verdict_also_excludes_its_users_reaction() {
    let app = TrainingApp::start().await;
    let ada = app.0.token("ada");
    for (turn, kind, channel) in [
        ("t0", "", ""),
        ("t1", "comment", "explicit"),
        ("t2", "rejection", "implicit"),
        ("t3", "dwell-time", "implicit"),
    ] {
        app.turn(("c", turn), "How many?", "41.").await;
        let reaction = json!({"reaction": "ok"});
        let at = format!("{}/feedback", path("c", turn));
        assert_eq!(app.0.post(&ada, &at, &reaction).await.status, 200);
        if kind.is_empty() {
            continue;
        }
        let mut event = acceptance("ada");
        event["feedbackType"] = json!(kind);
        event["feedbackChannel"] = json!(channel);
        event["data"] = json!({"comment": "Do not learn from this."});
        event["context"] =
            json!({"projectId": "order-service", "conversationId": "c", "turnId": turn});
        event["privacyFlags"] = json!({"excludeFromTraining": true});
        let submitted = app.0.submit(&ada, &event).await;
        assert_eq!(submitted.status, StatusCode::ACCEPTED, "{}", submitted.body);
    }
    Stored::settled(&app.0.bundle.clients, &Names::default()).await;
    let set = app.export().await;
    assert_eq!(set.label_of("t0").unwrap()["label"], true);
    for turn in ["t1", "t2", "t3"] {
        assert_eq!(set.label_of(turn), None, "{turn}: {:?}", set.labels);
    }
    assert_eq!(set.run.left_out.excluded, 3);
}

#[tokio::test]
async fn feedback_of_another_day_is_not_exported_but_contradicts_a_label() {
    let app = TrainingApp::start().await;
    let yesterday = Utc::now() - TimeDelta::days(1);
    for turn in ["t", "u"] {
        app.turn(("c", turn), "How many?", "41.").await;
        let mut event = acceptance("ada");
        event["context"] =
            json!({"projectId": "order-service", "conversationId": "c", "turnId": turn});
        event["timestamp"] = json!(yesterday);
        let ada = app.0.token("ada");
        assert_eq!(
            app.0.submit(&ada, &event).await.status,
            StatusCode::ACCEPTED
        );
    }
    app.rate("ada", "u", json!({"signal": "unsafe"})).await;
    Stored::settled(&app.0.bundle.clients, &Names::default()).await;
    let day = yesterday.date_naive();
    let training = json!({"project": "order-service", "from": day, "to": day});
    let request = json!({"tenant": "acme", "training": training});
    let run = run_export(&app.exporter(), &request, false).await;
    let set = Set::of(run, &app.0.bundle.clients.s3).await;
    assert_eq!(set.label_of("t").unwrap()["label"], true);
    assert_eq!(set.label_of("u"), None, "{:?}", set.labels);
    assert_eq!(set.run.left_out.contested, 1);
}

#[tokio::test]
async fn only_feedback_of_the_requested_days_and_project_is_exported() {
    let app = with_sample_feedback().await;
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
        let run = run_export(&app.exporter(), &request, false).await;
        assert_eq!(run.pairs.rows + run.labels.rows, rows, "{project} {from}");
    }
}
