//! The operations of users, except erasures.

use aws_lambda_events::sqs::SqsBatchResponse;
use axum::http::{Method, StatusCode};
use chrono::{SecondsFormat, TimeDelta};
use hearback_batch::notification;
use hearback_storage::files::import_key;
use hearback_tests::events::ingested_of;
use hearback_tests::faults::Faults;
use hearback_tests::queue;
use hearback_tests::turns::SIGNALS;
use serde_json::{Value, json};
use uuid::Uuid;

use super::checks;
use super::model::{Turn, USERS};
use super::world::{
    PROJECT, Response, TENANTS, TRIES, World, caller, conversation, message_of, now, turn_id,
};

const VERDICTS: [Option<&str>; 4] = [Some("ok"), Some("not_ok"), Some("neutral"), None];

impl World {
    /// An event of a random user, which may equal another, be anonymous, and be about a turn.
    fn event(&mut self, tenant: usize) -> (Uuid, Value) {
        let id = Uuid::from_u64_pair(self.random.next(), self.random.next());
        let accepted = self.random.below(2) == 0;
        let user = self.one_of(&USERS);
        let artifact = self.one_of(&["a", "b", "c", "d", "e", "f", "g", "h"]);
        let mut event = json!({
            "feedbackId": id, "userId": user, "sessionId": "s", "artifactId": artifact,
            "feedbackChannel": "explicit", "feedbackType": "artifact-acceptance",
            "data": {"accepted": accepted},
            "privacyFlags": {"anonymize": self.random.below(4) == 0}
        });
        let turns = self.tenants[tenant].turns_for(user);
        if !turns.is_empty() && self.random.below(2) == 0 {
            let turn = self.one_of(&turns);
            event["context"] = json!({
                "projectId": PROJECT, "conversationId": format!("c-{}", turn.0), "turnId": turn_id(turn),
            });
        } else if self.random.below(2) == 0 {
            let model = self.one_of(&["m-1", "m-2"]);
            event["context"] = json!({"projectId": PROJECT, "labels": {"model": model}});
        }
        (id, event)
    }

    fn known_event(&mut self, tenant: usize) -> Option<Value> {
        let count = self.tenants[tenant].events.len();
        let at = (count > 0).then(|| self.below(count))?;
        self.tenants[tenant].events.values().nth(at).cloned()
    }

    pub async fn submit(&mut self, tenant: usize) {
        let (id, event) = self.event(tenant);
        let user = event["userId"].as_str().unwrap().to_owned();
        let request = (Method::POST, "/v1/feedback/submit");
        let response = self.ask((tenant, &user), request, &event).await;
        // An earlier attempt may have succeeded.
        assert!(
            [StatusCode::ACCEPTED, StatusCode::CONFLICT].contains(&response.status),
            "{}",
            response.body
        );
        self.tenants[tenant].events.insert(id, event);
    }

    pub async fn submit_again(&mut self, tenant: usize) {
        let Some(event) = self.known_event(tenant) else {
            return;
        };
        let user = event["userId"].as_str().unwrap().to_owned();
        let request = (Method::POST, "/v1/feedback/submit");
        let response = self.ask((tenant, &user), request, &event).await;
        let is_being_erased = self.tenants[tenant].being_erased.contains(user.as_str());
        if is_being_erased && response.status == StatusCode::ACCEPTED {
            // The event was erased already, and will be erased again.
            return;
        }
        assert_eq!(response.status, StatusCode::CONFLICT, "{}", response.body);
    }

    pub async fn withdraw(&mut self, tenant: usize) {
        let Some(event) = self.known_event(tenant) else {
            return;
        };
        let user = event["userId"].as_str().unwrap();
        let id: Uuid = event["feedbackId"].as_str().unwrap().parse().unwrap();
        let path = format!("/v1/feedback/{id}");
        let request = (Method::DELETE, path.as_str());
        let response = self.ask((tenant, user), request, &Value::Null).await;
        if !self.rejected((tenant, user), &response) {
            assert_eq!(response.status, StatusCode::NO_CONTENT, "{}", response.body);
            self.tenants[tenant].withdrawn.insert(id);
        }
    }

    fn some_events(&mut self, tenant: usize) -> Vec<(Uuid, Value)> {
        let count = 1 + self.random.below(5);
        (0..count).map(|_| self.event(tenant)).collect()
    }

    pub async fn submit_batch(&mut self, tenant: usize) {
        let events = self.some_events(tenant);
        let bodies: Vec<_> = events.iter().map(|(_, event)| event).collect();
        let body = json!({"events": bodies});
        let caller = caller(tenant, "order-service", "feedback:on-behalf");
        for _ in 0..TRIES {
            let request = (Method::POST, "/v1/feedback/batch");
            let response = self.ask_as(caller, request, &body).await;
            assert!(response.status.is_success(), "{}", response.body);
            let results = response.body["results"].as_array().unwrap();
            if results.iter().all(|result| result["status"] != "failed") {
                self.tenants[tenant].events.extend(events);
                return;
            }
        }
        panic!("never accepted: {body}");
    }

    /// Sends a message to the ingest queue.
    pub async fn send(&mut self, tenant: usize) {
        let events = self.some_events(tenant);
        let bodies: Vec<_> = events.iter().map(|(_, event)| event).collect();
        let mut batch = ingested_of(TENANTS[tenant], &json!({"events": bodies}));
        let message = &mut batch.records[0];
        message.message_id = Some("message".to_owned());
        let sent = now().timestamp_millis().to_string();
        message.attributes.insert("SentTimestamp".to_owned(), sent);
        self.operations += 1;
        for _ in 0..TRIES {
            let worker = self.worker();
            let response = self.workers[worker].functions.ingest.handle(batch.clone());
            let failed = !response.await.batch_item_failures.is_empty();
            if !self.replace_if_crashed(worker) && !failed {
                self.tenants[tenant].events.extend(events);
                return;
            }
        }
        panic!("never accepted: {bodies:?}");
    }

    /// Whether a request was rejected, as it must be while the user is being erased.
    fn rejected(&self, (tenant, user): (usize, &str), response: &Response) -> bool {
        let is_being_erased = self.tenants[tenant].being_erased.contains(user);
        let rejected = response.body["error"] == "erasure_in_progress";
        // Its target may be erased already.
        let not_found = is_being_erased && response.status == StatusCode::NOT_FOUND;
        assert_eq!(is_being_erased, rejected || not_found, "{}", response.body);
        is_being_erased
    }

    pub async fn react(&mut self, tenant: usize, user: &'static str) {
        let turns = self.tenants[tenant].turns_for(user);
        if turns.is_empty() {
            return;
        }
        let (turn, verdict) = (self.one_of(&turns), self.one_of(&VERDICTS));
        // Some clocks are ahead, which outranks nothing that is said afterwards.
        let ahead = self.one_of(&[0, 0, 240]);
        let ts = now() + TimeDelta::seconds(ahead);
        let ts = ts.to_rfc3339_opts(SecondsFormat::Secs, true);
        let body = json!({"reaction": verdict, "ts": ts, "mirror": true});
        let path = format!("{}/feedback", path(tenant, turn));
        let response = self.ask((tenant, user), (Method::POST, &path), &body).await;
        if self.rejected((tenant, user), &response) {
            return;
        }
        assert_eq!(response.status, StatusCode::OK, "{}", response.body);
        let reactions = &mut self.tenants[tenant].reactions;
        match verdict {
            Some(verdict) => reactions.insert((turn, user), verdict),
            None => reactions.remove(&(turn, user)),
        };
    }

    /// Says what the message after one of the user's own turns means, if there is one.
    pub async fn correct(&mut self, tenant: usize, user: &'static str) {
        let own = |turn: &Turn| turn.0 == user;
        let mut turns = self.tenants[tenant].turns_for(user);
        turns.retain(own);
        if turns.is_empty() {
            return;
        }
        let turn = self.one_of(&turns);
        let meaning = self.one_of(&["neutral", "rejected", "accepted"]);
        let path = format!("{}/inference", path(tenant, turn));
        let body = json!({"feedback_type": meaning});
        let response = self.ask((tenant, user), (Method::PUT, &path), &body).await;
        let nothing = response.body["error"] == "nothing_inferred";
        if nothing || self.rejected((tenant, user), &response) {
            return;
        }
        assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    }

    pub async fn rate(&mut self, tenant: usize, user: &'static str) {
        let turns = self.tenants[tenant].answered_for(user);
        if turns.is_empty() {
            return;
        }
        let turn = self.one_of(&turns);
        let message = message_of(turn);
        if self.random.below(3) == 0 {
            let withdrawal = format!("{SIGNALS}?message_id={message}&signal=inaccurate");
            let request = (Method::DELETE, withdrawal.as_str());
            let response = self.ask((tenant, user), request, &Value::Null).await;
            if self.tenants[tenant].being_erased.contains(user) {
                // The withdrawal of a missing signal writes nothing.
                assert!(response.status.is_success() || self.rejected((tenant, user), &response));
                return;
            }
            assert_eq!(response.status, StatusCode::NO_CONTENT, "{}", response.body);
            self.tenants[tenant].signals.remove(&(turn, user));
            return;
        }
        let reason = self.one_of(&["one", "other", "third"]);
        let body = json!({"message_id": message, "signal": "inaccurate", "reason": reason});
        let response = self
            .ask((tenant, user), (Method::POST, SIGNALS), &body)
            .await;
        if self.rejected((tenant, user), &response) {
            return;
        }
        assert!(response.status.is_success(), "{}", response.body);
        let signals = &mut self.tenants[tenant].signals;
        signals.insert((turn, user), reason.to_owned());
    }

    /// Registers a turn, in one step or two.
    pub async fn register(&mut self, tenant: usize, user: &'static str) {
        let own = |turn: &&Turn| turn.0 == user;
        let open: Vec<Turn> = self.tenants[tenant]
            .open
            .keys()
            .filter(own)
            .copied()
            .collect();
        if !open.is_empty() && self.random.below(2) == 0 {
            let turn = self.one_of(&open);
            return self.complete(tenant, turn).await;
        }
        let turn = (user, self.name());
        let question = self.one_of(&[
            "Which parcels are late?",
            "No, that's wrong.",
            "Thanks, that helped!",
        ]);
        let ts = now().to_rfc3339_opts(SecondsFormat::Secs, true);
        let mut body = json!({"user": {"text": question}, "ts": ts});
        let complete = self.random.below(2) == 0;
        if complete {
            add_answer(&mut body, turn);
        }
        if self.put(tenant, turn, &body).await {
            let tenant = &mut self.tenants[tenant];
            tenant.turns.insert(turn);
            if !complete {
                tenant.open.insert(turn, question);
            }
        }
    }

    async fn complete(&mut self, tenant: usize, turn: Turn) {
        let mut body = json!({"user": {"text": self.tenants[tenant].open[&turn]}});
        add_answer(&mut body, turn);
        if self.put(tenant, turn, &body).await {
            self.tenants[tenant].open.remove(&turn);
        }
    }

    /// Puts a turn, and returns whether it was accepted.
    async fn put(&mut self, tenant: usize, turn: Turn, body: &Value) -> bool {
        let path = path(tenant, turn);
        let who = (tenant, turn.0);
        let response = self.ask(who, (Method::PUT, &path), body).await;
        if self.rejected(who, &response) {
            return false;
        }
        assert!(response.status.is_success(), "{}", response.body);
        let status = if body.get("assistant").is_some() {
            "complete"
        } else {
            "open"
        };
        assert_eq!(response.body["status"], status, "{}", response.body);
        true
    }

    pub async fn change_preferences(&mut self, tenant: usize, user: &'static str) {
        let path = format!("/v1/preferences/{user}");
        let who = (tenant, user);
        let current = self.ask(who, (Method::GET, &path), &Value::Null).await;
        let version = match current.status {
            StatusCode::NOT_FOUND => json!(0),
            _ => current.body["preferenceVersion"].clone(),
        };
        let level = self.one_of(&["overview", "deep-dive"]);
        let change =
            json!({"preferenceVersion": version, "globalPreferences": {"detailLevel": level}});
        let response = self.ask(who, (Method::PUT, &path), &change).await;
        // An earlier attempt may have succeeded.
        assert!(
            self.rejected(who, &response)
                || [StatusCode::OK, StatusCode::CONFLICT].contains(&response.status),
            "{}",
            response.body
        );
    }

    /// Reads data of the user and of others.
    pub async fn read(&mut self, tenant: usize, user: &'static str) {
        let who = (tenant, user);
        match self.random.below(4) {
            0 => {
                let Some(event) = self.known_event(tenant) else {
                    return;
                };
                let path = format!("/v1/feedback/{}", event["feedbackId"].as_str().unwrap());
                let response = self.ask(who, (Method::GET, &path), &Value::Null).await;
                let owner = event["userId"].as_str().unwrap();
                if owner != user {
                    assert_eq!(response.status, StatusCode::NOT_FOUND, "{}", response.body);
                } else if !self.tenants[tenant].being_erased.contains(user) {
                    checks::event(self.tenants[tenant].name_in(&event), &event, &response);
                }
                // The other tenant does not have the event.
                let other = (1 - tenant, owner);
                let response = self.ask(other, (Method::GET, &path), &Value::Null).await;
                assert_eq!(response.status, StatusCode::NOT_FOUND, "{}", response.body);
            }
            1 => {
                let response = self.ask(who, (Method::GET, SIGNALS), &Value::Null).await;
                if !self.tenants[tenant].being_erased.contains(user) {
                    checks::signals(&self.tenants[tenant], user, &response);
                }
            }
            2 => checks::preferences(&self.engine.store, (TENANTS[tenant], user))
                .await
                .map_or((), drop),
            _ => {
                let owner = self.one_of(&USERS);
                let path = format!("{}/turns-with-feedbacks", conversation(tenant, owner));
                let request = json!({"days": 3650, "limit": 500});
                let response = self.ask(who, (Method::POST, &path), &request).await;
                let tenant = &self.tenants[tenant];
                if !tenant.being_erased.contains(user) && !tenant.being_erased.contains(owner) {
                    checks::reactions(tenant, owner, Some(user), &response);
                }
            }
        }
    }

    /// Imports a file of new and known events, and an invalid line.
    pub async fn import(&mut self, tenant: usize) {
        let events = self.some_events(tenant);
        let mut lines: Vec<_> = events.iter().map(|(_, event)| event.to_string()).collect();
        lines.extend(self.known_event(tenant).map(|event| event.to_string()));
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
            let functions = &self.workers[worker].functions;
            let handle = async |batch| {
                let response = functions.importer.handle(batch, None).await;
                lost_if_crashed(response, &self.workers[worker].faults)
            };
            let received = queue::step(&sqs, &imports, handle).await;
            self.replace_if_crashed(worker);
            match received {
                Some(_) => self.operations += 1,
                None if queue::is_empty(&sqs, &imports).await => break,
                None => {}
            }
        }
        self.tenants[tenant].events.extend(events);
    }
}

/// The response of a crashed consumer: all messages are redelivered.
pub fn lost_if_crashed(mut response: SqsBatchResponse, faults: &Faults) -> SqsBatchResponse {
    if faults.crashed() {
        response.batch_item_failures = vec![Default::default()];
    }
    response
}

/// Adds the answer of a turn.
fn add_answer(body: &mut Value, turn: Turn) {
    body["assistant"] = json!({"text": "Those of today.", "message_id": message_of(turn)});
    body["turn_log"] = json!({"text": "log", "entries": []});
}

fn path(tenant: usize, turn: Turn) -> String {
    format!("{}/turns/{}", conversation(tenant, turn.0), turn_id(turn))
}
