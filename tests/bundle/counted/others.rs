//! What others see of the status of a turn, and of the feedback that sets it.

use super::*;

#[tokio::test]
async fn others_see_a_status_without_message_signals() {
    let (app, ada) = with_turn().await;
    let report = app.token_of("analyst", "acme", "feedback:report");
    let machine = app.token_of("back-end", "acme", "feedback:on-behalf");
    let context = format!("{}/feedback-context", path("c", "t"));
    for inferred in ["neutral", "accepted"] {
        if inferred == "accepted" {
            accept_by_the_next_turn(&app, &ada).await;
        }
        let before = app.get(&report, &path("c", "t")).await.body;
        assert_eq!(before["user_feedback_status"], inferred);
        rate(&app, &ada, "unsafe", None).await;
        wait_for_status(&app, &ada, "rejected").await;
        let after = app.get(&report, &path("c", "t")).await.body;
        for member in ["user_feedback_status", "feedback_confidence"] {
            assert_eq!(after[member], before[member]);
        }
        let seen = app.get(&report, &context).await.body;
        assert_eq!(seen["status"], inferred);
        assert_eq!(seen["rejection"], Value::Null);
        for (token, view, listed) in [
            (&report, "", 0),
            (&ada, "", 1),
            (&machine, "&user_id=ada", 1),
        ] {
            let page = app.get(token, &format!("{BY_STATUS}{view}")).await.body;
            assert_eq!(page["turns"].as_array().unwrap().len(), listed, "{page}");
        }
        withdraw(&app, &ada, "unsafe").await;
        wait_for_status(&app, &ada, inferred).await;
    }
    // A signal does not hide the user's reaction from others either.
    let feedback = format!("{}/feedback", path("c", "t"));
    let reaction = json!({"reaction": "not_ok"});
    let response = app.post(&ada, &feedback, &reaction).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    wait_for_status(&app, &ada, "rejected").await;
    rate(&app, &ada, "helpful", None).await;
    wait_for_status(&app, &ada, "accepted").await;
    wait_for_status(&app, &report, "rejected").await;
    let seen = app.get(&report, &context).await.body;
    assert_eq!(seen["status"], "rejected");
    let listed = app.get(&ada, BY_STATUS).await.body;
    assert_eq!(listed["turns"], json!([]));
    eventually(|| async {
        let listed = app.get(&report, BY_STATUS).await.body;
        (listed["turns"][0]["turn_id"] == "t").then_some(())
    })
    .await;
}

#[tokio::test]
async fn others_see_the_verdict_of_an_event_in_the_timeline_without_its_name_and_text() {
    let (app, ada) = with_turn().await;
    accept_by_the_next_turn(&app, &ada).await;
    let comment = "That is the result of 2002";
    let event = about_the_turn("ada", "rejection", json!({"comment": comment}));
    submit(&app, &ada, &event).await;
    wait_for_status(&app, &ada, "rejected").await;
    rate(&app, &ada, "inaccurate", Some("It is 1969")).await;
    reported(&app, &ada, 3).await;
    let refresh = format!("{}/timeline/refresh", conversation_path("c"));
    let request = json!({"turn_ids": ["t"], "cache": {"ttl_seconds": 0}});
    let analyst = app.token_of("analyst", "acme", "feedback:report");
    let seen = app.post(&analyst, &refresh, &request).await.body;
    let mut blocks = seen["blocks"].as_array().unwrap().iter();
    let own = blocks.find(|block| block["path"] == "ar:t.feedback.user");
    let own = own.unwrap_or_else(|| panic!("{seen}"));
    assert_eq!(own["meta"]["reaction"], "not_ok");
    assert_eq!(own["meta"]["user_id"], Value::Null);
    let text = seen.to_string();
    assert!(!text.contains(comment) && !text.contains("1969"), "{text}");
    // Another user sees neither.
    let eve = app.post(&app.token("eve"), &refresh, &request).await.body;
    assert_eq!(eve["blocks"], json!([]));
}
