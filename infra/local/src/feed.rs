//! `hearback feed`: prints events as they are processed, from the live feed of a running bundle.

use std::collections::BTreeSet;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures::{SinkExt, StreamExt};
use hearback_domain::views::feed::FeedPosition;
use hearback_stream::PATH;
use reqwest::{Client, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::atomic::read_json;
use crate::files::{GATEWAY_FILE, TOKEN_KEY_FILE};
use crate::secrets::secret;
use crate::token::{Claims, Tokens};

/// How often the connection is kept open: a server closes one that is idle for ten minutes.
const PING_EVERY: Duration = Duration::from_mins(4);
/// The shortest and the longest wait before another connection.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// What to print.
#[derive(Debug)]
pub struct Feed {
    /// Data folder of the running bundle.
    pub data: PathBuf,
    /// Whose events.
    pub claims: Claims,
    /// The `filter` of the subscription.
    pub filter: Value,
    /// Events after this one; `None` for new events and those of the last 15 seconds.
    pub after: Option<String>,
    /// Stop after this many events.
    pub count: Option<NonZeroUsize>,
}

#[derive(Deserialize)]
struct TicketResponse {
    ticket: String,
    url: String,
}

/// A frame of the server.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Frame {
    #[serde(rename_all = "camelCase")]
    Subscribed { last_event_id: String },
    #[serde(rename_all = "camelCase")]
    Events {
        events: Vec<Value>,
        last_event_id: String,
    },
    Error {
        error: String,
        detail: String,
        errors: Vec<Value>,
    },
    #[serde(other)]
    Other,
}

/// Prints events, one a line and each once, until there are as many as asked for. Connects again when the connection is
/// lost.
pub async fn print(feed: Feed, out: impl Write) -> Result<()> {
    let mut printer = Printer {
        left: feed.count.map(NonZeroUsize::get),
        last: feed.after.clone(),
        reached: None,
        repeats: BTreeSet::new(),
        out,
    };
    let mut socket = feed.connect().await?;
    loop {
        if printer.print_from(socket, &feed.filter).await? {
            return Ok(());
        }
        writeln!(
            std::io::stderr(),
            "the connection was lost; connecting again"
        )?;
        let mut wait = WAITS.0;
        socket = loop {
            sleep(wait).await;
            match feed.connect().await {
                Ok(socket) => break socket,
                Err(error) => tracing::warn!("{error:#}"),
            }
            wait = (2 * wait).min(WAITS.1);
        };
    }
}

impl Feed {
    async fn connect(&self) -> Result<Socket> {
        // A bundle that was started again may have another port.
        let address: Option<String> = read_json(&self.data.join(GATEWAY_FILE))?;
        let shown = self.data.display();
        let address = address.with_context(|| format!("no bundle was started on {shown}"))?;
        let tokens = Tokens::new(&secret(&self.data, TOKEN_KEY_FILE)?);
        let response = Client::new()
            .post(format!("http://{address}{PATH}/ticket"))
            .bearer_auth(tokens.sign(self.claims.clone())?)
            .send()
            .await
            .context("no bundle answers; is it running?")?;
        let status = response.status();
        let body: Value = response
            .json()
            .await
            .context("the bundle was not understood")?;
        ensure!(
            status == StatusCode::CREATED,
            "the bundle responded with {status}: {}",
            body.get("detail")
                .and_then(Value::as_str)
                .unwrap_or_default()
        );
        let TicketResponse { ticket, url } = serde_json::from_value(body)?;
        let connected = connect_async(format!("{url}?ticket={ticket}")).await;
        // The error may name the URL, with its ticket.
        let (socket, _) = connected.ok().context("the bundle accepts no WebSocket")?;
        Ok(socket)
    }
}

struct Printer<W> {
    /// Events that are still to be printed.
    left: Option<usize>,
    /// Where the feed continues.
    last: Option<String>,
    /// The same, of what the server has sent: everything up to here is printed.
    reached: Option<FeedPosition>,
    /// Printed events after it, which may be received again.
    repeats: BTreeSet<FeedPosition>,
    out: W,
}

impl<W: Write> Printer<W> {
    /// Prints until the connection ends, and returns whether everything that was asked for is printed.
    async fn print_from(&mut self, mut socket: Socket, filter: &Value) -> Result<bool> {
        let subscribe = json!({"action": "subscribe", "after": self.last, "filter": filter});
        if send(&mut socket, &subscribe).await.is_none() {
            return Ok(false);
        }
        let mut pings = interval(PING_EVERY);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let received = tokio::select! {
                received = socket.next() => received,
                _ = pings.tick() => {
                    match send(&mut socket, &json!({"action": "ping"})).await {
                        Some(()) => continue,
                        None => return Ok(false),
                    }
                }
            };
            let text = match received {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                Some(Ok(_) | Err(_)) | None => return Ok(false),
            };
            // A frame without a type says that the request failed.
            let Ok(frame) = serde_json::from_str(&text) else {
                return Ok(false);
            };
            match frame {
                Frame::Subscribed { last_event_id } => self.reach(last_event_id)?,
                Frame::Events {
                    events,
                    last_event_id,
                } => {
                    for event in events {
                        if self.print(&event)? {
                            return Ok(true);
                        }
                    }
                    self.reach(last_event_id)?;
                }
                Frame::Error { error, .. } if error == "unavailable" => return Ok(false),
                Frame::Error { detail, errors, .. } => {
                    let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
                    bail!("{detail} {}", errors.join(", "));
                }
                Frame::Other => {}
            }
        }
    }

    /// Everything up to an id is printed.
    fn reach(&mut self, id: String) -> Result<()> {
        let position = FeedPosition::from_event_id(&id)?;
        if self.reached.is_none_or(|reached| reached < position) {
            self.repeats.retain(|repeat| *repeat > position);
            self.reached = Some(position);
            self.last = Some(id);
        }
        Ok(())
    }

    /// Prints an event unless it was printed before, and returns whether it was the last one that was asked for.
    fn print(&mut self, event: &Value) -> Result<bool> {
        let id = event["eventId"].as_str().unwrap_or_default();
        let position = FeedPosition::from_event_id(id)?;
        let is_new = self.reached.is_none_or(|reached| reached < position);
        if is_new && self.repeats.insert(position) {
            writeln!(self.out, "{event}")?;
            self.out.flush()?;
            self.left = self.left.map(|left| left - 1);
        }
        Ok(self.left == Some(0))
    }
}

/// Sends a frame; `None` if the connection is lost.
async fn send(socket: &mut Socket, frame: &Value) -> Option<()> {
    socket.send(Message::text(frame.to_string())).await.ok()
}
