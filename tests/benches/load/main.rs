//! How much mixed traffic the bundle bears for long, and what it does with twice as much.
//!
//! `MINUTES=5 OVERLOAD=60 cargo bench -p hearback-tests --bench load`
//!
//! Requests come at a rate, whether those before were answered or not, to a running `hearback` (release
//! build, durable folder). A request that is refused is not sent again.
//!
//! 1. *Ramp*: twenty seconds at each of growing rates, up to the first that is not sustained. A rate is if
//!    everything was done, and what it left to the signal generator is worked off within three seconds after:
//!    the generator gives way for two.
//! 2. *Hold*: the highest rate that was sustained, for `MINUTES`; if it is not sustained for so long, the
//!    one below.
//! 3. *Overload*: `TIMES` that rate (2), for `OVERLOAD` seconds.
//! 4. *Check*: once the queue is empty, what was acknowledged is there, and learned from once; what was
//!    refused is not.
//!
//! It fails if anything is lost or doubled, at an answer that is neither what was asked for nor a 503 with
//! `Retry-After`, if the process ever takes 400 MB, if no rate can be held, or if less than 0.7 of the held rate
//! is still done in the overload. `RATE` skips the ramp, and is the only one that is held.

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

/// Requests under way at once on this side: more than the gateway takes on.
const WAITING: usize = 512;
/// How often requests are sent that are due.
const TICK: Duration = Duration::from_millis(5);
/// How long each rate is tried.
const TRIAL: Duration = Duration::from_secs(20);
/// A line of the report is about so long.
const STEP: Duration = Duration::from_secs(10);
const FIRST_RATE: f64 = 50.0;
const GROWTH: f64 = 1.25;
/// How long what a sustained rate left behind may take.
const LEFT_BEHIND: Duration = Duration::from_secs(3);
const OVERLOADED_AT_LEAST: f64 = 0.7;
const MEMORY_AT_MOST: u64 = 400;
/// How long the queue may take to become empty at all.
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
    let refused = percentile(&overloaded.refused, 0.99);
    println!("p99 of a refusal {:.0} ms", milliseconds(refused));
    bench.work_off().await;

    let ratio = done_a_second(&overloaded, overload) / done_a_second(&held, hold);
    seen.add(held);
    seen.add(overloaded);
    let memory = bench.process.peak_memory();
    let wrong = bench.traffic.wrong().await;
    println!("\ndone in the overload ÷ at the rate    {ratio:.2} (at least {OVERLOADED_AT_LEAST})");
    println!("memory                                {memory} MB (at most {MEMORY_AT_MOST})");
    println!(
        "answers that nobody may get           {}",
        seen.faults.len()
    );
    println!("held                                  {sustained}");
    println!("503 of the store                      {}", seen.unavailable);
    println!("lost, doubled or too much             {}", wrong.len());
    for line in seen.faults.iter().chain(&wrong).take(20) {
        println!("  {line}");
    }
    let good = sustained
        && seen.faults.is_empty()
        && wrong.is_empty()
        && memory <= MEMORY_AT_MOST
        && ratio >= OVERLOADED_AT_LEAST;
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

impl Bench {
    /// The highest rate that was sustained.
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

    /// Asks at this rate for so long, and answers whether it was sustained.
    async fn sustained(&self, rate: f64, time: Duration) -> (Seen, bool) {
        let seen = self.run(rate, time).await;
        let left = self.work_off().await;
        let sustained = seen.is_all_done() && left <= LEFT_BEHIND;
        (seen, sustained)
    }

    /// Asks at this rate for so long, and reports each step of it.
    async fn run(&self, rate: f64, time: Duration) -> Seen {
        let mut all = Seen::default();
        let began = Instant::now();
        while began.elapsed() < time {
            let step = STEP.min(time - began.elapsed());
            self.ask(rate, step).await;
            let seen = self.traffic.take();
            self.report(&seen, step).await;
            all.add(seen);
        }
        // Those that are under way.
        let _ = self.room.acquire_many(WAITING as u32).await.unwrap();
        all.add(self.traffic.take());
        all
    }

    /// Sends what is due, however long the answers take.
    async fn ask(&self, rate: f64, time: Duration) {
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
        let answered = seen.done.len() + seen.refused.len() + seen.unavailable + seen.faults.len();
        println!(
            "{:>7.0} {:>8.0} {:>9.0} {:>10.0} {:>7.0} {:>7.0} {:>10} {:>7}",
            rate(answered + seen.not_sent),
            rate(seen.done.len()),
            rate(seen.refused.len()),
            rate(seen.not_sent),
            milliseconds(percentile(&seen.done, 0.5)),
            milliseconds(percentile(&seen.done, 0.99)),
            self.process.memory(),
            self.traffic.served().queued().await,
        );
    }

    /// Waits until everything is worked off; answers how long that took.
    async fn work_off(&self) -> Duration {
        let began = Instant::now();
        let settled = timeout(PATIENCE, self.traffic.served().settled()).await;
        settled.expect("the queue becomes empty");
        let took = began.elapsed();
        println!("worked off {:.1} s after", took.as_secs_f64());
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
