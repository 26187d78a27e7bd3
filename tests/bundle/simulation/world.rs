//! A store, those who use it, and what happens next.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use axum::http::{Method, StatusCode};
use chrono::{DateTime, SecondsFormat, Utc};
use futures::future::join;
use hearback_batch::notification;
use hearback_lambda::clock::Clock;
use hearback_local::stream::{FULL_READ, Stream};
use hearback_signals::publish;
use hearback_storage::files::import_key;
use hearback_storage::stream::{RESULTS, SUBMITTED};
use hearback_tests::engine::Engine;
use hearback_tests::events::ingested_of;
use hearback_tests::faults::{Fault, Faults};
use hearback_tests::functions::{Caller, call_as};
use hearback_tests::generate::Random;
use hearback_tests::hands::{Hands, TIME};
use hearback_tests::queue;
use hearback_tests::turns::SIGNALS;
use serde_json::{Value, json};
use uuid::Uuid;

use super::checks;
use super::model::{LEAVERS, Tenant, Turn, USERS};

/// Tenants that use the same names and know nothing of each other.
pub const TENANTS: [&str; 2] = ["acme", "globex"];
const PROJECT: &str = "order-service";
const VERDICTS: [Option<&str>; 4] = [Some("ok"), Some("not_ok"), Some("neutral"), None];
/// Requests and messages that are tried again until they succeed.
const TRIES: usize = 10;
/// One in so many has a fault in one of its first calls.
const FAULTY: u64 = 5;
const FIRST_CALLS: u64 = 8;

thread_local! {
    /// The time in this thread's world, in seconds; it moves with the steps.
    static NOW: Cell<i64> = const { Cell::new(0) };
}

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(NOW.get(), 0).unwrap()
}

/// A process that works, and fails at times.
struct Worker {
    hands: Hands,
    faults: Faults,
}

impl Worker {
    fn new(engine: &Engine) -> Self {
        let faults = Faults::none();
        Self {
            hands: Hands::at(engine, &faults, Clock::of(now)),
            faults,
        }
    }
}

/// What a request is answered.
pub struct Answer {
    pub status: StatusCode,
    pub body: Value,
}

pub struct World {
    pub engine: Engine,
    pub tenants: [Tenant; 2],
    /// Messages of subjects by what tells them apart.
    pub published: BTreeMap<String, Value>,
    random: Random,
    gateway: Worker,
    workers: [Worker; 2],
    stream: Stream,
    waiting: Vec<SqsMessage>,
    delivered: Vec<SqsMessage>,
    operations: u64,
    /// Names that were given.
    named: u64,
}

impl World {
    pub async fn new(seed: u64) -> Self {
        NOW.set(TIME);
        let engine = Engine::start().await;
        let arn = engine.store.stream_arn().await.unwrap();
        let mut stream = Stream::new(engine.clients.streams.clone(), arn);
        stream.open(&BTreeMap::new()).await.unwrap();
        Self {
            tenants: Default::default(),
            published: BTreeMap::new(),
            random: Random(seed),
            gateway: Worker::new(&engine),
            workers: [Worker::new(&engine), Worker::new(&engine)],
            stream,
            waiting: Vec::new(),
            delivered: Vec::new(),
            operations: 0,
            named: 0,
            engine,
        }
    }

    /// Requests that were answered, and messages that were worked off.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap();
        usize::try_from(self.random.below(bound)).unwrap()
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn name(&mut self) -> u64 {
        self.named += 1;
        self.named
    }

    /// Has a worker fail at one of its next calls, or not.
    fn plan(&mut self) -> (u32, Fault) {
        let fault = self.one_of(&Fault::ALL);
        let call = u32::try_from(1 + self.random.below(FIRST_CALLS)).unwrap();
        if self.random.below(FAULTY) == 0 {
            (call, fault)
        } else {
            (u32::MAX, Fault::Refused)
        }
    }

    /// Sends a request of a user until it is answered.
    async fn ask(
        &mut self,
        (tenant, user): (usize, &str),
        (method, path): (Method, &str),
        body: &Value,
    ) -> Answer {
        let caller = Caller {
            user,
            tenant: TENANTS[tenant],
            project: PROJECT,
            scope: "",
        };
        self.ask_as(caller, (method, path), body).await
    }

    async fn ask_as(
        &mut self,
        caller: Caller<'_>,
        (method, path): (Method, &str),
        body: &Value,
    ) -> Answer {
        for _ in 0..TRIES {
            let (at, fault) = self.plan();
            self.gateway.faults.plan(at, fault);
            let functions = &self.gateway.hands.functions;
            let (status, body) = call_as(functions, caller, (method.clone(), path), body).await;
            if self.gateway.faults.died() {
                self.gateway = Worker::new(&self.engine);
                continue;
            }
            if status.is_server_error() {
                assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{method} {path}");
                continue;
            }
            self.operations += 1;
            return Answer { status, body };
        }
        panic!("never answered: {method} {path}");
    }

    pub async fn step(&mut self) {
        NOW.set(NOW.get() + 1);
        let tenant = self.below(TENANTS.len());
        let user = self.one_of(&USERS);
        match self.random.below(100) {
            0..30 => self.submit(tenant).await,
            30..36 => self.submit_again(tenant).await,
            36..40 => self.submit_batch(tenant).await,
            40..43 => self.send(tenant).await,
            43..55 => self.react(tenant, user).await,
            55..63 => self.say(tenant, user).await,
            63..68 => self.register(tenant, user).await,
            68..71 => self.prefer(tenant, user).await,
            71..84 => self.read(tenant, user).await,
            84..95 => self.deliver().await,
            95 => self.import(tenant).await,
            96 if self.random.below(3) == 0 => self.leave(tenant).await,
            _ => self.erase().await,
        }
    }

    /// An event of some user's; it may say what another said.
    fn event(&mut self) -> (Uuid, Value) {
        let id = Uuid::from_u64_pair(self.random.next(), self.random.next());
        let accepted = self.random.below(2) == 0;
        let user = self.one_of(&USERS);
        let artifact = self.one_of(&["a", "b", "c", "d", "e", "f", "g", "h"]);
        let event = json!({
            "feedbackId": id, "userId": user, "sessionId": "s", "artifactId": artifact,
            "feedbackChannel": "explicit", "feedbackType": "artifact-acceptance",
            "data": {"accepted": accepted}
        });
        (id, event)
    }

    fn known(&mut self, tenant: usize) -> Option<Value> {
        let count = self.tenants[tenant].events.len();
        let at = (count > 0).then(|| self.below(count))?;
        self.tenants[tenant].events.values().nth(at).cloned()
    }

    async fn submit(&mut self, tenant: usize) {
        let (id, event) = self.event();
        let user = event["userId"].as_str().unwrap().to_owned();
        let request = (Method::POST, "/v1/feedback/submit");
        let answer = self.ask((tenant, &user), request, &event).await;
        // The try before may have been done: then it is known.
        assert!(
            [StatusCode::ACCEPTED, StatusCode::CONFLICT].contains(&answer.status),
            "{}",
            answer.body
        );
        self.tenants[tenant].events.insert(id, event);
    }

    async fn submit_again(&mut self, tenant: usize) {
        let Some(event) = self.known(tenant) else {
            return;
        };
        let user = event["userId"].as_str().unwrap().to_owned();
        let request = (Method::POST, "/v1/feedback/submit");
        let answer = self.ask((tenant, &user), request, &event).await;
        let leaving = self.tenants[tenant].leaving.contains(user.as_str());
        if leaving && answer.status == StatusCode::ACCEPTED {
            // It was erased already, and will be again.
            return;
        }
        assert_eq!(answer.status, StatusCode::CONFLICT, "{}", answer.body);
    }

    fn some_events(&mut self) -> Vec<(Uuid, Value)> {
        let count = 1 + self.random.below(5);
        (0..count).map(|_| self.event()).collect()
    }

    async fn submit_batch(&mut self, tenant: usize) {
        let events = self.some_events();
        let bodies: Vec<_> = events.iter().map(|(_, event)| event).collect();
        let body = json!({"events": bodies});
        let caller = Caller {
            user: "order-service",
            tenant: TENANTS[tenant],
            project: PROJECT,
            scope: "feedback:on-behalf",
        };
        for _ in 0..TRIES {
            let request = (Method::POST, "/v1/feedback/batch");
            let answer = self.ask_as(caller, request, &body).await;
            assert!(answer.status.is_success(), "{}", answer.body);
            let results = answer.body["results"].as_array().unwrap();
            if results.iter().all(|result| result["status"] != "failed") {
                self.tenants[tenant].events.extend(events);
                return;
            }
        }
        panic!("never taken: {body}");
    }

    /// Sends a message by the ingest queue.
    async fn send(&mut self, tenant: usize) {
        let events = self.some_events();
        let bodies: Vec<_> = events.iter().map(|(_, event)| event).collect();
        let mut batch = ingested_of(TENANTS[tenant], &json!({"events": bodies}));
        let message = &mut batch.records[0];
        message.message_id = Some("message".to_owned());
        let sent = now().timestamp_millis().to_string();
        message.attributes.insert("SentTimestamp".to_owned(), sent);
        self.operations += 1;
        for _ in 0..TRIES {
            let worker = self.worker();
            let response = self.workers[worker].hands.ingest.handle(batch.clone());
            let failed = !response.await.batch_item_failures.is_empty();
            if !self.buried(worker) && !failed {
                self.tenants[tenant].events.extend(events);
                return;
            }
        }
        panic!("never taken: {bodies:?}");
    }

    /// Readies one of the workers.
    fn worker(&mut self) -> usize {
        let worker = self.below(self.workers.len());
        self.ready(worker);
        worker
    }

    fn ready(&mut self, worker: usize) {
        let (at, fault) = self.plan();
        self.workers[worker].faults.plan(at, fault);
    }

    /// Whether a worker died; then another one stands in its place.
    fn buried(&mut self, worker: usize) -> bool {
        let died = self.workers[worker].faults.died();
        if died {
            self.workers[worker] = Worker::new(&self.engine);
        }
        died
    }

    /// Whether a request was refused, as it must be of somebody who is being erased.
    fn refused(&self, (tenant, user): (usize, &str), answer: &Answer) -> bool {
        let leaving = self.tenants[tenant].leaving.contains(user);
        let refused = answer.body["error"] == "erasure_in_progress";
        // What it is about may be erased already.
        let gone = leaving && answer.status == StatusCode::NOT_FOUND;
        assert_eq!(leaving, refused || gone, "{}", answer.body);
        leaving
    }

    async fn react(&mut self, tenant: usize, user: &'static str) {
        let turns = self.tenants[tenant].turns_for(user);
        if turns.is_empty() {
            return;
        }
        let (turn, verdict) = (self.one_of(&turns), self.one_of(&VERDICTS));
        let ts = now().to_rfc3339_opts(SecondsFormat::Secs, true);
        let body = json!({"reaction": verdict, "ts": ts, "mirror": true});
        let path = format!("{}/feedback", path(tenant, turn));
        let answer = self.ask((tenant, user), (Method::POST, &path), &body).await;
        if self.refused((tenant, user), &answer) {
            return;
        }
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        let reactions = &mut self.tenants[tenant].reactions;
        match verdict {
            Some(verdict) => reactions.insert((turn, user), verdict),
            None => reactions.remove(&(turn, user)),
        };
    }

    async fn say(&mut self, tenant: usize, user: &'static str) {
        let turns = self.tenants[tenant].turns_for(user);
        if turns.is_empty() {
            return;
        }
        let turn = self.one_of(&turns);
        let message = message_of(turn);
        if self.random.below(3) == 0 {
            let gone = format!("{SIGNALS}?message_id={message}&signal=edit");
            let request = (Method::DELETE, gone.as_str());
            let answer = self.ask((tenant, user), request, &Value::Null).await;
            if self.tenants[tenant].leaving.contains(user) {
                // What is not there needs no writing.
                assert!(answer.status.is_success() || self.refused((tenant, user), &answer));
                return;
            }
            assert_eq!(answer.status, StatusCode::NO_CONTENT, "{}", answer.body);
            self.tenants[tenant].signals.remove(&(turn, user));
            return;
        }
        let reason = self.one_of(&["one", "other", "third"]);
        let body = json!({"message_id": message, "signal": "edit", "reason": reason});
        let answer = self
            .ask((tenant, user), (Method::POST, SIGNALS), &body)
            .await;
        if self.refused((tenant, user), &answer) {
            return;
        }
        assert!(answer.status.is_success(), "{}", answer.body);
        let signals = &mut self.tenants[tenant].signals;
        signals.insert((turn, user), reason.to_owned());
    }

    async fn register(&mut self, tenant: usize, user: &'static str) {
        let turn = (user, self.name());
        let said = self.one_of(&[
            "Which parcels are late?",
            "No, that's wrong.",
            "Thanks, that helped!",
        ]);
        let ts = now().to_rfc3339_opts(SecondsFormat::Secs, true);
        let body = json!({
            "user": {"text": said}, "ts": ts, "turn_log": {"text": "log", "entries": []},
            "assistant": {"text": "Those of today.", "message_id": message_of(turn)}
        });
        let request = (Method::PUT, path(tenant, turn));
        let answer = self
            .ask((tenant, user), (request.0, &request.1), &body)
            .await;
        if self.refused((tenant, user), &answer) {
            return;
        }
        assert!(answer.status.is_success(), "{}", answer.body);
        self.tenants[tenant].turns.insert(turn);
    }

    async fn prefer(&mut self, tenant: usize, user: &'static str) {
        let path = format!("/v1/preferences/{user}");
        let who = (tenant, user);
        let standing = self.ask(who, (Method::GET, &path), &Value::Null).await;
        let version = match standing.status {
            StatusCode::NOT_FOUND => json!(0),
            _ => standing.body["preferenceVersion"].clone(),
        };
        let level = self.one_of(&["overview", "deep-dive"]);
        let change =
            json!({"preferenceVersion": version, "globalPreferences": {"detailLevel": level}});
        let answer = self.ask(who, (Method::PUT, &path), &change).await;
        // A try before may have been done.
        assert!(
            self.refused(who, &answer)
                || [StatusCode::OK, StatusCode::CONFLICT].contains(&answer.status),
            "{}",
            answer.body
        );
    }

    /// Reads what is the user's, and what is not.
    async fn read(&mut self, tenant: usize, user: &'static str) {
        let who = (tenant, user);
        match self.random.below(4) {
            0 => {
                let Some(event) = self.known(tenant) else {
                    return;
                };
                let path = format!("/v1/feedback/{}", event["feedbackId"].as_str().unwrap());
                let answer = self.ask(who, (Method::GET, &path), &Value::Null).await;
                let owner = event["userId"].as_str().unwrap();
                if owner != user {
                    assert_eq!(answer.status, StatusCode::NOT_FOUND, "{}", answer.body);
                } else if !self.tenants[tenant].leaving.contains(user) {
                    checks::event(&event, &answer);
                }
                // In the other tenant the same name is nothing.
                let other = (1 - tenant, owner);
                let answer = self.ask(other, (Method::GET, &path), &Value::Null).await;
                assert_eq!(answer.status, StatusCode::NOT_FOUND, "{}", answer.body);
            }
            1 => {
                let answer = self.ask(who, (Method::GET, SIGNALS), &Value::Null).await;
                if !self.tenants[tenant].leaving.contains(user) {
                    checks::signals(&self.tenants[tenant], user, &answer);
                }
            }
            2 => checks::preferences(&self.engine.store, (TENANTS[tenant], user))
                .await
                .map_or((), drop),
            _ => {
                let owner = self.one_of(&USERS);
                let path = format!("{}/turns-with-feedbacks", conversation(tenant, owner));
                let asked = json!({"days": 3650, "limit": 500});
                let answer = self.ask(who, (Method::POST, &path), &asked).await;
                let tenant = &self.tenants[tenant];
                if !tenant.leaving.contains(user) && !tenant.leaving.contains(owner) {
                    checks::reactions(tenant, owner, Some(user), &answer);
                }
            }
        }
    }

    /// What everybody did in a conversation.
    pub async fn report(&mut self, tenant: usize, owner: &str) -> Answer {
        let caller = Caller {
            user: "eve",
            tenant: TENANTS[tenant],
            project: PROJECT,
            scope: "feedback:report",
        };
        let path = format!("{}/turns-with-feedbacks", conversation(tenant, owner));
        let asked = json!({"days": 3650, "limit": 500});
        self.ask_as(caller, (Method::POST, &path), &asked).await
    }

    /// What a user said of messages.
    pub async fn said(&mut self, tenant: usize, user: &str) -> Answer {
        let request = (Method::GET, SIGNALS);
        self.ask((tenant, user), request, &Value::Null).await
    }

    /// What was done in all conversations.
    pub async fn period(&mut self, tenant: usize) -> Answer {
        let caller = Caller {
            user: "eve",
            tenant: TENANTS[tenant],
            project: PROJECT,
            scope: "feedback:report",
        };
        let path = format!(
            "/conversations/{}/{PROJECT}/feedback/conversations-in-period",
            TENANTS[tenant]
        );
        let asked = json!({"start": "2086-01-01T00:00:00Z", "end": "2086-02-01T00:00:00Z"});
        self.ask_as(caller, (Method::POST, &path), &asked).await
    }

    /// A file of events, some of them known, and of something else.
    async fn import(&mut self, tenant: usize) {
        let events = self.some_events();
        let mut lines: Vec<_> = events.iter().map(|(_, event)| event.to_string()).collect();
        lines.extend(self.known(tenant).map(|event| event.to_string()));
        lines.push("no event".to_owned());
        let file = format!("{}.jsonl", self.name());
        let key = import_key(&TENANTS[tenant].try_into().unwrap(), &file).unwrap();
        let blobs = self.engine.blobs();
        blobs
            .put_file(&key, lines.join("\n").into_bytes())
            .await
            .unwrap();
        let imports = self.engine.queues.imports.clone();
        let sqs = self.engine.clients.sqs.clone();
        let send = sqs.send_message().queue_url(&imports);
        let send = send.message_body(notification(&key, None));
        send.send().await.unwrap();
        loop {
            let worker = self.worker();
            let hands = &self.workers[worker].hands;
            let handle = async |batch| {
                let response = hands.importer.handle(batch, None).await;
                dead(response, &self.workers[worker].faults)
            };
            let worked = queue::step(&sqs, &imports, handle).await;
            self.buried(worker);
            match worked {
                Some(_) => self.operations += 1,
                None => break,
            }
        }
        self.tenants[tenant].events.extend(events);
    }

    /// Somebody asks to be erased.
    async fn leave(&mut self, tenant: usize) {
        let user = self.one_of(&LEAVERS);
        let request = (Method::DELETE, &*data(user));
        let answer = self.ask((tenant, user), request, &Value::Null).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.body);
        self.tenants[tenant].leaving.insert(user);
    }

    /// A step of the erasures.
    async fn erase(&mut self) {
        if self.tenants.iter().all(|tenant| tenant.leaving.is_empty()) {
            return;
        }
        let (sqs, erasures) = (
            self.engine.clients.sqs.clone(),
            self.engine.queues.erasures.clone(),
        );
        let worker = self.worker();
        let hands = &self.workers[worker].hands;
        let handle = async |batch| {
            let response = hands.eraser.handle(batch, None).await;
            dead(response, &self.workers[worker].faults)
        };
        let worked = queue::step(&sqs, &erasures, handle).await;
        self.operations += u64::from(worked.is_some());
        self.buried(worker);
        for tenant in 0..TENANTS.len() {
            for user in self.tenants[tenant].leaving.clone() {
                let progress = format!("{}/erasure", data(user));
                let request = (Method::GET, progress.as_str());
                let told = self.ask((tenant, user), request, &Value::Null).await;
                if told.body["status"] == "done" {
                    self.tenants[tenant].erased(user);
                }
            }
        }
    }

    /// Makes messages of what was written since.
    async fn carry(&mut self) {
        for shard in self.stream.shards() {
            loop {
                let read = self.stream.read(&shard).await.unwrap();
                let count = read.records.len();
                for record in &read.records {
                    self.carried(record);
                }
                assert!(self.stream.go_on(&shard, read), "a shard ends after hours");
                if count < FULL_READ {
                    break;
                }
            }
        }
    }

    fn carried(&mut self, record: &Value) {
        if SUBMITTED.takes(record) {
            let mut message = SqsMessage::default();
            message.message_id = Some(self.name().to_string());
            message.body = Some(SUBMITTED.send(record).to_string());
            self.waiting.push(message);
        } else if RESULTS.takes(record) {
            for (subject, message) in publish::addressed(record).unwrap() {
                let id = message.get("signalId").unwrap_or(&message["feedbackId"]);
                let name = format!("{subject:?} {} {id}", message["eventType"]);
                let before = self.published.insert(name, message.clone());
                assert!(before.is_none_or(|before| before == message), "{message}");
            }
        }
    }

    /// A batch of what waits, or was delivered before, in any order.
    fn batch(&mut self) -> SqsEvent {
        let mut batch = SqsEvent::default();
        for _ in 0..1 + self.random.below(10) {
            let again = self.random.below(4) == 0;
            let count = if again {
                self.delivered.len()
            } else {
                self.waiting.len()
            };
            if count > 0 {
                let at = self.below(count);
                let from = if again {
                    &self.delivered
                } else {
                    &self.waiting
                };
                batch.records.push(from[at].clone());
            }
        }
        batch
    }

    /// Delivers two batches to two workers at once. What one of them did not say that it failed is done.
    async fn deliver(&mut self) {
        self.carry().await;
        let (one, other) = (self.batch(), self.batch());
        self.ready(0);
        self.ready(1);
        let [first, second] = &self.workers;
        let handled = join(
            first.hands.generator.handle(one.clone()),
            second.hands.generator.handle(other.clone()),
        );
        let (first, second) = handled.await;
        for (worker, batch, response) in [(0, one, first), (1, other, second)] {
            if !self.buried(worker) {
                self.acknowledge(batch, response);
            }
        }
    }

    fn acknowledge(&mut self, batch: SqsEvent, response: SqsBatchResponse) {
        let failed: BTreeSet<_> = (response.batch_item_failures.into_iter())
            .map(|failure| failure.item_identifier)
            .collect();
        for message in batch.records {
            let id = message.message_id.clone();
            if !failed.contains(id.as_deref().unwrap()) {
                self.waiting.retain(|waits| waits.message_id != id);
                self.delivered.push(message);
                self.operations += 1;
            }
        }
    }

    /// Works off all that is left, with nothing that fails.
    pub async fn drain(&mut self) {
        let well = Worker::new(&self.engine);
        loop {
            self.carry().await;
            if self.waiting.is_empty() {
                return;
            }
            let mut batch = SqsEvent::default();
            batch.records = self.waiting.drain(..self.waiting.len().min(10)).collect();
            let response = well.hands.generator.handle(batch.clone()).await;
            assert!(response.batch_item_failures.is_empty());
            self.acknowledge(batch, response);
        }
    }
}

/// What a queue hears of a consumer that died: nothing, so that its messages come again.
fn dead(mut response: SqsBatchResponse, faults: &Faults) -> SqsBatchResponse {
    if faults.died() {
        response.batch_item_failures = vec![Default::default()];
    }
    response
}

fn data(user: &str) -> String {
    format!("/v1/users/{user}/data")
}

pub fn conversation(tenant: usize, owner: &str) -> String {
    format!("/conversations/{}/{PROJECT}/c-{owner}", TENANTS[tenant])
}

fn path(tenant: usize, turn: Turn) -> String {
    format!("{}/turns/{}", conversation(tenant, turn.0), turn_id(turn))
}

pub fn turn_id(turn: Turn) -> String {
    format!("t-{}-{}", turn.0, turn.1)
}

pub fn message_of(turn: Turn) -> String {
    format!("m-{}-{}", turn.0, turn.1)
}
