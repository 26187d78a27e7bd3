//! Compares responses and the store with the model.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use hearback_domain::identity::identifier::{UserId, UserRef};
use hearback_domain::learning::preferences::{Cause, Version};
use hearback_storage::Store;
use hearback_storage::preferences::{Freshness, VersionRange};
use hearback_tests::counted_hours;
use hearback_tests::rows::rows;
use serde_json::Value;

use super::ledger::Ledger;
use super::model::{Tenant, USERS};
use super::rates::rates;
use super::world::{ANALYST, PROJECT, Response, TENANTS, World, message_of, turn_id};

/// Checks the response to `GET` of the caller's event.
pub fn event(name: &str, sent: &Value, response: &Response) {
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    assert_eq!(response.body["feedbackId"], sent["feedbackId"]);
    let key = format!("{name}:{}:", text(&sent["artifactId"]));
    let key_of_response = text(&response.body["dedupeKey"]);
    assert!(key_of_response.starts_with(&key), "{}", response.body);
}

/// Checks the list of the caller's message signals.
pub fn signals(tenant: &Tenant, user: &str, response: &Response) {
    let rows = response.body["feedback"].as_array().unwrap();
    let listed: BTreeMap<_, _> = rows
        .iter()
        .map(|row| (text(&row["message_id"]), text(&row["reason"])))
        .collect();
    assert_eq!(listed.len(), rows.len(), "a duplicate: {}", response.body);
    let own = tenant.signals.iter().filter(|((_, by), _)| *by == user);
    let expected: BTreeMap<_, _> = own
        .map(|((turn, _), reason)| (message_of(*turn), reason.clone()))
        .collect();
    // A page has at most a hundred signals.
    if response.body["next_cursor"].is_null() {
        assert_eq!(listed, expected, "{}", response.body);
    }
}

/// Checks the reactions in a conversation, of one user or of all: the last one of each user to each turn. Private
/// feedback of others has no name and no text.
pub fn reactions(tenant: &Tenant, owner: &str, of: Option<&str>, response: &Response) {
    let mut listed = BTreeMap::new();
    let mut inferred = BTreeSet::new();
    for turn in response.body["turns"].as_array().unwrap() {
        for artifact in turn["reactions"].as_array().unwrap() {
            let tagged = |tag: &str| artifact["tags"].as_array().unwrap().contains(&tag.into());
            if artifact["user_id"].is_null() {
                assert_eq!(artifact["reaction"]["text"], "", "{}", response.body);
                continue;
            }
            if tagged("by:event") || tagged("by:inaccurate") {
                continue;
            }
            let by = text(&artifact["user_id"]);
            assert!(of.is_none_or(|user| user == by), "{by}: {}", response.body);
            let key = (text(&turn["turn_id"]), by);
            if artifact["reaction"]["origin"] == "machine" {
                assert!(
                    inferred.insert(key),
                    "two machine reactions: {}",
                    response.body
                );
            } else {
                let before = listed.insert(key, text(&artifact["reaction"]["reaction"]));
                assert_eq!(before, None, "two current reactions: {}", response.body);
            }
        }
    }
    let expected: BTreeMap<_, _> = (tenant.reactions.iter())
        .filter(|((turn, by), _)| turn.0 == owner && of.is_none_or(|user| user == *by))
        .map(|((turn, by), verdict)| ((turn_id(*turn), (*by).to_owned()), (*verdict).to_owned()))
        .collect();
    assert_eq!(listed, expected, "{}", response.body);
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Checks that a user's versions have no gap and learned from no event twice. Returns the newest version, and the
/// number of events learned from.
pub async fn preferences(store: &Store, (tenant, user): (&str, &str)) -> Option<(Version, usize)> {
    let page = VersionRange {
        after: 0,
        before: None,
        limit: None,
        freshness: Freshness::Latest,
    };
    let tenant = tenant.try_into().unwrap();
    let user = UserId::or_pseudonym(user.to_owned()).unwrap();
    let owner = UserRef::new(&tenant, &user);
    let stored = store.versions(owner, page).await.unwrap();
    let versions = stored.into_iter().map(|stored| stored.version.unwrap());
    let versions: Vec<_> = versions.collect();
    let numbers = versions.iter().rev().map(|version| version.number);
    assert!(numbers.eq(1..=u64::try_from(versions.len()).unwrap()));
    let mut learned_from = BTreeSet::new();
    for version in &versions {
        if let Cause::Feedback { feedback_ids, .. } = &version.cause {
            let new = feedback_ids.iter().all(|id| learned_from.insert(*id));
            assert!(new, "learned twice: {version:?}");
        }
    }
    Some((versions.into_iter().next()?, learned_from.len()))
}

/// Processes all remaining messages, and checks everything.
pub async fn check(world: &mut World) {
    world.drain().await;
    world.count_all().await;
    let table = world.engine.names.table();
    let rows = rows(&world.engine.clients.dynamodb, &table).await;
    for (tenant, name) in TENANTS.into_iter().enumerate() {
        let counts = counted_hours::counts(&world.engine.store, name, PROJECT).await;
        let expected = counted_hours::expected(&rows, name, PROJECT);
        assert_eq!(counts, expected, "the counts of {name}");
        let ledger = Ledger::read(&rows, name);
        ledger.check_events(&world.tenants[tenant]);
        ledger.check_once(&world.tenants[tenant]);
        ledger.check_acts(&world.tenants[tenant]);
        ledger.check_published(&world.published);
        ledger.check_turns(&rows, &world.tenants[tenant]);
        ledger.check_counted(&rows, &world.tenants[tenant]);
        for user in USERS {
            if world.tenants[tenant].being_erased.contains(user) {
                continue;
            }
            for user in [user, &*world.tenants[tenant].pseudonyms[user]] {
                let lessons = ledger.lessons(user);
                check_learned(world, (name, user), lessons).await;
            }
        }
        check_reports(world, tenant).await;
    }
}

/// Checks that preferences were learned from each event with a lesson, and from equal events once.
async fn check_learned(world: &World, owner: (&str, &str), (lessons, duplicates): (usize, usize)) {
    let newest = preferences(&world.engine.store, owner).await;
    let (samples, learned_from) = newest.map_or((0, 0), |(version, learned_from)| {
        let kinds = version.preferences.artifact_preferences.into_values();
        let samples = kinds.map(|kind| kind.sample_count.unwrap_or_default());
        (samples.sum::<u64>(), learned_from)
    });
    // If equal events were processed out of order, the versions name one of them or both.
    assert!(
        (lessons..=lessons + duplicates).contains(&learned_from),
        "{owner:?}: {learned_from} of {lessons} and {duplicates}"
    );
    assert_eq!(usize::try_from(samples).unwrap(), lessons, "{owner:?}");
}

/// Reports equal the sum of the reactions.
async fn check_reports(world: &mut World, tenant: usize) {
    let mut expected: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    let mut machine: BTreeMap<String, u64> = BTreeMap::new();
    for owner in USERS {
        let response = world.report(tenant, owner).await;
        let conversation = format!("c-{owner}");
        if !world.tenants[tenant].being_erased.contains(owner)
            && world.tenants[tenant].being_erased.is_empty()
        {
            reactions(&world.tenants[tenant], owner, None, &response);
        }
        for turn in response.body["turns"].as_array().unwrap() {
            for artifact in turn["reactions"].as_array().unwrap() {
                let reaction = &artifact["reaction"];
                let verdicts = ["ok", "not_ok", "neutral"];
                let at = verdicts
                    .iter()
                    .position(|verdict| reaction["reaction"] == *verdict);
                let counts = expected.entry(conversation.clone()).or_default();
                counts[at.unwrap()] += 1;
                *machine.entry(conversation.clone()).or_default() +=
                    u64::from(reaction["origin"] == "machine");
            }
        }
    }
    let response = world.period(tenant).await;
    let items = response.body["items"].as_array().unwrap();
    let counted: BTreeMap<_, _> = items
        .iter()
        .map(|item| {
            let counts = &item["feedback_counts"];
            let count = |name: &str| counts[name].as_u64().unwrap();
            let conversation = text(&item["conversation_id"]);
            assert_eq!(count("machine"), machine[&conversation], "{item}");
            assert_eq!(count("total"), count("user") + count("machine"), "{item}");
            (conversation, ["ok", "not_ok", "neutral"].map(count))
        })
        .collect();
    assert_eq!(counted, expected, "{}", response.body);
    let table = world.engine.names.table();
    let rows = rows(&world.engine.clients.dynamodb, &table).await;
    let rates = rates(&rows, TENANTS[tenant], ANALYST);
    for item in items {
        let rate = item["satisfaction_rate"].as_f64().unwrap();
        let expected = rates[&text(&item["conversation_id"])];
        assert!((rate - expected).abs() < 1e-9, "{expected}: {item}");
    }
    for user in USERS {
        if !world.tenants[tenant].being_erased.contains(user) {
            let response = world.signals(tenant, user).await;
            signals(&world.tenants[tenant], user, &response);
        }
    }
}
