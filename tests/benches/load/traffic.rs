//! Sends the requests, records the responses, and checks what must therefore be stored.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use hearback_tests::served::{Key, Served, items};
use reqwest::header::RETRY_AFTER;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::requests::{Followup, Planned, Requests};

const TABLE: &str = "hearback";
/// The responses in a period.
#[derive(Default)]
pub struct Seen {
    /// Durations of successful requests.
    pub done: Vec<Duration>,
    /// Durations of rejections for lack of capacity.
    pub rejected: Vec<Duration>,
    /// Rejections because the store or the request was too slow.
    pub unavailable: usize,
    /// Requests that were not sent, because too many were in progress.
    pub not_sent: usize,
    /// Invalid responses.
    pub faults: Vec<String>,
}

impl Seen {
    /// Adds the responses of a later period.
    pub fn add(&mut self, later: Self) {
        self.done.extend(later.done);
        self.rejected.extend(later.rejected);
        self.unavailable += later.unavailable;
        self.not_sent += later.not_sent;
        self.faults.extend(later.faults);
    }

    /// Whether all requests were sent and successful.
    pub fn is_all_done(&self) -> bool {
        self.rejected.is_empty() && self.unavailable + self.not_sent + self.faults.len() == 0
    }
}

enum Reply {
    Done(Value),
    /// The preferences have another version.
    Conflict(u64),
    Overloaded,
    Unavailable,
    Fault(String),
}

/// Events that a user's preferences have learned from.
#[derive(Default)]
struct Lessons {
    /// Acknowledged events.
    certain: u64,
    /// Events whose outcome is unknown.
    possible: u64,
}

struct State {
    requests: Requests,
    promised: Vec<Key>,
    rejected: Vec<Key>,
    lessons: HashMap<String, Lessons>,
    seen: Seen,
}

/// An endless sequence of requests.
pub struct Traffic {
    served: Served,
    state: Mutex<State>,
}

impl Traffic {
    /// Creates the traffic of a bundle.
    pub fn to(served: Served) -> Self {
        let state = State {
            requests: Requests::new(),
            promised: Vec::new(),
            rejected: Vec::new(),
            lessons: HashMap::new(),
            seen: Seen::default(),
        };
        Self {
            served,
            state: Mutex::new(state),
        }
    }

    /// The bundle.
    pub fn served(&self) -> &Served {
        &self.served
    }

    /// Returns the responses since the last call of this method.
    pub fn take(&self) -> Seen {
        std::mem::take(&mut self.state().seen)
    }

    /// Counts a request that was not sent.
    pub fn skip(&self) {
        self.state().seen.not_sent += 1;
    }

    /// Sends the next request, and records its outcome.
    pub async fn send_next(&self) {
        let planned = self.state().requests.next();
        let began = Instant::now();
        let reply = self.send(&planned).await;
        self.state().record(planned, reply, began.elapsed());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    async fn send(&self, planned: &Planned) -> Reply {
        let method = planned.method.clone();
        let request = match &planned.user {
            Some(user) => self.served.request(user, method, &planned.path),
            None => self.served.by_back_end(method, &planned.path),
        };
        let request = match &planned.body {
            Some(body) => request.json(body),
            None => request,
        };
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => return Reply::Fault(format!("{error:?}")),
        };
        let status = response.status();
        let has_retry_after = response.headers().contains_key(RETRY_AFTER);
        let Ok(body) = response.json::<Value>().await else {
            return Reply::Fault(format!("{status} without a body"));
        };
        match (status, &planned.then) {
            (status, _) if status.is_success() => Reply::Done(body),
            (StatusCode::CONFLICT, Followup::Change(..)) => {
                Reply::Conflict(body["currentVersion"].as_u64().unwrap())
            }
            (StatusCode::SERVICE_UNAVAILABLE, _) if has_retry_after => match body["error"].as_str()
            {
                Some("overloaded") => Reply::Overloaded,
                _ => Reply::Unavailable,
            },
            _ => Reply::Fault(format!("{} {status} {body}", planned.path)),
        }
    }

    /// Returns violations of the acknowledgements: missing promised items, stored rejected ones, users who learned
    /// from too few or too many events.
    pub async fn violations(&self) -> Vec<String> {
        let (promised, rejected, lessons) = {
            let mut state = self.state();
            (
                std::mem::take(&mut state.promised),
                std::mem::take(&mut state.rejected),
                std::mem::take(&mut state.lessons),
            )
        };
        println!(
            "{} items promised, {} rejected, {} users learned",
            promised.len(),
            rejected.len(),
            lessons.len()
        );
        let mut violations = Vec::new();
        let (expected, dynamodb) = (promised.len(), &self.served.dynamodb);
        let found = items(dynamodb, TABLE, promised).await.len();
        if found != expected {
            violations.push(format!("{found} of {expected} promised items are there"));
        }
        let found = items(dynamodb, TABLE, rejected).await.len();
        if found != 0 {
            violations.push(format!("{found} items are there that were rejected"));
        }
        for (user, Lessons { certain, possible }) in lessons {
            let learned = self.learned(&user).await;
            if !(certain..=certain + possible).contains(&learned) {
                violations.push(format!(
                    "{user} learned {learned} times, not {certain} to {}",
                    certain + possible
                ));
            }
        }
        violations
    }

    /// The number of events that a user's preferences learned from.
    async fn learned(&self, user: &str) -> u64 {
        let path = format!("/v1/preferences/{user}");
        let read = self.served.request(user, Method::GET, &path).send().await;
        let preferences: Value = read.unwrap().json().await.unwrap();
        let types = preferences["artifactPreferences"].as_object();
        let counts = types.into_iter().flat_map(serde_json::Map::values);
        counts
            .filter_map(|learned| learned["sampleCount"].as_u64())
            .sum()
    }
}

impl State {
    fn record(&mut self, mut planned: Planned, reply: Reply, took: Duration) {
        if let Followup::Change(user, version) = &planned.then {
            let version = match &reply {
                Reply::Done(_) => version + 1,
                Reply::Conflict(current) => *current,
                _ => *version,
            };
            self.requests.changed(user, version);
            if !matches!(reply, Reply::Done(_)) {
                // The change is repeated, and stored then.
                planned.promised.clear();
            }
        }
        match reply {
            Reply::Done(body) => {
                self.seen.done.push(took);
                self.done(planned, &body);
            }
            Reply::Conflict(_) => self.seen.done.push(took),
            Reply::Overloaded => {
                self.seen.rejected.push(took);
                self.rejected.extend(planned.promised);
            }
            Reply::Unavailable => {
                self.seen.unavailable += 1;
                self.unknown(planned.learners);
            }
            Reply::Fault(fault) => {
                self.seen.faults.push(fault);
                self.unknown(planned.learners);
            }
        }
    }

    fn done(&mut self, planned: Planned, body: &Value) {
        if let Some(results) = body["results"].as_array() {
            return self.record_batch(planned, results);
        }
        self.promised.extend(planned.promised);
        for user in planned.learners {
            self.lessons.entry(user).or_default().certain += 1;
        }
        self.requests.record(planned.then);
    }

    /// Each event of a batch may have been stored or not.
    fn record_batch(&mut self, planned: Planned, results: &[Value]) {
        let each = planned
            .promised
            .chunks(2)
            .zip(planned.learners)
            .zip(results);
        for ((keys, user), result) in each {
            let lessons = self.lessons.entry(user).or_default();
            if result["status"] == "queued" {
                self.promised.extend_from_slice(keys);
                lessons.certain += 1;
            } else {
                lessons.possible += 1;
            }
        }
    }

    fn unknown(&mut self, learners: Vec<String>) {
        for user in learners {
            self.lessons.entry(user).or_default().possible += 1;
        }
    }
}
