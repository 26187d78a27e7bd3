//! Every handler and consumer on one engine, with clients that may fail and a clock of one's own.

use axum::Router;
use axum::http::{Method, StatusCode};
use chrono::TimeDelta;
use hearback_batch::{Importer, Ingest, Intake};
use hearback_erasure::{Eraser, Erasures};
use hearback_export::Exporter;
use hearback_lambda::aws::Aws;
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

/// A time for tests whose clock stands still or is their own, in seconds since 1970: far ahead, since the engine
/// removes what has expired by its own clock.
pub const TIME: i64 = 3_660_973_802;

/// The functions of one process.
pub struct Hands {
    /// What answers requests.
    pub functions: Router,
    /// The signal generator.
    pub generator: Generator,
    /// What takes the messages of the ingest queue.
    pub ingest: Ingest,
    /// What imports files.
    pub importer: Importer,
    /// What erases users' data; it waits for nothing.
    pub eraser: Eraser,
    /// What exports.
    pub exporter: Exporter,
    /// The bucket.
    pub blobs: Blobs,
}

impl Hands {
    /// The functions on this engine.
    #[must_use]
    pub fn at(engine: &Engine, faults: &Faults, clock: Clock) -> Self {
        let (store, blobs) = (engine.failing_store(faults), engine.failing_blobs(faults));
        let sqs = faults.config(&Aws::local(&engine.endpoints.sqs).config());
        let sqs = aws_sdk_sqs::Client::new(&sqs);
        let app = App {
            clock,
            ..engine.app(store.clone())
        };
        let letters = |url: &str| DeadLetters::new(sqs.clone(), url);
        let intake = Intake::from(app.clone());
        let erasures = Erasures::new(sqs.clone(), &engine.queues.erasures, TimeDelta::zero());
        let whole = WithBlobs {
            app,
            blobs: blobs.clone(),
        };
        let functions = hearback_local::gateway::functions(whole, erasures.clone());
        Self {
            functions: service(functions),
            generator: Generator::new(
                store.clone(),
                blobs.clone(),
                letters(&engine.queues.dead_letters),
                clock,
            ),
            ingest: Ingest::new(intake.clone(), letters(&engine.queues.ingest_dead_letters)),
            importer: Importer::new(
                intake,
                blobs.clone(),
                (sqs.clone(), &engine.queues.imports),
                letters(&engine.queues.imports_dead_letters),
            ),
            eraser: Eraser::new(
                store.clone(),
                blobs.clone(),
                clock,
                (erasures, letters(&engine.queues.erasures_dead_letters)),
            ),
            exporter: Exporter::new(store, blobs.clone(), clock),
            blobs,
        }
    }

    /// Makes a request on behalf of anybody; answers whether it was answered with anything but a fault.
    pub async fn request(&self, method: Method, path: &str, body: &Value) -> bool {
        let caller = ("order-service", "feedback:on-behalf");
        let (status, _) = call(&self.functions, caller, (method, path), body).await;
        // A repeat of what was done may be told so.
        status.is_success() || status == StatusCode::CONFLICT
    }
}
