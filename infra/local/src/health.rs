//! The health of the bundle: the document of `/health`, and a log line when a loop begins to fail and when it recovers.
//!
//! A loop (the relay or an event source) reports its own state, and an engine its internal errors. `probe.rs`
//! checks the rest.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

/// Lag of the relay above which the bundle is not ready, as for `SignalsAgeAlarm` in AWS.
const MAX_LAG: Duration = Duration::from_mins(5);
/// How long the last failure of an engine counts.
const FAILURE_PERIOD: TimeDelta = TimeDelta::minutes(1);

/// The state of all loops and engines of a bundle.
#[derive(Debug, Clone)]
pub struct Health(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    started: Instant,
    loops: Vec<Loop>,
    faults: BTreeMap<&'static str, Fault>,
    /// The relay's lag, and when it was measured on the monotonic clock; `None` before the relay has read the stream.
    lag: Option<(Duration, Instant)>,
    /// Records that were read but not delivered yet.
    waiting: usize,
    /// Records that became dead letters since the start.
    dead_letters: u64,
}

#[derive(Debug)]
struct Loop {
    name: &'static str,
    /// Since when it has been failing, and the number of failures.
    failing: Option<(DateTime<Utc>, u64)>,
    /// By when its current batch must be done.
    deadline: Option<DateTime<Utc>>,
}

/// A failure of an engine.
#[derive(Debug)]
struct Fault {
    reason: String,
    since: DateTime<Utc>,
    last: DateTime<Utc>,
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
        Self::since(Instant::now())
    }
}

impl Health {
    fn since(started: Instant) -> Self {
        Self(Arc::new(Mutex::new(State {
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
            deadline: None,
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
        let lag = (Utc::now() - at).to_std().unwrap_or_default();
        let mut state = self.state();
        state.lag = Some((lag, Instant::now()));
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
        let now = Utc::now();
        let mut state = self.state();
        let current = state.faults.get(part).filter(|fault| fault.counts(now));
        // The reason of a permanent fault stays: later failures are its consequences.
        let (since, kept) = match current {
            Some(fault) => (fault.since, fault.permanent.then(|| fault.reason.clone())),
            None => (now, None),
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
    pub fn document(&self, now: DateTime<Utc>) -> Value {
        self.document_with(now, Vec::new())
    }

    /// The document of `/health`, with the failures that probes found.
    #[must_use]
    pub fn document_with(&self, now: DateTime<Utc>, probed: Vec<Value>) -> Value {
        let state = self.state();
        let lag = state.lag.map(|(lag, at)| lag + at.elapsed());
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
    fn counts(&self, now: DateTime<Utc>) -> bool {
        self.permanent || now - self.last <= FAILURE_PERIOD
    }
}

impl Loop {
    /// What is wrong with it, if anything is.
    fn problem(&self, now: DateTime<Utc>) -> Option<Value> {
        if let Some((since, failures)) = self.failing {
            return Some(json!({"loop": self.name, "since": since, "failures": failures}));
        }
        let deadline = self.deadline.filter(|deadline| *deadline < now)?;
        Some(json!({"loop": self.name, "since": deadline, "reason": "a batch takes too long"}))
    }
}

impl LoopStatus {
    /// Records a failure, and how many messages or records wait for it. `reason` must not quote content.
    pub fn failed(&self, reason: &str, waiting: usize) {
        let mut state = self.health.state();
        let Some(entry) = state.loops.get_mut(self.index) else {
            return;
        };
        let name = entry.name;
        let first = entry.failing.is_none();
        let failing = entry.failing.get_or_insert((Utc::now(), 0));
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

    /// Sets by when the current batch must be done; `None` without a batch.
    pub fn set_deadline(&self, deadline: Option<DateTime<Utc>>) {
        if let Some(entry) = self.health.state().loops.get_mut(self.index) {
            entry.deadline = deadline;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_loop_is_reported_until_it_succeeds() {
        let health = Health::default();
        let (relay, other) = (health.register("relay"), health.register("signals"));
        let now = Utc::now();
        health.relayed_until(now - TimeDelta::seconds(3));
        relay.failed("unreachable", 7);
        relay.failed("unreachable", 7);
        other.succeeded();
        let report = health.document(now);
        assert_eq!(report["status"], "degraded");
        assert!(report["relay"]["lag_seconds"].as_f64().unwrap() >= 3.0);
        assert_eq!(report["failing"][0]["loop"], "relay");
        assert_eq!(report["failing"][0]["failures"], 2);
        relay.succeeded();
        assert_eq!(health.document(now)["status"], "ok");
    }

    #[test]
    fn a_loop_that_is_stuck_in_a_batch_is_reported_until_it_is_done() {
        let health = Health::default();
        let signals = health.register("signals");
        let now = Utc::now();
        health.relayed_until(now);
        signals.set_deadline(Some(now + TimeDelta::seconds(30)));
        assert_eq!(health.document(now)["status"], "ok");
        let later = now + TimeDelta::seconds(31);
        let report = health.document(later);
        assert_eq!(report["failing"][0]["loop"], "signals", "{report}");
        signals.set_deadline(None);
        assert_eq!(health.document(later)["status"], "ok");
    }

    #[test]
    fn a_relay_that_lags_far_is_reported_even_if_it_never_read_anything() {
        let now = Utc::now();
        let late = MAX_LAG + Duration::from_secs(5);
        let health = Health::since(Instant::now().checked_sub(late).unwrap());
        let _relay = health.register("relay");
        assert_eq!(health.document(now)["failing"][0]["part"], "relay");
        health.relayed_until(now - late);
        assert_eq!(health.document(now)["failing"][0]["part"], "relay");
        health.relayed_until(now);
        assert_eq!(health.document(now)["status"], "ok");
        assert_eq!(
            Health::default().document(now)["status"],
            "ok",
            "a relay that has just started does not lag"
        );
    }

    #[test]
    fn an_engine_failure_counts_for_a_minute_and_damage_forever() {
        let health = Health::default();
        health.record_failure("table", "busy");
        let now = Utc::now();
        let later = now + FAILURE_PERIOD + TimeDelta::seconds(1);
        assert_eq!(health.document(now)["failing"][0]["reason"], "busy");
        assert_eq!(health.document(later)["status"], "ok");
        health.record_damage("table", "malformed");
        health.record_failure("table", "a later failure");
        let report = health.document(later);
        assert_eq!(report["failing"][0]["reason"], "malformed");
    }
}
