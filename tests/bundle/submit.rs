//! `POST /v1/feedback/submit` and `GET /v1/feedback/{feedbackId}`, over HTTP.

use futures::future::join_all;
use hearback_tests::app::TestApp;
use hearback_tests::events::{acceptance, id};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

#[tokio::test]
async fn the_example_event_gives_a_learning_signal() {
    let app = TestApp::start().await;
    let token = app.token("user-123");
    let mut event = acceptance("user-123");
    event["artifactId"] = json!("artifact-456");
    event["timestamp"] = json!("2026-01-04T09:30:00Z");

    let response = app.submit(&token, &event).await;
    assert_eq!(response.status, StatusCode::ACCEPTED);
    assert_eq!(
        response.body,
        json!({
            "feedbackId": event["feedbackId"],
            "dedupeKey": "user-123:artifact-456:artifact-acceptance:2026-01-04T09",
            "status": "queued"
        })
    );

    let outcome = app.outcome(&token, &id(&event)).await;
    assert_eq!(outcome["status"], "processed");
    assert_eq!(
        outcome["signals"][0]["reward"],
        json!({"value": 0.85, "confidence": 0.92, "decay": 0.99})
    );
    let policy = &outcome["signals"][1]["policyUpdate"];
    assert_eq!(policy["adjustmentType"], "weight_boost");
    assert_eq!(outcome["signals"].as_array().map(Vec::len), Some(2));

    let preferences = app.get(&token, "/v1/preferences/user-123").await.body;
    assert_eq!(
        preferences["artifactPreferences"]["unknown"],
        json!({"averageRating": 4.0, "acceptanceRate": 1.0, "sampleCount": 1})
    );

    let again = app.submit(&token, &event).await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    assert_eq!(again.headers["content-type"], "application/problem+json");
    insta::assert_json_snapshot!(again.masked(&["request_id", "feedbackId"]), @r#"
        {
          "detail": "This feedbackId was submitted before.",
          "error": "duplicate_feedback_id",
          "feedbackId": "[masked]",
          "request_id": "[masked]",
          "status": 409,
          "title": "Conflict",
          "type": "about:blank"
        }
        "#);
}

#[tokio::test]
async fn an_invalid_event_is_rejected_with_every_invalid_member() {
    let app = TestApp::start().await;
    let mut event = acceptance("user-123");
    event["feedbackId"] = json!("not-a-uuid");
    event["data"]["rating"] = json!(6);
    event.as_object_mut().unwrap().remove("sessionId");
    let response = app.submit(&app.token("user-123"), &event).await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    insta::assert_json_snapshot!(response.masked(&["request_id"]), @r#"
        {
          "detail": "The request does not fit its schema.",
          "error": "invalid_request",
          "errors": [
            {
              "detail": "must be a UUID",
              "pointer": "/feedbackId"
            },
            {
              "detail": "is required",
              "pointer": "/sessionId"
            },
            {
              "detail": "must be an integer from 1 to 5",
              "pointer": "/data/rating"
            }
          ],
          "request_id": "[masked]",
          "status": 400,
          "title": "Bad Request",
          "type": "about:blank"
        }
        "#);
}

#[tokio::test]
async fn an_unknown_channel_or_type_is_unprocessable() {
    let app = TestApp::start().await;
    let mut event = acceptance("user-123");
    event["feedbackChannel"] = json!("telepathy");
    event["feedbackType"] = json!("applause");
    let response = app.submit(&app.token("user-123"), &event).await;
    assert_eq!(response.status, StatusCode::UNPROCESSABLE_ENTITY);
    insta::assert_json_snapshot!(response.masked(&["request_id"]), @r#"
        {
          "detail": "The request names a channel or a type that is not known.",
          "error": "unknown_value",
          "errors": [
            {
              "detail": "must be one of explicit, implicit, correction",
              "pointer": "/feedbackChannel"
            },
            {
              "detail": "must be one of artifact-acceptance, rating, comment, rejection, modification, dwell-time, scroll-depth",
              "pointer": "/feedbackType"
            }
          ],
          "request_id": "[masked]",
          "status": 422,
          "title": "Unprocessable Entity",
          "type": "about:blank"
        }
        "#);
}

#[tokio::test]
async fn a_body_that_is_not_json_or_too_large_is_rejected() {
    let app = TestApp::start().await;
    let token = app.token("user-123");
    let post = |body: String| {
        let request = app.request(Method::POST, "/v1/feedback/submit");
        app.send(request.bearer_auth(&token).body(body))
    };
    let response = post("{\"feedbackId\": secret".to_owned()).await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    assert!(!response.body.to_string().contains("secret"));

    let largest = 256 * 1024;
    let mut event = acceptance("user-123");
    event["correctionData"] = json!({"originalValue": ""});
    let room = largest - event.to_string().len();
    event["correctionData"]["originalValue"] = json!("x".repeat(room));
    assert_eq!(event.to_string().len(), largest);
    assert_eq!(post(event.to_string()).await.status, StatusCode::ACCEPTED);
    event["feedbackId"] = json!(Uuid::new_v4());
    let response = post(format!("{event} ")).await;
    assert_eq!(response.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(response.body["error"], "body_too_large");
}

#[tokio::test]
async fn a_request_without_a_valid_token_is_rejected() {
    let app = TestApp::start().await;
    let path = "/v1/feedback/submit";
    let event = acceptance("user-123");
    let without_token = app.send(app.request(Method::POST, path).json(&event)).await;
    assert_eq!(without_token.status, StatusCode::UNAUTHORIZED);
    assert_eq!(without_token.headers["www-authenticate"], "Bearer");
    insta::assert_json_snapshot!(without_token.masked(&["request_id"]), @r#"
        {
          "detail": "A valid bearer token is needed.",
          "error": "unauthorized",
          "request_id": "[masked]",
          "status": 401,
          "title": "Unauthorized",
          "type": "about:blank"
        }
        "#);
    let forged = format!("{}x", app.token("user-123"));
    assert_eq!(
        app.submit(&forged, &event).await.status,
        StatusCode::UNAUTHORIZED
    );
    let unknown = app
        .get(
            &app.token("user-123"),
            &format!("/v1/feedback/{}", id(&event)),
        )
        .await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn only_a_back_end_may_submit_for_other_users() {
    let app = TestApp::start().await;
    let event = acceptance("user-123");
    let response = app.submit(&app.token("mallory"), &event).await;
    assert_eq!(response.status, StatusCode::FORBIDDEN);
    insta::assert_json_snapshot!(response.masked(&["request_id"]), @r#"
        {
          "detail": "acting for another user needs the scope feedback:on-behalf",
          "error": "forbidden",
          "request_id": "[masked]",
          "status": 403,
          "title": "Forbidden",
          "type": "about:blank"
        }
        "#);
    let back_end = app.token_of("back-end", "acme", "other feedback:on-behalf");
    assert_eq!(
        app.submit(&back_end, &event).await.status,
        StatusCode::ACCEPTED
    );
}

#[tokio::test]
async fn exactly_one_of_racing_posts_of_one_id_is_accepted() {
    let app = TestApp::start().await;
    let token = app.token("user-123");
    let event = acceptance("user-123");
    let responses = join_all((0..40).map(|_| app.submit(&token, &event))).await;
    let with = |status| {
        responses
            .iter()
            .filter(|response| response.status == status)
            .count()
    };
    assert_eq!(with(StatusCode::ACCEPTED), 1);
    assert_eq!(with(StatusCode::CONFLICT), 39);
}

#[tokio::test]
async fn an_event_of_another_user_looks_unknown() {
    let app = TestApp::start().await;
    let event = acceptance("user-123");
    app.submit(&app.token("user-123"), &event).await;
    let path = format!("/v1/feedback/{}", id(&event));
    let unknown = format!("/v1/feedback/{}", Uuid::new_v4());
    let mallory = app.token("mallory");
    let foreign_tenant = app.token_of("user-123", "umbrella", "feedback:on-behalf feedback:admin");
    let mut bodies = Vec::new();
    for (token, path) in [
        (&mallory, path.as_str()),
        (&foreign_tenant, path.as_str()),
        (&mallory, unknown.as_str()),
        (&mallory, "/v1/feedback/no-uuid"),
    ] {
        let mut response = app.get(token, path).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND);
        response.body["request_id"] = Value::Null;
        bodies.push(response.body);
    }
    assert!(
        bodies.windows(2).all(|pair| pair[0] == pair[1]),
        "{bodies:?}"
    );
    let own = app.get(&app.token("user-123"), &path).await;
    assert_eq!(own.status, StatusCode::OK);
}

#[tokio::test]
async fn the_same_id_in_another_tenant_is_another_event() {
    let app = TestApp::start().await;
    let event = acceptance("user-123");
    for tenant in ["acme", "umbrella"] {
        let token = app.token_of("user-123", tenant, "");
        assert_eq!(
            app.submit(&token, &event).await.status,
            StatusCode::ACCEPTED
        );
    }
}

#[tokio::test]
async fn an_unsupported_method_gets_405_and_an_unknown_path_404() {
    let app = TestApp::start().await;
    let token = app.token("user-123");
    let wrong = app.put(&token, "/v1/feedback/submit", &json!({})).await;
    assert_eq!(wrong.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(wrong.headers["allow"], "POST");
    assert_eq!(wrong.body["error"], "method_not_allowed");
    let unknown = app.get(&token, "/v1/nothing").await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    assert_eq!(unknown.body["error"], "not_found");
}

#[tokio::test]
async fn an_anonymous_event_leaves_no_name_and_no_personal_data_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let app = TestApp::on(Some(folder.path().to_owned())).await;
    let (user, session) = ("ada.lovelace", "session-of-ada");
    let token = app.token(user);
    let mut event = acceptance(user);
    event["sessionId"] = json!(session);
    event["data"]["comment"] = json!("my number is 555-0100");
    event["data"]["modifiedElements"] = json!(["field of ada@example.org"]);
    event["correctionData"] = json!({
        "originalValue": "pay DE89 3704 0044 0532 0130 00", "correctedValue": "ask 203.0.113.77"
    });
    event["privacyFlags"] = json!({"anonymize": true});
    let response = app.submit(&token, &event).await;
    assert_eq!(response.status, StatusCode::ACCEPTED);
    // The response to the caller contains their own name.
    assert!(
        response.body["dedupeKey"]
            .as_str()
            .unwrap()
            .starts_with(user)
    );

    // The user can still read the outcome.
    let outcome = app.outcome(&token, &id(&event)).await;
    assert_eq!(outcome["status"], "processed");
    assert_eq!(outcome["signals"][0]["reward"]["confidence"], 0.92);
    assert!(
        outcome["signals"][0]["context"]["userId"]
            .as_str()
            .unwrap()
            .starts_with("anon-")
    );

    app.bundle.stop().await;
    let raw = [
        user,
        session,
        "555-0100",
        "ada@example.org",
        "DE89",
        "203.0.113",
    ];
    assert_eq!(found_in_files(folder.path(), &raw), None);
}

/// The first of these words in a file of the folder, and the file.
pub fn found_in_files<'a>(
    folder: &std::path::Path,
    words: &[&'a str],
) -> Option<(&'a str, std::path::PathBuf)> {
    files(folder).into_iter().find_map(|file| {
        // The engines may delete a file meanwhile.
        let bytes = std::fs::read(&file).ok()?;
        let is_in = |word: &&&str| {
            let mut windows = bytes.windows(word.len());
            windows.any(|window| window == word.as_bytes())
        };
        let word = words.iter().find(is_in).copied()?;
        Some((word, file))
    })
}

fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[tokio::test]
async fn an_expired_event_is_not_returned_although_its_row_still_exists() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let mut expired = acceptance("ada");
    expired["privacyFlags"] = json!({"retentionDays": 1});
    let mut kept = acceptance("ada");
    kept["privacyFlags"] = json!({"retentionDays": 3});
    for (event, status) in [(&expired, StatusCode::NOT_FOUND), (&kept, StatusCode::OK)] {
        let caller = hearback_domain::identity::caller::Caller {
            user: "ada".try_into().unwrap(),
            tenant: "acme".try_into().unwrap(),
            projects: Vec::new(),
            scopes: Vec::new(),
        };
        let received = chrono::Utc::now() - chrono::TimeDelta::days(2);
        let pseudonyms = hearback_domain::identity::privacy::Pseudonyms::new("key");
        let read = hearback_domain::events::submission::Submission::parse;
        let submission = read(event, &caller, &pseudonyms, received).unwrap();
        let store = &app.bundle.store;
        store.put_event(&submission.event).await.unwrap();
        let found = app
            .get(&token, &format!("/v1/feedback/{}", id(event)))
            .await;
        assert_eq!(found.status, status);
    }
}
