//! Mixed traffic: what is asked, what was acknowledged, and what must therefore be stored.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use hearback_tests::events::{acceptance, id};
use hearback_tests::generate::Random;
use hearback_tests::served::{Key, Served, items};
use hearback_tests::turns::{SIGNALS, conversation_path, message, path};
use reqwest::header::RETRY_AFTER;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

const TABLE: &str = "hearback";
/// Users who submit events, and as many who have conversations.
const USERS: u64 = 500;
/// Users who change their preferences, one change at a time.
const SETTLERS: u64 = 100;
/// Events in a batch.
const BATCH: usize = 50;
/// Events that may be read again.
const REMEMBERED: usize = 1_000;

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

/// A turn that was registered.
#[derive(Clone)]
struct Turn {
    number: u64,
    user: String,
}

/// What an acknowledgement lets others do.
enum Then {
    Nothing,
    Read(String),
    Talk(Turn),
    Change(String, u64),
}

/// A request, and what its acknowledgement promises.
struct Asked {
    /// `None` for a back end.
    user: Option<String>,
    method: Method,
    path: String,
    body: Option<Value>,
    /// Items that are there in the end.
    promised: Vec<Key>,
    /// Whose preferences learn one event more, as often as they are named.
    taught: Vec<String>,
    then: Then,
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
    random: Random,
    turns: u64,
    events: VecDeque<String>,
    to_react: VecDeque<Turn>,
    to_signal: VecDeque<Turn>,
    versions: VecDeque<(String, u64)>,
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
            random: Random(1),
            turns: 0,
            events: VecDeque::new(),
            to_react: VecDeque::new(),
            to_signal: VecDeque::new(),
            versions: (0..SETTLERS).map(|n| (format!("settler-{n}"), 0)).collect(),
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
        let asked = self.state().next();
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

fn get(user: String, path: String) -> Asked {
    Asked {
        user: Some(user),
        method: Method::GET,
        path,
        body: None,
        promised: Vec::new(),
        taught: Vec::new(),
        then: Then::Nothing,
    }
}

fn post(user: String, path: String, body: Value) -> Asked {
    Asked {
        method: Method::POST,
        body: Some(body),
        ..get(user, path)
    }
}

/// An event and what came of it.
fn event_keys(feedback_id: &str) -> [Key; 2] {
    let pk = format!("EVENT#acme#{feedback_id}");
    ["EVENT", "RESULT"].map(|sk| (pk.clone(), sk.to_owned()))
}

impl Turn {
    fn conversation(&self) -> String {
        format!("conv-{}", self.number)
    }

    fn message(&self) -> String {
        format!("msg-{}", self.number)
    }

    fn key(&self, sk: String) -> Key {
        let pk = format!("CONV#acme#order-service#{}", self.conversation());
        (pk, sk)
    }
}

impl State {
    fn next(&mut self) -> Asked {
        let asked = match self.random.below(100) {
            0..15 => self.read_event(),
            15..27 => Some(self.read_preferences()),
            27..37 => Some(self.register()),
            37..47 => self.react(),
            47..52 => self.signal(),
            52..54 => self.report("timeline/refresh"),
            54..56 => self.report("turns-with-feedbacks"),
            56..59 => self.change(),
            59 => Some(self.batch()),
            _ => None,
        };
        asked.unwrap_or_else(|| self.submit())
    }

    fn user(&mut self) -> String {
        format!("user-{}", self.random.below(USERS))
    }

    fn submit(&mut self) -> Asked {
        let user = self.user();
        let mut event = acceptance(&user);
        let mut taught = vec![user.clone()];
        if self.random.below(2) == 0 {
            event["feedbackChannel"] = json!("implicit");
            event["feedbackType"] = json!("dwell-time");
            event["data"] = json!({"timeSpent": 45});
            // Nobody learns a preference from that.
            taught.clear();
        }
        let feedback_id = id(&event);
        Asked {
            promised: event_keys(&feedback_id).into(),
            taught,
            then: Then::Read(feedback_id),
            ..post(user, "/v1/feedback/submit".to_owned(), event)
        }
    }

    fn batch(&mut self) -> Asked {
        let users: Vec<_> = (0..BATCH).map(|_| self.user()).collect();
        let events: Vec<_> = users.iter().map(|user| acceptance(user)).collect();
        let promised = events.iter().flat_map(|event| event_keys(&id(event)));
        Asked {
            user: None,
            promised: promised.collect(),
            taught: users,
            ..post(
                String::new(),
                "/v1/feedback/batch".to_owned(),
                json!({"events": events}),
            )
        }
    }

    fn read_event(&mut self) -> Option<Asked> {
        let at = usize::try_from(self.random.below(REMEMBERED as u64)).unwrap();
        let feedback_id = self.events.get(at)?;
        let path = format!("/v1/feedback/{feedback_id}");
        Some(Asked {
            user: None,
            ..get(String::new(), path)
        })
    }

    fn read_preferences(&mut self) -> Asked {
        let user = self.user();
        let path = format!("/v1/preferences/{user}/resolved");
        get(user, path)
    }

    /// A turn in a conversation of its own: what follows from the next message is another matter.
    fn register(&mut self) -> Asked {
        self.turns += 1;
        let turn = Turn {
            number: self.turns,
            user: format!("talker-{}", self.turns % USERS),
        };
        let body = message(
            &turn.message(),
            "How do I return an item?",
            "Within 30 days.",
        );
        let directory = format!("MESSAGE#acme#order-service#{}", turn.message());
        Asked {
            method: Method::PUT,
            promised: vec![
                turn.key("TURN#t".to_owned()),
                (directory, "MESSAGE".to_owned()),
            ],
            ..post(turn.user.clone(), path(&turn.conversation(), "t"), body)
        }
        .then(Then::Talk(turn))
    }

    fn react(&mut self) -> Option<Asked> {
        let turn = self.to_react.pop_front()?;
        let path = format!("{}/feedback", path(&turn.conversation(), "t"));
        Some(Asked {
            promised: vec![turn.key(format!("REACTION#t#user#{}", turn.user))],
            taught: vec![turn.user.clone()],
            ..post(turn.user, path, json!({"reaction": "ok"}))
        })
    }

    fn signal(&mut self) -> Option<Asked> {
        let turn = self.to_signal.pop_front()?;
        let pk = format!("USER#acme#{}", turn.user);
        let body = json!({"message_id": turn.message(), "signal": "helpful"});
        Some(Asked {
            promised: vec![(pk, format!("SIGNAL#{}#helpful", turn.message()))],
            taught: vec![turn.user.clone()],
            ..post(turn.user, SIGNALS.to_owned(), body)
        })
    }

    fn report(&mut self, name: &str) -> Option<Asked> {
        let turn = self.to_signal.back()?.clone();
        let path = format!("{}/{name}", conversation_path(&turn.conversation()));
        let mut body = json!({"turn_ids": ["t"]});
        if name == "timeline/refresh" {
            body["cache"] = json!({"ttl_seconds": 0});
        }
        Some(post(turn.user, path, body))
    }

    fn change(&mut self) -> Option<Asked> {
        let (user, version) = self.versions.pop_front()?;
        let path = format!("/v1/preferences/{user}");
        let body = json!({
            "preferenceVersion": version, "globalPreferences": {"detailLevel": "overview"}
        });
        let key = (
            format!("PREF#acme#{user}"),
            format!("V#{:010}", version + 1),
        );
        Some(Asked {
            method: Method::PUT,
            promised: vec![key],
            then: Then::Change(user.clone(), version),
            ..post(user, path, body)
        })
    }

    fn note(&mut self, mut asked: Asked, answer: Answer, took: Duration) {
        if let Then::Change(user, version) = &asked.then {
            let version = match &answer {
                Answer::Done(_) => version + 1,
                Answer::Conflict(current) => *current,
                _ => *version,
            };
            self.versions.push_back((user.clone(), version));
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
        match asked.then {
            Then::Nothing | Then::Change(..) => {}
            Then::Read(feedback_id) => {
                self.events.push_front(feedback_id);
                self.events.truncate(REMEMBERED);
            }
            Then::Talk(turn) => {
                self.to_react.push_back(turn.clone());
                self.to_signal.push_back(turn);
            }
        }
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

impl Asked {
    fn then(self, then: Then) -> Self {
        Self { then, ..self }
    }
}
