//! `/v1/preferences`, over HTTP.

use futures::future::join_all;
use hearback_tests::app::{TestApp, TestResponse};
use hearback_tests::events::{acceptance, id};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

const ADA: &str = "/v1/preferences/ada";

async fn update(app: &TestApp, body: Value) -> TestResponse {
    app.put(&app.token("ada"), ADA, &body).await
}

async fn set_detail(app: &TestApp, version: u64, detail: &str) -> TestResponse {
    let body = json!({
        "preferenceVersion": version,
        "globalPreferences": {"detailLevel": detail}
    });
    update(app, body).await
}

#[tokio::test]
async fn preferences_are_changed_read_and_tagged() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    assert_eq!(app.get(&token, ADA).await.status, StatusCode::NOT_FOUND);

    let created = set_detail(&app, 0, "deep-dive").await;
    assert_eq!(created.status, StatusCode::OK);
    assert_eq!(created.headers["etag"], "\"1\"");
    insta::assert_json_snapshot!(created.masked(&["updatedAt"]), @r#"
        {
          "preferenceVersion": 1,
          "updatedAt": "[masked]",
          "userId": "ada"
        }
        "#);

    let read = app.get(&token, ADA).await;
    assert_eq!(read.headers["etag"], "\"1\"");
    insta::assert_json_snapshot!(read.masked(&["updatedAt", "createdAt"]), @r#"
        {
          "createdAt": "[masked]",
          "globalPreferences": {
            "communicationStyle": "technical",
            "detailLevel": "deep-dive",
            "learningMode": true
          },
          "preferenceVersion": 1,
          "updatedAt": "[masked]",
          "userId": "ada"
        }
        "#);
}

#[tokio::test]
async fn exactly_one_of_racing_updates_of_a_version_wins() {
    let app = TestApp::start().await;
    set_detail(&app, 0, "standard").await;
    let responses = join_all((0..64).map(|_| set_detail(&app, 1, "overview"))).await;
    let won = responses
        .iter()
        .filter(|response| response.status == StatusCode::OK);
    assert_eq!(won.count(), 1);
    let lost: Vec<_> = responses
        .iter()
        .filter(|response| response.status == StatusCode::CONFLICT)
        .collect();
    assert_eq!(lost.len(), 63);
    for response in lost {
        assert_eq!(response.body["error"], "version_conflict");
        assert_eq!(response.body["currentVersion"], 2);
        assert_eq!(response.body["providedVersion"], 1);
    }
}

#[tokio::test]
async fn a_version_that_is_not_the_newest_is_a_conflict() {
    let app = TestApp::start().await;
    set_detail(&app, 0, "standard").await;
    let stale = set_detail(&app, 0, "overview").await;
    assert_eq!(stale.status, StatusCode::CONFLICT);
    insta::assert_json_snapshot!(stale.masked(&["request_id"]), @r#"
        {
          "currentVersion": 1,
          "detail": "The preferences were changed since that version.",
          "error": "version_conflict",
          "providedVersion": 0,
          "request_id": "[masked]",
          "status": 409,
          "title": "Conflict",
          "type": "about:blank"
        }
        "#);
    let future = set_detail(&app, 7, "overview").await;
    assert_eq!(future.status, StatusCode::CONFLICT);
    assert_eq!(future.body["currentVersion"], 1);
}

#[tokio::test]
async fn if_match_may_carry_the_version() {
    let app = TestApp::start().await;
    let put = |tag: &'static str, body: Value| {
        let request = app.request(Method::PUT, ADA).bearer_auth(app.token("ada"));
        app.send(request.header("if-match", tag).json(&body))
    };
    let body = json!({"globalPreferences": {"learningMode": false}});
    assert_eq!(put("\"0\"", body.clone()).await.status, StatusCode::OK);
    assert_eq!(
        put("\"0\"", body.clone()).await.status,
        StatusCode::CONFLICT
    );
    assert_eq!(
        put("nonsense", body.clone()).await.status,
        StatusCode::BAD_REQUEST
    );
    let both = json!({"preferenceVersion": 0});
    assert_eq!(put("\"1\"", both).await.status, StatusCode::BAD_REQUEST);
    let neither = update(&app, body).await;
    assert_eq!(neither.status, StatusCode::BAD_REQUEST);
    assert_eq!(neither.body["errors"][0]["pointer"], "/preferenceVersion");
}

#[tokio::test]
async fn a_value_outside_its_set_is_rejected_by_name() {
    let app = TestApp::start().await;
    let response = update(
        &app,
        json!({
            "preferenceVersion": 0,
            "artifactPreferences": {"check/list": {"preferredFormat": "origami"}},
            "globalPreferences": {"detailLevel": 3}
        }),
    )
    .await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    insta::assert_json_snapshot!(response.body["errors"], @r#"
        [
          {
            "detail": "must be one of bullet-list, prose, table, code, mixed",
            "pointer": "/artifactPreferences/check~1list/preferredFormat"
          },
          {
            "detail": "must be one of overview, standard, deep-dive",
            "pointer": "/globalPreferences/detailLevel"
          }
        ]
        "#);
}

#[tokio::test]
async fn a_reset_restores_the_defaults_and_keeps_the_history() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let reset = format!("{ADA}/reset");
    let none = app.post(&token, &reset, &json!(null)).await;
    assert_eq!(none.status, StatusCode::NOT_FOUND);
    set_detail(&app, 0, "overview").await;
    set_detail(&app, 1, "deep-dive").await;
    let response = app.post(&token, &reset, &json!(null)).await;
    assert_eq!(response.status, StatusCode::OK);
    assert_eq!(response.body["preferenceVersion"], 3);
    let current = app.get(&token, ADA).await.body;
    assert_eq!(current["globalPreferences"]["detailLevel"], "standard");

    let history = format!("{ADA}/history");
    let all = app.get(&token, &history).await.body;
    let causes: Vec<_> = all["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| {
            (
                version["preferenceVersion"].clone(),
                version["cause"]["kind"].clone(),
            )
        })
        .collect();
    assert_eq!(
        causes,
        [
            (json!(3), json!("reset")),
            (json!(2), json!("update")),
            (json!(1), json!("update"))
        ]
    );
    assert_eq!(all.get("next"), None);

    let first = app.get(&token, &format!("{history}?limit=2")).await.body;
    assert_eq!(first["next"], 2);
    let second = app
        .get(&token, &format!("{history}?limit=2&before=2"))
        .await
        .body;
    assert_eq!(second["versions"][0]["preferenceVersion"], 1);
    assert_eq!(
        second["versions"][0]["globalPreferences"]["detailLevel"],
        "overview"
    );
    let bad = app.get(&token, &format!("{history}?limit=0")).await;
    assert_eq!(bad.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn resolved_preferences_exist_for_every_user() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let defaults = app.get(&token, &format!("{ADA}/resolved")).await;
    assert_eq!(defaults.status, StatusCode::OK);
    insta::assert_json_snapshot!(defaults.body, @r#"
        {
          "communicationStyle": "technical",
          "detailLevel": "standard",
          "learningMode": true,
          "preferenceVersion": 0,
          "preferredAgents": [],
          "preferredCodeStyle": "documented",
          "preferredComplexity": "moderate",
          "preferredFormat": "mixed",
          "preferredResponseLength": "balanced",
          "source": {
            "communicationStyle": "default",
            "detailLevel": "default",
            "learningMode": "default",
            "preferredAgents": "default",
            "preferredCodeStyle": "default",
            "preferredComplexity": "default",
            "preferredFormat": "default",
            "preferredResponseLength": "default"
          },
          "userId": "ada"
        }
        "#);
    update(
        &app,
        json!({
            "preferenceVersion": 0,
            "artifactPreferences": {"checklist": {"preferredFormat": "table"}},
            "contextPreferences": {
                "review": {"preferredResponseLength": "verbose", "preferredAgents": ["a"]},
                "shop": {"preferredResponseLength": "concise"}
            },
            "globalPreferences": {"detailLevel": "overview"}
        }),
    )
    .await;
    let query = "artifactType=checklist&taskType=review&projectId=shop";
    let resolved = app
        .get(&token, &format!("{ADA}/resolved?{query}"))
        .await
        .body;
    assert_eq!(resolved["preferredFormat"], "table");
    assert_eq!(resolved["preferredAgents"], json!(["a"]));
    assert_eq!(
        resolved["preferredResponseLength"], "concise",
        "the project outranks the task type"
    );
    assert_eq!(resolved["detailLevel"], "overview");
    assert_eq!(resolved["source"]["preferredFormat"], "user");
    assert_eq!(resolved["source"]["detailLevel"], "user");
    assert_eq!(resolved["source"]["preferredComplexity"], "default");
}

#[tokio::test]
async fn preferences_of_others_cannot_be_read_or_changed() {
    let app = TestApp::start().await;
    set_detail(&app, 0, "overview").await;
    let mallory = app.token("mallory");
    assert_eq!(app.get(&mallory, ADA).await.status, StatusCode::FORBIDDEN);
    let body = json!({"preferenceVersion": 1});
    assert_eq!(
        app.put(&mallory, ADA, &body).await.status,
        StatusCode::FORBIDDEN
    );
    for page in ["history", "resolved"] {
        let response = app.get(&mallory, &format!("{ADA}/{page}")).await;
        assert_eq!(response.status, StatusCode::FORBIDDEN);
    }
    // The same user id in another tenant is another user.
    let namesake = app.token_of("ada", "umbrella", "");
    assert_eq!(app.get(&namesake, ADA).await.status, StatusCode::NOT_FOUND);
    let back_end = app.token_of("back-end", "acme", "feedback:on-behalf");
    assert_eq!(app.get(&back_end, ADA).await.status, StatusCode::OK);
}

#[tokio::test]
async fn preferences_with_learning_mode_off_are_not_changed() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    update(
        &app,
        json!({"preferenceVersion": 0, "globalPreferences": {"learningMode": false}}),
    )
    .await;
    let event = acceptance("ada");
    app.submit(&token, &event).await;
    let outcome = app.outcome(&token, &id(&event)).await;
    assert_eq!(outcome["signals"].as_array().map(Vec::len), Some(2));
    let preferences = app.get(&token, ADA).await.body;
    assert_eq!(preferences["preferenceVersion"], 1);
    assert_eq!(preferences.get("artifactPreferences"), None);
}

#[tokio::test]
async fn a_user_id_may_contain_any_character() {
    let app = TestApp::start().await;
    let user = "ada#1 lovelace%:ü🙂~";
    let path = "/v1/preferences/ada%231%20lovelace%25%3A%C3%BC%F0%9F%99%82~";
    let body = json!({"preferenceVersion": 0});
    let response = app.put(&app.token(user), path, &body).await;
    assert_eq!(response.status, StatusCode::OK);
    assert_eq!(response.body["userId"], user);
}

#[tokio::test]
async fn an_unreadable_path_or_query_is_invalid() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    set_detail(&app, 0, "overview").await;
    for path in [
        "/v1/preferences/%FF",
        "/v1/preferences/ada/history?before=9223372036854775808",
    ] {
        let response = app.get(&token, path).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{path}");
        assert_eq!(response.body["error"], "invalid_request", "{path}");
    }
}

#[tokio::test]
async fn concurrent_resets_all_succeed() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    set_detail(&app, 0, "overview").await;
    let reset = format!("{ADA}/reset");
    let responses = join_all((0..20).map(|_| app.post(&token, &reset, &json!(null)))).await;
    let statuses: Vec<_> = responses.iter().map(|response| response.status).collect();
    assert_eq!(statuses, [StatusCode::OK; 20]);
    let now = app.get(&token, ADA).await.body;
    assert_eq!(now["preferenceVersion"], 21);

    let stale = app.request(Method::POST, &reset).bearer_auth(&token);
    let stale = app.send(stale.header("if-match", "\"20\"")).await;
    assert_eq!(stale.status, StatusCode::CONFLICT);
    assert_eq!(stale.body["currentVersion"], 21);
}

#[tokio::test]
async fn a_reset_does_not_turn_learning_on() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let off = json!({
        "preferenceVersion": 0,
        "globalPreferences": {"learningMode": false, "detailLevel": "overview"}
    });
    update(&app, off).await;
    app.post(&token, &format!("{ADA}/reset"), &json!(null))
        .await;
    let now = app.get(&token, ADA).await.body;
    assert_eq!(now["globalPreferences"]["learningMode"], false);
    assert_eq!(now["globalPreferences"]["detailLevel"], "standard");
}

#[tokio::test]
async fn only_the_user_can_read_what_was_learned_from_their_anonymous_events() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let mut event = acceptance("ada");
    event["privacyFlags"] = json!({"anonymize": true});
    app.submit(&token, &event).await;
    app.outcome(&token, &id(&event)).await;
    assert_eq!(app.get(&token, ADA).await.status, StatusCode::NOT_FOUND);
    let response = app.get(&token, &format!("{ADA}?anonymous=true")).await;
    assert_eq!(response.status, StatusCode::OK);
    assert_eq!(response.body["anonymous"], true);
    assert_eq!(response.body["userId"], "ada");
    assert_eq!(
        response.body["artifactPreferences"]["unknown"]["sampleCount"],
        1
    );
    let back_end = app.token_of("back-end", "acme", "feedback:on-behalf");
    for page in ["", "/history", "/resolved"] {
        let path = format!("{ADA}{page}?anonymous=true");
        assert_eq!(
            app.get(&token, &path).await.status,
            StatusCode::OK,
            "{page}"
        );
        let foreign = app.get(&back_end, &path).await;
        assert_eq!(foreign.status, StatusCode::FORBIDDEN, "{page}");
        let bad = app.get(&token, &format!("{ADA}{page}?anonymous=yes")).await;
        assert_eq!(bad.status, StatusCode::BAD_REQUEST, "{page}");
    }
}

#[tokio::test]
async fn acceptances_change_the_resolved_preferences() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let mut events = Vec::new();
    for n in 0..24 {
        let mut event = acceptance("ada");
        event["data"] = json!({"accepted": n < 12});
        let format = if n < 12 { "table" } else { "prose" };
        event["context"]["artifactType"] = json!("checklist");
        event["context"]["artifactFormat"] = json!(format);
        event["context"]["agentId"] = json!(format!("agent-of-{format}"));
        events.push(event);
    }
    app.post(&token, "/v1/feedback/batch", &json!({"events": events}))
        .await;
    for event in &events {
        app.outcome(&token, &id(event)).await;
    }
    let query = "artifactType=checklist&taskType=code-review";
    let resolved = app.get(&token, &format!("{ADA}/resolved?{query}")).await;
    assert_eq!(resolved.body["preferredFormat"], "table");
    assert_eq!(resolved.body["source"]["preferredFormat"], "learned");
    assert_eq!(resolved.body["preferredAgents"], json!(["agent-of-table"]));
    let shown = app.get(&token, ADA).await.body;
    let checklist = &shown["artifactPreferences"]["checklist"];
    assert_eq!(checklist["preferredFormat"], "table");
    assert_eq!(checklist["sampleCount"], 24);
}
