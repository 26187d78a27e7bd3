//! What the planner's context of a turn says about the feedback that counts for it.

use super::*;

#[tokio::test]
async fn the_planner_context_does_not_list_an_inaccurate_answer_as_accepted() {
    let (app, ada) = with_turn().await;
    accept_by_the_next_turn(&app, &ada).await;
    rate(&app, &ada, "inaccurate", Some("It is 1969")).await;
    wait_for_status(&app, &ada, "rejected").await;
    let turn = app.get(&ada, &path("c", "t")).await.body;
    assert_eq!(turn["feedback_confidence"], 1.0);
    let context = format!("{}/feedback-context", path("c", "t"));
    let context = app.get(&ada, &context).await.body;
    assert_eq!(context["status"], "rejected");
    assert_eq!(context["rejection"]["detected_by"], "user");
    let wrong = context["rejection"]["what_went_wrong"].as_str().unwrap();
    assert!(wrong.contains("inaccurate: \"It is 1969\""), "{wrong}");
    let listed = app.get(&ada, BY_STATUS).await.body;
    assert_eq!(listed["turns"][0]["turn_id"], "t");
    let search = app.post(&ada, SEARCH, &json!({"query": QUERY})).await.body;
    assert_eq!(search["strategies"], json!([]));
    // After the withdrawal the inferred status counts again.
    withdraw(&app, &ada, "inaccurate").await;
    wait_for_status(&app, &ada, "accepted").await;
}

/// The rejection in the planner's context of ada's turn.
async fn rejection(app: &TestApp, token: &str) -> Value {
    let context = format!("{}/feedback-context", path("c", "t"));
    app.get(token, &context).await.body["rejection"].clone()
}

#[tokio::test]
async fn the_planner_context_quotes_the_rejecting_event_and_omits_a_settled_complaint() {
    let (app, ada) = with_turn().await;
    rate(&app, &ada, "unsafe", Some("OLD")).await;
    wait_for_status(&app, &ada, "rejected").await;
    assert_eq!(rejection(&app, &ada).await["user_said"], "OLD");
    let feedback = format!("{}/feedback", path("c", "t"));
    app.post(&ada, &feedback, &json!({"reaction": "ok"})).await;
    wait_for_status(&app, &ada, "accepted").await;
    let comment = "That is the result of 2002";
    let event = about_the_turn("ada", "rejection", json!({"comment": comment}));
    submit(&app, &ada, &event).await;
    wait_for_status(&app, &ada, "rejected").await;
    let found = rejection(&app, &ada).await;
    assert_eq!(found["detected_by"], "user");
    assert_eq!(found["user_said"], comment);
    assert_eq!(found["what_went_wrong"], format!("\"{comment}\""));
    assert!(!found.to_string().contains("OLD"), "{found}");
    // Others learn that the turn was rejected, and not what the user wrote in an event.
    let report = app.token_of("analyst", "acme", "feedback:report");
    let seen = rejection(&app, &report).await;
    assert_eq!(seen["detected_by"], "user");
    assert!(!seen.to_string().contains("result of"), "{seen}");
}

#[tokio::test]
async fn the_planner_context_has_the_words_of_an_earlier_rejection_too() {
    let (app, ada) = with_turn().await;
    let comment = "That is the result of 2002";
    let event = about_the_turn("ada", "rejection", json!({"comment": comment}));
    submit(&app, &ada, &event).await;
    wait_for_status(&app, &ada, "rejected").await;
    // A thumb without a reason. It counts once the report lists it among the reactions.
    rate(&app, &ada, "not_helpful", None).await;
    reported(&app, &ada, 2).await;
    let found = rejection(&app, &ada).await;
    assert_eq!(found["user_said"], comment);
    let wrong = found["what_went_wrong"].as_str().unwrap();
    assert!(
        wrong.contains(comment) && wrong.contains("not helpful"),
        "{wrong}"
    );
    // The latest words are what the user said.
    rate(&app, &ada, "inaccurate", Some("It is 1969")).await;
    reported(&app, &ada, 3).await;
    let found = rejection(&app, &ada).await;
    assert_eq!(found["user_said"], "It is 1969");
    assert!(found["what_went_wrong"].as_str().unwrap().contains(comment));
}
