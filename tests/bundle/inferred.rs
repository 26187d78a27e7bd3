//! What is inferred of a turn wherever that happens: its status, the strategies on offer, and what a
//! planner is told.

use hearback_tests::app::{Answer, TestApp, eventually};
use hearback_tests::turns::{PERIOD, path, said};
use reqwest::header::{ACCEPT, CONTENT_TYPE, VARY};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

const INFER: &str = "/conversations/acme/order-service/feedback/infer";
const SEARCH: &str = "/conversations/acme/order-service/strategies/search";
const QUERY: &str = "gaming laptops under $1000";

/// Registers a turn in a conversation, so many minutes after ten.
async fn register(
    app: &TestApp,
    token: &str,
    (conversation, turn): (&str, &str),
    (minute, query): (u32, &str),
) -> Answer {
    let mut body = said(query, "Here are three business laptops.");
    body["ts"] = json!(format!("2026-01-04T10:{minute:02}:00Z"));
    body["strategy"] = json!("commerce_search");
    app.put(token, &path(conversation, turn), &body).await
}

async fn turn(app: &TestApp, token: &str, (conversation, turn): (&str, &str)) -> Value {
    let answer = app.get(token, &path(conversation, turn)).await;
    assert_eq!(answer.status, StatusCode::OK);
    answer.body
}

/// The turns whose strategies are on offer for a query.
async fn on_offer(app: &TestApp, token: &str, search: Value) -> Vec<String> {
    let answer = app.post(token, SEARCH, &search).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    let strategies = answer.body["strategies"].as_array().unwrap().iter();
    strategies
        .map(|strategy| strategy["turn_id"].as_str().unwrap().to_owned())
        .collect()
}

/// The machine's word on a turn of ada's.
async fn judge(app: &TestApp, at: (&str, &str), body: Value) -> Answer {
    let machine = app.token_of("back-end", "acme", "feedback:on-behalf");
    let mut body = body;
    body["origin"] = json!("machine");
    let path = format!("{}/feedback", path(at.0, at.1));
    let answer = app.post(&machine, &path, &body).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    answer
}

#[tokio::test]
async fn a_rejection_that_infer_attaches_marks_the_turn_and_withdraws_its_strategy() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    app.put(
        &ada,
        &path("c", "t"),
        &said(QUERY, "Here are three business laptops."),
    )
    .await;
    assert_eq!(on_offer(&app, &ada, json!({"query": QUERY})).await, ["t"]);
    let message = "No, the business laptops are wrong, I asked for gaming laptops";
    let inferred = app.post(&ada, INFER, &json!({"message": message})).await;
    assert!(inferred.body["rn"].is_string(), "{}", inferred.body);
    let marked = turn(&app, &ada, ("c", "t")).await;
    assert_eq!(marked["user_feedback_status"], "rejected");
    assert_eq!(marked["feedback_confidence"], 0.9);
    assert_eq!(marked["rejection_detected_in"], Value::Null);
    assert_eq!(marked["user_feedback"]["detected_in_turn"], Value::Null);
    assert_eq!(
        marked["user_feedback"]["correction_type"],
        "explicit_correction"
    );
    assert_eq!(marked["user_feedback"]["user_said"], message);
    let none: [&str; 0] = [];
    assert_eq!(on_offer(&app, &ada, json!({"query": QUERY})).await, none);
}

#[tokio::test]
async fn what_the_machine_says_in_the_name_of_the_turns_user_sets_its_status() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    register(&app, &ada, ("c", "t"), (0, QUERY)).await;
    let status = || async {
        let marked = turn(&app, &ada, ("c", "t")).await;
        (
            marked["user_feedback_status"].clone(),
            marked["feedback_confidence"].clone(),
        )
    };
    // Of somebody else, and without a verdict, it says nothing of how its user took the turn.
    let of_eve = json!({"reaction": "not_ok", "confidence": 0.9, "user_id": "eve"});
    judge(&app, ("c", "t"), of_eve).await;
    judge(
        &app,
        ("c", "t"),
        json!({"reaction": "neutral", "confidence": 0.9}),
    )
    .await;
    assert_eq!(status().await, (json!("neutral"), json!(0.5)));
    let not_ok = json!({"reaction": "not_ok", "confidence": 0.8, "text": "too dear"});
    judge(&app, ("c", "t"), not_ok.clone()).await;
    assert_eq!(status().await, (json!("rejected"), json!(0.8)));
    let none: [&str; 0] = [];
    assert_eq!(on_offer(&app, &ada, json!({"query": QUERY})).await, none);
    // Said again later, it counts by its own time.
    let taken = json!({"reaction": "ok", "confidence": 0.75, "ts": "2026-01-04T12:00:00Z"});
    judge(&app, ("c", "t"), taken).await;
    assert_eq!(status().await, (json!("rejected"), json!(0.8)));
    // What its user says on purpose outranks it.
    let feedback = format!("{}/feedback", path("c", "t"));
    app.post(&ada, &feedback, &json!({"reaction": "ok"})).await;
    eventually(|| async { (status().await == (json!("accepted"), json!(1.0))).then_some(()) })
        .await;
}

#[tokio::test]
async fn the_latest_that_names_a_turn_counts_before_its_follow_up_in_whatever_order_they_arrive() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let ok = |ts: &str| json!({"reaction": "ok", "confidence": 0.8, "ts": ts});
    let not_ok = |ts: &str| json!({"reaction": "not_ok", "confidence": 0.9, "ts": ts});
    let (early, late) = ("2026-01-04T11:00:00Z", "2026-01-05T09:00:00Z");
    for (conversation, order) in [("a", [0, 1, 2]), ("b", [2, 1, 0]), ("d", [1, 2, 0])] {
        register(&app, &ada, (conversation, "t"), (0, QUERY)).await;
        for step in order {
            match step {
                0 => {
                    let next = (1, "I need hamster food");
                    register(&app, &ada, (conversation, "u"), next).await;
                }
                1 => {
                    judge(&app, (conversation, "t"), ok(early)).await;
                }
                _ => {
                    judge(&app, (conversation, "t"), not_ok(late)).await;
                }
            }
        }
        let marked = turn(&app, &ada, (conversation, "t")).await;
        assert_eq!(marked["user_feedback_status"], "rejected", "{order:?}");
        assert_eq!(marked["feedback_confidence"], 0.9, "{order:?}");
    }
}

#[tokio::test]
async fn a_report_from_the_last_activity_to_itself_has_what_was_inferred() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    app.put(
        &ada,
        &path("c", "t"),
        &said(QUERY, "Here are three business laptops."),
    )
    .await;
    let message = "No, the business laptops are wrong, I asked for gaming laptops";
    app.post(&ada, INFER, &json!({"message": message})).await;
    let day = chrono::TimeDelta::days(1);
    let (start, end) = (chrono::Utc::now() - day, chrono::Utc::now() + day);
    let whole = json!({"start": start, "end": end});
    let whole = app.post(&ada, PERIOD, &whole).await.body;
    let last = &whole["items"][0]["last_activity_at"];
    assert!(last.is_string(), "{whole}");
    let instant = app
        .post(&ada, PERIOD, &json!({"start": last, "end": last}))
        .await;
    assert_eq!(instant.body["items"], whole["items"]);
}

#[tokio::test]
async fn a_search_answers_only_what_is_like_the_query() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    for (conversation, turn, query, embedding) in [
        ("c", "bread", "How do I bake bread?", [0.0, 1.0]),
        ("d", "laptops", QUERY, [1.0, 0.0]),
    ] {
        let mut body = said(query, "Here are three.");
        body["embedding"] = json!(embedding);
        app.put(&ada, &path(conversation, turn), &body).await;
    }
    let feedback = format!("{}/feedback", path("c", "bread"));
    app.post(&ada, &feedback, &json!({"reaction": "ok"})).await;
    let search =
        |least: f64| json!({"query": QUERY, "embedding": [0.9, 0.1], "min_similarity": least});
    // As liked as it is, bread is no laptop; with the least likeness it comes first.
    eventually(|| async {
        let any = on_offer(&app, &ada, search(0.1)).await;
        (any == ["bread", "laptops"]).then_some(())
    })
    .await;
    let plain = json!({"query": QUERY, "embedding": [0.9, 0.1]});
    assert_eq!(on_offer(&app, &ada, plain).await, ["laptops"]);
    let none: [&str; 0] = [];
    assert_eq!(on_offer(&app, &ada, search(1.0)).await, none);
    for wrong in [json!(1.1), json!(-0.1), json!("much")] {
        let search = json!({"query": QUERY, "min_similarity": wrong});
        let refused = app.post(&ada, SEARCH, &search).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST);
        assert_eq!(refused.body["errors"][0]["pointer"], "/min_similarity");
    }
}

#[tokio::test]
async fn turns_with_vectors_of_another_maker_are_told_as_not_comparable() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let mut embedded = said(QUERY, "Here are three.");
    embedded["embedding"] = json!([0.6, 0.8]);
    app.put(&ada, &path("c", "t"), &embedded).await;
    app.put(&ada, &path("d", "u"), &said(QUERY, "Here are four."))
        .await;
    app.put(&ada, &path("e", "v"), &said("x", "y")).await;
    let lexical = json!({"embedding": "lexical", "candidates": 2, "not_comparable": 1});
    let found = app.post(&ada, SEARCH, &json!({"query": QUERY})).await.body;
    assert_eq!(found["vectors"], lexical);
    let inferred = app.post(&ada, INFER, &json!({"message": QUERY})).await.body;
    assert_eq!(inferred["vectors"], lexical);
    let own = json!({"query": QUERY, "embedding": [0.6, 0.8]});
    let found = app.post(&ada, SEARCH, &own).await.body;
    let caller = json!({"embedding": "caller", "candidates": 1, "not_comparable": 2});
    assert_eq!(found["vectors"], caller);
    assert_eq!(found["strategies"][0]["turn_id"], "t");
}

#[tokio::test]
async fn an_explicit_ok_in_between_ends_a_row_of_rejections() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    for liked in ["t1", "t2"] {
        let conversation = format!("liked-{liked}");
        let at = |turn: &'static str| (conversation.as_str(), turn);
        register(&app, &ada, at("t1"), (0, QUERY)).await;
        register(&app, &ada, at("t2"), (1, "No, that's wrong.")).await;
        let feedback = format!("{}/feedback", path(&conversation, liked));
        app.post(&ada, &feedback, &json!({"reaction": "ok"})).await;
        eventually(|| async {
            let marked = turn(&app, &ada, (conversation.as_str(), liked)).await;
            (marked["user_feedback_status"] == "accepted").then_some(())
        })
        .await;
        let third = register(&app, &ada, at("t3"), (2, "No, that's wrong again.")).await;
        assert_eq!(third.body["detection"]["feedback_type"], "rejected");
        assert_eq!(
            third.body["detection"]["consecutive_rejections"], 1,
            "{liked}"
        );
        assert_eq!(third.body["detection"]["clarify"], false, "{liked}");
    }
    // Without it there are two; and once it comes, the planner is told of one.
    register(&app, &ada, ("c", "t1"), (0, QUERY)).await;
    register(&app, &ada, ("c", "t2"), (1, "No, that's wrong.")).await;
    let third = register(&app, &ada, ("c", "t3"), (2, "No, that's wrong again.")).await;
    assert_eq!(third.body["detection"]["consecutive_rejections"], 2);
    let told = || async {
        let context = context(&app, &ada, ("c", "t2"), "application/json").await;
        let context: Value = serde_json::from_str(&context.1).unwrap();
        context["rejection"]["consecutive_rejections"].clone()
    };
    assert_eq!(told().await, 2);
    let feedback = format!("{}/feedback", path("c", "t1"));
    app.post(&ada, &feedback, &json!({"reaction": "ok"})).await;
    eventually(|| async { (told().await == 1).then_some(()) }).await;
}

/// What a planner is told of a turn, as it is accepted: status and media type, and the text.
async fn context(
    app: &TestApp,
    token: &str,
    (conversation, turn): (&str, &str),
    accept: &str,
) -> ((StatusCode, String), String) {
    let path = format!("{}/feedback-context", path(conversation, turn));
    let request = app.request(Method::GET, &path).bearer_auth(token);
    let answer = request.header(ACCEPT, accept).send().await.unwrap();
    assert_eq!(answer.headers()[VARY], "accept");
    let media_type = answer.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
    let status = answer.status();
    ((status, media_type), answer.text().await.unwrap())
}

#[tokio::test]
async fn a_planner_has_the_same_facts_as_json_and_406_for_what_is_neither() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    register(&app, &ada, ("c", "turn_001233"), (0, QUERY)).await;
    let at = ("c", "turn_001233");
    let ((status, media_type), json) = context(&app, &ada, at, "application/json").await;
    assert_eq!(
        (status, media_type.as_str()),
        (StatusCode::OK, "application/json")
    );
    let neutral = json!({
        "turn_id": "turn_001233", "status": "neutral", "confidence": 0.5, "rejection": null
    });
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), neutral);
    let rejection = "No, I meant cheaper laptops";
    register(&app, &ada, ("c", "turn_001234"), (1, rejection)).await;
    let (_, json) = context(&app, &ada, at, "application/json").await;
    let json: Value = serde_json::from_str(&json).unwrap();
    insta::assert_json_snapshot!(json, @r#"
    {
      "confidence": 0.9,
      "rejection": {
        "clarify": false,
        "consecutive_rejections": 1,
        "conversation": {
          "assistant": "Here are three business laptops.",
          "user": "gaming laptops under $1000"
        },
        "correction_type": "explicit_correction",
        "detected_by": "follow_up",
        "detected_in_turn": "turn_001234",
        "instructions": [
          "Do NOT reuse the strategy from Turn 1233",
          "Follow the user's correction: \"No, I meant cheaper laptops\""
        ],
        "preferences": {
          "communication_style": "technical",
          "detail_level": "standard"
        },
        "previous_strategy": {
          "name": "commerce_search",
          "query": "gaming laptops under $1000"
        },
        "user_said": "No, I meant cheaper laptops",
        "what_went_wrong": "The user says that the answer is wrong, or not what they asked for"
      },
      "status": "rejected",
      "turn_id": "turn_001233"
    }
    "#);
    let ((_, media_type), markdown) = context(&app, &ada, at, "text/*, */*;q=0.1").await;
    assert_eq!(media_type, "text/markdown; charset=utf-8");
    let rejection = &json["rejection"];
    let mut facts: Vec<&Value> = rejection["instructions"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    facts.extend([&rejection["user_said"], &rejection["what_went_wrong"]]);
    for fact in facts {
        assert!(
            markdown.contains(fact.as_str().unwrap()),
            "{fact}\n{markdown}"
        );
    }
    let ((status, _), problem) = context(&app, &ada, at, "text/html").await;
    assert_eq!(status, StatusCode::NOT_ACCEPTABLE);
    let problem: Value = serde_json::from_str(&problem).unwrap();
    assert_eq!(problem["error"], "not_acceptable");
}

#[tokio::test]
async fn what_a_user_gave_up_is_not_what_they_want_instead() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    register(&app, &ada, ("c", "t1"), (0, QUERY)).await;
    let given_up = register(&app, &ada, ("c", "t2"), (1, "Never mind, forget that.")).await;
    assert_eq!(given_up.body["detection"]["correction_type"], "abandonment");
    let (_, markdown) = context(&app, &ada, ("c", "t1"), "text/markdown").await;
    let said = |line: &&str| line.contains("Never mind");
    let lines: Vec<_> = markdown.lines().filter(said).collect();
    assert_eq!(lines, ["**User said:** \"Never mind, forget that.\""]);
    let wrong = "**What went wrong:** The user gave up on this approach";
    assert!(markdown.lines().any(|line| line == wrong), "{markdown}");
}

#[tokio::test]
async fn a_rejection_without_a_word_quotes_nothing() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    register(&app, &ada, ("c", "t"), (0, QUERY)).await;
    let feedback = format!("{}/feedback", path("c", "t"));
    app.post(&ada, &feedback, &json!({"reaction": "not_ok"}))
        .await;
    eventually(|| async {
        let (_, markdown) = context(&app, &ada, ("c", "t"), "*/*").await;
        let rejected = markdown.contains("**Status:** REJECTED");
        assert!(!markdown.contains("User said") && !markdown.contains("What went wrong"));
        rejected.then_some(())
    })
    .await;
}
