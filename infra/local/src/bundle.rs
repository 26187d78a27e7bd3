//! The bundle: engines, resources, functions, the relay and the event sources.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use chrono::TimeDelta;
use hearback_batch::{Importer, Ingest, Intake, Queues};
use hearback_detection::Detector;
use hearback_domain::events::retention::Retention;
use hearback_domain::identity::privacy::Pseudonyms;
use hearback_domain::text::cursor::Cursors;
use hearback_erasure::{Eraser, Erasures};
use hearback_lambda::app::mirrored;
use hearback_lambda::clock::Clock;
use hearback_lambda::dead_letters::DeadLetters;
use hearback_lambda::embedder::Embeddings;
use hearback_lambda::{App, WithBlobs};
use hearback_relay::{Backoff, Nats, NatsSettings};
use hearback_signals::Generator;
use hearback_storage::{Blobs, Store};
use hearback_stream::{Delivery, Fanout, LiveFeed, Tasks as LiveTasks};
use hearback_turns::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::atomic::replace_json;
use crate::check::{self, BackgroundCheck};
use crate::clients::Clients;
use crate::connections::{self, ConnectionLimits};
use crate::data_dir::DataDir;
use crate::engines::{self, Access, EngineLifecycle, KeyPair, Maintenance, Sockets, Threads};
use crate::event_source::{Consumer, EventSource, OUTLET_MAX_WAIT};
use crate::files::{
    ENDPOINTS_FILE, GATEWAY_FILE, POSITION_FILE, PSEUDONYM_KEY_FILE, QUEUES_FILE, TABLE_FILE,
    TOKEN_KEY_FILE,
};
use crate::gateway::{self, Gateway, Limits};
use crate::health::Health;
use crate::hosts::Hosts;
use crate::live::{OpenSockets, SocketGateway};
use crate::load::Load;
use crate::manifest::{self, FolderPart};
use crate::names::Names;
use crate::position::{RelayPosition, RelayProgress};
use crate::probe::Probe;
use crate::provision::{self, QueueUrls};
use crate::rejections::RejectionLog;
use crate::relay::Relay;
use crate::secrets::secret;
use crate::stream::Stream;
use crate::token::Tokens;
use crate::writes::Writes;

/// Workers of a queue, each with its own batch.
const EVENT_SOURCES: usize = 2;

/// How to run the bundle.
#[derive(Debug, Clone)]
pub struct Options {
    /// The port of the gateway; the engines use the three ports after it. 0 chooses free ports.
    pub port: u16,
    /// The data folder; `None` keeps everything in memory.
    pub data: Option<PathBuf>,
    /// An AWS-compatible endpoint to use instead of the embedded engines, or `aws`.
    pub endpoint_url: Option<String>,
    /// The names of the resources.
    pub names: Names,
    /// The visibility timeout of the queues: a message that was received but not processed is delivered again after it.
    pub visibility: Duration,
    /// How long an erasure waits before its first pass and between passes.
    pub settle: TimeDelta,
    /// Projects whose reactions are mirrored into turn logs: a comma-separated list of `tenant/project`.
    pub mirror: String,
    /// How long turns are kept.
    pub retention: Retention,
    /// A folder of phrase files to add to the built-in ones.
    pub phrases: Option<PathBuf>,
    /// The NATS server to which everything is published, too.
    pub nats: Option<NatsSettings>,
    /// Load limits of the gateway.
    pub limits: Limits,
    /// The hosts that the gateway serves.
    pub hosts: Hosts,
    /// Parts of the folder that may be missing or replaced. Their content is lost.
    pub accept: Vec<FolderPart>,
    /// The clock of the functions and the engines.
    pub clock: Clock,
    /// How often the table's engine deletes expired items and relayed stream records, and shrinks its file.
    pub maintenance_interval: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            port: 3000,
            data: Some(PathBuf::from(".hearback")),
            endpoint_url: None,
            names: Names::default(),
            visibility: Duration::from_secs(10),
            // Longer than a request or a batch takes. Unlike in Lambda, no process is frozen in between.
            settle: TimeDelta::seconds(10),
            mirror: String::new(),
            retention: Retention::default(),
            phrases: None,
            nats: None,
            limits: Limits::default(),
            hosts: Hosts::default(),
            accept: Vec::new(),
            clock: Clock::system(),
            maintenance_interval: Maintenance::default().interval,
        }
    }
}

/// A running bundle.
#[derive(Debug)]
pub struct Bundle {
    /// The address of the gateway.
    pub address: SocketAddr,
    /// Addresses and credentials of the engines, if they are embedded.
    pub access: Option<Access>,
    /// AWS clients.
    pub clients: Clients,
    /// The table.
    pub store: Store,
    /// The bucket.
    pub blobs: Blobs,
    /// The queues.
    pub queues: QueueUrls,
    /// Signs tokens that the gateway accepts.
    pub tokens: Tokens,
    mirrored: Arc<[String]>,
    retention: Retention,
    detector: Arc<Detector>,
    load: Load,
    health: Health,
    limits: Limits,
    hosts: Hosts,
    visibility: Duration,
    settle: TimeDelta,
    clock: Clock,
    sockets: OpenSockets,
    delivery: Delivery,
    progress: RelayProgress,
    work: Tasks,
    engines: Tasks,
    names: Names,
    _threads: Option<Threads>,
    // The last field, so that the folder is unlocked after everything that uses it is dropped.
    data: DataDir,
}

impl Bundle {
    /// Starts the bundle, and returns once it serves requests.
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
        let (work, engines) = (Tasks::default(), Tasks::default());
        let health = Health::new(options.clock);
        let used: &[FolderPart] = if options.endpoint_url.is_some() {
            &FolderPart::KEYS
        } else {
            &FolderPart::ALL[1..]
        };
        let verified = manifest::verify(data.path(), used, &options.accept)?;
        let (progress, clock) = (RelayProgress::default(), options.clock);
        let (clients, access, engine) = if let Some(url) = &options.endpoint_url {
            (Clients::of_endpoint(url), None, None)
        } else {
            let sockets = Sockets::bind(options.port).await?;
            let endpoints = sockets.endpoints()?;
            check_databases(&data, &work, &health)?;
            let maintenance = Maintenance {
                progress: progress.clone(),
                clock: hearback_sqs::clock::Clock::of(move || clock.now().into()),
                interval: options.maintenance_interval,
            };
            let lifecycle = EngineLifecycle {
                stop: &engines.stop,
                tasks: &engines.tracker,
                health: &health,
            };
            let engine = engines::start(&data, sockets, maintenance, lifecycle)?;
            replace_json(&data.path().join(ENDPOINTS_FILE), &endpoints)?;
            let keys = KeyPair::of_folder(data.path())?;
            let access = Access { endpoints, keys };
            (Clients::of_engines(&access), Some(access), Some(engine))
        };
        let (threads, writes) = engine.unzip();
        let tokens = Tokens::new(&secret(data.path(), TOKEN_KEY_FILE)?);
        secret(data.path(), PSEUDONYM_KEY_FILE)?;
        verified.complete()?;
        let store = Store::new(clients.dynamodb.clone(), options.names.table());
        if access.is_some() {
            let repaired = store.repair_table().await;
            repaired
                .context("the creation of the table was interrupted, and cannot be completed")?;
        }
        provision::table(&store).await?;
        provision::bucket(&clients.s3, &options.names).await?;
        let queues = provision::queues(&clients.sqs, &options.names, options.visibility).await?;
        let sockets = OpenSockets::default();
        let lifecycle = EngineLifecycle {
            stop: &engines.stop,
            tasks: &engines.tracker,
            health: &health,
        };
        let posting = engines::serve_sockets(sockets.routes(), lifecycle).await?;
        let delivery = Delivery {
            store: store.clone(),
            clock,
            sockets: hearback_stream::sockets::Sockets::new(&posting.config()),
            tasks: LiveTasks::new(clients.sqs.clone(), &queues.fanout),
        };
        let bundle = Self {
            address: gateway.local_addr()?,
            access,
            blobs: Blobs::new(clients.s3.clone(), options.names.bucket()),
            clients,
            mirrored: mirrored(&options.mirror),
            retention: options.retention,
            detector: Arc::new(detector),
            store,
            queues,
            tokens,
            load: Load::new(options.limits.requests),
            health,
            limits: options.limits,
            hosts: options.hosts,
            visibility: options.visibility,
            settle: options.settle,
            clock,
            sockets,
            delivery,
            progress,
            work,
            engines,
            names: options.names,
            _threads: threads,
            data,
        };
        bundle.start_workers(writes, options.nats).await?;
        bundle.serve(gateway)?;
        let address = bundle.address.to_string();
        replace_json(&bundle.data.path().join(GATEWAY_FILE), &address)?;
        Ok(bundle)
    }

    /// Starts the relay and the event sources.
    async fn start_workers(
        &self,
        writes: Option<Writes>,
        nats: Option<NatsSettings>,
    ) -> Result<()> {
        let outlets = nats.iter().map(|_| self.queues.nats.clone()).collect();
        let relay = Relay {
            outlets,
            stream: self.stream().await?,
            writes,
            store: self.store.clone(),
            blobs: self.blobs.clone(),
            sqs: self.clients.sqs.clone(),
            queues: self.queues.clone(),
            sockets: self.sockets.clone(),
            position: RelayPosition::new(
                self.data.path().join(POSITION_FILE),
                self.progress.clone(),
            ),
            health: self.health.clone(),
        };
        self.work.spawn(relay.run(self.work.stop.clone()));
        let (queues, minutes) = (&self.queues, Duration::from_mins);
        for _ in 0..EVENT_SOURCES {
            self.consume("signals", &queues.signals, minutes(5), self.generator());
            self.consume("imports", &queues.imports, minutes(360), self.importer()?);
        }
        let bulk = minutes(24 * 60);
        self.consume("signals-bulk", &queues.signals_bulk, bulk, self.generator());
        self.consume("ingest", &queues.ingest, minutes(15), self.ingest()?);
        self.consume("erasures", &queues.erasures, minutes(60), self.eraser());
        let dead_letters = self.dead_letters(&self.queues.fanout_dead_letters);
        let fanout = Fanout::new(self.delivery.clone(), dead_letters);
        self.consume("fanout", &queues.fanout, minutes(30), fanout);
        if let Some(settings) = nats {
            let dead_letters = self.dead_letters(&queues.nats_dead_letters);
            let backoff = Backoff::new(self.clients.sqs.clone(), &queues.nats);
            let outlet = hearback_relay::Relay::new(Nats::new(settings), backoff, dead_letters);
            self.consume("nats", &queues.nats, OUTLET_MAX_WAIT, outlet);
        }
        Ok(())
    }

    async fn stream(&self) -> Result<Stream> {
        let arn = self.store.stream_arn().await;
        let arn = arn.context("the table has no stream")?;
        Ok(Stream::new(self.clients.streams.clone(), arn))
    }

    fn consume(
        &self,
        name: &'static str,
        queue_url: &str,
        max_wait: Duration,
        consumer: impl Consumer,
    ) {
        let source = EventSource {
            client: self.clients.sqs.clone(),
            queue_url: queue_url.to_owned(),
            consumer,
            visibility: self.visibility,
            max_wait,
            load: self.load.clone(),
            status: self.health.register(name),
        };
        self.work.spawn(source.run(self.work.stop.clone()));
    }

    fn importer(&self) -> Result<Importer> {
        let intake = Intake::from(self.app()?);
        let queues = Queues {
            client: self.clients.sqs.clone(),
            imports: self.queues.imports.clone(),
            signals_bulk: self.queues.signals_bulk.clone(),
        };
        let dead_letters = self.dead_letters(&self.queues.imports_dead_letters);
        Ok(Importer::new(
            intake,
            self.blobs.clone(),
            queues,
            dead_letters,
        ))
    }

    fn ingest(&self) -> Result<Ingest> {
        let dead_letters = self.dead_letters(&self.queues.ingest_dead_letters);
        Ok(Ingest::new(Intake::from(self.app()?), dead_letters))
    }

    fn erasures(&self) -> Erasures {
        Erasures::new(self.clients.sqs.clone(), &self.queues.erasures, self.settle)
    }

    fn eraser(&self) -> Eraser {
        let (store, blobs) = (self.store.clone(), self.blobs.clone());
        let dead_letters = self.dead_letters(&self.queues.erasures_dead_letters);
        Eraser::new(store, blobs, self.clock, self.erasures(), dead_letters)
    }

    fn dead_letters(&self, queue_url: &str) -> DeadLetters {
        DeadLetters::new(self.clients.sqs.clone(), queue_url)
    }

    /// A signal generator on this bundle's table.
    #[must_use]
    pub fn generator(&self) -> Generator {
        Generator::new(
            self.store.clone(),
            self.blobs.clone(),
            self.dead_letters(&self.queues.dead_letters),
            self.clock,
        )
    }

    /// The state of the HTTP functions.
    fn app(&self) -> Result<App> {
        let key = secret(self.data.path(), PSEUDONYM_KEY_FILE)?;
        Ok(App {
            store: self.store.clone(),
            cursors: Cursors::new(key.as_slice()),
            pseudonyms: Pseudonyms::new(key),
            clock: self.clock,
            embeddings: Embeddings::from_env()?,
            mirrored: self.mirrored.clone(),
        })
    }

    fn serve(&self, listener: TcpListener) -> Result<()> {
        let app = self.app()?;
        let live = LiveFeed {
            app: app.clone(),
            delivery: self.delivery.clone(),
            url: None,
        };
        let app = WithBlobs {
            app,
            blobs: self.blobs.clone(),
        };
        let registry = Registry::new(app, self.detector.clone()).keeping(self.retention);
        let folder = self.access.is_some().then(|| self.data.path().to_owned());
        let (names, health) = (self.names.clone(), self.health.clone());
        let probe = Probe::new(self.clients.clone(), names, health, folder);
        let rejections = RejectionLog::default();
        self.work
            .spawn(rejections.clone().report(self.work.stop.clone()));
        let gateway = Gateway {
            tokens: self.tokens.clone(),
            hosts: self.hosts.clone(),
            load: self.load.clone(),
            limits: self.limits,
            probe,
            rejections,
            sockets: SocketGateway {
                live: live.clone(),
                sockets: self.sockets.clone(),
                idle: self.limits.socket_idle,
                stop: self.work.stop.clone(),
                tasks: self.work.tracker.clone(),
            },
        };
        let functions = gateway::functions(registry, self.erasures());
        let router = gateway.router(functions.merge(hearback_stream::routes().router(live)));
        let limits = ConnectionLimits {
            connections: self.limits.connections,
            idle: self.limits.idle,
        };
        let stop = self.work.stop.clone();
        self.work
            .spawn(connections::serve(listener, router, limits, stop));
        Ok(())
    }

    /// Stops the bundle: accepts no new requests, and finishes those in progress.
    pub async fn stop(self) {
        // A client that keeps a request open must not delay the stop: everything acknowledged is on
        // disk, and unfinished work continues after the next start.
        self.work.end(Duration::from_secs(5)).await;
        // The engines end last, since the other tasks call them.
        self.engines.end(Duration::from_secs(1)).await;
    }
}

/// Tasks that are stopped together.
#[derive(Debug, Default)]
struct Tasks {
    /// Asks the tasks to finish.
    stop: CancellationToken,
    /// Drops the tasks that have not finished.
    abandoned: CancellationToken,
    tracker: TaskTracker,
}

impl Tasks {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let abandoned = self.abandoned.clone();
        self.tracker.spawn(async move {
            abandoned.run_until_cancelled(task).await;
        });
    }

    /// Asks all tasks to finish, and drops those that take longer.
    async fn end(&self, timeout: Duration) {
        self.stop.cancel();
        self.tracker.close();
        let _ = tokio::time::timeout(timeout, self.tracker.wait()).await;
        self.abandoned.cancel();
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Fails if a database is damaged. Large databases are checked in the background while the bundle runs.
fn check_databases(data: &DataDir, work: &Tasks, health: &Health) -> Result<()> {
    for (file, part) in [(TABLE_FILE, "table"), (QUEUES_FILE, "queue")] {
        let path = data.path().join(file);
        if check::check_at_start(&path)? {
            continue;
        }
        let check = BackgroundCheck::open(&path)?;
        let interrupt = check.interrupt_handle();
        let (stop, health) = (work.stop.clone(), health.clone());
        work.spawn(async move {
            let mut check = tokio::task::spawn_blocking(|| check.run());
            let result = tokio::select! {
                result = &mut check => result,
                () = stop.cancelled() => {
                    interrupt.interrupt();
                    check.await
                }
            };
            if let Ok(Some(reason)) = result {
                tracing::error!(file, reason, "a database is damaged");
                health.record_damage(part, &reason);
            }
        });
    }
    Ok(())
}
