//! Which of several statements about a turn counts: the user's explicit one, or else that of the nearest turn after it.

use chrono::{TimeDelta, Utc};
use hearback_tests::turns::conversation_path;

use super::*;

/// The status of the turn `t1`, and what a report and a timeline say about it.
async fn voices_on_t1(app: &TestApp, ada: &str) -> [Value; 3] {
    let report = format!("{}/turns-with-feedbacks", conversation_path("c"));
    let page = app
        .post(ada, &report, &json!({"turn_ids": ["t1"], "days": 3650}))
        .await
        .body;
    let refresh = format!("{}/timeline/refresh", conversation_path("c"));
    let request = json!({"turn_ids": ["t1"], "cache": {"ttl_seconds": 0}});
    let timeline = app.post(ada, &refresh, &request).await.body;
    let marked = turn(app, ada, "t1").await;
    [
        marked["user_feedback_status"].clone(),
        page["turns"][0]["satisfaction_rate"].clone(),
        timeline["blocks"][0]["meta"]["reaction"].clone(),
    ]
}

#[tokio::test]
async fn a_turn_registered_late_counts_alike_in_the_status_rates_and_timelines() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    register(&app, &ada, "t1", (0, "laptops under $1000")).await;
    register(&app, &ada, "t3", (120, "Thanks!")).await;
    let accepted = [json!("accepted"), json!(1.0), json!("ok")];
    assert_eq!(voices_on_t1(&app, &ada).await, accepted);
    register(&app, &ada, "t2", (60, REJECTION)).await;
    let rejected = [json!("rejected"), json!(0.0), json!("not_ok")];
    assert_eq!(voices_on_t1(&app, &ada).await, rejected);
}

#[tokio::test]
async fn the_nearest_following_turn_counts_even_if_a_farther_one_has_a_future_time() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let register = async |turn: &str, query: &str, ahead: Option<i64>| {
        let mut body = turn_body(query, "Here are three business laptops under $1000.");
        if let Some(seconds) = ahead {
            body["ts"] = json!(Utc::now() + TimeDelta::seconds(seconds));
        }
        let response = app.put(&ada, &path("c", turn), &body).await;
        assert_eq!(response.status, StatusCode::CREATED, "{}", response.body);
    };
    register("t1", "laptops under $1000", Some(-60)).await;
    register("t3", "Thanks!", Some(60)).await;
    register("t2", REJECTION, None).await;
    let rejected = [json!("rejected"), json!(0.0), json!("not_ok")];
    assert_eq!(voices_on_t1(&app, &ada).await, rejected);
}

#[tokio::test]
async fn a_repeated_inference_is_the_latest_feedback() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    register(&app, &ada, "t1", (0, "gaming laptops under $1000")).await;
    let infer = "/conversations/acme/order-service/feedback/infer";
    let wrong = "No, the business laptops are wrong, I asked for gaming laptops";
    for (message, expected) in [
        (wrong, [json!("rejected"), json!(0.0), json!("not_ok")]),
        (
            "Perfect, thanks for the gaming laptops under $1000",
            [json!("accepted"), json!(1.0), json!("ok")],
        ),
        (wrong, [json!("rejected"), json!(0.0), json!("not_ok")]),
    ] {
        let inferred = app
            .post(&ada, infer, &json!({"message": message}))
            .await
            .body;
        assert!(inferred["rn"].is_string(), "{inferred}");
        assert_eq!(voices_on_t1(&app, &ada).await, expected, "{message}");
    }
}

#[tokio::test]
async fn the_nearest_following_turn_counts_whenever_it_is_registered() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    register(&app, &ada, "t1", (0, "laptops under $1000")).await;
    register(&app, &ada, "t3", (120, "Thanks!")).await;
    register(&app, &ada, "t2", (60, REJECTION)).await;
    let marked = turn(&app, &ada, "t1").await;
    assert_eq!(marked["user_feedback"]["detected_in_turn"], "t2");
    assert_eq!(marked["user_feedback_status"], "rejected");
}

#[tokio::test]
async fn explicit_feedback_outranks_inferred_feedback() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    register(&app, &ada, "t1", (0, "laptops under $1000")).await;
    register(&app, &ada, "t2", (60, REJECTION)).await;
    let feedback = format!("{}/feedback", path("c", "t1"));
    let status = |expected: &'static str| {
        let (app, ada) = (&app, &ada);
        async move {
            eventually(|| async {
                let turn = turn(app, ada, "t1").await;
                (turn["user_feedback_status"] == expected).then_some(turn)
            })
            .await
        }
    };
    app.post(&ada, &feedback, &json!({"reaction": "ok"})).await;
    let flipped = status("accepted").await;
    assert_eq!(flipped["feedback_confidence"], 1.0);
    assert_eq!(flipped["rejection_detected_in"], Value::Null);
    // The response still contains what was inferred.
    assert_eq!(flipped["user_feedback"]["status"], "rejected");
    // Another user's reaction does not change the status.
    let other = json!({"reaction": "not_ok"});
    app.post(&app.token("eve"), &feedback, &other).await;
    app.post(&ada, &feedback, &json!({"reaction": "neutral"}))
        .await;
    status("neutral").await;
    // After the withdrawal the inferred status counts again.
    app.post(&ada, &feedback, &json!({"reaction": null})).await;
    status("rejected").await;
    let report = format!("{}/turns-with-feedbacks", conversation_path("c"));
    let report = app.post(&ada, &report, &json!({"days": 3650})).await;
    assert_eq!(
        report.body["turns"][0]["reactions"][0]["reaction"]["origin"],
        "machine"
    );
}
