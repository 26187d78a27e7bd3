//! What users do.

use aws_lambda_events::sqs::SqsBatchResponse;
use axum::http::{Method, StatusCode};
use chrono::SecondsFormat;
use hearback_batch::notification;
use hearback_storage::files::import_key;
use hearback_tests::engine::Engine;
use hearback_tests::events::ingested_of;
use hearback_tests::faults::Faults;
use hearback_tests::queue;
use hearback_tests::turns::SIGNALS;
use serde_json::{Value, json};
use uuid::Uuid;

use super::checks;
use super::model::{LEAVERS, Turn, USERS};
use super::world::{
    Answer, PROJECT, TENANTS, TRIES, World, caller, conversation, message_of, now, turn_id,
};

const VERDICTS: [Option<&str>; 4] = [Some("ok"), Some("not_ok"), Some("neutral"), None];

impl World {
    /// An event of some user's; it may say what another said, be anonymous, and be about a turn.
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
        }
        (id, event)
    }

    fn known(&mut self, tenant: usize) -> Option<Value> {
        let count = self.tenants[tenant].events.len();
        let at = (count > 0).then(|| self.below(count))?;
        self.tenants[tenant].events.values().nth(at).cloned()
    }

    pub async fn submit(&mut self, tenant: usize) {
        let (id, event) = self.event(tenant);
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

    pub async fn submit_again(&mut self, tenant: usize) {
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
            let response = self.workers[worker].hands.ingest.handle(batch.clone());
            let failed = !response.await.batch_item_failures.is_empty();
            if !self.buried(worker) && !failed {
                self.tenants[tenant].events.extend(events);
                return;
            }
        }
        panic!("never taken: {bodies:?}");
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

    pub async fn react(&mut self, tenant: usize, user: &'static str) {
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

    pub async fn say(&mut self, tenant: usize, user: &'static str) {
        let turns = self.tenants[tenant].answered_for(user);
        if turns.is_empty() {
            return;
        }
        let turn = self.one_of(&turns);
        let message = message_of(turn);
        if self.random.below(3) == 0 {
            let gone = format!("{SIGNALS}?message_id={message}&signal=inaccurate");
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
        let body = json!({"message_id": message, "signal": "inaccurate", "reason": reason});
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
        let said = self.one_of(&[
            "Which parcels are late?",
            "No, that's wrong.",
            "Thanks, that helped!",
        ]);
        let ts = now().to_rfc3339_opts(SecondsFormat::Secs, true);
        let mut body = json!({"user": {"text": said}, "ts": ts});
        let whole = self.random.below(2) == 0;
        if whole {
            answer(&mut body, turn);
        }
        if self.put(tenant, turn, &body).await {
            let tenant = &mut self.tenants[tenant];
            tenant.turns.insert(turn);
            if !whole {
                tenant.open.insert(turn, said);
            }
        }
    }

    async fn complete(&mut self, tenant: usize, turn: Turn) {
        let mut body = json!({"user": {"text": self.tenants[tenant].open[&turn]}});
        answer(&mut body, turn);
        if self.put(tenant, turn, &body).await {
            self.tenants[tenant].open.remove(&turn);
        }
    }

    /// Puts a turn; answers whether it was accepted.
    async fn put(&mut self, tenant: usize, turn: Turn, body: &Value) -> bool {
        let path = path(tenant, turn);
        let who = (tenant, turn.0);
        let answer = self.ask(who, (Method::PUT, &path), body).await;
        if self.refused(who, &answer) {
            return false;
        }
        assert!(answer.status.is_success(), "{}", answer.body);
        let status = if body.get("assistant").is_some() {
            "complete"
        } else {
            "open"
        };
        assert_eq!(answer.body["status"], status, "{}", answer.body);
        true
    }

    pub async fn prefer(&mut self, tenant: usize, user: &'static str) {
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
    pub async fn read(&mut self, tenant: usize, user: &'static str) {
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
                    checks::event(self.tenants[tenant].name_in(&event), &event, &answer);
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

    /// A file of events, some of them known, and of something else.
    pub async fn import(&mut self, tenant: usize) {
        let events = self.some_events(tenant);
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
                None if queue::is_empty(&sqs, &imports).await => break,
                None => {}
            }
        }
        self.tenants[tenant].events.extend(events);
    }

    /// Somebody asks to be erased.
    pub async fn leave(&mut self, tenant: usize) {
        let user = self.one_of(&LEAVERS);
        let request = (Method::DELETE, &*data(user));
        let answer = self.ask((tenant, user), request, &Value::Null).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.body);
        self.tenants[tenant].leaving.insert(user);
    }

    fn erasures(&self) -> (aws_sdk_sqs::Client, String) {
        let Engine {
            clients, queues, ..
        } = &self.engine;
        (clients.sqs.clone(), queues.erasures.clone())
    }

    /// A step of the erasures.
    pub async fn erase(&mut self) {
        if self.tenants.iter().all(|tenant| tenant.leaving.is_empty()) {
            return;
        }
        let (sqs, erasures) = self.erasures();
        let worker = self.worker();
        let hands = &self.workers[worker].hands;
        let handle = async |batch| {
            let response = hands.eraser.handle(batch, None).await;
            dead(response, &self.workers[worker].faults)
        };
        let worked = queue::step(&sqs, &erasures, handle).await;
        self.operations += u64::from(worked.is_some());
        self.buried(worker);
        self.hear_of_erasures().await;
    }

    /// Has the erasures that are open come to their end, but one whose message failed so often that it is a
    /// dead letter.
    pub async fn end_erasures(&mut self) {
        let (sqs, erasures) = self.erasures();
        while self.tenants.iter().any(|tenant| !tenant.leaving.is_empty())
            && !queue::is_empty(&sqs, &erasures).await
        {
            self.erase().await;
        }
    }

    async fn hear_of_erasures(&mut self) {
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
}

/// What a queue hears of a consumer that died: nothing, so that its messages come again.
fn dead(mut response: SqsBatchResponse, faults: &Faults) -> SqsBatchResponse {
    if faults.died() {
        response.batch_item_failures = vec![Default::default()];
    }
    response
}

/// Gives a turn its answer.
fn answer(body: &mut Value, turn: Turn) {
    body["assistant"] = json!({"text": "Those of today.", "message_id": message_of(turn)});
    body["turn_log"] = json!({"text": "log", "entries": []});
}

fn data(user: &str) -> String {
    format!("/v1/users/{user}/data")
}

fn path(tenant: usize, turn: Turn) -> String {
    format!("{}/turns/{}", conversation(tenant, turn.0), turn_id(turn))
}
