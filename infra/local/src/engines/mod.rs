//! The engines that stand in for AWS on one machine, each on a port of its own, so that AWS's own
//! tools can be pointed at it too.

mod bucket;
mod stream_index;

use std::net::SocketAddr;

use anyhow::{Context, Result};
use hearback_sqs::Sqs;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::data_dir::DataDir;

/// What the engines call their region.
pub const REGION: &str = "us-east-1";

/// Sockets for the engines, taken before anything is started, so that a port in use is found out
/// first.
#[derive(Debug)]
pub struct Sockets {
    dynamodb: TcpListener,
    sqs: TcpListener,
    s3: TcpListener,
}

/// Where the engines are.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Endpoints {
    /// DynamoDB and its streams.
    pub dynamodb: String,
    /// SQS.
    pub sqs: String,
    /// S3.
    pub s3: String,
}

impl Sockets {
    /// The three ports that follow `port`, or any free ones for 0.
    pub async fn bind(port: u16) -> Result<Self> {
        let [dynamodb, sqs, s3] = if port == 0 {
            [0; 3]
        } else {
            let last = port.checked_add(3);
            last.context("the bundle takes four ports in a row; choose a lower --port")?;
            [port + 1, port + 2, port + 3]
        };
        Ok(Self {
            dynamodb: bind(dynamodb).await?,
            sqs: bind(sqs).await?,
            s3: bind(s3).await?,
        })
    }

    /// Where the engines will be.
    pub fn endpoints(&self) -> Result<Endpoints> {
        let url = |listener: &TcpListener| anyhow::Ok(format!("http://{}", listener.local_addr()?));
        Ok(Endpoints {
            dynamodb: url(&self.dynamodb)?,
            sqs: url(&self.sqs)?,
            s3: url(&self.s3)?,
        })
    }
}

/// A socket on this machine only.
pub async fn bind(port: u16) -> Result<TcpListener> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    TcpListener::bind(address).await.with_context(|| {
        format!(
            "port {port} is in use; choose another with --port (the bundle takes four in a row)"
        )
    })
}

/// Threads of the DynamoDB engine's own. It holds its thread while the disk writes, and those that wait for it
/// hold theirs: on the threads of everybody else, nobody would be answered meanwhile.
#[derive(Debug)]
pub struct Threads(Option<Runtime>);

impl Threads {
    fn start() -> Result<Self> {
        // One that writes must not keep all others from being read and answered.
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
            // It may be a thread that must not wait.
            runtime.shutdown_background();
        }
    }
}

/// Starts the engines on the folder. They end with `stop`, and at the latest with their threads.
pub fn start(
    data: &DataDir,
    sockets: Sockets,
    stop: &CancellationToken,
    tasks: &TaskTracker,
) -> Result<Threads> {
    let tables = data.path().join("dynamodb.sqlite");
    let database = dynoxide::Database::new(&tables.to_string_lossy())
        .map_err(|error| anyhow::anyhow!("{} cannot be opened: {error}", tables.display()))?;
    stream_index::create(&tables)?;
    tasks.spawn(stream_index::keep_house(
        tables,
        database.clone(),
        stop.clone(),
    ));
    let threads = Threads::start().context("the DynamoDB engine has no threads")?;
    let ended = stop.clone().cancelled_owned();
    let engine = async move {
        if let Err(error) =
            dynoxide::server::serve_with_shutdown(sockets.dynamodb, database, ended).await
        {
            tracing::error!(error, "the DynamoDB engine ended");
        }
    };
    if let Some(runtime) = &threads.0 {
        tasks.spawn_on(engine, runtime.handle());
    }

    let queues = Sqs::open(&data.path().join("sqs.sqlite"), REGION)?;
    let ended = stop.clone().cancelled_owned();
    tasks.spawn(async move {
        let served = axum::serve(sockets.sqs, queues.router())
            .with_graceful_shutdown(ended)
            .await;
        if let Err(error) = served {
            tracing::error!(%error, "the SQS engine ended");
        }
    });

    bucket::start(&data.folder("s3")?, sockets.s3, stop, tasks)?;
    Ok(threads)
}
