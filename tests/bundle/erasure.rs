//! Erasure removes all data of a person, and changes nothing of others.

mod damaged;

use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::future::join_all;
use hearback_export::Exporter;
use hearback_lambda::clock::Clock;
use hearback_local::names::Names;
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::events::acceptance;
use hearback_tests::rows::{Row, attribute, damage, rows};
use hearback_tests::stored::Stored;
use hearback_tests::turns::{SIGNALS, message, path};
use reqwest::StatusCode;
use serde_json::{Value, json};

/// A name and words that occur nowhere else.
const ZOE: &str = "zoe-5417";
pub const WORDS: &str = "cinnamon-and-vetiver";

pub const EVE: &str = "eve-8830";

pub fn data(user: &str) -> String {
    format!("/v1/users/{user}/data")
}

pub fn progress(user: &str) -> String {
    format!("{}/erasure", data(user))
}

async fn put_turn(app: &TestApp, user: &str, (conversation, turn): (&str, &str), words: &str) {
    let mut body = message(&format!("m-{turn}"), words, "An answer of some length.");
    body["trace_id"] = json!("trace-1");
    body["turn_log"] = json!({"text": format!("log of {words}"), "entries": []});
    let path = path(conversation, turn);
    let response = app.put(&app.token(user), &path, &body).await;
    assert_eq!(response.status, StatusCode::CREATED, "{:?}", response.body);
}

async fn react(app: &TestApp, user: &str, (conversation, turn): (&str, &str), words: &str) {
    let path = format!("{}/feedback", path(conversation, turn));
    let body = json!({"reaction": "not_ok", "text": words, "mirror": true});
    let response = app.post(&app.token(user), &path, &body).await;
    assert_eq!(response.status, StatusCode::OK, "{:?}", response.body);
}

async fn submit(app: &TestApp, user: &str, words: &str, privacy: Value) -> String {
    let mut event = acceptance(user);
    event["artifactId"] = json!("artifact-1");
    event["data"]["comment"] = json!(words);
    event["privacyFlags"] = privacy;
    let response = app.submit(&app.token(user), &event).await;
    assert_eq!(response.status, StatusCode::ACCEPTED, "{:?}", response.body);
    response.body["feedbackId"].as_str().unwrap().to_owned()
}

/// Gives every kind of feedback as a user. `turn` and `next` are the user's, `other` is of another user.
async fn give_feedback(
    app: &TestApp,
    user: &str,
    words: &str,
    [turn, next, other]: [(&str, &str); 3],
) {
    let token = app.token(user);
    let patch = json!({"preferenceVersion": 0, "contextPreferences": {words: {"preferredAgents": [words]}}});
    let patched = app
        .put(&token, &format!("/v1/preferences/{user}"), &patch)
        .await;
    assert_eq!(patched.status, StatusCode::OK, "{:?}", patched.body);
    put_turn(app, user, turn, words).await;
    put_turn(app, user, next, &format!("No, I meant {words}")).await;
    let inference = format!("{}/inference", path(turn.0, turn.1));
    let right = json!({"feedback_type": "rejected"});
    let corrected = app.put(&token, &inference, &right).await;
    assert_eq!(corrected.status, StatusCode::OK, "{:?}", corrected.body);
    react(app, user, turn, words).await;
    react(app, user, other, words).await;
    for (message, signal) in [(turn.1, "edit"), (other.1, "edit"), (other.1, "helpful")] {
        let body = json!({"message_id": format!("m-{message}"), "signal": signal, "reason": words});
        let response = app.post(&token, SIGNALS, &body).await;
        assert_eq!(response.status, StatusCode::CREATED, "{:?}", response.body);
    }
    let first = submit(app, user, words, json!({})).await;
    app.outcome(&token, &first).await;
    // The same event within the hour is a duplicate.
    let again = submit(app, user, words, json!({})).await;
    assert_eq!(app.outcome(&token, &again).await["status"], "deduplicated");
    submit(app, user, words, json!({"anonymize": true})).await;
}

/// Reads the store once it is settled.
async fn settled(app: &TestApp) -> Stored {
    Stored::settled(&app.bundle.clients, &Names::default()).await
}

async fn stored(app: &TestApp) -> Stored {
    Stored::read(&app.bundle.clients, &Names::default()).await
}

async fn export(app: &TestApp) {
    let bundle = &app.bundle;
    let exporter = Exporter::new(bundle.store.clone(), bundle.blobs.clone(), Clock::system());
    let day = Utc::now().date_naive();
    for request in [
        json!({"tenant": "acme", "day": day}),
        json!({"tenant": "acme", "training": {"project": "order-service"}}),
    ] {
        exporter.handle(&request, None).await.unwrap();
    }
}

/// Requests an erasure, and waits until it is done.
async fn erase(app: &TestApp, user: &str) -> Value {
    let token = app.token(user);
    let requested = app.delete(&token, &data(user)).await;
    assert_eq!(
        requested.status,
        StatusCode::ACCEPTED,
        "{:?}",
        requested.body
    );
    assert_eq!(requested.headers["location"], progress(user));
    assert_eq!(requested.body["status"], "pending");
    eventually(|| async {
        let body = app.get(&token, &progress(user)).await.body;
        assert_eq!(body["erasureId"], requested.body["erasureId"]);
        (body["status"] == "done").then_some(body)
    })
    .await
}

#[tokio::test]
async fn an_erasure_removes_all_data_of_a_person_and_none_of_others() {
    let app = TestApp::start().await;
    put_turn(&app, EVE, ("c9", "t9"), "What is the fee?").await;
    put_turn(&app, EVE, ("c8", "t8"), "And the term?").await;
    give_feedback(&app, ZOE, WORDS, [("c1", "t1"), ("c1", "t2"), ("c9", "t9")]).await;
    give_feedback(
        &app,
        "ike-2093",
        "dill-4471",
        [("c2", "t3"), ("c2", "t4"), ("c9", "t9")],
    )
    .await;
    assert_eq!(settled(&app).await.with("(\"SK\", S(\"EVENT\"))").len(), 18);
    export(&app).await;
    let before = settled(&app).await;
    assert!(before.with(WORDS).len() > 15 && before.with(ZOE).len() > 15);

    let erasure = erase(&app, ZOE).await;
    let removed = &erasure["removed"];
    let expected = json!({
        // An event, a duplicate, an anonymous event, two reactions, three signals, and the machine reaction to the
        // second turn.
        "events": 9, "turns": 2, "reactions": 3, "signals": 3, "preferenceVersions": 1,
        "exportRows": removed["exportRows"], "importFiles": 0, "rejectedLines": 0,
    });
    let versions = removed["preferenceVersions"].as_u64().unwrap();
    let mut counted = removed.clone();
    counted["preferenceVersions"] = json!(1);
    assert_eq!(counted, expected, "{erasure}");
    assert!(
        versions > 1 && removed["exportRows"].as_u64().unwrap() > 3,
        "{erasure}"
    );

    let after = stored(&app).await;
    assert_eq!(after.with(WORDS), Vec::<&str>::new());
    // Only the records of the erasure are left.
    let left = after.with(ZOE);
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].contains("(\"SK\", S(\"ERASURE\"))"), "{left:?}");
    let pseudonyms = after.with("USER#acme#anon-");
    let erasures = after.with("\"ERASURE\"");
    assert_eq!(erasures.len(), 2);
    assert!(pseudonyms.iter().any(|item| erasures.contains(item)));

    // Items of others are unchanged, except the turn whose log contained a mirror.
    let others: Vec<_> = before
        .items
        .iter()
        .filter(|item| {
            item.contains("ike-2093") || item.contains(EVE) || item.contains("dill-4471")
        })
        .collect();
    let changed: Vec<_> = others
        .iter()
        .filter(|item| !after.items.contains(item))
        .collect();
    assert!(
        changed.len() == 1 && changed[0].contains("TURN#t9"),
        "{changed:#?}"
    );
    let reader = app.token_of(EVE, "acme", "feedback:report");
    let report = app.get(&reader, &path("c9", "t9")).await;
    assert!(
        report.body.to_string().contains("dill-4471"),
        "{:?}",
        report.body
    );
    for words in ["dill-4471", "What is the fee?"] {
        let files = |stored: &Stored| {
            let all = stored
                .objects
                .iter()
                .filter(|(key, _)| key.starts_with("exports/"));
            all.map(|(_, body)| String::from_utf8_lossy(body).matches(words).count())
                .sum::<usize>()
        };
        assert!(files(&after) > 0, "{words}");
        assert!(words != "dill-4471" || files(&before) == files(&after));
    }

    // The user can return, without history.
    let id = submit(&app, ZOE, "hello", json!({})).await;
    let token = app.token(ZOE);
    assert_eq!(app.outcome(&token, &id).await["status"], "processed");
    let preferences = app.get(&token, &format!("/v1/preferences/{ZOE}")).await;
    assert_eq!(
        preferences.body["preferenceVersion"], 1,
        "{:?}",
        preferences.body
    );
}

#[tokio::test]
async fn damaged_rows_are_erased_with_what_they_lead_to() {
    let app = TestApp::start().await;
    put_turn(&app, EVE, ("c9", "t9"), "What is the fee?").await;
    give_feedback(&app, ZOE, WORDS, [("c1", "t1"), ("c1", "t2"), ("c9", "t9")]).await;
    settled(&app).await;
    export(&app).await;
    let clients = &app.bundle.clients;
    let table = Names::default().table();
    let rows = rows(&clients.dynamodb, &table).await;
    let own = |row: &&Row| attribute(row, "PK") == format!("USER#acme#{ZOE}");
    let kind = |prefix: &'static str| move |row: &&Row| attribute(row, "SK").starts_with(prefix);
    let claim = rows.iter().filter(own).find(kind("CLAIM#")).unwrap();
    let claimed = attribute(claim, "feedbackId");
    let event = rows.iter().filter(kind("EVENT")).find(|row| {
        attribute(row, "core").contains(ZOE) && !attribute(row, "PK").ends_with(claimed)
    });
    let signal = rows.iter().filter(own).find(kind("SIGNAL#"));
    let turn = rows.iter().find(kind("TURN#t1"));
    let vectors = rows.iter().filter(own).filter(kind("VEC#"));
    let mut vectors = vectors.filter(|row| attribute(row, "core").contains("\"t2\""));
    for row in [event, signal, turn, vectors.next()] {
        damage(&clients.dynamodb, &table, row.unwrap(), "core").await;
    }
    damage(&clients.dynamodb, &table, claim, "feedbackId").await;
    let markers = rows.iter().filter(|row| {
        attribute(row, "PK").starts_with("DAY#") && attribute(row, "core").contains(ZOE)
    });
    let mut damaged = 0;
    for marker in markers {
        damage(&clients.dynamodb, &table, marker, "core").await;
        damaged += 1;
    }
    assert!(damaged >= 2, "a marker for each conversation");

    let erasure = erase(&app, ZOE).await;
    let removed = &erasure["removed"];
    for (kind, count) in [
        ("events", 9),
        ("turns", 2),
        ("reactions", 3),
        ("signals", 3),
    ] {
        assert_eq!(removed[kind], count, "{erasure}");
    }
    let after = stored(&app).await;
    assert_eq!(after.with(WORDS), Vec::<&str>::new());
    let left = after.with(ZOE);
    assert!(
        left.len() == 1 && left[0].contains("(\"SK\", S(\"ERASURE\"))"),
        "{left:#?}"
    );
    for turn in ["m-t1", "m-t2"] {
        assert_eq!(after.with(turn), Vec::<&str>::new());
    }
    let reader = app.token_of(EVE, "acme", "feedback:report");
    let kept = app.get(&reader, &path("c9", "t9")).await;
    assert_eq!(kept.status, StatusCode::OK, "{:?}", kept.body);
}

#[tokio::test]
async fn only_the_user_and_administrators_may_erase() {
    let app = TestApp::start().await;
    let (own, other) = (app.token("ada"), app.token(EVE));
    let on_behalf = app.token_of(EVE, "acme", "feedback:on-behalf feedback:report");
    let admin = app.token_of(EVE, "acme", "feedback:admin");
    for token in [&other, &on_behalf] {
        for response in [
            app.delete(token, &data("ada")).await,
            app.get(token, &progress("ada")).await,
        ] {
            assert_eq!(response.status, StatusCode::FORBIDDEN);
            assert_eq!(response.body["error"], "forbidden", "{:?}", response.body);
        }
    }
    assert_eq!(
        app.get(&own, &progress("ada")).await.status,
        StatusCode::NOT_FOUND
    );
    let requested = app.delete(&admin, &data("ada")).await;
    assert_eq!(requested.status, StatusCode::ACCEPTED);
    // A repeated request returns the same erasure.
    let again = app.delete(&own, &data("ada")).await;
    assert_eq!(again.body["erasureId"], requested.body["erasureId"]);
    // An administrator of another tenant learns nothing.
    let foreign = app.token_of("ada", "globex", "feedback:admin");
    assert_eq!(
        app.get(&foreign, &progress("ada")).await.status,
        StatusCode::NOT_FOUND
    );
    let body = erase(&app, "ada").await;
    assert_eq!(body["removed"]["events"], 0);
    let second = app.delete(&own, &data("ada")).await;
    assert_ne!(second.body["erasureId"], requested.body["erasureId"]);
}

/// Waits until an event is no longer queued; `None` if it was erased.
async fn fate(app: &TestApp, token: &str, id: &str) -> Option<Value> {
    eventually(|| async {
        let response = app.get(token, &format!("/v1/feedback/{id}")).await;
        let queued = response.body["status"] == "queued";
        (!queued).then(|| (response.status == StatusCode::OK).then_some(response.body))
    })
    .await
}

#[tokio::test]
async fn an_event_submitted_during_an_erasure_is_either_erased_or_complete() {
    let app = TestApp::start().await;
    let token = app.token(ZOE);
    let submit = |at: u32| {
        let (app, token) = (&app, &token);
        async move {
            tokio::time::sleep(Duration::from_millis(50) * at).await;
            let response = app.submit(token, &acceptance(ZOE)).await;
            assert_eq!(response.status, StatusCode::ACCEPTED);
            response.body["feedbackId"].as_str().unwrap().to_owned()
        }
    };
    // Submissions continue until after the erasure.
    let (ids, body) = tokio::join!(join_all((0..120).map(submit)), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        erase(&app, ZOE).await
    });
    let late = submit(0).await;
    let until: DateTime<Utc> = body["finishedAt"].as_str().unwrap().parse().unwrap();
    let mut kept = 0;
    for id in ids.iter().chain([&late]) {
        if let Some(event) = fate(&app, &token, id).await {
            assert_eq!(event["status"], "processed", "{event}");
            let received: DateTime<Utc> = event["receivedAt"].as_str().unwrap().parse().unwrap();
            assert!(received > until, "{event}");
            kept += 1;
        }
    }
    assert!((1..ids.len()).contains(&kept), "{kept}");
    // Preferences were learned from exactly the events that remain.
    let preferences = app
        .get(&token, &format!("/v1/preferences/{ZOE}"))
        .await
        .body;
    let learned = &preferences["artifactPreferences"]["unknown"]["sampleCount"];
    assert_eq!(*learned, json!(kept), "{preferences}");
    let stored = stored(&app).await;
    for kind in ["S(\"EVENT\")", "S(\"RESULT\")", "S(\"CLAIM#"] {
        let rows = stored
            .items
            .iter()
            .filter(|item| item.contains(kind))
            .count();
        assert_eq!(rows, kept, "{kind}");
    }
    let body = app.get(&token, &progress(ZOE)).await.body;
    assert_eq!(body["removed"]["events"], json!(ids.len() + 1 - kept));
}
