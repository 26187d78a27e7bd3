//! How much the bundle takes, against the bare engine it stands on, in one run.
//!
//! `cargo bench -p hearback-tests --bench throughput`
//!
//! 1. *Bare puts*: conditional `PutItem`s of an item as large as an event, through the SDK, to the
//!    engine of a running `hearback` (release build, durable folder, a table with a stream).
//! 2. *Submit*: `POST /v1/feedback/submit` over HTTP to the same process, events of many users.
//! 3. *End to end*: from the first submit until the last event is processed.
//!
//! The phases are run in turn, several times, and the medians are compared. It fails if submits
//! are slower than half of bare puts, or end to end slower than 0.6 × bare puts ÷ writes an event.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::types::QueueAttributeName;
use futures::stream::{self, StreamExt};
use hearback_lambda::aws::Aws;
use hearback_local::engines::Endpoints;
use hearback_local::names::Names;
use hearback_local::token::{Claims, KEY_FILE, Tokens};
use hearback_storage::Store;
use hearback_tests::events::{acceptance, id};
use hearback_tests::process::Process;
use serde_json::Value;
use uuid::Uuid;

/// Requests under way at once.
const CONCURRENCY: usize = 16;
/// Writes for each event that shares nothing: event, claim, version, outcome (`capacity.rs`).
const WRITES_AN_EVENT: f64 = 4.0;
const SUBMIT_AT_LEAST: f64 = 0.5;
const END_TO_END_AT_LEAST: f64 = 0.6;

struct Bench {
    http: reqwest::Client,
    dynamodb: aws_sdk_dynamodb::Client,
    sqs: aws_sdk_sqs::Client,
    signals: String,
    address: String,
    token: String,
    events: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    let number = |name: &str, default| {
        let given = std::env::var(name).ok().and_then(|text| text.parse().ok());
        given.unwrap_or(default)
    };
    let (rounds, events) = (number("ROUNDS", 5), number("EVENTS", 2000));
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let process = Process::serve(folder.path(), 0).await;
    let bench = Bench::of(&process, folder.path(), events);
    bench.create_bare_table().await;

    bench.bare_puts().await;
    bench.submit_all(bench.bodies("warm")).await;
    bench.settled().await;
    let mut rates: [Vec<f64>; 3] = Default::default();
    println!("{events} events a round, {CONCURRENCY} at a time\n");
    println!("round   bare puts/s   submits/s   end to end/s");
    for round in 1..=rounds {
        let bare = bench.rate(bench.bare_puts().await);
        let bodies = bench.bodies(&format!("round-{round}"));
        let started = Instant::now();
        let submitted = bench.submit_all(bodies).await;
        let submit = bench.rate(submitted);
        bench.settled().await;
        let whole = bench.rate(started.elapsed());
        println!("{round:>5} {bare:>13.0} {submit:>11.0} {whole:>14.0}");
        for (rates, rate) in rates.iter_mut().zip([bare, submit, whole]) {
            rates.push(rate);
        }
    }
    let [bare, submit, whole] = rates.map(median);
    let submit_ratio = submit / bare;
    let whole_ratio = whole / (bare / WRITES_AN_EVENT);
    println!("\nmedian {bare:>12.0} {submit:>11.0} {whole:>14.0}\n");
    println!(
        "submits ÷ bare puts                            {submit_ratio:.2} (at least {SUBMIT_AT_LEAST})"
    );
    println!(
        "end to end ÷ (bare puts ÷ {WRITES_AN_EVENT} writes an event)  {whole_ratio:.2} (at least {END_TO_END_AT_LEAST})"
    );
    if submit_ratio >= SUBMIT_AT_LEAST && whole_ratio >= END_TO_END_AT_LEAST {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

const BARE_TABLE: &str = "bare";

impl Bench {
    fn of(process: &Process, folder: &Path, events: usize) -> Self {
        let endpoints = std::fs::read(folder.join("endpoints.json")).unwrap();
        let endpoints: Endpoints = serde_json::from_slice(&endpoints).unwrap();
        let tokens = Tokens::new(&std::fs::read(folder.join(KEY_FILE)).unwrap());
        let token = tokens.sign(Claims {
            sub: "back-end".to_owned(),
            tenant: "acme".to_owned(),
            projects: Vec::new(),
            scope: "feedback:on-behalf".to_owned(),
        });
        Self {
            http: reqwest::Client::new(),
            dynamodb: aws_sdk_dynamodb::Client::new(&Aws::local(endpoints.dynamodb).config()),
            signals: format!(
                "{}/000000000000/{}",
                endpoints.sqs,
                Names::default().signals()
            ),
            sqs: aws_sdk_sqs::Client::new(&Aws::local(endpoints.sqs).config()),
            address: process.address.clone(),
            token: token.unwrap(),
            events,
        }
    }

    fn rate(&self, took: Duration) -> f64 {
        self.events as f64 / took.as_secs_f64()
    }

    /// A table as ours is, but for what listens to its stream.
    async fn create_bare_table(&self) {
        let store = Store::new(self.dynamodb.clone(), BARE_TABLE);
        store.create_table().await.unwrap();
    }

    async fn bare_puts(&self) -> Duration {
        let body = acceptance("user-123").to_string();
        let started = Instant::now();
        stream::iter(0..self.events)
            .for_each_concurrent(CONCURRENCY, |_| async {
                let key = format!("EVENT#acme#{}", Uuid::new_v4());
                self.dynamodb
                    .put_item()
                    .table_name(BARE_TABLE)
                    .item("PK", AttributeValue::S(key))
                    .item("SK", AttributeValue::S("EVENT".to_owned()))
                    .item("core", AttributeValue::S(body.clone()))
                    .condition_expression("attribute_not_exists(PK)")
                    .send()
                    .await
                    .unwrap();
            })
            .await;
        started.elapsed()
    }

    /// Events of users of their own, so that no two share a preference version.
    fn bodies(&self, round: &str) -> Vec<String> {
        (0..self.events)
            .map(|n| acceptance(&format!("{round}-{n}")).to_string())
            .collect()
    }

    async fn submit_all(&self, bodies: Vec<String>) -> Duration {
        let url = format!("http://{}/v1/feedback/submit", self.address);
        let started = Instant::now();
        stream::iter(bodies)
            .for_each_concurrent(CONCURRENCY, |body| async {
                let request = self.http.post(&url).bearer_auth(&self.token).body(body);
                assert_eq!(request.send().await.unwrap().status(), 202);
            })
            .await;
        started.elapsed()
    }

    /// Waits until everything submitted before is processed: an event that is submitted last is,
    /// so the stream was carried that far, and the queue is empty.
    async fn settled(&self) {
        let last = acceptance("last");
        let url = format!("http://{}/v1/feedback", self.address);
        let submit = self.http.post(format!("{url}/submit"));
        submit
            .bearer_auth(&self.token)
            .json(&last)
            .send()
            .await
            .unwrap();
        loop {
            let read = self.http.get(format!("{url}/{}", id(&last)));
            let read = read.bearer_auth(&self.token).send().await.unwrap();
            let processed = read.json::<Value>().await.unwrap()["status"] == "processed";
            if processed && self.queued().await == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Messages that wait for the signal generator, or are with it.
    async fn queued(&self) -> u32 {
        let counts = self
            .sqs
            .get_queue_attributes()
            .queue_url(&self.signals)
            .attribute_names(QueueAttributeName::ApproximateNumberOfMessages)
            .attribute_names(QueueAttributeName::ApproximateNumberOfMessagesNotVisible)
            .send()
            .await
            .unwrap();
        let counts = counts.attributes.unwrap_or_default();
        counts
            .values()
            .map(|count| count.parse::<u32>().unwrap())
            .sum()
    }
}
