//! What a planner reads before it answers again: why an answer was rejected, and which strategies were accepted.

use super::*;

#[tokio::test]
async fn the_planner_context_names_the_rejection_and_what_to_avoid() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let mut first = turn_body("laptops under $1000", "Here are three business laptops.");
    first["ts"] = json!("2026-01-04T10:00:00Z");
    first["strategy"] = json!("commerce_search");
    // Set before anything is learned, because learning creates a version, too.
    let formal = json!({
        "preferenceVersion": 0, "globalPreferences": {"communicationStyle": "formal"}
    });
    let put = app.put(&ada, "/v1/preferences/ada", &formal).await;
    assert_eq!(put.status, StatusCode::OK);
    app.put(&ada, &path("c", "turn_001233"), &first).await;
    let context = |token: String| {
        let app = &app;
        async move {
            let path = format!("{}/feedback-context", path("c", "turn_001233"));
            let request = app.request(reqwest::Method::GET, &path).bearer_auth(token);
            let request = request.header(reqwest::header::ACCEPT, "text/markdown");
            let response = request.send().await.unwrap();
            (response.status(), response.text().await.unwrap())
        }
    };
    let (_, before) = context(ada.clone()).await;
    assert!(before.ends_with("**Status:** NEUTRAL\n"), "{before}");
    register(&app, &ada, "turn_001234", (60, REJECTION)).await;
    let (status, markdown) = context(ada.clone()).await;
    assert_eq!(status, StatusCode::OK);
    for line in [
        "## 2. Gathered Context",
        "### Previous Response Feedback",
        "**Status:** REJECTED",
        "**Detected:** Turn 1234 detected that Turn 1233 was rejected",
        "**User said:** \"No, I meant gaming laptops not business laptops\"",
        "**Previous strategy:** commerce_search with query \"laptops under $1000\"",
        "- Do NOT reuse the strategy from Turn 1233",
        "- Assistant: Here are three business laptops.",
        "- communication style: formal",
    ] {
        assert!(
            markdown.lines().any(|found| found == line),
            "{line}\n{markdown}"
        );
    }
    let (status, _) = context(app.token("eve")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    // Explicit feedback replaces it in the context.
    let feedback = format!("{}/feedback", path("c", "turn_001233"));
    let wrong = json!({"reaction": "not_ok", "text": "Too expensive"});
    app.post(&ada, &feedback, &wrong).await;
    eventually(|| async {
        let (_, markdown) = context(ada.clone()).await;
        let is_quoted = markdown.contains("**User said:** \"Too expensive\"");
        (is_quoted && markdown.contains("**Detected:** The user rejected Turn 1233")).then_some(())
    })
    .await;
    // The scope for reports does not reveal the user's preferences.
    let (_, own) = context(ada.clone()).await;
    assert!(own.contains("- communication style: formal"), "{own}");
    let (_, others) = context(app.token_of("eve", "acme", "feedback:report")).await;
    assert!(others.contains("**Status:** REJECTED"), "{others}");
    assert!(
        others.contains("- communication style: technical"),
        "{others}"
    );
}

#[tokio::test]
async fn accepted_strategies_come_first_and_rejected_ones_are_excluded() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    for (turn, quality) in [("good", 0.9), ("accepted", 0.2), ("wrong", 1.0)] {
        let mut body = turn_body("gaming laptops under $1000", "Here are three.");
        body["quality_score"] = json!(quality);
        body["validation_outcome"] = json!("APPROVE");
        body["strategy"] = json!(format!("{turn} strategy"));
        app.put(&ada, &path(turn, "t"), &body).await;
    }
    for (turn, verdict) in [("accepted", "ok"), ("wrong", "not_ok")] {
        let feedback = format!("{}/feedback", path(turn, "t"));
        app.post(&ada, &feedback, &json!({"reaction": verdict}))
            .await;
    }
    // Turns of other users are not searched.
    let other = turn_body("gaming laptops under $1000", "Others.");
    app.put(&app.token("eve"), &path("other", "t"), &other)
        .await;
    let search = "/conversations/acme/order-service/strategies/search";
    let query = json!({"query": "cheap gaming laptops"});
    // The two reactions are processed in either order.
    let found = eventually(|| async {
        let found = app.post(&ada, search, &query).await.body;
        let strategies = found["strategies"].as_array()?;
        let is_accepted = |strategy: &Value| strategy["user_feedback_status"] == "accepted";
        (strategies.len() == 2 && strategies.iter().any(is_accepted)).then_some(found)
    })
    .await;
    assert_eq!(found["embedder"], "embedded-semantic-384");
    let names: Vec<_> = found["strategies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|strategy| strategy["strategy"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["accepted strategy", "good strategy"]);
    let accepted = &found["strategies"][0];
    assert_eq!(accepted["user_feedback_status"], "accepted");
    assert_eq!(accepted["satisfaction_score"], 1.0);
    let rank = accepted["ranking_score"].as_f64().unwrap();
    assert!((rank - (0.6 * 0.2 + 0.4 * 0.5)).abs() < 1e-9);
    assert!(accepted["similarity"].as_f64().unwrap() > 0.4);
    // A caller's embedding is compared with callers' embeddings only.
    let own = json!({"query": "cheap gaming laptops", "embedding": [0.1, 0.2]});
    let none = app.post(&ada, search, &own).await.body;
    let vectors = json!({"embedding": "caller", "candidates": 0, "not_comparable": 3});
    assert_eq!(
        none,
        json!({"embedder": "request:2", "vectors": vectors, "strategies": []})
    );
}

#[tokio::test]
async fn a_good_strategy_is_found_after_any_number_of_rejected_ones() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let turn = async |name: String, query: &str, verdict: &str| {
        let body = turn_body(query, "An answer.");
        app.put(&ada, &path(&name, "t"), &body).await;
        let feedback = format!("{}/feedback", path(&name, "t"));
        app.post(&ada, &feedback, &json!({"reaction": verdict}))
            .await;
    };
    let rejected = (0..30).map(|n| turn(format!("c-{n}"), "cheap gaming laptops", "not_ok"));
    futures::future::join_all(rejected).await;
    turn("good".to_owned(), "gaming laptops", "ok").await;
    let search = "/conversations/acme/order-service/strategies/search";
    let query = json!({"query": "cheap gaming laptops"});
    eventually(|| async {
        let found = app.post(&ada, search, &query).await.body;
        let found = found["strategies"].as_array()?;
        (found.len() == 1 && found[0]["conversation_id"] == "good").then_some(())
    })
    .await;
}
