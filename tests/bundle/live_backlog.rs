//! Connections that cannot receive everything at once: many events within seconds, and clients that read slowly.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use hearback_domain::events::event::EventCore;
use hearback_domain::learning::publication::{Outcome, Processed};
use hearback_domain::views::feed::FeedPosition;
use hearback_lambda::clock::Clock;
use hearback_local::live::Outgoing;
use hearback_tests::engine::Engine;
use hearback_tests::events::{acceptance, id};
use hearback_tests::faults::Faults;
use hearback_tests::function_set::TIME;
use hearback_tests::functions::stored_event;
use hearback_tests::live::{LiveFunctions, TestSockets, process, received, sent};
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;
use uuid::Uuid;

/// Messages of an acceptance: it was processed, and gives a reward and a policy update.
const MESSAGES: usize = 3;

thread_local! {
    /// The time of this thread's test, in seconds.
    static NOW: Cell<i64> = const { Cell::new(TIME) };
}

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(NOW.get(), 0).unwrap()
}

/// A connection of ada that follows the feed from its beginning.
struct World {
    engine: Engine,
    functions: LiveFunctions,
    frames: Receiver<Outgoing>,
    core: EventCore,
    published: usize,
}

impl World {
    async fn start() -> Self {
        let engine = Engine::start().await;
        let event = acceptance("ada");
        process(&engine, &event).await;
        let stored = stored_event(&engine.store, &json!(id(&event))).await;
        let sockets = Arc::new(TestSockets::start().await);
        let functions = LiveFunctions::at((&engine, Clock::of(now)), &Faults::none(), sockets);
        let ticket = functions.ticket("").await;
        let mut frames = functions.connect("c", &ticket).await;
        let after = FeedPosition::before(now() - TimeDelta::hours(1)).event_id();
        let subscribe = json!({"action": "subscribe", "after": after}).to_string();
        functions.live.receive("c", &subscribe).await;
        assert_eq!(sent(&mut frames)[0]["type"], "subscribed");
        Self {
            core: stored.unwrap().core,
            engine,
            functions,
            frames,
            published: 0,
        }
    }

    /// Publishes this many events at a time.
    async fn publish(&mut self, count: usize, at: DateTime<Utc>) {
        for _ in 0..count {
            let core = EventCore {
                feedback_id: Uuid::new_v4(),
                received_at: at,
                ..self.core.clone()
            };
            let outcome = Outcome::Processed(Box::new(Processed::of(&core, None, at)));
            let stored = self.engine.store.put_outcome(&core, &outcome).await;
            stored.unwrap();
        }
        self.published += MESSAGES * count;
    }

    /// What the connection is sent when it is woken.
    async fn woken(&mut self) -> Vec<Value> {
        assert!(self.functions.publish("ada").await);
        sent(&mut self.frames)
    }
}

#[tokio::test]
async fn everything_is_received_after_many_events_within_seconds() {
    let mut world = World::start().await;
    world.publish(400, now() - TimeDelta::seconds(2)).await;
    let mut all = received(&world.woken().await);
    assert!(all.len() < world.published);
    NOW.set(NOW.get() + 20);
    all.extend(received(&world.woken().await));
    assert_eq!(all.len(), world.published);
    world.publish(1, now()).await;
    assert_eq!(received(&world.woken().await).len(), MESSAGES);
}

#[tokio::test]
async fn a_client_that_reads_slowly_receives_each_event_once() {
    let mut world = World::start().await;
    world.publish(400, now() - TimeDelta::seconds(60)).await;
    let mut all = BTreeSet::new();
    let mut last = None;
    while all.len() < world.published {
        let frames = world.woken().await;
        assert!(!frames.is_empty(), "only {}", all.len());
        let events = received(&frames);
        assert!(all.is_disjoint(&events), "an event is sent twice");
        all.extend(events);
        for frame in frames {
            let at = frame["lastEventId"].as_str().unwrap();
            let at = FeedPosition::from_event_id(at).unwrap();
            assert!(Some(at) > last, "the position moves forward");
            last = Some(at);
        }
    }
}
