//! Live events are processed before imported ones.

use std::collections::BTreeMap;

use aws_sdk_sqs::types::MessageSystemAttributeName;
use hearback_batch::{Importer, notification};
use hearback_domain::learning::publication::Outcome;
use hearback_local::import;
use hearback_local::names::Names;
use hearback_local::relay::{self, Destination};
use hearback_local::stream::Stream;
use hearback_storage::files::import_key;
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::engine::Engine;
use hearback_tests::events::{acceptance, id};
use hearback_tests::faults::{Fault, Faults};
use hearback_tests::functions::{call, functions_of};
use hearback_tests::queue::{self, drain};
use reqwest::Method;
use serde_json::Value;

use crate::imports::{Import, counts_of, generated};

/// The messages that the relay sends to the signal generator for all records of the stream.
async fn relayed(engine: &Engine) -> Vec<String> {
    let arn = engine.store.stream_arn().await.unwrap();
    let mut stream = Stream::new(engine.clients.streams.clone(), arn);
    stream.open(&BTreeMap::new()).await.unwrap();
    let mut relayed = Vec::new();
    for shard in stream.shards() {
        loop {
            let read = stream.read(&shard).await.unwrap();
            for record in &read.records {
                let messages = relay::messages(record).unwrap().into_iter();
                let signals = messages.filter(|(target, _)| *target == Destination::Signals);
                relayed.extend(signals.map(|(_, body)| body));
            }
            let is_full = read.is_full;
            stream.advance(&shard, read);
            if !is_full {
                break;
            }
        }
    }
    relayed
}

#[tokio::test]
async fn imported_events_do_not_use_the_queue_of_live_ones() {
    let (lines, expected) = generated(31, 60);
    let import = Import::of(lines.join("\n").into_bytes()).await;
    let engine = &import.engine;
    assert_eq!(counts_of(&import.work().await), expected);
    let event = acceptance("ada");
    let caller = ("order-service", "");
    let route = (Method::POST, "/v1/feedback/submit");
    let (status, _) = call(&functions_of(engine), caller, route, &event).await;
    assert!(status.is_success());
    let live = relayed(engine).await;
    assert_eq!(live.len(), 1, "{live:?}");
    assert!(live[0].contains(&id(&event)));

    let sqs = &engine.clients.sqs;
    let bulk = drain(sqs, &engine.queues.signals_bulk).await;
    assert_eq!(bulk.len(), usize::try_from(expected.queued).unwrap());
    let generator = engine.generator(engine.store.clone());
    for some in bulk.chunks(10) {
        let done = generator.handle(queue::batch(some.to_vec())).await;
        assert!(done.batch_item_failures.is_empty());
    }
    for message in bulk {
        let record: Value = serde_json::from_str(&message.body.unwrap()).unwrap();
        let core = record.pointer("/dynamodb/NewImage/core/S").unwrap();
        let core: Value = serde_json::from_str(core.as_str().unwrap()).unwrap();
        let feedback_id = core["feedbackId"].as_str().unwrap().parse().unwrap();
        let tenant = "acme".try_into().unwrap();
        let found = engine.store.event(&tenant, feedback_id, chrono::Utc::now());
        let outcome = found.await.unwrap().unwrap().outcome;
        assert!(
            matches!(
                outcome,
                Some(Outcome::Processed(_) | Outcome::Deduplicated { .. })
            ),
            "{feedback_id}"
        );
    }
}

#[tokio::test]
async fn a_live_event_is_processed_before_waiting_imported_ones() {
    let app = TestApp::start().await;
    let token = app.token("ada");
    let (lines, _) = generated(32, 1_500);
    let key = import_key(&"acme".try_into().unwrap(), "events.jsonl").unwrap();
    let file = lines.join("\n").into_bytes();
    app.bundle.blobs.put_file(&key, file).await.unwrap();
    let sqs = &app.bundle.clients.sqs;
    let send = sqs.send_message().queue_url(&app.bundle.queues.imports);
    let send = send.message_body(notification(&key, None));
    send.send().await.unwrap();
    let names = Names::default();
    eventually(|| async {
        let waiting = import::waiting(sqs, &names).await.unwrap();
        (waiting > 300).then_some(())
    })
    .await;
    let event = acceptance("ada");
    app.submit(&token, &event).await;
    let outcome = app.outcome(&token, &id(&event)).await;
    assert_eq!(outcome["status"], "processed");
    let waiting = import::waiting(sqs, &names).await.unwrap();
    assert!(waiting > 0, "the live event waited for the imported ones");
}

/// A worker fails between an event and its message; the next worker sends it.
#[tokio::test]
async fn every_imported_event_is_sent_wherever_a_worker_fails() {
    let (lines, expected) = generated(33, 14);
    let file = lines.join("\n").into_bytes();
    for fault in [Fault::Crashed, Fault::Unreachable, Fault::Unanswered] {
        let failures = Faults::at_each_call(fault, async |faults| {
            let import = Import::of(file.clone()).await;
            let engine = &import.engine;
            let sqs = faults.config(&engine.access.sqs().config());
            let sqs = aws_sdk_sqs::Client::new(&sqs);
            let failing = Importer::new(
                engine.app(engine.store.clone()).into(),
                engine.blobs(),
                engine.importer_queues(&sqs),
                engine.dead_letters(&engine.queues.imports_dead_letters),
            );
            while import.step(&failing, None).await == Some(false) {}
            assert_eq!(counts_of(&import.work().await), expected, "{faults:?}");
            let bulk = drain(&engine.clients.sqs, &engine.queues.signals_bulk).await;
            let mut sent: Vec<_> = bulk.into_iter().filter_map(|sent| sent.body).collect();
            sent.sort();
            sent.dedup();
            let queued = usize::try_from(expected.queued).unwrap();
            assert_eq!(sent.len(), queued, "{faults:?}");
        })
        .await;
        assert!(failures >= 3, "only {failures} failures");
    }
}

#[tokio::test]
async fn the_messages_of_a_tenant_share_one_message_group() {
    let (lines, _) = generated(34, 20);
    let import = Import::of(lines.join("\n").into_bytes()).await;
    import.work().await;
    let sqs = &import.engine.clients.sqs;
    let receive = sqs
        .receive_message()
        .queue_url(&import.engine.queues.signals_bulk)
        .max_number_of_messages(10)
        .message_system_attribute_names(MessageSystemAttributeName::MessageGroupId);
    let received = receive.send().await.unwrap().messages.unwrap();
    let tenant = "acme".try_into().unwrap();
    let group = hearback_storage::imports::message_group(&tenant);
    for message in received {
        let attributes = message.attributes.unwrap();
        let of = &attributes[&MessageSystemAttributeName::MessageGroupId];
        assert_eq!(*of, group);
    }
}
