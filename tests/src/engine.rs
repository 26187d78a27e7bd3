//! The engines alone, with nothing that works in the background, and clients of them that count
//! what they cost or fail where they are told to.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_dynamodb::config::interceptors::{
    AfterDeserializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_dynamodb::operation::batch_get_item::BatchGetItemOutput;
use aws_sdk_dynamodb::operation::delete_item::DeleteItemOutput;
use aws_sdk_dynamodb::operation::get_item::GetItemOutput;
use aws_sdk_dynamodb::operation::put_item::PutItemOutput;
use aws_sdk_dynamodb::operation::query::QueryOutput;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsOutput;
use aws_sdk_dynamodb::operation::update_item::UpdateItemOutput;
use aws_sdk_dynamodb::types::ConsumedCapacity;
use aws_smithy_runtime_api::client::interceptors::context::Output;
use aws_smithy_types::retry::RetryConfig;
use chrono::TimeDelta;
use hearback_batch::{Importer, Ingest};
use hearback_domain::cursor::Cursors;
use hearback_domain::privacy::Pseudonyms;
use hearback_erasure::{Eraser, Erasures};
use hearback_lambda::app::mirrored;
use hearback_lambda::aws::Aws;
use hearback_lambda::clock::Clock;
use hearback_lambda::dead_letters::DeadLetters;
use hearback_lambda::embedder::Embeddings;
use hearback_lambda::{App, WithBlobs};
use hearback_local::bundle::Clients;
use hearback_local::data_dir::DataDir;
use hearback_local::engines::{self, Endpoints, Sockets, Threads};
use hearback_local::names::Names;
use hearback_local::provision::{self, QueueUrls};
use hearback_signals::Generator;
use hearback_storage::{Blobs, Store};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::faults::Faults;

/// Engines with the table and the queues, and nobody who works on them.
pub struct Engine {
    /// Where they are.
    pub endpoints: Endpoints,
    /// Plain clients.
    pub clients: Clients,
    /// The queues.
    pub queues: QueueUrls,
    /// The table, through a plain client.
    pub store: Store,
    /// What its resources are called.
    pub names: Names,
    _embedded: Option<(DropGuard, Threads, DataDir)>,
}

/// Names another AWS-compatible endpoint to run on instead of the embedded engines, so that no
/// habit of theirs is taken for DynamoDB's. CI does so with a second, independent one.
pub const ENDPOINT_URL: &str = "HEARBACK_TEST_ENDPOINT_URL";

impl Engine {
    /// Starts the engines in memory, or goes to [`ENDPOINT_URL`].
    pub async fn start() -> Self {
        if let Ok(url) = std::env::var(ENDPOINT_URL) {
            let endpoints = Endpoints {
                dynamodb: url.clone(),
                sqs: url.clone(),
                s3: url,
            };
            return Self::at(endpoints, None).await;
        }
        let data = DataDir::in_memory().unwrap();
        let sockets = Sockets::bind(0).await.unwrap();
        let endpoints = sockets.endpoints().unwrap();
        let stop = CancellationToken::new();
        let threads = engines::start(&data, sockets, &stop, &TaskTracker::new()).unwrap();
        Self::at(endpoints, Some((stop.drop_guard(), threads, data))).await
    }

    /// Another table, bucket and queues in the same engines.
    pub async fn beside(&self) -> Self {
        Self::at(self.endpoints.clone(), None).await
    }

    async fn at(endpoints: Endpoints, embedded: Option<(DropGuard, Threads, DataDir)>) -> Self {
        let clients = Clients::of_engines(&endpoints);
        // Other tests may use the same endpoint.
        let names = Names::new(format!("test-{}", uuid::Uuid::new_v4().simple()));
        let store = Store::new(clients.dynamodb.clone(), names.table());
        provision::table(&store).await.unwrap();
        provision::bucket(&clients.s3, &names).await.unwrap();
        let visibility = Duration::from_secs(1);
        let queues = provision::queues(&clients.sqs, &names, visibility)
            .await
            .unwrap();
        Self {
            endpoints,
            clients,
            queues,
            store,
            names,
            _embedded: embedded,
        }
    }

    /// The table, through a client that tells an observer of every call.
    pub fn store_with(&self, observer: impl Intercept + 'static) -> Store {
        let config = Aws::local(&self.endpoints.dynamodb).config();
        let config = aws_sdk_dynamodb::config::Builder::from(&config)
            .retry_config(RetryConfig::disabled())
            .interceptor(observer)
            .build();
        Store::new(
            aws_sdk_dynamodb::Client::from_conf(config),
            self.names.table(),
        )
    }

    /// The table, through a client that fails.
    pub fn failing_store(&self, faults: &Faults) -> Store {
        let config = faults.config(&Aws::local(&self.endpoints.dynamodb).config());
        Store::new(aws_sdk_dynamodb::Client::new(&config), self.names.table())
    }

    /// The bucket, through a client that fails.
    pub fn failing_blobs(&self, faults: &Faults) -> Blobs {
        let config = faults.config(&Aws::local(&self.endpoints.s3).config());
        let config = aws_sdk_s3::config::Builder::from(&config).force_path_style(true);
        Blobs::new(
            aws_sdk_s3::Client::from_conf(config.build()),
            self.names.bucket(),
        )
    }

    /// What HTTP handlers work with, on this table.
    pub fn app(&self, store: Store) -> App {
        App {
            store,
            pseudonyms: Pseudonyms::new("key"),
            cursors: Cursors::new("key"),
            clock: Clock::system(),
            embeddings: Embeddings::default(),
            mirrored: mirrored(""),
        }
    }

    /// What HTTP handlers work with that also use the bucket.
    pub fn with_blobs(&self, store: Store) -> WithBlobs {
        WithBlobs {
            app: self.app(store),
            blobs: self.blobs(),
        }
    }

    /// The bucket.
    pub fn blobs(&self) -> Blobs {
        Blobs::new(self.clients.s3.clone(), self.names.bucket())
    }

    /// The bucket, through a client that tells an observer of every call.
    pub fn blobs_with(&self, observer: impl Intercept + 'static) -> Blobs {
        let config = Aws::local(&self.endpoints.s3).config();
        let config = aws_sdk_s3::config::Builder::from(&config)
            .force_path_style(true)
            .retry_config(RetryConfig::disabled())
            .interceptor(observer)
            .build();
        Blobs::new(aws_sdk_s3::Client::from_conf(config), self.names.bucket())
    }

    /// What takes the messages of the ingest queue, on this table.
    pub fn ingest(&self, store: Store) -> Ingest {
        let letters = self.letters(&self.queues.ingest_dead_letters);
        Ingest::new(self.app(store).into(), letters)
    }

    /// What imports files, on this table.
    pub fn importer(&self, store: Store) -> Importer {
        self.importer_with(store, self.blobs())
    }

    /// What imports files of this bucket, on this table.
    pub fn importer_with(&self, store: Store, blobs: Blobs) -> Importer {
        let queue = (self.clients.sqs.clone(), &self.queues.imports);
        let letters = self.letters(&self.queues.imports_dead_letters);
        Importer::new(self.app(store).into(), blobs, queue, letters)
    }

    /// The queue of erasures, which wait for nothing.
    pub fn erasures(&self) -> Erasures {
        let queue = self.clients.sqs.clone();
        Erasures::new(queue, &self.queues.erasures, TimeDelta::zero())
    }

    /// What erases users' data, on this table and bucket.
    pub fn eraser(&self, store: Store, blobs: Blobs) -> Eraser {
        let letters = self.letters(&self.queues.erasures_dead_letters);
        Eraser::new(store, blobs, Clock::system(), (self.erasures(), letters))
    }

    /// The dead letters in a queue.
    pub fn letters(&self, queue_url: &str) -> DeadLetters {
        DeadLetters::new(self.clients.sqs.clone(), queue_url)
    }

    /// A signal generator on this table.
    pub fn generator(&self, store: Store) -> Generator {
        let letters = self.letters(&self.queues.dead_letters);
        Generator::new(store, self.blobs(), letters, Clock::system())
    }
}

/// What calls cost, by `ReturnConsumedCapacity`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    /// Calls to the table.
    pub calls: u32,
    /// Read units.
    pub reads: f64,
    /// Write units.
    pub writes: f64,
}

/// Adds up what calls cost.
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<Mutex<Cost>>);

impl Meter {
    /// What was spent since the last time.
    pub fn take(&self) -> Cost {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Intercept for Meter {
    fn name(&self) -> &'static str {
        "Meter"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.0.lock().unwrap().calls += 1;
        Ok(())
    }

    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let mut cost = self.0.lock().unwrap();
        let (reads, writes) = match context.output_or_error() {
            Ok(output) => spent(output),
            // A condition that did not hold costs a write unit too, and reports none.
            Err(_) => (0.0, 1.0),
        };
        cost.reads += reads;
        cost.writes += writes;
        Ok(())
    }
}

/// Read and write units of a call, as it reports them.
pub(crate) fn spent(output: &Output) -> (f64, f64) {
    let units = |spent: &ConsumedCapacity| spent.capacity_units().unwrap();
    let asked = "the call asks for its cost";
    if let Some(put) = output.downcast_ref::<PutItemOutput>() {
        (0.0, units(put.consumed_capacity().expect(asked)))
    } else if let Some(update) = output.downcast_ref::<UpdateItemOutput>() {
        (0.0, units(update.consumed_capacity().expect(asked)))
    } else if let Some(written) = output.downcast_ref::<TransactWriteItemsOutput>() {
        let spent = written.consumed_capacity();
        assert!(!spent.is_empty(), "{asked}");
        (0.0, spent.iter().map(units).sum())
    } else if let Some(deleted) = output.downcast_ref::<DeleteItemOutput>() {
        (0.0, units(deleted.consumed_capacity().expect(asked)))
    } else if let Some(query) = output.downcast_ref::<QueryOutput>() {
        (units(query.consumed_capacity().expect(asked)), 0.0)
    } else if let Some(get) = output.downcast_ref::<GetItemOutput>() {
        (units(get.consumed_capacity().expect(asked)), 0.0)
    } else if let Some(get) = output.downcast_ref::<BatchGetItemOutput>() {
        let spent = get.consumed_capacity();
        assert!(!spent.is_empty(), "{asked}");
        (spent.iter().map(units).sum(), 0.0)
    } else {
        panic!("a call that no cost card knows");
    }
}
