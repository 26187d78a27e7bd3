//! Erasures: their requests, their messages, and how far they are.

use axum::http::{Method, StatusCode};
use hearback_tests::engine::Engine;
use hearback_tests::queue;
use serde_json::Value;

use super::model::ERASABLE_USERS;
use super::operations::lost_if_crashed;
use super::world::{TENANTS, World};

impl World {
    /// Requests an erasure.
    pub async fn request_erasure(&mut self, tenant: usize) {
        let user = self.one_of(&ERASABLE_USERS);
        let request = (Method::DELETE, &*data(user));
        let response = self.ask((tenant, user), request, &Value::Null).await;
        assert_eq!(response.status, StatusCode::ACCEPTED, "{}", response.body);
        self.tenants[tenant].being_erased.insert(user);
    }

    fn erasures(&self) -> (aws_sdk_sqs::Client, String) {
        let Engine {
            clients, queues, ..
        } = &self.engine;
        (clients.sqs.clone(), queues.erasures.clone())
    }

    /// Processes one message of the erasures.
    pub async fn erase(&mut self) {
        if self
            .tenants
            .iter()
            .all(|tenant| tenant.being_erased.is_empty())
        {
            return;
        }
        let (sqs, erasures) = self.erasures();
        let worker = self.worker();
        let functions = &self.workers[worker].functions;
        let handle = async |batch| {
            let response = functions.eraser.handle(batch, None).await;
            lost_if_crashed(response, &self.workers[worker].faults)
        };
        let received = queue::step(&sqs, &erasures, handle).await;
        self.operations += u64::from(received.is_some());
        self.replace_if_crashed(worker);
        self.update_erasures().await;
    }

    /// Processes erasures until all are done, except one whose message failed so often that it is a dead letter.
    pub async fn end_erasures(&mut self) {
        let (sqs, erasures) = self.erasures();
        while self
            .tenants
            .iter()
            .any(|tenant| !tenant.being_erased.is_empty())
            && !queue::is_empty(&sqs, &erasures).await
        {
            self.erase().await;
        }
    }

    async fn update_erasures(&mut self) {
        for tenant in 0..TENANTS.len() {
            for user in self.tenants[tenant].being_erased.clone() {
                let progress = format!("{}/erasure", data(user));
                let request = (Method::GET, progress.as_str());
                let response = self.ask((tenant, user), request, &Value::Null).await;
                if response.body["status"] == "done" {
                    self.tenants[tenant].erased(user);
                }
            }
        }
    }
}

fn data(user: &str) -> String {
    format!("/v1/users/{user}/data")
}
