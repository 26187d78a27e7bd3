//! Inferred feedback on a turn: its status, the strategies of a search, and the planner context.

use hearback_tests::app::{TestApp, TestResponse, eventually};
use hearback_tests::turns::{PERIOD, path, turn_body};
use reqwest::header::{ACCEPT, CONTENT_TYPE, VARY};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

const INFER: &str = "/conversations/acme/order-service/feedback/infer";
const SEARCH: &str = "/conversations/acme/order-service/strategies/search";
const QUERY: &str = "gaming laptops under $1000";

/// Registers a turn in a conversation, this many minutes after ten.
async fn register(
    app: &TestApp,
    token: &str,
    (conversation, turn): (&str, &str),
    (minute, query): (u32, &str),
) -> TestResponse {
    let mut body = turn_body(query, "Here are three business laptops.");
    body["ts"] = json!(format!("2026-01-04T10:{minute:02}:00Z"));
    body["strategy"] = json!("commerce_search");
    app.put(token, &path(conversation, turn), &body).await
}

async fn turn(app: &TestApp, token: &str, (conversation, turn): (&str, &str)) -> Value {
    let response = app.get(token, &path(conversation, turn)).await;
    assert_eq!(response.status, StatusCode::OK);
    response.body
}

/// The turns whose strategies a search returns.
async fn strategies_for(app: &TestApp, token: &str, search: Value) -> Vec<String> {
    let response = app.post(token, SEARCH, &search).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    let strategies = response.body["strategies"].as_array().unwrap().iter();
    strategies
        .map(|strategy| strategy["turn_id"].as_str().unwrap().to_owned())
        .collect()
}

/// Posts a machine reaction to a turn of ada's.
async fn react_as_machine(app: &TestApp, at: (&str, &str), body: Value) -> TestResponse {
    let machine = app.token_of("back-end", "acme", "feedback:on-behalf");
    let mut body = body;
    body["origin"] = json!("machine");
    let path = format!("{}/feedback", path(at.0, at.1));
    let response = app.post(&machine, &path, &body).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    response
}

#[tokio::test]
async fn a_rejection_attached_by_infer_marks_the_turn_and_excludes_its_strategy() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    app.put(
        &ada,
        &path("c", "t"),
        &turn_body(QUERY, "Here are three business laptops."),
    )
    .await;
    assert_eq!(
        strategies_for(&app, &ada, json!({"query": QUERY})).await,
        ["t"]
    );
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
    assert_eq!(
        strategies_for(&app, &ada, json!({"query": QUERY})).await,
        none
    );
}

#[tokio::test]
async fn a_machine_reaction_for_the_owner_of_a_turn_sets_its_status() {
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
    // Machine reactions for another user, or without a verdict, do not change the status.
    let of_eve = json!({"reaction": "not_ok", "confidence": 0.9, "user_id": "eve"});
    react_as_machine(&app, ("c", "t"), of_eve).await;
    react_as_machine(
        &app,
        ("c", "t"),
        json!({"reaction": "neutral", "confidence": 0.9}),
    )
    .await;
    assert_eq!(status().await, (json!("neutral"), json!(0.5)));
    let not_ok = json!({"reaction": "not_ok", "confidence": 0.8, "text": "too dear"});
    react_as_machine(&app, ("c", "t"), not_ok.clone()).await;
    assert_eq!(status().await, (json!("rejected"), json!(0.8)));
    let none: [&str; 0] = [];
    assert_eq!(
        strategies_for(&app, &ada, json!({"query": QUERY})).await,
        none
    );
    // A later request counts by the time that it names, which is earlier.
    let accepted = json!({"reaction": "ok", "confidence": 0.75, "ts": "2026-01-04T12:00:00Z"});
    react_as_machine(&app, ("c", "t"), accepted).await;
    assert_eq!(status().await, (json!("rejected"), json!(0.8)));
    // Explicit feedback outranks it.
    let feedback = format!("{}/feedback", path("c", "t"));
    app.post(&ada, &feedback, &json!({"reaction": "ok"})).await;
    eventually(|| async { (status().await == (json!("accepted"), json!(1.0))).then_some(()) })
        .await;
}

#[tokio::test]
async fn the_latest_inference_that_names_a_turn_outranks_its_follow_up_in_any_order() {
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
                    react_as_machine(&app, (conversation, "t"), ok(early)).await;
                }
                _ => {
                    react_as_machine(&app, (conversation, "t"), not_ok(late)).await;
                }
            }
        }
        let marked = turn(&app, &ada, (conversation, "t")).await;
        assert_eq!(marked["user_feedback_status"], "rejected", "{order:?}");
        assert_eq!(marked["feedback_confidence"], 0.9, "{order:?}");
    }
}

#[tokio::test]
async fn a_report_from_and_to_the_last_activity_includes_inferred_feedback() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    app.put(
        &ada,
        &path("c", "t"),
        &turn_body(QUERY, "Here are three business laptops."),
    )
    .await;
    let message = "No, the business laptops are wrong, I asked for gaming laptops";
    app.post(&ada, INFER, &json!({"message": message})).await;
    let day = chrono::TimeDelta::days(1);
    let (start, end) = (chrono::Utc::now() - day, chrono::Utc::now() + day);
    let window = json!({"start": start, "end": end});
    let window = app.post(&ada, PERIOD, &window).await.body;
    let last = &window["items"][0]["last_activity_at"];
    assert!(last.is_string(), "{window}");
    let instant = app
        .post(&ada, PERIOD, &json!({"start": last, "end": last}))
        .await;
    assert_eq!(instant.body["items"], window["items"]);
}

#[tokio::test]
async fn a_search_returns_only_turns_similar_to_the_query() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    for (conversation, turn, query, embedding) in [
        ("c", "bread", "How do I bake bread?", [0.0, 1.0]),
        ("d", "laptops", QUERY, [1.0, 0.0]),
    ] {
        let mut body = turn_body(query, "Here are three.");
        body["embedding"] = json!(embedding);
        app.put(&ada, &path(conversation, turn), &body).await;
    }
    let feedback = format!("{}/feedback", path("c", "bread"));
    app.post(&ada, &feedback, &json!({"reaction": "ok"})).await;
    let search = |threshold: f64| json!({"query": QUERY, "embedding": [0.9, 0.1], "min_similarity": threshold});
    // With a low threshold the liked turn comes first, although it is not similar.
    eventually(|| async {
        let any = strategies_for(&app, &ada, search(0.1)).await;
        (any == ["bread", "laptops"]).then_some(())
    })
    .await;
    let plain = json!({"query": QUERY, "embedding": [0.9, 0.1]});
    assert_eq!(strategies_for(&app, &ada, plain).await, ["laptops"]);
    let none: [&str; 0] = [];
    assert_eq!(strategies_for(&app, &ada, search(1.0)).await, none);
    for wrong in [json!(1.1), json!(-0.1), json!("much")] {
        let search = json!({"query": QUERY, "min_similarity": wrong});
        let rejected = app.post(&ada, SEARCH, &search).await;
        assert_eq!(rejected.status, StatusCode::BAD_REQUEST);
        assert_eq!(rejected.body["errors"][0]["pointer"], "/min_similarity");
    }
}

#[tokio::test]
async fn turns_with_vectors_of_another_model_are_reported_as_not_comparable() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let mut embedded = turn_body(QUERY, "Here are three.");
    embedded["embedding"] = json!([0.6, 0.8]);
    app.put(&ada, &path("c", "t"), &embedded).await;
    app.put(&ada, &path("d", "u"), &turn_body(QUERY, "Here are four."))
        .await;
    app.put(&ada, &path("e", "v"), &turn_body("x", "y")).await;
    let embedded = json!({"embedding": "embedded", "candidates": 2, "not_comparable": 1});
    let found = app.post(&ada, SEARCH, &json!({"query": QUERY})).await.body;
    assert_eq!(found["vectors"], embedded);
    let inferred = app.post(&ada, INFER, &json!({"message": QUERY})).await.body;
    assert_eq!(inferred["vectors"], embedded);
    let own = json!({"query": QUERY, "embedding": [0.6, 0.8]});
    let found = app.post(&ada, SEARCH, &own).await.body;
    let caller = json!({"embedding": "caller", "candidates": 1, "not_comparable": 2});
    assert_eq!(found["vectors"], caller);
    assert_eq!(found["strategies"][0]["turn_id"], "t");
}

#[tokio::test]
async fn an_explicit_ok_ends_consecutive_rejections() {
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
    // Without the reaction there are two rejections; after it, the context counts one.
    register(&app, &ada, ("c", "t1"), (0, QUERY)).await;
    register(&app, &ada, ("c", "t2"), (1, "No, that's wrong.")).await;
    let third = register(&app, &ada, ("c", "t3"), (2, "No, that's wrong again.")).await;
    assert_eq!(third.body["detection"]["consecutive_rejections"], 2);
    let rejections = || async {
        let context = context(&app, &ada, ("c", "t2"), "application/json").await;
        let context: Value = serde_json::from_str(&context.1).unwrap();
        context["rejection"]["consecutive_rejections"].clone()
    };
    assert_eq!(rejections().await, 2);
    let feedback = format!("{}/feedback", path("c", "t1"));
    app.post(&ada, &feedback, &json!({"reaction": "ok"})).await;
    eventually(|| async { (rejections().await == 1).then_some(()) }).await;
}

/// The planner context of a turn in an accepted format: status and media type, and the text.
async fn context(
    app: &TestApp,
    token: &str,
    (conversation, turn): (&str, &str),
    accept: &str,
) -> ((StatusCode, String), String) {
    let path = format!("{}/feedback-context", path(conversation, turn));
    let request = app.request(Method::GET, &path).bearer_auth(token);
    let response = request.header(ACCEPT, accept).send().await.unwrap();
    assert_eq!(response.headers()[VARY], "accept");
    let media_type = response.headers()[CONTENT_TYPE]
        .to_str()
        .unwrap()
        .to_owned();
    let status = response.status();
    ((status, media_type), response.text().await.unwrap())
}

#[tokio::test]
async fn the_planner_context_has_the_same_facts_as_json_and_rejects_other_types_with_406() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    register(&app, &ada, ("c", "turn_001233"), (0, QUERY)).await;
    let at = ("c", "turn_001233");
    let ((status, media_type), json) = context(&app, &ada, at, "*/*").await;
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
async fn an_abandoned_request_is_not_quoted_as_what_the_user_wants() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    register(&app, &ada, ("c", "t1"), (0, QUERY)).await;
    let given_up = register(&app, &ada, ("c", "t2"), (1, "Never mind, forget that.")).await;
    assert_eq!(given_up.body["detection"]["correction_type"], "abandonment");
    let (_, markdown) = context(&app, &ada, ("c", "t1"), "text/markdown").await;
    let quotes = |line: &&str| line.contains("Never mind");
    let lines: Vec<_> = markdown.lines().filter(quotes).collect();
    assert_eq!(lines, ["**User said:** \"Never mind, forget that.\""]);
    let wrong = "**What went wrong:** The user gave up on this approach";
    assert!(markdown.lines().any(|line| line == wrong), "{markdown}");
}

#[tokio::test]
async fn a_rejection_without_text_quotes_nothing() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    register(&app, &ada, ("c", "t"), (0, QUERY)).await;
    let feedback = format!("{}/feedback", path("c", "t"));
    app.post(&ada, &feedback, &json!({"reaction": "not_ok"}))
        .await;
    eventually(|| async {
        let (_, markdown) = context(&app, &ada, ("c", "t"), "text/markdown").await;
        let rejected = markdown.contains("**Status:** REJECTED");
        assert!(!markdown.contains("User said") && !markdown.contains("What went wrong"));
        rejected.then_some(())
    })
    .await;
}
