//! The embedded engines without the bundle's background tasks, and clients that meter calls or inject faults.

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
use aws_smithy_types::timeout::TimeoutConfig;
use chrono::TimeDelta;
use hearback_batch::{Importer, Ingest, Queues};
use hearback_domain::identity::privacy::Pseudonyms;
use hearback_domain::text::cursor::Cursors;
use hearback_erasure::{Eraser, Erasures};
use hearback_lambda::app::mirrored;
use hearback_lambda::clock::Clock;
use hearback_lambda::dead_letters::DeadLetters;
use hearback_lambda::embedder::Embeddings;
use hearback_lambda::{App, WithBlobs};
use hearback_local::clients::Clients;
use hearback_local::data_dir::DataDir;
use hearback_local::engines::{
    self, Access, Endpoints, EngineLifecycle, KeyPair, Maintenance, Sockets, Threads,
};
use hearback_local::health::Health;
use hearback_local::names::Names;
use hearback_local::provision::{self, QueueUrls};
use hearback_signals::Generator;
use hearback_storage::{Blobs, Store};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::faults::Faults;

/// Engines with the table, the bucket and the queues. Nothing consumes the queues.
pub struct Engine {
    /// The endpoints and the key pair.
    pub access: Access,
    /// Clients without observers.
    pub clients: Clients,
    /// The queues.
    pub queues: QueueUrls,
    /// The table, through a client without observers.
    pub store: Store,
    /// The names of the resources.
    pub names: Names,
    _embedded: Option<(DropGuard, Threads, DataDir)>,
}

/// The environment variable that names another AWS-compatible endpoint to use instead of the embedded engines. CI
/// sets it, so that no test depends on a peculiarity of the embedded engines.
pub const ENDPOINT_URL: &str = "HEARBACK_TEST_ENDPOINT_URL";

impl Engine {
    /// Starts the engines in memory, or connects to [`ENDPOINT_URL`].
    pub async fn start() -> Self {
        if let Ok(url) = std::env::var(ENDPOINT_URL) {
            let endpoints = Endpoints {
                dynamodb: url.clone(),
                sqs: url.clone(),
                s3: url,
            };
            // The endpoint accepts any key pair.
            let keys = KeyPair::random();
            return Self::at(Access { endpoints, keys }, None).await;
        }
        let data = DataDir::in_memory().unwrap();
        let sockets = Sockets::bind(0).await.unwrap();
        let endpoints = sockets.endpoints().unwrap();
        let stop = CancellationToken::new();
        let lifecycle = EngineLifecycle {
            stop: &stop,
            tasks: &TaskTracker::new(),
            health: &Health::default(),
        };
        let (threads, _) =
            engines::start(&data, sockets, Maintenance::default(), lifecycle).unwrap();
        let keys = KeyPair::of_folder(data.path()).unwrap();
        let embedded = Some((stop.drop_guard(), threads, data));
        Self::at(Access { endpoints, keys }, embedded).await
    }

    /// Creates another table, bucket and queues in the same engines.
    pub async fn another(&self) -> Self {
        Self::at(self.access.clone(), None).await
    }

    async fn at(access: Access, embedded: Option<(DropGuard, Threads, DataDir)>) -> Self {
        let clients = Clients::of_engines(&access);
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
            access,
            clients,
            queues,
            store,
            names,
            _embedded: embedded,
        }
    }

    /// The table, through a client whose calls `observer` sees.
    pub fn store_with(&self, observer: impl Intercept + 'static) -> Store {
        let config = self.access.dynamodb().config();
        let config = aws_sdk_dynamodb::config::Builder::from(&config)
            .retry_config(RetryConfig::disabled())
            // The observer may act meanwhile, which takes as long as it takes.
            .timeout_config(TimeoutConfig::disabled())
            .interceptor(observer)
            .build();
        Store::new(
            aws_sdk_dynamodb::Client::from_conf(config),
            self.names.table(),
        )
    }

    /// The table, through a client that fails as planned.
    pub fn failing_store(&self, faults: &Faults) -> Store {
        let config = faults.config(&self.access.dynamodb().config());
        Store::new(aws_sdk_dynamodb::Client::new(&config), self.names.table())
    }

    /// The bucket, through a client that fails as planned.
    pub fn failing_blobs(&self, faults: &Faults) -> Blobs {
        let config = faults.config(&self.access.s3().config());
        let config = aws_sdk_s3::config::Builder::from(&config).force_path_style(true);
        Blobs::new(
            aws_sdk_s3::Client::from_conf(config.build()),
            self.names.bucket(),
        )
    }

    /// The state of HTTP handlers, on this table.
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

    /// The state of HTTP handlers that also use the bucket.
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

    /// The bucket, through a client whose calls `observer` sees.
    pub fn blobs_with(&self, observer: impl Intercept + 'static) -> Blobs {
        let config = self.access.s3().config();
        let config = aws_sdk_s3::config::Builder::from(&config)
            .force_path_style(true)
            .retry_config(RetryConfig::disabled())
            // The observer may act meanwhile, which takes as long as it takes.
            .timeout_config(TimeoutConfig::disabled())
            .interceptor(observer)
            .build();
        Blobs::new(aws_sdk_s3::Client::from_conf(config), self.names.bucket())
    }

    /// The consumer of the ingest queue, on this table.
    pub fn ingest(&self, store: Store) -> Ingest {
        let dead_letters = self.dead_letters(&self.queues.ingest_dead_letters);
        Ingest::new(self.app(store).into(), dead_letters)
    }

    /// An importer on this table.
    pub fn importer(&self, store: Store) -> Importer {
        self.importer_with(store, self.blobs())
    }

    /// An importer on this table and this bucket.
    pub fn importer_with(&self, store: Store, blobs: Blobs) -> Importer {
        let queues = self.importer_queues(&self.clients.sqs);
        let dead_letters = self.dead_letters(&self.queues.imports_dead_letters);
        Importer::new(self.app(store).into(), blobs, queues, dead_letters)
    }

    /// The queues that an importer sends to, through this client.
    pub fn importer_queues(&self, client: &aws_sdk_sqs::Client) -> Queues {
        Queues {
            client: client.clone(),
            imports: self.queues.imports.clone(),
            signals_bulk: self.queues.signals_bulk.clone(),
        }
    }

    /// The queue of erasures, without a delay.
    pub fn erasures(&self) -> Erasures {
        let queue = self.clients.sqs.clone();
        Erasures::new(queue, &self.queues.erasures, TimeDelta::zero())
    }

    /// An eraser on this table and bucket.
    pub fn eraser(&self, store: Store, blobs: Blobs) -> Eraser {
        let dead_letters = self.dead_letters(&self.queues.erasures_dead_letters);
        Eraser::new(store, blobs, Clock::system(), self.erasures(), dead_letters)
    }

    /// The dead letters of a queue.
    pub fn dead_letters(&self, queue_url: &str) -> DeadLetters {
        DeadLetters::new(self.clients.sqs.clone(), queue_url)
    }

    /// A signal generator on this table.
    pub fn generator(&self, store: Store) -> Generator {
        let dead_letters = self.dead_letters(&self.queues.dead_letters);
        Generator::new(store, self.blobs(), dead_letters, Clock::system())
    }
}

/// The cost of calls, from `ReturnConsumedCapacity`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    /// Calls to the table.
    pub calls: u32,
    /// Read units.
    pub reads: f64,
    /// Write units.
    pub writes: f64,
}

impl Cost {
    /// No calls.
    pub const FREE: Self = Self::calls(0);

    /// This many calls, without capacity units.
    #[must_use]
    pub const fn calls(calls: u32) -> Self {
        Self {
            calls,
            reads: 0.0,
            writes: 0.0,
        }
    }

    /// The same calls with this many read units.
    #[must_use]
    pub const fn reads(self, reads: f64) -> Self {
        Self { reads, ..self }
    }

    /// The same calls with this many write units.
    #[must_use]
    pub const fn writes(self, writes: f64) -> Self {
        Self { writes, ..self }
    }
}

impl std::ops::Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
        }
    }
}

/// Adds up the cost of the calls that it observes.
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<Mutex<Cost>>);

impl Meter {
    /// Returns the cost since the last call of this method.
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
            // A failed condition costs a write unit too, but reports none.
            Err(_) => (0.0, 1.0),
        };
        cost.reads += reads;
        cost.writes += writes;
        Ok(())
    }
}

/// The read and write units that a call reports.
pub(crate) fn spent(output: &Output) -> (f64, f64) {
    let units = |spent: &ConsumedCapacity| spent.capacity_units().unwrap();
    let requested = "the call requests its consumed capacity";
    if let Some(put) = output.downcast_ref::<PutItemOutput>() {
        (0.0, units(put.consumed_capacity().expect(requested)))
    } else if let Some(update) = output.downcast_ref::<UpdateItemOutput>() {
        (0.0, units(update.consumed_capacity().expect(requested)))
    } else if let Some(written) = output.downcast_ref::<TransactWriteItemsOutput>() {
        let spent = written.consumed_capacity();
        assert!(!spent.is_empty(), "{requested}");
        (0.0, spent.iter().map(units).sum())
    } else if let Some(deleted) = output.downcast_ref::<DeleteItemOutput>() {
        (0.0, units(deleted.consumed_capacity().expect(requested)))
    } else if let Some(query) = output.downcast_ref::<QueryOutput>() {
        (units(query.consumed_capacity().expect(requested)), 0.0)
    } else if let Some(get) = output.downcast_ref::<GetItemOutput>() {
        (units(get.consumed_capacity().expect(requested)), 0.0)
    } else if let Some(get) = output.downcast_ref::<BatchGetItemOutput>() {
        let spent = get.consumed_capacity();
        assert!(!spent.is_empty(), "{requested}");
        (spent.iter().map(units).sum(), 0.0)
    } else {
        panic!("a call without a known cost");
    }
}
