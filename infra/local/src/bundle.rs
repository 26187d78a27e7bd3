//! The bundle: engines, resources, functions, and what carries work between them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use aws_sdk_sqs::config::timeout::TimeoutConfig;
use axum::Router;
use chrono::TimeDelta;
use hearback_batch::{Importer, Ingest, Intake};
use hearback_domain::cursor::Cursors;
use hearback_domain::detection::Detector;
use hearback_domain::privacy::Pseudonyms;
use hearback_domain::retention::Retention;
use hearback_erasure::{Eraser, Erasures};
use hearback_lambda::app::mirrored;
use hearback_lambda::aws::{Aws, Service};
use hearback_lambda::clock::Clock;
use hearback_lambda::dead_letters::DeadLetters;
use hearback_lambda::embedder::Embeddings;
use hearback_lambda::{App, WithBlobs};
use hearback_signals::Generator;
use hearback_storage::{Blobs, Store};
use hearback_turns::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connections;
use crate::data_dir::{DataDir, replace_json, secret};
use crate::engines::{self, Endpoints, Sockets, Threads};
use crate::event_source::{Consumer, EventSource};
use crate::gateway::{self, Limits};
use crate::health::Health;
use crate::load::Load;
use crate::names::Names;
use crate::provision::{self, QueueUrls};
use crate::relay::Relay;
use crate::stream::Stream;
use crate::token::{KEY_FILE, Tokens};

/// The file of the pseudonyms' key in the data folder.
pub const PSEUDONYM_KEY_FILE: &str = "pseudonym.key";
/// The file that tells other commands where the engines are.
pub const ENDPOINTS_FILE: &str = "endpoints.json";
/// The file that tells other commands where the gateway is.
pub const GATEWAY_FILE: &str = "gateway.json";
/// Batches that are worked off side by side.
const EVENT_SOURCES: usize = 2;

/// How to run the bundle.
#[derive(Debug, Clone)]
pub struct Options {
    /// The port of the gateway; the engines take the three that follow. 0 for any free ones.
    pub port: u16,
    /// The folder; none to keep everything in memory.
    pub data: Option<PathBuf>,
    /// Another AWS-compatible endpoint instead of the engines, or `aws`.
    pub endpoint_url: Option<String>,
    /// The stack whose resources are used.
    pub names: Names,
    /// After this, a message that was received and not worked off comes again.
    pub visibility: Duration,
    /// How long the erasure of a user's data waits for what began before it, and between its passes.
    pub settle: TimeDelta,
    /// Projects whose reactions are mirrored into turn logs, as `tenant/project` with commas
    /// between.
    pub mirror: String,
    /// How long turns are kept.
    pub retention: Retention,
    /// A folder of phrase files that add to those of the detector.
    pub phrases: Option<PathBuf>,
    /// How much the gateway takes on.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            port: 3000,
            data: Some(PathBuf::from(".hearback")),
            endpoint_url: None,
            names: Names::default(),
            visibility: Duration::from_secs(10),
            // Longer than a request takes, or a batch of messages: nothing here is frozen on its way.
            settle: TimeDelta::seconds(10),
            mirror: String::new(),
            retention: Retention::default(),
            phrases: None,
            limits: Limits::default(),
        }
    }
}

/// Clients of everything that the bundle stands on.
#[derive(Debug, Clone)]
pub struct Clients {
    /// DynamoDB.
    pub dynamodb: aws_sdk_dynamodb::Client,
    /// Its streams.
    pub streams: aws_sdk_dynamodbstreams::Client,
    /// SQS.
    pub sqs: aws_sdk_sqs::Client,
    /// S3.
    pub s3: aws_sdk_s3::Client,
}

impl Clients {
    /// Clients of the embedded engines.
    #[must_use]
    pub fn of_engines(endpoints: &Endpoints) -> Self {
        Self::new(
            &Aws::local(&endpoints.dynamodb).config(),
            &Aws::local(&endpoints.sqs).config(),
            &Aws::local(&endpoints.s3).config(),
        )
    }

    /// Clients of one endpoint for all, or with `aws` of AWS's own, with the environment's region
    /// and credentials.
    #[must_use]
    pub fn of_endpoint(url: &str) -> Self {
        let aws = Aws {
            endpoint_url: (url != "aws").then(|| url.to_owned()),
            ..Aws::from_env(Service::DynamoDb)
        };
        let config = aws.config();
        Self::new(&config, &config, &config)
    }

    fn new(
        dynamodb: &aws_types::SdkConfig,
        sqs: &aws_types::SdkConfig,
        s3: &aws_types::SdkConfig,
    ) -> Self {
        // A receive waits for messages, for up to 20 seconds: no time-out before that.
        let waiting = TimeoutConfig::builder()
            .operation_attempt_timeout(Duration::from_secs(30))
            .operation_timeout(Duration::from_mins(1))
            .build();
        let waiting = aws_sdk_sqs::config::Builder::from(sqs)
            .timeout_config(waiting)
            .build();
        let path_style = aws_sdk_s3::config::Builder::from(s3)
            .force_path_style(true)
            .build();
        Self {
            dynamodb: aws_sdk_dynamodb::Client::new(dynamodb),
            streams: aws_sdk_dynamodbstreams::Client::new(dynamodb),
            sqs: aws_sdk_sqs::Client::from_conf(waiting),
            s3: aws_sdk_s3::Client::from_conf(path_style),
        }
    }
}

/// The bundle while it runs.
#[derive(Debug)]
pub struct Bundle {
    /// Where the gateway is.
    pub address: SocketAddr,
    /// Where the engines are, if they are embedded.
    pub endpoints: Option<Endpoints>,
    /// Clients of what it stands on.
    pub clients: Clients,
    /// The table.
    pub store: Store,
    /// The bucket.
    pub blobs: Blobs,
    /// The queues.
    pub queues: QueueUrls,
    /// Makes tokens that the gateway takes.
    pub tokens: Tokens,
    mirrored: Arc<[String]>,
    retention: Retention,
    detector: Arc<Detector>,
    load: Load,
    health: Health,
    limits: Limits,
    visibility: Duration,
    settle: TimeDelta,
    stop: CancellationToken,
    tasks: TaskTracker,
    _threads: Option<Threads>,
    // Last, so that the folder is freed after everything that uses it.
    data: DataDir,
}

impl Bundle {
    /// Starts everything, and returns when it can be called.
    pub async fn start(options: Options) -> Result<Self> {
        let data = match &options.data {
            Some(folder) => DataDir::open(folder)?,
            None => DataDir::in_memory()?,
        };
        let detector = match &options.phrases {
            Some(folder) => hearback_turns::detector(folder).map_err(anyhow::Error::msg)?,
            None => Detector::embedded(),
        };
        let gateway = engines::bind(options.port).await?;
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let (clients, endpoints, threads) = if let Some(url) = &options.endpoint_url {
            (Clients::of_endpoint(url), None, None)
        } else {
            let sockets = Sockets::bind(options.port).await?;
            let endpoints = sockets.endpoints()?;
            let threads = engines::start(&data, sockets, &stop, &tasks)?;
            replace_json(&data.path().join(ENDPOINTS_FILE), &endpoints)?;
            let clients = Clients::of_engines(&endpoints);
            (clients, Some(endpoints), Some(threads))
        };
        let store = Store::new(clients.dynamodb.clone(), options.names.table());
        provision::table(&store).await?;
        provision::bucket(&clients.s3, &options.names).await?;
        let queues = provision::queues(&clients.sqs, &options.names, options.visibility).await?;
        let bundle = Self {
            address: gateway.local_addr()?,
            endpoints,
            blobs: Blobs::new(clients.s3.clone(), options.names.bucket()),
            clients,
            mirrored: mirrored(&options.mirror),
            retention: options.retention,
            detector: Arc::new(detector),
            store,
            queues,
            tokens: Tokens::new(&secret(data.path(), KEY_FILE)?),
            load: Load::new(options.limits.requests),
            health: Health::default(),
            limits: options.limits,
            visibility: options.visibility,
            settle: options.settle,
            stop,
            tasks,
            _threads: threads,
            data,
        };
        bundle.carry().await?;
        bundle.serve(gateway)?;
        let address = bundle.address.to_string();
        replace_json(&bundle.data.path().join(GATEWAY_FILE), &address)?;
        Ok(bundle)
    }

    /// Starts what carries work: the relay and the event sources.
    async fn carry(&self) -> Result<()> {
        let relay = Relay {
            stream: self.stream().await?,
            store: self.store.clone(),
            blobs: self.blobs.clone(),
            sqs: self.clients.sqs.clone(),
            queues: self.queues.clone(),
            position: self.data.path().join("relay.json"),
            health: self.health.clone(),
        };
        self.tasks.spawn(relay.run(self.stop.clone()));
        for _ in 0..EVENT_SOURCES {
            self.feed(("signals", &self.queues.signals), self.generator());
            self.feed(("imports", &self.queues.imports), self.importer()?);
        }
        self.feed(("ingest", &self.queues.ingest), self.ingest()?);
        self.feed(("erasures", &self.queues.erasures), self.eraser());
        Ok(())
    }

    async fn stream(&self) -> Result<Stream> {
        let arn = self.store.stream_arn().await;
        let arn = arn.context("the table has no stream")?;
        Ok(Stream::new(self.clients.streams.clone(), arn))
    }

    /// Feeds a function from its queue.
    fn feed(&self, (name, queue_url): (&'static str, &str), consumer: impl Consumer) {
        let source = EventSource {
            client: self.clients.sqs.clone(),
            queue_url: queue_url.to_owned(),
            consumer,
            visibility: self.visibility,
            load: self.load.clone(),
            pulse: self.health.watch(name),
        };
        self.tasks.spawn(source.run(self.stop.clone()));
    }

    fn importer(&self) -> Result<Importer> {
        let intake = Intake::from(self.app()?);
        let queue = (self.clients.sqs.clone(), &self.queues.imports);
        let letters = self.letters(&self.queues.imports_dead_letters);
        Ok(Importer::new(intake, self.blobs.clone(), queue, letters))
    }

    fn ingest(&self) -> Result<Ingest> {
        let letters = self.letters(&self.queues.ingest_dead_letters);
        Ok(Ingest::new(Intake::from(self.app()?), letters))
    }

    fn erasures(&self) -> Erasures {
        Erasures::new(self.clients.sqs.clone(), &self.queues.erasures, self.settle)
    }

    fn eraser(&self) -> Eraser {
        let (store, blobs) = (self.store.clone(), self.blobs.clone());
        let letters = self.letters(&self.queues.erasures_dead_letters);
        Eraser::new(store, blobs, Clock::system(), (self.erasures(), letters))
    }

    fn letters(&self, queue_url: &str) -> DeadLetters {
        DeadLetters::new(self.clients.sqs.clone(), queue_url)
    }

    /// A signal generator on this bundle's table.
    #[must_use]
    pub fn generator(&self) -> Generator {
        Generator::new(
            self.store.clone(),
            self.blobs.clone(),
            self.letters(&self.queues.dead_letters),
            Clock::system(),
        )
    }

    /// What the functions work with, on this bundle's table.
    fn app(&self) -> Result<App> {
        let key = secret(self.data.path(), PSEUDONYM_KEY_FILE)?;
        Ok(App {
            store: self.store.clone(),
            cursors: Cursors::new(key.as_slice()),
            pseudonyms: Pseudonyms::new(key),
            clock: Clock::system(),
            embeddings: Embeddings::from_env()?,
            mirrored: self.mirrored.clone(),
        })
    }

    fn serve(&self, listener: TcpListener) -> Result<()> {
        let app = self.app()?;
        let app = WithBlobs {
            app,
            blobs: self.blobs.clone(),
        };
        let registry = Registry::new(app, self.detector.clone()).keeping(self.retention);
        let router: Router = gateway::router(
            gateway::functions(registry, self.erasures()),
            self.tokens.clone(),
            (self.load.clone(), self.limits.request_time),
            self.health.clone(),
        );
        let bounds = (self.limits.connections, self.limits.idle);
        self.tasks.spawn(connections::serve(
            listener,
            router,
            bounds,
            self.stop.clone(),
        ));
        Ok(())
    }

    /// Ends everything: no new request is taken, and what was begun is finished.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        // A client that keeps a request open must not keep us: everything acknowledged is on
        // disk, and what is not is carried on at the next start.
        let _ = tokio::time::timeout(Duration::from_secs(5), self.tasks.wait()).await;
    }
}
