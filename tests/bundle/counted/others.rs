//! What others see of the status of a turn.

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
