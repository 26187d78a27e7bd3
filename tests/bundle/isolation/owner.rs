//! The owner: somebody with something of every kind, in words and by names that nothing else has.

use chrono::{TimeDelta, Utc};
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::events::acceptance;
use hearback_tests::ledger::ledger;
use hearback_tests::turns::{SIGNALS, message, path};
use reqwest::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

/// The owner.
pub const OWNER: &str = "zoe5417";
/// The owner's tenant.
pub const TENANT: &str = "acme";
/// The owner's project.
pub const PROJECT: &str = "order-service";
/// In everything that the owner wrote.
pub const WORDS: &str = "cinnamonandvetiver";
/// The turn that the owner rejects: its conversation, its own name, that of its answer.
pub const REJECTED: [&str; 3] = ["conv7301", "turn4410", "msg9127"];
/// The turn that the owner accepts.
pub const ACCEPTED: [&str; 3] = ["conv7302", "turn4411", "msg9128"];

const SESSION: &str = "session6620";
const ARTIFACT: &str = "artifact3093";
const TRACE: &str = "trace5518";

/// What there is of the owner.
pub struct Owner {
    /// The registration of the turn that the owner rejects.
    pub registration: Value,
    /// The newest version of the owner's preferences.
    pub version: u64,
    /// The id of the event that the owner submitted.
    pub event: String,
    /// The id of the event of the owner's signal on a message.
    pub signal_event: String,
    /// Words, names and ids that nobody can know who was not told.
    pub secrets: Vec<String>,
}

/// An event as the owner submits it.
pub fn event() -> Value {
    let mut event = acceptance(OWNER);
    event["artifactId"] = json!(ARTIFACT);
    event["sessionId"] = json!(SESSION);
    event["data"]["comment"] = json!(WORDS);
    event
}

/// An event of the owner's about the turn that is rejected.
fn about_the_turn() -> Value {
    let mut event = event();
    event["artifactId"] = json!(REJECTED[1]);
    event["feedbackType"] = json!("rejection");
    event["context"]["conversationId"] = json!(REJECTED[0]);
    event["context"]["turnId"] = json!(REJECTED[1]);
    event
}

/// The owner's reaction to the turn that is rejected.
pub fn reaction() -> Value {
    json!({"reaction": "not_ok", "text": format!("Too long, {WORDS}"), "user_id": OWNER, "mirror": true})
}

/// The owner's signal on its answer.
pub fn signal() -> Value {
    json!({"message_id": REJECTED[2], "signal": "edit", "reason": WORDS})
}

/// Does everything that a user can do, and waits until all of it is worked off.
pub async fn live(app: &TestApp) -> Owner {
    let token = app.token(OWNER);
    // First, for it leaves nothing else.
    let asked = app.delete(&token, &format!("/v1/users/{OWNER}/data")).await;
    assert_eq!(asked.status, StatusCode::ACCEPTED, "{:?}", asked.body);
    let erasure = erased(app, &token).await;
    let patch = json!({
        "preferenceVersion": 0,
        "globalPreferences": {"learningMode": false},
        "contextPreferences": {PROJECT: {"preferredAgents": [WORDS]}},
    });
    let preferences = format!("/v1/preferences/{OWNER}");
    let patched = app.put(&token, &preferences, &patch).await;
    assert_eq!(patched.status, StatusCode::OK, "{:?}", patched.body);
    let registration = registration(REJECTED[2], "How do I return a parcel?");
    register(app, REJECTED, &registration, &reaction()).await;
    let accepted = self::registration(ACCEPTED[2], "Which gaming laptops are there?");
    let praise = json!({"reaction": "ok", "text": format!("Thanks, {WORDS}")});
    register(app, ACCEPTED, &accepted, &praise).await;
    let mut counts = signal();
    counts["signal"] = json!("inaccurate");
    for signal in [signal(), counts] {
        let said = app.post(&token, SIGNALS, &signal).await;
        assert_eq!(said.status, StatusCode::CREATED, "{:?}", said.body);
    }
    let about = app.submit(&token, &about_the_turn()).await;
    assert_eq!(about.status, StatusCode::ACCEPTED, "{about:?}");
    let submitted = app.submit(&token, &event()).await;
    assert_eq!(submitted.status, StatusCode::ACCEPTED, "{submitted:?}");

    let events = ledger(app, &token, 6).await;
    mirrored(app, &token).await;
    let rows = app.get(&token, SIGNALS).await.body;
    let row = &rows["feedback"][0];
    let names = [OWNER, WORDS, SESSION, ARTIFACT, TRACE];
    let mut secrets: Vec<_> = [&names[..], &REJECTED, &ACCEPTED]
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
    // Names, events, what they taught, the signal's row and the erasure.
    assert_eq!(secrets.len(), 11 + 6 + 10 + 2, "{secrets:?}");
    Owner {
        registration,
        version: 1,
        event: text(&submitted.body["feedbackId"]),
        signal_event: text(&row["feedback_id"]),
        secrets,
    }
}

/// Waits until whoever has the owner's name in some tenant is erased, and answers the erasure's id.
pub async fn erased(app: &TestApp, token: &str) -> Value {
    let path = format!("/v1/users/{OWNER}/data/erasure");
    eventually(|| async {
        let told = app.get(token, &path).await.body;
        (told["status"] == "done").then(|| told["erasureId"].clone())
    })
    .await
}

fn registration(message_id: &str, question: &str) -> Value {
    let mut turn = message(message_id, &format!("{question} {WORDS}"), WORDS);
    turn["user_id"] = json!(OWNER);
    // Before anything that others register.
    turn["ts"] = json!((Utc::now() - TimeDelta::minutes(1)).to_rfc3339());
    turn["trace_id"] = json!(TRACE);
    turn["strategy"] = json!("look_up");
    turn["turn_log"] = json!({"text": WORDS});
    turn
}

async fn register(
    app: &TestApp,
    [conversation, turn, _]: [&str; 3],
    body: &Value,
    reaction: &Value,
) {
    let (token, path) = (app.token(OWNER), path(conversation, turn));
    let answer = app.put(&token, &path, body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{:?}", answer.body);
    let answer = app
        .post(&token, &format!("{path}/feedback"), reaction)
        .await;
    assert_eq!(answer.status, StatusCode::OK, "{:?}", answer.body);
}

/// Waits until the owner's reaction is in the turn's log too.
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
