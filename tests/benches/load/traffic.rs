//! What was answered, and what must therefore be stored.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use hearback_tests::served::{Key, Served, items};
use reqwest::header::RETRY_AFTER;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::requests::{Asked, Requests, Then};

const TABLE: &str = "hearback";
/// What was answered in a stretch of time.
#[derive(Default)]
pub struct Seen {
    /// How long it took to do what was asked.
    pub done: Vec<Duration>,
    /// How long it took to refuse it for want of room.
    pub refused: Vec<Duration>,
    /// Refused because the store was too slow, or the request.
    pub unavailable: usize,
    /// Not even asked: too much was under way on this side.
    pub not_sent: usize,
    /// Answers that nobody may get.
    pub faults: Vec<String>,
}

impl Seen {
    /// Adds what was seen later.
    pub fn add(&mut self, later: Self) {
        self.done.extend(later.done);
        self.refused.extend(later.refused);
        self.unavailable += later.unavailable;
        self.not_sent += later.not_sent;
        self.faults.extend(later.faults);
    }

    /// Whether everything that was to be asked was done.
    pub fn is_all_done(&self) -> bool {
        self.refused.is_empty() && self.unavailable + self.not_sent + self.faults.len() == 0
    }
}

enum Answer {
    Done(Value),
    /// The preferences have this version.
    Conflict(u64),
    Refused,
    Unavailable,
    Fault(String),
}

/// Events that a user's preferences have learned from.
#[derive(Default)]
struct Lessons {
    /// Of which it was acknowledged that they are stored.
    certain: u64,
    /// Of which nobody knows.
    possible: u64,
}

struct State {
    requests: Requests,
    promised: Vec<Key>,
    refused: Vec<Key>,
    lessons: HashMap<String, Lessons>,
    seen: Seen,
}

/// Requests without end.
pub struct Traffic {
    served: Served,
    state: Mutex<State>,
}

impl Traffic {
    /// Requests to this bundle.
    pub fn to(served: Served) -> Self {
        let state = State {
            requests: Requests::new(),
            promised: Vec::new(),
            refused: Vec::new(),
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

    /// What was seen since the last time.
    pub fn take(&self) -> Seen {
        std::mem::take(&mut self.state().seen)
    }

    /// Notes that a request was not sent.
    pub fn skip(&self) {
        self.state().seen.not_sent += 1;
    }

    /// Sends the next request, and notes what came of it.
    pub async fn send_next(&self) {
        let asked = self.state().requests.next();
        let began = Instant::now();
        let answer = self.send(&asked).await;
        self.state().note(asked, answer, began.elapsed());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    async fn send(&self, asked: &Asked) -> Answer {
        let method = asked.method.clone();
        let request = match &asked.user {
            Some(user) => self.served.request(user, method, &asked.path),
            None => self.served.by_back_end(method, &asked.path),
        };
        let request = match &asked.body {
            Some(body) => request.json(body),
            None => request,
        };
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => return Answer::Fault(format!("{error:?}")),
        };
        let status = response.status();
        let comes_back = response.headers().contains_key(RETRY_AFTER);
        let Ok(body) = response.json::<Value>().await else {
            return Answer::Fault(format!("{status} without a body"));
        };
        match (status, &asked.then) {
            (status, _) if status.is_success() => Answer::Done(body),
            (StatusCode::CONFLICT, Then::Change(..)) => {
                Answer::Conflict(body["currentVersion"].as_u64().unwrap())
            }
            (StatusCode::SERVICE_UNAVAILABLE, _) if comes_back => match body["error"].as_str() {
                Some("overloaded") => Answer::Refused,
                _ => Answer::Unavailable,
            },
            _ => Answer::Fault(format!("{} {status} {body}", asked.path)),
        }
    }

    /// What is not as it was acknowledged: promised items that are not there, refused ones that are, users
    /// who learned from more or fewer events than they gave.
    pub async fn wrong(&self) -> Vec<String> {
        let (promised, refused, lessons) = {
            let mut state = self.state();
            (
                std::mem::take(&mut state.promised),
                std::mem::take(&mut state.refused),
                std::mem::take(&mut state.lessons),
            )
        };
        println!(
            "{} items promised, {} refused, {} users taught",
            promised.len(),
            refused.len(),
            lessons.len()
        );
        let mut wrong = Vec::new();
        let (expected, dynamodb) = (promised.len(), &self.served.dynamodb);
        let found = items(dynamodb, TABLE, promised).await.len();
        if found != expected {
            wrong.push(format!("{found} of {expected} promised items are there"));
        }
        let found = items(dynamodb, TABLE, refused).await.len();
        if found != 0 {
            wrong.push(format!("{found} items are there that were refused"));
        }
        for (user, Lessons { certain, possible }) in lessons {
            let learned = self.learned(&user).await;
            if !(certain..=certain + possible).contains(&learned) {
                wrong.push(format!(
                    "{user} learned {learned} times, not {certain} to {}",
                    certain + possible
                ));
            }
        }
        wrong
    }

    /// From how many events a user's preferences learned.
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
    fn note(&mut self, mut asked: Asked, answer: Answer, took: Duration) {
        if let Then::Change(user, version) = &asked.then {
            let version = match &answer {
                Answer::Done(_) => version + 1,
                Answer::Conflict(current) => *current,
                _ => *version,
            };
            self.requests.changed(user, version);
            if !matches!(answer, Answer::Done(_)) {
                // It is made again, and then it is there.
                asked.promised.clear();
            }
        }
        match answer {
            Answer::Done(body) => {
                self.seen.done.push(took);
                self.done(asked, &body);
            }
            Answer::Conflict(_) => self.seen.done.push(took),
            Answer::Refused => {
                self.seen.refused.push(took);
                self.refused.extend(asked.promised);
            }
            Answer::Unavailable => {
                self.seen.unavailable += 1;
                self.unknown(asked.taught);
            }
            Answer::Fault(fault) => {
                self.seen.faults.push(fault);
                self.unknown(asked.taught);
            }
        }
    }

    fn done(&mut self, asked: Asked, body: &Value) {
        if let Some(results) = body["results"].as_array() {
            return self.taken(asked, results);
        }
        self.promised.extend(asked.promised);
        for user in asked.taught {
            self.lessons.entry(user).or_default().certain += 1;
        }
        self.requests.go_on(asked.then);
    }

    /// Of a batch, each event may have been stored or not.
    fn taken(&mut self, asked: Asked, results: &[Value]) {
        let each = asked.promised.chunks(2).zip(asked.taught).zip(results);
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

    fn unknown(&mut self, taught: Vec<String>) {
        for user in taught {
            self.lessons.entry(user).or_default().possible += 1;
        }
    }
}
