//! The embedded engines that replace AWS services. Each listens on its own port, so AWS tools can call it with the
//! key pair of the data folder. Pages in a browser cannot call them.

mod authentication;
mod bucket;
mod connection;
mod keys;
mod maintenance;
mod object_keys;
mod rejection;
mod secure_delete;
mod sigv4;
mod table;

use std::future::ready;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use axum::Router;
use axum::http::StatusCode;
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::Response;
use axum::serve::ListenerExt;
use hearback_lambda::aws::Aws;
use hearback_sqs::Sqs;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::keys::KeyPair;
pub use self::maintenance::Maintenance;
use self::sigv4::Verifier;
use crate::atomic::read_json;
use crate::connections::set_nodelay;
use crate::data_dir::DataDir;
use crate::files::{BUCKET_FOLDER, ENDPOINTS_FILE, QUEUES_FILE, TABLE_FILE};
use crate::health::Health;
use crate::rejections::RejectionLog;
use crate::writes::Writes;

/// The region of the engines.
pub const REGION: &str = "us-east-1";

/// Bound sockets of the engines. They are bound before anything starts, so that a port in use fails early.
#[derive(Debug)]
pub struct Sockets {
    dynamodb: TcpListener,
    sqs: TcpListener,
    s3: TcpListener,
}

/// The endpoint URLs of the engines.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Endpoints {
    /// Endpoint of DynamoDB and its streams.
    pub dynamodb: String,
    /// Endpoint of SQS.
    pub sqs: String,
    /// Endpoint of S3.
    pub s3: String,
}

/// What a client needs to call the engines.
#[derive(Debug, Clone)]
pub struct Access {
    /// The endpoints.
    pub endpoints: Endpoints,
    /// The key pair that signs requests.
    pub keys: KeyPair,
}

impl Access {
    /// Access to the bundle that was started last on a folder; `None` if none was.
    pub fn of_folder(folder: &Path) -> Result<Option<Self>> {
        let Some(endpoints) = read_json(&folder.join(ENDPOINTS_FILE))? else {
            return Ok(None);
        };
        let keys = KeyPair::of_folder(folder)?;
        Ok(Some(Self { endpoints, keys }))
    }

    /// Client configuration of DynamoDB and its streams.
    #[must_use]
    pub fn dynamodb(&self) -> Aws {
        Aws::local(&self.endpoints.dynamodb, self.keys.credentials())
    }

    /// Client configuration of SQS.
    #[must_use]
    pub fn sqs(&self) -> Aws {
        Aws::local(&self.endpoints.sqs, self.keys.credentials())
    }

    /// Client configuration of S3.
    #[must_use]
    pub fn s3(&self) -> Aws {
        Aws::local(&self.endpoints.s3, self.keys.credentials())
    }
}

impl Sockets {
    /// Binds the three ports that follow `port`, or any free ones if it is 0.
    pub async fn bind(port: u16) -> Result<Self> {
        let [dynamodb, sqs, s3] = if port == 0 {
            [0; 3]
        } else {
            let last = port.checked_add(3);
            last.context("the bundle needs four consecutive ports; choose a lower --port")?;
            [port + 1, port + 2, port + 3]
        };
        Ok(Self {
            dynamodb: bind(dynamodb).await?,
            sqs: bind(sqs).await?,
            s3: bind(s3).await?,
        })
    }

    /// The endpoints that the engines will have.
    pub fn endpoints(&self) -> Result<Endpoints> {
        let url = |listener: &TcpListener| anyhow::Ok(format!("http://{}", listener.local_addr()?));
        Ok(Endpoints {
            dynamodb: url(&self.dynamodb)?,
            sqs: url(&self.sqs)?,
            s3: url(&self.s3)?,
        })
    }
}

/// Binds a port of 127.0.0.1.
pub async fn bind(port: u16) -> Result<TcpListener> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    TcpListener::bind(address).await.with_context(|| {
        format!(
            "port {port} is in use; choose another with --port (the bundle needs four consecutive ports)"
        )
    })
}

/// A runtime of the DynamoDB engine's own. The engine blocks its thread during disk writes, and so do the calls that
/// wait for it; on the shared runtime, they would block all other requests.
#[derive(Debug)]
pub struct Threads(Option<Runtime>);

impl Threads {
    fn start() -> Result<Self> {
        // More threads than processors, so that a blocked writer does not stop the others.
        let processors = std::thread::available_parallelism()?.get();
        let runtime = Builder::new_multi_thread()
            .worker_threads(processors + 2)
            .thread_name("dynamodb")
            .enable_all()
            .build()?;
        Ok(Self(Some(runtime)))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // The current thread may belong to a runtime, which must not block.
            runtime.shutdown_background();
        }
    }
}

/// How the engines are stopped, tracked and monitored.
#[derive(Debug, Clone, Copy)]
pub struct EngineLifecycle<'a> {
    /// Stops the engines.
    pub stop: &'a CancellationToken,
    /// Tracks their tasks.
    pub tasks: &'a TaskTracker,
    /// Records their failures.
    pub health: &'a Health,
}

/// Starts the engines on a folder. They run until they are stopped, or until the returned threads are dropped. Also
/// returns the writes of the table.
pub fn start(
    data: &DataDir,
    sockets: Sockets,
    maintenance: Maintenance,
    lifecycle: EngineLifecycle<'_>,
) -> Result<(Threads, Writes)> {
    let EngineLifecycle {
        stop,
        tasks,
        health,
    } = lifecycle;
    let keys = KeyPair::of_folder(data.path())?;
    let tables = data.file(TABLE_FILE)?;
    let clock = maintenance.clock.clone();
    maintenance::prepare(&tables)?;
    let database = dynoxide::Database::new(&tables.to_string_lossy())
        .map_err(|error| anyhow::anyhow!("cannot open {}: {error}", tables.display()))?;
    maintenance::create_index(&tables)?;
    secure_delete::check_build()?;
    tasks.spawn(maintenance::run(
        tables,
        database.clone(),
        maintenance,
        stop.clone(),
    ));
    let rejections = RejectionLog::default();
    tasks.spawn(rejections.clone().report(stop.clone()));
    let threads = Threads::start().context("cannot start the threads of the DynamoDB engine")?;
    let writes = Writes::default();
    if let Some(runtime) = &threads.0 {
        let engine = table::routes(database, writes.clone());
        let engine = signed(monitored(engine, "table", health), &keys, "dynamodb");
        let engine = counted(engine, "at the DynamoDB port", &rejections);
        let engine = serve("DynamoDB", sockets.dynamodb, engine, stop);
        tasks.spawn_on(engine, runtime.handle());
    }

    let queues = Sqs::open_by(&data.file(QUEUES_FILE)?, REGION, clock)?;
    let queues = signed(monitored(queues.router(), "queue", health), &keys, "sqs");
    let queues = counted(queues, "at the SQS port", &rejections);
    tasks.spawn(serve("SQS", sockets.sqs, queues, stop));

    let folder = data.folder(BUCKET_FOLDER)?;
    bucket::start(&folder, sockets.s3, (&keys, rejections), lifecycle)?;
    Ok((threads, writes))
}

/// Serves the API by which frames are posted to WebSockets, on any free port, and returns how to call it.
pub(crate) async fn serve_sockets(routes: Router, lifecycle: EngineLifecycle<'_>) -> Result<Aws> {
    let listener = bind(0).await?;
    let url = format!("http://{}", listener.local_addr()?);
    let keys = KeyPair::random();
    let engine = signed(routes, &keys, "execute-api");
    let engine = serve("WebSocket", listener, engine, lifecycle.stop);
    lifecycle.tasks.spawn(engine);
    Ok(Aws::local(url, keys.credentials()))
}

/// Adds authentication to an engine's routes.
fn signed(engine: Router, keys: &KeyPair, service: &'static str) -> Router {
    let verifier = Arc::new(Verifier::new(keys, service));
    engine.layer(from_fn_with_state(
        verifier,
        authentication::require_signature,
    ))
}

/// Counts the rejected requests of an engine's port.
fn counted(engine: Router, port: &'static str, rejections: &RejectionLog) -> Router {
    let rejections = rejections.clone();
    engine.layer(map_response(move |response: Response| {
        rejections.count_at_port(port, response.status());
        ready(response)
    }))
}

/// Why an engine responded with an internal error. The reason contains no data of the request.
#[derive(Debug, Clone)]
struct EngineFault {
    reason: String,
    /// Whether the file is damaged.
    is_damage: bool,
}

/// Records an engine's internal errors in the health report.
fn monitored(engine: Router, part: &'static str, health: &Health) -> Router {
    let health = health.clone();
    engine.layer(map_response(move |response: Response| {
        record_failure(&health, part, &response);
        ready(response)
    }))
}

fn record_failure(health: &Health, part: &'static str, response: &Response) {
    if response.status() != StatusCode::INTERNAL_SERVER_ERROR {
        return;
    }
    match response.extensions().get::<EngineFault>() {
        Some(fault) if fault.is_damage => health.record_damage(part, &fault.reason),
        Some(fault) => health.record_failure(part, &fault.reason),
        None => health.record_failure(part, "it failed; the log says why"),
    }
}

fn serve(
    name: &'static str,
    listener: TcpListener,
    engine: Router,
    stop: &CancellationToken,
) -> impl Future<Output = ()> + use<> {
    let stopped = stop.clone().cancelled_owned();
    async move {
        let served =
            axum::serve(listener.tap_io(set_nodelay), engine).with_graceful_shutdown(stopped);
        if let Err(error) = served.await {
            tracing::error!(name, %error, "an engine stopped");
        }
    }
}
