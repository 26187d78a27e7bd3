//! How the gateway's connections are served: no more at once than the process has files for, and none that
//! only waits.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// What one connection may hold of a request that nobody reads yet, in bytes.
const BUFFER: usize = 64 * 1024;

/// Serves at most so many connections at once, until `stop`. Further ones wait, in the system's hands, for
/// one that closes; one on which no request comes for as long as `idle` is closed.
pub async fn serve(
    mut listener: TcpListener,
    router: Router,
    (most, idle): (usize, Duration),
    stop: CancellationToken,
) {
    let mut server = Builder::new(TokioExecutor::new()).http1_only();
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(idle)
        .max_buf_size(BUFFER);
    let places = Arc::new(Semaphore::new(most));
    let connections = GracefulShutdown::new();
    let next = async |listener: &mut TcpListener| {
        // The semaphore is never closed.
        let place = places.clone().acquire_owned().await.ok();
        let (socket, _) = Listener::accept(listener).await;
        (socket, place)
    };
    while let Some((socket, place)) = stop.run_until_cancelled(next(&mut listener)).await {
        let service = TowerToHyperService::new(router.clone());
        let connection = server.serve_connection(TokioIo::new(socket), service);
        let connection = connections.watch(connection.into_owned());
        tokio::spawn(async move {
            // A client that goes away is no news.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    connections.shutdown().await;
}
