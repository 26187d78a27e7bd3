//! The health of the bundle: the document of `/health`, and a log line when a loop begins to fail and when it recovers.
//!
//! A loop (the relay or an event source) reports its own state, and an engine its internal errors. `probe.rs` checks
//! the rest. Durations are measured with the monotonic clock, because the machine's clock may be changed; its time is
//! only displayed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use hearback_lambda::clock::Clock;
use serde_json::{Value, json};

use crate::writes::WritesPosition;

/// Lag of the relay above which the bundle is not ready, as for `SignalsAgeAlarm` in AWS.
const MAX_LAG: Duration = Duration::from_mins(5);
/// How long the last failure of an engine counts.
const FAILURE_PERIOD: Duration = Duration::from_mins(1);

/// The state of all loops and engines of a bundle.
#[derive(Debug, Clone)]
pub struct Health(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// The clock for the times in the document.
    clock: Clock,
    started: Instant,
    loops: Vec<Loop>,
    faults: BTreeMap<&'static str, Fault>,
    /// The relay's lag; `None` before the relay has read the stream.
    lag: Option<Lag>,
    /// Records that were read but not delivered yet.
    waiting: usize,
    /// Records that became dead letters since the start.
    dead_letters: u64,
}

#[derive(Debug)]
struct Lag {
    measured: Duration,
    /// When it was measured, on the monotonic clock.
    at: Instant,
    /// The position up to which all writes are delivered, if the engine records it.
    caught_up: Option<WritesPosition>,
}

impl Lag {
    /// The measured lag plus the time since, or zero if nothing was written since.
    fn now(&self) -> Duration {
        if self.caught_up.as_ref().is_some_and(WritesPosition::is_last) {
            Duration::ZERO
        } else {
            self.measured + self.at.elapsed()
        }
    }
}

#[derive(Debug)]
struct Loop {
    name: &'static str,
    /// When it began to fail, and the number of failures since.
    failing: Option<(DateTime<Utc>, u64)>,
    /// Since when messages that it receives have waited too long.
    late: Option<DateTime<Utc>>,
    /// Its current batch.
    batch: Option<Batch>,
}

#[derive(Debug)]
struct Batch {
    started: DateTime<Utc>,
    deadline: Instant,
}

/// A failure of an engine.
#[derive(Debug)]
struct Fault {
    reason: String,
    since: DateTime<Utc>,
    last: Instant,
    /// Whether it remains until a restart.
    permanent: bool,
}

/// Reports the state of one loop.
#[derive(Debug, Clone)]
pub struct LoopStatus {
    health: Health,
    index: usize,
}

impl Default for Health {
    fn default() -> Self {
        Self::new(Clock::system())
    }
}

impl Health {
    /// The state of a bundle that starts now, with the times of `clock` in its document.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self::since(Instant::now(), clock)
    }

    fn since(started: Instant, clock: Clock) -> Self {
        Self(Arc::new(Mutex::new(State {
            clock,
            started,
            loops: Vec::new(),
            faults: BTreeMap::new(),
            lag: None,
            waiting: 0,
            dead_letters: 0,
        })))
    }

    /// Registers a loop.
    #[must_use]
    pub fn register(&self, name: &'static str) -> LoopStatus {
        let mut state = self.state();
        state.loops.push(Loop {
            name,
            failing: None,
            late: None,
            batch: None,
        });
        let index = state.loops.len() - 1;
        drop(state);
        LoopStatus {
            health: self.clone(),
            index,
        }
    }

    /// Records that everything written before `at` is delivered.
    pub fn relayed_until(&self, at: DateTime<Utc>) {
        self.set_lag((Utc::now() - at).to_std().unwrap_or_default(), None);
    }

    /// Records that everything written before `at` is delivered, independently of the machine's clock. `position` is
    /// the position of the writes at that time, if the engine records it.
    pub fn caught_up(&self, at: Instant, position: Option<WritesPosition>) {
        self.set_lag(at.elapsed(), position);
    }

    fn set_lag(&self, measured: Duration, caught_up: Option<WritesPosition>) {
        let mut state = self.state();
        state.lag = Some(Lag {
            measured,
            at: Instant::now(),
            caught_up,
        });
        state.waiting = 0;
    }

    /// Records how many records wait for delivery.
    pub fn set_waiting(&self, records: usize) {
        self.state().waiting = records;
    }

    /// Adds records that became dead letters.
    pub fn add_dead_letters(&self, records: usize) {
        self.state().dead_letters += u64::try_from(records).unwrap_or(u64::MAX);
    }

    /// Records an internal error of an engine. `reason` must not quote data.
    pub fn record_failure(&self, part: &'static str, reason: &str) {
        self.record(part, reason, false);
    }

    /// Records that a part is damaged, which only a restore repairs.
    pub fn record_damage(&self, part: &'static str, reason: &str) {
        self.record(part, reason, true);
    }

    fn record(&self, part: &'static str, reason: &str, permanent: bool) {
        let now = Instant::now();
        let mut state = self.state();
        let current = state.faults.get(part).filter(|fault| fault.counts(now));
        // The reason of a permanent fault stays: later failures are its consequences.
        let (since, kept) = match current {
            Some(fault) => (fault.since, fault.permanent.then(|| fault.reason.clone())),
            None => (state.clock.now(), None),
        };
        let fault = Fault {
            permanent: permanent || kept.is_some(),
            reason: kept.unwrap_or_else(|| reason.to_owned()),
            since,
            last: now,
        };
        state.faults.insert(part, fault);
    }

    /// The document of `/health`, without the results of probes.
    #[must_use]
    pub fn document(&self) -> Value {
        self.document_with(Vec::new())
    }

    /// The document of `/health`, with the failures that probes found.
    #[must_use]
    pub fn document_with(&self, probed: Vec<Value>) -> Value {
        self.document_at(Instant::now(), probed)
    }

    fn document_at(&self, now: Instant, probed: Vec<Value>) -> Value {
        let state = self.state();
        let lag = state.lag.as_ref().map(Lag::now);
        let loops = state.loops.iter();
        let mut failing: Vec<_> = loops.filter_map(|entry| entry.problem(now)).collect();
        if lag.unwrap_or_else(|| state.started.elapsed()) > MAX_LAG && !state.loops.is_empty() {
            failing.push(json!({"part": "relay", "reason": "it is more than five minutes behind"}));
        }
        let faults = state.faults.iter().filter(|(_, fault)| fault.counts(now));
        failing.extend(faults.map(
            |(part, fault)| json!({"part": part, "reason": fault.reason, "since": fault.since}),
        ));
        failing.extend(probed);
        json!({
            "status": if failing.is_empty() { "ok" } else { "degraded" },
            "relay": {
                "lag_seconds": lag.map(|lag| lag.as_secs_f64()),
                "waiting": state.waiting,
                "dead_letters": state.dead_letters,
            },
            "failing": failing,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fault {
    fn counts(&self, now: Instant) -> bool {
        self.permanent || now.duration_since(self.last) <= FAILURE_PERIOD
    }
}

impl Loop {
    /// What is wrong with it, if anything is.
    fn problem(&self, now: Instant) -> Option<Value> {
        if let Some((since, failures)) = self.failing {
            return Some(json!({"loop": self.name, "since": since, "failures": failures}));
        }
        let batch = self.batch.as_ref().filter(|batch| batch.deadline < now);
        let (since, reason) = match (batch, self.late) {
            (Some(batch), _) => (batch.started, "a batch takes too long"),
            (None, Some(since)) => (since, "messages wait too long"),
            (None, None) => return None,
        };
        Some(json!({"loop": self.name, "since": since, "reason": reason}))
    }
}

impl LoopStatus {
    /// Records a failure, and how many messages or records wait for it. `reason` must not quote content.
    pub fn failed(&self, reason: &str, waiting: usize) {
        let mut state = self.health.state();
        let now = state.clock.now();
        let Some(entry) = state.loops.get_mut(self.index) else {
            return;
        };
        let name = entry.name;
        let first = entry.failing.is_none();
        let failing = entry.failing.get_or_insert((now, 0));
        failing.1 += 1;
        drop(state);
        if first {
            tracing::warn!(name, reason, waiting, "a loop is failing, and will retry");
        }
    }

    /// Records a success.
    pub fn succeeded(&self) {
        let mut state = self.health.state();
        let entry = state.loops.get_mut(self.index);
        let recovered = entry.and_then(|entry| Some((entry.name, entry.failing.take()?)));
        drop(state);
        if let Some((name, (_, failures))) = recovered {
            tracing::warn!(name, failures, "a loop has recovered");
        }
    }

    /// Records whether the messages that were received last have waited too long.
    pub fn set_late(&self, late: bool) {
        let mut state = self.health.state();
        let now = state.clock.now();
        if let Some(entry) = state.loops.get_mut(self.index) {
            entry.late = late.then(|| entry.late.unwrap_or(now));
        }
    }

    /// Records that a batch begins, which must be done within `timeout`.
    pub fn begin_batch(&self, timeout: Duration) {
        let mut state = self.health.state();
        let started = state.clock.now();
        if let Some(entry) = state.loops.get_mut(self.index) {
            entry.batch = Some(Batch {
                started,
                deadline: Instant::now() + timeout,
            });
        }
    }

    /// Records that the batch is done.
    pub fn end_batch(&self) {
        if let Some(entry) = self.health.state().loops.get_mut(self.index) {
            entry.batch = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use chrono::TimeDelta;

    use super::*;

    fn after(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    #[test]
    fn a_loop_is_reported_while_its_messages_wait_too_long() {
        let health = Health::default();
        let signals = health.register("signals");
        health.relayed_until(Utc::now());
        signals.set_late(true);
        let report = health.document();
        assert_eq!(report["status"], "degraded");
        assert_eq!(report["failing"][0]["loop"], "signals");
        assert_eq!(report["failing"][0]["reason"], "messages wait too long");
        signals.set_late(false);
        assert_eq!(health.document()["status"], "ok");
    }

    #[test]
    fn a_failing_loop_is_reported_until_it_succeeds() {
        let health = Health::default();
        let (relay, other) = (health.register("relay"), health.register("signals"));
        health.relayed_until(Utc::now() - Duration::from_secs(3));
        relay.failed("unreachable", 7);
        relay.failed("unreachable", 7);
        other.succeeded();
        let report = health.document();
        assert_eq!(report["status"], "degraded");
        assert!(report["relay"]["lag_seconds"].as_f64().unwrap() >= 3.0);
        assert_eq!(report["failing"][0]["loop"], "relay");
        assert_eq!(report["failing"][0]["failures"], 2);
        relay.succeeded();
        assert_eq!(health.document()["status"], "ok");
    }

    #[test]
    fn a_loop_that_is_stuck_in_a_batch_is_reported_until_it_is_done() {
        let health = Health::default();
        let signals = health.register("signals");
        health.caught_up(Instant::now(), None);
        signals.begin_batch(Duration::from_secs(30));
        assert_eq!(health.document()["status"], "ok");
        let report = health.document_at(after(31), Vec::new());
        assert_eq!(report["failing"][0]["loop"], "signals", "{report}");
        signals.end_batch();
        assert_eq!(
            health.document_at(after(31), Vec::new())["status"],
            "ok",
            "the batch is done"
        );
    }

    #[test]
    fn a_relay_that_lags_far_is_reported_even_if_it_never_read_anything() {
        let late = MAX_LAG + Duration::from_secs(5);
        let health = Health::since(Instant::now().checked_sub(late).unwrap(), Clock::system());
        let _relay = health.register("relay");
        assert_eq!(health.document()["failing"][0]["part"], "relay");
        health.relayed_until(Utc::now() - late);
        assert_eq!(health.document()["failing"][0]["part"], "relay");
        health.caught_up(Instant::now(), None);
        assert_eq!(health.document()["status"], "ok");
        assert_eq!(
            Health::default().document()["status"],
            "ok",
            "a relay that has just started does not lag"
        );
    }

    #[test]
    fn an_engine_failure_counts_for_a_minute_and_damage_forever() {
        let health = Health::default();
        health.record_failure("table", "busy");
        let later = || health.document_at(after(61), Vec::new());
        assert_eq!(health.document()["failing"][0]["reason"], "busy");
        assert_eq!(later()["status"], "ok");
        health.record_damage("table", "malformed");
        health.record_failure("table", "a later failure");
        assert_eq!(later()["failing"][0]["reason"], "malformed");
    }

    #[test]
    fn a_clock_change_affects_neither_failures_nor_the_detection_of_stuck_batches() {
        static HOURS: AtomicI64 = AtomicI64::new(0);
        let clock = Clock::of(|| Utc::now() + TimeDelta::hours(HOURS.load(Ordering::Relaxed)));
        for hours in [-48, 48] {
            HOURS.store(0, Ordering::Relaxed);
            let health = Health::new(clock);
            let signals = health.register("signals");
            signals.begin_batch(Duration::from_secs(90));
            health.record_failure("table", "busy");
            HOURS.store(hours, Ordering::Relaxed);
            let failing = |seconds| {
                let report = health.document_at(after(seconds), Vec::new());
                report["failing"].as_array().unwrap().len()
            };
            assert_eq!(failing(0), 1, "the engine failed just now");
            assert_eq!(failing(61), 0, "its last failure is a minute old");
            assert_eq!(failing(91), 1, "the batch takes too long");
        }
    }
}
