//! A world: a store, its users and workers, and the choice of the next operation.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use aws_lambda_events::sqs::SqsMessage;
use axum::http::{Method, StatusCode};
use chrono::{DateTime, TimeDelta, Utc};
use hearback_lambda::clock::Clock;
use hearback_local::stream::Stream;
use hearback_tests::engine::Engine;
use hearback_tests::faults::{Fault, Faults};
use hearback_tests::function_set::{FunctionSet, TIME};
use hearback_tests::functions::{Caller, call_as};
use hearback_tests::generate::Random;
use hearback_tests::live::{LiveFunctions, TestSockets};
use hearback_tests::turns::SIGNALS;
use serde_json::{Value, json};

use super::listener::Listener;
use super::model::{Tenant, Turn, USERS};

/// Two tenants that use the same names.
pub const TENANTS: [&str; 2] = ["acme", "globex"];
pub const PROJECT: &str = "order-service";
/// The user who reads reports of all users.
pub const ANALYST: &str = "eve";
/// Attempts of a request or a message.
pub const TRIES: usize = 10;
/// One of this many requests and batches has a fault in one of its first calls.
const FAULTY: u64 = 5;
const FIRST_CALLS: u64 = 8;

thread_local! {
    /// The time of this thread's world, in seconds. Each step advances it.
    static NOW: Cell<i64> = const { Cell::new(0) };
}

pub fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(NOW.get(), 0).unwrap()
}

/// Advances the time of this thread's world.
pub fn advance(seconds: i64) {
    NOW.set(NOW.get() + seconds);
}

/// A process that may fail.
pub struct Worker {
    pub functions: FunctionSet,
    pub live: LiveFunctions,
    pub faults: Faults,
}

impl Worker {
    pub fn new(engine: &Engine, sockets: &Arc<TestSockets>) -> Self {
        let (faults, clock) = (Faults::none(), Clock::of(now));
        Self {
            functions: FunctionSet::at(engine, &faults, clock),
            live: LiveFunctions::at((engine, clock), &faults, sockets.clone()),
            faults,
        }
    }
}

/// A response.
pub struct Response {
    pub status: StatusCode,
    pub body: Value,
}

pub struct World {
    pub engine: Engine,
    pub tenants: [Tenant; 2],
    /// Published messages, by subject, type and id.
    pub published: BTreeMap<String, Value>,
    pub random: Random,
    pub gateway: Worker,
    pub workers: [Worker; 2],
    pub sockets: Arc<TestSockets>,
    pub listeners: Vec<Listener>,
    /// Messages of the fan-out's queue.
    pub wakes: Vec<SqsMessage>,
    /// Messages of the queue of insights.
    pub counts: Vec<SqsMessage>,
    pub stream: Stream,
    pub waiting: Vec<SqsMessage>,
    pub delivered: Vec<SqsMessage>,
    pub operations: u64,
    /// Names given so far.
    named: u64,
}

impl World {
    pub async fn new(seed: u64) -> Self {
        NOW.set(TIME);
        let engine = Engine::start().await;
        let arn = engine.store.stream_arn().await.unwrap();
        let mut stream = Stream::new(engine.clients.streams.clone(), arn);
        stream.open(&BTreeMap::new()).await.unwrap();
        let pseudonyms = engine.app(engine.store.clone()).pseudonyms;
        let tenants = TENANTS.map(|tenant| {
            let tenant = tenant.try_into().unwrap();
            let pseudonym = |user: &str| pseudonyms.user(&tenant, &user.try_into().unwrap());
            Tenant {
                pseudonyms: USERS
                    .map(|user| (user, pseudonym(user).unwrap().to_string()))
                    .into(),
                ..Tenant::default()
            }
        });
        let sockets = Arc::new(TestSockets::start().await);
        Self {
            tenants,
            published: BTreeMap::new(),
            random: Random(seed),
            gateway: Worker::new(&engine, &sockets),
            workers: [(); 2].map(|()| Worker::new(&engine, &sockets)),
            sockets,
            listeners: Listener::all(TENANTS.len(), now() - TimeDelta::minutes(1)),
            wakes: Vec::new(),
            counts: Vec::new(),
            stream,
            waiting: Vec::new(),
            delivered: Vec::new(),
            operations: 0,
            named: 0,
            engine,
        }
    }

    /// The number of completed requests and processed messages.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap();
        usize::try_from(self.random.below(bound)).unwrap()
    }

    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    pub fn name(&mut self) -> u64 {
        self.named += 1;
        self.named
    }

    /// Plans a fault for one of the next calls, or none.
    fn plan(&mut self) -> (u32, Fault) {
        let fault = self.one_of(&Fault::ALL);
        let call = u32::try_from(1 + self.random.below(FIRST_CALLS)).unwrap();
        if self.random.below(FAULTY) == 0 {
            (call, fault)
        } else {
            (u32::MAX, Fault::Refused)
        }
    }

    /// Sends a request of a user until there is a response.
    pub async fn ask(
        &mut self,
        (tenant, user): (usize, &str),
        (method, path): (Method, &str),
        body: &Value,
    ) -> Response {
        let caller = caller(tenant, user, "");
        self.ask_as(caller, (method, path), body).await
    }

    pub async fn ask_as(
        &mut self,
        caller: Caller<'_>,
        (method, path): (Method, &str),
        body: &Value,
    ) -> Response {
        for _ in 0..TRIES {
            self.plan_gateway_faults();
            let functions = &self.gateway.functions.functions;
            let (status, body) = call_as(functions, caller, (method.clone(), path), body).await;
            if self.replace_gateway_if_crashed() {
                continue;
            }
            if status.is_server_error() {
                assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{method} {path}");
                continue;
            }
            self.operations += 1;
            return Response { status, body };
        }
        panic!("no response: {method} {path}");
    }

    pub async fn step(&mut self) {
        advance(1);
        let tenant = self.below(TENANTS.len());
        let user = self.one_of(&USERS);
        match self.random.below(100) {
            0..30 => self.submit(tenant).await,
            30..34 => self.submit_again(tenant).await,
            34..36 => self.withdraw(tenant).await,
            36..40 => self.submit_batch(tenant).await,
            40..43 => self.send(tenant).await,
            43..55 => self.react(tenant, user).await,
            55..63 => self.rate(tenant, user).await,
            63..68 => self.register(tenant, user).await,
            68..70 => self.change_preferences(tenant, user).await,
            70 => self.correct(tenant, user).await,
            71..80 => self.read(tenant, user).await,
            80..84 => self.listen().await,
            84..93 => self.deliver().await,
            93..95 => self.count().await,
            95 => self.import(tenant).await,
            96 if self.random.below(3) == 0 => self.request_erasure(tenant).await,
            _ => self.erase().await,
        }
    }

    /// Selects a worker, and plans its faults.
    pub fn worker(&mut self) -> usize {
        let worker = self.below(self.workers.len());
        self.plan_faults(worker);
        worker
    }

    pub fn plan_faults(&mut self, worker: usize) {
        let (at, fault) = self.plan();
        self.workers[worker].faults.plan(at, fault);
    }

    pub fn plan_gateway_faults(&mut self) {
        let (at, fault) = self.plan();
        self.gateway.faults.plan(at, fault);
    }

    /// Replaces the gateway if it has crashed, and returns whether it had.
    pub fn replace_gateway_if_crashed(&mut self) -> bool {
        let crashed = self.gateway.faults.crashed();
        if crashed {
            self.gateway = Worker::new(&self.engine, &self.sockets);
        }
        crashed
    }

    /// Replaces a worker that has crashed, and returns whether it had.
    pub fn replace_if_crashed(&mut self, worker: usize) -> bool {
        let crashed = self.workers[worker].faults.crashed();
        if crashed {
            self.workers[worker] = Worker::new(&self.engine, &self.sockets);
        }
        crashed
    }

    /// The report of a conversation over all users.
    pub async fn report(&mut self, tenant: usize, owner: &str) -> Response {
        let caller = caller(tenant, ANALYST, "feedback:report");
        let path = format!("{}/turns-with-feedbacks", conversation(tenant, owner));
        let request = json!({"days": 3650, "limit": 500});
        self.ask_as(caller, (Method::POST, &path), &request).await
    }

    /// A user's message signals.
    pub async fn signals(&mut self, tenant: usize, user: &str) -> Response {
        let request = (Method::GET, SIGNALS);
        self.ask((tenant, user), request, &Value::Null).await
    }

    /// The report of the period over all users.
    pub async fn period(&mut self, tenant: usize) -> Response {
        let caller = caller(tenant, "eve", "feedback:report");
        let path = format!(
            "/conversations/{}/{PROJECT}/feedback/conversations-in-period",
            TENANTS[tenant]
        );
        let request = json!({"start": "2086-01-01T00:00:00Z", "end": "2086-02-01T00:00:00Z"});
        self.ask_as(caller, (Method::POST, &path), &request).await
    }
}

/// A user of a tenant, with a scope.
pub fn caller<'a>(tenant: usize, user: &'a str, scope: &'a str) -> Caller<'a> {
    Caller {
        user,
        tenant: TENANTS[tenant],
        project: PROJECT,
        scope,
    }
}

pub fn conversation(tenant: usize, owner: &str) -> String {
    format!("/conversations/{}/{PROJECT}/c-{owner}", TENANTS[tenant])
}

pub fn turn_id(turn: Turn) -> String {
    format!("t-{}-{}", turn.0, turn.1)
}

pub fn message_of(turn: Turn) -> String {
    format!("m-{}-{}", turn.0, turn.1)
}
