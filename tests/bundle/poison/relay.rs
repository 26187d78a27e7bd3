//! A relay whose requests fail: it retries the failed record, and delivers no other twice.

use std::path::Path;

use hearback_local::health::Health;
use hearback_local::live::OpenSockets;
use hearback_local::position::{RelayPosition, RelayProgress};
use hearback_local::relay::Relay;
use hearback_tests::faults::{Fault, Faults};
use tokio_util::sync::CancellationToken;

use super::*;

/// Runs a relay on an engine until the queue of the signal generator has this many messages.
async fn run_relay(
    engine: &Engine,
    sqs: aws_sdk_sqs::Client,
    position: &Path,
    until: usize,
) -> Value {
    let health = Health::default();
    let stream = engine.store.stream_arn().await.unwrap();
    let relay = Relay {
        outlets: Vec::new(),
        stream: Stream::new(engine.clients.streams.clone(), stream),
        writes: None,
        store: engine.store.clone(),
        blobs: engine.blobs(),
        sqs,
        queues: engine.queues.clone(),
        sockets: OpenSockets::default(),
        position: RelayPosition::new(position.to_owned(), RelayProgress::default()),
        health: health.clone(),
    };
    let stop = CancellationToken::new();
    let running = tokio::spawn(relay.run(stop.clone()));
    let queue = &engine.queues.signals;
    let is_caught_up = || health.document()["relay"]["lag_seconds"].is_number();
    eventually(|| async {
        let queued = count(&engine.clients.sqs, queue).await;
        (queued >= until && is_caught_up()).then_some(())
    })
    .await;
    stop.cancel();
    running.await.unwrap();
    health.document()
}

#[tokio::test]
async fn a_failed_record_is_retried_and_no_other_is_delivered_twice() {
    const EVENTS: usize = 25;
    let engines = Engine::start().await;
    // These faults lose the request, so that two equal messages would have been sent twice.
    for fault in [Fault::Refused, Fault::Throttled, Fault::Unreachable] {
        for at in 1..=3 {
            let engine = engines.another().await;
            let functions = functions_of(&engine);
            for _ in 0..EVENTS {
                let submit = (Method::POST, "/v1/feedback/submit");
                let caller = ("order-service", "");
                call(&functions, caller, submit, &acceptance("ada")).await;
            }
            let folder = tempfile::tempdir().unwrap();
            let position = folder.path().join("relay.json");
            let faults = Faults::at(at, fault);
            let sqs = faults.config(&engine.access.sqs().config());
            let sqs = aws_sdk_sqs::Client::new(&sqs);
            run_relay(&engine, sqs, &position, EVENTS).await;
            let queued = count(&engine.clients.sqs, &engine.queues.signals).await;
            assert_eq!(queued, EVENTS, "{fault:?} at call {at}");
            // A restarted relay continues from its position.
            let plain = engine.clients.sqs.clone();
            run_relay(&engine, plain, &position, EVENTS).await;
            let queued = count(&engine.clients.sqs, &engine.queues.signals).await;
            assert_eq!(queued, EVENTS, "after a restart, {fault:?} at call {at}");
        }
    }
}
