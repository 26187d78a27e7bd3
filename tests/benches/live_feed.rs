//! Measures the live feed: the memory of a connection, the time from a submit to its frame, and what a client that reads
//! nothing costs the others.
//!
//! `LISTENERS=1000 cargo bench -p hearback-tests --bench live_feed`
//!
//! Each listener is a user who receives their own events; one more receives those of all. Events are sent at a rate,
//! first so, then next to a client that subscribes to everything and reads nothing. Then they are sent as fast as they
//! are accepted, to several listeners of everything. It fails if an event is missing, or if the median of the second
//! phase is more than twice that of the first.

use std::collections::{HashMap, HashSet};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt};
use hearback_tests::events::{acceptance, id};
use hearback_tests::live::{LiveClient, TICKET};
use hearback_tests::options::number;
use hearback_tests::process::Process;
use hearback_tests::served::Served;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Connections that are opened at once.
const AT_ONCE: usize = 16;
/// Listeners of everything in the last phase.
const WIDE: usize = 10;
/// How long the last frame may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Largest ratio of the medians with and without a client that reads nothing.
const SLOWER_AT_MOST: f64 = 2.0;

/// When an event was submitted, by its id.
type Submitted = Arc<Mutex<HashMap<String, Instant>>>;

struct Bench {
    served: Served,
    submitted: Submitted,
    users: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    let (users, events) = (number("LISTENERS", 1_000), number("EVENTS", 400));
    let pause = Duration::from_secs_f64(1.0 / number("RATE", 10.0));
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let process = Process::serve(folder.path(), 0).await;
    let bench = Bench {
        served: Served::by(&process, folder.path()),
        submitted: Submitted::default(),
        users,
    };
    bench.submit(0).await;
    bench.served.settled().await;

    let before = process.resident();
    let (own, mut own_frames) = mpsc::channel(10_000);
    let opened = Instant::now();
    let connect = |user| bench.listen(format!("user-{user}"), "", own.clone());
    stream::iter(0..users)
        .for_each_concurrent(AT_ONCE, connect)
        .await;
    let memory = process.resident().saturating_sub(before) / users as u64;
    println!(
        "{users} connections in {:.1} s, {memory} bytes of the process each\n",
        opened.elapsed().as_secs_f64()
    );
    let (all, mut all_frames) = mpsc::channel(10_000);
    bench
        .listen("analyst".to_owned(), "feedback:report", all.clone())
        .await;

    println!("submit to frame, in ms        own events: median   p99   all events: median   p99");
    let mut medians = Vec::new();
    let mut silent = None;
    for phase in ["alone", "next to a client that reads nothing"] {
        bench.at_a_rate(events, pause).await;
        let own = latencies(&mut own_frames, events).await;
        let all = latencies(&mut all_frames, events).await;
        println!(
            "{phase:<36} {:>12.0} {:>5.0} {:>20.0} {:>5.0}",
            own.0, own.1, all.0, all.1
        );
        medians.push(own.0.max(all.0));
        silent = match silent {
            None => Some(bench.subscribed("silent", "feedback:report").await),
            kept => kept,
        };
    }
    for number in 1..WIDE {
        bench
            .listen(format!("analyst-{number}"), "feedback:report", all.clone())
            .await;
    }
    // What was published in the last seconds is sent again, and not counted.
    bench.submitted.lock().unwrap().clear();
    let started = Instant::now();
    stream::iter(0..events)
        .for_each_concurrent(AT_ONCE, |event| bench.submit(event))
        .await;
    latencies(&mut own_frames, events).await;
    latencies(&mut all_frames, events * WIDE).await;
    let took = started.elapsed().as_secs_f64();
    println!(
        "\n{events} events at once: received by {WIDE} listeners of everything and their users after {took:.1} s, {:.0} frames' events/s",
        (events * (WIDE + 1)) as f64 / took
    );
    drop(silent);
    let ratio = medians[1] / medians[0];
    println!(
        "median next to a client that reads nothing ÷ alone  {ratio:.2} (at most {SLOWER_AT_MOST})"
    );
    if ratio <= SLOWER_AT_MOST {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The median and the 99th percentile of the next `count` latencies, in milliseconds.
async fn latencies(frames: &mut Receiver<f64>, count: usize) -> (f64, f64) {
    let mut all = Vec::new();
    while all.len() < count {
        let frame = tokio::time::timeout(PATIENCE, frames.recv()).await;
        all.push(frame.expect("no event is missing").expect("listeners"));
    }
    all.sort_by(f64::total_cmp);
    (all[count / 2], all[count * 99 / 100])
}

impl Bench {
    /// Submits an event of one of the users.
    async fn submit(&self, number: usize) {
        let event = acceptance(&format!("user-{}", number % self.users));
        let submit = self
            .served
            .by_back_end(Method::POST, "/v1/feedback/submit")
            .json(&event);
        let now = Instant::now();
        self.submitted.lock().unwrap().insert(id(&event), now);
        let response = submit.send().await.unwrap();
        assert_eq!(response.status(), 202);
    }

    async fn at_a_rate(&self, events: usize, pause: Duration) {
        let mut ticks = tokio::time::interval(pause);
        for number in 0..events {
            ticks.tick().await;
            self.submit(number).await;
        }
    }

    /// Connects and subscribes to what is published from now on.
    async fn subscribed(&self, user: &str, scope: &str) -> LiveClient {
        let ticket = self.served.request_with(scope, user, Method::POST, TICKET);
        let ticket: Value = ticket.send().await.unwrap().json().await.unwrap();
        let part = |name: &str| ticket[name].as_str().expect("a ticket").to_owned();
        let url = format!("{}?ticket={}", part("url"), part("ticket"));
        let mut client = LiveClient::connect(&url).await.unwrap();
        let filter = json!({"eventTypes": ["feedback.processed"]});
        let subscribe = json!({"action": "subscribe", "filter": filter});
        assert_eq!(client.ask(&subscribe).await["type"], "subscribed");
        client
    }

    /// Sends the latency of each event that a new connection receives.
    async fn listen(&self, user: String, scope: &str, latencies: Sender<f64>) {
        let mut client = self.subscribed(&user, scope).await;
        let submitted = self.submitted.clone();
        tokio::spawn(async move {
            let mut seen = HashSet::new();
            while let Some(frame) = client.next().await {
                for event in frame["events"].as_array().into_iter().flatten() {
                    let id = event["feedbackId"].as_str().unwrap().to_owned();
                    let sent = submitted.lock().unwrap().get(&id).copied();
                    if let Some(sent) = sent.filter(|_| seen.insert(id)) {
                        let latency = 1_000.0 * sent.elapsed().as_secs_f64();
                        // The benchmark may be over.
                        let _ = latencies.send(latency).await;
                    }
                }
            }
        });
    }
}
