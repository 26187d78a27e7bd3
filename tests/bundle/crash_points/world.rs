//! Where something is about to be done.

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use aws_sdk_dynamodb::types::AttributeValue;
use axum::http::Method;
use hearback_batch::notification;
use hearback_lambda::clock::Clock;
use hearback_storage::files::import_key;
use hearback_tests::engine::Engine;
use hearback_tests::events::ingested;
use hearback_tests::faults::Faults;
use hearback_tests::functions::call;
use hearback_tests::hands::Hands;
use hearback_tests::queue::{self, submitted};
use hearback_tests::turns::{SIGNALS, exported, message, path};
use serde_json::{Value, json};

use super::deeds::{
    Deed, about_the_turn, before, edit, event, inaccurate, judgement, now, open, reaction, said,
};

/// The functions, with clients that may fail.
pub fn at_work(engine: &Engine, faults: &Faults) -> Hands {
    Hands::at(engine, faults, Clock::of(now))
}

/// A table, a bucket and queues in which something is about to be done.
pub struct World {
    pub engine: Engine,
    deed: Deed,
    messages: Vec<SqsMessage>,
}

impl World {
    pub async fn new(beside: &Engine, deed: Deed) -> Self {
        let engine = beside.beside().await;
        let hands = at_work(&engine, &Faults::none());
        let mut messages = Vec::new();
        let post = Method::POST;
        let submit = "/v1/feedback/submit";
        let (turn, body) = said();
        match deed {
            Deed::Submit | Deed::Ingest | Deed::Register | Deed::ChangePreferences => {}
            Deed::Batch => assert!(hands.request(post.clone(), submit, &event(1, "a")).await),
            Deed::Import => {
                let mut lines: Vec<_> = (1..5).map(|n| event(n, "a").to_string()).collect();
                lines.insert(2, "no event".to_owned());
                let key = import_key(&"acme".try_into().unwrap(), "events.jsonl").unwrap();
                let file = lines.join("\n").into_bytes();
                hands.blobs.put_file(&key, file).await.unwrap();
                let send = engine.clients.sqs.send_message();
                let send = send.queue_url(&engine.queues.imports);
                let send = send.message_body(notification(&key, None));
                send.send().await.unwrap();
            }
            Deed::WorkOffEvents => {
                assert!(hands.request(Method::PUT, &turn, &body).await);
                for event in [event(1, "a"), event(2, "a"), about_the_turn(3, "b")] {
                    assert!(hands.request(post.clone(), submit, &event).await);
                }
                messages = submitted(&engine, "EVENT").await;
            }
            Deed::AskErasure | Deed::Erase => leave(&engine, &hands, deed).await,
            Deed::ExportDay | Deed::ExportTraining => live(&engine, &hands).await,
            _ => assert!(hands.request(Method::PUT, &turn, &body).await),
        }
        if deed == Deed::Complete {
            let (turn, body) = open();
            assert!(hands.request(Method::PUT, &turn, &body).await);
        }
        if deed == Deed::ReplaceOlder {
            older(&engine).await;
        }
        let verdicts: &[&str] = match deed {
            Deed::Replace | Deed::Clear => &["ok"],
            Deed::WorkOffReactions => &["ok", "not_ok"],
            _ => &[],
        };
        let earlier = Hands::at(&engine, &Faults::none(), Clock::of(before));
        for (at, verdict) in verdicts.iter().enumerate() {
            let hands = if at == 0 { &earlier } else { &hands };
            let (path, body) = reaction(Some(verdict));
            assert!(hands.request(post.clone(), &path, &body).await);
            if deed == Deed::WorkOffReactions {
                messages.extend(submitted(&engine, "REACTION#").await);
            }
        }
        let reasons: &[&str] = match deed {
            Deed::SayOtherwise | Deed::TakeBack | Deed::WorkOffTakenBack => &["one"],
            Deed::WorkOffSignals => &["one", "other"],
            _ => &[],
        };
        for (at, reason) in reasons.iter().enumerate() {
            let hands = if at == 0 { &earlier } else { &hands };
            let said = inaccurate(reason);
            assert!(hands.request(post.clone(), SIGNALS, &said).await);
            if matches!(deed, Deed::WorkOffSignals | Deed::WorkOffTakenBack) {
                messages.extend(submitted(&engine, "SIGNAL#").await);
            }
        }
        if deed == Deed::WorkOffTakenBack {
            assert!(hands.request(Method::DELETE, TAKE_BACK, &Value::Null).await);
            messages.extend(submitted(&engine, "SIGNAL#").await);
        }
        Self {
            engine,
            deed,
            messages,
        }
    }

    /// Does it; answers whether the caller knows that it is done.
    pub async fn act(&self, hands: &Hands) -> bool {
        let (post, put) = (Method::POST, Method::PUT);
        let (turn, body) = said();
        match self.deed {
            Deed::Submit => {
                let submit = "/v1/feedback/submit";
                hands.request(post, submit, &event(1, "a")).await
            }
            Deed::Batch => {
                let events = [event(1, "a"), event(2, "a"), event(3, "b")];
                let batch = json!({"events": events});
                let path = ("order-service", "feedback:on-behalf");
                let route = (post, "/v1/feedback/batch");
                let (status, answer) = call(&hands.functions, path, route, &batch).await;
                let results = answer["results"].as_array().cloned().unwrap_or_default();
                // What was not stored is named, and sent again.
                status.is_success() && results.iter().all(|result| result["status"] != "failed")
            }
            Deed::Ingest => {
                let mut none = event(3, "a");
                none["data"]["rating"] = json!(9);
                let mut batch = ingested(&json!({"events": [event(1, "a"), event(2, "b"), none]}));
                batch.records[0].message_id = Some("message".to_owned());
                let sent = now().timestamp_millis().to_string();
                let attributes = &mut batch.records[0].attributes;
                attributes.insert("SentTimestamp".to_owned(), sent);
                hands
                    .ingest
                    .handle(batch)
                    .await
                    .batch_item_failures
                    .is_empty()
            }
            Deed::Import => {
                let handle = |batch| hands.importer.handle(batch, None);
                self.work_off(&self.engine.queues.imports, handle).await
            }
            Deed::Register => hands.request(put, &turn, &body).await,
            Deed::RegisterNext => {
                let mut next = message("n", "No, that's wrong.", "another answer");
                next["ts"] = json!("2086-01-04T09:05:00Z");
                hands.request(put, &path("c", "u"), &next).await
            }
            Deed::Open => {
                let (turn, body) = open();
                hands.request(put, &turn, &body).await
            }
            Deed::Complete => {
                let (turn, mut body) = open();
                body["assistant"] = json!({"text": "another answer", "message_id": "n"});
                body["turn_log"] = json!({"text": "log"});
                hands.request(put, &turn, &body).await
            }
            Deed::React => {
                let (path, body) = reaction(Some("ok"));
                hands.request(post, &path, &body).await
            }
            Deed::Replace | Deed::ReplaceOlder => {
                let (path, body) = reaction(Some("not_ok"));
                hands.request(post, &path, &body).await
            }
            Deed::Clear => {
                let (path, body) = reaction(None);
                hands.request(post, &path, &body).await
            }
            Deed::Infer => {
                let said = json!({"message": "No, your answer to a question was wrong."});
                let path = "/conversations/acme/order-service/feedback/infer";
                hands.request(post, path, &said).await
            }
            Deed::Judge => {
                let (path, body) = judgement();
                hands.request(post, &path, &body).await
            }
            Deed::Say => hands.request(post, SIGNALS, &inaccurate("one")).await,
            Deed::SayOtherwise => hands.request(post, SIGNALS, &inaccurate("other")).await,
            Deed::TakeBack => hands.request(Method::DELETE, TAKE_BACK, &Value::Null).await,
            Deed::ChangePreferences => {
                let change = json!({
                    "preferenceVersion": 0, "globalPreferences": {"detailLevel": "overview"}
                });
                hands.request(put, "/v1/preferences/ada", &change).await
            }
            Deed::AskErasure => hands.request(Method::DELETE, ERASE, &Value::Null).await,
            Deed::Erase => {
                let handle = |batch| hands.eraser.handle(batch, None);
                self.work_off(&self.engine.queues.erasures, handle).await
            }
            Deed::ExportDay => {
                let request = json!({"tenant": "acme", "day": now().date_naive()});
                hands.exporter.handle(&request, None).await.is_ok()
            }
            Deed::ExportTraining => {
                let day = now().date_naive();
                let asked = json!({"project": "order-service", "from": day, "to": day});
                let request = json!({"tenant": "acme", "training": asked});
                hands.exporter.handle(&request, None).await.is_ok()
            }
            Deed::WorkOffEvents
            | Deed::WorkOffReactions
            | Deed::WorkOffSignals
            | Deed::WorkOffTakenBack => {
                let batch = queue::batch(self.messages.clone());
                let response = hands.generator.handle(batch).await;
                response.batch_item_failures.is_empty()
            }
        }
    }

    /// Works off what is in a queue; answers whether all of it was.
    async fn work_off<F: Future<Output = SqsBatchResponse>>(
        &self,
        queue: &str,
        handle: impl Fn(SqsEvent) -> F,
    ) -> bool {
        loop {
            let sqs = &self.engine.clients.sqs;
            match queue::step(sqs, queue, &handle).await {
                None if queue::is_empty(sqs, queue).await => return true,
                Some(true) => return false,
                None | Some(false) => {}
            }
        }
    }
}

/// Where an export of a day lies.
pub const EXPORT: &str = "exports/signals/acme/2086-01-04/1/1-00001.jsonl";
const ERASE: &str = "/v1/users/ada/data";
const TAKE_BACK: &str = "/api/v1/feedback?message_id=m&signal=inaccurate";

/// Puts a reaction of an older system.
async fn older(engine: &Engine) {
    let text = r#"{"turn_id": "t", "text": "Old", "reaction": "ok", "ts": "2025-11-06T15:30:00Z"}"#;
    let attribute = |text: &str| AttributeValue::S(text.to_owned());
    let put = engine.clients.dynamodb.put_item();
    let put = put
        .table_name(engine.names.table())
        .item("text", attribute(text));
    let put = put.item("PK", attribute("CONV#acme#order-service#c"));
    let put = put.item("SK", attribute("REACTION#t#user#ada"));
    put.send().await.unwrap();
}

/// Leaves something of every kind: a turn with what is said of it, an event, and one that is anonymous.
async fn live(engine: &Engine, hands: &Hands) {
    let (turn, body) = said();
    assert!(hands.request(Method::PUT, &turn, &body).await);
    let (feedback, body) = reaction(Some("ok"));
    assert!(hands.request(Method::POST, &feedback, &body).await);
    for signal in [edit("one"), inaccurate("one")] {
        assert!(hands.request(Method::POST, SIGNALS, &signal).await);
    }
    let submit = "/v1/feedback/submit";
    let correction = about_the_turn(1, "a");
    assert!(hands.request(Method::POST, submit, &correction).await);
    let mut anonymous = event(2, "b");
    anonymous["privacyFlags"] = json!({"anonymize": true});
    assert!(hands.request(Method::POST, submit, &anonymous).await);
    for kind in ["EVENT", "REACTION#", "SIGNAL#"] {
        let batch = queue::batch(submitted(engine, kind).await);
        let response = hands.generator.handle(batch).await;
        assert!(response.batch_item_failures.is_empty());
    }
}

/// The same, and a line in a file; and where it is to be erased, asks for it.
async fn leave(engine: &Engine, hands: &Hands, deed: Deed) {
    live(engine, hands).await;
    let lines = exported("t", "m") + &exported("t7", "m7");
    let put = hands.blobs.put_file(EXPORT, lines.into_bytes()).await;
    put.unwrap();
    if deed == Deed::Erase {
        assert!(hands.request(Method::DELETE, ERASE, &Value::Null).await);
    }
}
