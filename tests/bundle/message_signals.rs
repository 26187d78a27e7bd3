//! `POST`, `GET` and `DELETE /api/v1/feedback`, over HTTP.

use hearback_tests::app::{Answer, TestApp};
use hearback_tests::ledger::{everything, ledger};
use hearback_tests::turns::{SIGNALS, message, path};
use reqwest::StatusCode;
use serde_json::{Value, json};

pub const ALL: [&str; 6] = [
    "helpful",
    "not_helpful",
    "inaccurate",
    "unsafe",
    "edit",
    "regenerate",
];

/// A bundle in which ada has the turn `t` of the conversation `c`, whose answer is the message `m`.
pub async fn with_message() -> (TestApp, String) {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let mut turn = message("m", "a", "b");
    turn["trace_id"] = json!("trace-of-the-turn");
    turn["artifact_type"] = json!("answer");
    let answer = app.put(&token, &path("c", "t"), &turn).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    (app, token)
}

pub async fn say(app: &TestApp, token: &str, body: Value) -> Answer {
    app.post(token, SIGNALS, &body).await
}

pub async fn take_back(app: &TestApp, token: &str, signal: &str) -> Answer {
    let path = format!("{SIGNALS}?message_id=m&signal={signal}");
    app.delete(token, &path).await
}

pub async fn rows(app: &TestApp, token: &str, query: &str) -> Vec<Value> {
    let page = app.get(token, &format!("{SIGNALS}{query}")).await;
    assert_eq!(page.status, StatusCode::OK, "{:?}", page.body);
    page.body["feedback"].as_array().unwrap().clone()
}

pub fn signal(name: &str) -> Value {
    json!({"message_id": "m", "signal": name})
}

#[tokio::test]
async fn each_of_the_six_signals_is_taken_listed_and_taken_back() {
    let (app, token) = with_message().await;
    for name in ALL {
        let said = say(&app, &token, signal(name)).await;
        assert_eq!(said.status, StatusCode::CREATED, "{name}");
        let id = said.body["id"].as_str().unwrap();
        assert!(id.starts_with("fb_") && id.len() == 35, "{id}");
        assert_eq!(said.body, json!({"id": id}));
    }
    let listed = rows(&app, &token, "?message_id=m").await;
    let names: Vec<_> = listed.iter().map(|row| row["signal"].clone()).collect();
    let mut sorted = ALL;
    sorted.sort_unstable();
    assert_eq!(names, sorted);
    let row = &listed[1];
    assert_eq!(
        *row,
        json!({
            "id": row["id"], "message_id": "m", "workspace_id": "order-service", "chat_id": null,
            "trace_id": "trace-of-the-turn", "signal": "helpful", "reason": null,
            "exclude_from_training": false, "feedback_id": row["feedback_id"],
            "created_at": row["created_at"], "updated_at": row["updated_at"],
        })
    );
    for name in ALL {
        let gone = take_back(&app, &token, name).await;
        assert_eq!(
            (gone.status, gone.body),
            (StatusCode::NO_CONTENT, Value::Null)
        );
        let again = take_back(&app, &token, name).await;
        assert_eq!(again.status, StatusCode::NO_CONTENT, "{name}");
    }
    assert_eq!(rows(&app, &token, "").await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_repeat_replaces_in_place_and_keeps_its_id() {
    let (app, token) = with_message().await;
    let first = say(&app, &token, signal("not_helpful")).await;
    let mut again = signal("not_helpful");
    again["reason"] = json!("Wrong tool");
    let second = say(&app, &token, again).await;
    assert_eq!(second.status, StatusCode::OK);
    assert_eq!(second.body, first.body);
    let listed = rows(&app, &token, "").await;
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["reason"], "Wrong tool");
    // Another user's row of the same message and signal is another.
    let eve = say(&app, &app.token("eve"), signal("not_helpful")).await;
    assert_eq!(eve.status, StatusCode::CREATED);
    assert_ne!(eve.body["id"], first.body["id"]);
}

#[tokio::test]
async fn a_repeat_without_a_reason_keeps_the_reason_and_null_erases_it() {
    let (app, token) = with_message().await;
    let reason = || async { rows(&app, &token, "").await[0]["reason"].clone() };
    let with = json!({"message_id": "m", "signal": "inaccurate", "reason": "It is 1969"});
    say(&app, &token, with).await;
    say(&app, &token, signal("inaccurate")).await;
    assert_eq!(reason().await, "It is 1969");
    let without = json!({"message_id": "m", "signal": "inaccurate", "reason": null});
    let erased = say(&app, &token, without).await;
    assert_eq!(erased.status, StatusCode::OK);
    assert_eq!(reason().await, Value::Null);
    // What was taken back is not kept for the next time.
    let with = json!({"message_id": "m", "signal": "inaccurate", "reason": "It is 1969"});
    say(&app, &token, with).await;
    take_back(&app, &token, "inaccurate").await;
    let anew = say(&app, &token, signal("inaccurate")).await;
    assert_eq!(anew.status, StatusCode::CREATED);
    assert_eq!(reason().await, Value::Null);
}

#[tokio::test]
async fn trace_and_chat_are_kept_until_others_are_named() {
    let (app, token) = with_message().await;
    let mut body = signal("helpful");
    say(&app, &token, body.clone()).await;
    let row = || async { rows(&app, &token, "").await.remove(0) };
    assert_eq!(row().await["trace_id"], "trace-of-the-turn");
    body["trace_id"] = json!("4f3a");
    body["chat_id"] = json!("chat_xyz");
    assert_eq!(say(&app, &token, body).await.status, StatusCode::OK);
    let named = row().await;
    assert_eq!(
        (&named["trace_id"], &named["chat_id"]),
        (&json!("4f3a"), &json!("chat_xyz"))
    );
    let mut nulls = signal("helpful");
    nulls["trace_id"] = Value::Null;
    nulls["chat_id"] = Value::Null;
    say(&app, &token, nulls).await;
    assert_eq!(row().await, named);
    // Naming them is no new act: nothing new is learned.
    assert_eq!(ledger(&app, &token, 1).await.len(), 1);
}

#[tokio::test]
async fn limits_count_characters_and_a_body_has_at_most_16_kib() {
    let (app, token) = with_message().await;
    let long = |name: &str, length: usize| {
        let mut body = signal("not_helpful");
        body[name] = json!("é".repeat(length));
        body
    };
    for (name, most) in [("reason", 4096), ("chat_id", 256), ("trace_id", 256)] {
        assert!(
            say(&app, &token, long(name, most))
                .await
                .status
                .is_success(),
            "{name}"
        );
        let refused = say(&app, &token, long(name, most + 1)).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{name}");
        let pointer = format!("/{name}");
        assert_eq!(refused.body["errors"][0]["pointer"], pointer);
    }
    // As long as an id may be, and unknown; longer, it is none.
    let unknown = say(&app, &token, long("message_id", 256)).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    let refused = say(&app, &token, long("message_id", 257)).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    let refused = say(&app, &token, long("reason", 8192)).await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn every_broken_member_is_named_and_nothing_is_written() {
    let (app, token) = with_message().await;
    let before = everything(&app).await;
    let broken =
        json!({"message_id": "", "signal": "useful", "reason": 1, "user_id": 7, "mood": 1});
    let answer = say(&app, &token, broken).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    let pointers = |answer: &Answer| -> Vec<String> {
        let errors = answer.body["errors"].as_array().unwrap().iter();
        let mut pointers: Vec<_> = errors
            .map(|error| error["pointer"].as_str().unwrap().to_owned())
            .collect();
        pointers.sort_unstable();
        pointers
    };
    assert_eq!(
        pointers(&answer),
        ["/message_id", "/mood", "/reason", "/signal", "/user_id"]
    );
    let answer = say(&app, &token, json!({})).await;
    assert_eq!(pointers(&answer), ["/message_id", "/signal"]);
    let answer = app
        .delete(&token, &format!("{SIGNALS}?signal=useful"))
        .await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert_eq!(pointers(&answer), ["/message_id", "/signal"]);
    let answer = app
        .get(&token, &format!("{SIGNALS}?signal=useful&limit=501"))
        .await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert_eq!(pointers(&answer), ["/limit", "/signal"]);
    assert_eq!(everything(&app).await, before);
}

#[tokio::test]
async fn an_unknown_and_a_foreign_message_are_answered_alike_and_leave_nothing() {
    let (app, token) = with_message().await;
    let before = everything(&app).await;
    let other_project = app.token_in("ada", &["billing"]);
    let other_tenant = app.token_of("ada", "other", "feedback:on-behalf feedback:admin");
    let mut answers = Vec::new();
    for (token, body) in [
        (
            &token,
            json!({"message_id": "unknown", "signal": "helpful"}),
        ),
        (&other_project, signal("helpful")),
        (&other_tenant, signal("helpful")),
        // No chat makes it one's own.
        (
            &other_project,
            json!({"message_id": "m", "signal": "helpful", "chat_id": "c"}),
        ),
    ] {
        let mut answer = say(&app, token, body).await;
        answer.body["request_id"] = Value::Null;
        answers.push((answer.status, answer.body));
        // Nor does taking back tell.
        assert_eq!(
            take_back(&app, token, "helpful").await.status,
            StatusCode::NO_CONTENT
        );
    }
    assert_eq!(answers[0].0, StatusCode::NOT_FOUND);
    assert!(
        answers.iter().all(|answer| *answer == answers[0]),
        "{answers:?}"
    );
    assert_eq!(everything(&app).await, before);
}

#[tokio::test]
async fn nobody_learns_of_another_projects_message_by_wanting_its_name() {
    let (app, ada) = with_message().await;
    let other = app.token_in("eve", &["billing"]);
    let turn = "/conversations/acme/billing/c/turns/t";
    let registered = app.put(&other, turn, &message("m", "c", "d")).await;
    assert_eq!(registered.status, StatusCode::CREATED);
    // Each says something of its own, and reads its own alone.
    assert_eq!(
        say(&app, &other, signal("helpful")).await.status,
        StatusCode::CREATED
    );
    assert_eq!(
        say(&app, &ada, signal("helpful")).await.status,
        StatusCode::CREATED
    );
    assert_eq!(rows(&app, &other, "").await[0]["workspace_id"], "billing");
    assert_eq!(
        rows(&app, &ada, "").await[0]["workspace_id"],
        "order-service"
    );
    // Of one who is in both, the first project of the token counts.
    let both = app.token_in("zoe", &["billing", "order-service"]);
    say(&app, &both, signal("helpful")).await;
    assert_eq!(rows(&app, &both, "").await[0]["workspace_id"], "billing");
}

#[tokio::test]
async fn nobody_reads_or_takes_back_anothers_rows_whatever_the_scope() {
    let (app, ada) = with_message().await;
    say(
        &app,
        &ada,
        json!({"message_id": "m", "signal": "edit", "reason": "secret"}),
    )
    .await;
    let own = rows(&app, &ada, "").await;
    let events = ledger(&app, &ada, 1).await;
    let event = format!("/v1/feedback/{}", events[0]["feedbackId"].as_str().unwrap());
    let scopes = "feedback:on-behalf feedback:report feedback:admin";
    for other in [
        app.token_of("eve", "acme", scopes),
        app.token_of("ada", "other", scopes),
    ] {
        for query in [
            "",
            "?message_id=m",
            "?signal=edit",
            "?message_id=m&signal=edit",
        ] {
            assert_eq!(rows(&app, &other, query).await, Vec::<Value>::new());
        }
        assert_eq!(
            take_back(&app, &other, "edit").await.status,
            StatusCode::NO_CONTENT
        );
        // Its event is as private as the row.
        let answer = app.get(&other, &event).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(rows(&app, &ada, "").await, own);
    assert_eq!(app.get(&ada, &event).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_chat_moves_a_row_between_its_users_own_projects_only() {
    let (app, _) = with_message().await;
    let both = app.token_in("ada", &["billing", "order-service"]);
    let mut turn = message("other", "a", "b");
    turn["user_id"] = json!("eve");
    let agent = app.token_of("agent", "acme", "feedback:on-behalf");
    let third = "/conversations/acme/order-service/in-order-service/turns/t";
    app.put(&agent, third, &turn).await;
    for project in ["billing", "secret"] {
        let token = app.token_in("eve", &[project]);
        let path = format!("/conversations/acme/{project}/in-{project}/turns/t");
        let answer = app.put(&token, &path, &message(project, "a", "b")).await;
        assert_eq!(answer.status, StatusCode::CREATED);
    }
    let anchored = |chat: Option<&'static str>| {
        let (app, both) = (&app, &both);
        async move {
            let mut body = signal("helpful");
            if let Some(chat) = chat {
                body["chat_id"] = json!(chat);
            }
            say(app, both, body).await;
            let row = rows(app, both, "?message_id=m").await.remove(0);
            (row["workspace_id"].clone(), row["chat_id"].clone())
        }
    };
    // The message's own project, without a chat; and with one that nobody knows.
    assert_eq!(anchored(None).await, (json!("order-service"), Value::Null));
    assert_eq!(
        anchored(Some("?")).await,
        (json!("order-service"), json!("?"))
    );
    // A chat in another project of the caller's moves it there, and there it stays.
    let there = (json!("billing"), json!("in-billing"));
    assert_eq!(anchored(Some("in-billing")).await, there);
    assert_eq!(anchored(None).await, there);
    // One in a project that the caller does not hold moves nothing.
    let (workspace, _) = anchored(Some("in-secret")).await;
    assert_eq!(workspace, "billing");
    // Its own conversation brings it back.
    let (workspace, _) = anchored(Some("c")).await;
    assert_eq!(workspace, "order-service");
    assert_eq!(anchored(Some("in-billing")).await, there);
    // A chat that was unknown when it was named moves the row once it is known.
    anchored(Some("later")).await;
    let token = app.token_in("eve", &["billing"]);
    let later = "/conversations/acme/billing/later/turns/t";
    anchored(Some("c")).await;
    assert_eq!(anchored(Some("later")).await.0, "order-service");
    app.put(&token, later, &message("later", "a", "b")).await;
    assert_eq!(anchored(Some("later")).await.0, "billing");
    // A token without that project does not see it.
    let left = app.token_in("ada", &["order-service"]);
    assert_eq!(rows(&app, &left, "").await, Vec::<Value>::new());
    // And what it says next counts where it is.
    say(&app, &left, signal("helpful")).await;
    let row = rows(&app, &left, "").await.remove(0);
    assert_eq!(row["workspace_id"], "order-service");
}

#[tokio::test]
async fn the_list_is_complete_by_its_cursors_and_each_is_of_its_query_alone() {
    let (app, token) = with_message().await;
    for number in 0..7 {
        let name = format!("m{number}");
        let turn = path("c", &format!("t{number}"));
        app.put(&token, &turn, &message(&name, "a", "b")).await;
        for signal in ["helpful", "edit"] {
            let body = json!({"message_id": name, "signal": signal});
            assert_eq!(say(&app, &token, body).await.status, StatusCode::CREATED);
        }
    }
    let walk = |filter: &'static str| {
        let (app, token) = (&app, &token);
        async move {
            let mut seen = Vec::new();
            let mut cursor = String::new();
            loop {
                let query = format!("{SIGNALS}?limit=3{filter}{cursor}");
                let page = app.get(token, &query).await;
                assert_eq!(page.status, StatusCode::OK);
                let rows = page.body["feedback"].as_array().unwrap();
                assert!(rows.len() <= 3);
                let name = |row: &Value| format!("{}/{}", row["message_id"], row["signal"]);
                seen.extend(rows.iter().map(name));
                match page.body["next_cursor"].as_str() {
                    Some(next) => cursor = format!("&cursor={next}"),
                    None => return seen,
                }
            }
        }
    };
    let all = walk("").await;
    assert_eq!(all.len(), 14);
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), 14);
    let edits = walk("&signal=edit").await;
    assert_eq!(edits.len(), 7);
    assert!(edits.iter().all(|name| name.ends_with("\"edit\"")));

    let page = app.get(&token, &format!("{SIGNALS}?limit=3")).await;
    let cursor = page.body["next_cursor"].as_str().unwrap();
    let eve = app.token("eve");
    for (token, query) in [
        (&token, format!("?signal=edit&cursor={cursor}")),
        (&token, format!("?message_id=m&cursor={cursor}")),
        (&token, format!("?cursor=x{cursor}")),
        (&eve, format!("?cursor={cursor}")),
    ] {
        let refused = app.get(token, &format!("{SIGNALS}{query}")).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(refused.body["errors"][0]["pointer"], "/cursor");
    }
}
