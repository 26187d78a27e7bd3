//! Positions in the feed: a reader that continues from one misses no entry, and learns no id of a hidden one.

use axum::Router;
use axum::http::Method;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use hearback_domain::events::event::EventCore;
use hearback_domain::learning::publication::{Outcome, Processed};
use hearback_lambda::clock::Clock;
use hearback_lambda::http::service;
use hearback_local::gateway;
use hearback_tests::engine::Engine;
use hearback_tests::events::id;
use hearback_tests::functions::{Caller, call_as, functions_of, stored_event};
use uuid::Uuid;

use super::*;

/// Functions on an engine, to whose feed entries are added at any time.
struct World {
    engine: Engine,
    functions: Router,
    core: EventCore,
}

impl World {
    async fn start() -> Self {
        let engine = Engine::start().await;
        let functions = functions_of(&engine);
        let event = acceptance("ada");
        let request = (Method::POST, "/v1/feedback/submit");
        let (status, _) = call_as(&functions, Self::caller(""), request, &event).await;
        assert_eq!(status, StatusCode::ACCEPTED);
        let stored = stored_event(&engine.store, &json!(id(&event))).await;
        Self {
            core: stored.unwrap().core,
            functions,
            engine,
        }
    }

    fn caller(scope: &str) -> Caller<'_> {
        Caller {
            user: "ada",
            tenant: "acme",
            project: "order-service",
            scope,
        }
    }

    /// Publishes an event at a time.
    async fn publish(&self, at: DateTime<Utc>) {
        self.publish_as(self.core.clone(), at).await;
    }

    /// Publishes an event of this kind with a new id, which is returned.
    async fn publish_as(&self, like: EventCore, at: DateTime<Utc>) -> Uuid {
        let core = EventCore {
            feedback_id: Uuid::new_v4(),
            received_at: at,
            ..like
        };
        let outcome = Outcome::Processed(Box::new(Processed::of(&core, None, at)));
        self.engine
            .store
            .put_outcome(&core, &outcome)
            .await
            .unwrap();
        core.feedback_id
    }

    async fn list(&self, scope: &str, query: &str) -> Value {
        let request = (Method::GET, &*format!("{FEED}?{query}"));
        let (status, page) =
            call_as(&self.functions, Self::caller(scope), request, &Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        page
    }
}

#[tokio::test]
async fn pages_cross_days_without_entries() {
    let world = World::start().await;
    let now = Utc::now();
    let mut published = BTreeSet::new();
    for (days, count) in [(80, 3), (79, 1), (40, 7), (3, 2), (0, 5)] {
        for n in 0..count {
            let at = now - TimeDelta::days(days) - TimeDelta::minutes(n);
            world.publish(at).await;
            published.insert(at.timestamp_micros());
        }
    }
    // The last instant of a day, and the first of the next.
    let midnight = (now - TimeDelta::days(20))
        .date_naive()
        .and_time(chrono::NaiveTime::MIN);
    for at in [midnight - TimeDelta::microseconds(1), midnight] {
        world.publish(at.and_utc()).await;
        published.insert(at.and_utc().timestamp_micros());
    }
    for scope in ["", REPORT] {
        for limit in [1, 3, 500] {
            let mut seen = Vec::new();
            let mut query = format!("limit={limit}&channel=explicit");
            loop {
                let page = world.list(scope, &query).await;
                let processed = events(&page).iter();
                let processed =
                    processed.filter(|event| event["eventType"] == "feedback.processed");
                seen.extend(processed.map(|event| {
                    let at: DateTime<Utc> = event["publishedAt"].as_str().unwrap().parse().unwrap();
                    at.timestamp_micros()
                }));
                let Some(cursor) = page["next_cursor"].as_str() else {
                    break;
                };
                query = format!("limit={limit}&channel=explicit&cursor={cursor}");
            }
            assert_eq!(
                seen,
                published.iter().copied().collect::<Vec<_>>(),
                "{scope} {limit}"
            );
        }
    }
}

#[tokio::test]
async fn a_reader_that_follows_the_feed_misses_no_late_entry() {
    let world = World::start().await;
    let now = Utc::now();
    world.publish(now - TimeDelta::minutes(1)).await;
    let of_an_entry = events(&world.list("", "").await).len();
    for scope in ["", REPORT] {
        world.publish(now - TimeDelta::seconds(1)).await;
        let page = world.list(scope, "").await;
        let seen: BTreeSet<_> = event_ids(&page).into_iter().collect();
        // Its time is before that of an event that was listed, as if its index entry were late.
        world.publish(now - TimeDelta::seconds(5)).await;
        let after = page["last_event_id"].as_str().unwrap();
        let next = world.list(scope, &format!("after={after}")).await;
        let new = event_ids(&next)
            .into_iter()
            .filter(|event| !seen.contains(event));
        assert_eq!(new.count(), of_an_entry, "{scope}");
        // What has been complete for some time is not listed again.
        let old = (now - TimeDelta::seconds(30)).to_rfc3339();
        for event in events(&next) {
            assert!(event["publishedAt"].as_str().unwrap() > &*old, "{event}");
        }
    }
}

fn later() -> DateTime<Utc> {
    Utc::now() + TimeDelta::seconds(30)
}

#[tokio::test]
async fn a_reader_that_pages_slowly_misses_no_late_entry() {
    let mut world = World::start().await;
    let now = Utc::now();
    world.publish(now - TimeDelta::seconds(10)).await;
    world.publish(now - TimeDelta::seconds(2)).await;
    let all = event_ids(&world.list("", "").await);
    let page = world.list("", &format!("limit={}", all.len() - 1)).await;
    let cursor = page["next_cursor"].as_str().unwrap().to_owned();
    world.publish(now - TimeDelta::seconds(6)).await;
    // Half a minute later, everything above is complete.
    let mut app = world.engine.with_blobs(world.engine.store.clone());
    app.app.clock = Clock::of(later);
    world.functions = service(gateway::functions(app, world.engine.erasures()));
    let query = format!("limit={}&cursor={cursor}", all.len() - 1);
    let last = world.list("", &query).await;
    assert_eq!(last["next_cursor"], Value::Null);
    let after = last["last_event_id"].as_str().unwrap();
    let again = event_ids(&world.list("", &format!("after={after}")).await);
    assert_eq!(again.len(), all.len() / 2 * 3);
}

#[tokio::test]
async fn positions_do_not_reveal_ids_of_hidden_events() {
    let world = World::start().await;
    let now = Utc::now();
    let before = |seconds| now - TimeDelta::seconds(seconds);
    world.publish(before(100)).await;
    let of_eve = EventCore {
        user_id: "eve".try_into().unwrap(),
        private: true,
        ..world.core.clone()
    };
    let mut hidden = Vec::new();
    for _ in 0..101 {
        hidden.push(world.publish_as(of_eve.clone(), before(90)).await);
    }
    world.publish(before(80)).await;
    let each = event_ids(&world.list(REPORT, "").await).len() / 2;
    for limit in [each, 500] {
        let page = world.list(REPORT, &format!("limit={limit}")).await;
        assert!(events(&page).len() >= each);
        for position in ["next_cursor", "last_event_id"] {
            let Some(position) = page[position].as_str() else {
                continue;
            };
            let bytes = URL_SAFE_NO_PAD.decode(position).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            let has = |id: &&Uuid| {
                let raw = bytes.windows(16).any(|part| part == id.as_bytes());
                raw || text.contains(&id.to_string())
            };
            assert_eq!(hidden.iter().find(has), None, "{limit}");
        }
    }
}

#[tokio::test]
async fn an_unreadable_entry_does_not_hide_others() {
    let world = World::start().await;
    let now = Utc::now();
    for second in 1..=3 {
        world.publish(now - TimeDelta::seconds(second)).await;
    }
    let all = event_ids(&world.list("", "").await);
    let each = all.len() / 3;
    let damaged = events(&world.list("", "").await)[each]["feedbackId"].clone();
    let table = world.engine.names.table();
    let update = world
        .engine
        .clients
        .dynamodb
        .update_item()
        .table_name(table);
    let string = |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned());
    update
        .key(
            "PK",
            string(&format!("EVENT#acme#{}", damaged.as_str().unwrap())),
        )
        .key("SK", string("RESULT"))
        .update_expression("SET outcome = :damaged")
        .expression_attribute_values(":damaged", string("{"))
        .send()
        .await
        .unwrap();
    for scope in ["", REPORT] {
        let rest = event_ids(&world.list(scope, "").await);
        assert_eq!(rest, [&all[..each], &all[2 * each..]].concat(), "{scope}");
    }
}
