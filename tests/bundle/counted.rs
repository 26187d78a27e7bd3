//! Message signals and events about a turn: how they count for its status and in reports, and what others see of
//! them.

mod inherited;
mod latest;
mod moved;
mod others;
mod planner_context;
mod withdrawal;

use hearback_local::names::Names;
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::events::{acceptance, id};
use hearback_tests::stored::Stored;
use hearback_tests::turns::{
    BY_STATUS, PERIOD, SIGNALS, conversation_path, message, path, turn_body,
};
use reqwest::StatusCode;
use serde_json::{Value, json};

const SEARCH: &str = "/conversations/acme/order-service/strategies/search";
const QUERY: &str = "gaming laptops under $1000";

/// A bundle in which ada has the turn `t` of the conversation `c`, whose answer is the message `m`.
async fn with_turn() -> (TestApp, String) {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let mut turn = message("m", QUERY, "Here are three business laptops.");
    turn["ts"] = json!("2026-01-04T10:00:00Z");
    turn["strategy"] = json!("commerce_search");
    let response = app.put(&ada, &path("c", "t"), &turn).await;
    assert_eq!(response.status, StatusCode::CREATED, "{}", response.body);
    (app, ada)
}

/// Registers a next turn whose message accepts the turn's answer.
async fn accept_by_the_next_turn(app: &TestApp, ada: &str) {
    let mut turn = turn_body("Perfect, thanks, that works!", "Glad to hear it.");
    turn["ts"] = json!("2026-01-04T10:01:00Z");
    app.put(ada, &path("c", "u"), &turn).await;
    wait_for_status(app, ada, "accepted").await;
}

/// Waits until ada's turn has this status.
async fn wait_for_status(app: &TestApp, ada: &str, status: &str) {
    eventually(|| async {
        let turn = app.get(ada, &path("c", "t")).await.body;
        (turn["user_feedback_status"] == status).then_some(())
    })
    .await;
}

/// Waits until the report of the conversation lists `count` reactions on the turn, and returns the turn.
async fn reported(app: &TestApp, token: &str, count: usize) -> Value {
    let report = format!("{}/turns-with-feedbacks", conversation_path("c"));
    eventually(|| async {
        let page = app.post(token, &report, &json!({})).await.body;
        let turn = page["turns"][0].clone();
        let reactions = turn["reactions"].as_array().map_or(0, Vec::len);
        (reactions == count).then_some(turn)
    })
    .await
}

async fn counts(app: &TestApp, token: &str) -> Value {
    let period = json!({"start": "2026-01-01T00:00:00Z", "end": "2099-01-01T00:00:00Z", "include_turns": true});
    app.post(token, PERIOD, &period).await.body["items"][0].clone()
}

async fn rate(app: &TestApp, token: &str, signal: &str, reason: Option<&str>) {
    let mut body = json!({"message_id": "m", "signal": signal});
    if let Some(reason) = reason {
        body["reason"] = json!(reason);
    }
    let response = app.post(token, SIGNALS, &body).await;
    assert!(response.status.is_success(), "{}", response.body);
}

async fn withdraw(app: &TestApp, token: &str, signal: &str) {
    let path = format!("{SIGNALS}?message_id=m&signal={signal}");
    assert_eq!(
        app.delete(token, &path).await.status,
        StatusCode::NO_CONTENT
    );
}

/// An event about ada's turn.
fn about_the_turn(user: &str, kind: &str, data: Value) -> Value {
    let mut event = acceptance(user);
    event["feedbackType"] = json!(kind);
    event["data"] = data;
    event["context"] = json!({"projectId": "order-service", "conversationId": "c", "turnId": "t"});
    event
}

async fn submit(app: &TestApp, token: &str, event: &Value) {
    let response = app.submit(token, event).await;
    assert_eq!(response.status, StatusCode::ACCEPTED, "{}", response.body);
}

#[tokio::test]
async fn reports_count_message_signals_without_revealing_authors_or_text() {
    let (app, ada) = with_turn().await;
    let eve = app.token("eve");
    let report = app.token_of("analyst", "acme", "feedback:report");
    for (token, signal, reason) in [
        (&ada, "not_helpful", Some("my salary is 4713")),
        (&ada, "inaccurate", Some("my salary is forty thousand")),
        (&ada, "edit", Some("my salary is 4712")),
        (&ada, "regenerate", None),
        (&eve, "helpful", None),
    ] {
        rate(&app, token, signal, reason).await;
    }
    // Each user counts once in the rate, and each act in the counts.
    let turn = reported(&app, &report, 3).await;
    assert_eq!(turn["satisfaction_rate"], 0.5);
    for artifact in turn["reactions"].as_array().unwrap() {
        assert_eq!(artifact["user_id"], Value::Null);
        assert_eq!(artifact["reaction"]["text"], "");
        assert!(!artifact["tags"].to_string().contains("by:"), "{artifact}");
    }
    let item = counts(&app, &report).await;
    assert_eq!(
        item["feedback_counts"],
        json!({"total": 3, "user": 3, "machine": 0, "ok": 1, "not_ok": 2, "neutral": 0})
    );
    assert_eq!(item["satisfaction_rate"], 0.5);
    let text = format!("{turn}{item}");
    for secret in ["salary", "\"ada\"", "\"eve\""] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    // Users see only their own signals, with their text.
    let own = reported(&app, &ada, 2).await;
    assert_eq!(own["reactions"][0]["user_id"], "ada");
    assert_eq!(
        own["reactions"][0]["reaction"]["text"],
        "my salary is forty thousand"
    );
    assert_eq!(own["reactions"][0]["reaction"]["reaction"], "not_ok");
    assert_eq!(own["reactions"][1]["reaction"]["text"], "my salary is 4713");
    let tags = own["reactions"][0]["tags"].as_array().unwrap();
    assert!(tags.contains(&json!("by:inaccurate")), "{tags:?}");
    assert_eq!(counts(&app, &eve).await["feedback_counts"]["total"], 1);
    // Another user's signal does not count for the turn's status.
    wait_for_status(&app, &ada, "rejected").await;
    withdraw(&app, &ada, "inaccurate").await;
    withdraw(&app, &ada, "not_helpful").await;
    wait_for_status(&app, &ada, "neutral").await;
    assert_eq!(reported(&app, &report, 1).await["satisfaction_rate"], 1.0);
}

#[tokio::test]
async fn an_anonymous_event_of_the_owner_sets_no_status() {
    let (app, ada) = with_turn().await;
    accept_by_the_next_turn(&app, &ada).await;
    let mut rejection = about_the_turn("ada", "rejection", json!({}));
    rejection["privacyFlags"] = json!({"anonymize": true});
    submit(&app, &ada, &rejection).await;
    let outcome = app.outcome(&ada, &id(&rejection)).await;
    assert_eq!(outcome["counted"]["turn"], "t", "{outcome}");
    wait_for_status(&app, &ada, "accepted").await;
}

#[tokio::test]
async fn an_event_about_a_turn_counts_for_its_status_and_in_its_reports() {
    let (app, ada) = with_turn().await;
    let report = app.token_of("analyst", "acme", "feedback:report");
    accept_by_the_next_turn(&app, &ada).await;
    let rejection = about_the_turn(
        "ada",
        "rejection",
        json!({"comment": "my salary is forty thousand"}),
    );
    submit(&app, &ada, &rejection).await;
    wait_for_status(&app, &ada, "rejected").await;
    let eve = app.token("eve");
    let rated = about_the_turn("eve", "rating", json!({"rating": 3}));
    submit(&app, &eve, &rated).await;
    for (kind, data) in [
        ("comment", json!({"comment": "well"})),
        ("dwell-time", json!({"timeSpent": 7})),
    ] {
        let event = about_the_turn("eve", kind, data);
        submit(&app, &eve, &event).await;
        let id = event["feedbackId"].as_str().unwrap();
        assert_eq!(app.outcome(&eve, id).await["status"], "processed");
    }
    // The machine reaction inferred from the next turn counts, too.
    let turn = reported(&app, &report, 3).await;
    let of_events: Vec<_> = (turn["reactions"].as_array().unwrap().iter())
        .filter(|artifact| artifact["user_id"] == Value::Null)
        .map(|artifact| artifact["reaction"]["reaction"].clone())
        .collect();
    assert_eq!(of_events.len(), 2);
    assert!(of_events.contains(&json!("not_ok")) && of_events.contains(&json!("neutral")));
    assert!(!turn.to_string().contains("forty thousand"));
    let own = reported(&app, &ada, 2).await;
    assert!(
        own.to_string().contains("my salary is forty thousand"),
        "{own}"
    );
    let item = counts(&app, &report).await;
    assert_eq!(
        item["feedback_counts"],
        json!({"total": 3, "user": 2, "machine": 1, "ok": 1, "not_ok": 1, "neutral": 1})
    );
}

#[tokio::test]
async fn the_timeline_of_a_user_has_what_counts_for_the_status() {
    let (app, ada) = with_turn().await;
    let report = app.token_of("analyst", "acme", "feedback:report");
    let refresh = format!("{}/timeline/refresh", conversation_path("c"));
    let blocks = async |token: &str, known: &Value| {
        let request = json!({"turn_ids": ["t"], "cache": {"ttl_seconds": 0}, "blocks": known});
        app.post(token, &refresh, &request).await.body["blocks"].clone()
    };
    let of_user = |blocks: &Value| {
        let blocks = blocks.as_array().unwrap().iter();
        let mut of_user = blocks.filter(|block| block["path"] == "ar:t.feedback.user");
        of_user.next().cloned().unwrap_or_default()
    };
    let none = json!([]);
    accept_by_the_next_turn(&app, &ada).await;
    rate(&app, &ada, "unsafe", Some("It names my street")).await;
    wait_for_status(&app, &ada, "rejected").await;
    let rejected = blocks(&ada, &none).await;
    let text = of_user(&rejected)["text"].as_str().unwrap().to_owned();
    let reason = "reaction: not_ok\ntext: unsafe: It names my street";
    assert!(text.ends_with(reason), "{text}");
    assert_eq!(of_user(&blocks(&report, &none).await), Value::Null);

    // The rating counts instead of the signal, and once it is withdrawn the signal counts again.
    let data = json!({"rating": 5, "comment": "Now it is fine"});
    let mut rating = about_the_turn("ada", "rating", data);
    rating.as_object_mut().unwrap().remove("timestamp");
    submit(&app, &ada, &rating).await;
    wait_for_status(&app, &ada, "accepted").await;
    let accepted = blocks(&ada, &rejected).await;
    let text = of_user(&accepted)["text"].as_str().unwrap().to_owned();
    assert!(text.ends_with("reaction: ok\nNow it is fine"), "{text}");
    let path = format!("/v1/feedback/{}", rating["feedbackId"].as_str().unwrap());
    assert_eq!(app.delete(&ada, &path).await.status, StatusCode::NO_CONTENT);
    wait_for_status(&app, &ada, "rejected").await;
    let again = of_user(&blocks(&ada, &accepted).await);
    assert!(again["text"].as_str().unwrap().ends_with(reason), "{again}");
    withdraw(&app, &ada, "unsafe").await;
    wait_for_status(&app, &ada, "accepted").await;
    let hidden = of_user(&blocks(&ada, &json!([again])).await);
    assert_eq!(hidden["hidden"], true);
}

#[tokio::test]
async fn ratings_of_two_turns_in_one_session_and_hour_are_no_duplicates() {
    let (app, ada) = with_turn().await;
    accept_by_the_next_turn(&app, &ada).await;
    let rated = |turn: &str, rating: u8| {
        let mut event = about_the_turn("ada", "rating", json!({"rating": rating}));
        event["timestamp"] = json!("2026-01-04T10:02:00Z");
        event.as_object_mut().unwrap().remove("artifactId");
        event["context"]["turnId"] = json!(turn);
        event
    };
    let outcome = async |event: &Value| {
        submit(&app, &ada, event).await;
        let id = event["feedbackId"].as_str().unwrap();
        app.outcome(&ada, id).await["status"].clone()
    };
    assert_eq!(outcome(&rated("t", 1)).await, "processed");
    assert_eq!(outcome(&rated("u", 5)).await, "processed");
    assert_eq!(outcome(&rated("u", 1)).await, "deduplicated");
    wait_for_status(&app, &ada, "rejected").await;
}

#[tokio::test]
async fn an_event_does_not_count_for_a_turn_of_a_project_its_sender_cannot_access() {
    let (app, ada) = with_turn().await;
    let other = app.token_in("ada", &["elsewhere"]);
    let event = about_the_turn("ada", "rejection", json!({}));
    let rejected = app.submit(&other, &event).await;
    assert_eq!(rejected.status, StatusCode::FORBIDDEN, "{}", rejected.body);
    let batch = json!({"events": [event, acceptance("ada")]});
    let response = app.post(&other, "/v1/feedback/batch", &batch).await;
    assert_eq!(response.status, StatusCode::ACCEPTED);
    let results: Vec<_> = (response.body["results"].as_array().unwrap().iter())
        .map(|result| result["status"].clone())
        .collect();
    assert_eq!(results, [json!("rejected"), json!("queued")]);
    // An event about an unregistered turn, and a duplicate within the hour, count for nothing.
    let mut unregistered = about_the_turn("ada", "rejection", json!({}));
    unregistered["context"]["turnId"] = json!("never");
    submit(&app, &ada, &unregistered).await;
    let id = unregistered["feedbackId"].as_str().unwrap();
    let outcome = app.outcome(&ada, id).await;
    assert_eq!(outcome["status"], "processed");
    let not_registered = json!({"turn": "never", "as": null, "reason": "turn_not_registered"});
    assert_eq!(outcome["counted"], not_registered);
    let first = about_the_turn("ada", "rating", json!({"rating": 5}));
    submit(&app, &ada, &first).await;
    wait_for_status(&app, &ada, "accepted").await;
    let id = first["feedbackId"].as_str().unwrap();
    let counted = app.outcome(&ada, id).await["counted"].clone();
    assert_eq!(counted, json!({"turn": "t", "as": "ok"}));
    let mut second = about_the_turn("ada", "rating", json!({"rating": 1}));
    second["artifactId"] = first["artifactId"].clone();
    submit(&app, &ada, &second).await;
    let id = second["feedbackId"].as_str().unwrap();
    let outcome = app.outcome(&ada, id).await;
    assert_eq!(outcome["status"], "deduplicated");
    assert_eq!(outcome["counted"]["reason"], "deduplicated");
    wait_for_status(&app, &ada, "accepted").await;
}

#[tokio::test]
async fn reading_an_event_shows_why_it_does_not_count_for_its_turn() {
    let (app, ada) = with_turn().await;
    let reason = async |context: Value, kind: &str| {
        let mut event = about_the_turn("ada", kind, json!({"rating": 5}));
        event["context"] = context;
        submit(&app, &ada, &event).await;
        let id = event["feedbackId"].as_str().unwrap();
        app.outcome(&ada, id).await["counted"]["reason"].clone()
    };
    let complete = json!({"projectId": "order-service", "conversationId": "c", "turnId": "t"});
    let without = |name: &str| {
        let mut context = complete.clone();
        context.as_object_mut().unwrap().remove(name);
        context
    };
    assert_eq!(reason(without("projectId"), "rating").await, "no_project");
    assert_eq!(
        reason(without("conversationId"), "rating").await,
        "no_conversation"
    );
    assert_eq!(reason(without("turnId"), "rating").await, Value::Null);
    assert_eq!(reason(complete, "dwell-time").await, "no_verdict");
}

#[tokio::test]
async fn erasing_a_user_removes_their_feedback_on_turns_of_others() {
    let (app, ada) = with_turn().await;
    let eve = app.token("eve");
    let report = app.token_of("analyst", "acme", "feedback:report");
    rate(
        &app,
        &eve,
        "inaccurate",
        Some("my salary is forty thousand"),
    )
    .await;
    let comment = json!({"comment": "my salary is forty thousand"});
    submit(&app, &eve, &about_the_turn("eve", "rejection", comment)).await;
    rate(&app, &ada, "helpful", None).await;
    reported(&app, &report, 3).await;
    let bundle = &app.bundle;
    Stored::settled(&bundle.clients, &Names::default()).await;
    let requested = app.delete(&eve, "/v1/users/eve/data").await;
    assert_eq!(requested.status, StatusCode::ACCEPTED);
    let erased = eventually(|| async {
        let body = app.get(&eve, "/v1/users/eve/data/erasure").await.body;
        (body["status"] == "done").then_some(body)
    })
    .await;
    // A signal and an event that count as reactions are counted once, as what they are.
    let removed = &erased["removed"];
    assert_eq!(removed["reactions"], 0, "{erased}");
    assert_eq!(removed["signals"], 1, "{erased}");
    assert_eq!(removed["events"], 2, "{erased}");
    assert_eq!(reported(&app, &report, 1).await["satisfaction_rate"], 1.0);
    let stored = Stored::settled(&bundle.clients, &Names::default()).await;
    assert_eq!(stored.with("forty thousand"), Vec::<&str>::new());
    wait_for_status(&app, &ada, "accepted").await;
}
