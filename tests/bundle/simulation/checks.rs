//! Compares responses and the store with the model.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use hearback_domain::events::event::{Channel, EventCore};
use hearback_domain::events::recency::Recency;
use hearback_domain::feedback::counted;
use hearback_domain::feedback::reaction::{FeedbackKind, Origin, Reaction, ReactionCore};
use hearback_domain::feedback::turn_status::ExplicitFeedback;
use hearback_domain::identity::identifier::{UserId, UserRef};
use hearback_domain::learning::ledger::Retraction;
use hearback_domain::learning::preferences::{Cause, Lesson, Version};
use hearback_domain::learning::publication::Outcome;
use hearback_domain::turns::turn::{TurnCore, TurnRef};
use hearback_storage::Store;
use hearback_storage::preferences::{Freshness, VersionRange};
use hearback_tests::rows::{Row, rows};
use serde_json::Value;

use super::model::{Tenant, Turn, USERS};
use super::rates::rates;
use super::world::{ANALYST, Response, TENANTS, World, message_of, turn_id};

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

/// The events of a tenant, with their outcomes.
struct Ledger {
    tenant: &'static str,
    events: BTreeMap<String, EventCore>,
    outcomes: BTreeMap<String, Outcome>,
    retracted: BTreeSet<String>,
    /// The retracted events that an earlier equal event or a later feedback act replaced.
    replaced: BTreeSet<String>,
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
            replaced: BTreeSet::new(),
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
                assert_eq!(before, None, "two claims: {row:?}");
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
                    let retraction: Retraction = serde_json::from_str(part("retraction")).unwrap();
                    if retraction.replaced_by.is_some() {
                        ledger.replaced.insert(id.clone());
                    }
                    ledger.retracted.insert(id);
                }
                other => panic!("unknown row {other}"),
            }
        }
        ledger
    }

    fn processed(&self) -> impl Iterator<Item = &EventCore> {
        self.events.iter().filter_map(|(id, core)| {
            matches!(self.outcomes.get(id), Some(Outcome::Processed(_))).then_some(core)
        })
    }

    /// Exactly the acknowledged events are stored and processed, except erased ones.
    fn check_events(&self, tenant: &Tenant) {
        let known = self.events.iter().filter(|(_, core)| !core.derived);
        let is_being_erased = |core: &&EventCore| tenant.is_being_erased(core.user_id.as_str());
        let known: BTreeSet<_> = known
            .filter(|(_, core)| !is_being_erased(core))
            .map(|(id, _)| id.clone())
            .collect();
        let expected: BTreeSet<_> = (tenant.events.iter())
            .filter(|(_, sent)| {
                !tenant
                    .being_erased
                    .contains(sent["userId"].as_str().unwrap())
            })
            .map(|(id, _)| id.to_string())
            .collect();
        let missing: Vec<_> = expected.difference(&known).collect();
        let unexpected = known.difference(&expected);
        let unexpected: Vec<_> = unexpected.map(|id| &self.events[id]).collect();
        assert!(
            missing.is_empty() && unexpected.is_empty(),
            "missing {missing:?}, unexpected {unexpected:#?}"
        );
        for (id, sent) in &tenant.events {
            if let Some(core) = self.events.get(&id.to_string()) {
                assert_eq!(core.user_id.as_str(), tenant.name_in(sent), "{core:?}");
            }
        }
        for id in tenant.withdrawn.iter().map(ToString::to_string) {
            let core = self.events.get(&id).filter(|core| !is_being_erased(core));
            let is_lost = core.is_some() && !self.retracted.contains(&id);
            assert!(!is_lost, "a withdrawal is lost: {core:?}");
        }
        let events: Vec<_> = self.events.keys().collect();
        let outcomes: Vec<_> = self.outcomes.keys().collect();
        assert_eq!(events, outcomes, "each event has an outcome");
    }

    /// Checks that of equal events exactly one counts and holds the claim, apart from those that were withdrawn.
    fn check_once(&self, tenant: &Tenant) {
        // Some data of a user who is being erased is gone already.
        let stays = |core: &&EventCore| !tenant.is_being_erased(core.user_id.as_str());
        let mut equal: BTreeMap<[u8; 32], Vec<&EventCore>> = BTreeMap::new();
        for core in self.events.values().filter(stays) {
            let key = core.dedupe_key().fingerprint();
            equal.entry(key).or_default().push(core);
        }
        let counts = |core: &&&EventCore| {
            let outcome = &self.outcomes[&core.feedback_id.to_string()];
            matches!(outcome, Outcome::Processed(_))
        };
        let mut firsts = BTreeSet::new();
        for equal in equal.values() {
            let counted = equal.iter().filter(counts);
            let counted = counted.map(|core| core.feedback_id.to_string());
            let (holders, others): (Vec<_>, Vec<_>) =
                counted.partition(|id| self.claims.contains_key(id));
            assert_eq!(holders.len(), 1, "one of equal events counts: {equal:#?}");
            let withdrawn = others.iter().all(|id| self.retracted.contains(id));
            assert!(withdrawn, "one of equal events counts: {equal:#?}");
            firsts.extend(holders);
        }
        let claims = (self.claims.iter())
            .filter(|(_, user)| !tenant.is_being_erased(user))
            .map(|(event, _)| event.clone());
        let claims: BTreeSet<_> = claims.collect();
        assert_eq!(claims, firsts, "each counted event has a claim");
    }

    /// Current reactions and signals are in the ledger, once; the others are retracted.
    fn check_acts(&self, tenant: &Tenant) {
        let mut current = BTreeMap::new();
        for core in self.processed().filter(|core| core.derived) {
            let id = core.feedback_id.to_string();
            let by_machine = core.channel == Channel::Implicit;
            if self.retracted.contains(&id)
                || by_machine
                || tenant.is_being_erased(core.user_id.as_str())
            {
                continue;
            }
            let about = core.artifact_id.as_ref().unwrap().to_string();
            let key = (about, core.user_id.to_string());
            let before = current.insert(key, core.accepted);
            assert_eq!(before, None, "two current events of one act: {core:?}");
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
            .filter(|((_, by), _)| !tenant.is_being_erased(by))
            .map(|((about, by), accepted)| ((about, by.to_owned()), accepted))
            .collect();
        assert_eq!(current, expected);
    }

    /// Subscribers received the whole outcome of each event.
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

    /// Exactly the registered turns are stored.
    fn check_turns(&self, rows: &[Row], tenant: &Tenant) {
        let conversations = format!("CONV#{}#", self.tenant);
        let turns = rows.iter().filter_map(|row| {
            let [pk, sk] = ["PK", "SK"].map(|name| row[name].as_s().unwrap());
            let of_tenant = pk.starts_with(&conversations);
            sk.strip_prefix("TURN#").filter(|_| of_tenant)
        });
        let is_of_erased_user = |turn: &&Turn| tenant.being_erased.contains(turn.0);
        let stored: BTreeSet<_> = turns.map(ToOwned::to_owned).collect();
        let of_erased_users = tenant.turns.iter().filter(is_of_erased_user);
        let of_erased_users: BTreeSet<_> = of_erased_users.map(|turn| turn_id(*turn)).collect();
        let expected = tenant.turns.iter().map(|turn| turn_id(*turn));
        let expected: BTreeSet<_> = expected
            .filter(|turn| !of_erased_users.contains(turn))
            .collect();
        let stored: BTreeSet<_> = stored.difference(&of_erased_users).cloned().collect();
        assert_eq!(stored, expected);
    }

    /// Each event about a turn and each signal counts for it once, and the latest feedback of the turn's user determines
    /// its status.
    fn check_counted(&self, rows: &[Row], tenant: &Tenant) {
        let conversations = format!("CONV#{}#", self.tenant);
        let rows = rows
            .iter()
            .filter(|row| row["PK"].as_s().unwrap().starts_with(&conversations));
        let mut feedback: BTreeMap<TurnRef, Vec<(Recency, Reaction)>> = BTreeMap::new();
        let mut verdicts: BTreeMap<TurnRef, Option<Reaction>> = BTreeMap::new();
        let (mut events, mut signals) = (BTreeSet::new(), BTreeSet::new());
        for row in rows {
            let part = |name: &str| row.get(name).map(|part| part.as_s().unwrap().as_str());
            let sk = part("SK").unwrap();
            if sk.starts_with("TURN#") {
                let core: TurnCore = serde_json::from_str(part("core").unwrap()).unwrap();
                let feedback = part("said")
                    .map(|feedback| serde_json::from_str::<ExplicitFeedback>(feedback).unwrap());
                if !tenant.is_being_erased(core.user_id.as_str()) {
                    verdicts.insert(
                        core.at,
                        feedback.and_then(|feedback| {
                            feedback.verdict(chrono::DateTime::<chrono::Utc>::MIN_UTC)
                        }),
                    );
                }
            } else if let Some(core) = part("core").or_else(|| part("counted")) {
                let core: ReactionCore = serde_json::from_str(core).unwrap();
                if core.kind == FeedbackKind::Event
                    && !core.is_event_tombstone()
                    && !tenant.is_being_erased(core.user_id.as_str())
                {
                    events.insert(core.id.to_string());
                }
                if core.kind == FeedbackKind::Inaccurate
                    && core.reaction.is_some()
                    && !tenant.is_being_erased(core.user_id.as_str())
                {
                    signals.insert((core.at.turn.to_string(), core.user_id.to_string()));
                }
                if core.own && core.origin == Origin::User {
                    let verdict = core.reaction.map(|verdict| (core.recency(), verdict));
                    feedback.entry(core.at).or_default().extend(verdict);
                }
            }
        }
        let stays = |core: &&EventCore| !tenant.is_being_erased(core.user_id.as_str());
        let about = self.processed().filter(stays);
        let about = about.filter(|core| counted::turn_of(core).is_some() && counted::counts(core));
        let id = |core: &EventCore| core.feedback_id.to_string();
        let about = about.filter(|core| !self.retracted.contains(&id(core)));
        let about: BTreeSet<_> = about.map(|core| core.feedback_id.to_string()).collect();
        assert_eq!(
            events, about,
            "each event about a turn counts for it, unless it is withdrawn"
        );
        let given = tenant.signals.keys();
        let given = given
            .filter(|(turn, by)| !tenant.is_being_erased(by) && !tenant.is_being_erased(turn.0));
        let given: BTreeSet<_> = given
            .map(|(turn, by)| (turn_id(*turn), (*by).to_owned()))
            .collect();
        assert_eq!(signals, given, "each signal counts for its turn");
        for (at, verdict) in verdicts {
            let all = feedback.remove(&at).unwrap_or_default();
            let latest = all.iter().max_by_key(|(recency, _)| recency);
            assert_eq!(
                verdict,
                latest.map(|(_, verdict)| *verdict),
                "the status of {at:?} is that of the latest feedback of {all:?}"
            );
        }
    }

    /// The number of a user's events with a lesson, and the number of those that an earlier equal event replaced.
    fn lessons(&self, user: &str) -> (usize, usize) {
        let teaches =
            |core: &&EventCore| core.user_id.as_str() == user && Lesson::of(core).is_some();
        let is_replaced = |core: &&EventCore| {
            !core.derived && self.replaced.contains(&core.feedback_id.to_string())
        };
        let firsts = self.processed().filter(teaches);
        let firsts = firsts.filter(|core| !is_replaced(core));
        // An event whose outcome is `duplicate` may be named too, if a worker had claimed its key before.
        let replaced = self.events.values().filter(teaches).filter(is_replaced);
        (firsts.count(), replaced.count())
    }
}
