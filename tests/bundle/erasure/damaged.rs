//! Unreadable rows of a person are erased, and do not block other users.

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

use super::*;

/// Gives an event about a turn.
async fn submit_about(app: &TestApp, user: &str, (conversation, turn): (&str, &str)) {
    let mut event = acceptance(user);
    event["data"]["comment"] = json!(WORDS);
    event["context"] =
        json!({"projectId": "order-service", "conversationId": conversation, "turnId": turn});
    let response = app.submit(&app.token(user), &event).await;
    assert_eq!(response.status, StatusCode::ACCEPTED, "{:?}", response.body);
    let id = event["feedbackId"].as_str().unwrap();
    app.outcome(&app.token(user), id).await;
}

async fn all_rows(app: &TestApp) -> Vec<Row> {
    rows(&app.bundle.clients.dynamodb, &Names::default().table()).await
}

async fn damage_part(app: &TestApp, row: &Row, part: &str) {
    damage(
        &app.bundle.clients.dynamodb,
        &Names::default().table(),
        row,
        part,
    )
    .await;
}

async fn put_row(app: &TestApp, row: Row) {
    let put = app.bundle.clients.dynamodb.put_item();
    let put = put.table_name(Names::default().table());
    put.set_item(Some(row)).send().await.unwrap();
}

/// Asserts that nothing but the record of the erasure names the person.
async fn assert_erased(app: &TestApp) {
    let after = stored(app).await;
    assert_eq!(after.with(WORDS), Vec::<&str>::new());
    let left = after.with(ZOE);
    assert!(
        left.len() == 1 && left[0].contains("(\"SK\", S(\"ERASURE\"))"),
        "{left:#?}"
    );
}

#[tokio::test]
async fn reactions_that_cannot_be_read_are_erased_by_their_keys() {
    for damages_markers in [false, true] {
        let app = TestApp::start().await;
        put_turn(&app, EVE, ("c9", "t9"), "What is the fee?").await;
        give_feedback(&app, ZOE, WORDS, [("c1", "t1"), ("c1", "t2"), ("c9", "t9")]).await;
        react(&app, EVE, ("c1", "t1"), "as Eve").await;
        react(&app, EVE, ("c9", "t9"), "as Eve").await;
        if !damages_markers {
            submit_about(&app, ZOE, ("c9", "t9")).await;
        }
        submit_about(&app, ZOE, ("c1", "t2")).await;
        settled(&app).await;
        let mut damaged = Vec::new();
        for row in all_rows(&app).await {
            let key = attribute(&row, "SK").to_owned();
            let is_marker = attribute(&row, "PK").starts_with("DAY#");
            if key.starts_with("REACTION#") {
                let part = if row.contains_key("core") {
                    "core"
                } else {
                    "counted"
                };
                damage_part(&app, &row, part).await;
                damaged.push(key);
            } else if is_marker && damages_markers && attribute(&row, "core").contains(ZOE) {
                damage_part(&app, &row, "core").await;
            }
        }
        for kind in ["#user#", "#signal#", "#machine#", "#event#"] {
            assert!(damaged.iter().any(|key| key.contains(kind)), "{damaged:?}");
        }
        erase(&app, ZOE).await;
        let left = all_rows(&app).await;
        let left = left.iter().map(|row| attribute(row, "SK"));
        let mut left: Vec<_> = left.filter(|key| key.starts_with("REACTION#")).collect();
        left.sort_unstable();
        let eves = ["t1", "t9"].map(|turn| format!("REACTION#{turn}#user#{EVE}"));
        assert_eq!(left, eves, "others' reactions stay");
    }
}

#[tokio::test]
async fn a_turn_is_erased_although_both_its_row_and_its_vector_are_damaged() {
    let app = TestApp::start().await;
    put_turn(&app, EVE, ("c9", "t9"), "What is the fee?").await;
    put_turn(&app, ZOE, ("c1", "t1"), WORDS).await;
    put_turn(&app, ZOE, ("c1", "t2"), WORDS).await;
    settled(&app).await;
    for row in all_rows(&app).await {
        let is_turn = attribute(&row, "SK").starts_with("TURN#t2");
        if is_turn || attribute(&row, "core").contains("\"t2\"") {
            damage_part(&app, &row, "core").await;
        }
    }
    let erasure = erase(&app, ZOE).await;
    assert_eq!(erasure["removed"]["turns"], 2, "{erasure}");
    assert_erased(&app).await;
    let reader = app.token_of(EVE, "acme", "feedback:report");
    let kept = app.get(&reader, &path("c9", "t9")).await;
    assert_eq!(kept.status, StatusCode::OK, "{:?}", kept.body);
}

#[tokio::test]
async fn entries_of_the_message_directory_are_erased_although_they_are_damaged() {
    let app = TestApp::start().await;
    put_turn(&app, EVE, ("c9", "t9"), "What is the fee?").await;
    for turn in ["t1", "t2", "t3"] {
        put_turn(&app, ZOE, ("c1", turn), WORDS).await;
    }
    settled(&app).await;
    for mut row in all_rows(&app).await {
        let (partition, key) = (attribute(&row, "PK"), attribute(&row, "SK"));
        if partition.ends_with("#m-t1") || key == "TURN#t3" {
            damage_part(&app, &row, "core").await;
        } else if partition.ends_with("#m-t2") || partition.ends_with("#m-t3") {
            row.remove("core");
            put_row(&app, row).await;
        }
    }
    let erasure = erase(&app, ZOE).await;
    assert_eq!(erasure["removed"]["turns"], 3, "{erasure}");
    assert_erased(&app).await;
    let left = all_rows(&app).await;
    let left = left.iter().map(|row| attribute(row, "PK"));
    let left: Vec<_> = left.filter(|key| key.contains("#m-t")).collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].ends_with("#m-t9"), "{left:?}");
}

#[tokio::test]
async fn an_event_that_is_unreadable_and_unprocessed_is_erased() {
    let app = TestApp::start().await;
    let id = submit(&app, ZOE, WORDS, json!({})).await;
    app.outcome(&app.token(ZOE), &id).await;
    let rows = all_rows(&app).await;
    let event = rows.iter().find(|row| attribute(row, "SK") == "EVENT");
    let mut event = event.unwrap().clone();
    let copy = format!("EVENT#acme#{}", Uuid::new_v4());
    let core = attribute(&event, "core").to_owned();
    let cut = core.get(..core.len() - 1).unwrap().to_owned();
    event.insert("PK".to_owned(), AttributeValue::S(copy.clone()));
    event.insert("core".to_owned(), AttributeValue::S(cut));
    event.remove("author");
    put_row(&app, event).await;
    eventually(|| async {
        let rows = all_rows(&app).await;
        let found = rows.iter().find(|row| attribute(row, "PK") == copy)?;
        found.contains_key("author").then_some(())
    })
    .await;
    let erasure = erase(&app, ZOE).await;
    assert_eq!(erasure["removed"]["events"], 2, "{erasure}");
    assert_erased(&app).await;
}

/// Replaces the `core` of both rows of an erasure, and removes other attributes.
async fn damage_erasures(app: &TestApp, removed: &[&str]) {
    for mut row in all_rows(app).await {
        if attribute(&row, "SK") == "ERASURE" {
            row.insert("core".to_owned(), AttributeValue::S("{".to_owned()));
            row.retain(|name, _| !removed.contains(&name.as_str()));
            put_row(app, row).await;
        }
    }
}

#[tokio::test]
async fn an_erasure_whose_row_cannot_be_read_counts_as_open_until_it_is_requested_again() {
    let app = TestApp::start().await;
    put_turn(&app, ZOE, ("c1", "t1"), WORDS).await;
    erase(&app, ZOE).await;
    // When it was done is stored apart.
    damage_erasures(&app, &[]).await;
    let token = app.token(ZOE);
    let done = app.get(&token, &progress(ZOE)).await;
    assert_eq!(done.body["status"], "done", "{:?}", done.body);
    put_turn(&app, ZOE, ("c1", "t2"), WORDS).await;
    let kept = submit(&app, ZOE, WORDS, json!({})).await;
    assert_eq!(app.outcome(&token, &kept).await["status"], "processed");

    damage_erasures(&app, &["until"]).await;
    let open = app.get(&token, &progress(ZOE)).await;
    assert_eq!(open.body["status"], "pending", "{:?}", open.body);
    let turn = message("m-t3", WORDS, "An answer of some length.");
    let rejected = app.put(&token, &path("c1", "t3"), &turn).await;
    assert_eq!(rejected.status, StatusCode::CONFLICT);
    assert_eq!(rejected.body["error"], "erasure_in_progress");
    let received = submit(&app, ZOE, WORDS, json!({})).await;
    assert!(fate(&app, &token, &received).await.is_none());

    let erasure = erase(&app, ZOE).await;
    assert_ne!(erasure["erasureId"], open.body["erasureId"]);
    assert_eq!(erasure["removed"]["turns"], 1, "{erasure}");
    assert_erased(&app).await;
    put_turn(&app, ZOE, ("c1", "t4"), "hello").await;
}

#[tokio::test]
async fn an_erasure_continues_without_traces_that_cannot_be_read() {
    let app = TestApp::start().await;
    put_turn(&app, ZOE, ("c1", "t1"), WORDS).await;
    let requested = app.delete(&app.token(ZOE), &data(ZOE)).await;
    let id = requested.body["erasureId"].as_str().unwrap();
    let traces = format!("erasures/acme/{id}.json");
    let blobs = &app.bundle.blobs;
    blobs.put_file(&traces, b"{".to_vec()).await.unwrap();
    let body = eventually(|| async {
        let body = app.get(&app.token(ZOE), &progress(ZOE)).await.body;
        (body["status"] == "done").then_some(body)
    })
    .await;
    assert_eq!(body["removed"]["turns"], 1, "{body}");
    assert_erased(&app).await;
}
