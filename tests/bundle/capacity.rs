//! The cost card: calls and capacity units of every operation, by `ReturnConsumedCapacity`.
//! `docs/reference/data-model.md` shows the same figures. A change that costs more fails here.

mod events;
mod exports;
mod feedback;
mod insights;
mod live;
mod reads;
mod turns;
mod webhooks;

use axum::Router;
use axum::http::{Method, StatusCode};
use futures::future::join_all;
use hearback_lambda::http::service;
use hearback_tests::engine::{Cost, Engine, Meter};
use hearback_tests::functions::call;
use hearback_tests::queue;
use hearback_tests::turns::{PERIOD, event_message, reaction_message, signal_message};
use serde_json::Value;

/// The functions on a table whose calls are counted.
struct Metered {
    engine: Engine,
    meter: Meter,
    functions: Router,
}

impl Metered {
    async fn start() -> Self {
        let engine = Engine::start().await;
        let meter = Meter::default();
        let app = engine.with_blobs(engine.store_with(meter.clone()));
        Self {
            functions: service(hearback_local::gateway::functions(app, engine.erasures())),
            engine,
            meter,
        }
    }

    /// Calls a function as API Gateway does; returns the status and the cost.
    async fn call(&self, method: Method, path: &str, body: &Value) -> (StatusCode, Cost) {
        let caller = ("order-service", "");
        let (status, _) = call(&self.functions, caller, (method, path), body).await;
        (status, self.meter.take())
    }

    /// Requests the report of a period across users.
    async fn report(&self, period: &Value) -> (StatusCode, Cost) {
        let caller = ("order-service", "feedback:report");
        let request = (Method::POST, PERIOD);
        let (status, _) = call(&self.functions, caller, request, period).await;
        (status, self.meter.take())
    }

    /// Delivers stored events to the signal generator as one batch.
    async fn generate(&self, events: &[Value]) -> Cost {
        let generator = self
            .engine
            .generator(self.engine.store_with(self.meter.clone()));
        let messages = events.iter();
        let messages = messages.map(|event| event_message(&self.engine, &event["feedbackId"]));
        let batch = queue::batch(join_all(messages).await);
        assert!(generator.handle(batch).await.batch_item_failures.is_empty());
        self.meter.take()
    }

    /// Delivers ada's signal on the message `m` to the signal generator.
    async fn generate_of_signal(&self, signal: &str) -> Cost {
        let metered = self.engine.store_with(self.meter.clone());
        let batch = queue::batch([signal_message(&self.engine, "ada", "m", signal).await]);
        let response = self.engine.generator(metered).handle(batch).await;
        assert!(response.batch_item_failures.is_empty());
        self.meter.take()
    }

    /// Delivers ada's reaction to the turn `t` of the conversation `c` to the signal generator.
    async fn generate_of_reaction(&self) -> Cost {
        let metered = self.engine.store_with(self.meter.clone());
        let batch = queue::batch([reaction_message(&self.engine, "c", "ada").await]);
        let response = self.engine.generator(metered).handle(batch).await;
        assert!(response.batch_item_failures.is_empty());
        self.meter.take()
    }
}
