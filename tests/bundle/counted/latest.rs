//! A user's latest feedback counts, of whatever kind, and a clock that is ahead makes none later.

use chrono::{TimeDelta, Utc};

use super::*;

#[tokio::test]
async fn a_clock_that_is_ahead_does_not_outrank_later_feedback() {
    let (app, ada) = with_turn().await;
    let feedback = format!("{}/feedback", path("c", "t"));
    let ahead = |minutes| Utc::now() + TimeDelta::minutes(minutes);
    let reaction = json!({"reaction": "ok", "ts": ahead(4)});
    let response = app.post(&ada, &feedback, &reaction).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    wait_for_status(&app, &ada, "accepted").await;
    rate(&app, &ada, "unsafe", None).await;
    wait_for_status(&app, &ada, "rejected").await;
    let mut rating = about_the_turn("ada", "rating", json!({"rating": 5}));
    rating["timestamp"] = json!(ahead(4));
    submit(&app, &ada, &rating).await;
    wait_for_status(&app, &ada, "accepted").await;
    rate(&app, &ada, "inaccurate", None).await;
    wait_for_status(&app, &ada, "rejected").await;
}

#[tokio::test]
async fn a_time_of_more_than_five_minutes_ahead_is_rejected() {
    let (app, ada) = with_turn().await;
    let ahead = Utc::now() + TimeDelta::minutes(6);
    let mut rating = about_the_turn("ada", "rating", json!({"rating": 5}));
    rating["timestamp"] = json!(ahead);
    let mut turn = turn_body("a question", "an answer");
    turn["ts"] = json!(ahead);
    let reaction = json!({"reaction": "ok", "ts": ahead});
    for (response, pointer) in [
        (app.submit(&ada, &rating).await, "/timestamp"),
        (app.put(&ada, &path("c", "later"), &turn).await, "/ts"),
        (
            app.post(&ada, &format!("{}/feedback", path("c", "t")), &reaction)
                .await,
            "/ts",
        ),
    ] {
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{pointer}");
        let error = &response.body["errors"][0];
        assert_eq!(error["pointer"], pointer);
        assert_eq!(
            error["detail"],
            "must not be more than 5 minutes in the future"
        );
    }
    let later = app.get(&ada, &path("c", "later")).await;
    assert_eq!(later.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_later_received_of_two_events_in_the_same_second_counts() {
    let (app, ada) = with_turn().await;
    let second = "2026-01-04T10:00:30Z";
    for (rating, status) in [(1, "rejected"), (5, "accepted"), (2, "rejected")] {
        let mut event = about_the_turn("ada", "rating", json!({"rating": rating}));
        event["timestamp"] = json!(second);
        event["artifactId"] = json!(format!("artifact-{rating}"));
        submit(&app, &ada, &event).await;
        wait_for_status(&app, &ada, status).await;
    }
}

#[tokio::test]
async fn the_users_latest_feedback_of_any_kind_sets_the_status_of_the_turn() {
    let (app, ada) = with_turn().await;
    let feedback = format!("{}/feedback", path("c", "t"));
    let react = async |reaction: Value| {
        let body = json!({"reaction": reaction});
        let response = app.post(&ada, &feedback, &body).await;
        assert_eq!(response.status, StatusCode::OK);
    };
    rate(&app, &ada, "not_helpful", None).await;
    wait_for_status(&app, &ada, "rejected").await;
    react(json!("ok")).await;
    wait_for_status(&app, &ada, "accepted").await;
    rate(&app, &ada, "unsafe", None).await;
    wait_for_status(&app, &ada, "rejected").await;
    submit(
        &app,
        &ada,
        &about_the_turn("ada", "rating", json!({"rating": 5})),
    )
    .await;
    // Without a time the event counts as the latest.
    wait_for_status(&app, &ada, "accepted").await;
    rate(&app, &ada, "helpful", None).await;
    withdraw(&app, &ada, "unsafe").await;
    withdraw(&app, &ada, "helpful").await;
    react(Value::Null).await;
    wait_for_status(&app, &ada, "accepted").await;
    rate(&app, &ada, "inaccurate", None).await;
    wait_for_status(&app, &ada, "rejected").await;
    withdraw(&app, &ada, "inaccurate").await;
    wait_for_status(&app, &ada, "accepted").await;
}

#[tokio::test]
async fn a_repeated_signal_is_the_latest_feedback() {
    let (app, ada) = with_turn().await;
    for (signal, status) in [
        ("helpful", "accepted"),
        ("not_helpful", "rejected"),
        ("helpful", "accepted"),
    ] {
        rate(&app, &ada, signal, None).await;
        wait_for_status(&app, &ada, status).await;
    }
}
