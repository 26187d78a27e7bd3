//! The roles of functions that no request reaches: those that receive messages, and the export.

use aws_lambda_events::sqs::SqsMessage;
use chrono::{TimeDelta, Utc};
use hearback_domain::views::webhook::WebhookRequest;
use hearback_export::Exporter;
use hearback_lambda::clock::Clock;
use hearback_lambda::dead_letters::DeadLetters;
use hearback_relay::{Relay, Sender, WebhookRegistry};
use hearback_signals::Generator;
use hearback_tests::events::ingested;
use hearback_tests::queue;
use hearback_tests::turns::{event_message, reaction_message, signal_message};
use hearback_tests::webhook_target::{Answer, Target};
use hearback_wire::from_json;
use uuid::Uuid;

use super::*;
use crate::imports;

#[tokio::test]
async fn the_role_of_ingest_allows_its_calls() {
    let recorded = Recorded::start().await;
    let engine = &recorded.engine;
    let ingest = engine.ingest(engine.store_with(recorded.recorder.clone()));
    let batch = ingested(&acceptance("ada"));
    assert!(ingest.handle(batch).await.batch_item_failures.is_empty());
    recorded.check("IngestFunction");
}

#[tokio::test]
async fn the_role_of_imports_allows_its_calls() {
    let recorded = Recorded::start().await;
    let engine = &recorded.engine;
    let (store, blobs) = (
        engine.store_with(recorded.recorder.clone()),
        engine.blobs_with(recorded.recorder.clone()),
    );
    let importer = engine.importer_with(store, blobs);
    let mut anonymous = acceptance("ada");
    anonymous["privacyFlags"] = json!({"anonymize": true});
    let lines = format!("no event\n{anonymous}");
    for packed in [
        lines.clone().into_bytes(),
        zstd::encode_all(lines.as_bytes(), 1).unwrap(),
    ] {
        imports::import_with(engine, &importer, packed, None).await;
    }
    // An object with a version.
    imports::import_with(engine, &importer, b"7".to_vec(), Some("v1")).await;
    recorded.check("ImportsFunction");
}

/// It calls neither the table nor the bucket; its event source receives with its role.
#[test]
fn the_role_of_nats_allows_nothing_but_its_queues() {
    let on = |action: &str, queue: &str| (format!("sqs:{action}"), format!("${{{queue}.Arn}}"));
    let needed = [
        on("ReceiveMessage", "NatsQueue"),
        on("DeleteMessage", "NatsQueue"),
        on("GetQueueAttributes", "NatsQueue"),
        on("ChangeMessageVisibility", "NatsQueue"),
        on("SendMessage", "NatsDeadLetters"),
    ];
    assert_eq!(allowed("NatsFunction"), needed);
}

#[tokio::test]
async fn the_role_of_webhook_sender_allows_its_calls() {
    let recorded = Recorded::start().await;
    let engine = &recorded.engine;
    let target = Target::start().await;
    target.answers([Answer::Status(500)], Answer::Status(200));
    let sender = Sender::new("127.0.0.0/8".parse().unwrap()).unwrap();
    let registry = WebhookRegistry::new(engine.store.clone(), sender.clone(), Clock::system());
    let (tenant, name) = ("acme".try_into().unwrap(), "crm".try_into().unwrap());
    let request: WebhookRequest = from_json(&json!({"url": target.url()})).unwrap();
    let put = registry.put(&tenant, &name, &request, None);
    put.await.unwrap();
    let published =
        json!({"id": Uuid::new_v4(), "eventType": "feedback.processed", "tenant": "acme"});
    let mut message = SqsMessage::default();
    message.body = Some(published.to_string());
    // The target fails, and an hour later one message tries it again.
    let later = Clock::of(|| Utc::now() + TimeDelta::hours(1));
    for clock in [Clock::system(), later] {
        let relay = Relay::to_webhooks(
            engine.store_with(recorded.recorder.clone()),
            sender.clone(),
            clock,
            (engine.clients.sqs.clone(), engine.queues.webhooks.clone()),
            engine.dead_letters(&engine.queues.webhooks_dead_letters),
        );
        let handled = relay.handle(queue::batch([message.clone()])).await;
        assert!(handled.batch_item_failures.is_empty());
    }
    assert_eq!(target.calls().len(), 2);
    recorded.check("WebhookSenderFunction");
}

/// Its event source receives with its role.
#[test]
fn the_role_of_webhook_sender_allows_what_its_queues_need() {
    let on = |action: &str, queue: &str| (format!("sqs:{action}"), format!("${{{queue}.Arn}}"));
    let role = allowed("WebhookSenderFunction");
    for needed in [
        on("ReceiveMessage", "WebhooksQueue"),
        on("DeleteMessage", "WebhooksQueue"),
        on("GetQueueAttributes", "WebhooksQueue"),
        on("ChangeMessageVisibility", "WebhooksQueue"),
        on("SendMessage", "WebhooksQueue"),
        on("SendMessage", "WebhooksDeadLetters"),
    ] {
        assert!(role.contains(&needed), "{needed:?}");
    }
}

#[tokio::test]
async fn the_role_of_signals_allows_its_calls() {
    let recorded = Recorded::start().await;
    let event = about_the_turn();
    let submitted = (Method::POST, "/v1/feedback/submit", event.clone());
    let withdrawn = format!("/v1/feedback/{}", event["feedbackId"].as_str().unwrap());
    let withdrawn = (Method::DELETE, &*withdrawn, Value::Null);
    recorded
        .prepare(&[turn(), reaction(), signal(), submitted, withdrawn])
        .await;
    let engine = &recorded.engine;
    let generator = Generator::new(
        engine.store_with(recorded.recorder.clone()),
        engine.blobs_with(recorded.recorder.clone()),
        DeadLetters::new(engine.clients.sqs.clone(), &engine.queues.dead_letters),
        Clock::system(),
    );
    let batch = queue::batch(
        [
            event_message(engine, &event["feedbackId"]).await,
            reaction_message(engine, "c", "ada").await,
            signal_message(engine, "ada", "m", "edit").await,
        ]
        .into_iter()
        .chain(queue::submitted(engine, "RETRACTION").await),
    );
    // A redelivery makes other calls, and so does a delivery after the user's erasure.
    for at in 0..3 {
        if at == 2 {
            let erase = erasure::data("ada");
            recorded
                .prepare(&[(Method::DELETE, &erase, Value::Null)])
                .await;
        }
        let response = generator.handle(batch.clone()).await;
        assert!(response.batch_item_failures.is_empty());
    }
    recorded.check("SignalsFunction");
}

#[tokio::test]
async fn the_role_of_export_allows_its_calls() {
    let recorded = Recorded::start().await;
    recorded.prepare(&[turn(), signal(), reaction()]).await;
    let exporter = Exporter::new(
        recorded.engine.store_with(recorded.recorder.clone()),
        recorded.engine.blobs_with(recorded.recorder.clone()),
        Clock::system(),
    );
    let today = chrono::Utc::now().date_naive().to_string();
    let training = json!({"training": {"project": "order-service", "from": today}});
    for selection in [json!({"trace_id": "4f3a"}), json!({"day": today}), training] {
        let mut request = selection;
        request["tenant"] = json!("acme");
        exporter.handle(&request, None).await.unwrap();
    }
    recorded.check("ExportFunction");
}
