//! Users and workers in an order that a seed gives: requests that fail and are sent again, messages that are
//! late, out of order, twice, and with two workers at once. What follows must be what a model says.
//!
//! `SEED` and `STEPS` choose another run, for example `SEED=7 STEPS=20000 cargo test -p hearback-tests --test
//! bundle simulation`. A seed that fails fails again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};

use aws_lambda_events::sqs::{SqsEvent, SqsMessage};
use aws_sdk_dynamodb::types::AttributeValue;
use axum::http::{Method, StatusCode};
use chrono::{DateTime, SecondsFormat, Utc};
use futures::future::join;
use hearback_domain::event::EventCore;
use hearback_domain::preferences::{Cause, Lesson};
use hearback_lambda::clock::Clock;
use hearback_storage::preferences::{Freshness, Page};
use hearback_tests::engine::Engine;
use hearback_tests::faults::{Fault, Faults};
use hearback_tests::functions::call;
use hearback_tests::generate::Random;
use hearback_tests::queue::carried;
use hearback_tests::turns::{SIGNALS, conversation_path, message, path};
use serde_json::{Value, json};

use crate::crash_points::{self, Hands};

const STEPS: u64 = 150;
const USERS: [&str; 3] = ["ada", "eve", "ike"];
const TURNS: [&str; 3] = ["t1", "t2", "t3"];
const VERDICTS: [Option<&str>; 4] = [Some("ok"), Some("not_ok"), Some("neutral"), None];
/// Requests that are sent again until they are answered.
const TRIES: usize = 10;

/// The time, which moves with the steps.
static TIME: AtomicI64 = AtomicI64::new(crash_points::TIME);

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(TIME.load(Ordering::SeqCst), 0).unwrap()
}

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok().and_then(|text| text.parse().ok());
    given.unwrap_or(default)
}

struct Simulation {
    engine: Engine,
    random: Random,
    /// Events that were acknowledged, as they were sent.
    sent: Vec<Value>,
    /// What stands, by turn and user.
    reactions: BTreeMap<(&'static str, &'static str), Option<&'static str>>,
    /// Rows whose message was made, by key and version.
    streamed: BTreeSet<String>,
    waiting: Vec<SqsMessage>,
    delivered: Vec<SqsMessage>,
}

impl Simulation {
    async fn start(seed: u64) -> Self {
        let mut simulation = Self {
            engine: Engine::start().await,
            random: Random(seed),
            sent: Vec::new(),
            reactions: BTreeMap::new(),
            streamed: BTreeSet::new(),
            waiting: Vec::new(),
            delivered: Vec::new(),
        };
        for turn in TURNS {
            let body = message(&format!("m-{turn}"), "a question", "an answer");
            simulation
                .request(Method::PUT, &path("c", turn), &body)
                .await;
        }
        simulation
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        let count = u64::try_from(all.len()).unwrap();
        all[usize::try_from(self.random.below(count)).unwrap()]
    }

    /// The functions, one in five times with a fault somewhere.
    fn hands(&mut self) -> Hands {
        let faults = if self.random.below(5) == 0 {
            let at = u32::try_from(1 + self.random.below(8)).unwrap();
            Faults::at(at, self.one_of(&Fault::ALL))
        } else {
            Faults::none()
        };
        Hands::at(&self.engine, &faults, Clock::of(now))
    }

    /// Sends a request until it is answered.
    async fn request(&mut self, method: Method, path: &str, body: &Value) -> StatusCode {
        for _ in 0..TRIES {
            let hands = self.hands();
            let caller = ("order-service", "feedback:on-behalf");
            let route = (method.clone(), path);
            let (status, answer) = call(&hands.functions, caller, route, body).await;
            if !status.is_server_error() {
                assert!(
                    status.is_success() || status == StatusCode::CONFLICT,
                    "{answer}"
                );
                self.stream().await;
                return status;
            }
        }
        panic!("never answered: {method} {path}");
    }

    async fn step(&mut self) {
        TIME.fetch_add(1, Ordering::SeqCst);
        match self.random.below(10) {
            0..3 => self.submit().await,
            3..5 => self.react().await,
            5 => self.say().await,
            _ => self.deliver().await,
        }
    }

    async fn submit(&mut self) {
        let known = !self.sent.is_empty() && self.random.below(6) == 0;
        let event = if known {
            let count = u64::try_from(self.sent.len()).unwrap();
            let at = usize::try_from(self.random.below(count)).unwrap();
            self.sent[at].clone()
        } else {
            let id = uuid::Uuid::from_u64_pair(self.random.next(), self.random.next());
            json!({
                "feedbackId": id, "userId": self.one_of(&USERS), "sessionId": "s",
                "artifactId": self.one_of(&["a", "b", "c", "d", "e", "f", "g", "h"]),
                "feedbackChannel": "explicit", "feedbackType": "artifact-acceptance",
                "data": {"accepted": self.random.below(2) == 0}
            })
        };
        let status = self
            .request(Method::POST, "/v1/feedback/submit", &event)
            .await;
        assert!(!known || status == StatusCode::CONFLICT);
        if !known {
            self.sent.push(event);
        }
    }

    async fn react(&mut self) {
        let (turn, user) = (self.one_of(&TURNS), self.one_of(&USERS));
        let verdict = self.one_of(&VERDICTS);
        let ts = now().to_rfc3339_opts(SecondsFormat::Secs, true);
        let body = json!({"reaction": verdict, "user_id": user, "ts": ts, "mirror": true});
        let path = format!("{}/feedback", path("c", turn));
        self.request(Method::POST, &path, &body).await;
        self.reactions.insert((turn, user), verdict);
    }

    async fn say(&mut self) {
        let message = format!("m-{}", self.one_of(&TURNS));
        if self.random.below(3) == 0 {
            let gone = format!("{SIGNALS}?message_id={message}&signal=edit");
            self.request(Method::DELETE, &gone, &Value::Null).await;
        } else {
            let reason = self.one_of(&["one", "other"]);
            let body = json!({"message_id": message, "signal": "edit", "reason": reason});
            self.request(Method::POST, SIGNALS, &body).await;
        }
    }

    /// Every row of the table.
    async fn rows(&self) -> Vec<HashMap<String, AttributeValue>> {
        let mut rows = Vec::new();
        let mut from = None;
        loop {
            let page = self.engine.clients.dynamodb.scan();
            let page = page.table_name(self.engine.names.table());
            let page = page.set_exclusive_start_key(from).send().await.unwrap();
            rows.extend(page.items.unwrap_or_default());
            from = page.last_evaluated_key;
            if from.is_none() {
                return rows;
            }
        }
    }

    /// Makes the messages of what was written since.
    async fn stream(&mut self) {
        for row in self.rows().await {
            let text = |name: &str| row.get(name).and_then(|text| text.as_s().ok());
            let (Some(pk), Some(sk), Some(_)) = (text("PK"), text("SK"), text("core")) else {
                continue;
            };
            let travels = ["EVENT", "REACTION#", "SIGNAL#"];
            if !travels.iter().any(|kind| sk.starts_with(kind)) {
                continue;
            }
            let version = format!("{pk} {sk} {:?}", row.get("attempt"));
            if !self.streamed.insert(version.clone()) {
                continue;
            }
            let mut message = carried(&row, "INSERT");
            message.message_id = Some(version);
            self.waiting.push(message);
        }
    }

    /// A batch of what waits, or was delivered before, in any order.
    fn batch(&mut self) -> SqsEvent {
        let mut batch = SqsEvent::default();
        for _ in 0..1 + self.random.below(10) {
            let again = self.random.below(4) == 0;
            let from = if again {
                &self.delivered
            } else {
                &self.waiting
            };
            let count = u64::try_from(from.len()).unwrap();
            if count > 0 {
                let at = usize::try_from(self.random.below(count)).unwrap();
                let from = if again {
                    &self.delivered
                } else {
                    &self.waiting
                };
                batch.records.push(from[at].clone());
            }
        }
        batch
    }

    /// Delivers two batches to two workers at once. What one of them did not say that it failed is done.
    async fn deliver(&mut self) {
        let (one, other) = (self.batch(), self.batch());
        let (hands, others) = (self.hands(), self.hands());
        let handled = join(
            hands.generator.handle(one.clone()),
            others.generator.handle(other.clone()),
        );
        let (first, second) = handled.await;
        for (batch, response) in [(one, first), (other, second)] {
            let failed: BTreeSet<_> = response
                .batch_item_failures
                .into_iter()
                .map(|failure| failure.item_identifier)
                .collect();
            for message in batch.records {
                let id = message.message_id.clone().unwrap();
                if !failed.contains(&id) {
                    self.waiting
                        .retain(|waits| waits.message_id.as_ref() != Some(&id));
                    self.delivered.push(message);
                }
            }
        }
        self.stream().await;
    }

    /// Delivers what is left, with nothing that fails.
    async fn drain(&mut self) {
        while !self.waiting.is_empty() {
            let mut batch = SqsEvent::default();
            batch.records = self.waiting.drain(..self.waiting.len().min(10)).collect();
            let hands = Hands::at(&self.engine, &Faults::none(), Clock::of(now));
            let response = hands.generator.handle(batch.clone()).await;
            assert!(response.batch_item_failures.is_empty());
            self.stream().await;
        }
    }

    /// The events of the table, each with its outcome.
    async fn events(&self) -> Vec<(EventCore, Value)> {
        let rows = self.rows().await;
        let of = |kind: &str| {
            let rows = rows
                .iter()
                .filter(move |row| row["SK"].as_s().unwrap() == kind);
            rows.map(|row| (row["PK"].as_s().unwrap().clone(), row))
                .collect::<BTreeMap<_, _>>()
        };
        let (events, results) = (of("EVENT"), of("RESULT"));
        let json = |text: &str| serde_json::from_str(text).unwrap();
        let events = events.into_iter().map(|(pk, row)| {
            let core = serde_json::from_str(row["core"].as_s().unwrap()).unwrap();
            let result = results
                .get(&pk)
                .unwrap_or_else(|| panic!("{pk} was not worked off"));
            (core, json(result["outcome"].as_s().unwrap()))
        });
        events.collect()
    }

    async fn check(&mut self, seed: u64) {
        let events = self.events().await;
        let known: BTreeSet<_> = events.iter().map(|(core, _)| core.feedback_id).collect();
        for event in &self.sent {
            let id = event["feedbackId"].as_str().unwrap().parse().unwrap();
            assert!(known.contains(&id), "seed {seed}: {event} was lost");
        }
        // Of equal ones one counts.
        let mut firsts: BTreeMap<[u8; 32], u32> = BTreeMap::new();
        let mut lessons: BTreeMap<String, u64> = BTreeMap::new();
        for (core, outcome) in &events {
            let counts = u32::from(outcome["status"] == "processed");
            *firsts.entry(core.dedupe_key().fingerprint()).or_default() += counts;
            if counts == 1 && Lesson::of(core).is_some() {
                *lessons.entry(core.user_id.to_string()).or_default() += 1;
            }
        }
        assert!(
            firsts.values().all(|count| *count == 1),
            "seed {seed}: {firsts:?}"
        );
        for user in USERS {
            self.check_preferences(user, lessons.get(user).copied().unwrap_or_default())
                .await;
        }
        self.check_reactions().await;
    }

    /// Each lesson was learned once, and the versions have no gap.
    async fn check_preferences(&self, user: &str, lessons: u64) {
        let page = Page {
            after: 0,
            before: None,
            limit: None,
            freshness: Freshness::Latest,
        };
        let owner = ("acme".try_into().unwrap(), user.try_into().unwrap());
        let versions = self
            .engine
            .store
            .versions(&owner.0, &owner.1, page)
            .await
            .unwrap();
        let numbers: Vec<_> = versions
            .iter()
            .rev()
            .map(|version| version.number)
            .collect();
        assert!(
            numbers
                .iter()
                .copied()
                .eq(1..=u64::try_from(numbers.len()).unwrap())
        );
        let mut taught = BTreeSet::new();
        for version in &versions {
            if let Cause::Feedback { feedback_ids, .. } = &version.cause {
                assert!(
                    feedback_ids.iter().all(|id| taught.insert(*id)),
                    "learned twice"
                );
            }
        }
        let newest = versions.first().map(|version| &version.preferences);
        let samples: u64 = newest.map_or(0, |preferences| {
            let kinds = preferences.artifact_preferences.values();
            kinds
                .map(|kind| kind.sample_count.unwrap_or_default())
                .sum()
        });
        assert_eq!(
            (samples, u64::try_from(taught.len()).unwrap()),
            (lessons, lessons),
            "{user}"
        );
    }

    /// One reaction of each user stands on each turn, the last one; and the report counts them.
    async fn check_reactions(&mut self) {
        let hands = Hands::at(&self.engine, &Faults::none(), Clock::of(now));
        let path = format!("{}/turns-with-feedbacks", conversation_path("c"));
        let caller = ("order-service", "feedback:report");
        let route = (Method::POST, path.as_str());
        let (_, report) = call(&hands.functions, caller, route, &json!({"days": 3650})).await;
        let mut standing = BTreeMap::new();
        for turn in report["turns"].as_array().unwrap() {
            for artifact in turn["reactions"].as_array().unwrap() {
                let said = &artifact["reaction"];
                if said["origin"] == "machine" {
                    continue;
                }
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                let key = (text(&turn["turn_id"]), text(&artifact["user_id"]));
                let before = standing.insert(key, text(&said["reaction"]));
                assert_eq!(before, None, "two stand: {report}");
            }
        }
        let expected: BTreeMap<_, _> = (self.reactions.iter())
            .filter_map(|((turn, user), verdict)| {
                let key = ((*turn).to_owned(), (*user).to_owned());
                Some((key, (*verdict)?.to_owned()))
            })
            .collect();
        assert_eq!(standing, expected, "{report}");
    }
}

#[tokio::test]
async fn whatever_the_order_what_follows_is_what_a_model_says() {
    let (seed, steps) = (number("SEED", 1), number("STEPS", STEPS));
    let mut simulation = Simulation::start(seed).await;
    for _ in 0..steps {
        simulation.step().await;
    }
    simulation.drain().await;
    simulation.check(seed).await;
    println!(
        "seed {seed}: {steps} steps, {} events",
        simulation.sent.len()
    );
}
