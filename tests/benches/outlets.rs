//! Measures whether outlets slow submissions down.
//!
//! `cargo bench -p hearback-tests --bench outlets`, with `NATS_URL` for a server that `hearback nats setup` has prepared.
//!
//! Two bundles (release builds, durable folders) receive the same number of submissions in turn, several times, and the
//! medians of their rates are compared: one has no outlet, the other a webhook, whose target is in this process, and
//! NATS. It fails if submissions are slower than half, or if the target does not receive every message.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt};
use hearback_tests::events::acceptance;
use hearback_tests::options::{given, number};
use hearback_tests::process::{Process, run};
use hearback_tests::served::Served;
use hearback_tests::webhook_target::Target;
use reqwest::Method;

/// Concurrent requests.
const CONCURRENCY: usize = 16;
const RATIO_AT_LEAST: f64 = 0.5;
/// How long the last message may take.
const PATIENCE: Duration = Duration::from_mins(5);

async fn submit(served: &Served, round: &str, events: usize) -> f64 {
    let bodies = (0..events).map(|n| acceptance(&format!("{round}-{n}")).to_string());
    let bodies: Vec<_> = bodies.collect();
    let started = Instant::now();
    stream::iter(bodies)
        .for_each_concurrent(CONCURRENCY, |body| async {
            let submit = served.by_back_end(Method::POST, "/v1/feedback/submit");
            assert_eq!(submit.body(body).send().await.unwrap().status(), 202);
        })
        .await;
    let rate = events as f64 / started.elapsed().as_secs_f64();
    served.settled().await;
    rate
}

async fn add_webhook(data: &Path, target: &Target) {
    let (url, data) = (target.url(), data.display().to_string());
    let networks = ["--webhook-networks", "127.0.0.0/8"];
    let added = ["webhooks", "add", "all", "--url", &url, "--data", &data];
    let added = run(added.iter().chain(&networks)).await;
    assert!(added.status.success(), "{added:?}");
}

/// Waits until every processed event has reached the target.
async fn arrived(target: &Target, events: usize) -> bool {
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        let calls = target.calls();
        let processed = calls
            .iter()
            .filter(|call| call.event_type() == "feedback.processed");
        let ids: std::collections::BTreeSet<_> =
            processed.map(|call| call.header("webhook-id")).collect();
        if ids.len() >= events {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    false
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[tokio::main]
async fn main() -> ExitCode {
    let (rounds, events) = (number("ROUNDS", 5), number("EVENTS", 2000));
    let folders = [(); 2].map(|()| tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
    let [plain_folder, outlets_folder] = &folders;
    let mut options = vec!["--webhooks", "--webhook-networks", "127.0.0.0/8"];
    let nats: Option<String> = given("NATS_URL");
    options.extend(nats.iter().flat_map(|url| ["--nats", url]));
    let plain_process = Process::serve(plain_folder.path(), 0).await;
    let outlets_process = Process::serve_with(outlets_folder.path(), &options).await;
    let plain = Served::by(&plain_process, plain_folder.path());
    let outlets = Served::by(&outlets_process, outlets_folder.path());
    let target = Target::start().await;
    add_webhook(outlets_folder.path(), &target).await;

    let with = if nats.is_some() {
        "webhook and NATS"
    } else {
        "webhook"
    };
    println!(
        "{events} events a round, {CONCURRENCY} at a time\n\nround   without/s   with {with}/s"
    );
    let (mut without_rates, mut with_rates) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        let name = format!("round-{round}");
        let rates = (
            submit(&plain, &name, events).await,
            submit(&outlets, &name, events).await,
        );
        // What is delivered after one phase must not slow the next one.
        if !arrived(&target, (round + 1) * events).await {
            println!("a message did not arrive");
            return ExitCode::FAILURE;
        }
        // The first one warms up.
        if round > 0 {
            println!("{round:>5} {:>11.0} {:>11.0}", rates.0, rates.1);
            without_rates.push(rates.0);
            with_rates.push(rates.1);
        }
    }
    let ratio = median(with_rates) / median(without_rates);
    println!("\nsubmissions with outlets \u{f7} without  {ratio:.2} (at least {RATIO_AT_LEAST})");
    if ratio >= RATIO_AT_LEAST {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
