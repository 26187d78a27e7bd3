//! The state of the store before an operation, and the operation itself.

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use aws_sdk_dynamodb::types::AttributeValue;
use axum::http::Method;
use hearback_batch::notification;
use hearback_lambda::clock::Clock;
use hearback_signals::publish;
use hearback_storage::files::import_key;
use hearback_tests::counted_hours::{self, all_messages};
use hearback_tests::engine::Engine;
use hearback_tests::events::ingested_at;
use hearback_tests::faults::Faults;
use hearback_tests::function_set::FunctionSet;
use hearback_tests::functions::call;
use hearback_tests::queue::{self, submitted};
use hearback_tests::rows::{Row, attribute, damage_pointers, rows};
use hearback_tests::turns::{SIGNALS, event_message, exported};
use serde_json::{Value, json};

use super::operations::{
    Operation, about_the_turn, before, correction, edit, event, helpful, inaccurate, judgement,
    next, now, open, reaction, registered,
};

/// The functions, with clients that fail as `faults` says.
pub fn functions_with(engine: &Engine, faults: &Faults) -> FunctionSet {
    FunctionSet::at(engine, faults, Clock::of(now))
}

/// A table, a bucket and queues with what the operation needs.
pub struct World {
    pub engine: Engine,
    operation: Operation,
    messages: Vec<SqsMessage>,
}

impl World {
    pub async fn new(engine: &Engine, operation: Operation) -> Self {
        let engine = engine.another().await;
        let functions = functions_with(&engine, &Faults::none());
        let mut messages = Vec::new();
        let post = Method::POST;
        let submit = "/v1/feedback/submit";
        let (turn, body) = registered();
        match operation {
            Operation::Submit
            | Operation::Ingest
            | Operation::Register
            | Operation::ChangePreferences => {}
            Operation::Batch => assert!(
                functions
                    .request(post.clone(), submit, &event(1, "a"))
                    .await
            ),
            Operation::Import => {
                let mut lines: Vec<_> = (1..5).map(|n| event(n, "a").to_string()).collect();
                lines.insert(2, "not an event".to_owned());
                let key = import_key(&"acme".try_into().unwrap(), "events.jsonl").unwrap();
                let file = lines.join("\n").into_bytes();
                functions.blobs.put_file(&key, file).await.unwrap();
                let send = engine.clients.sqs.send_message();
                let send = send.queue_url(&engine.queues.imports);
                let send = send.message_body(notification(&key, None));
                send.send().await.unwrap();
            }
            Operation::CountHours => {
                store_counted(&engine, &functions).await;
                messages = all_messages(&engine).await;
                // The last of them is erased.
                messages.push(counted_hours::message(&erase_last(&engine).await));
            }
            Operation::ProcessEvents => {
                assert!(functions.request(Method::PUT, &turn, &body).await);
                for event in [event(1, "a"), event(2, "a"), about_the_turn(3, "b")] {
                    assert!(functions.request(post.clone(), submit, &event).await);
                }
                messages = submitted(&engine, "EVENT").await;
            }
            Operation::RequestErasure | Operation::Erase => {
                store_for_erasure(&engine, &functions, operation).await
            }
            Operation::ExportDay | Operation::ExportTraining => {
                store_each_kind(&engine, &functions).await
            }
            _ => assert!(functions.request(Method::PUT, &turn, &body).await),
        }
        if operation == Operation::CompleteTurn {
            let (turn, body) = open();
            assert!(functions.request(Method::PUT, &turn, &body).await);
        }
        if operation == Operation::Correct {
            let (turn, body) = next();
            assert!(functions.request(Method::PUT, &turn, &body).await);
        }
        if operation == Operation::ReplaceOlderReaction {
            put_older_reaction(&engine).await;
        }
        let verdicts: &[&str] = match operation {
            Operation::ReplaceReaction | Operation::ClearReaction => &["ok"],
            Operation::ProcessReactions => &["ok", "not_ok"],
            _ => &[],
        };
        let earlier = FunctionSet::at(&engine, &Faults::none(), Clock::of(before));
        for (at, verdict) in verdicts.iter().enumerate() {
            let functions = if at == 0 { &earlier } else { &functions };
            let (path, body) = reaction(Some(verdict));
            assert!(functions.request(post.clone(), &path, &body).await);
            if operation == Operation::ProcessReactions {
                messages.extend(submitted(&engine, "REACTION#").await);
            }
        }
        let reasons: &[&str] = match operation {
            Operation::ReviseSignal
            | Operation::SubmitContrarySignal
            | Operation::WithdrawSignal
            | Operation::ProcessWithdrawal => &["one"],
            Operation::ProcessSignals => &["one", "other"],
            _ => &[],
        };
        for (at, reason) in reasons.iter().enumerate() {
            let functions = if at == 0 { &earlier } else { &functions };
            let signal = inaccurate(reason);
            assert!(functions.request(post.clone(), SIGNALS, &signal).await);
            if matches!(
                operation,
                Operation::ProcessSignals | Operation::ProcessWithdrawal
            ) {
                messages.extend(submitted(&engine, "SIGNAL#").await);
            }
        }
        if matches!(
            operation,
            Operation::WithdrawEvent | Operation::ProcessEventWithdrawal
        ) {
            let event = about_the_turn(1, "a");
            assert!(functions.request(post.clone(), submit, &event).await);
            let batch = queue::batch(submitted(&engine, "EVENT").await);
            let response = functions.generator.handle(batch).await;
            assert!(response.batch_item_failures.is_empty());
        }
        if operation == Operation::ProcessEventWithdrawal {
            let withdraw = (Method::DELETE, WITHDRAW_EVENT);
            let withdrawn = functions.request(withdraw.0, withdraw.1, &Value::Null);
            assert!(withdrawn.await);
            let event = about_the_turn(2, "a");
            assert!(functions.request(post.clone(), submit, &event).await);
            for kind in ["RETRACTION", "EVENT"] {
                messages.extend(submitted(&engine, kind).await);
            }
        }
        if operation == Operation::ProcessEarlierEvent {
            let (first, second) = (about_the_turn(1, "a"), about_the_turn(2, "a"));
            assert!(earlier.request(post.clone(), submit, &first).await);
            messages.extend(submitted(&engine, "EVENT").await);
            assert!(functions.request(post, submit, &second).await);
            let event = event_message(&engine, &second["feedbackId"]).await;
            let response = functions.generator.handle(queue::batch(vec![event])).await;
            assert!(response.batch_item_failures.is_empty());
        }
        if operation == Operation::ProcessWithdrawal {
            assert!(
                functions
                    .request(Method::DELETE, WITHDRAW, &Value::Null)
                    .await
            );
            messages.extend(submitted(&engine, "SIGNAL#").await);
        }
        Self {
            engine,
            operation,
            messages,
        }
    }

    /// Runs the operation. Returns whether the caller knows that it succeeded.
    pub async fn run(&self, functions: &FunctionSet) -> bool {
        let (post, put) = (Method::POST, Method::PUT);
        let (turn, body) = registered();
        match self.operation {
            Operation::Submit => {
                let submit = "/v1/feedback/submit";
                functions.request(post, submit, &event(1, "a")).await
            }
            Operation::Batch => {
                let events = [event(1, "a"), event(2, "a"), event(3, "b")];
                let batch = json!({"events": events});
                let path = ("order-service", "feedback:on-behalf");
                let route = (post, "/v1/feedback/batch");
                let (status, answer) = call(&functions.functions, path, route, &batch).await;
                let results = answer["results"].as_array().cloned().unwrap_or_default();
                // The caller sends failed events again.
                status.is_success() && results.iter().all(|result| result["status"] != "failed")
            }
            Operation::Ingest => {
                let mut invalid = event(3, "a");
                invalid["data"]["rating"] = json!(9);
                let events = json!({"events": [event(1, "a"), event(2, "b"), invalid]});
                let mut batch = ingested_at(now(), &events);
                batch.records[0].message_id = Some("message".to_owned());
                functions
                    .ingest
                    .handle(batch)
                    .await
                    .batch_item_failures
                    .is_empty()
            }
            Operation::Import => {
                let handle = |batch| functions.importer.handle(batch, None);
                self.process(&self.engine.queues.imports, handle).await
            }
            Operation::Register => functions.request(put, &turn, &body).await,
            Operation::RegisterNext => {
                let (turn, body) = next();
                functions.request(put, &turn, &body).await
            }
            Operation::OpenTurn => {
                let (turn, body) = open();
                functions.request(put, &turn, &body).await
            }
            Operation::CompleteTurn => {
                let (turn, mut body) = open();
                body["assistant"] = json!({"text": "another answer", "message_id": "n"});
                body["turn_log"] = json!({"text": "log"});
                functions.request(put, &turn, &body).await
            }
            Operation::React => {
                let (path, body) = reaction(Some("ok"));
                functions.request(post, &path, &body).await
            }
            Operation::ReplaceReaction | Operation::ReplaceOlderReaction => {
                let (path, body) = reaction(Some("not_ok"));
                functions.request(post, &path, &body).await
            }
            Operation::ClearReaction => {
                let (path, body) = reaction(None);
                functions.request(post, &path, &body).await
            }
            Operation::Infer => {
                let message = json!({"message": "No, your answer to a question was wrong."});
                let path = "/conversations/acme/order-service/feedback/infer";
                functions.request(post, path, &message).await
            }
            Operation::ReactAsMachine => {
                let (path, body) = judgement();
                functions.request(post, &path, &body).await
            }
            Operation::Correct => {
                let (inference, body) = correction();
                functions.request(put, &inference, &body).await
            }
            Operation::SubmitSignal => functions.request(post, SIGNALS, &inaccurate("one")).await,
            Operation::ReviseSignal => functions.request(post, SIGNALS, &inaccurate("other")).await,
            Operation::SubmitContrarySignal => functions.request(post, SIGNALS, &helpful()).await,
            Operation::WithdrawSignal => {
                functions
                    .request(Method::DELETE, WITHDRAW, &Value::Null)
                    .await
            }
            Operation::WithdrawEvent => {
                let withdraw = (Method::DELETE, WITHDRAW_EVENT);
                functions
                    .request(withdraw.0, withdraw.1, &Value::Null)
                    .await
            }
            Operation::ChangePreferences => {
                let change = json!({
                    "preferenceVersion": 0, "globalPreferences": {"detailLevel": "overview"}
                });
                functions.request(put, "/v1/preferences/ada", &change).await
            }
            Operation::RequestErasure => {
                functions.request(Method::DELETE, ERASE, &Value::Null).await
            }
            Operation::Erase => {
                let handle = |batch| functions.eraser.handle(batch, None);
                self.process(&self.engine.queues.erasures, handle).await
            }
            Operation::ExportDay => {
                let request = json!({"tenant": "acme", "day": now().date_naive()});
                functions.exporter.handle(&request, None).await.is_ok()
            }
            Operation::ExportTraining => {
                let day = now().date_naive();
                let export = json!({"project": "order-service", "from": day, "to": day});
                let request = json!({"tenant": "acme", "training": export});
                functions.exporter.handle(&request, None).await.is_ok()
            }
            Operation::CountHours => {
                let batch = queue::batch(self.messages.clone());
                let response = functions.counter.handle(batch).await;
                response.batch_item_failures.is_empty()
            }
            Operation::ProcessEvents
            | Operation::ProcessReactions
            | Operation::ProcessSignals
            | Operation::ProcessWithdrawal
            | Operation::ProcessEventWithdrawal
            | Operation::ProcessEarlierEvent => {
                let batch = queue::batch(self.messages.clone());
                let response = functions.generator.handle(batch).await;
                response.batch_item_failures.is_empty()
            }
        }
    }

    /// Processes the messages of a queue. Returns whether all of them succeeded.
    async fn process<F: Future<Output = SqsBatchResponse>>(
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

/// The file of an export of a day.
pub const EXPORT: &str = "exports/signals/acme/2086-01-04/1/1-00001.jsonl";
const ERASE: &str = "/v1/users/ada/data";
const WITHDRAW_EVENT: &str = "/v1/feedback/00000000-0000-4000-8000-000000000001";
const WITHDRAW: &str = "/api/v1/feedback?message_id=m&signal=inaccurate";

/// Puts a reaction in the format of older versions.
async fn put_older_reaction(engine: &Engine) {
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

/// Stores a record of each kind: a turn with feedback, an event, and an anonymous event.
async fn store_each_kind(engine: &Engine, functions: &FunctionSet) {
    let (turn, body) = registered();
    assert!(functions.request(Method::PUT, &turn, &body).await);
    let (after, body) = next();
    assert!(functions.request(Method::PUT, &after, &body).await);
    let (inference, body) = correction();
    assert!(functions.request(Method::PUT, &inference, &body).await);
    let (feedback, body) = reaction(Some("ok"));
    assert!(functions.request(Method::POST, &feedback, &body).await);
    for signal in [edit("one"), inaccurate("one")] {
        assert!(functions.request(Method::POST, SIGNALS, &signal).await);
    }
    let submit = "/v1/feedback/submit";
    let correction = about_the_turn(1, "a");
    assert!(functions.request(Method::POST, submit, &correction).await);
    let mut anonymous = event(2, "b");
    anonymous["privacyFlags"] = json!({"anonymize": true});
    assert!(functions.request(Method::POST, submit, &anonymous).await);
    for kind in ["EVENT", "REACTION#", "SIGNAL#"] {
        let batch = queue::batch(submitted(engine, kind).await);
        let response = functions.generator.handle(batch).await;
        assert!(response.batch_item_failures.is_empty());
    }
}

/// Stores events of two hours, one of them with a label, one of them withdrawn.
async fn store_counted(engine: &Engine, functions: &FunctionSet) {
    let mut late = event(2, "b");
    late["timestamp"] = json!("2086-01-03T08:00:00Z");
    let mut labelled = event(3, "c");
    labelled["context"]["labels"] = json!({"model": "m-1"});
    let submit = "/v1/feedback/submit";
    for event in [event(1, "a"), late, labelled, event(4, "d")] {
        assert!(functions.request(Method::POST, submit, &event).await);
    }
    let batch = queue::batch(submitted(engine, "EVENT").await);
    let response = functions.generator.handle(batch).await;
    assert!(response.batch_item_failures.is_empty());
    let withdrawn = functions.request(Method::DELETE, WITHDRAW_EVENT, &Value::Null);
    assert!(withdrawn.await);
}

/// Erases the last event of [`store_counted`], and returns what insights are told.
async fn erase_last(engine: &Engine) -> Value {
    let (client, table) = (&engine.clients.dynamodb, engine.names.table());
    let last = event(4, "d")["feedbackId"].as_str().unwrap().to_owned();
    let rows = rows(client, &table).await;
    let of_last = |row: &&Row| attribute(row, "PK").ends_with(&last);
    let mut told = None;
    for row in rows.iter().filter(of_last) {
        let delete = client.delete_item().table_name(&table);
        let delete = delete.key("PK", row["PK"].clone());
        delete.key("SK", row["SK"].clone()).send().await.unwrap();
        if attribute(row, "SK") == "RESULT" {
            let record = counted_hours::record("REMOVE", row);
            told = publish::addressed(&record).unwrap().for_insights;
        }
    }
    told.unwrap()
}

/// The same and an exported file, and for [`Operation::Erase`] the request to erase it.
async fn store_for_erasure(engine: &Engine, functions: &FunctionSet, operation: Operation) {
    store_each_kind(engine, functions).await;
    let lines = exported("t", "m") + &exported("t7", "m7");
    let put = functions.blobs.put_file(EXPORT, lines.into_bytes()).await;
    put.unwrap();
    if operation == Operation::Erase {
        damage_pointers(&engine.clients.dynamodb, &engine.names.table()).await;
        assert!(functions.request(Method::DELETE, ERASE, &Value::Null).await);
    }
}
