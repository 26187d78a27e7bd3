//! Measures the throughput of the bundle, compared with its bare engine in the same run.
//!
//! `cargo bench -p hearback-tests --bench throughput`
//!
//! 1. *Bare puts*: conditional `PutItem`s of an item as large as an event, through the SDK, to the
//!    engine of a running `hearback` (release build, durable folder, a table with a stream).
//! 2. *Submit*: `POST /v1/feedback/submit` over HTTP to the same process, events of many users.
//! 3. *End to end*: from the first submit until the last event is processed.
//!
//! The phases run in turn, several times, and the medians are compared. It fails if submits are slower than half of
//! bare puts, or end to end slower than 0.6 × bare puts ÷ writes an event.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::AttributeValue;
use futures::stream::{self, StreamExt};
use hearback_storage::Store;
use hearback_tests::events::acceptance;
use hearback_tests::options::number;
use hearback_tests::process::Process;
use hearback_tests::served::Served;
use reqwest::Method;
use uuid::Uuid;

/// Concurrent requests.
const CONCURRENCY: usize = 16;
/// Writes of an event that shares nothing: event, claim, version and outcome (`capacity.rs`).
const WRITES_AN_EVENT: f64 = 4.0;
const SUBMIT_AT_LEAST: f64 = 0.5;
const END_TO_END_AT_LEAST: f64 = 0.6;

struct Bench {
    served: Served,
    events: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    let (rounds, events) = (number("ROUNDS", 5), number("EVENTS", 2000));
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let process = Process::serve(folder.path(), 0).await;
    let bench = Bench {
        served: Served::by(&process, folder.path()),
        events,
    };
    bench.create_bare_table().await;

    bench.bare_puts().await;
    bench.submit_all(bench.bodies("warm")).await;
    bench.served.settled().await;
    let mut rates: [Vec<f64>; 3] = Default::default();
    println!("{events} events a round, {CONCURRENCY} at a time\n");
    println!("round   bare puts/s   submits/s   end to end/s");
    for round in 1..=rounds {
        let bare = bench.rate(bench.bare_puts().await);
        let bodies = bench.bodies(&format!("round-{round}"));
        let started = Instant::now();
        let submitted = bench.submit_all(bodies).await;
        let submit = bench.rate(submitted);
        bench.served.settled().await;
        let end_to_end = bench.rate(started.elapsed());
        println!("{round:>5} {bare:>13.0} {submit:>11.0} {end_to_end:>14.0}");
        for (rates, rate) in rates.iter_mut().zip([bare, submit, end_to_end]) {
            rates.push(rate);
        }
    }
    let [bare, submit, end_to_end] = rates.map(median);
    let submit_ratio = submit / bare;
    let end_to_end_ratio = end_to_end / (bare / WRITES_AN_EVENT);
    println!("\nmedian {bare:>12.0} {submit:>11.0} {end_to_end:>14.0}\n");
    println!(
        "submits ÷ bare puts                            {submit_ratio:.2} (at least {SUBMIT_AT_LEAST})"
    );
    println!(
        "end to end ÷ (bare puts ÷ {WRITES_AN_EVENT} writes an event)  {end_to_end_ratio:.2} (at least {END_TO_END_AT_LEAST})"
    );
    if submit_ratio >= SUBMIT_AT_LEAST && end_to_end_ratio >= END_TO_END_AT_LEAST {
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
    fn rate(&self, took: Duration) -> f64 {
        self.events as f64 / took.as_secs_f64()
    }

    /// A table like the product's, but without readers of its stream.
    async fn create_bare_table(&self) {
        let store = Store::new(self.served.dynamodb.clone(), BARE_TABLE);
        store.create_table().await.unwrap();
    }

    async fn bare_puts(&self) -> Duration {
        let body = acceptance("user-123").to_string();
        let started = Instant::now();
        stream::iter(0..self.events)
            .for_each_concurrent(CONCURRENCY, |_| async {
                let key = format!("EVENT#acme#{}", Uuid::new_v4());
                self.served
                    .dynamodb
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

    /// Events with a user each, so that no two share a preference version.
    fn bodies(&self, round: &str) -> Vec<String> {
        (0..self.events)
            .map(|n| acceptance(&format!("{round}-{n}")).to_string())
            .collect()
    }

    async fn submit_all(&self, bodies: Vec<String>) -> Duration {
        let started = Instant::now();
        stream::iter(bodies)
            .for_each_concurrent(CONCURRENCY, |body| async {
                let submit = (self.served).by_back_end(Method::POST, "/v1/feedback/submit");
                assert_eq!(submit.body(body).send().await.unwrap().status(), 202);
            })
            .await;
        started.elapsed()
    }
}
