//! The bundle: engines, resources, functions, the relay and the event sources.

mod options;
mod tasks;
mod workers;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use chrono::TimeDelta;
use hearback_detection::Detector;
use hearback_domain::events::retention::Retention;
use hearback_domain::identity::privacy::Pseudonyms;
use hearback_domain::text::cursor::Cursors;
use hearback_lambda::app::mirrored;
use hearback_lambda::clock::Clock;
use hearback_lambda::embedder::Embeddings;
use hearback_lambda::{App, WithBlobs};
use hearback_operations::Queues;
use hearback_relay::{Sender, WebhookRegistry};
use hearback_storage::{Blobs, Store};
use hearback_stream::{Delivery, LiveFeed, Tasks as LiveTasks};
use hearback_turns::Registry;
use tokio::net::TcpListener;

use crate::atomic::replace_json;
use crate::check::{self, BackgroundCheck};
use crate::clients::Clients;
use crate::connections::{self, ConnectionLimits};
use crate::data_dir::DataDir;
use crate::engines::{self, Access, EngineLifecycle, KeyPair, Maintenance, Sockets, Threads};
use crate::files::{
    ENDPOINTS_FILE, GATEWAY_FILE, PSEUDONYM_KEY_FILE, QUEUES_FILE, TABLE_FILE, TOKEN_KEY_FILE,
};
use crate::gateway::{self, Gateway, Limits};
use crate::health::Health;
use crate::hosts::Hosts;
use crate::live::{OpenSockets, SocketGateway};
use crate::load::Load;
use crate::manifest::{self, FolderPart};
use crate::names::Names;
use crate::position::RelayProgress;
use crate::probe::Probe;
use crate::provision::{self, QueueUrls};
use crate::rejections::RejectionLog;
use crate::secrets::secret;
use crate::token::Tokens;
pub use options::Options;
use tasks::Tasks;

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
    webhooks: Option<Sender>,
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
        provision_table(&store, access.is_some()).await?;
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
        let webhooks = options.webhooks.map(Sender::new).transpose()?;
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
            webhooks,
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
        let queues = Queues::beside(self.clients.sqs.clone(), &self.queues.signals);
        let mut functions = gateway::functions(registry, self.erasures())
            .merge(hearback_stream::routes().router(live))
            .merge(hearback_operations::routes().router(queues));
        if let Some(sender) = &self.webhooks {
            let webhooks = WebhookRegistry::new(self.store.clone(), sender.clone(), self.clock);
            functions = functions.merge(hearback_relay::webhook_routes().router(webhooks));
        }
        let router = gateway.router(functions);
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

/// Creates the table, or completes its creation if that was interrupted.
async fn provision_table(store: &Store, is_embedded: bool) -> Result<()> {
    if is_embedded {
        let repaired = store.repair_table().await;
        repaired.context("the creation of the table was interrupted, and cannot be completed")?;
    }
    provision::table(store).await
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
