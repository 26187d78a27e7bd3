//! Costs of the live feed: connecting, and events with and without listeners.

use axum::http::Method;
use hearback_tests::engine::Cost;
use hearback_tests::events::acceptance;
use hearback_tests::live::{LiveFunctions, sent};

use super::Metered;

const SUBSCRIBE: &str = r#"{"action":"subscribe"}"#;

#[tokio::test]
async fn the_cost_of_an_event_depends_on_its_listeners() {
    let metered = Metered::start().await;
    let store = metered.engine.store_with(metered.meter.clone());
    let functions = LiveFunctions::on(&metered.engine, store).await;
    let spent = || metered.meter.take();
    assert!(functions.publish("ada").await);
    assert_eq!(spent(), Cost::calls(2).reads(1.0), "no listener");

    let ticket = functions.ticket("").await;
    assert_eq!(spent(), Cost::calls(2).reads(1.0).writes(2.0), "a ticket");
    let mut frames = functions.connect("own", &ticket).await;
    assert_eq!(spent(), Cost::calls(2).writes(4.0), "a connection");
    functions.live.receive("own", r#"{"action":"ping"}"#).await;
    assert_eq!(spent(), Cost::FREE, "a ping");
    functions.live.receive("own", SUBSCRIBE).await;
    assert_eq!(spent(), Cost::calls(4).reads(1.0).writes(5.0));
    assert_eq!(sent(&mut frames).len(), 2);

    let event = acceptance("ada");
    let path = "/v1/feedback/submit";
    metered.call(Method::POST, path, &event).await;
    metered.generate(&[event]).await;
    assert!(functions.publish("ada").await);
    let own = Cost::calls(7).reads(4.0).writes(1.0);
    assert_eq!(spent(), own, "one listener, of its own feed");
    assert_eq!(sent(&mut frames).len(), 1);
    // Nothing is new: the entry is not read again.
    assert!(functions.publish("ada").await);
    assert_eq!(spent(), Cost::calls(6).reads(3.0).writes(1.0));

    let ticket = functions.ticket("feedback:report").await;
    let mut report = functions.connect("tenant", &ticket).await;
    spent();
    functions.live.receive("tenant", SUBSCRIBE).await;
    assert_eq!(spent(), Cost::calls(3).reads(1.0).writes(3.0));
    assert!(functions.publish("bob").await);
    let shards = f64::from(metered.engine.store.feed_shards());
    let calls = 5 + metered.engine.store.feed_shards();
    let tenant = Cost::calls(calls).reads(3.0 + shards / 2.0).writes(1.0);
    assert_eq!(spent(), tenant, "one listener, of the tenant's feed");
    assert_eq!(sent(&mut report).len(), 2, "`subscribed`, and the event");
    // Nothing is new: the entry is not read again.
    assert!(functions.publish("bob").await);
    let again = Cost::calls(calls - 1).reads(2.0 + shards / 2.0).writes(1.0);
    assert_eq!(spent(), again, "the tenant's feed again, with nothing new");

    functions.live.disconnect("own").await.unwrap();
    assert_eq!(spent(), Cost::calls(3).writes(6.0));
}

#[tokio::test]
async fn each_further_listener_costs_the_same() {
    let metered = Metered::start().await;
    let store = metered.engine.store_with(metered.meter.clone());
    let functions = LiveFunctions::on(&metered.engine, store).await;
    let mut listeners = Vec::new();
    for number in 0..10 {
        let id = format!("c{number}");
        let ticket = functions.ticket("").await;
        let frames = functions.connect(&id, &ticket).await;
        functions.live.receive(&id, SUBSCRIBE).await;
        listeners.push(frames);
    }
    let event = acceptance("ada");
    let path = "/v1/feedback/submit";
    metered.call(Method::POST, path, &event).await;
    metered.generate(&[event]).await;
    metered.meter.take();
    assert!(functions.publish("ada").await);
    let each = Cost::calls(5 * 10 + 2).reads(3.0 * 10.0 + 1.0).writes(10.0);
    assert_eq!(metered.meter.take(), each, "ten listeners, and the look-up");
    for frames in &mut listeners {
        assert_eq!(sent(frames).len(), 2, "`subscribed`, and the event");
    }
}
