//! The machine's clock is set back and forward while feedback is queued: nothing is stuck, lost or learned twice.

use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{TimeDelta, Utc};
use futures::future::join_all;
use hearback_lambda::clock::Clock;
use hearback_local::bundle::Options;
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::events::{acceptance, id};
use reqwest::{Method, StatusCode};

/// The offset of the test's clock, in hours.
static HOURS: AtomicI64 = AtomicI64::new(0);

#[tokio::test]
async fn feedback_and_erasures_survive_clock_changes_in_both_directions() {
    let now = || Utc::now() + TimeDelta::hours(HOURS.load(Ordering::SeqCst));
    let app = TestApp::with_options(Options {
        clock: Clock::of(now),
        ..TestApp::options()
    })
    .await;
    let ada = app.token("ada");
    let mut events = Vec::new();
    for hours in [-48, 0, 48, 0] {
        let new_events: Vec<_> = (0..30).map(|_| acceptance("ada")).collect();
        let sent = join_all(new_events.iter().map(|event| app.submit(&ada, event))).await;
        assert!(
            sent.iter()
                .all(|response| response.status == StatusCode::ACCEPTED)
        );
        // The message of an erasure is delayed twice, by a second each.
        let zoe = app.token(&format!("zoe{hours}{}", events.len()));
        let user = format!("zoe{hours}{}", events.len());
        app.submit(&zoe, &acceptance(&user)).await;
        let data = format!("/v1/users/{user}/data");
        let requested = app.send(app.request(Method::DELETE, &data).bearer_auth(&zoe));
        assert_eq!(requested.await.status, StatusCode::ACCEPTED);
        HOURS.store(hours, Ordering::SeqCst);
        for event in &new_events {
            let outcome = app.outcome(&ada, &id(event)).await;
            assert_eq!(
                outcome["status"], "processed",
                "clock moved to {hours} hours"
            );
        }
        eventually(|| async {
            let progress = app.get(&zoe, &format!("{data}/erasure")).await.body;
            (progress["status"] == "done").then_some(())
        })
        .await;
        events.extend(new_events);
    }
    let preferences = app.get(&ada, "/v1/preferences/ada").await.body;
    let learned = &preferences["artifactPreferences"]["unknown"];
    assert_eq!(learned["sampleCount"], events.len(), "{preferences}");
}
