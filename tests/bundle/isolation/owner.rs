//! The owner: a user with data of every kind, with words and names that occur nowhere else.

use chrono::{TimeDelta, Utc};
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::events::acceptance;
use hearback_tests::ledger::ledger;
use hearback_tests::turns::{SIGNALS, message, path};
use reqwest::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

pub const OWNER: &str = "zoe5417";
pub const TENANT: &str = "acme";
pub const PROJECT: &str = "order-service";
/// A word in everything that the owner wrote.
pub const WORDS: &str = "cinnamonandvetiver";
/// The turn that the owner rejects: conversation, turn and message.
pub const REJECTED: [&str; 3] = ["conv7301", "turn4410", "msg9127"];
/// The turn that the owner accepts.
pub const ACCEPTED: [&str; 3] = ["conv7302", "turn4411", "msg9128"];
/// The turn whose status follows from a message signal alone, so that only the owner sees it.
pub const PRIVATE: [&str; 3] = ["conv7303", "turn4412", "msg9129"];

/// The webhook of the owner's tenant.
pub const WEBHOOK: &str = "hook5528";

const SESSION: &str = "session6620";
const ARTIFACT: &str = "artifact3093";
const TRACE: &str = "trace5518";

/// The data of the owner.
pub struct Owner {
    /// The registration of the turn that the owner rejects.
    pub registration: Value,
    /// The newest version of the owner's preferences.
    pub version: u64,
    /// The id of the event that the owner submitted.
    pub event: String,
    /// The id of the event of the owner's message signal.
    pub signal_event: String,
    /// The id of the owner's event about the rejected turn.
    pub about_turn: String,
    /// The id of the owner's anonymous event.
    pub anonymous_event: String,
    /// The pseudonym of that event.
    pub pseudonym: String,
    /// Words, names and ids that only the owner knows.
    pub secrets: Vec<String>,
}

/// An event of the owner.
pub fn event() -> Value {
    let mut event = acceptance(OWNER);
    event["artifactId"] = json!(ARTIFACT);
    event["sessionId"] = json!(SESSION);
    event["data"]["comment"] = json!(WORDS);
    event
}

/// An anonymous event of the owner.
fn anonymous_event() -> Value {
    let mut event = event();
    event["privacyFlags"] = json!({"anonymize": true});
    event
}

/// An event about the rejected turn.
fn about_the_turn() -> Value {
    let mut event = event();
    event["artifactId"] = json!(REJECTED[1]);
    event["feedbackType"] = json!("rejection");
    event["context"]["conversationId"] = json!(REJECTED[0]);
    event["context"]["turnId"] = json!(REJECTED[1]);
    event
}

/// The owner's reaction to the rejected turn.
pub fn reaction() -> Value {
    json!({"reaction": "not_ok", "text": format!("Too long, {WORDS}"), "user_id": OWNER, "mirror": true})
}

/// A webhook that receives nothing: no message of this type has this subject.
pub fn webhook(path: &str) -> Value {
    json!({
        "url": format!("http://127.0.0.1:1/{path}"),
        "subjects": ["learning.signals.reward"],
        "eventTypes": ["feedback.processed"],
    })
}

/// The owner's signal on its message.
pub fn signal() -> Value {
    json!({"message_id": REJECTED[2], "signal": "edit", "reason": WORDS})
}

/// Creates data of every kind, and waits until all of it is processed.
pub async fn create(app: &TestApp, pseudonym: String) -> Owner {
    let token = app.token(OWNER);
    // First, because an erasure removes everything else.
    let requested = app.delete(&token, &format!("/v1/users/{OWNER}/data")).await;
    assert_eq!(
        requested.status,
        StatusCode::ACCEPTED,
        "{:?}",
        requested.body
    );
    let erasure = erased(app, &token).await;
    let patch = json!({
        "preferenceVersion": 0,
        "globalPreferences": {"learningMode": false},
        "contextPreferences": {PROJECT: {"preferredAgents": [WORDS]}},
    });
    let preferences = format!("/v1/preferences/{OWNER}");
    let patched = app.put(&token, &preferences, &patch).await;
    assert_eq!(patched.status, StatusCode::OK, "{:?}", patched.body);
    let admin = app.token_of("root", TENANT, "feedback:admin");
    let hook = format!("/v1/webhooks/{WEBHOOK}");
    let hook = app.put(&admin, &hook, &webhook(WORDS)).await;
    assert_eq!(hook.status, StatusCode::CREATED, "{:?}", hook.body);
    let registration = registration(REJECTED[2], "How do I return a parcel?");
    register(app, REJECTED, &registration).await;
    react(app, REJECTED, &reaction()).await;
    let accepted = self::registration(ACCEPTED[2], "Which gaming laptops are there?");
    let praise = json!({"reaction": "ok", "text": format!("Thanks, {WORDS}")});
    register(app, ACCEPTED, &accepted).await;
    react(app, ACCEPTED, &praise).await;
    infer_and_confirm(app, &token, ACCEPTED).await;
    let private = self::registration(PRIVATE[2], "Is this mushroom edible?");
    register(app, PRIVATE, &private).await;
    let mut counts = signal();
    counts["signal"] = json!("inaccurate");
    let alone = json!({"message_id": PRIVATE[2], "signal": "unsafe"});
    // The first in the list is the last.
    for signal in [alone, counts, signal()] {
        let body = app.post(&token, SIGNALS, &signal).await;
        assert_eq!(body.status, StatusCode::CREATED, "{:?}", body.body);
    }
    let about_turn = app.submit(&token, &about_the_turn()).await;
    assert_eq!(about_turn.status, StatusCode::ACCEPTED, "{about_turn:?}");
    let submitted = app.submit(&token, &event()).await;
    assert_eq!(submitted.status, StatusCode::ACCEPTED, "{submitted:?}");

    let anonymous = app.submit(&token, &anonymous_event()).await;
    assert_eq!(anonymous.status, StatusCode::ACCEPTED, "{anonymous:?}");

    let events = ledger(app, &token, 9).await;
    mirrored(app, &token).await;
    let rows = app.get(&token, SIGNALS).await.body;
    let row = &rows["feedback"][0];
    let names = [OWNER, WORDS, SESSION, ARTIFACT, TRACE];
    let mut secrets: Vec<_> = [&names[..], &REJECTED, &ACCEPTED, &PRIVATE]
        .concat()
        .into_iter()
        .map(ToOwned::to_owned)
        .collect();
    let ids = events.iter().flat_map(|event| {
        let signals = event["signals"].as_array().unwrap().iter();
        signals
            .map(|signal| &signal["signalId"])
            .chain([&event["feedbackId"]])
    });
    let ids = ids.chain([&row["id"], &erasure]);
    secrets.extend(ids.map(text));
    // Names, events, their learning signals, the signal's row and the erasure.
    assert_eq!(secrets.len(), 14 + 9 + 15 + 2, "{secrets:?}");
    secrets.push(pseudonym.clone());
    Owner {
        registration,
        version: 1,
        event: text(&submitted.body["feedbackId"]),
        signal_event: text(&row["feedback_id"]),
        about_turn: text(&about_turn.body["feedbackId"]),
        anonymous_event: text(&anonymous.body["feedbackId"]),
        pseudonym,
        secrets,
    }
}

/// Waits until the erasure of this token's user is done, and returns its id.
pub async fn erased(app: &TestApp, token: &str) -> Value {
    let path = format!("/v1/users/{OWNER}/data/erasure");
    eventually(|| async {
        let body = app.get(token, &path).await.body;
        (body["status"] == "done").then(|| body["erasureId"].clone())
    })
    .await
}

fn registration(message_id: &str, question: &str) -> Value {
    let mut turn = message(message_id, &format!("{question} {WORDS}"), WORDS);
    turn["user_id"] = json!(OWNER);
    // Earlier than any turn that others register.
    turn["ts"] = json!((Utc::now() - TimeDelta::minutes(1)).to_rfc3339());
    turn["trace_id"] = json!(TRACE);
    turn["strategy"] = json!("look_up");
    turn["turn_log"] = json!({"text": WORDS});
    turn
}

async fn register(app: &TestApp, [conversation, turn, _]: [&str; 3], body: &Value) {
    let token = app.token(OWNER);
    let response = app.put(&token, &path(conversation, turn), body).await;
    assert_eq!(response.status, StatusCode::CREATED, "{:?}", response.body);
}

async fn react(app: &TestApp, [conversation, turn, _]: [&str; 3], reaction: &Value) {
    let feedback = format!("{}/feedback", path(conversation, turn));
    let response = app.post(&app.token(OWNER), &feedback, reaction).await;
    assert_eq!(response.status, StatusCode::OK, "{:?}", response.body);
}

/// The machine infers that the owner accepts the turn, and the owner says that it is right.
async fn infer_and_confirm(app: &TestApp, token: &str, [conversation, turn, _]: [&str; 3]) {
    let inferred = json!({"reaction": "ok", "text": WORDS, "origin": "machine", "confidence": 0.9});
    let back_end = app.token_of("machine", TENANT, "feedback:on-behalf");
    let feedback = format!("{}/feedback", path(conversation, turn));
    let response = app.post(&back_end, &feedback, &inferred).await;
    assert_eq!(response.status, StatusCode::OK, "{:?}", response.body);
    let inference = format!("{}/inference", path(conversation, turn));
    let right = json!({"feedback_type": "accepted"});
    let response = app.put(token, &inference, &right).await;
    assert_eq!(response.status, StatusCode::OK, "{:?}", response.body);
}

/// Waits until the turn's log contains the owner's reaction.
async fn mirrored(app: &TestApp, token: &str) {
    let path = path(REJECTED[0], REJECTED[1]);
    eventually(|| async {
        let turn = app.get(token, &path).await.body;
        (!turn["feedbacks"].as_array()?.is_empty()).then_some(())
    })
    .await;
}

fn text(value: &Value) -> String {
    let text = value.as_str().unwrap().to_owned();
    assert!(
        Uuid::try_parse(&text).is_ok() || text.starts_with("fb_"),
        "{text}"
    );
    text
}
