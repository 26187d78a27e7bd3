//! What the store has, seen past the API: everything in it, and the events of the ledger.

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::Value;

use crate::app::{TestApp, eventually};

/// Every item of the table, and every object of the bucket.
pub async fn everything(app: &TestApp) -> (Vec<String>, Vec<String>) {
    let clients = &app.bundle.clients;
    let scanned = clients.dynamodb.scan().table_name("hearback").send().await;
    let mut items: Vec<_> = scanned
        .unwrap()
        .items()
        .iter()
        .map(|item| {
            let mut attributes: Vec<_> = item.iter().map(|pair| format!("{pair:?}")).collect();
            attributes.sort();
            attributes.join("\n")
        })
        .collect();
    items.sort();
    let listed = clients.s3.list_objects_v2().bucket("hearback-data").send();
    let listed = listed.await.unwrap();
    let objects = listed.contents().iter().map(|object| format!("{object:?}"));
    (items, objects.collect())
}

/// The events of a user in the ledger, each with its status.
pub async fn events(app: &TestApp, token: &str) -> Vec<Value> {
    let scanned = app
        .bundle
        .clients
        .dynamodb
        .scan()
        .table_name("hearback")
        .filter_expression("SK = :event")
        .expression_attribute_values(":event", AttributeValue::S("EVENT".to_owned()))
        .send()
        .await
        .unwrap();
    let mut events = Vec::new();
    for item in scanned.items() {
        let core: Value = serde_json::from_str(item["core"].as_s().unwrap()).unwrap();
        let id = core["feedbackId"].as_str().unwrap();
        let mut status = app.get(token, &format!("/v1/feedback/{id}")).await.body;
        status["core"] = core;
        events.push(status);
    }
    events
}

/// The same, once there are so many and all are worked off.
pub async fn ledger(app: &TestApp, token: &str, expected: usize) -> Vec<Value> {
    eventually(|| async {
        let events = events(app, token).await;
        // Not by the status: one may be withdrawn before it is worked off.
        let settled = events.iter().all(|event| event["processedAt"].is_string());
        (events.len() == expected && settled).then_some(events)
    })
    .await
}

/// Those that are where they are said to be.
pub fn of_status<'a>(events: &'a [Value], status: &str) -> Vec<&'a Value> {
    events
        .iter()
        .filter(|event| event["status"] == status)
        .collect()
}
