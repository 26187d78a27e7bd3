//! Clients of the live feed: users and reporters who connect, are sent events, read them late, vanish and resume.

use std::collections::{BTreeMap, BTreeSet};

use aws_lambda_events::sqs::SqsMessage;
use axum::http::{Method, StatusCode};
use futures::future::join;
use hearback_tests::functions::{Caller, call_as};
use hearback_tests::live::TICKET;
use hearback_tests::queue;
use hearback_tests::turns::FEED;
use serde_json::{Value, json};

use super::listener::{Listener, REPORTER};
use super::model::PERMANENT_USERS;
use super::world::{TENANTS, TRIES, Worker, World, advance, caller};

/// The feedback of a published message or of its learning signal.
fn feedback_of(message: &Value) -> String {
    let id = message.get("feedbackId");
    let id = id.unwrap_or_else(|| &message["sourceEvent"]["feedbackId"]);
    id.as_str().unwrap().to_owned()
}

impl World {
    /// A client connects or vanishes, or clients are sent what is new. Some read.
    pub async fn listen(&mut self) {
        let at = self.below(self.listeners.len());
        match self.below(8) {
            0 => self.leave(at).await,
            1 | 2 => self.connect(at).await,
            _ => self.wake().await,
        }
        for at in 0..self.listeners.len() {
            if self.below(2) == 0 {
                self.listeners[at].read();
            }
        }
    }

    async fn leave(&mut self, at: usize) {
        let Some((id, _)) = self.listeners[at].connection.take() else {
            return;
        };
        // For the others, API Gateway reports no disconnect.
        if self.below(2) == 0 {
            self.plan_gateway_faults();
            // API Gateway does not retry this. What is left is removed when it is found.
            let _ = self.gateway.live.live.disconnect(&id).await;
            self.replace_gateway_if_crashed();
        }
    }

    async fn connect(&mut self, at: usize) {
        if self.listeners[at].connection.is_some() {
            return;
        }
        for _ in 0..TRIES {
            let Some(ticket) = self.ticket(at).await else {
                return;
            };
            let id = format!("connection-{}", self.name());
            let frames = self.gateway.live.open(&id);
            self.plan_gateway_faults();
            let connected = self.gateway.live.live.connect(&id, &ticket).await;
            if self.replace_gateway_if_crashed() || connected.is_err() {
                continue;
            }
            let after = &self.listeners[at].last;
            let subscribe = json!({"action": "subscribe", "after": after}).to_string();
            self.plan_gateway_faults();
            self.gateway.live.live.receive(&id, &subscribe).await;
            // API Gateway reports the crash to the client.
            if self.replace_gateway_if_crashed() {
                continue;
            }
            self.operations += 1;
            self.listeners[at].connection = Some((id, frames));
            return;
        }
        panic!("no connection");
    }

    fn caller_at(&self, at: usize) -> Caller<'static> {
        let Listener {
            tenant,
            user,
            scope,
            ..
        } = self.listeners[at];
        caller(tenant, user, scope)
    }

    /// A ticket; `None` while the user is being erased.
    async fn ticket(&mut self, at: usize) -> Option<String> {
        let Listener { tenant, user, .. } = self.listeners[at];
        for _ in 0..TRIES {
            self.plan_gateway_faults();
            let request = (Method::POST, TICKET);
            let functions = &self.gateway.live.functions;
            let caller = self.caller_at(at);
            let (status, body) = call_as(functions, caller, request, &Value::Null).await;
            if self.replace_gateway_if_crashed() || status.is_server_error() {
                continue;
            }
            let is_being_erased = self.tenants[tenant].being_erased.contains(user);
            assert_eq!(status == StatusCode::CONFLICT, is_being_erased, "{body}");
            return body["ticket"].as_str().map(ToOwned::to_owned);
        }
        panic!("no ticket");
    }

    /// Two workers wake connections, concurrently.
    async fn wake(&mut self) {
        self.relay().await;
        self.take_tasks().await;
        let (one, other) = (self.some_wakes(), self.some_wakes());
        self.plan_faults(0);
        self.plan_faults(1);
        let [first, second] = &self.workers;
        let (first, second) = join(
            first.live.fanout.handle(queue::batch(one.clone())),
            second.live.fanout.handle(queue::batch(other.clone())),
        )
        .await;
        for (worker, messages, response) in [(0, one, first), (1, other, second)] {
            let failed = response.batch_item_failures.into_iter();
            let failed: Vec<_> = failed.map(|failure| failure.item_identifier).collect();
            let crashed = self.replace_if_crashed(worker);
            for message in messages {
                let id = message.message_id.clone().unwrap();
                // Sometimes it comes again although it was processed.
                if !crashed && !failed.contains(&id) && self.below(4) > 0 {
                    self.wakes
                        .retain(|wake| wake.message_id.as_ref() != Some(&id));
                }
            }
        }
    }

    /// Reads the tasks that connections sent to themselves and that are not delayed.
    async fn take_tasks(&mut self) {
        let fanout = &self.engine.queues.fanout;
        let tasks = queue::drain(&self.engine.clients.sqs, fanout).await;
        self.wakes.extend(tasks);
    }

    fn some_wakes(&mut self) -> Vec<SqsMessage> {
        let waiting = self.wakes.len();
        let count = waiting.min(1 + self.below(10));
        let some: Vec<_> = (0..count).map(|_| self.below(waiting)).collect();
        some.into_iter().map(|at| self.wakes[at].clone()).collect()
    }

    /// Everybody connects and is sent everything, and that is what the feed lists and what was published.
    pub async fn check_listeners(&mut self) {
        // The delayed tasks of the connections are due.
        advance(30);
        let worker = Worker::new(&self.engine, &self.sockets);
        loop {
            let before = self.received();
            for at in 0..self.listeners.len() {
                self.listeners[at].read();
                self.connect(at).await;
            }
            self.take_tasks().await;
            let mut wakes = std::mem::take(&mut self.wakes);
            let connections = self
                .listeners
                .iter()
                .filter_map(|it| it.connection.as_ref());
            for (id, _) in connections {
                let mut task = SqsMessage::default();
                task.message_id = Some(id.clone());
                task.body = Some(json!({"connection": id, "task": "deliver"}).to_string());
                wakes.push(task);
            }
            for batch in wakes.chunks(10) {
                let handled = worker.live.fanout.handle(queue::batch(batch.to_vec()));
                assert!(handled.await.batch_item_failures.is_empty());
            }
            self.listeners.iter_mut().for_each(Listener::read);
            // The connections of users who were erased were closed.
            if self.received() == before && self.everybody_is_connected() {
                break;
            }
        }
        for at in 0..self.listeners.len() {
            self.check_listener(at).await;
        }
    }

    fn everybody_is_connected(&self) -> bool {
        self.listeners.iter().all(|it| {
            it.connection.is_some() || self.tenants[it.tenant].being_erased.contains(it.user)
        })
    }

    fn received(&self) -> usize {
        self.listeners.iter().map(|it| it.received.len()).sum()
    }

    async fn check_listener(&mut self, at: usize) {
        let Listener { tenant, user, .. } = self.listeners[at];
        if self.tenants[tenant].being_erased.contains(user) {
            return;
        }
        let is_reporter = user == REPORTER;
        let pseudonym = self.tenants[tenant].pseudonyms.get(user).cloned();
        let listed = self.listed(at).await;
        let received = &self.listeners[at].received;
        for event in &listed {
            let id = event["eventId"].as_str().unwrap();
            assert_eq!(
                received.get(id),
                Some(event),
                "{user} of {}",
                TENANTS[tenant]
            );
        }
        let message = |event: &Value| {
            let mut message = event.clone();
            message.as_object_mut().unwrap().remove("eventId");
            message.to_string()
        };
        let published = self.published.values();
        let published = published.filter(|message| message["tenant"] == TENANTS[tenant]);
        let is_own = |message: &&Value| {
            let of = message["userId"].as_str();
            of.is_some_and(|of| of == user || pseudonym.as_deref() == Some(of))
        };
        let own: BTreeSet<_> = published.clone().filter(is_own).map(feedback_of).collect();
        let published =
            published.filter(|message| is_reporter || own.contains(&feedback_of(message)));
        let mut published: BTreeMap<_, _> = published
            .map(|message| (message.to_string(), message))
            .collect();
        for event in received.values() {
            let found = published.remove(&message(event));
            assert!(found.is_some(), "{user} may not see {event}");
        }
        if PERMANENT_USERS.contains(&user) {
            assert!(published.is_empty(), "{user} misses {published:#?}");
        }
    }

    /// What the feed lists for a client.
    async fn listed(&mut self, at: usize) -> Vec<Value> {
        let caller = self.caller_at(at);
        let (mut events, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("{FEED}?limit=500{cursor}");
            let page = self
                .ask_as(caller, (Method::GET, &path), &Value::Null)
                .await;
            assert_eq!(page.status, StatusCode::OK, "{}", page.body);
            events.extend(page.body["events"].as_array().unwrap().clone());
            let Some(next) = page.body["next_cursor"].as_str() else {
                return events;
            };
            cursor = format!("&cursor={next}");
        }
    }
}
