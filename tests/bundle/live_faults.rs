//! Faults in the middle of the live feed: whatever call fails, a client receives every event once it repeats what failed,
//! as the queue repeats a message.

use std::collections::BTreeSet;

use axum::http::Method;
use hearback_tests::engine::Engine;
use hearback_tests::events::acceptance;
use hearback_tests::faults::{Fault, Faults};
use hearback_tests::functions::{call, functions_of};
use hearback_tests::live::{LiveFunctions, process, received, sent, subscribe_to_all};
use hearback_tests::queue::count;
use hearback_tests::turns::FEED;
use serde_json::Value;

/// A table with an event of ada, and the functions.
struct World {
    engine: Engine,
    functions: LiveFunctions,
    expected: BTreeSet<String>,
}

impl World {
    async fn start() -> Self {
        let engine = Engine::start().await;
        process(&engine, &acceptance("ada")).await;
        let functions = functions_of(&engine);
        let caller = ("order-service", "");
        let (_, page) = call(&functions, caller, (Method::GET, FEED), &Value::Null).await;
        let expected = received(&[page]);
        assert!(expected.len() > 1);
        Self {
            functions: LiveFunctions::on(&engine, engine.store.clone()).await,
            engine,
            expected,
        }
    }

    /// Runs an operation of a new connection with each fault at each of its calls, which must be `least` or more.
    async fn with_each_call_failing(&self, least: u32, operation: impl AsyncFn(&Faults, &str)) {
        for fault in Fault::ALL {
            let calls = Faults::at_each_call(fault, async |faults| {
                let id = format!("{fault:?}-{}", uuid::Uuid::new_v4());
                operation(faults, &id).await;
                self.functions.live.disconnect(&id).await.unwrap();
            });
            assert!(calls.await >= least, "{fault:?}");
        }
    }

    /// The functions on a table that fails.
    fn failing(&self, faults: &Faults) -> LiveFunctions {
        self.functions.failing(&self.engine, faults)
    }
}

#[tokio::test]
async fn a_redelivered_message_sends_the_events_that_the_first_attempt_missed() {
    let world = World::start().await;
    let functions = &world.functions;
    let operation = async |faults: &Faults, id: &str| {
        let ticket = functions.ticket("").await;
        let mut frames = functions.connect(id, &ticket).await;
        functions.live.receive(id, &subscribe_to_all()).await;
        let processed = world.failing(faults).publish("ada").await && !faults.crashed();
        let first = sent(&mut frames);
        let mut all = received(&first);
        if !processed {
            assert!(functions.publish("ada").await);
            all.extend(received(&sent(&mut frames)));
        }
        if all != world.expected {
            // A frame was not posted. The connection has sent itself a message to read the feed again.
            let queue = &world.engine.queues.fanout;
            assert!(count(&world.engine.clients.sqs, queue).await > 0, "{id}");
            assert!(functions.check(id).await);
            all.extend(received(&sent(&mut frames)));
        }
        assert_eq!(all, world.expected, "{id}");
    };
    world.with_each_call_failing(7, operation).await;
}

#[tokio::test]
async fn a_subscription_succeeds_after_a_failure_at_any_call() {
    let world = World::start().await;
    let functions = &world.functions;
    let operation = async |faults: &Faults, id: &str| {
        let ticket = functions.ticket("").await;
        let mut frames = functions.connect(id, &ticket).await;
        world
            .failing(faults)
            .live
            .receive(id, &subscribe_to_all())
            .await;
        let answer = sent(&mut frames);
        let answer = answer.last().map(|frame| &frame["type"]);
        // A client that has no answer subscribes again, too.
        if answer.is_none_or(|kind| kind == "error") || faults.crashed() {
            functions.live.receive(id, &subscribe_to_all()).await;
        }
        assert!(functions.publish("ada").await);
        assert_eq!(received(&sent(&mut frames)), world.expected, "{id}");
    };
    world.with_each_call_failing(4, operation).await;
}

#[tokio::test]
async fn a_ticket_whose_connection_failed_is_replaced_by_another() {
    let world = World::start().await;
    let functions = &world.functions;
    let operation = async |faults: &Faults, id: &str| {
        let mut frames = functions.open(id);
        let ticket = functions.ticket("").await;
        let connected = world.failing(faults).live.connect(id, &ticket).await;
        if connected.is_err() || faults.crashed() {
            let ticket = functions.ticket("").await;
            assert!(functions.live.connect(id, &ticket).await.is_ok());
        }
        functions.live.receive(id, &subscribe_to_all()).await;
        assert!(functions.publish("ada").await);
        assert_eq!(received(&sent(&mut frames)), world.expected, "{id}");
    };
    world.with_each_call_failing(2, operation).await;
}
