//! Corrections of what was inferred.

use super::*;

/// Says what the turn's follow-up really means.
async fn correct(app: &TestApp, token: &str, turn: &str, feedback_type: &str) -> TestResponse {
    let path = format!("{}/inference", path("c", turn));
    let body = json!({"feedback_type": feedback_type});
    app.put(token, &path, &body).await
}

/// The same, if the inference of this time still counts.
async fn correct_seen(
    app: &TestApp,
    token: &str,
    feedback_type: &str,
    seen: &Value,
) -> TestResponse {
    let path = format!("{}/inference", path("c", "t1"));
    let body = json!({"feedback_type": feedback_type, "detected_at": seen});
    app.put(token, &path, &body).await
}

/// An answer, and a next message that is heard as its rejection.
async fn rejected(app: &TestApp, token: &str) {
    register(app, token, "t1", (0, "laptops under $1000")).await;
    register(app, token, "t2", (120, REJECTION)).await;
    let marked = turn(app, token, "t1").await;
    assert_eq!(marked["user_feedback_status"], "rejected");
}

/// The events of the ledger by status, once there are `expected` and `retracted` of them are.
async fn events(app: &TestApp, token: &str, expected: usize, retracted: usize) -> Vec<Value> {
    eventually(|| async {
        let events = ledger(app, token, expected).await;
        (of_status(&events, "retracted").len() == retracted).then_some(events)
    })
    .await
}

#[tokio::test]
async fn a_false_rejection_is_taken_back_with_its_event_and_stays_so() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    rejected(&app, &ada).await;
    let inferred = events(&app, &ada, 1, 0).await;
    let corrected = correct(&app, &ada, "t1", "neutral").await;
    assert_eq!(corrected.status, StatusCode::OK, "{}", corrected.body);
    assert_eq!(
        corrected.body["withdrawn"],
        json!([inferred[0]["core"]["feedbackId"]])
    );
    assert_eq!(corrected.body["feedback_id"], Value::Null);
    let feedback = &corrected.body["user_feedback"];
    assert_eq!(feedback["status"], "neutral");
    assert_eq!(feedback["user_said"], Value::Null);
    assert_eq!(feedback["corrected"]["was"], "rejected");
    assert_eq!(feedback["corrected"]["confidence"], 0.9);
    assert_eq!(feedback["corrected"]["user_said"], REJECTION);

    let settled = async |what: &str| {
        let marked = turn(&app, &ada, "t1").await;
        assert_eq!(marked["user_feedback_status"], "neutral", "{what}");
        assert_eq!(marked["rejection_detected_in"], Value::Null, "{what}");
        assert_eq!(marked["user_feedback"]["corrected"]["was"], "rejected");
        assert_eq!(marked["reactions"], json!([]), "{what}");
        let context = format!("{}/feedback-context", path("c", "t1"));
        let context = app.get(&ada, &context).await.body;
        assert!(
            !context.to_string().contains(REJECTION),
            "{what}: {context}"
        );
        events(&app, &ada, 1, 1).await;
    };
    settled("corrected").await;
    // What the message was heard as is still with its own turn.
    let heard = turn(&app, &ada, "t2").await;
    assert_eq!(heard["detection"]["feedback_type"], "rejected");
    assert_eq!(heard["detection"]["previous_turn_id"], "t1");
    assert!(heard["detection"]["consecutive_rejections"].is_null());

    // Neither the registration again nor the same correction changes it.
    register(&app, &ada, "t2", (120, REJECTION)).await;
    settled("registered again").await;
    let again = correct(&app, &ada, "t1", "neutral").await.body;
    assert_eq!(again["withdrawn"], corrected.body["withdrawn"]);
    settled("corrected again").await;
}

#[tokio::test]
async fn a_correction_to_another_verdict_is_an_event_of_its_own_and_may_be_corrected_again() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    rejected(&app, &ada).await;
    events(&app, &ada, 1, 0).await;
    let accepted = correct(&app, &ada, "t1", "accepted").await.body;
    assert_eq!(accepted["withdrawn"].as_array().unwrap().len(), 1);
    let marked = turn(&app, &ada, "t1").await;
    assert_eq!(marked["user_feedback_status"], "accepted");
    assert_eq!(marked["feedback_confidence"], 1.0);
    let stored = events(&app, &ada, 2, 1).await;
    let event = of_status(&stored, "processed")[0];
    assert_eq!(event["core"]["feedbackId"], accepted["feedback_id"]);
    assert_eq!(event["core"]["channel"], "implicit");
    assert_eq!(event["core"]["accepted"], true);
    assert_eq!(event["core"]["confidence"], 1.0);
    // When its user wrote it, not when it was corrected.
    assert_eq!(event["core"]["timestamp"], "2026-01-04T10:02:00Z");

    // It was a rejection after all: another act than the one that was taken back.
    let rejected = correct(&app, &ada, "t1", "rejected").await.body;
    let feedback = &rejected["user_feedback"];
    assert_eq!(feedback["corrected"]["was"], "rejected");
    assert_eq!(feedback["corrected"]["confidence"], 0.9);
    assert_eq!(feedback["user_said"], REJECTION);
    let withdrawn = rejected["withdrawn"].as_array().unwrap();
    assert_eq!(withdrawn.len(), 2, "{rejected}");
    assert!(!withdrawn.contains(&rejected["feedback_id"]), "{rejected}");
    let stored = events(&app, &ada, 3, 2).await;
    let event = of_status(&stored, "processed")[0];
    assert_eq!(event["core"]["feedbackId"], rejected["feedback_id"]);
    let marked = turn(&app, &ada, "t1").await;
    let reaction = &marked["reactions"][0]["reaction"];
    assert_eq!(
        (&reaction["reaction"], &reaction["text"]),
        (&json!("not_ok"), &json!(REJECTION))
    );
    // Confirming it changes nothing.
    let confirmed = correct(&app, &ada, "t1", "rejected").await.body;
    assert_eq!(confirmed["feedback_id"], rejected["feedback_id"]);
    events(&app, &ada, 3, 2).await;
}

#[tokio::test]
async fn what_was_not_heard_becomes_an_event_and_explicit_feedback_still_outranks_it() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    register(&app, &ada, "t1", (0, "laptops under $1000")).await;
    let message = "Do you have something for a summer party?";
    let heard = register(&app, &ada, "t2", (120, message)).await.body;
    // Not certain enough for a reaction.
    assert_eq!(heard["detection"]["confidence"], 0.6, "{heard}");
    let corrected = correct(&app, &ada, "t1", "rejected").await.body;
    assert_eq!(corrected["withdrawn"], json!([]));
    assert_eq!(corrected["user_feedback"]["user_said"], message);
    events(&app, &ada, 1, 0).await;
    let marked = turn(&app, &ada, "t1").await;
    assert_eq!(marked["reactions"][0]["reaction"]["text"], message);
    assert_eq!(marked["rejection_detected_in"], "t2");
    app.post(
        &ada,
        &format!("{}/feedback", path("c", "t1")),
        &json!({"reaction": "ok"}),
    )
    .await;
    let accepted = || async {
        let marked = turn(&app, &ada, "t1").await;
        (marked["user_feedback_status"] == "accepted").then_some(())
    };
    eventually(accepted).await;
}

#[tokio::test]
async fn the_same_message_again_does_not_bring_back_what_was_taken_back() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    register(&app, &ada, "t1", (0, "laptops under $1000")).await;
    let infer = "/conversations/acme/order-service/feedback/infer";
    let message = json!({"message": "No, the business laptops were wrong, I meant gaming laptops"});
    let inferred = app.post(&ada, infer, &message).await.body;
    assert!(inferred["rn"].is_string(), "{inferred}");
    let back_end = app.token_of("back-end", "acme", "feedback:on-behalf");
    let machine =
        json!({"reaction": "not_ok", "origin": "machine", "confidence": 0.8, "text": "Hm."});
    let react = format!("{}/feedback", path("c", "t1"));
    assert_eq!(
        app.post(&back_end, &react, &machine).await.body["applied"],
        true
    );
    events(&app, &ada, 2, 0).await;
    let corrected = correct(&app, &ada, "t1", "neutral").await.body;
    assert_eq!(corrected["withdrawn"].as_array().unwrap().len(), 2);
    events(&app, &ada, 2, 2).await;
    let inferred = app.post(&ada, infer, &message).await.body;
    assert_eq!(inferred["rn"], Value::Null);
    let repeated = app.post(&back_end, &react, &machine).await;
    assert_eq!(repeated.status, StatusCode::OK);
    assert_eq!(repeated.body["applied"], false, "{}", repeated.body);
    let marked = turn(&app, &ada, "t1").await;
    assert_eq!(marked["user_feedback_status"], "neutral");
    assert_eq!(marked["reactions"], json!([]));
    // Another message is another inference.
    let other =
        json!({"message": "No, these business laptops are wrong too, I meant laptops for games"});
    let inferred = app.post(&ada, infer, &other).await.body;
    assert!(inferred["rn"].is_string(), "{inferred}");
    let marked = turn(&app, &ada, "t1").await;
    assert_eq!(marked["user_feedback_status"], "rejected");
    // The example stays.
    let analyst = app.token_of("analyst", "acme", "feedback:report");
    let listed = app.get(&analyst, LIST).await.body;
    let [example] = listed["corrections"].as_array().unwrap().as_slice() else {
        panic!("{listed}")
    };
    assert_eq!(
        (&example["message"], &example["was"]),
        (&json!("Hm."), &json!("rejected"))
    );
    assert_eq!(example["detected_in_turn"], Value::Null);
}

#[tokio::test]
async fn a_correction_is_mirrored_and_its_body_is_checked() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    rejected(&app, &ada).await;
    let back_end = app.token_of("back-end", "acme", "feedback:on-behalf");
    let machine =
        json!({"reaction": "not_ok", "origin": "machine", "confidence": 0.8, "mirror": true});
    let react = format!("{}/feedback", path("c", "t1"));
    app.post(&back_end, &react, &machine).await;
    let feedbacks = |count: usize| {
        let (app, ada) = (&app, &ada);
        eventually(move || async move {
            let marked = turn(app, ada, "t1").await;
            (marked["feedbacks"].as_array().unwrap().len() == count).then_some(marked)
        })
    };
    feedbacks(1).await;
    let corrected = correct(&app, &back_end, "t1", "neutral").await;
    assert_eq!(corrected.status, StatusCode::OK, "{}", corrected.body);
    let marked = feedbacks(0).await;
    let log = &marked["turn_log"];
    assert_eq!(log["entries"].as_array().unwrap().len(), 2, "{log}");
    assert!(log["text"].as_str().unwrap().contains("cleared"), "{log}");

    // Nothing follows the last turn.
    let nothing = correct(&app, &ada, "t2", "neutral").await;
    assert_eq!(nothing.status, StatusCode::CONFLICT);
    assert_eq!(nothing.body["error"], "nothing_inferred");
    let eve = app.token("eve");
    for (token, turn) in [(&eve, "t1"), (&ada, "t9")] {
        let unknown = correct(&app, token, turn, "neutral").await;
        assert_eq!(unknown.status, StatusCode::NOT_FOUND, "{turn}");
    }
    let invalid = correct(&app, &ada, "t1", "wrong").await;
    assert_eq!(invalid.status, StatusCode::BAD_REQUEST);
    assert_eq!(invalid.body["errors"][0]["pointer"], "/feedback_type");
}

const LIST: &str = "/conversations/acme/order-service/corrections";

#[tokio::test]
async fn corrections_are_listed_as_labelled_examples() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    rejected(&app, &ada).await;
    register(&app, &ada, "t3", (240, "Do they have a numeric keypad?")).await;
    let analyst = app.token_of("analyst", "acme", "feedback:report");
    assert_eq!(app.get(&analyst, LIST).await.body["corrections"], json!([]));
    for (turn, meaning) in [("t1", "neutral"), ("t2", "rejected")] {
        let corrected = correct(&app, &ada, turn, meaning).await;
        assert_eq!(corrected.status, StatusCode::OK, "{}", corrected.body);
    }
    let listed = app.get(&analyst, LIST).await.body;
    let [later, earlier] = listed["corrections"].as_array().unwrap().as_slice() else {
        panic!("{listed}")
    };
    assert_eq!(later["turn_id"], "t2");
    assert_eq!(later["message"], "Do they have a numeric keypad?");
    assert_eq!(later["feedback_type"], "rejected");
    assert_ne!(later["was"], "rejected");
    assert_eq!(earlier["turn_id"], "t1");
    assert_eq!(earlier["detected_in_turn"], "t2");
    assert_eq!(earlier["prev_query"], "laptops under $1000");
    assert_eq!(
        earlier["prev_response"],
        "Here are three business laptops under $1000."
    );
    assert_eq!(earlier["message"], REJECTION);
    assert_eq!(earlier["feedback_type"], "neutral");
    assert_eq!(
        (&earlier["was"], &earlier["confidence"]),
        (&json!("rejected"), &json!(0.9))
    );
    assert_eq!(earlier["detection"]["evidence"][0]["cue"], "correction");
    // The detector is asked again with these texts, and hears the same.
    let texts = json!({
        "prev_query": earlier["prev_query"], "prev_response": earlier["prev_response"],
        "message": earlier["message"],
    });
    let heard = app.post(&ada, "/v1/feedback/detect", &texts).await.body;
    assert_eq!(heard, earlier["detection"]);

    let first = app.get(&analyst, &format!("{LIST}?limit=1")).await.body;
    assert_eq!(first["corrections"], json!([later]));
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = format!("{LIST}?limit=1&cursor={cursor}");
    let second = app.get(&analyst, &second).await.body;
    assert_eq!(second["corrections"], json!([earlier]));
    let before = format!("{LIST}?to=2026-01-04T10:01:00Z");
    let before = app.get(&analyst, &before).await.body;
    assert_eq!(before["corrections"], json!([earlier]));

    let forbidden = app.get(&ada, LIST).await;
    assert_eq!(forbidden.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_correction_is_about_the_inference_that_its_author_saw() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    rejected(&app, &ada).await;
    let seen = turn(&app, &ada, "t1").await["user_feedback"]["detected_at"].clone();
    let infer = "/conversations/acme/order-service/feedback/infer";
    let praise =
        |words: &str| json!({"message": format!("Thanks, the laptops under $1000 {words}")});
    let heard = app.post(&ada, infer, &praise("are perfect")).await.body;
    assert!(heard["rn"].is_string(), "{heard}");
    let changed = correct_seen(&app, &ada, "neutral", &seen).await;
    assert_eq!(changed.status, StatusCode::CONFLICT);
    assert_eq!(changed.body["error"], "inference_changed");
    let marked = turn(&app, &ada, "t1").await;
    assert_eq!(marked["user_feedback_status"], "accepted");
    assert_eq!(marked["reactions"].as_array().unwrap().len(), 2);

    let seen = &marked["user_feedback"]["detected_at"];
    let corrected = correct_seen(&app, &ada, "neutral", seen).await;
    assert_eq!(corrected.status, StatusCode::OK, "{}", corrected.body);
    let repeated = correct_seen(&app, &ada, "neutral", seen).await;
    assert_eq!(repeated.body, corrected.body);
    // An acceptance has no text: another message is another act.
    let again = app.post(&ada, infer, &praise("are perfect")).await.body;
    assert_eq!(again["rn"], Value::Null);
    let other = app.post(&ada, infer, &praise("were great")).await.body;
    assert!(other["rn"].is_string(), "{other}");
    let marked = turn(&app, &ada, "t1").await;
    assert_eq!(marked["user_feedback_status"], "accepted");
}

#[tokio::test]
async fn a_nearer_turn_outranks_the_correction_of_a_farther_one() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    rejected(&app, &ada).await;
    correct(&app, &ada, "t1", "neutral").await;
    // Registered late, with an earlier time.
    let nearer = "No, that's wrong, I meant 17 inches";
    register(&app, &ada, "t1b", (60, nearer)).await;
    let marked = turn(&app, &ada, "t1").await;
    assert_eq!(marked["user_feedback_status"], "rejected");
    assert_eq!(marked["rejection_detected_in"], "t1b");
    assert_eq!(marked["reactions"].as_array().unwrap().len(), 1);
    // The farther one, registered again, says nothing any more.
    register(&app, &ada, "t2", (120, REJECTION)).await;
    let marked = turn(&app, &ada, "t1").await;
    assert_eq!(marked["reactions"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_mistaken_correction_can_be_undone() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    rejected(&app, &ada).await;
    let before = turn(&app, &ada, "t1").await["user_feedback"].clone();
    correct(&app, &ada, "t1", "neutral").await;
    correct(&app, &ada, "t1", "rejected").await;
    let after = turn(&app, &ada, "t1").await["user_feedback"].clone();
    for member in [
        "status",
        "correction_type",
        "user_said",
        "detected_in_turn",
        "detected_at",
    ] {
        assert_eq!(after[member], before[member], "{member}");
    }
    let listed = "/conversations/acme/order-service/turns?user_feedback_status=rejected";
    let analyst = app.token_of("analyst", "acme", "feedback:report");
    let found = || async {
        let page = app.get(&analyst, listed).await.body;
        (page["turns"][0]["corrected"] == true).then_some(())
    };
    eventually(found).await;
}
