//! Creates and erases the data of a user, with functions that only the test invokes.

use aws_lambda_events::sqs::{SqsEvent, SqsMessage};
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::types::QueueAttributeName;
use axum::Router;
use axum::http::{Method, StatusCode};
use chrono::{DateTime, Utc};
use hearback_erasure::Eraser;
use hearback_tests::engine::Engine;
use hearback_tests::events::acceptance;
use hearback_tests::functions::{call, functions_of, stored_event};
use hearback_tests::queue;
use hearback_tests::stored::Stored;
use hearback_tests::turns::{SIGNALS, event_message, exported, message, path, reaction_message};
use serde_json::{Value, json};

use crate::erasure::{EVE, WORDS, data, progress};

pub const SUBMIT: &str = "/v1/feedback/submit";
/// The key of an export.
const EXPORT: &str = "exports/signals/acme/2026-01-04/1/1-00001.jsonl";
/// A caller that may write for other users.
pub const ON_BEHALF: (&str, &str) = ("order-service", "feedback:on-behalf");

/// Acts as the user ada, with functions that only the test invokes.
pub struct World<'a> {
    pub engine: &'a Engine,
    pub functions: Router,
}

impl<'a> World<'a> {
    pub fn of(engine: &'a Engine) -> Self {
        Self {
            engine,
            functions: functions_of(engine),
        }
    }

    /// Sends a request as ada.
    pub async fn ask(&self, (method, path): (Method, &str), body: &Value) -> (StatusCode, Value) {
        let caller = ("order-service", "");
        call(&self.functions, caller, (method, path), body).await
    }

    /// Requests the erasure of ada's data.
    pub async fn erase(&self) -> Value {
        let request = (Method::DELETE, &*data("ada"));
        let (status, body) = self.ask(request, &Value::Null).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{body}");
        body
    }

    /// The progress of the erasure.
    pub async fn progress(&self) -> Value {
        let request = (Method::GET, &*progress("ada"));
        self.ask(request, &Value::Null).await.1
    }

    /// Submits an event, and returns the message that the pipe sends for it.
    pub async fn submitted(&self, event: &Value) -> SqsMessage {
        let (status, response) = self.ask((Method::POST, SUBMIT), event).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{response}");
        event_message(self.engine, &event["feedbackId"]).await
    }

    /// Submits an event of ada's with her words; returns its id and message.
    pub async fn submit_words(&self, artifact: &str) -> (Value, SqsMessage) {
        let mut event = acceptance("ada");
        event["artifactId"] = json!(artifact);
        event["data"]["comment"] = json!(WORDS);
        let delivery = self.submitted(&event).await;
        (event["feedbackId"].clone(), delivery)
    }

    /// Submits and processes an event, and returns its id.
    pub async fn submit_and_process(&self, anonymize: bool) -> Value {
        let mut event = acceptance("ada");
        event["privacyFlags"] = json!({"anonymize": anonymize});
        let delivery = self.submitted(&event).await;
        self.generate([delivery]).await;
        event["feedbackId"].clone()
    }

    /// Delivers messages to the signal generator as one batch.
    pub async fn generate(&self, messages: impl IntoIterator<Item = SqsMessage>) {
        let batch = queue::batch(messages);
        let generator = self.engine.generator(self.engine.store.clone());
        let response = generator.handle(batch).await;
        assert!(response.batch_item_failures.is_empty());
    }

    pub async fn exists(&self, id: &Value) -> bool {
        stored_event(&self.engine.store, id).await.is_some()
    }

    /// Whether an event exists and is processed.
    pub async fn is_processed(&self, id: &Value) -> bool {
        let stored = stored_event(&self.engine.store, id).await;
        stored.is_some_and(|event| event.outcome.is_some())
    }

    pub fn eraser(&self) -> Eraser {
        let engine = self.engine;
        engine.eraser(engine.store.clone(), engine.blobs())
    }

    /// Delivers one message to an eraser, and returns whether there was one.
    pub async fn step(&self, eraser: &Eraser, until: Option<DateTime<Utc>>) -> bool {
        let handle = async |batch: SqsEvent| eraser.handle(batch, until).await;
        let (sqs, queue) = (&self.engine.clients.sqs, &self.engine.queues.erasures);
        let failed = queue::step(sqs, queue, handle).await;
        assert_ne!(failed, Some(true));
        failed.is_some()
    }

    /// Delivers a message to an eraser. A test may deliver the same message again.
    pub async fn deliver(&self, eraser: &Eraser, message: &SqsMessage) {
        let batch = queue::batch([message.clone()]);
        let response = eraser.handle(batch, None).await;
        assert!(response.batch_item_failures.is_empty());
    }

    /// Processes messages until the erasure is done.
    pub async fn finish(&self) {
        self.finish_by(&self.eraser()).await;
    }

    /// Processes messages with this eraser until the erasure is done.
    pub async fn finish_by(&self, eraser: &Eraser) {
        while self.step(eraser, None).await {}
    }

    /// The number of messages in the eraser's queue, including delayed ones.
    pub async fn waiting(&self) -> u32 {
        let attributes = self.engine.clients.sqs.get_queue_attributes();
        let attributes = attributes.queue_url(&self.engine.queues.erasures);
        let attributes = attributes
            .attribute_names(QueueAttributeName::All)
            .send()
            .await;
        let attributes = attributes.unwrap().attributes.unwrap();
        let number = |name: QueueAttributeName| attributes[&name].parse::<u32>().unwrap();
        number(QueueAttributeName::ApproximateNumberOfMessages)
            + number(QueueAttributeName::ApproximateNumberOfMessagesDelayed)
    }

    /// Receives a message from the eraser's queue and deletes it.
    pub async fn take_message(&self) -> Option<SqsMessage> {
        let (sqs, queue) = (&self.engine.clients.sqs, &self.engine.queues.erasures);
        let received = sqs.receive_message().queue_url(queue).send().await;
        let message = received.unwrap().messages?.into_iter().next()?;
        let delete = sqs.delete_message().queue_url(queue);
        let delete = delete.set_receipt_handle(message.receipt_handle.clone());
        delete.send().await.unwrap();
        let mut record = SqsMessage::default();
        record.body = message.body;
        Some(record)
    }

    /// Deletes an event, as the table does after its expiry.
    pub async fn expire(&self, id: &Value) {
        for kind in ["EVENT", "RESULT"] {
            let delete = self.engine.clients.dynamodb.delete_item();
            let key = format!("EVENT#acme#{}", id.as_str().unwrap());
            let delete = delete.table_name(self.engine.names.table());
            let delete = delete.key("PK", AttributeValue::S(key));
            let delete = delete.key("SK", AttributeValue::S(kind.to_owned()));
            delete.send().await.unwrap();
        }
    }

    pub fn pseudonym(&self) -> String {
        let pseudonyms = self.engine.app(self.engine.store.clone()).pseudonyms;
        let (tenant, user) = ("acme".try_into().unwrap(), "ada".try_into().unwrap());
        pseudonyms.user(&tenant, &user).unwrap().to_string()
    }

    /// Creates data of ada: a turn, feedback on it and on a turn of eve's, a processed event, an unprocessed one, a
    /// duplicate, and a row of an export.
    pub async fn create_data(&self) {
        let mut eves = message("m9", "Which?", "This.");
        eves["user_id"] = json!(EVE);
        let eves_turn = path("c9", "t");
        let put = (Method::PUT, &*eves_turn);
        let (status, _) = call(&self.functions, ON_BEHALF, put, &eves).await;
        assert!(status.is_success(), "{status}");
        let react = json!({"reaction": "not_ok", "text": WORDS, "mirror": true});
        let edit =
            |message: &str| json!({"message_id": message, "signal": "edit", "reason": WORDS});
        let turn = path("c", "t");
        for (method, path, body) in [
            (Method::PUT, &*turn, message("m", WORDS, "This.")),
            (Method::POST, &*format!("{turn}/feedback"), react.clone()),
            (Method::POST, &*format!("{eves_turn}/feedback"), react),
            (Method::POST, SIGNALS, edit("m")),
            (Method::POST, SIGNALS, edit("m9")),
        ] {
            let (status, body) = self.ask((method, path), &body).await;
            assert!(status.is_success(), "{path}: {body}");
        }
        self.generate([reaction_message(self.engine, "c9", "ada").await])
            .await;
        for artifact in ["x", "x"] {
            let (_, delivery) = self.submit_words(artifact).await;
            self.generate([delivery]).await;
        }
        self.submit_words("y").await;
        let lines = exported("t", "m") + &exported("t7", "m7");
        let blobs = self.engine.blobs();
        let put = blobs.put_file(EXPORT, lines.into_bytes()).await;
        put.unwrap();
    }

    /// Asserts that the erasure is done, that nothing of ada's data is left, and that each removed item was counted
    /// once.
    pub async fn assert_gone(&self) {
        let progress = self.progress().await;
        let expected = json!({
            "events": 2, "turns": 1, "reactions": 2, "signals": 2, "preferenceVersions": 1,
            "exportRows": 1, "importFiles": 0, "rejectedLines": 0,
        });
        assert_eq!(
            (&progress["status"], &progress["removed"]),
            (&json!("done"), &expected)
        );
        // Events that are not processed yet are removed when the signal generator processes them.
        for event in queue::submitted(self.engine, "EVENT").await {
            self.generate([event]).await;
        }
        let stored = Stored::read(&self.engine.clients, &self.engine.names).await;
        assert_eq!(stored.with(WORDS), Vec::<&str>::new());
        let own = stored.with("#ada");
        let is_erasure = |item: &&str| item.contains("\"ERASURE\"");
        assert!(own.iter().all(is_erasure), "{own:#?}");
        assert_eq!(self.progress().await["removed"]["events"], 4);
        assert_eq!(stored.objects[EXPORT], exported("t7", "m7").as_bytes());
    }
}
