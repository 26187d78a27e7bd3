//! Follow-ups: what a turn reveals about the turn before it, detected at its registration.

mod corrections;
mod earlier;
mod planning;
mod precedence;

use hearback_tests::app::{TestApp, TestResponse, eventually};
use hearback_tests::ledger::{ledger, of_status};
use hearback_tests::turns::{path, turn_body};
use reqwest::StatusCode;
use serde_json::{Value, json};

/// Registers a turn of the conversation `c`, this many seconds after ten.
async fn register(
    app: &TestApp,
    token: &str,
    turn: &str,
    (second, query): (u32, &str),
) -> TestResponse {
    let mut body = turn_body(query, "Here are three business laptops under $1000.");
    let (hours, minutes) = (10 + second / 3600, second / 60 % 60);
    body["ts"] = json!(format!(
        "2026-01-04T{hours}:{minutes:02}:{:02}Z",
        second % 60
    ));
    app.put(token, &path("c", turn), &body).await
}

async fn turn(app: &TestApp, token: &str, turn: &str) -> Value {
    let response = app.get(token, &path("c", turn)).await;
    assert_eq!(response.status, StatusCode::OK);
    response.body
}

const REJECTION: &str = "No, I meant gaming laptops not business laptops";

#[tokio::test]
async fn the_previous_turn_is_found_despite_many_later_turns_of_other_conversations() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    register(&app, &ada, "t1", (0, "laptops under $1000")).await;
    for number in 1..=30_u32 {
        let mut body = turn_body("Where is my parcel?", "On its way.");
        body["ts"] = json!(format!("2026-01-04T10:00:{number:02}Z"));
        let other = path(&format!("c{number}"), "t");
        assert_eq!(
            app.put(&ada, &other, &body).await.status,
            StatusCode::CREATED
        );
    }
    let second = register(&app, &ada, "t2", (60, REJECTION)).await;
    assert_eq!(
        second.body["detection"]["previous_turn_id"], "t1",
        "{:?}",
        second.body
    );
}

#[tokio::test]
async fn a_rejection_in_the_next_message_marks_the_turn_before_it() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let first = register(&app, &ada, "t1", (0, "laptops under $1000")).await;
    assert_eq!(first.body["detection"], Value::Null);
    let second = register(&app, &ada, "t2", (120, REJECTION)).await;
    assert_eq!(second.status, StatusCode::CREATED);
    let detection = &second.body["detection"];
    assert_eq!(detection["previous_turn_id"], "t1");
    assert_eq!(detection["feedback_type"], "rejected");
    assert_eq!(detection["confidence"], 0.9);
    assert_eq!(detection["correction_type"], "explicit");
    assert_eq!(detection["user_said"], REJECTION);
    assert_eq!(detection["consecutive_rejections"], 1);
    assert!(!detection["evidence"].as_array().unwrap().is_empty());

    let marked = turn(&app, &ada, "t1").await;
    assert_eq!(marked["user_feedback_status"], "rejected");
    assert_eq!(marked["feedback_confidence"], 0.9);
    assert_eq!(marked["rejection_detected_in"], "t2");
    assert_eq!(marked["user_feedback"]["user_said"], REJECTION);
    assert_eq!(marked["user_feedback"]["detected_in_turn"], "t2");
    let correction = &marked["user_feedback"]["correction_type"];
    assert_eq!(correction, "explicit_correction");
    // The detection is also a machine reaction, and an event in the ledger.
    let [reaction] = marked["reactions"].as_array().unwrap().as_slice() else {
        panic!("{marked}")
    };
    assert_eq!(reaction["reaction"]["origin"], "machine");
    assert_eq!(reaction["reaction"]["reaction"], "not_ok");
    assert_eq!(reaction["reaction"]["confidence"], 0.9);
    let events = ledger(&app, &ada, 1).await;
    assert_eq!(events[0]["core"]["channel"], "implicit");
    assert_eq!(events[0]["signals"][0]["reward"]["confidence"], 0.94);
}

#[tokio::test]
async fn a_repeated_registration_returns_the_same_and_has_no_further_effect() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    register(&app, &ada, "t1", (0, "laptops under $1000")).await;
    let first = register(&app, &ada, "t2", (120, REJECTION)).await;
    let before = turn(&app, &ada, "t1").await;
    let again = register(&app, &ada, "t2", (120, REJECTION)).await;
    assert_eq!(again.status, StatusCode::OK);
    assert_eq!(again.body, first.body);
    let marked = turn(&app, &ada, "t1").await;
    assert_eq!(marked["user_feedback"], before["user_feedback"]);
    assert_eq!(marked["reactions"].as_array().unwrap().len(), 1);
    assert_eq!(ledger(&app, &ada, 1).await.len(), 1);
}

#[tokio::test]
async fn a_long_question_is_recognised_when_it_is_repeated() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let question = |end: &str| format!("{} {end}", "My basil dies every year. ".repeat(60));
    let long = question("What works best?");
    assert!(long.chars().count() > 1_200);
    register(&app, &ada, "t1", (0, &long)).await;
    let again = register(&app, &ada, "t2", (60, &long)).await;
    let detection = &again.body["detection"];
    assert_eq!(detection["correction_type"], "rephrased", "{detection}");
    assert_eq!(detection["confidence"], 1.0);
    // Only the end differs: another question.
    let other = register(
        &app,
        &ada,
        "t3",
        (120, &question("Thanks, what about mint?")),
    )
    .await;
    assert_ne!(other.body["detection"]["confidence"], 1.0);
}

#[tokio::test]
async fn a_detection_of_low_confidence_sets_the_status_without_a_machine_reaction() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    register(&app, &ada, "t1", (0, "laptops under $1000")).await;
    let next = register(&app, &ada, "t2", (60, "What do hamsters eat?")).await;
    let detection = &next.body["detection"];
    assert_eq!(detection["feedback_type"], "accepted");
    assert_eq!(detection["confidence"], 0.6);
    let marked = turn(&app, &ada, "t1").await;
    assert_eq!(marked["user_feedback_status"], "accepted");
    assert_eq!(marked["rejection_detected_in"], Value::Null);
    assert_eq!(marked["reactions"], json!([]));
}

#[tokio::test]
async fn a_polite_complaint_gives_no_machine_reaction_ok() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    register(&app, &ada, "t0", (0, "laptops under $1000")).await;
    for (at, message) in (1..).zip([
        "Thanks a lot, now my account is locked",
        "Why is this so useless?",
        "merci pour rien",
        "Thanks, but my order is still missing",
    ]) {
        register(&app, &ada, &format!("t{at}"), (60 * at, message)).await;
        let before = turn(&app, &ada, &format!("t{}", at - 1)).await;
        assert_ne!(before["user_feedback_status"], "accepted", "{message}");
        for artifact in before["reactions"].as_array().unwrap() {
            let verdict = &artifact["reaction"]["reaction"];
            assert_eq!(verdict, "not_ok", "{message}: {artifact}");
        }
    }
}

#[tokio::test]
async fn a_repeated_question_is_a_machine_not_ok_and_a_new_subject_is_no_reaction() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let question = "What do owls hunt at night?";
    register(&app, &ada, "t1", (0, question)).await;
    let again = register(&app, &ada, "t2", (60, question)).await;
    let detection = &again.body["detection"];
    assert_eq!(detection["feedback_type"], "rejected");
    assert_eq!(detection["correction_type"], "rephrased");
    let reactions = turn(&app, &ada, "t1").await["reactions"].clone();
    assert_eq!(reactions[0]["reaction"]["reaction"], "not_ok");
    let other = register(&app, &ada, "t3", (120, "Who built the Karlstejn castle?")).await;
    let detection = &other.body["detection"];
    assert_eq!(detection["feedback_type"], "accepted");
    assert_eq!(detection["confidence"], 0.6);
    assert_eq!(turn(&app, &ada, "t2").await["reactions"], json!([]));
}

#[tokio::test]
async fn a_rephrase_is_detected_by_the_callers_embeddings_if_both_turns_have_one() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let question = "How can I make the washing machine quieter?";
    let same = "How do I stop the washer from rattling so loudly?";
    for (conversation, one, other, rephrased) in [
        ("near", Some([0.6, 0.8, 0.0]), Some([0.59, 0.8, 0.05]), true),
        ("far", Some([0.6, 0.8, 0.0]), Some([0.0, 0.1, 0.9]), false),
        ("one", Some([0.6, 0.8, 0.0]), None, false),
        ("none", None, None, false),
    ] {
        let put = |turn: &'static str, text, minute: u32, embedding: Option<[f64; 3]>| {
            let mut body = turn_body(text, "Washing machines are loud.");
            body["ts"] = json!(format!("2026-01-04T10:{minute:02}:00Z"));
            if let Some(embedding) = embedding {
                body["embedding"] = json!(embedding);
            }
            let (app, ada, path) = (&app, &ada, path(conversation, turn));
            async move { app.put(ada, &path, &body).await }
        };
        put("t1", question, 0, one).await;
        let next = put("t2", same, 1, other).await;
        let correction = &next.body["detection"]["correction_type"];
        assert_eq!(
            correction == "rephrased",
            rephrased,
            "{conversation}: {}",
            next.body
        );
    }
}

#[tokio::test]
async fn a_message_after_half_an_hour_is_not_a_follow_up() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    register(&app, &ada, "t1", (0, "laptops under $1000")).await;
    let late = register(&app, &ada, "t2", (1801, REJECTION)).await;
    assert_eq!(late.body["detection"], Value::Null);
    assert_eq!(
        turn(&app, &ada, "t1").await["user_feedback_status"],
        "neutral"
    );
    let in_time = register(&app, &ada, "t3", (3601, REJECTION)).await;
    assert_eq!(in_time.body["detection"]["previous_turn_id"], "t2");
}

#[tokio::test]
async fn a_message_does_not_follow_turns_of_another_user_or_conversation() {
    let app = TestApp::start().await;
    let (ada, eve) = (app.token("ada"), app.token("eve"));
    register(&app, &ada, "t1", (0, "laptops under $1000")).await;
    let other = register(&app, &eve, "t2", (60, REJECTION)).await;
    assert_eq!(other.body["detection"], Value::Null);
    let mut body = turn_body(REJECTION, "b");
    body["ts"] = json!("2026-01-04T10:01:00Z");
    let other_conversation = app.put(&ada, &path("d", "t"), &body).await;
    assert_eq!(other_conversation.body["detection"], Value::Null);
}

#[tokio::test]
async fn consecutive_rejections_advise_to_clarify() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    register(&app, &ada, "t1", (0, "laptops under $1000")).await;
    let one = register(&app, &ada, "t2", (60, REJECTION)).await;
    assert_eq!(one.body["detection"]["clarify"], false);
    let two = register(&app, &ada, "t3", (120, "No, that's wrong again.")).await;
    assert_eq!(two.body["detection"]["consecutive_rejections"], 2);
    assert_eq!(two.body["detection"]["clarify"], true);
    let thanks = register(&app, &ada, "t4", (180, "Thanks!")).await;
    assert_eq!(thanks.body["detection"]["consecutive_rejections"], 0);
}

#[tokio::test]
async fn detect_stores_nothing() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let body = json!({
        "prev_query": "laptops under $1000", "prev_response": "Here are three business laptops.",
        "message": REJECTION
    });
    let response = app.post(&ada, "/v1/feedback/detect", &body).await;
    assert_eq!(response.status, StatusCode::OK);
    assert_eq!(response.body["feedback_type"], "rejected");
    assert_eq!(response.body["correction_type"], "explicit");
    let broken = json!({"message": 1, "mood": "bad", "language": 2});
    let rejected = app.post(&ada, "/v1/feedback/detect", &broken).await;
    assert_eq!(rejected.status, StatusCode::BAD_REQUEST);
    assert_eq!(rejected.body["errors"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_losing_registration_reads_and_changes_nothing_of_the_winner() {
    let app = TestApp::start().await;
    let (ada, eve) = (app.token("ada"), app.token("eve"));
    register(&app, &ada, "t1", (0, "gaming laptops under $1000")).await;
    // A registration of the same turn by eve that crashed before it put its row leaves a vector.
    let at = json!({
        "tenant": "acme", "project": "order-service", "conversation_id": "c", "turn_id": "t1"
    });
    let body = turn_body("gaming laptops under $1000", "hers");
    let caller = hearback_domain::identity::caller::Caller {
        user: "eve".try_into().unwrap(),
        tenant: "acme".try_into().unwrap(),
        projects: Vec::new(),
        scopes: Vec::new(),
    };
    let now = "2026-01-04T10:00:00Z".parse().unwrap();
    let at = serde_json::from_value(at).unwrap();
    let lost = hearback_domain::turns::turn::Turn::parse(at, &body, &caller, now).unwrap();
    let embedded = hearback_domain::turns::embedded::Embedded::of(&lost.texts());
    let store = &app.bundle.store;
    store.put_vector(&lost.core, &embedded).await.unwrap();

    let search = "/conversations/acme/order-service/strategies/search";
    let query = json!({"query": "gaming laptops under $1000"});
    let found = app.post(&eve, search, &query).await.body;
    assert_eq!(found["strategies"], json!([]));
    let infer = "/conversations/acme/order-service/feedback/infer";
    let wrong = json!({"message": "The gaming laptops under $1000 are wrong, I meant others"});
    let inferred = app.post(&eve, infer, &wrong).await.body;
    assert_eq!(
        (&inferred["targets"], &inferred["rn"]),
        (&json!([]), &Value::Null)
    );
    let next = register(&app, &eve, "t2", (60, REJECTION)).await;
    assert_eq!(next.body["detection"], Value::Null);
    assert_eq!(turn(&app, &ada, "t1").await["user_feedback"], Value::Null);
}

#[tokio::test]
async fn phrases_of_a_folder_extend_the_built_in_ones() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("en.toml");
    std::fs::write(
        &file,
        "language = \"en\"\n[phrases]\nwrong = [\"that is bananas\"]\n",
    )
    .unwrap();
    let detector = hearback_turns::detector(folder.path());
    let detector = detector.unwrap_or_else(|error| panic!("{error}"));
    let exchange = hearback_detection::Exchange {
        message: "That is bananas.",
        ..Default::default()
    };
    let rejected = hearback_detection::FeedbackStatus::Rejected;
    assert_eq!(detector.detect(&exchange).feedback_type, rejected);
    std::fs::write(&file, "language = \"en\"\n[phrases]\nwrong = 7\n").unwrap();
    let error = hearback_turns::detector(folder.path()).unwrap_err();
    assert!(error.contains("en.toml:3"), "{error}");
}
