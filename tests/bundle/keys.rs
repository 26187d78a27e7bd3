//! How load spreads over partition keys: no partition exceeds DynamoDB's limit when a tenant sends a billion events a
//! day.
//!
//! Each kind of operation runs once, with the real handlers and the signal generator on a real engine, and the
//! partitions that it uses are recorded. The users and conversations of the traffic are drawn from a seed, and the
//! product's own functions make their keys. `docs/performance.md` has the table; `HEARBACK_WRITE_DOCS=1 cargo test -p
//! hearback-tests --test bundle keys` writes it.

mod traffic;

use std::collections::{BTreeMap, BTreeSet};

use aws_lambda_events::sqs::SqsEvent;
use axum::Router;
use axum::http::Method;
use chrono::{DateTime, TimeDelta, Utc};
use futures::future::join_all;
use hearback_domain::identity::identifier::UserRef;
use hearback_lambda::App;
use hearback_lambda::clock::Clock;
use hearback_lambda::dead_letters::DeadLetters;
use hearback_lambda::http::service;
use hearback_signals::Generator;
use hearback_storage::activity::DEFAULT_SHARDS;
use hearback_storage::preferences::Freshness;
use hearback_storage::table::{BY_FEED, BY_HOUR};
use hearback_storage::{Store, keys};
use hearback_tests::engine::Engine;
use hearback_tests::events::acceptance;
use hearback_tests::function_set::TIME;
use hearback_tests::functions::call;
use hearback_tests::page::PageTable;
use hearback_tests::queue::{self, submitted};
use hearback_tests::touched::{Partition, Touched, Units};
use hearback_tests::turns::{SIGNALS, conversation_path, message, path};
use serde_json::{Value, json};
use traffic::{Crowd, Kind, Load, Names, Place, Touches, second};
use uuid::Uuid;

use crate::imports::import_with;

/// The throughput of one partition key, per second.
const LIMIT: Units = Units {
    reads: 3_000.0,
    writes: 1_000.0,
};
/// The shards of a day with which the traffic is within the limit.
const SHARDS: u32 = 32;

/// An operation, with all processing that follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Operation {
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

/// The name, the place and the rate per second of each operation. Of 35,000 events three fifths are submitted, and as
/// many turns are registered, half of them follow-ups with a machine reaction. Everything that is submitted is also
/// imported in pieces of files.
const OPERATIONS: [(Operation, &str, Place, u32); 9] = [
    (Operation::Event, "events", Place::Posted, 20_580),
    (Operation::Duplicate, "duplicates", Place::Posted, 420),
    (Operation::Turn, "turns", Place::Conversation, 10_500),
    (
        Operation::FollowUp,
        "follow-ups",
        Place::Conversation,
        10_500,
    ),
    (Operation::Reaction, "reactions", Place::Conversation, 2_205),
    (
        Operation::OtherReaction,
        "changed reactions",
        Place::Conversation,
        245,
    ),
    (Operation::Signal, "signals", Place::Conversation, 945),
    (
        Operation::OtherSignal,
        "changed signals",
        Place::Conversation,
        105,
    ),
    (Operation::File, "pieces", Place::Posted, 5),
];

/// The kinds of partitions, as the page names them.
const KINDS: [(Kind, &str); 15] = [
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
    (Kind::Feed, "`by_feed`: a shard of a tenant's day"),
    (Kind::FeedUser, "`by_feed_user`: a user"),
    (Kind::Hour, "`by_hour`: a shard of a project's hour"),
];

/// Questions of users, in turn.
const QUESTIONS: [&str; 2] = [
    "How do I return a coat that I bought three weeks ago in your shop in Berlin?",
    "Which documents does the customs office want for a parcel to Norway?",
];
/// A next question without feedback on the answer before.
const OTHER: &str = "Write a short greeting for a colleague who retires after forty years.";

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(TIME, 0).unwrap()
}

fn before() -> DateTime<Utc> {
    now() - TimeDelta::minutes(1)
}

/// Functions on a table whose partition use is recorded.
struct World {
    engine: Engine,
    store: Store,
    touched: Touched,
    /// Messages that were delivered.
    delivered: BTreeSet<String>,
}

impl World {
    async fn new(shared: &Engine) -> Self {
        let engine = shared.another().await;
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

    /// Sends a request as ada.
    async fn request(&self, clock: fn() -> DateTime<Utc>, method: Method, path: &str, body: Value) {
        let caller = ("order-service", "");
        let (status, response) = call(&self.functions(clock), caller, (method, path), &body).await;
        assert!(status.is_success(), "{path}: {status} {response}");
    }

    fn generator(&self) -> Generator {
        let dead_letters = &self.engine.queues.dead_letters;
        let dead_letters = DeadLetters::new(self.engine.clients.sqs.clone(), dead_letters);
        let (store, blobs) = (self.store.clone(), self.engine.blobs());
        Generator::new(store, blobs, dead_letters, Clock::of(now))
    }

    /// Delivers the pipe's messages until no new ones follow.
    async fn process(&mut self) {
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
            let response = generator.handle(batch).await;
            assert!(response.batch_item_failures.is_empty());
        }
    }

    /// Creates the data that the operation usually finds.
    async fn prepare(&mut self, operation: Operation) {
        match operation {
            Operation::Event | Operation::File => {}
            Operation::Duplicate => self.submit(0).await,
            // As many turns as are read to find the previous one.
            Operation::Turn | Operation::FollowUp => {
                for number in 0..25 {
                    self.register(number, QUESTIONS[number % QUESTIONS.len()])
                        .await;
                }
            }
            Operation::Reaction | Operation::Signal => self.register(0, QUESTIONS[0]).await,
            Operation::OtherReaction => {
                self.register(0, QUESTIONS[0]).await;
                self.react(before, "not_ok").await;
            }
            Operation::OtherSignal => {
                self.register(0, QUESTIONS[0]).await;
                self.signal(before, "one").await;
            }
        }
        self.process().await;
    }

    async fn operation(&mut self, operation: Operation) {
        match operation {
            Operation::Event => self.submit(0).await,
            Operation::Duplicate => self.submit(1).await,
            Operation::Turn => {
                self.prompt().await;
                self.register(25, OTHER).await;
            }
            Operation::FollowUp => {
                self.prompt().await;
                self.register(25, "No, that's wrong.").await;
            }
            Operation::Reaction | Operation::OtherReaction => self.react(now, "ok").await,
            Operation::Signal | Operation::OtherSignal => self.signal(now, "other").await,
            Operation::File => {
                let importer = self.engine.importer(self.store.clone());
                import_with(&self.engine, &importer, Vec::from("no event\n"), None).await;
            }
        }
        self.process().await;
    }

    async fn submit(&self, number: u128) {
        let mut event = acceptance("ada");
        event["feedbackId"] = json!(Uuid::from_u128(number));
        event["artifactId"] = json!("artifact");
        let submit = "/v1/feedback/submit";
        self.request(now, Method::POST, submit, event).await;
    }

    /// The requests of an agent before it answers.
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

/// The partitions that an operation uses.
async fn touches(shared: &Engine, operation: Operation) -> Touches {
    let mut world = World::new(shared).await;
    world.prepare(operation).await;
    world.touched.take();
    world.operation(operation).await;
    let mut seen = world.touched.take();
    // A process writes the marker of a month only once.
    let (tenant, project) = (
        "acme".try_into().unwrap(),
        "order-service".try_into().unwrap(),
    );
    let months = keys::months(&tenant, &project);
    seen.retain(|partition, _| partition.key != months);
    let touches = seen.into_iter().map(|(partition, units)| {
        let kind = kind_of(&world.store, operation, &partition);
        (kind, units)
    });
    touches.collect()
}

/// The kind of a partition that ada's operation uses.
fn kind_of(store: &Store, operation: Operation, partition: &Partition) -> Kind {
    // Their shards depend on the event.
    match partition.index {
        Some(BY_FEED) => return Kind::Feed,
        Some(BY_HOUR) => return Kind::Hour,
        _ => {}
    }
    let last = partition.key.rsplit('#').next().unwrap();
    let message = match operation {
        Operation::Turn | Operation::FollowUp => "m-25",
        _ => "m-0",
    };
    // The ids of imports and events are random.
    let names = Names::new(now(), "ada", "c", (message, "trace", last));
    let event = last.parse().unwrap_or_default();
    let known = KINDS
        .iter()
        .find(|(kind, _)| names.partition(store, *kind, event) == *partition);
    let known = known
        .unwrap_or_else(|| panic!("{operation:?} touches {partition:?}, which is not documented"));
    known.0
}

/// A row of the table.
fn row(name: &str, load: Load, full: &str) -> String {
    let Units { reads, writes } = load.busiest;
    let share = (writes / LIMIT.writes).max(reads / LIMIT.reads) * 100.0;
    let partitions = load.partitions;
    format!("| {name} | {partitions} | {writes:.0} | {reads:.0} | {share:.0} % | {full} |\n")
}

/// How often per second each operation may use one partition of a kind.
fn full(kind: Kind, seen: &BTreeMap<Operation, Touches>) -> String {
    let mut full: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (operation, name, ..) in OPERATIONS {
        let of_kind = seen[&operation]
            .iter()
            .filter(|(touched, _)| *touched == kind);
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

const DOCUMENTED: PageTable = PageTable {
    page: "performance.md",
    table: "keys",
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_partition_exceeds_its_throughput() {
    let engine = Engine::start().await;
    let mut touched = BTreeMap::new();
    for (operation, ..) in OPERATIONS {
        touched.insert(operation, touches(&engine, operation).await);
    }
    let operations: Vec<_> = OPERATIONS
        .iter()
        .map(|(operation, _, place, times)| (&touched[operation], *place, *times))
        .collect();
    let second = |shards| {
        let store = engine.store.clone().with_shards(shards);
        second(&operations, &mut Crowd::new(1, now()), &store)
    };
    let (loads, by_default) = (second(SHARDS), second(DEFAULT_SHARDS));
    let mut table = String::from(
        "| partition of | touched | writes | reads | of the limit | reaches the limit at, in operations a second |\n\
         |---|---|---|---|---|---|\n",
    );
    for (kind, name) in KINDS {
        let load = loads[&kind];
        let Units { reads, writes } = load.busiest;
        assert!(
            writes <= LIMIT.writes && reads <= LIMIT.reads,
            "{name}: {load:?}"
        );
        // The ids of events and messages are unique, so each partition is used once.
        let full = match kind {
            Kind::Event | Kind::Message => String::new(),
            _ => full(kind, &touched),
        };
        table += &row(name, load, &full);
        if kind == Kind::Markers {
            let name = format!("… of {DEFAULT_SHARDS}, as by default");
            table += &row(&name, by_default[&kind], "");
        }
    }
    println!("{table}");
    let documented = DOCUMENTED.read_or_write(&table);
    assert_eq!(documented, table, "the table of the page is outdated");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_workers_for_one_user_all_finish() {
    const WORKERS: u32 = 30;
    let engine = Engine::start().await;
    let world = World::new(&engine).await;
    for number in 0..WORKERS {
        let mut event = acceptance("ada");
        event["feedbackId"] = json!(Uuid::from_u128(number.into()));
        let submit = "/v1/feedback/submit";
        world.request(now, Method::POST, submit, event).await;
    }
    let generator = world.generator();
    let batches = submitted(&world.engine, "EVENT").await;
    let batches = batches.into_iter();
    let batches = batches.map(|message| generator.handle(queue::batch([message])));
    for response in join_all(batches).await {
        assert!(response.batch_item_failures.is_empty());
    }
    let (tenant, user) = ("acme".try_into().unwrap(), "ada".try_into().unwrap());
    let owner = UserRef::new(&tenant, &user);
    let newest = world.store.newest_version(owner, Freshness::Latest);
    assert_eq!(newest.await.unwrap().number, u64::from(WORKERS));
}
