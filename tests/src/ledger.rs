//! The content of the store, read without the API, and the events of the ledger.

use serde_json::Value;

use crate::app::{TestApp, eventually};
use crate::rows::{rows, text};

const TABLE: &str = "hearback";

/// Every item of the table, and every object of the bucket.
pub async fn everything(app: &TestApp) -> (Vec<String>, Vec<String>) {
    let clients = &app.bundle.clients;
    let items = rows(&clients.dynamodb, TABLE).await;
    let mut items: Vec<_> = items.iter().map(text).collect();
    items.sort();
    let listed = clients.s3.list_objects_v2().bucket("hearback-data").send();
    let listed = listed.await.unwrap();
    let objects = listed.contents().iter().map(|object| format!("{object:?}"));
    (items, objects.collect())
}

/// The events of a user in the ledger, each with its status.
pub async fn events(app: &TestApp, token: &str) -> Vec<Value> {
    let mut rows = rows(&app.bundle.clients.dynamodb, TABLE).await;
    rows.retain(|row| row["SK"].as_s().unwrap() == "EVENT");
    let mut events = Vec::new();
    for row in rows {
        let core: Value = serde_json::from_str(row["core"].as_s().unwrap()).unwrap();
        let id = core["feedbackId"].as_str().unwrap();
        let mut status = app.get(token, &format!("/v1/feedback/{id}")).await.body;
        status["core"] = core;
        events.push(status);
    }
    events
}

/// The same, once there are `expected` events and all are processed.
pub async fn ledger(app: &TestApp, token: &str, expected: usize) -> Vec<Value> {
    eventually(|| async {
        let events = events(app, token).await;
        // `status` does not show whether an event is processed: it may be withdrawn before that.
        let settled = events.iter().all(|event| event["processedAt"].is_string());
        (events.len() == expected && settled).then_some(events)
    })
    .await
}

/// The events with this status.
pub fn of_status<'a>(events: &'a [Value], status: &str) -> Vec<&'a Value> {
    events
        .iter()
        .filter(|event| event["status"] == status)
        .collect()
}
