//! What is answered and what is stored, held against the model.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use hearback_domain::counted;
use hearback_domain::event::{Channel, EventCore};
use hearback_domain::preferences::{Cause, Lesson, Version};
use hearback_domain::publication::Outcome;
use hearback_domain::reaction::{Means, Origin, Reaction, ReactionCore};
use hearback_domain::turn::{TurnCore, TurnRef};
use hearback_domain::turn_status::Said;
use hearback_storage::Store;
use hearback_storage::preferences::{Freshness, Page};
use hearback_tests::stored::{Row, rows};
use serde_json::Value;

use super::model::{Tenant, Turn, USERS};
use super::world::{Answer, TENANTS, World, message_of, turn_id};

/// An event of the caller's own, which is kept under this name.
pub fn event(name: &str, sent: &Value, answer: &Answer) {
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    assert_eq!(answer.body["feedbackId"], sent["feedbackId"]);
    let key = format!("{name}:{}:", text(&sent["artifactId"]));
    let told = text(&answer.body["dedupeKey"]);
    assert!(told.starts_with(&key), "{}", answer.body);
}

/// What the caller said of messages: that, and nothing else.
pub fn signals(tenant: &Tenant, user: &str, answer: &Answer) {
    let rows = answer.body["feedback"].as_array().unwrap();
    let told: BTreeMap<_, _> = rows
        .iter()
        .map(|row| (text(&row["message_id"]), text(&row["reason"])))
        .collect();
    assert_eq!(told.len(), rows.len(), "one stands twice: {}", answer.body);
    let own = tenant.signals.iter().filter(|((_, by), _)| *by == user);
    let expected: BTreeMap<_, _> = own
        .map(|((turn, _), reason)| (message_of(*turn), reason.clone()))
        .collect();
    // One page holds a hundred.
    if answer.body["next_cursor"].is_null() {
        assert_eq!(told, expected, "{}", answer.body);
    }
}

/// The reactions in a conversation, of one user or of all: one of each user and turn, the last one. And the
/// signals on its messages, each counted once, without a name.
pub fn reactions(tenant: &Tenant, owner: &str, of: Option<&str>, answer: &Answer) {
    let mut told = BTreeMap::new();
    let mut inferred = BTreeSet::new();
    let mut signals: BTreeMap<String, usize> = BTreeMap::new();
    for turn in answer.body["turns"].as_array().unwrap() {
        for artifact in turn["reactions"].as_array().unwrap() {
            let tagged = |tag: &str| artifact["tags"].as_array().unwrap().contains(&tag.into());
            if tagged("by:event") {
                continue;
            }
            if tagged("by:inaccurate") {
                *signals.entry(text(&turn["turn_id"])).or_default() += 1;
                continue;
            }
            let by = text(&artifact["user_id"]);
            assert!(of.is_none_or(|user| user == by), "{by}: {}", answer.body);
            let key = (text(&turn["turn_id"]), by);
            if artifact["reaction"]["origin"] == "machine" {
                assert!(inferred.insert(key), "two of the machine: {}", answer.body);
            } else {
                let before = told.insert(key, text(&artifact["reaction"]["reaction"]));
                assert_eq!(before, None, "two stand: {}", answer.body);
            }
        }
    }
    let expected: BTreeMap<_, _> = (tenant.reactions.iter())
        .filter(|((turn, by), _)| turn.0 == owner && of.is_none_or(|user| user == *by))
        .map(|((turn, by), verdict)| ((turn_id(*turn), (*by).to_owned()), (*verdict).to_owned()))
        .collect();
    assert_eq!(told, expected, "{}", answer.body);
    let mut said: BTreeMap<String, usize> = BTreeMap::new();
    for (turn, by) in tenant.signals.keys() {
        if turn.0 == owner && of.is_none_or(|user| user == *by) {
            *said.entry(turn_id(*turn)).or_default() += 1;
        }
    }
    // What a signal counts as follows from it, at last when everything is worked off.
    if of.is_none() {
        assert_eq!(signals, said, "{}", answer.body);
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A user's versions have no gap, and learned from nothing twice; answers the newest, and how many events
/// they learned from.
pub async fn preferences(store: &Store, (tenant, user): (&str, &str)) -> Option<(Version, usize)> {
    let page = Page {
        after: 0,
        before: None,
        limit: None,
        freshness: Freshness::Latest,
    };
    let (tenant, user) = (tenant.try_into().unwrap(), user.try_into().unwrap());
    let versions = store.versions(&tenant, &user, page).await.unwrap();
    let numbers = versions.iter().rev().map(|version| version.number);
    assert!(numbers.eq(1..=u64::try_from(versions.len()).unwrap()));
    let mut taught = BTreeSet::new();
    for version in &versions {
        if let Cause::Feedback { feedback_ids, .. } = &version.cause {
            let new = feedback_ids.iter().all(|id| taught.insert(*id));
            assert!(new, "learned twice: {version:?}");
        }
    }
    Some((versions.into_iter().next()?, taught.len()))
}

/// Works off all that is left, and looks at everything.
pub async fn check(world: &mut World) {
    world.drain().await;
    let table = world.engine.names.table();
    let rows = rows(&world.engine.clients.dynamodb, &table).await;
    for (tenant, name) in TENANTS.into_iter().enumerate() {
        let ledger = Ledger::read(&rows, name);
        ledger.check_events(&world.tenants[tenant]);
        ledger.check_once(&world.tenants[tenant]);
        ledger.check_acts(&world.tenants[tenant]);
        ledger.check_published(&world.published);
        ledger.check_turns(&rows, &world.tenants[tenant]);
        ledger.check_counted(&rows, &world.tenants[tenant]);
        for user in USERS {
            if world.tenants[tenant].leaving.contains(user) {
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

/// As many events were learned from as teach something.
async fn check_learned(world: &World, whose: (&str, &str), lessons: usize) {
    let newest = preferences(&world.engine.store, whose).await;
    let (samples, taught) = newest.map_or((0, 0), |(version, taught)| {
        let kinds = version.preferences.artifact_preferences.into_values();
        let samples = kinds.map(|kind| kind.sample_count.unwrap_or_default());
        (samples.sum::<u64>(), taught)
    });
    assert_eq!(
        (usize::try_from(samples).unwrap(), taught),
        (lessons, lessons),
        "{whose:?}"
    );
}

/// What reports tell is what was done, and counted one by one.
async fn check_reports(world: &mut World, tenant: usize) {
    let mut expected: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    let mut machine: BTreeMap<String, u64> = BTreeMap::new();
    for owner in USERS {
        let answer = world.report(tenant, owner).await;
        let conversation = format!("c-{owner}");
        if !world.tenants[tenant].leaving.contains(owner)
            && world.tenants[tenant].leaving.is_empty()
        {
            reactions(&world.tenants[tenant], owner, None, &answer);
        }
        for turn in answer.body["turns"].as_array().unwrap() {
            for artifact in turn["reactions"].as_array().unwrap() {
                let said = &artifact["reaction"];
                let verdicts = ["ok", "not_ok", "neutral"];
                let at = verdicts
                    .iter()
                    .position(|verdict| said["reaction"] == *verdict);
                let counts = expected.entry(conversation.clone()).or_default();
                counts[at.unwrap()] += 1;
                *machine.entry(conversation.clone()).or_default() +=
                    u64::from(said["origin"] == "machine");
            }
        }
    }
    let answer = world.period(tenant).await;
    let items = answer.body["items"].as_array().unwrap();
    let told: BTreeMap<_, _> = items
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
    assert_eq!(told, expected, "{}", answer.body);
    for user in USERS {
        if !world.tenants[tenant].leaving.contains(user) {
            let answer = world.said(tenant, user).await;
            signals(&world.tenants[tenant], user, &answer);
        }
    }
}

/// The events of a tenant, and what came of them.
struct Ledger {
    tenant: &'static str,
    events: BTreeMap<String, EventCore>,
    outcomes: BTreeMap<String, Outcome>,
    retracted: BTreeSet<String>,
    /// The events that hold a claim of their dedupe key, each with its user.
    claims: BTreeMap<String, String>,
}

impl Ledger {
    fn read(rows: &[Row], tenant: &'static str) -> Self {
        let partition = format!("EVENT#{tenant}#");
        let claims = format!("USER#{tenant}#");
        let mut ledger = Self {
            tenant,
            events: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            retracted: BTreeSet::new(),
            claims: BTreeMap::new(),
        };
        for row in rows {
            let [pk, sk] = ["PK", "SK"].map(|name| row[name].as_s().unwrap().as_str());
            if let Some(user) = pk
                .strip_prefix(&claims)
                .filter(|_| sk.starts_with("CLAIM#"))
            {
                let event = row["feedbackId"].as_s().unwrap().clone();
                let before = ledger.claims.insert(event, user.to_owned());
                assert_eq!(before, None, "it holds two: {row:?}");
            }
            let Some(id) = pk.strip_prefix(&partition) else {
                continue;
            };
            let id = id.to_owned();
            let part = |name: &str| row[name].as_s().unwrap().as_str();
            match sk {
                "EVENT" => {
                    let core = serde_json::from_str(part("core")).unwrap();
                    ledger.events.insert(id, core);
                }
                "RESULT" => {
                    let outcome = serde_json::from_str(part("outcome")).unwrap();
                    ledger.outcomes.insert(id, outcome);
                }
                "RETRACTION" => {
                    ledger.retracted.insert(id);
                }
                other => panic!("{other} is none of an event's"),
            }
        }
        ledger
    }

    fn processed(&self) -> impl Iterator<Item = &EventCore> {
        self.events.iter().filter_map(|(id, core)| {
            matches!(self.outcomes.get(id), Some(Outcome::Processed(_))).then_some(core)
        })
    }

    /// Each event that was acknowledged is there and worked off, and none is that was not or is gone.
    fn check_events(&self, tenant: &Tenant) {
        let known = self.events.iter().filter(|(_, core)| !core.derived);
        let leaving = |core: &&EventCore| tenant.is_leaving(core.user_id.as_str());
        let known: BTreeSet<_> = known
            .filter(|(_, core)| !leaving(core))
            .map(|(id, _)| id.clone())
            .collect();
        let expected: BTreeSet<_> = (tenant.events.iter())
            .filter(|(_, sent)| !tenant.leaving.contains(sent["userId"].as_str().unwrap()))
            .map(|(id, _)| id.to_string())
            .collect();
        let lost: Vec<_> = expected.difference(&known).collect();
        let more = known.difference(&expected);
        let more: Vec<_> = more.map(|id| &self.events[id]).collect();
        assert!(
            lost.is_empty() && more.is_empty(),
            "lost {lost:?}, more {more:#?}"
        );
        for (id, sent) in &tenant.events {
            if let Some(core) = self.events.get(&id.to_string()) {
                assert_eq!(core.user_id.as_str(), tenant.name_in(sent), "{core:?}");
            }
        }
        let events: Vec<_> = self.events.keys().collect();
        let outcomes: Vec<_> = self.outcomes.keys().collect();
        assert_eq!(events, outcomes, "an outcome of each, and of nothing else");
    }

    /// Of equal events one counts, and has the claim.
    fn check_once(&self, tenant: &Tenant) {
        // Of somebody who is being erased, some is gone already.
        let stays = |core: &&EventCore| !tenant.is_leaving(core.user_id.as_str());
        let mut equal: BTreeMap<[u8; 32], Vec<&EventCore>> = BTreeMap::new();
        for core in self.events.values().filter(stays) {
            let key = core.dedupe_key().fingerprint();
            equal.entry(key).or_default().push(core);
        }
        let counts = |core: &&&EventCore| {
            let outcome = &self.outcomes[&core.feedback_id.to_string()];
            matches!(outcome, Outcome::Processed(_))
        };
        for equal in equal.values() {
            let counted = equal.iter().filter(counts).count();
            assert_eq!(counted, 1, "of equal ones one counts: {equal:#?}");
        }
        let firsts = self.processed().filter(stays);
        let firsts: BTreeSet<_> = firsts.map(|core| core.feedback_id.to_string()).collect();
        let claims = (self.claims.iter())
            .filter(|(_, user)| !tenant.is_leaving(user))
            .map(|(event, _)| event.clone());
        let claims: BTreeSet<_> = claims.collect();
        assert_eq!(claims, firsts, "a claim of each, and of no other");
    }

    /// What stands of reactions and signals is in the ledger, once; what stands no more is withdrawn.
    fn check_acts(&self, tenant: &Tenant) {
        let mut standing = BTreeMap::new();
        for core in self.processed().filter(|core| core.derived) {
            let id = core.feedback_id.to_string();
            let by_machine = core.channel == Channel::Implicit;
            if self.retracted.contains(&id)
                || by_machine
                || tenant.is_leaving(core.user_id.as_str())
            {
                continue;
            }
            let about = core.artifact_id.as_ref().unwrap().to_string();
            let key = (about, core.user_id.to_string());
            let before = standing.insert(key, core.accepted);
            assert_eq!(before, None, "two of one act stand: {core:?}");
        }
        let reactions = tenant.reactions.iter().map(|((turn, by), verdict)| {
            let accepted = match *verdict {
                "ok" => Some(true),
                "not_ok" => Some(false),
                _ => None,
            };
            ((turn_id(*turn), *by), accepted)
        });
        let signals = tenant.signals.keys();
        let signals = signals.map(|(turn, by)| ((message_of(*turn), *by), None));
        let expected: BTreeMap<_, _> = reactions
            .chain(signals)
            .filter(|((_, by), _)| !tenant.is_leaving(by))
            .map(|((about, by), accepted)| ((about, by.to_owned()), accepted))
            .collect();
        assert_eq!(standing, expected);
    }

    /// Subscribers were told all that came of each event.
    fn check_published(&self, published: &BTreeMap<String, Value>) {
        let published: BTreeSet<_> = published.values().map(Value::to_string).collect();
        for outcome in self.outcomes.values() {
            if let Outcome::Processed(processed) = outcome {
                for (_, message) in processed.messages() {
                    assert!(published.contains(&message.to_string()), "{message}");
                }
            }
        }
    }

    /// The turns that were registered are there, and no others.
    fn check_turns(&self, rows: &[Row], tenant: &Tenant) {
        let conversations = format!("CONV#{}#", self.tenant);
        let turns = rows.iter().filter_map(|row| {
            let [pk, sk] = ["PK", "SK"].map(|name| row[name].as_s().unwrap());
            let of_tenant = pk.starts_with(&conversations);
            sk.strip_prefix("TURN#").filter(|_| of_tenant)
        });
        let is_leaving = |turn: &&Turn| tenant.leaving.contains(turn.0);
        let told: BTreeSet<_> = turns.map(ToOwned::to_owned).collect();
        let leaving = tenant.turns.iter().filter(is_leaving);
        let leaving: BTreeSet<_> = leaving.map(|turn| turn_id(*turn)).collect();
        let expected = tenant.turns.iter().map(|turn| turn_id(*turn));
        let expected: BTreeSet<_> = expected.filter(|turn| !leaving.contains(turn)).collect();
        let told: BTreeSet<_> = told.difference(&leaving).cloned().collect();
        assert_eq!(told, expected);
    }

    /// Each event about a turn is counted for it, once, and the latest that a turn's own user said by any means
    /// is how it was taken.
    fn check_counted(&self, rows: &[Row], tenant: &Tenant) {
        let conversations = format!("CONV#{}#", self.tenant);
        let rows = rows
            .iter()
            .filter(|row| row["PK"].as_s().unwrap().starts_with(&conversations));
        let mut said: BTreeMap<TurnRef, Vec<(DateTime<Utc>, Reaction)>> = BTreeMap::new();
        let mut told: BTreeMap<TurnRef, Option<Reaction>> = BTreeMap::new();
        let mut events = BTreeSet::new();
        for row in rows {
            let part = |name: &str| row.get(name).map(|part| part.as_s().unwrap().as_str());
            let sk = part("SK").unwrap();
            if sk.starts_with("TURN#") {
                let core: TurnCore = serde_json::from_str(part("core").unwrap()).unwrap();
                let said = part("said").map(|said| serde_json::from_str::<Said>(said).unwrap());
                if !tenant.is_leaving(core.user_id.as_str()) {
                    told.insert(core.at, said.and_then(|said| said.verdict()));
                }
            } else if let Some(core) = part("core").or_else(|| part("counted")) {
                let core: ReactionCore = serde_json::from_str(core).unwrap();
                if core.means == Means::Event && !tenant.is_leaving(core.user_id.as_str()) {
                    events.insert(core.id.to_string());
                }
                if core.own && core.origin == Origin::User {
                    let verdict = core.reaction.map(|verdict| (core.ts, verdict));
                    said.entry(core.at).or_default().extend(verdict);
                }
            }
        }
        let stays = |core: &&EventCore| !tenant.is_leaving(core.user_id.as_str());
        let about = self.processed().filter(stays);
        let about = about.filter(|core| counted::turn_of(core).is_some() && counted::counts(core));
        let about: BTreeSet<_> = about.map(|core| core.feedback_id.to_string()).collect();
        assert_eq!(events, about, "each event about a turn counts for it");
        for (at, verdict) in told {
            let all = said.remove(&at).unwrap_or_default();
            let latest = all.iter().map(|(ts, _)| *ts).max();
            // Of those of one instant any counts.
            let verdicts = all.iter().filter(|(ts, _)| Some(*ts) == latest);
            let verdicts: Vec<_> = verdicts.map(|(_, verdict)| Some(*verdict)).collect();
            assert!(
                verdicts.contains(&verdict) || (verdicts.is_empty() && verdict.is_none()),
                "{at:?} was taken as {verdict:?}, and said was {all:?}"
            );
        }
    }

    /// How many of a user's events teach something.
    fn lessons(&self, user: &str) -> usize {
        let own = self
            .processed()
            .filter(|core| core.user_id.as_str() == user);
        own.filter(|core| Lesson::of(core).is_some()).count()
    }
}
