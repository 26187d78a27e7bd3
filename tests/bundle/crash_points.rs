//! Every call of every handler fails, in every way; whoever was not answered tries again, and the store is
//! that of a run in which nothing failed.
//!
//! `docs/reliability.md` has the table of what was visited. `HEARBACK_WRITE_DOCS=1 cargo test -p
//! hearback-tests --test bundle crash_points` writes it.

use std::collections::BTreeMap;
use std::fmt::Write;

use aws_lambda_events::sqs::{SqsEvent, SqsMessage};
use aws_sdk_dynamodb::types::AttributeValue;
use axum::Router;
use axum::http::{Method, StatusCode};
use chrono::{DateTime, TimeDelta, Utc};
use futures::stream::{self, StreamExt};
use hearback_batch::{Importer, Ingest, Intake, notification};
use hearback_lambda::aws::Aws;
use hearback_lambda::clock::Clock;
use hearback_lambda::dead_letters::DeadLetters;
use hearback_lambda::http::service;
use hearback_lambda::{App, WithBlobs};
use hearback_signals::Generator;
use hearback_storage::files::import_key;
use hearback_storage::{Blobs, Store};
use hearback_tests::engine::Engine;
use hearback_tests::events::{acceptance, ingested};
use hearback_tests::faults::{Fault, Faults};
use hearback_tests::functions::call;
use hearback_tests::page::Told;
use hearback_tests::queue::{self, carried};
use hearback_tests::turns::{SIGNALS, message, path};
use serde_json::{Value, json};

/// Worlds that are looked at side by side.
const SIDE_BY_SIDE: usize = 4;
/// How often whoever was not answered tries again.
const TRIES: usize = 4;

/// What is done while calls fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Submit,
    Batch,
    Ingest,
    Import,
    Register,
    RegisterNext,
    React,
    Replace,
    Clear,
    Infer,
    Say,
    SayOtherwise,
    TakeBack,
    ChangePreferences,
    WorkOffEvents,
    WorkOffReactions,
    WorkOffSignals,
}

const DEEDS: [(Deed, &str); 17] = [
    (Deed::Submit, "submit an event"),
    (
        Deed::Batch,
        "take a batch of three events, one of them known",
    ),
    (
        Deed::Ingest,
        "take a message of three events, one of them none",
    ),
    (
        Deed::Import,
        "import a file of five lines, one of them no event",
    ),
    (Deed::Register, "register a turn with a message"),
    (
        Deed::RegisterNext,
        "register the next turn, which rejects the one before",
    ),
    (Deed::React, "react"),
    (Deed::Replace, "replace a reaction"),
    (Deed::Clear, "clear a reaction"),
    (Deed::Infer, "infer a reaction from a message"),
    (Deed::Say, "say something of a message"),
    (Deed::SayOtherwise, "say it otherwise"),
    (Deed::TakeBack, "take it back"),
    (Deed::ChangePreferences, "change preferences"),
    (
        Deed::WorkOffEvents,
        "signal generator: three events of a user, one of them a duplicate",
    ),
    (
        Deed::WorkOffReactions,
        "signal generator: a reaction and the one that replaced it, mirrored",
    ),
    (
        Deed::WorkOffSignals,
        "signal generator: a signal and the one that replaced it",
    ),
];

/// All that happens, happens at this time: 2096-01-04T09:10:02Z, or else a few minutes are enough for the
/// engine, which has a clock of its own, to delete what expired since.
pub const TIME: i64 = 3_976_506_602;

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(TIME, 0).unwrap()
}

/// What was there before was said a minute before: two acts of one instant would be one.
fn before() -> DateTime<Utc> {
    now() - TimeDelta::minutes(1)
}

/// The functions, with clients that may fail.
pub struct Hands {
    blobs: Blobs,
    pub functions: Router,
    pub generator: Generator,
    ingest: Ingest,
    importer: Importer,
}

impl Hands {
    fn of(engine: &Engine, faults: &Faults) -> Self {
        Self::at(engine, faults, Clock::of(now))
    }

    pub fn at(engine: &Engine, faults: &Faults, clock: Clock) -> Self {
        let config = |url: &str| faults.config(&Aws::local(url).config());
        let dynamodb = aws_sdk_dynamodb::Client::new(&config(&engine.endpoints.dynamodb));
        let sqs = aws_sdk_sqs::Client::new(&config(&engine.endpoints.sqs));
        let s3 = aws_sdk_s3::config::Builder::from(&config(&engine.endpoints.s3));
        let s3 = aws_sdk_s3::Client::from_conf(s3.force_path_style(true).build());
        let store = Store::new(dynamodb, engine.names.table());
        let blobs = Blobs::new(s3, engine.names.bucket());
        let app = App {
            clock,
            ..engine.app(store.clone())
        };
        let letters = |url: &str| DeadLetters::new(sqs.clone(), url);
        let intake = Intake::from(app.clone());
        let whole = WithBlobs {
            app,
            blobs: blobs.clone(),
        };
        let functions = hearback_local::gateway::functions(whole, engine.erasures());
        Self {
            generator: Generator::new(
                store,
                blobs.clone(),
                letters(&engine.queues.dead_letters),
                clock,
            ),
            ingest: Ingest::new(intake.clone(), letters(&engine.queues.ingest_dead_letters)),
            importer: Importer::new(intake, blobs.clone(), sqs, &engine.queues.imports),
            functions: service(functions),
            blobs,
        }
    }

    /// Makes a request; answers whether it was answered with anything but a fault.
    async fn request(&self, method: Method, path: &str, body: &Value) -> bool {
        let caller = ("order-service", "feedback:on-behalf");
        let (status, _) = call(&self.functions, caller, (method, path), body).await;
        // A repeat of what was done may be told so.
        status.is_success() || status == StatusCode::CONFLICT
    }
}

/// An event whose names are always the same.
fn event(number: u8, artifact: &str) -> Value {
    let mut event = acceptance("ada");
    event["feedbackId"] = json!(format!("00000000-0000-4000-8000-0000000000{number:02}"));
    event["artifactId"] = json!(artifact);
    event["timestamp"] = json!("2096-01-04T09:00:00Z");
    event
}

fn said() -> (String, Value) {
    let mut turn = message("m", "a question", "an answer");
    turn["ts"] = json!("2096-01-04T09:00:00Z");
    turn["trace_id"] = json!("4f3a");
    turn["turn_log"] = json!({"text": "log", "entries": []});
    (path("c", "t"), turn)
}

fn reaction(verdict: Option<&str>) -> (String, Value) {
    let body = json!({"reaction": verdict, "text": verdict.map(|_| "why"), "mirror": true});
    (format!("{}/feedback", path("c", "t")), body)
}

fn edit(reason: &str) -> Value {
    json!({"message_id": "m", "signal": "edit", "reason": reason})
}

/// The messages that the pipe sends of the rows of a kind, in the order of their keys.
pub async fn submitted(engine: &Engine, kind: &str) -> Vec<SqsMessage> {
    let scanned = engine.clients.dynamodb.scan();
    let scanned = scanned.table_name(engine.names.table());
    let scanned = scanned
        .filter_expression("begins_with(SK, :kind)")
        .expression_attribute_values(":kind", AttributeValue::S(kind.to_owned()));
    let mut rows: Vec<_> = scanned.send().await.unwrap().items().to_vec();
    rows.sort_by_key(|row| format!("{:?}{:?}", row["PK"], row["SK"]));
    rows.iter().map(|row| carried(row, "INSERT")).collect()
}

/// A table, a bucket and queues in which something is about to be done.
struct World {
    engine: Engine,
    deed: Deed,
    messages: Vec<SqsMessage>,
}

impl World {
    async fn new(beside: &Engine, deed: Deed) -> Self {
        let engine = beside.beside().await;
        let hands = Hands::of(&engine, &Faults::none());
        let mut messages = Vec::new();
        let post = Method::POST;
        let submit = "/v1/feedback/submit";
        let (turn, body) = said();
        match deed {
            Deed::Submit | Deed::Ingest | Deed::Register | Deed::ChangePreferences => {}
            Deed::Batch => assert!(hands.request(post.clone(), submit, &event(1, "a")).await),
            Deed::Import => {
                let mut lines: Vec<_> = (1..5).map(|n| event(n, "a").to_string()).collect();
                lines.insert(2, "no event".to_owned());
                let key = import_key(&"acme".try_into().unwrap(), "events.jsonl").unwrap();
                let file = lines.join("\n").into_bytes();
                hands.blobs.put_file(&key, file).await.unwrap();
                let send = engine.clients.sqs.send_message();
                let send = send.queue_url(&engine.queues.imports);
                let send = send.message_body(notification(&key, None));
                send.send().await.unwrap();
            }
            Deed::WorkOffEvents => {
                for (number, artifact) in [(1, "a"), (2, "a"), (3, "b")] {
                    assert!(
                        hands
                            .request(post.clone(), submit, &event(number, artifact))
                            .await
                    );
                }
                messages = submitted(&engine, "EVENT").await;
            }
            _ => assert!(hands.request(Method::PUT, &turn, &body).await),
        }
        let verdicts: &[&str] = match deed {
            Deed::Replace | Deed::Clear => &["ok"],
            Deed::WorkOffReactions => &["ok", "not_ok"],
            _ => &[],
        };
        let earlier = Hands::at(&engine, &Faults::none(), Clock::of(before));
        for (at, verdict) in verdicts.iter().enumerate() {
            let hands = if at == 0 { &earlier } else { &hands };
            let (path, body) = reaction(Some(verdict));
            assert!(hands.request(post.clone(), &path, &body).await);
            if deed == Deed::WorkOffReactions {
                messages.extend(submitted(&engine, "REACTION#").await);
            }
        }
        let reasons: &[&str] = match deed {
            Deed::SayOtherwise | Deed::TakeBack => &["one"],
            Deed::WorkOffSignals => &["one", "other"],
            _ => &[],
        };
        for (at, reason) in reasons.iter().enumerate() {
            let hands = if at == 0 { &earlier } else { &hands };
            assert!(hands.request(post.clone(), SIGNALS, &edit(reason)).await);
            if deed == Deed::WorkOffSignals {
                messages.extend(submitted(&engine, "SIGNAL#").await);
            }
        }
        Self {
            engine,
            deed,
            messages,
        }
    }

    /// Does it; answers whether the caller knows that it is done.
    async fn act(&self, hands: &Hands) -> bool {
        let (post, put) = (Method::POST, Method::PUT);
        let (turn, body) = said();
        match self.deed {
            Deed::Submit => {
                let submit = "/v1/feedback/submit";
                hands.request(post, submit, &event(1, "a")).await
            }
            Deed::Batch => {
                let events = [event(1, "a"), event(2, "a"), event(3, "b")];
                let batch = json!({"events": events});
                let path = ("order-service", "feedback:on-behalf");
                let route = (post, "/v1/feedback/batch");
                let (status, answer) = call(&hands.functions, path, route, &batch).await;
                let results = answer["results"].as_array().cloned().unwrap_or_default();
                // What was not stored is named, and sent again.
                status.is_success() && results.iter().all(|result| result["status"] != "failed")
            }
            Deed::Ingest => {
                let mut none = event(3, "a");
                none["data"]["rating"] = json!(9);
                let mut batch = ingested(&json!({"events": [event(1, "a"), event(2, "b"), none]}));
                batch.records[0].message_id = Some("message".to_owned());
                let sent = now().timestamp_millis().to_string();
                let attributes = &mut batch.records[0].attributes;
                attributes.insert("SentTimestamp".to_owned(), sent);
                hands
                    .ingest
                    .handle(batch)
                    .await
                    .batch_item_failures
                    .is_empty()
            }
            Deed::Import => self.import(hands).await,
            Deed::Register => hands.request(put, &turn, &body).await,
            Deed::RegisterNext => {
                let mut next = message("n", "No, that's wrong.", "another answer");
                next["ts"] = json!("2096-01-04T09:05:00Z");
                hands.request(put, &path("c", "u"), &next).await
            }
            Deed::React => {
                let (path, body) = reaction(Some("ok"));
                hands.request(post, &path, &body).await
            }
            Deed::Replace => {
                let (path, body) = reaction(Some("not_ok"));
                hands.request(post, &path, &body).await
            }
            Deed::Clear => {
                let (path, body) = reaction(None);
                hands.request(post, &path, &body).await
            }
            Deed::Infer => {
                let said = json!({"message": "No, your answer to a question was wrong."});
                let path = "/conversations/acme/order-service/feedback/infer";
                hands.request(post, path, &said).await
            }
            Deed::Say => hands.request(post, SIGNALS, &edit("one")).await,
            Deed::SayOtherwise => hands.request(post, SIGNALS, &edit("other")).await,
            Deed::TakeBack => {
                let gone = format!("{SIGNALS}?message_id=m&signal=edit");
                hands.request(Method::DELETE, &gone, &Value::Null).await
            }
            Deed::ChangePreferences => {
                let change = json!({
                    "preferenceVersion": 0, "globalPreferences": {"detailLevel": "overview"}
                });
                hands.request(put, "/v1/preferences/ada", &change).await
            }
            Deed::WorkOffEvents | Deed::WorkOffReactions | Deed::WorkOffSignals => {
                let mut batch = SqsEvent::default();
                batch.records.clone_from(&self.messages);
                hands
                    .generator
                    .handle(batch)
                    .await
                    .batch_item_failures
                    .is_empty()
            }
        }
    }

    /// Works off what is in the queue; answers whether all of it was.
    async fn import(&self, hands: &Hands) -> bool {
        let (sqs, imports) = (&self.engine.clients.sqs, &self.engine.queues.imports);
        loop {
            match queue::step(sqs, imports, |batch| hands.importer.handle(batch, None)).await {
                None => return true,
                Some(true) => return false,
                Some(false) => {}
            }
        }
    }

    /// Everything that is stored, but for what tells attempts apart; a dead letter that comes twice is one.
    async fn stored(&self, died: bool) -> BTreeMap<String, String> {
        let Engine { clients, names, .. } = &self.engine;
        let mut stored = BTreeMap::new();
        let scanned = clients
            .dynamodb
            .scan()
            .table_name(names.table())
            .send()
            .await;
        for mut item in scanned.unwrap().items.unwrap_or_default() {
            item.remove("attempt");
            let key = format!("{:?} {:?}", item["PK"], item["SK"]);
            let item: BTreeMap<_, _> = item.into_iter().collect();
            let item = format!("{item:?}").replace(&names.bucket(), "bucket");
            stored.insert(key, unnamed(&item));
        }
        let bucket = names.bucket();
        let listed = clients.s3.list_objects_v2().bucket(&bucket).send().await;
        let pointed: Vec<_> = stored.values().cloned().collect();
        for object in listed.unwrap().contents() {
            let key = object.key().unwrap();
            // A process that ends before it deletes the version of a log from which it moved the row leaves
            // it there, unread, until the turn is erased.
            let unread =
                key.starts_with("turn-logs/") && !pointed.iter().any(|row| row.contains(key));
            if died && unread {
                continue;
            }
            let get = clients.s3.get_object().bucket(&bucket).key(key);
            let body = get.send().await.unwrap().body.collect().await.unwrap();
            let body = String::from_utf8_lossy(&body.into_bytes()).into_owned();
            stored.insert(key.to_owned(), body.replace(&bucket, "bucket"));
        }
        for queue in [
            &self.engine.queues.dead_letters,
            &self.engine.queues.ingest_dead_letters,
        ] {
            loop {
                let letters = clients.sqs.receive_message().queue_url(queue);
                let letters = letters.max_number_of_messages(10).send().await.unwrap();
                let letters = letters.messages.unwrap_or_default();
                if letters.is_empty() {
                    break;
                }
                for letter in letters {
                    stored.insert(letter.body.unwrap_or_default(), "dead letter".to_owned());
                }
            }
        }
        stored
    }
}

/// An item without the names that workers draw for their files.
fn unnamed(item: &str) -> String {
    const BEFORE: &str = "rejects-0000000001-";
    match item.split_once(BEFORE) {
        Some((before, drawn)) => {
            let after = drawn.get(uuid::fmt::Hyphenated::LENGTH..).unwrap();
            format!("{before}{BEFORE}{after}")
        }
        None => item.to_owned(),
    }
}

/// Does something with a fault at one call, and again until it is done.
async fn ends(beside: &Engine, deed: Deed, faults: &Faults) -> BTreeMap<String, String> {
    let world = World::new(beside, deed).await;
    let mut done = world.act(&Hands::of(&world.engine, faults)).await && !faults.died();
    for _ in 0..TRIES {
        if done {
            return world.stored(faults.died()).await;
        }
        done = world.act(&Hands::of(&world.engine, &Faults::none())).await;
    }
    panic!("{deed:?} is never done after {faults:?}");
}

/// What a deed was seen with.
struct Visited {
    what: &'static str,
    calls: u32,
    points: usize,
}

async fn visit(beside: &Engine, (deed, what): (Deed, &'static str)) -> Visited {
    let counted = Faults::none();
    let untroubled = ends(beside, deed, &counted).await;
    let calls = counted.calls();
    let points = Fault::ALL
        .into_iter()
        .flat_map(|fault| (1..=calls).map(move |at| Faults::at(at, fault)));
    let points: Vec<_> = points.collect();
    let looked_at = stream::iter(&points).for_each_concurrent(SIDE_BY_SIDE, |faults| {
        let untroubled = &untroubled;
        async move {
            let ended = ends(beside, deed, faults).await;
            for (key, value) in untroubled.iter().chain(&ended) {
                assert_eq!(
                    (untroubled.get(key), ended.get(key)),
                    (Some(value), Some(value)),
                    "{deed:?}, {faults:?}: {key}"
                );
            }
        }
    });
    looked_at.await;
    Visited {
        what,
        calls,
        points: points.len(),
    }
}

/// The table of the page.
fn table(visited: &[Visited]) -> String {
    let mut table = String::from("| what | calls | points |\n|---|---|---|\n");
    for Visited {
        what,
        calls,
        points,
    } in visited
    {
        writeln!(table, "| {what} | {calls} | {points} |").unwrap();
    }
    let points: usize = visited.iter().map(|visited| visited.points).sum();
    writeln!(table, "| all | | {points} |").unwrap();
    table
}

/// A line of the table.
struct Line<'a> {
    what: &'a str,
    points: usize,
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Self {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        Self {
            what: cells[1],
            points: cells[3].parse().unwrap(),
        }
    }
}

/// One call more or less, in each way.
const SLACK: usize = Fault::ALL.len();
const TOLD: Told = Told {
    page: "reliability.md",
    table: "crash points",
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_call_fails_the_store_is_that_of_a_run_in_which_none_did() {
    let engine = Engine::start().await;
    let mut visited = Vec::new();
    for deed in DEEDS {
        visited.push(visit(&engine, deed).await);
    }
    let table = table(&visited);
    println!("{table}");
    let told = TOLD.or_written(&table);
    for (told, seen) in told.lines().zip(table.lines()).skip(2) {
        let (told, seen) = (Line::of(told), Line::of(seen));
        assert_eq!(told.what, seen.what, "the page is not that of this test");
        // None may go missing. A connection that the engine closed costs a call more at times.
        assert!(seen.points + SLACK >= told.points, "{}", told.what);
    }
    assert_eq!(told.lines().count(), table.lines().count());
}
