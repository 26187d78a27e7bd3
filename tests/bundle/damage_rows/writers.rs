//! Writes next to a row that cannot be read: new feedback counts, and nothing waits for a repair.

use super::*;

const TURN: &str = "TURN#t2";

async fn row(app: &TestApp, is_it: impl Fn(&Row) -> bool) -> Row {
    table(app).await.into_iter().find(is_it).unwrap()
}

/// Damages an attribute of the row whose sort key has this prefix.
async fn damage_row(app: &TestApp, key: &str, name: &str) {
    let row = row(app, |row| attribute(row, "SK").starts_with(key)).await;
    let (dynamodb, table) = (&app.bundle.clients.dynamodb, Names::default().table());
    damage(dynamodb, &table, &row, name).await;
}

async fn dead_letters(app: &TestApp) -> usize {
    count(&app.bundle.clients.sqs, &app.bundle.queues.dead_letters).await
}

/// Reacts to the turn `t2`, and waits until the ledger has the event.
async fn react(app: &TestApp, token: &str, reaction: &Value) {
    let feedback = format!("{}/feedback", path("c2", "t2"));
    let reacted = app.post(token, &feedback, reaction).await;
    assert_eq!(reacted.status, 200, "{:?}", reacted.body);
    settled(app).await;
    assert_eq!(dead_letters(app).await, 0, "{reaction}");
}

#[tokio::test]
async fn feedback_counts_on_a_turn_whose_earlier_feedback_cannot_be_read() {
    for part in ["said", "user_feedback"] {
        let app = TestApp::start().await;
        let token = app.token("ada");
        give_feedback(&app, "ada", &[("c2", "t2")]).await;
        let thanks = message("m-t3", "Perfect, thanks, that works!", "Good.");
        app.put(&token, &path("c2", "t3"), &thanks).await;
        settled(&app).await;
        damage_row(&app, TURN, part).await;
        react(&app, &token, &json!({"reaction": "ok"})).await;
        let events = app.get(&token, "/v1/feedback/events?limit=100").await.body;
        let accepted = events.to_string().matches("\"accepted\"").count();
        assert!(accepted > 0, "{part}: {events}");
        if part == "said" {
            let turn = app.get(&token, &path("c2", "t2")).await.body;
            assert_eq!(
                turn["user_feedback_status"], "accepted",
                "it replaces the part"
            );
        }
    }
}

#[tokio::test]
async fn a_message_after_an_unreadable_turn_is_not_attributed_to_an_earlier_turn() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    for (turn, question) in [("t1", "Where is the shop?"), ("t2", "When does it open?")] {
        let body = message(
            &format!("m-{turn}"),
            question,
            "In the high street, at nine.",
        );
        app.put(&token, &path("c2", turn), &body).await;
    }
    let first = async || app.get(&token, &path("c2", "t1")).await.body["user_feedback"].clone();
    let before = first().await;
    damage_row(&app, TURN, "core").await;
    let body = message("m-t3", "No, that is wrong.", "Sorry.");
    let registered = app.put(&token, &path("c2", "t3"), &body).await;
    assert_eq!(registered.status, 201, "{:?}", registered.body);
    assert_eq!(registered.body["detection"], Value::Null);
    assert_eq!(first().await, before);
}

#[tokio::test]
async fn a_reaction_counts_although_the_log_that_mirrors_it_is_unreadable() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    give_feedback(&app, "ada", &[("c2", "t2")]).await;
    settled(&app).await;
    cut_log(&app, &row(&app, |row| attribute(row, "SK") == TURN).await).await;
    react(&app, &token, &json!({"reaction": "ok", "mirror": true})).await;
}

#[tokio::test]
async fn an_unreadable_claim_does_not_block_its_event() {
    for damaged in ["feedbackId", "receipt"] {
        let app = TestApp::start().await;
        let token = app.token("ada");
        let first = acceptance("ada");
        app.submit(&token, &first).await;
        app.outcome(&token, &id(&first)).await;
        damage_row(&app, "CLAIM#", damaged).await;
        let mut equal = first;
        equal["feedbackId"] = json!(uuid::Uuid::new_v4());
        app.submit(&token, &equal).await;
        let outcome = app.outcome(&token, &id(&equal)).await;
        assert_eq!(outcome["status"], "processed", "{damaged}");
        // The claim can be read again.
        equal["feedbackId"] = json!(uuid::Uuid::new_v4());
        app.submit(&token, &equal).await;
        let outcome = app.outcome(&token, &id(&equal)).await;
        assert_eq!(outcome["status"], "deduplicated", "{damaged}");
    }
}

#[tokio::test]
async fn a_signal_replaces_a_contrary_one_that_cannot_be_read() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    give_feedback(&app, "ada", &[("c2", "t2")]).await;
    damage_row(&app, "SIGNAL#m-t2#", "core").await;
    let helpful = json!({"message_id": "m-t2", "signal": "helpful", "exclusive": true});
    let sent = app.post(&token, SIGNALS, &helpful).await;
    assert_eq!(sent.status, 201, "{:?}", sent.body);
}

#[tokio::test]
async fn a_message_whose_directory_entry_cannot_be_read_can_be_registered() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    give_feedback(&app, "ada", &[("c2", "t2")]).await;
    damage_row(&app, "MESSAGE", "core").await;
    let body = message("m-t2", "Where is the laptop?", "It is in the shop.");
    let registered = app.put(&token, &path("c2", "t4"), &body).await;
    assert_eq!(registered.status, 201, "{:?}", registered.body);
    let signal = json!({"message_id": "m-t2", "signal": "helpful"});
    let sent = app.post(&token, SIGNALS, &signal).await;
    assert_eq!(sent.status, 201, "{:?}", sent.body);
}
