//! How the loops are that carry work: what `/health` answers, and one log line when a loop begins to fail and one when
//! it works again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

/// The state of all loops of a bundle.
#[derive(Debug, Clone, Default)]
pub struct Health(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    loops: Vec<Loop>,
    /// Everything that was written before is carried; `None` before the relay has read the stream.
    carried_to: Option<DateTime<Utc>>,
    /// Records that were read and are not carried yet.
    waiting: usize,
    /// Records that became dead letters since the start.
    dead_letters: u64,
}

#[derive(Debug)]
struct Loop {
    name: &'static str,
    /// Since when it fails, and how often it has.
    failing: Option<(DateTime<Utc>, u64)>,
}

/// One loop, as it reports itself.
#[derive(Debug, Clone)]
pub struct Pulse {
    health: Health,
    at: usize,
}

impl Health {
    /// Another loop.
    #[must_use]
    pub fn watch(&self, name: &'static str) -> Pulse {
        let mut state = self.state();
        state.loops.push(Loop {
            name,
            failing: None,
        });
        let at = state.loops.len() - 1;
        drop(state);
        Pulse {
            health: self.clone(),
            at,
        }
    }

    /// Everything that was written before `at` is carried.
    pub fn carried_to(&self, at: DateTime<Utc>) {
        let mut state = self.state();
        state.carried_to = Some(at);
        state.waiting = 0;
    }

    /// So many records wait for the relay.
    pub fn wait(&self, records: usize) {
        self.state().waiting = records;
    }

    /// So many records more became dead letters.
    pub fn bury(&self, records: usize) {
        self.state().dead_letters += u64::try_from(records).unwrap_or(u64::MAX);
    }

    /// What `/health` answers.
    #[must_use]
    pub fn document(&self, now: DateTime<Utc>) -> Value {
        let state = self.state();
        let lag = state.carried_to.map(|to| (now - to).max(TimeDelta::zero()));
        let failing = state.loops.iter().filter_map(|watched| {
            let (since, failures) = watched.failing?;
            Some(json!({"loop": watched.name, "since": since, "failures": failures}))
        });
        let failing: Vec<_> = failing.collect();
        json!({
            "status": if failing.is_empty() { "ok" } else { "degraded" },
            "relay": {
                "lag_seconds": lag.map(TimeDelta::as_seconds_f64),
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

impl Pulse {
    /// The loop failed, with so many messages or records in hand; `reason` names no content.
    pub fn failed(&self, reason: &str, waiting: usize) {
        let mut state = self.health.state();
        let Some(watched) = state.loops.get_mut(self.at) else {
            return;
        };
        let name = watched.name;
        let first = watched.failing.is_none();
        let failing = watched.failing.get_or_insert((Utc::now(), 0));
        failing.1 += 1;
        drop(state);
        if first {
            tracing::warn!(name, reason, waiting, "a loop fails, and tries again");
        }
    }

    /// The loop works.
    pub fn works(&self) {
        let mut state = self.health.state();
        let watched = state.loops.get_mut(self.at);
        let ended = watched.and_then(|watched| Some((watched.name, watched.failing.take()?)));
        drop(state);
        if let Some((name, (_, failures))) = ended {
            tracing::warn!(name, failures, "a loop works again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_fails_is_told_until_it_works() {
        let health = Health::default();
        let (relay, other) = (health.watch("relay"), health.watch("signals"));
        let now = Utc::now();
        health.carried_to(now - TimeDelta::seconds(3));
        relay.failed("unreachable", 7);
        relay.failed("unreachable", 7);
        other.works();
        let told = health.document(now);
        assert_eq!(told["status"], "degraded");
        assert_eq!(told["relay"]["lag_seconds"], 3.0);
        assert_eq!(told["failing"][0]["loop"], "relay");
        assert_eq!(told["failing"][0]["failures"], 2);
        relay.works();
        assert_eq!(health.document(now)["status"], "ok");
    }
}
