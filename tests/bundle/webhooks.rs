//! Webhooks, as administrators and targets see them.

use hearback_tests::app::{TestApp, eventually};
use hearback_tests::events::acceptance;
use hearback_tests::turns::{SIGNALS, message, path};
use hearback_tests::webhook_target::{Answer, Target};
use reqwest::StatusCode;
use serde_json::{Value, json};

const HOOK: &str = "/v1/webhooks/crm";

async fn put(app: &TestApp, name: &str, body: &Value) -> Value {
    let admin = app.token_of("root", "acme", "feedback:admin");
    let response = app.put(&admin, &format!("/v1/webhooks/{name}"), body).await;
    assert!(response.status.is_success(), "{:?}", response.body);
    response.body
}

async fn listed(app: &TestApp) -> Vec<Value> {
    let admin = app.token_of("root", "acme", "feedback:admin");
    let response = app.get(&admin, "/v1/webhooks").await;
    assert_eq!(response.status, StatusCode::OK);
    response.body["webhooks"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_webhook_is_put_changed_listed_and_removed() {
    let app = TestApp::start().await;
    let admin = app.token_of("root", "acme", "feedback:admin");
    let body = json!({"url": "https://example.com/hook", "outcomes": ["rejected"]});
    let created = app.put(&admin, HOOK, &body).await;
    assert_eq!(created.status, StatusCode::CREATED);
    let secret = created.body["secret"].as_str().unwrap();
    assert!(
        secret.starts_with("whsec_") && secret.len() == 50,
        "{secret}"
    );
    assert_eq!(created.body["status"], "active");
    assert_eq!(created.body["tokenProjects"], json!(["order-service"]));

    let changed = app
        .put(&admin, HOOK, &json!({"url": "https://example.com/other"}))
        .await;
    assert_eq!(changed.status, StatusCode::OK);
    assert_eq!(
        changed.body["secret"],
        Value::Null,
        "a secret is shown once"
    );
    assert_eq!(changed.body["outcomes"], json!([]));
    let [only] = listed(&app).await.try_into().unwrap();
    assert_eq!(only, changed.body);

    let renewed = app
        .post(&admin, &format!("{HOOK}/secret"), &Value::Null)
        .await;
    assert_eq!(renewed.status, StatusCode::OK);
    assert_ne!(renewed.body["secret"], secret);

    assert_eq!(
        app.delete(&admin, HOOK).await.status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(app.delete(&admin, HOOK).await.status, StatusCode::NOT_FOUND);
    for action in ["secret", "test"] {
        let response = app
            .post(&admin, &format!("{HOOK}/{action}"), &Value::Null)
            .await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{action}");
    }
    assert_eq!(listed(&app).await, [] as [Value; 0]);
}

#[tokio::test]
async fn a_webhook_that_cannot_be_called_is_rejected_with_its_errors() {
    let app = TestApp::start().await;
    let admin = app.token_of("root", "acme", "feedback:admin");
    for (url, detail) in [
        ("example.com", "must be an absolute URL"),
        ("ftp://example.com", "must begin with https://"),
        ("http://example.com", ""),
        ("https://10.0.0.1/", "must not have a private address"),
        ("https://[::1]/", "must not have a private address"),
        (
            "https://169.254.169.254/latest",
            "must not have a private address",
        ),
        ("https://a:b@example.com/", "must not have a user"),
    ] {
        let response = app.put(&admin, HOOK, &json!({"url": url})).await;
        if detail.is_empty() {
            // A name is resolved when it is called.
            assert_eq!(response.status, StatusCode::CREATED, "{url}");
            continue;
        }
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{url}");
        let [error] = response.body["errors"].as_array().unwrap().as_slice() else {
            panic!("{:?}", response.body);
        };
        assert_eq!(error["pointer"], "/url");
        assert!(
            error["detail"].as_str().unwrap().starts_with(detail),
            "{error}"
        );
    }
    let wrong = json!({"url": 7, "subjects": ["feedback"], "outcomes": [3], "filter": {}});
    let response = app.put(&admin, HOOK, &wrong).await;
    let errors = response.body["errors"].as_array().unwrap();
    let pointers: Vec<_> = errors
        .iter()
        .map(|error| error["pointer"].as_str().unwrap())
        .collect();
    assert_eq!(pointers, ["/filter", "/url", "/subjects/0", "/outcomes/0"]);
    let foreign = json!({"url": "https://example.com/", "projects": ["billing"]});
    assert_eq!(
        app.put(&admin, HOOK, &foreign).await.status,
        StatusCode::FORBIDDEN
    );
}

#[tokio::test]
async fn a_tenant_has_twenty_webhooks_at_most() {
    let app = TestApp::start().await;
    let admin = app.token_of("root", "acme", "feedback:admin");
    let body = json!({"url": "https://example.com/"});
    for number in 0..20 {
        put(&app, &format!("hook-{number}"), &body).await;
    }
    let another = app.put(&admin, HOOK, &body).await;
    assert_eq!(another.status, StatusCode::CONFLICT);
    assert_eq!(another.body["error"], "too_many_webhooks");
    let changed = app.put(&admin, "/v1/webhooks/hook-7", &body).await;
    assert_eq!(changed.status, StatusCode::OK);
}

#[tokio::test]
async fn published_messages_reach_the_webhooks_that_want_them() {
    let app = TestApp::start().await;
    let (all, rejections, elsewhere) = (
        Target::start().await,
        Target::start().await,
        Target::start().await,
    );
    put(&app, "all", &json!({"url": all.url()})).await;
    put(
        &app,
        "rejections",
        &json!({"url": rejections.url(), "outcomes": ["rejected"]}),
    )
    .await;
    // Of the same tenant, by an administrator without the project.
    let other = app.token_in("root", &["billing"]);
    assert_eq!(
        app.put(&other, HOOK, &json!({"url": elsewhere.url()}))
            .await
            .status,
        StatusCode::FORBIDDEN
    );

    let ada = app.token("ada");
    let event = acceptance("ada");
    app.submit(&ada, &event).await;
    let mut rejected = acceptance("ada");
    rejected["data"] = json!({"accepted": false});
    app.submit(&ada, &rejected).await;
    let calls = all.received(4).await;
    let call = calls
        .iter()
        .find(|call| call.body["feedbackId"] == event["feedbackId"])
        .unwrap();
    assert_eq!(call.header("webhook-id"), call.body["id"]);
    assert_eq!(call.header("content-type"), "application/json");
    assert!(call.header("webhook-signature").starts_with("v1,"));
    let received = rejections.received(1).await;
    assert_eq!(received[0].body["feedbackId"], rejected["feedbackId"]);
    let withdraw = format!("/v1/feedback/{}", rejected["feedbackId"].as_str().unwrap());
    assert!(app.delete(&ada, &withdraw).await.status.is_success());
    let received = rejections.received(2).await;
    assert_eq!(received[1].event_type(), "feedback.retracted");
    assert_eq!(received.len(), 2);
    assert_eq!(listed(&app).await[0]["status"], "active");
}

#[tokio::test]
async fn private_feedback_reaches_no_webhook() {
    let app = TestApp::start().await;
    let target = Target::start().await;
    put(&app, "crm", &json!({"url": target.url()})).await;
    let ada = app.token("ada");
    let turn = message("m1", "How do I return a parcel?", "You cannot.");
    let registered = app.put(&ada, &path("c", "t1"), &turn).await;
    assert_eq!(registered.status, StatusCode::CREATED);
    let signal = json!({"message_id": "m1", "signal": "inaccurate"});
    assert_eq!(
        app.post(&ada, SIGNALS, &signal).await.status,
        StatusCode::CREATED
    );
    // The signal is in the feed of its user, marked as private, before what follows is sent.
    let feed = eventually(|| async {
        let feed = app
            .get(&ada, "/v1/feedback/events?since=2020-01-01T00:00:00Z")
            .await
            .body;
        let events = feed["events"].as_array()?.clone();
        (!events.is_empty()).then_some(events)
    })
    .await;
    assert!(
        feed.iter().all(|event| event["private"] == true),
        "{feed:?}"
    );
    let event = acceptance("ada");
    app.submit(&ada, &event).await;
    let calls = target.received(1).await;
    assert!(
        calls.iter().all(|call| call.body["private"] == Value::Null),
        "{calls:?}"
    );
    assert!(
        calls
            .iter()
            .any(|call| call.body["feedbackId"] == event["feedbackId"])
    );
}

#[tokio::test]
async fn a_target_that_fails_for_a_while_receives_the_message_later() {
    let app = TestApp::start().await;
    let (failing, working) = (Target::start().await, Target::start().await);
    failing.answers([Answer::Status(500)], Answer::Status(204));
    let body = |target: &Target| json!({"url": target.url(), "eventTypes": ["feedback.processed"]});
    put(&app, "failing", &body(&failing)).await;
    put(&app, "working", &body(&working)).await;
    app.submit(&app.token("ada"), &acceptance("ada")).await;
    let [received] = working.received(1).await.try_into().unwrap();
    let failed = eventually(|| async {
        let [failed, _] = listed(&app).await.try_into().unwrap();
        (failed["status"] == "failing").then_some(failed)
    })
    .await;
    assert_eq!(failed["lastFailure"], "the target answered 500");
    let [first, second] = failing.received(2).await.try_into().unwrap();
    for call in [&first, &second] {
        assert_eq!(call.bytes, received.bytes);
        assert_eq!(call.header("webhook-id"), received.header("webhook-id"));
    }
    eventually(|| async { (listed(&app).await[0]["status"] == "active").then_some(()) }).await;
    assert_eq!(working.calls().len(), 1, "the other one receives it once");
}
