//! How keys spread: no partition is asked for more than DynamoDB gives one, where a tenant sends a billion
//! events a day.
//!
//! Each kind of act is done once, by the real handlers and the signal generator on a real engine, and what it
//! touches is noted. Who acts on what is drawn from a seed; the keys of that are made by the product's own
//! functions. `docs/performance.md` has the table: `HEARBACK_WRITE_DOCS=1 cargo test -p hearback-tests
//! --test bundle keys` writes it.

mod traffic;

use std::collections::{BTreeMap, BTreeSet};

use aws_lambda_events::sqs::SqsEvent;
use axum::Router;
use axum::http::Method;
use chrono::{DateTime, TimeDelta, Utc};
use futures::future::join_all;
use hearback_lambda::App;
use hearback_lambda::clock::Clock;
use hearback_lambda::dead_letters::DeadLetters;
use hearback_lambda::http::service;
use hearback_signals::Generator;
use hearback_storage::activity::DEFAULT_SHARDS;
use hearback_storage::preferences::Freshness;
use hearback_storage::{Store, keys};
use hearback_tests::engine::Engine;
use hearback_tests::events::acceptance;
use hearback_tests::functions::call;
use hearback_tests::hands::TIME;
use hearback_tests::page::Told;
use hearback_tests::queue::{self, submitted};
use hearback_tests::touched::{Partition, Touched, Units};
use hearback_tests::turns::{SIGNALS, conversation_path, message, path};
use serde_json::{Value, json};
use traffic::{Crowd, Kind, Load, Names, Place, Touches, second};
use uuid::Uuid;

use crate::imports::import_with;

/// What one partition key gives in a second.
const LIMIT: Units = Units {
    reads: 3_000.0,
    writes: 1_000.0,
};
/// With so many shards of a day the traffic keeps within it.
const SHARDS: u32 = 32;

/// What somebody does, with all that follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    Event,
    Duplicate,
    Turn,
    FollowUp,
    Reaction,
    OtherReaction,
    Signal,
    OtherSignal,
    File,
}

/// What it is called, where it happens, and how often in a second: 35,000 events, of which three of five are
/// posted, and as many turns as that, of which every second one lets the machine react. All that is posted
/// comes in pieces of files besides.
const ACTS: [(Act, &str, Place, u32); 9] = [
    (Act::Event, "events", Place::Posted, 20_580),
    (Act::Duplicate, "duplicates", Place::Posted, 420),
    (Act::Turn, "turns", Place::Conversation, 10_500),
    (Act::FollowUp, "follow-ups", Place::Conversation, 10_500),
    (Act::Reaction, "reactions", Place::Conversation, 2_205),
    (
        Act::OtherReaction,
        "changed reactions",
        Place::Conversation,
        245,
    ),
    (Act::Signal, "signals", Place::Conversation, 945),
    (
        Act::OtherSignal,
        "changed signals",
        Place::Conversation,
        105,
    ),
    (Act::File, "pieces", Place::Posted, 5),
];

/// Kinds of partitions as the page calls them.
const KINDS: [(Kind, &str); 12] = [
    (Kind::Event, "an event"),
    (Kind::User, "a user"),
    (Kind::Preferences, "a user's preferences"),
    (Kind::Conversation, "a conversation"),
    (Kind::Message, "a message"),
    (Kind::Markers, "a shard of a project's day"),
    (Kind::Import, "an import"),
    (Kind::Author, "`by_author`: a user"),
    (Kind::Signals, "`by_day`: a shard of a tenant's day"),
    (Kind::Trace, "`by_trace`: a trace"),
    (
        Kind::Accepted,
        "`by_status`: a shard of a project's accepted turns",
    ),
    (
        Kind::Rejected,
        "`by_status`: a shard of a project's rejected turns",
    ),
];

/// What users say one after the other.
const QUESTIONS: [&str; 2] = [
    "How do I return a coat that I bought three weeks ago in your shop in Berlin?",
    "Which documents does the customs office want for a parcel to Norway?",
];
/// What follows either of them without a word on the answer before.
const OTHER: &str = "Write a short greeting for a colleague who retires after forty years.";

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(TIME, 0).unwrap()
}

fn before() -> DateTime<Utc> {
    now() - TimeDelta::minutes(1)
}

/// The functions on a table whose partitions are watched.
struct World {
    engine: Engine,
    store: Store,
    touched: Touched,
    /// Messages that were delivered.
    delivered: BTreeSet<String>,
}

impl World {
    async fn new(beside: &Engine) -> Self {
        let engine = beside.beside().await;
        let touched = Touched::default();
        Self {
            store: engine.store_with(touched.clone()),
            engine,
            touched,
            delivered: BTreeSet::new(),
        }
    }

    fn functions(&self, clock: fn() -> DateTime<Utc>) -> Router {
        let mut app = self.engine.with_blobs(self.store.clone());
        app.app = App {
            clock: Clock::of(clock),
            ..app.app
        };
        service(hearback_local::gateway::functions(
            app,
            self.engine.erasures(),
        ))
    }

    /// Makes a request as ada.
    async fn request(&self, clock: fn() -> DateTime<Utc>, method: Method, path: &str, body: Value) {
        let caller = ("order-service", "");
        let (status, answer) = call(&self.functions(clock), caller, (method, path), &body).await;
        assert!(status.is_success(), "{path}: {status} {answer}");
    }

    fn generator(&self) -> Generator {
        let letters = &self.engine.queues.dead_letters;
        let letters = DeadLetters::new(self.engine.clients.sqs.clone(), letters);
        let (store, blobs) = (self.store.clone(), self.engine.blobs());
        Generator::new(store, blobs, letters, Clock::of(now))
    }

    /// Delivers what the pipe sends, until nothing more follows of it.
    async fn work_off(&mut self) {
        let generator = self.generator();
        loop {
            let mut batch = SqsEvent::default();
            for kind in ["EVENT", "REACTION#", "SIGNAL#"] {
                for message in submitted(&self.engine, kind).await {
                    if self.delivered.insert(message.body.clone().unwrap()) {
                        batch.records.push(message);
                    }
                }
            }
            if batch.records.is_empty() {
                return;
            }
            let answer = generator.handle(batch).await;
            assert!(answer.batch_item_failures.is_empty());
        }
    }

    /// Makes the world one in which this act is an ordinary one.
    async fn prepare(&mut self, act: Act) {
        match act {
            Act::Event | Act::File => {}
            Act::Duplicate => self.submit(0).await,
            // As many as are looked through for the turn before.
            Act::Turn | Act::FollowUp => {
                for number in 0..25 {
                    self.register(number, QUESTIONS[number % QUESTIONS.len()])
                        .await;
                }
            }
            Act::Reaction | Act::Signal => self.register(0, QUESTIONS[0]).await,
            Act::OtherReaction => {
                self.register(0, QUESTIONS[0]).await;
                self.react(before, "not_ok").await;
            }
            Act::OtherSignal => {
                self.register(0, QUESTIONS[0]).await;
                self.signal(before, "one").await;
            }
        }
        self.work_off().await;
    }

    async fn act(&mut self, act: Act) {
        match act {
            Act::Event => self.submit(0).await,
            Act::Duplicate => self.submit(1).await,
            Act::Turn => {
                self.prompt().await;
                self.register(25, OTHER).await;
            }
            Act::FollowUp => {
                self.prompt().await;
                self.register(25, "No, that's wrong.").await;
            }
            Act::Reaction | Act::OtherReaction => self.react(now, "ok").await,
            Act::Signal | Act::OtherSignal => self.signal(now, "other").await,
            Act::File => {
                let importer = self.engine.importer(self.store.clone());
                import_with(&self.engine, &importer, Vec::from("no event\n"), None).await;
            }
        }
        self.work_off().await;
    }

    async fn submit(&self, number: u128) {
        let mut event = acceptance("ada");
        event["feedbackId"] = json!(Uuid::from_u128(number));
        event["artifactId"] = json!("artifact");
        let submit = "/v1/feedback/submit";
        self.request(now, Method::POST, submit, event).await;
    }

    /// What an agent asks before it answers.
    async fn prompt(&self) {
        let resolved = "/v1/preferences/ada/resolved";
        self.request(now, Method::GET, resolved, Value::Null).await;
        let refresh = format!("{}/timeline/refresh", conversation_path("c"));
        let turns = ["t-20", "t-21", "t-22", "t-23", "t-24"];
        let turns = json!({"turn_ids": turns, "cache": {"ttl_seconds": 0}});
        self.request(now, Method::POST, &refresh, turns).await;
    }

    /// Registers a turn, a minute after the one before.
    async fn register(&self, number: usize, question: &str) {
        let answer = "It goes back within 30 days, in its box, with the bill. ".repeat(20);
        let mut turn = message(&format!("m-{number}"), question, &answer);
        turn["ts"] =
            json!(now() - TimeDelta::minutes(25) + TimeDelta::minutes(number.try_into().unwrap()));
        turn["trace_id"] = json!("trace");
        let path = path("c", &format!("t-{number}"));
        self.request(now, Method::PUT, &path, turn).await;
    }

    async fn react(&self, clock: fn() -> DateTime<Utc>, verdict: &str) {
        let path = format!("{}/feedback", path("c", "t-0"));
        let body = json!({"reaction": verdict, "text": "Just so."});
        self.request(clock, Method::POST, &path, body).await;
    }

    async fn signal(&self, clock: fn() -> DateTime<Utc>, reason: &str) {
        let body = json!({"message_id": "m-0", "signal": "inaccurate", "reason": reason});
        self.request(clock, Method::POST, SIGNALS, body).await;
    }
}

/// What an act touches.
async fn touches(beside: &Engine, act: Act) -> Touches {
    let mut world = World::new(beside).await;
    world.prepare(act).await;
    world.touched.take();
    world.act(act).await;
    let mut seen = world.touched.take();
    // A process marks a month once, however much it does.
    let (tenant, project) = (
        "acme".try_into().unwrap(),
        "order-service".try_into().unwrap(),
    );
    let months = keys::months(&tenant, &project);
    seen.retain(|partition, _| partition.key != months);
    let touches = seen.into_iter().map(|(partition, units)| {
        let kind = kind_of(&world.store, act, &partition);
        (kind, units)
    });
    touches.collect()
}

/// What a partition is of that was touched by ada's act.
fn kind_of(store: &Store, act: Act, partition: &Partition) -> Kind {
    let last = partition.key.rsplit('#').next().unwrap();
    let message = match act {
        Act::Turn | Act::FollowUp => "m-25",
        _ => "m-0",
    };
    // An import and an event have names that nobody chose.
    let names = Names::new(now(), "ada", "c", (message, "trace", last));
    let event = last.parse().unwrap_or_default();
    let known = KINDS
        .iter()
        .find(|(kind, _)| names.partition(store, *kind, event) == *partition);
    let known =
        known.unwrap_or_else(|| panic!("{act:?} touches {partition:?}, which is not told of"));
    known.0
}

/// A row of the table.
fn row(name: &str, load: Load, full: &str) -> String {
    let Units { reads, writes } = load.most;
    let share = (writes / LIMIT.writes).max(reads / LIMIT.reads) * 100.0;
    let partitions = load.partitions;
    format!("| {name} | {partitions} | {writes:.0} | {reads:.0} | {share:.0} % | {full} |\n")
}

/// How often each act that touches partitions of a kind may happen in a second on one of them.
fn full(kind: Kind, seen: &BTreeMap<Act, Touches>) -> String {
    let mut full: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (act, name, ..) in ACTS {
        let of_kind = seen[&act].iter().filter(|(touched, _)| *touched == kind);
        let times = of_kind
            .map(|(_, units)| (LIMIT.writes / units.writes).min(LIMIT.reads / units.reads) as u32);
        if let Some(times) = times.min() {
            full.entry(times).or_default().push(name);
        }
    }
    let full = full.into_iter();
    let full = full.map(|(times, names)| format!("{times} {}", names.join(", ")));
    full.collect::<Vec<_>>().join("; ")
}

const TOLD: Told = Told {
    page: "performance.md",
    table: "keys",
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_partition_is_asked_for_more_than_it_gives() {
    let engine = Engine::start().await;
    let mut seen = BTreeMap::new();
    for (act, ..) in ACTS {
        seen.insert(act, touches(&engine, act).await);
    }
    let acts: Vec<_> = ACTS
        .iter()
        .map(|(act, _, place, times)| (&seen[act], *place, *times))
        .collect();
    let second = |shards| {
        let store = engine.store.clone().with_shards(shards);
        second(&acts, &mut Crowd::new(1, now()), &store)
    };
    let (loads, by_default) = (second(SHARDS), second(DEFAULT_SHARDS));
    let mut table = String::from(
        "| partition of | touched | writes | reads | of the limit | is full at, in a second |\n\
         |---|---|---|---|---|---|\n",
    );
    for (kind, name) in KINDS {
        let load = loads[&kind];
        let Units { reads, writes } = load.most;
        assert!(
            writes <= LIMIT.writes && reads <= LIMIT.reads,
            "{name}: {load:?}"
        );
        // A name that is drawn for each is never met twice.
        let full = match kind {
            Kind::Event | Kind::Message => String::new(),
            _ => full(kind, &seen),
        };
        table += &row(name, load, &full);
        if kind == Kind::Markers {
            let name = format!("… of {DEFAULT_SHARDS}, as by default");
            table += &row(&name, by_default[&kind], "");
        }
    }
    println!("{table}");
    let told = TOLD.or_written(&table);
    assert_eq!(told, table, "the page is not that of this test");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_meet_for_one_user_all_get_done() {
    const AT_ONCE: u32 = 30;
    let engine = Engine::start().await;
    let world = World::new(&engine).await;
    for number in 0..AT_ONCE {
        let mut event = acceptance("ada");
        event["feedbackId"] = json!(Uuid::from_u128(number.into()));
        let submit = "/v1/feedback/submit";
        world.request(now, Method::POST, submit, event).await;
    }
    let generator = world.generator();
    let batches = submitted(&world.engine, "EVENT").await;
    let batches = batches.into_iter();
    let batches = batches.map(|message| generator.handle(queue::batch([message])));
    for answer in join_all(batches).await {
        assert!(answer.batch_item_failures.is_empty());
    }
    let (tenant, user) = ("acme".try_into().unwrap(), "ada".try_into().unwrap());
    let newest = world
        .store
        .newest_version(&tenant, &user, Freshness::Latest);
    let newest = newest.await.unwrap().unwrap();
    assert_eq!(newest.number, u64::from(AT_ONCE));
}
