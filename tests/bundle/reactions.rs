//! `POST …/turns/{turn_id}/feedback`, over HTTP, and its effects.

mod order;

use futures::future::join_all;
use hearback_tests::app::{TestApp, TestResponse, eventually};
use hearback_tests::events::acceptance;
use hearback_tests::ledger::{events, everything, ledger, of_status};
use hearback_tests::turns::{PERIOD, conversation_path, path, turn_body};
use reqwest::StatusCode;
use serde_json::{Value, json};

/// A bundle in which ada has the turn `t` of the conversation `c`.
async fn with_turn() -> (TestApp, String) {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let body = json!({
        "user": {"text": "a"}, "assistant": {"text": "b"}, "track_id": "A",
        "user_type": "privileged", "bundle_id": "with.codegen", "artifact_type": "answer",
        "turn_log": {"text": "log", "entries": [{"type": "tool"}]}
    });
    let response = app.put(&token, &path("c", "t"), &body).await;
    assert_eq!(response.status, StatusCode::CREATED);
    (app, token)
}

async fn react(app: &TestApp, token: &str, body: Value) -> TestResponse {
    let path = format!("{}/feedback", path("c", "t"));
    app.post(token, &path, &body).await
}

/// The current reactions, as artifacts.
async fn current_reactions(app: &TestApp, token: &str) -> Vec<Value> {
    let path = format!("{}/turns-with-feedbacks", conversation_path("c"));
    let report = app.post(token, &path, &json!({"days": 3650})).await;
    assert_eq!(report.status, StatusCode::OK, "{:?}", report.body);
    let turns = report.body["turns"].as_array().unwrap();
    turns
        .iter()
        .flat_map(|turn| turn["reactions"].as_array().unwrap().clone())
        .collect()
}

#[tokio::test]
async fn a_reaction_is_added_replaced_and_cleared() {
    let (app, token) = with_turn().await;
    let added = react(
        &app,
        &token,
        json!({"reaction": "ok", "text": "Great explanation!", "ts": "2025-11-06T15:30:00Z"}),
    )
    .await;
    assert_eq!(added.status, StatusCode::OK);
    let rn = added.body["rn"].as_str().unwrap();
    let start = "ef:acme:order-service:c:t:artifact:artifact-2025-11-06T15-30-00-";
    let digits = rn.strip_prefix(start).unwrap_or_else(|| panic!("{rn}"));
    assert!(digits.len() == 8 && digits.chars().all(|c| c.is_ascii_hexdigit()));
    assert_eq!(
        added.body,
        json!({
            "success": true, "turn_id": "t", "reaction": "ok",
            "message": "Feedback recorded.", "cleared": false, "applied": true,
            "feedback_id": added.body["feedback_id"], "rn": rn
        })
    );
    let first = added.body["feedback_id"].as_str().unwrap();
    assert_eq!(app.outcome(&token, first).await["status"], "processed");
    let artifacts = current_reactions(&app, &token).await;
    assert_eq!(
        artifacts,
        [json!({
            "reaction": {
                "turn_id": "t", "text": "Great explanation!", "confidence": 1.0,
                "ts": "2025-11-06T15:30:00Z", "reaction": "ok", "origin": "user"
            },
            "meta": {
                "rn": rn, "turn_id": "t", "track_id": "A", "user_type": "privileged",
                "kind": "turn.log.reaction"
            },
            "user_id": "ada", "conversation_id": "c", "bundle_id": "with.codegen",
            "tags": ["artifact:turn.log.reaction", "turn:t", "origin:user", "track:A"]
        })]
    );

    let replaced = react(&app, &token, json!({"reaction": "not_ok"})).await;
    assert_eq!(replaced.status, StatusCode::OK);
    let artifacts = current_reactions(&app, &token).await;
    assert_eq!(artifacts.len(), 1);
    assert_eq!(artifacts[0]["reaction"]["reaction"], "not_ok");

    let cleared = react(&app, &token, json!({"reaction": null})).await;
    assert_eq!(cleared.body["cleared"], true);
    let withdrawn = &cleared.body["feedback_id"];
    assert_eq!(
        *withdrawn, replaced.body["feedback_id"],
        "the event of the cleared reaction is withdrawn"
    );
    assert_ne!(*withdrawn, added.body["feedback_id"]);
    assert_eq!(current_reactions(&app, &token).await, Vec::<Value>::new());
    let nothing = react(&app, &token, json!({"reaction": null})).await;
    assert_eq!(nothing.status, StatusCode::OK);
    assert_eq!(nothing.body["cleared"], false);
    assert_eq!(nothing.body["rn"], Value::Null);
    assert_eq!(nothing.body["feedback_id"], Value::Null);
}

#[tokio::test]
async fn every_invalid_member_is_named() {
    let (app, token) = with_turn().await;
    let response = react(
        &app,
        &token,
        json!({"reaction": "great", "text": "x".repeat(1001), "ts": "2999-01-01T00:00:00Z", "mood": 1}),
    )
    .await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    let pointers: Vec<_> = response.body["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["pointer"].as_str().unwrap())
        .collect();
    assert_eq!(pointers, ["/mood", "/reaction", "/text", "/ts"]);
    let response = react(&app, &token, json!({"text": "no reaction"})).await;
    assert_eq!(response.body["errors"][0]["pointer"], "/reaction");
}

#[tokio::test]
async fn a_confidence_out_of_range_is_one_error_and_not_also_missing() {
    let (app, _) = with_turn().await;
    let back_end = app.token_of("back-end", "acme", "feedback:on-behalf");
    let body = json!({"reaction": "ok", "origin": "machine", "confidence": 1.1});
    let response = react(&app, &back_end, body).await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    let expected = json!([{"pointer": "/confidence", "detail": "must be a number from 0 to 1"}]);
    assert_eq!(response.body["errors"], expected);
}

#[tokio::test]
async fn a_reaction_to_an_unknown_turn_writes_nothing() {
    let (app, token) = with_turn().await;
    let before = everything(&app).await;
    let path = format!("{}/feedback", path("c", "unknown"));
    let response = app.post(&token, &path, &json!({"reaction": "ok"})).await;
    assert_eq!(response.status, StatusCode::NOT_FOUND);
    assert_eq!(
        response.body["detail"],
        "There is no such turn, or it is not yours."
    );
    assert_eq!(everything(&app).await, before);
}

#[tokio::test]
async fn a_machine_reaction_never_hides_the_users_own() {
    let (app, token) = with_turn().await;
    react(&app, &token, json!({"reaction": "ok"})).await;
    let inferred =
        json!({"reaction": "not_ok", "origin": "machine", "confidence": 0.9, "text": "no"});
    let forbidden = react(&app, &token, inferred.clone()).await;
    assert_eq!(forbidden.status, StatusCode::FORBIDDEN);
    let agent = app.token_of("agent", "acme", "feedback:on-behalf");
    assert_eq!(
        react(&app, &agent, inferred.clone()).await.status,
        StatusCode::OK
    );
    let mut other = inferred.clone();
    other["text"] = json!("still no");
    react(&app, &agent, other).await;
    // A repeat.
    react(&app, &agent, inferred).await;
    let unsure = json!({"reaction": "not_ok", "origin": "machine", "confidence": 0.69});
    let rejected = react(&app, &agent, unsure).await;
    assert_eq!(rejected.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(rejected.body["error"], "low_confidence");

    let artifacts = current_reactions(&app, &token).await;
    let origins: Vec<_> = artifacts
        .iter()
        .map(|artifact| artifact["reaction"]["origin"].as_str().unwrap())
        .collect();
    assert_eq!(origins.iter().filter(|o| **o == "machine").count(), 2);
    assert_eq!(origins.iter().filter(|o| **o == "user").count(), 1);
}

#[tokio::test]
async fn a_changed_reaction_is_a_new_act_that_retracts_the_old_one() {
    let (app, token) = with_turn().await;
    for verdict in ["ok", "not_ok", "ok"] {
        react(&app, &token, json!({"reaction": verdict})).await;
    }
    // A repeat is not learned from.
    react(&app, &token, json!({"reaction": "ok"})).await;
    let events = eventually(|| async {
        let events = ledger(&app, &token, 3).await;
        (of_status(&events, "retracted").len() == 2).then_some(events)
    })
    .await;
    let [current] = of_status(&events, "processed")[..] else {
        panic!("{events:?}")
    };
    assert_eq!(current["core"]["channel"], "explicit");
    assert_eq!(current["core"]["feedbackType"], "artifact-acceptance");
    assert_eq!(current["core"]["artifactId"], "t");
    assert_eq!(current["dedupeKey"], current["feedbackId"]);
    assert_eq!(current["core"]["context"]["artifactType"], "answer");
    for retracted in of_status(&events, "retracted") {
        // The response still has the signals of a retracted event.
        assert_eq!(retracted["signals"][0]["signalType"], "reward");
        assert!(retracted["replacedBy"].is_string());
    }
    react(&app, &token, json!({"reaction": null})).await;
    eventually(|| async {
        let events = ledger(&app, &token, 3).await;
        (of_status(&events, "retracted").len() == 3).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_machine_reaction_has_the_confidence_of_its_detection() {
    let (app, token) = with_turn().await;
    let agent = app.token_of("agent", "acme", "feedback:on-behalf");
    let inferred = json!({"reaction": "not_ok", "origin": "machine", "confidence": 0.85});
    react(&app, &agent, inferred).await;
    let events = ledger(&app, &token, 1).await;
    assert_eq!(events[0]["core"]["channel"], "implicit");
    assert_eq!(events[0]["core"]["userId"], "ada");
    assert_eq!(events[0]["signals"][0]["reward"]["confidence"], 0.85);
    assert_eq!(events[0]["signals"][0]["reward"]["value"], -0.75);
}

#[tokio::test]
async fn concurrent_mirrors_are_both_kept_and_change_nothing_else_of_the_turn() {
    let (app, _) = with_turn().await;
    let key = |item: &str| item.contains("\"TURN#t\"");
    let row = |items: &[String]| items.iter().find(|item| key(item)).unwrap().clone();
    let without_uri = |row: &str| -> Vec<String> {
        let lines = row.lines().filter(|line| !line.contains("hosted_uri"));
        lines.map(ToOwned::to_owned).collect()
    };
    let before = row(&everything(&app).await.0);
    let tokens: Vec<_> = (0..8).map(|n| app.token(&format!("user-{n}"))).collect();
    let posts = tokens.iter().enumerate().map(|(n, token)| {
        let body = json!({"reaction": "ok", "text": format!("from {n}"), "mirror": true});
        react(&app, token, body)
    });
    for response in join_all(posts).await {
        assert_eq!(response.status, StatusCode::OK);
    }
    let token = app.token_of("boss", "acme", "feedback:report");
    let log = eventually(|| async {
        let read = app.get(&token, &path("c", "t")).await;
        let feedbacks = read.body["feedbacks"].as_array().unwrap().len();
        (feedbacks == 8).then(|| read.body["turn_log"].clone())
    })
    .await;
    // The entry of the tool, and one for each reaction.
    assert_eq!(log["entries"].as_array().unwrap().len(), 9);
    assert!(
        log["text"]
            .as_str()
            .unwrap()
            .starts_with("log\n[feedback user ")
    );
    let (items, objects) = everything(&app).await;
    let after = row(&items);
    assert_ne!(before, after);
    assert_eq!(without_uri(&before), without_uri(&after));
    eventually(|| async {
        let (_, objects) = everything(&app).await;
        (objects.len() == 1).then_some(())
    })
    .await;
    drop(objects);

    // A clear removes the feedback from the list and adds an entry.
    react(&app, &tokens[0], json!({"reaction": null, "mirror": true})).await;
    eventually(|| async {
        let read = app.get(&token, &path("c", "t")).await.body;
        let feedbacks = read["feedbacks"].as_array().unwrap().len();
        let entries = read["turn_log"]["entries"].as_array().unwrap().len();
        (feedbacks == 7 && entries == 10).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_reaction_is_in_the_report_once_its_request_returns() {
    let (app, token) = with_turn().await;
    let second = turn_body("ok", "d");
    app.put(&token, &path("c", "u"), &second).await;
    react(&app, &token, json!({"reaction": "ok", "text": "yes"})).await;
    let neutral = format!("{}/feedback", path("c", "u"));
    app.post(&token, &neutral, &json!({"reaction": "neutral"}))
        .await;
    let window = json!({
        "start": "2025-01-01T00:00:00Z", "end": "2999-01-01T00:00:00Z", "include_turns": true
    });
    let report = app.post(&token, PERIOD, &window).await;
    assert_eq!(report.status, StatusCode::OK, "{:?}", report.body);
    let item = &report.body["items"][0];
    assert_eq!(report.body["items"].as_array().unwrap().len(), 1);
    assert_eq!(item["conversation_id"], "c");
    assert_eq!(
        item["feedback_counts"],
        json!({"total": 2, "user": 2, "machine": 0, "ok": 1, "not_ok": 0, "neutral": 1})
    );
    assert_eq!(item["satisfaction_rate"], 0.5);
    assert_eq!(item["started_at"], Value::Null);
    let turns = item["turns"].as_array().unwrap();
    assert_eq!(turns[0]["turn_id"], "u", "the latest first");
    assert_eq!(turns[1]["feedbacks"][0]["text"], "yes");
    assert!(
        turns[1]["feedbacks"][0]["rn"]
            .as_str()
            .unwrap()
            .starts_with("ef:acme:")
    );
    assert_eq!(report.body["next_cursor"], Value::Null);
}

#[tokio::test]
async fn a_turn_log_hides_the_feedback_of_other_users() {
    let (app, ada) = with_turn().await;
    let eve = app.token("eve");
    for (token, text) in [(&ada, "mine"), (&eve, "theirs")] {
        let body = json!({"reaction": "not_ok", "text": text, "mirror": true});
        react(&app, token, body).await;
    }
    let all = app.token_of("boss", "acme", "feedback:report");
    let full = eventually(|| async {
        let read = app.get(&all, &path("c", "t")).await.body;
        (read["feedbacks"].as_array()?.len() == 2).then_some(read)
    })
    .await;
    assert!(full.to_string().contains("theirs"));
    let own = app.get(&ada, &path("c", "t")).await.body;
    assert_eq!(own["feedbacks"].as_array().unwrap().len(), 1);
    assert!(own.to_string().contains("mine"));
    let seen = own.to_string();
    assert!(!seen.contains("theirs") && !seen.contains("eve"), "{seen}");
    // Cleared feedback is removed from the list, with or without `mirror`.
    react(&app, &eve, json!({"reaction": null})).await;
    eventually(|| async {
        let read = app.get(&all, &path("c", "t")).await.body;
        (read["feedbacks"].as_array()?.len() == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_event_cannot_take_the_derived_id_of_a_reaction() {
    // Equal machine reactions have the same id in one bundle, but not in another.
    let inferred = json!({"reaction": "not_ok", "origin": "machine", "confidence": 0.85});
    let (other_app, owner) = with_turn().await;
    let machine = |app: &TestApp| app.token_of("ada", "acme", "feedback:on-behalf");
    react(&other_app, &machine(&other_app), inferred.clone()).await;
    let name = ledger(&other_app, &owner, 1).await[0]["feedbackId"].clone();

    let (app, owner) = with_turn().await;
    let mut own = acceptance("eve");
    own["feedbackId"] = name;
    let accepted = app.submit(&app.token("eve"), &own).await;
    assert_eq!(accepted.status, StatusCode::ACCEPTED);
    react(&app, &machine(&app), inferred).await;
    let learned = eventually(|| async {
        let events = events(&app, &owner).await;
        let of_ada = |event: &&Value| event["core"]["userId"] == "ada";
        let found = events.iter().find(of_ada).cloned();
        found.filter(|event| event["processedAt"].is_string())
    })
    .await;
    assert_eq!(learned["status"], "processed", "{learned}");
}
