//! Costs of reactions and message signals.

use axum::http::{Method, StatusCode};
use hearback_tests::engine::Cost;
use hearback_tests::functions::call;
use hearback_tests::turns::{SIGNALS, message, path, turn_body};
use serde_json::{Value, json};

use super::Metered;

#[tokio::test]
async fn a_reaction_costs_one_write_unit_and_one_for_each_new_marker() {
    let metered = Metered::start().await;
    let turn = path("c", "t");
    metered.call(Method::PUT, &turn, &turn_body("a", "b")).await;
    let feedback = format!("{turn}/feedback");
    let react = |body: Value| {
        let (metered, feedback) = (&metered, &feedback);
        async move { metered.call(Method::POST, feedback, &body).await }
    };
    let at = |second: u32, verdict: Value| json!({"reaction": verdict, "ts": format!("2025-11-06T15:30:{second:02}Z")});
    // Reads the turn and the current reaction in one call; writes the markers of the month and the minute.
    let first = react(at(0, json!("ok"))).await;
    assert_eq!(
        first,
        (StatusCode::OK, Cost::calls(5).reads(3.0).writes(4.0))
    );
    // Reads the text; writes the status of the turn with its entries in two indexes, and the event.
    assert_eq!(
        metered.generate_of_reaction().await,
        Cost::calls(4).reads(1.5).writes(4.0)
    );
    // This process has already written the marker of that minute.
    let replaced = react(at(1, json!("not_ok"))).await;
    assert_eq!(
        replaced,
        (StatusCode::OK, Cost::calls(3).reads(3.0).writes(1.0))
    );
    // Also writes the retraction of the replaced act. The turn's row is written at the second attempt, since the
    // first does not know the previous reaction; its index entry moves.
    assert_eq!(
        metered.generate_of_reaction().await,
        Cost::calls(6).reads(1.5).writes(9.0)
    );
    let superseded = react(at(0, json!("ok"))).await;
    assert_eq!(superseded, (StatusCode::OK, Cost::calls(2).reads(3.0)));
    let cleared = react(at(2, Value::Null)).await;
    assert_eq!(
        cleared,
        (StatusCode::OK, Cost::calls(3).reads(3.0).writes(1.0))
    );
    let nothing = react(at(3, Value::Null)).await;
    assert_eq!(nothing, (StatusCode::OK, Cost::calls(2).reads(3.0)));
    // Another minute of the same month.
    let later = react(json!({"reaction": "ok", "ts": "2025-11-06T15:31:00Z"})).await;
    assert_eq!(
        later,
        (StatusCode::OK, Cost::calls(4).reads(3.0).writes(3.0))
    );
    let unknown = format!("{}/feedback", path("c", "unknown"));
    let spent = metered
        .call(Method::POST, &unknown, &json!({"reaction": "ok"}))
        .await;
    assert_eq!(spent, (StatusCode::NOT_FOUND, Cost::calls(2).reads(3.0)));
}

#[tokio::test]
async fn a_message_signal_costs_two_reads_and_a_write_with_its_index_entries() {
    let metered = Metered::start().await;
    let turn = path("c", "t");
    let mut body = message("m", "a", "b");
    body["trace_id"] = json!("4f3a");
    metered.call(Method::PUT, &turn, &body).await;
    let submit = |body: Value| {
        let metered = &metered;
        async move { metered.call(Method::POST, SIGNALS, &body).await }
    };
    let signal = |reason: &str| json!({"message_id": "m", "signal": "edit", "reason": reason});
    // Reads the current signal, the message in the one project of the token, and the turn; writes the row with its
    // index entries by trace and by day.
    let created = submit(signal("one")).await;
    assert_eq!(
        created,
        (StatusCode::CREATED, Cost::calls(4).reads(4.0).writes(3.0))
    );
    // Reads the reason; writes the event.
    assert_eq!(
        metered.generate_of_signal("edit").await,
        Cost::calls(3).reads(1.5).writes(1.0)
    );
    // The index entries do not change: they hold keys only.
    let replaced = submit(signal("two")).await;
    assert_eq!(
        replaced,
        (StatusCode::OK, Cost::calls(4).reads(4.0).writes(1.0))
    );
    // Also writes the retraction of the act it replaced, with its index entries.
    assert_eq!(
        metered.generate_of_signal("edit").await,
        Cost::calls(4).reads(1.5).writes(5.0)
    );
    let repeated = submit(signal("two")).await;
    assert_eq!(repeated, (StatusCode::OK, Cost::calls(3).reads(4.0)));
    // The contrary signal is read, and withdrawn if there is one.
    let exclusive = |name: &str| json!({"message_id": "m", "signal": name, "exclusive": true});
    let first = submit(exclusive("unsafe")).await;
    let set = Cost::calls(4).reads(4.0).writes(3.0);
    let looked_up = Cost::calls(1).reads(1.0);
    assert_eq!(first, (StatusCode::CREATED, set + looked_up));
    let contrary = submit(exclusive("helpful")).await;
    let withdrawn = Cost::calls(1).writes(3.0);
    assert_eq!(
        contrary,
        (
            StatusCode::CREATED,
            set + looked_up + looked_up + looked_up + withdrawn
        )
    );
    let target = format!("{SIGNALS}?message_id=m&signal=helpful");
    metered.call(Method::DELETE, &target, &Value::Null).await;
    let listed = metered.call(Method::GET, SIGNALS, &Value::Null).await;
    assert_eq!(listed, (StatusCode::OK, Cost::calls(1).reads(1.0)));
    let target = format!("{SIGNALS}?message_id=m&signal=edit");
    let withdrawn = metered.call(Method::DELETE, &target, &Value::Null).await;
    assert_eq!(
        withdrawn,
        (
            StatusCode::NO_CONTENT,
            Cost::calls(2).reads(1.0).writes(3.0)
        )
    );
    assert_eq!(
        metered.generate_of_signal("edit").await,
        Cost::calls(2).reads(0.5).writes(4.0)
    );
    let again = metered.call(Method::DELETE, &target, &Value::Null).await;
    assert_eq!(again, (StatusCode::NO_CONTENT, Cost::calls(1).reads(1.0)));
    // A signal that counts for the turn: reads the reason; writes its row among the turn's reactions with the markers
    // of its minute and month, the turn's row, and the event. The index by status has no message signals,
    // that by hour has whether there is feedback.
    submit(json!({"message_id": "m", "signal": "helpful"})).await;
    assert_eq!(
        metered.generate_of_signal("helpful").await,
        Cost::calls(7).reads(1.5).writes(7.0)
    );
    let target = format!("{SIGNALS}?message_id=m&signal=helpful");
    metered.call(Method::DELETE, &target, &Value::Null).await;
    assert_eq!(
        metered.generate_of_signal("helpful").await,
        Cost::calls(6).reads(0.5).writes(9.0)
    );
    // The caller has no other project in which to look for the chat.
    let chat = submit(json!({"message_id": "m", "signal": "unsafe", "chat_id": "elsewhere"})).await;
    assert_eq!(
        chat,
        (StatusCode::CREATED, Cost::calls(4).reads(4.0).writes(3.0))
    );
}

#[tokio::test]
async fn a_message_signal_on_a_turn_with_an_inference_costs_no_more() {
    let metered = Metered::start().await;
    let body = message("m", "a", "b");
    metered.call(Method::PUT, &path("c", "t"), &body).await;
    let mut accepted = turn_body("Perfect, thanks, that works!", "You are welcome.");
    accepted["ts"] = json!("2025-11-06T15:40:00Z");
    metered.call(Method::PUT, &path("c", "u"), &accepted).await;
    let signal = json!({"message_id": "m", "signal": "helpful"});
    metered.call(Method::POST, SIGNALS, &signal).await;
    assert_eq!(
        metered.generate_of_signal("helpful").await,
        Cost::calls(7).reads(1.5).writes(7.0)
    );
}

#[tokio::test]
async fn an_unknown_message_costs_the_same_as_one_of_another_project() {
    let metered = Metered::start().await;
    let turn = "/conversations/acme/billing/c/turns/t";
    let caller = ("billing", "");
    let body = message("foreign", "a", "b");
    call(&metered.functions, caller, (Method::PUT, turn), &body).await;
    metered.meter.take();
    let signal = |name: &str| json!({"message_id": name, "signal": "helpful"});
    let foreign = metered
        .call(Method::POST, SIGNALS, &signal("foreign"))
        .await;
    let unknown = metered
        .call(Method::POST, SIGNALS, &signal("unknown"))
        .await;
    assert_eq!(foreign, (StatusCode::NOT_FOUND, Cost::calls(2).reads(3.0)));
    assert_eq!(unknown, foreign);
}
