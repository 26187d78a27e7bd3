//! Costs of registering turns, and of what follows from them.

use axum::http::{Method, StatusCode};
use hearback_tests::engine::Cost;
use hearback_tests::events::acceptance;
use hearback_tests::functions::call;
use hearback_tests::turns::{BY_STATUS, message, path, turn_body};
use serde_json::{Value, json};

use super::Metered;

#[tokio::test]
async fn registering_a_turn_costs_one_read_and_a_write_for_each_item() {
    let metered = Metered::start().await;
    let turn = path("c", "t");
    let mut body = turn_body("How?", "So.");
    let register = |body: Value| {
        let (metered, turn) = (&metered, &turn);
        async move { metered.call(Method::PUT, turn, &body).await }
    };
    // Reads the turn and the turn that it may follow; writes its vector, and its row with an index entry.
    assert_eq!(
        register(body.clone()).await,
        (StatusCode::CREATED, Cost::calls(5).reads(3.0).writes(3.0))
    );
    // A repeat, and a different body, are recognised by the read alone.
    assert_eq!(
        register(body.clone()).await,
        (StatusCode::OK, Cost::calls(2).reads(2.0))
    );
    body["assistant"]["message_id"] = json!("message");
    assert_eq!(
        register(body.clone()).await,
        (StatusCode::CONFLICT, Cost::calls(2).reads(2.0))
    );
    let other = path("c", "u");
    let mut other_body = body.clone();
    other_body["ts"] = json!("2026-01-04T10:00:00Z");
    let spent = metered.call(Method::PUT, &other, &other_body).await;
    assert_eq!(
        spent,
        (StatusCode::CREATED, Cost::calls(6).reads(3.0).writes(4.0))
    );
}

#[tokio::test]
async fn a_turn_in_two_steps_costs_a_registration_and_a_completion() {
    let metered = Metered::start().await;
    let turn = path("c", "t");
    let register = |body: &Value| {
        let (metered, turn, body) = (&metered, &turn, body.clone());
        async move { metered.call(Method::PUT, turn, &body).await }
    };
    let open = json!({"user": {"text": "How?"}});
    let opened = register(&open).await;
    assert_eq!(
        opened,
        (StatusCode::CREATED, Cost::calls(5).reads(3.0).writes(3.0)),
        "as much as a turn with its answer"
    );
    // Writes the row, the vector and the message.
    let body = message("m", "How?", "So.");
    let completed = register(&body).await;
    assert_eq!(
        completed,
        (StatusCode::OK, Cost::calls(5).reads(2.0).writes(3.0)),
        "completed"
    );
    let opened = register(&open).await;
    assert_eq!(
        opened,
        (StatusCode::OK, Cost::calls(2).reads(2.0)),
        "the first body again"
    );
    // A repeat ensures that the vector includes the answer.
    let completed = register(&body).await;
    assert_eq!(
        completed,
        (StatusCode::OK, Cost::calls(3).reads(2.0).writes(1.0)),
        "the second body again"
    );
}

#[tokio::test]
async fn a_follow_up_writes_the_status_and_the_machine_reaction_of_the_turn_before() {
    let metered = Metered::start().await;
    metered
        .call(Method::PUT, &path("c", "t"), &turn_body("a", "b"))
        .await;
    let rejection = turn_body("No, that's wrong.", "b");
    let follow_up = path("c", "u");
    let register = || async { metered.call(Method::PUT, &follow_up, &rejection).await };
    // Reads the turn before; writes its status with its entries in two indexes, and the machine reaction with the markers of the
    // month and minute.
    let first = register().await;
    assert_eq!(
        first,
        (StatusCode::CREATED, Cost::calls(10).reads(4.0).writes(10.0))
    );
    // A repeat ensures that every write was done.
    let again = register().await;
    assert_eq!(
        again,
        (StatusCode::OK, Cost::calls(6).reads(3.0).writes(3.0))
    );
    let context = |turn: &str| format!("{}/feedback-context", path("c", turn));
    let neutral = metered.call(Method::GET, &context("u"), &Value::Null).await;
    assert_eq!(neutral, (StatusCode::OK, Cost::calls(1).reads(1.0)));
    // The turn, and the preferences of its user.
    let rejected = metered.call(Method::GET, &context("t"), &Value::Null).await;
    assert_eq!(rejected, (StatusCode::OK, Cost::calls(2).reads(1.5)));
    // An event that rejects it: what it counts as, with its comment.
    let mut event = acceptance("ada");
    event["feedbackType"] = json!("rejection");
    event["data"] = json!({"comment": "That is the result of 2002"});
    event["context"]["conversationId"] = json!("c");
    event["context"]["turnId"] = json!("t");
    metered
        .call(Method::POST, "/v1/feedback/submit", &event)
        .await;
    metered.generate(&[event]).await;
    let quoting = metered.call(Method::GET, &context("t"), &Value::Null).await;
    assert_eq!(quoting, (StatusCode::OK, Cost::calls(3).reads(2.5)));
    // Also reads the turn before, for the number of consecutive rejections.
    let third = metered.call(Method::PUT, &path("c", "v"), &rejection).await;
    // The number of writes depends on whether a new minute has begun.
    let (status, spent) = third;
    assert_eq!(status, StatusCode::CREATED);
    assert_eq!((spent.calls, spent.reads), (10, 5.0));
}

#[tokio::test]
async fn a_correction_writes_the_status_and_a_row_for_each_reaction_that_changes() {
    let metered = Metered::start().await;
    let rejection = turn_body("No, that's wrong.", "b");
    for (turn, body) in [("t", &turn_body("a", "b")), ("u", &rejection)] {
        metered.call(Method::PUT, &path("c", turn), body).await;
    }
    let inference = format!("{}/inference", path("c", "t"));
    let correct = |feedback_type: &str| {
        let body = json!({"feedback_type": feedback_type});
        let (metered, inference) = (&metered, &inference);
        async move { metered.call(Method::PUT, inference, &body).await }
    };
    // Reads the turn twice, the erasure, the turn after it and the machine's reactions; writes the status with its entries in two
    // indexes, the mark of a corrected turn with two, and the tombstone.
    let neutral = correct("neutral").await;
    assert_eq!(
        neutral,
        (StatusCode::OK, Cost::calls(8).reads(5.0).writes(7.0))
    );
    // The reaction is new, and so is the entry in the index by status.
    let accepted = correct("accepted").await;
    assert_eq!(
        accepted,
        (StatusCode::OK, Cost::calls(9).reads(5.0).writes(7.0))
    );
}

#[tokio::test]
async fn a_neutral_follow_up_changes_no_index_entry_of_the_turn_before() {
    let metered = Metered::start().await;
    let register = async |turn: &str, query: &str| {
        let body = turn_body(query, "Here it is.");
        let path = path("c", turn);
        metered.call(Method::PUT, &path, &body).await.1
    };
    let first = register("t", "Show me gaming laptops under $1000").await;
    // Reads and writes the turn before. Phrases alone decide about such a message.
    let follow_up = register("u", "Not sure").await;
    assert_eq!(follow_up.writes, first.writes + 1.0);
}

#[tokio::test]
async fn a_machine_reaction_updates_its_turn_in_one_write() {
    let metered = Metered::start().await;
    let turn = path("c", "t");
    metered.call(Method::PUT, &turn, &turn_body("a", "b")).await;
    let feedback = format!("{turn}/feedback");
    let body = json!({"reaction": "not_ok", "origin": "machine", "confidence": 0.9});
    let caller = ("order-service", "feedback:on-behalf");
    let request = (Method::POST, feedback.as_str());
    let (status, _) = call(&metered.functions, caller, request, &body).await;
    assert_eq!(status, StatusCode::OK);
    // The turn, and whether its user has an open erasure; its status with its entries in two indexes, the markers of its month
    // and minute, and the reaction.
    assert_eq!(metered.meter.take(), Cost::calls(6).reads(2.0).writes(7.0));
    // The vectors of the caller's own turns, and the turns.
    let listed = metered.call(Method::GET, BY_STATUS, &Value::Null).await;
    assert_eq!(listed, (StatusCode::OK, Cost::calls(2).reads(2.0)));
    // The four shards of the project, and the turns.
    let caller = ("order-service", "feedback:report");
    let request = (Method::GET, BY_STATUS);
    call(&metered.functions, caller, request, &Value::Null).await;
    assert_eq!(metered.meter.take(), Cost::calls(5).reads(3.0));
}

#[tokio::test]
async fn uncertain_feedback_reads_up_to_three_turns_before_the_previous_one() {
    let metered = Metered::start().await;
    let register = |turn: &'static str, query: &str| {
        let (path, body) = (path("c", turn), turn_body(query, "Here it is."));
        let metered = &metered;
        async move { metered.call(Method::PUT, &path, &body).await.1 }
    };
    register("t1", "laptops under $1000").await;
    let follows_one = register("t2", "I need hamster food").await;
    for (turn, query, earlier) in [
        ("t3", "Find me a dentist in Rome", 1.0),
        ("t4", "Show me the weather in Oslo", 2.0),
        ("t5", "Find me a new bicycle", 3.0),
        ("t6", "Find me a recipe for soup", 3.0),
    ] {
        // The writes depend on the status.
        let cost = register(turn, query).await.writes(follows_one.writes);
        let more = Cost::calls(1).reads(earlier);
        assert_eq!(cost, follows_one + more, "{turn}");
    }
}
