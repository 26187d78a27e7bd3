//! Measures the speed and memory of an import, compared with puts to the bare engine in the same run, and checks that
//! a bundle that is killed during the import has the same result.
//!
//! `EVENTS=1000000 KILLS=3 cargo bench -p hearback-tests --bench import`
//!
//! 1. *Bare puts*: conditional `PutItem`s of an item as large as an event, through the SDK, to the
//!    engine of a running `hearback` (release build, durable folder).
//! 2. *Import*: `hearback import` of a generated file into the same process, with 2 % duplicates and 1 %
//!    invalid lines. The counts must be exact.
//! 3. The same file into another folder, whose process is killed `KILLS` times with `kill -9` and restarted.
//!    It must have the same events as the first.
//!
//! Before the import and during it, single events are submitted one after the other, and the time until each is
//! processed is measured. The p99 of both and their ratio are printed; nothing fails because of them.
//!
//! It fails if an import is slower than 0.6 of bare puts, or if the process takes 400 MB at any time.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::AttributeValue;
use futures::stream::{self, StreamExt};
use hearback_domain::events::import::ImportReport;
use hearback_storage::{Store, keys};
use hearback_tests::events::{acceptance, id};
use hearback_tests::generate::{Expected, Lines, Mix};
use hearback_tests::options::number;
use hearback_tests::process::{Process, run};
use hearback_tests::served::{Item, Served, dynamodb, items};
use reqwest::Method;
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Concurrent puts, as many as an import makes.
const CONCURRENCY: usize = 32;
const BARE_PUTS: usize = 5_000;
/// Events that are submitted one after the other before the import.
const IDLE_EVENTS: usize = 200;
/// Pause between two of them, and between two reads of an outcome.
const LIVE_PAUSE: Duration = Duration::from_millis(50);
const POLL_PAUSE: Duration = Duration::from_millis(5);
const RATE_AT_LEAST: f64 = 0.6;
const MEMORY_AT_MOST: u64 = 400;
const BARE_TABLE: &str = "bare";
const TABLE: &str = "hearback";
const TENANT: &str = "acme";

#[tokio::main]
async fn main() -> ExitCode {
    let (events, kills) = (number("EVENTS", 100_000), number("KILLS", 3));
    let kills = u32::try_from(kills).unwrap_or_default();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (file, expected) = generate(folder.path(), events);
    let size = std::fs::metadata(&file).unwrap().len() / 1_000_000;
    println!("{events} lines, {size} MB; expected: {expected:?}\n");

    let data = folder.path().join("undisturbed");
    let process = Process::serve(&data, 0).await;
    let client = dynamodb(&data);
    let mut bare = bare_puts(&client).await;
    let live = Live(Served::by(&process, &data));
    let mut idle = Vec::new();
    for _ in 0..IDLE_EVENTS {
        idle.push(live.process().await);
    }
    let began = Instant::now();
    let mut importing = std::pin::pin!(import(&file, &data));
    let mut busy = Vec::new();
    let report = loop {
        tokio::select! {
            report = &mut importing => break report.expect("an undisturbed import"),
            time = live.process() => busy.push(time),
        }
    };
    let took = began.elapsed();
    let memory = process.peak_memory();
    assert_eq!(counts_of(&report), expected);
    let rate = events as f64 / took.as_secs_f64();
    bare.sort_by(f64::total_cmp);
    let bare = bare[bare.len() / 2];
    println!(
        "bare puts/s {bare:>8.0}\nlines/s     {rate:>8.0}  ({took:.1?})\nmemory      {memory:>8} MB\n"
    );

    print_live(&mut idle, &mut busy);
    let undisturbed = stored(&client, &file).await;
    process.kill().await;
    assert_eq!(undisturbed.len() as u64, expected.queued);

    let mut max_memory = memory;
    if kills > 0 {
        let (interrupted, memory) =
            import_with_kills(&file, &folder.path().join("killed"), kills, took).await;
        max_memory = max_memory.max(memory);
        assert_eq!(counts_of(&interrupted), expected);
        let data = folder.path().join("killed");
        let process = Process::serve(&data, 0).await;
        let stored = stored(&dynamodb(&data), &file).await;
        process.kill().await;
        assert!(stored == undisturbed, "the tables differ");
        println!(
            "killed {kills} times: the same {} events, the same counts, {memory} MB\n",
            stored.len()
        );
    }
    let ratio = rate / bare;
    println!("lines ÷ bare puts   {ratio:.2} (at least {RATE_AT_LEAST})");
    println!("memory              {max_memory} MB (at most {MEMORY_AT_MOST})");
    if ratio >= RATE_AT_LEAST && max_memory <= MEMORY_AT_MOST {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Submits single events to a bundle.
struct Live(Served);

impl Live {
    /// Submits an event, and returns how long it takes until the event is processed. Waits a little before.
    async fn process(&self) -> Duration {
        tokio::time::sleep(LIVE_PAUSE).await;
        let event = acceptance("live");
        let path = format!("/v1/feedback/{}", id(&event));
        let submit = self.0.by_back_end(Method::POST, "/v1/feedback/submit");
        let began = Instant::now();
        let submitted = submit.json(&event).send().await.unwrap();
        assert_eq!(submitted.status(), 202);
        loop {
            let read = self.0.by_back_end(Method::GET, &path).send().await.unwrap();
            let event: Value = read.json().await.unwrap();
            if matches!(event["status"].as_str(), Some("processed" | "deduplicated")) {
                return began.elapsed();
            }
            tokio::time::sleep(POLL_PAUSE).await;
        }
    }
}

/// Prints how long live events take without and with an import.
fn print_live(idle: &mut [Duration], busy: &mut [Duration]) {
    let [idle_p99, busy_p99] = [&mut *idle, &mut *busy].map(|times| {
        times.sort_unstable();
        let at = times.len() * 99 / 100;
        times.get(at).copied().unwrap_or_default()
    });
    println!(
        "p99 of a live event until it is processed: {idle_p99:.0?} alone ({}), {busy_p99:.0?} during the import ({}), {:.1} times\n",
        idle.len(),
        busy.len(),
        busy_p99.as_secs_f64() / idle_p99.as_secs_f64()
    );
}

fn generate(folder: &Path, events: usize) -> (PathBuf, Expected) {
    let file = folder.join("events.jsonl");
    let mut out = BufWriter::new(std::fs::File::create(&file).unwrap());
    let mut lines = Lines::new(1, Mix::default());
    for line in lines.by_ref().take(events) {
        writeln!(out, "{line}").unwrap();
    }
    out.flush().unwrap();
    (file, lines.expected)
}

/// Rates of bare puts per second.
async fn bare_puts(dynamodb: &aws_sdk_dynamodb::Client) -> Vec<f64> {
    let store = Store::new(dynamodb.clone(), BARE_TABLE);
    store.create_table().await.unwrap();
    let body = acceptance("user-123").to_string();
    let mut rates = Vec::new();
    for _ in 0..5 {
        let began = Instant::now();
        stream::iter(0..BARE_PUTS)
            .for_each_concurrent(CONCURRENCY, |_| async {
                let key = format!("EVENT#acme#{}", Uuid::new_v4());
                let put = dynamodb.put_item().table_name(BARE_TABLE);
                put.item("PK", AttributeValue::S(key))
                    .item("SK", AttributeValue::S("EVENT".to_owned()))
                    .item("core", AttributeValue::S(body.clone()))
                    .condition_expression("attribute_not_exists(PK)")
                    .send()
                    .await
                    .unwrap();
            })
            .await;
        rates.push(BARE_PUTS as f64 / began.elapsed().as_secs_f64());
    }
    // The first round is a warm-up.
    rates.split_off(1)
}

/// Runs `hearback import`, and returns its report; `None` if the bundle was killed.
async fn import(file: &Path, data: &Path) -> Option<ImportReport> {
    let ended = run([Path::new("import"), file, Path::new("--data"), data]).await;
    ended
        .status
        .success()
        .then(|| serde_json::from_slice(&ended.stdout).unwrap())
}

/// Imports into a bundle that is killed this many times during the usual time of an import.
async fn import_with_kills(
    file: &Path,
    data: &Path,
    kills: u32,
    duration: Duration,
) -> (ImportReport, u64) {
    let mut memory = 0;
    for _ in 0..kills {
        let process = Process::serve(data, 0).await;
        let importing = import(file, data);
        let (importing, ()) = tokio::join!(importing, async {
            tokio::time::sleep(duration / (kills + 1)).await;
            memory = memory.max(process.peak_memory());
            process.kill().await;
        });
        if let Some(report) = importing {
            return (report, memory);
        }
    }
    let process = Process::serve(data, 0).await;
    let report = import(file, data)
        .await
        .expect("an import after the last kill");
    memory = memory.max(process.peak_memory());
    process.kill().await;
    (report, memory)
}

fn counts_of(report: &ImportReport) -> Expected {
    Expected {
        queued: report.counts.queued,
        duplicates: report.counts.duplicates,
        rejected: report.counts.rejected,
    }
}

/// Digests of the stored events of a file, without attributes that depend on the attempt.
async fn stored(dynamodb: &aws_sdk_dynamodb::Client, file: &Path) -> Vec<[u8; 8]> {
    let tenant = TENANT.try_into().unwrap();
    let mut ids = BTreeSet::new();
    for line in BufReader::new(std::fs::File::open(file).unwrap()).lines() {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap_or_default();
        let id = event["feedbackId"].as_str().map(Uuid::try_parse);
        ids.extend(id.and_then(Result::ok));
    }
    let keys = ids
        .into_iter()
        .map(|id| (keys::event(&tenant, id), keys::EVENT.to_owned()));
    let items = items(dynamodb, TABLE, keys).await;
    let mut events: Vec<_> = items.iter().map(digest).collect();
    events.sort_unstable();
    events
}

fn digest(item: &Item) -> [u8; 8] {
    let mut core: Value = serde_json::from_str(item["core"].as_s().unwrap()).unwrap();
    core.as_object_mut().unwrap().remove("receivedAt");
    let digest = Sha256::digest(format!("{core}{:?}", item.get("text")));
    *digest.first_chunk().unwrap()
}
