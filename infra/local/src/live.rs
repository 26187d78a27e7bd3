//! Replaces API Gateway's WebSocket API: the sockets of clients, the events that they cause, and the API by which frames
//! are posted to them, all with the limits of AWS.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{DefaultBodyLimit, FromRequestParts, Path, Query, Request, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::{SinkExt, StreamExt};
use hearback_domain::views::live::{Goodbye, MAX_FRAME, MAX_MESSAGE, ServerFrame};
use hearback_lambda::Problem;
use hearback_stream::{LiveFeed, PATH};
use serde::Deserialize;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

/// How long a client may take to read a frame.
const SLOW: Duration = Duration::from_mins(1);
/// Frames that wait for a client. More are rejected until it reads them.
const WAITING: usize = 32;
/// Bytes that are read of a socket at once. Frames of clients are short, and each connection has such a buffer.
const READ_BUFFER: usize = 8 * 1024;
/// Open sockets at a time.
const MAX_SOCKETS: usize = 4_096;

/// The open sockets, by connection id.
#[derive(Debug, Clone, Default)]
pub struct OpenSockets(Arc<Mutex<HashMap<String, Sender<Outgoing>>>>);

/// A command to a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outgoing {
    /// Send a frame.
    Text(String),
    /// End the connection.
    Close,
}

/// Why a frame was not posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PostRejection {
    Gone,
    LimitExceeded,
    PayloadTooLarge,
}

impl IntoResponse for PostRejection {
    fn into_response(self) -> Response {
        let (status, kind) = match self {
            Self::Gone => (StatusCode::GONE, "GoneException"),
            Self::LimitExceeded => (StatusCode::TOO_MANY_REQUESTS, "LimitExceededException"),
            Self::PayloadTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "PayloadTooLargeException"),
        };
        let headers = [
            (header::CONTENT_TYPE, "application/json"),
            (HeaderName::from_static("x-amzn-errortype"), kind),
        ];
        (status, headers, "{}").into_response()
    }
}

impl OpenSockets {
    /// Whether nobody is connected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sockets().is_empty()
    }

    /// The API that posts frames.
    pub fn routes(&self) -> Router {
        Router::new()
            .route("/@connections/{id}", post(post_frame).delete(close))
            .layer(DefaultBodyLimit::disable())
            .with_state(self.clone())
    }

    /// Adds a socket; `None` if there are too many.
    #[must_use]
    pub fn open(&self, id: &str) -> Option<Receiver<Outgoing>> {
        let mut sockets = self.sockets();
        if sockets.len() >= MAX_SOCKETS {
            return None;
        }
        let (sender, receiver) = channel(WAITING);
        sockets.insert(id.to_owned(), sender);
        Some(receiver)
    }

    fn send(&self, id: &str, outgoing: Outgoing) -> Result<(), PostRejection> {
        let sender = self.sockets().get(id).cloned().ok_or(PostRejection::Gone)?;
        sender.try_send(outgoing).map_err(|error| match error {
            TrySendError::Full(_) => PostRejection::LimitExceeded,
            TrySendError::Closed(_) => PostRejection::Gone,
        })
    }

    fn remove(&self, id: &str) {
        self.sockets().remove(id);
    }

    fn sockets(&self) -> MutexGuard<'_, HashMap<String, Sender<Outgoing>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn post_frame(
    State(sockets): State<OpenSockets>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<StatusCode, PostRejection> {
    if body.len() > MAX_MESSAGE {
        return Err(PostRejection::PayloadTooLarge);
    }
    let text = String::from_utf8_lossy(&body).into_owned();
    sockets.send(&id, Outgoing::Text(text))?;
    Ok(StatusCode::OK)
}

async fn close(
    State(sockets): State<OpenSockets>,
    Path(id): Path<String>,
) -> Result<StatusCode, PostRejection> {
    match sockets.send(&id, Outgoing::Close) {
        // What waits for a client that does not read is lost, as the client asked for a new connection anyway.
        Err(PostRejection::LimitExceeded) => sockets.remove(&id),
        closed => closed?,
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Accepts sockets at the gateway.
#[derive(Debug, Clone)]
pub(crate) struct SocketGateway {
    /// What happens when a client connects, sends a frame or leaves.
    pub(crate) live: LiveFeed,
    /// The open sockets.
    pub(crate) sockets: OpenSockets,
    /// How long a connection may be idle.
    pub(crate) idle: Duration,
    /// Closes the sockets.
    pub(crate) stop: CancellationToken,
    /// Tracks the sockets.
    pub(crate) tasks: TaskTracker,
}

#[derive(Deserialize)]
struct TicketQuery {
    #[serde(default)]
    ticket: String,
}

/// Middleware that accepts WebSockets, and passes on other requests.
pub(crate) async fn accept_sockets(
    State(gateway): State<SocketGateway>,
    request: Request,
    next: Next,
) -> Response {
    let asks = request.headers().get(header::UPGRADE);
    let asks = asks.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    if !asks || request.uri().path() != PATH {
        return next.run(request).await;
    }
    let (mut head, _) = request.into_parts();
    let upgrade = match WebSocketUpgrade::from_request_parts(&mut head, &()).await {
        Ok(upgrade) => upgrade,
        Err(rejection) => return Problem::of_status(rejection.status()).into_response(),
    };
    let ticket = Query::<TicketQuery>::try_from_uri(&head.uri);
    let ticket = ticket.map(|Query(TicketQuery { ticket })| ticket);
    let id = Uuid::new_v4().simple().to_string();
    let Some(frames) = gateway.sockets.open(&id) else {
        return Problem::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded")
            .detail("Too many connections are open. Try again.")
            .into_response();
    };
    // From here on it is removed, also if the client leaves during a call.
    let socket = Socket {
        gateway: gateway.clone(),
        id,
        frames,
    };
    let ticket = ticket.unwrap_or_default();
    if let Err(problem) = gateway.live.connect(&socket.id, &ticket).await {
        return problem.into_response();
    }
    upgrade
        .max_frame_size(MAX_FRAME)
        .max_message_size(MAX_MESSAGE)
        .read_buffer_size(READ_BUFFER)
        .on_upgrade(move |socket_io| {
            let tasks = gateway.tasks.clone();
            tasks.track_future(socket.run(socket_io))
        })
}

/// A connected client.
struct Socket {
    gateway: SocketGateway,
    id: String,
    frames: Receiver<Outgoing>,
}

impl Drop for Socket {
    // Also if the connection is never opened.
    fn drop(&mut self) {
        self.gateway.sockets.remove(&self.id);
    }
}

impl Socket {
    async fn run(mut self, mut socket: WebSocket) {
        self.exchange(&mut socket).await;
        self.gateway.sockets.remove(&self.id);
        // The client may be gone.
        let _ = tokio::time::timeout(Duration::from_secs(1), socket.close()).await;
        if let Err(error) = self.gateway.live.disconnect(&self.id).await {
            tracing::warn!(%error, "a connection was not removed");
        }
    }

    /// Passes frames in both directions until one side ends the connection.
    async fn exchange(&mut self, socket: &mut WebSocket) {
        let stop = self.gateway.stop.clone();
        let mut idle_at = Instant::now() + self.gateway.idle;
        loop {
            tokio::select! {
                outgoing = self.frames.recv() => match outgoing {
                    Some(Outgoing::Text(text)) => {
                        let sent = tokio::time::timeout(SLOW, socket.send(Message::text(text)));
                        let sent = stop.run_until_cancelled(sent).await;
                        if !matches!(sent, Some(Ok(Ok(())))) {
                            return;
                        }
                    }
                    Some(Outgoing::Close) | None => return,
                },
                received = socket.next() => match received {
                    Some(Ok(Message::Text(text))) => self.gateway.live.receive(&self.id, &text).await,
                    Some(Ok(Message::Binary(bytes))) => {
                        let text = String::from_utf8_lossy(&bytes).into_owned();
                        self.gateway.live.receive(&self.id, &text).await;
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                },
                () = tokio::time::sleep_until(idle_at) => return,
                () = stop.cancelled() => {
                    let goodbye = ServerFrame::Goodbye(Goodbye::Shutdown).text();
                    let sent = SinkExt::send(socket, Message::text(goodbye));
                    let _ = tokio::time::timeout(Duration::from_secs(1), sent).await;
                    return;
                }
            }
            idle_at = Instant::now() + self.gateway.idle;
        }
    }
}
