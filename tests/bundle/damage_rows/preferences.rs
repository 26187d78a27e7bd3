//! Damaged versions of preferences.

use super::*;

/// Damages a version of a user's preferences.
async fn damage_version(app: &TestApp, user: &str, version: u64) {
    let (partition, key) = (format!("PREF#acme#{user}"), format!("V#{version:010}"));
    let mut rows = table(app).await.into_iter();
    let row = rows.find(|row| attribute(row, "PK") == partition && attribute(row, "SK") == key);
    let (dynamodb, table) = (&app.bundle.clients.dynamodb, Names::default().table());
    damage(dynamodb, &table, &row.unwrap(), "version").await;
}

#[tokio::test]
async fn a_damaged_newest_version_of_preferences_is_skipped_and_its_number_is_not_used_again() {
    const ADA: &str = "/v1/preferences/ada";
    let app = TestApp::start().await;
    let token = app.token("ada");
    let set = |version: u64, detail: &'static str| {
        let (app, token) = (&app, &token);
        let body = json!({
            "preferenceVersion": version,
            "globalPreferences": {"detailLevel": detail}
        });
        async move { app.put(token, ADA, &body).await }
    };
    for (version, detail) in [(0, "overview"), (1, "deep-dive")] {
        assert_eq!(set(version, detail).await.status, 200);
    }
    damage_version(&app, "ada", 2).await;
    let read = app.get(&token, ADA).await;
    assert_eq!(read.status, 200, "{:?}", read.body);
    assert_eq!(read.body["globalPreferences"]["detailLevel"], "overview");
    assert_eq!(read.headers["etag"], "\"2\"");
    let resolved = app.get(&token, &format!("{ADA}/resolved")).await;
    assert_eq!(resolved.body["detailLevel"], "overview");
    let stale = set(1, "standard").await;
    assert_eq!(stale.status, 409);
    assert_eq!(stale.body["currentVersion"], 2);

    // Feedback writes the version after the damaged one, and so does a change.
    let event = acceptance("ada");
    app.submit(&token, &event).await;
    let outcome = app.outcome(&token, &id(&event)).await;
    assert_eq!(outcome["status"], "processed");
    let learned = app.get(&token, ADA).await.body;
    assert_eq!(learned["preferenceVersion"], 3);
    assert_eq!(learned["globalPreferences"]["detailLevel"], "overview");
    let samples = &learned["artifactPreferences"]["unknown"]["sampleCount"];
    assert_eq!(*samples, 1, "{learned}");
    damage_version(&app, "ada", 3).await;
    let changed = set(3, "standard").await;
    assert_eq!(changed.body["preferenceVersion"], 4, "{:?}", changed.body);

    let mut next = String::new();
    let mut listed = Vec::new();
    for _ in 0..4 {
        let history = format!("{ADA}/history?limit=1{next}");
        let page = app.get(&token, &history).await;
        assert_eq!(page.status, 200, "{:?}", page.body);
        let versions = page.body["versions"].as_array().unwrap();
        listed.extend(
            versions
                .iter()
                .map(|version| version["preferenceVersion"].clone()),
        );
        next = format!("&before={}", page.body["next"]);
    }
    assert_eq!(listed, [4, 1]);
}

#[tokio::test]
async fn a_reset_repairs_preferences_of_which_no_version_can_be_read() {
    const EVE: &str = "/v1/preferences/eve";
    let app = TestApp::start().await;
    let token = app.token("eve");
    let event = acceptance("eve");
    app.submit(&token, &event).await;
    app.outcome(&token, &id(&event)).await;
    damage_version(&app, "eve", 1).await;
    assert_eq!(app.get(&token, EVE).await.status, 404);
    let resolved = app.get(&token, &format!("{EVE}/resolved")).await;
    assert_eq!(
        resolved.body["detailLevel"], "standard",
        "{:?}",
        resolved.body
    );
    let reset = app.post(&token, &format!("{EVE}/reset"), &json!({})).await;
    assert_eq!(reset.body["preferenceVersion"], 2, "{:?}", reset.body);
    assert_eq!(app.get(&token, EVE).await.body["preferenceVersion"], 2);
}
