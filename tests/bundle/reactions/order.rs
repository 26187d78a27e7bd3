//! Which of several reactions is current: the newest, in whatever order they are received.

use super::*;

#[tokio::test]
async fn an_older_reaction_is_reported_as_not_applied() {
    let (app, token) = with_turn().await;
    let newer = json!({"reaction": "ok", "ts": "2025-11-06T15:30:00Z"});
    let newer = react(&app, &token, newer).await;
    assert_eq!(newer.body["applied"], true);
    let older = json!({"reaction": "not_ok", "ts": "2025-11-06T15:29:00Z"});
    let older = react(&app, &token, older).await;
    assert_eq!(older.status, StatusCode::OK);
    assert_eq!(older.body["applied"], false);
    assert_eq!(
        older.body["reaction"], "ok",
        "the response has the current reaction"
    );
    assert_eq!(older.body["feedback_id"], newer.body["feedback_id"]);
}

#[tokio::test]
async fn the_newest_of_ninety_racing_reactions_is_current() {
    let (app, token) = with_turn().await;
    // The limit of concurrent requests of one user.
    let bodies: Vec<_> = (0..90)
        .map(|n| {
            let verdict = ["ok", "not_ok", "neutral"][n % 3];
            // Out of order.
            let second = (n * 37) % 90;
            let ts = format!("2025-11-06T15:{:02}:{:02}Z", second / 60, second % 60);
            json!({"reaction": verdict, "text": format!("number {second}"), "ts": ts})
        })
        .collect();
    let responses = join_all(bodies.into_iter().map(|body| react(&app, &token, body))).await;
    for response in &responses {
        assert_eq!(response.status, StatusCode::OK, "{:?}", response.body);
    }
    let artifacts = current_reactions(&app, &token).await;
    assert_eq!(artifacts.len(), 1);
    assert_eq!(artifacts[0]["reaction"]["text"], "number 89");
}

#[tokio::test]
async fn times_with_offsets_compare_as_instants() {
    let (app, token) = with_turn().await;
    let later = json!({"reaction": "ok", "ts": "2025-11-06T17:30:00+02:00"});
    let earlier = json!({"reaction": "not_ok", "ts": "2025-11-06T15:29:59Z"});
    react(&app, &token, later).await;
    let superseded = react(&app, &token, earlier).await;
    assert_eq!(superseded.status, StatusCode::OK);
    let artifacts = current_reactions(&app, &token).await;
    assert_eq!(artifacts[0]["reaction"]["reaction"], "ok");
    assert_eq!(artifacts[0]["reaction"]["ts"], "2025-11-06T15:30:00Z");
}

#[tokio::test]
async fn reactions_that_alternate_at_the_same_time_are_separate_acts() {
    let (app, token) = with_turn().await;
    for verdict in ["ok", "not_ok", "ok"] {
        let body = json!({"reaction": verdict, "ts": "2026-01-01T00:00:00Z"});
        react(&app, &token, body).await;
    }
    let events = eventually(|| async {
        let events = ledger(&app, &token, 3).await;
        (of_status(&events, "retracted").len() == 2).then_some(events)
    })
    .await;
    assert_eq!(of_status(&events, "processed").len(), 1);
    // A retry of the last one is the same act.
    let again = json!({"reaction": "ok", "ts": "2026-01-01T00:00:00Z"});
    react(&app, &token, again).await;
    assert_eq!(ledger(&app, &token, 3).await.len(), 3);
}

#[tokio::test]
async fn a_reaction_without_a_time_is_the_newest() {
    let (app, token) = with_turn().await;
    let ahead = chrono::Utc::now() + chrono::TimeDelta::minutes(4);
    react(&app, &token, json!({"reaction": "ok", "ts": ahead})).await;
    react(&app, &token, json!({"reaction": "not_ok"})).await;
    let artifacts = current_reactions(&app, &token).await;
    assert_eq!(artifacts[0]["reaction"]["reaction"], "not_ok");
    let cleared = react(&app, &token, json!({"reaction": null})).await;
    assert_eq!(cleared.body["cleared"], true);
}
