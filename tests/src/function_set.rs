//! Every handler and consumer on one engine, with clients that may fail and a clock of the test.

use axum::Router;
use axum::http::{Method, StatusCode};
use chrono::TimeDelta;
use hearback_batch::{Importer, Ingest, Intake};
use hearback_erasure::{Eraser, Erasures};
use hearback_export::Exporter;
use hearback_insights::Counter;
use hearback_lambda::clock::Clock;
use hearback_lambda::dead_letters::DeadLetters;
use hearback_lambda::http::service;
use hearback_lambda::{App, WithBlobs};
use hearback_signals::Generator;
use hearback_storage::Blobs;
use serde_json::Value;

use crate::engine::Engine;
use crate::faults::Faults;
use crate::functions::call;

/// The time of tests with a clock of their own, in seconds since 1970. It is far in the future, because the engine
/// deletes expired items by the machine's clock.
pub const TIME: i64 = 3_660_973_802;

/// The functions of one process.
pub struct FunctionSet {
    /// The HTTP routes.
    pub functions: Router,
    /// The signal generator.
    pub generator: Generator,
    /// The consumer of the ingest queue.
    pub ingest: Ingest,
    /// The importer.
    pub importer: Importer,
    /// The eraser, without a delay.
    pub eraser: Eraser,
    /// The exporter.
    pub exporter: Exporter,
    /// The counter of insights.
    pub counter: Counter,
    /// The bucket.
    pub blobs: Blobs,
}

impl FunctionSet {
    /// The functions on this engine.
    #[must_use]
    pub fn at(engine: &Engine, faults: &Faults, clock: Clock) -> Self {
        let (store, blobs) = (engine.failing_store(faults), engine.failing_blobs(faults));
        let sqs = faults.config(&engine.access.sqs().config());
        let sqs = aws_sdk_sqs::Client::new(&sqs);
        let app = App {
            clock,
            ..engine.app(store.clone())
        };
        let dead_letters = |url: &str| DeadLetters::new(sqs.clone(), url);
        let intake = Intake::from(app.clone());
        let erasures = Erasures::new(sqs.clone(), &engine.queues.erasures, TimeDelta::zero());
        let with_blobs = WithBlobs {
            app,
            blobs: blobs.clone(),
        };
        let functions = hearback_local::gateway::functions(with_blobs, erasures.clone());
        Self {
            functions: service(functions),
            generator: Generator::new(
                store.clone(),
                blobs.clone(),
                dead_letters(&engine.queues.dead_letters),
                clock,
            ),
            ingest: Ingest::new(
                intake.clone(),
                dead_letters(&engine.queues.ingest_dead_letters),
            ),
            importer: Importer::new(
                intake,
                blobs.clone(),
                engine.importer_queues(&sqs),
                dead_letters(&engine.queues.imports_dead_letters),
            ),
            eraser: Eraser::new(
                store.clone(),
                blobs.clone(),
                clock,
                erasures,
                dead_letters(&engine.queues.erasures_dead_letters),
            ),
            counter: Counter::new(
                store.clone(),
                clock,
                dead_letters(&engine.queues.insights_dead_letters),
            ),
            exporter: Exporter::new(store, blobs.clone(), clock),
            blobs,
        }
    }

    /// Sends a request on behalf of a user, and returns whether it succeeded. A conflict counts as a success: the
    /// same request may have been processed before.
    pub async fn request(&self, method: Method, path: &str, body: &Value) -> bool {
        let caller = ("order-service", "feedback:on-behalf");
        let (status, _) = call(&self.functions, caller, (method, path), body).await;
        status.is_success() || status == StatusCode::CONFLICT
    }
}
