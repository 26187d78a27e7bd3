//! Serves the gateway's connections: limits their number, and closes the one that was idle longest if a new client
//! would have to wait.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// Bytes of a request that a connection buffers.
const BUFFER: usize = 64 * 1024;

/// Limits of the gateway's connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// Connections at a time.
    pub(crate) connections: usize,
    /// How long a connection may be idle.
    pub(crate) idle: Duration,
}

/// A response may be two writes, its head and its body. The second one would wait until the client acknowledges the
/// first, which it delays by up to 40 ms.
pub(crate) fn set_nodelay(socket: &mut TcpStream) {
    // Fails only if the client is already gone.
    let _ = socket.set_nodelay(true);
}

/// Serves connections until `stop`. At the limit, a new connection replaces the one that was idle longest; if none is
/// idle, it waits in the listener's backlog.
pub(crate) async fn serve(
    mut listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    stop: CancellationToken,
) {
    let mut server = Builder::new(TokioExecutor::new()).http1_only();
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle)
        .max_buf_size(BUFFER);
    let permits = Arc::new(Semaphore::new(limits.connections));
    let idle = IdleConnections::default();
    let connections = GracefulShutdown::new();
    let next = async |listener: &mut TcpListener| {
        let (mut socket, _) = Listener::accept(listener).await;
        set_nodelay(&mut socket);
        (socket, idle.acquire(&permits).await)
    };
    while let Some((socket, permit)) = stop.run_until_cancelled(next(&mut listener)).await {
        let state = Arc::new(ConnectionState::new(idle.clone()));
        let (router, of_service) = (router.clone(), state.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let (router, state) = (router.clone(), of_service.clone());
            async move {
                if !state.begin_request() {
                    // The connection is being closed: the request must have no effect.
                    return pending().await;
                }
                let response = router.oneshot(request).await;
                state.end_request();
                response
            }
        });
        let connection = server.serve_connection_with_upgrades(TokioIo::new(socket), service);
        let connection = connections.watch(connection.into_owned());
        tokio::spawn(async move {
            // A client may disconnect at any time.
            let _ = state.close.run_until_cancelled(connection).await;
            drop(permit);
        });
    }
    drop(listener);
    connections.shutdown().await;
}

/// The connections without a request in progress.
#[derive(Debug, Clone, Default)]
struct IdleConnections(Arc<IdleQueue>);

#[derive(Debug, Default)]
struct IdleQueue {
    state: Mutex<IdleState>,
    became_idle: Notify,
}

#[derive(Debug, Default)]
struct IdleState {
    next: u64,
    /// In the order in which they became idle.
    connections: BTreeMap<u64, CancellationToken>,
}

impl IdleConnections {
    /// Acquires a permit for another connection, if necessary by closing an idle one. The semaphore is never closed.
    async fn acquire(&self, permits: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
        loop {
            if let Ok(permit) = permits.clone().try_acquire_owned() {
                return Some(permit);
            }
            let mut became_idle = std::pin::pin!(self.0.became_idle.notified());
            became_idle.as_mut().enable();
            let permit = permits.clone().acquire_owned();
            if self.close_oldest() {
                return permit.await.ok();
            }
            tokio::select! {
                permit = permit => return permit.ok(),
                () = became_idle => {}
            }
        }
    }

    fn insert(&self, close: &CancellationToken) -> u64 {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.connections.insert(number, close.clone());
        drop(state);
        self.0.became_idle.notify_waiters();
        number
    }

    /// Returns whether the connection was still in the queue.
    fn remove(&self, number: u64) -> bool {
        self.state().connections.remove(&number).is_some()
    }

    /// Closes the connection that was idle longest; `false` if none is idle.
    fn close_oldest(&self) -> bool {
        let oldest = self.state().connections.pop_first();
        oldest.inspect(|(_, close)| close.cancel()).is_some()
    }

    fn state(&self) -> MutexGuard<'_, IdleState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a connection is idle or has a request in progress.
struct ConnectionState {
    idle: IdleConnections,
    close: CancellationToken,
    /// Its number in the queue of idle connections.
    number: Mutex<Option<u64>>,
}

impl ConnectionState {
    fn new(idle: IdleConnections) -> Self {
        let close = CancellationToken::new();
        let number = Mutex::new(Some(idle.insert(&close)));
        Self {
            idle,
            close,
            number,
        }
    }

    /// Returns `false` if the connection is being closed.
    fn begin_request(&self) -> bool {
        match self.number().take() {
            Some(number) => self.idle.remove(number),
            // HTTP/1.1 has one request at a time.
            None => true,
        }
    }

    fn end_request(&self) {
        *self.number() = Some(self.idle.insert(&self.close));
    }

    fn number(&self) -> MutexGuard<'_, Option<u64>> {
        self.number.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionState {
    fn drop(&mut self) {
        if let Some(number) = self.number().take() {
            self.idle.remove(number);
        }
    }
}
