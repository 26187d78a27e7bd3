//! Measures the rate of mixed traffic that the bundle sustains, and what it does with twice that rate.
//!
//! `MINUTES=5 OVERLOAD=60 cargo bench -p hearback-tests --bench load`
//!
//! Requests are sent at a fixed rate to a running `hearback` (release build, durable folder), whether or not earlier
//! ones have a response. A rejected request is not sent again.
//!
//! 1. *Ramp*: twenty seconds at each of growing rates, up to the first that is not sustained. A rate is sustained if
//!    all requests succeed, and the backlog of the signal generator is processed within three seconds afterwards. The
//!    generator yields to requests for two seconds.
//! 2. *Hold*: the highest sustained rate, for `MINUTES`; if it is not sustained for that long, the next lower one.
//! 3. *Overload*: `TIMES` that rate (2), for `OVERLOAD` seconds.
//! 4. *Check*: once the queue is empty, everything acknowledged is stored, preferences learned from it exactly once,
//!    and nothing rejected is stored.
//!
//! It fails if anything is lost or duplicated, at a response that is neither a success nor a 503 with `Retry-After`,
//! if the process takes 400 MB at any time, if no rate is sustained, or if the overload completes less than 0.7 of the
//! sustained rate. `RATE` skips the ramp, and is the only rate that is held.

mod requests;
mod traffic;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hearback_tests::options::{given, number};
use hearback_tests::process::Process;
use hearback_tests::served::Served;
use tokio::sync::Semaphore;
use tokio::time::{interval, timeout};

use traffic::{Seen, Traffic};

/// Concurrent requests of this client: more than the gateway accepts.
const WAITING: usize = 512;
/// The interval at which due requests are sent.
const TICK: Duration = Duration::from_millis(5);
/// The duration of a trial at one rate.
const TRIAL: Duration = Duration::from_secs(20);
/// The duration that a line of the report covers.
const STEP: Duration = Duration::from_secs(10);
const FIRST_RATE: f64 = 50.0;
const GROWTH: f64 = 1.25;
/// The time within which the backlog of a sustained rate must be processed.
const MAX_BACKLOG_TIME: Duration = Duration::from_secs(3);
const OVERLOADED_AT_LEAST: f64 = 0.7;
const MEMORY_AT_MOST: u64 = 400;
/// The time limit for processing all messages.
const PATIENCE: Duration = Duration::from_mins(30);

struct Bench {
    process: Process,
    traffic: Arc<Traffic>,
    room: Arc<Semaphore>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let hold = Duration::from_secs_f64(number("MINUTES", 5.0) * 60.0);
    let overload = Duration::from_secs_f64(number("OVERLOAD", 60.0));
    let times: f64 = number("TIMES", 2.0);
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let process = Process::serve(folder.path(), 0).await;
    let bench = Bench {
        traffic: Arc::new(Traffic::to(Served::by(&process, folder.path()))),
        process,
        room: Arc::new(Semaphore::new(WAITING)),
    };
    println!("asked/s   done/s refused/s not sent/s  p50 ms  p99 ms  memory MB  queued");

    let mut seen = Seen::default();
    let (mut rate, lowest) = match given("RATE") {
        Some(rate) => (rate, rate),
        None => (bench.ramp(&mut seen).await, FIRST_RATE),
    };
    let (held, sustained) = loop {
        println!("\nhold {rate:.0} a second");
        let (held, sustained) = bench.sustained(rate, hold).await;
        if sustained || rate / GROWTH < lowest {
            break (held, sustained);
        }
        seen.add(held);
        rate /= GROWTH;
    };
    println!("\n{times} times that");
    let overloaded = bench.run(times * rate, overload).await;
    let rejected = percentile(&overloaded.rejected, 0.99);
    println!("p99 of a rejection {:.0} ms", milliseconds(rejected));
    bench.process().await;

    let ratio = done_a_second(&overloaded, overload) / done_a_second(&held, hold);
    seen.add(held);
    seen.add(overloaded);
    let memory = bench.process.peak_memory();
    let violations = bench.traffic.violations().await;
    println!("\ndone in the overload ÷ at the rate    {ratio:.2} (at least {OVERLOADED_AT_LEAST})");
    println!("memory                                {memory} MB (at most {MEMORY_AT_MOST})");
    println!(
        "invalid responses                     {}",
        seen.faults.len()
    );
    println!("held                                  {sustained}");
    println!("503 of the store                      {}", seen.unavailable);
    println!("violated acknowledgements             {}", violations.len());
    for line in seen.faults.iter().chain(&violations).take(20) {
        println!("  {line}");
    }
    let good = sustained
        && seen.faults.is_empty()
        && violations.is_empty()
        && memory <= MEMORY_AT_MOST
        && ratio >= OVERLOADED_AT_LEAST;
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

impl Bench {
    /// Returns the highest sustained rate.
    async fn ramp(&self, all: &mut Seen) -> f64 {
        let mut rate = FIRST_RATE;
        loop {
            let (seen, sustained) = self.sustained(rate, TRIAL).await;
            all.add(seen);
            if !sustained {
                return rate / GROWTH;
            }
            rate *= GROWTH;
        }
    }

    /// Sends requests at this rate, and returns whether it was sustained.
    async fn sustained(&self, rate: f64, time: Duration) -> (Seen, bool) {
        let seen = self.run(rate, time).await;
        let left = self.process().await;
        let sustained = seen.is_all_done() && left <= MAX_BACKLOG_TIME;
        (seen, sustained)
    }

    /// Sends requests at this rate, and reports each step.
    async fn run(&self, rate: f64, time: Duration) -> Seen {
        let mut all = Seen::default();
        let began = Instant::now();
        while began.elapsed() < time {
            let step = STEP.min(time - began.elapsed());
            self.send_requests(rate, step).await;
            let seen = self.traffic.take();
            self.report(&seen, step).await;
            all.add(seen);
        }
        // Wait for the requests in progress.
        let _ = self.room.acquire_many(WAITING as u32).await.unwrap();
        all.add(self.traffic.take());
        all
    }

    /// Sends due requests, however long the responses take.
    async fn send_requests(&self, rate: f64, time: Duration) {
        let (began, mut sent) = (Instant::now(), 0.0);
        let mut tick = interval(TICK);
        while began.elapsed() < time {
            tick.tick().await;
            while sent < began.elapsed().as_secs_f64() * rate {
                sent += 1.0;
                let Ok(room) = self.room.clone().try_acquire_owned() else {
                    self.traffic.skip();
                    continue;
                };
                let traffic = self.traffic.clone();
                tokio::spawn(async move {
                    traffic.send_next().await;
                    drop(room);
                });
            }
        }
    }

    async fn report(&self, seen: &Seen, time: Duration) {
        let rate = |count: usize| count as f64 / time.as_secs_f64();
        let answered = seen.done.len() + seen.rejected.len() + seen.unavailable + seen.faults.len();
        println!(
            "{:>7.0} {:>8.0} {:>9.0} {:>10.0} {:>7.0} {:>7.0} {:>10} {:>7}",
            rate(answered + seen.not_sent),
            rate(seen.done.len()),
            rate(seen.rejected.len()),
            rate(seen.not_sent),
            milliseconds(percentile(&seen.done, 0.5)),
            milliseconds(percentile(&seen.done, 0.99)),
            self.process.memory(),
            self.traffic.served().queued().await,
        );
    }

    /// Waits until everything is processed, and returns how long that took.
    async fn process(&self) -> Duration {
        let began = Instant::now();
        let settled = timeout(PATIENCE, self.traffic.served().settled()).await;
        settled.expect("the queue becomes empty");
        let took = began.elapsed();
        println!("processed {:.1} s after", took.as_secs_f64());
        took
    }
}

fn done_a_second(seen: &Seen, time: Duration) -> f64 {
    seen.done.len() as f64 / time.as_secs_f64()
}

fn percentile(times: &[Duration], at: f64) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    let index = (times.len() as f64 * at) as usize;
    times
        .get(index.min(times.len().saturating_sub(1)))
        .copied()
        .unwrap_or_default()
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
