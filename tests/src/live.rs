//! A client of the live feed, and its functions.

use std::collections::BTreeSet;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::sqs::SqsMessage;
use axum::Router;
use axum::http::Method;
use chrono::{TimeDelta, Utc};
use futures::{SinkExt, StreamExt};
use hearback_domain::views::feed::FeedPosition;
use hearback_lambda::App;
use hearback_lambda::aws::{Aws, SdkConfig};
use hearback_lambda::clock::Clock;
use hearback_lambda::http::service;
use hearback_local::engines::KeyPair;
use hearback_local::live::{OpenSockets, Outgoing};
use hearback_storage::Store;
use hearback_stream::sockets::Sockets;
use hearback_stream::{Delivery, Fanout, LiveFeed, Tasks, routes};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::mpsc::Receiver;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::app::TestApp;
use crate::engine::Engine;
use crate::faults::Faults;
use crate::functions::{call, functions_of};
use crate::queue;
use crate::turns::event_message;

/// The path of tickets.
pub const TICKET: &str = "/v1/feedback/events/ticket";
/// How long a frame may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection.
pub struct LiveClient(WebSocketStream<MaybeTlsStream<TcpStream>>);

/// Takes a ticket, and returns the URL to connect to.
pub async fn ticket(app: &TestApp, token: &str) -> String {
    let response = app.post(token, TICKET, &Value::Null).await;
    assert_eq!(response.status, 201, "{}", response.body);
    let text = |member: &str| response.body[member].as_str().unwrap().to_owned();
    format!("{}?ticket={}", text("url"), text("ticket"))
}

impl LiveClient {
    /// Connects to a URL; the status of the response if that is refused.
    pub async fn connect(url: &str) -> Result<Self, u16> {
        match connect_async(url).await {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    /// Connects with a new ticket.
    pub async fn of(app: &TestApp, token: &str) -> Self {
        Self::connect(&ticket(app, token).await).await.unwrap()
    }

    /// Connects and subscribes, after an event or to new events only, and returns the frame `subscribed`.
    pub async fn subscribed(app: &TestApp, token: &str, after: Option<&str>) -> (Self, Value) {
        let mut client = Self::of(app, token).await;
        let mut frame = json!({"action": "subscribe"});
        if let Some(after) = after {
            frame["after"] = after.into();
        }
        let subscribed = client.ask(&frame).await;
        assert_eq!(subscribed["type"], "subscribed", "{subscribed}");
        (client, subscribed)
    }

    /// Sends a frame.
    pub async fn send(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.unwrap();
    }

    /// Sends a message in frames of at most 32 KB.
    pub async fn send_in_frames(&mut self, text: &str) {
        let mut parts = text.as_bytes().chunks(32 * 1024).peekable();
        let mut kind = Data::Text;
        while let Some(part) = parts.next() {
            let is_last = parts.peek().is_none();
            let frame = Frame::message(part.to_vec(), OpCode::Data(kind), is_last);
            // The server may have closed the connection.
            let _ = self.0.send(Message::Frame(frame)).await;
            kind = Data::Continue;
        }
    }

    /// Sends a frame, and returns the next one that is received.
    pub async fn ask(&mut self, frame: &Value) -> Value {
        self.send(&frame.to_string()).await;
        self.receive().await.expect("a frame")
    }

    /// The next frame; `None` if the connection is closed.
    pub async fn receive(&mut self) -> Option<Value> {
        let frame = tokio::time::timeout(PATIENCE, self.next());
        frame.await.expect("a frame in time")
    }

    /// The same, however long it takes.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(_) | Err(_)) | None => return None,
            }
        }
    }

    /// Receives events until there are `count`, each once, by their `eventId`, and the last `lastEventId`.
    pub async fn events(&mut self, count: usize) -> (Vec<Value>, String) {
        let mut events: Vec<Value> = Vec::new();
        let mut last = String::new();
        while events.len() < count {
            let frame = self.receive().await.expect("an open connection");
            assert_eq!(frame["type"], "events", "{frame}");
            frame["lastEventId"].as_str().unwrap().clone_into(&mut last);
            for event in frame["events"].as_array().unwrap() {
                if events
                    .iter()
                    .all(|known| known["eventId"] != event["eventId"])
                {
                    events.push(event.clone());
                }
            }
        }
        (events, last)
    }

    /// Fails if anything but a `pong` is received before the answer to a `ping`.
    pub async fn is_quiet(&mut self) {
        let pong = self.ask(&json!({"action": "ping"})).await;
        assert_eq!(pong, json!({"type": "pong"}));
    }
}

/// Sockets whose frames a test reads itself, and the API that posts them.
pub struct TestSockets {
    /// The sockets.
    pub sockets: OpenSockets,
    /// The URL of the API. It takes any signature.
    pub url: String,
    _stop: DropGuard,
}

impl TestSockets {
    /// Serves the API.
    pub async fn start() -> Self {
        let sockets = OpenSockets::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let served = axum::serve(listener, sockets.routes()).into_future();
        tokio::spawn(stop.clone().run_until_cancelled_owned(served));
        Self {
            sockets,
            url,
            _stop: stop.drop_guard(),
        }
    }

    fn config(&self) -> SdkConfig {
        Aws::local(&self.url, KeyPair::random().credentials()).config()
    }
}

/// What the live feed calls.
struct Clients {
    store: Store,
    sqs: aws_sdk_sqs::Client,
    posts: Sockets,
}

/// The live feed on an engine, with connections whose frames a test reads itself.
pub struct LiveFunctions {
    /// What happens when a client connects, sends a frame or leaves.
    pub live: LiveFeed,
    /// Wakes connections.
    pub fanout: Fanout,
    /// The route of tickets.
    pub functions: Router,
    sockets: Arc<TestSockets>,
}

impl LiveFunctions {
    /// The functions on this table.
    pub async fn on(engine: &Engine, store: Store) -> Self {
        let sockets = Arc::new(TestSockets::start().await);
        let clients = Clients {
            store,
            sqs: engine.clients.sqs.clone(),
            posts: Sockets::new(&sockets.config()),
        };
        Self::with((engine, Clock::system()), clients, sockets)
    }

    /// The functions with a clock of the test, and clients that may fail.
    pub fn at(
        (engine, clock): (&Engine, Clock),
        faults: &Faults,
        sockets: Arc<TestSockets>,
    ) -> Self {
        let sqs = faults.config(&engine.access.sqs().config());
        let clients = Clients {
            store: engine.failing_store(faults),
            sqs: aws_sdk_sqs::Client::new(&sqs),
            posts: Sockets::new(&faults.config(&sockets.config())),
        };
        Self::with((engine, clock), clients, sockets)
    }

    /// The functions with clients that fail, and the same sockets.
    pub fn failing(&self, engine: &Engine, faults: &Faults) -> Self {
        let clock = self.live.delivery.clock;
        Self::at((engine, clock), faults, self.sockets.clone())
    }

    fn with(
        (engine, clock): (&Engine, Clock),
        Clients { store, sqs, posts }: Clients,
        sockets: Arc<TestSockets>,
    ) -> Self {
        let delivery = Delivery {
            clock,
            sockets: posts,
            tasks: Tasks::new(sqs, &engine.queues.fanout),
            store: store.clone(),
        };
        let app = App {
            clock,
            ..engine.app(store)
        };
        let live = LiveFeed {
            app,
            delivery: delivery.clone(),
            url: None,
        };
        let dead_letters = engine.dead_letters(&engine.queues.fanout_dead_letters);
        Self {
            functions: service(routes().router(live.clone())),
            live,
            fanout: Fanout::new(delivery, dead_letters),
            sockets,
        }
    }

    /// Takes a ticket as ada of the tenant `acme`.
    pub async fn ticket(&self, scope: &str) -> String {
        let request = (Method::POST, TICKET);
        let caller = ("order-service", scope);
        let (status, body) = call(&self.functions, caller, request, &Value::Null).await;
        assert_eq!(status, 201, "{body}");
        body["ticket"].as_str().unwrap().to_owned()
    }

    /// Connects with a ticket, and returns what the connection is sent.
    pub async fn connect(&self, id: &str, ticket: &str) -> Receiver<Outgoing> {
        let frames = self.open(id);
        assert!(self.live.connect(id, ticket).await.is_ok());
        frames
    }

    /// Opens a socket that is not connected yet.
    pub fn open(&self, id: &str) -> Receiver<Outgoing> {
        self.sockets.sockets.open(id).unwrap()
    }

    /// Delivers the message of an event to the fan-out, as the topic does, and returns whether it was processed.
    pub async fn publish(&self, user: &str) -> bool {
        self.wake(&json!({"tenant": "acme", "userId": user})).await
    }

    /// Delivers the message by which a connection reads the feed again, and returns whether it was processed.
    pub async fn check(&self, id: &str) -> bool {
        self.wake(&json!({"connection": id, "task": "deliver"}))
            .await
    }

    async fn wake(&self, body: &Value) -> bool {
        let mut message = SqsMessage::default();
        message.message_id = Some("m".to_owned());
        message.body = Some(body.to_string());
        let woken = self.fanout.handle(queue::batch([message])).await;
        woken.batch_item_failures.is_empty()
    }
}

/// The frames that were sent so far.
pub fn sent(frames: &mut Receiver<Outgoing>) -> Vec<Value> {
    std::iter::from_fn(|| frames.try_recv().ok())
        .map(|outgoing| match outgoing {
            Outgoing::Text(text) => serde_json::from_str(&text).unwrap(),
            Outgoing::Close => json!({"type": "closed"}),
        })
        .collect()
}

/// The `eventId`s in frames.
pub fn received(frames: &[Value]) -> BTreeSet<String> {
    let events = frames.iter().filter_map(|frame| frame["events"].as_array());
    let ids = events.flatten().map(|event| event["eventId"].as_str());
    ids.map(|id| id.unwrap().to_owned()).collect()
}

/// The frame that subscribes to everything of the last minutes and to what is new.
pub fn subscribe_to_all() -> String {
    let after = FeedPosition::before(Utc::now() - TimeDelta::minutes(5));
    json!({"action": "subscribe", "after": after.event_id()}).to_string()
}

/// Submits and processes an event of ada.
pub async fn process(engine: &Engine, event: &Value) {
    let submit = (Method::POST, "/v1/feedback/submit");
    let (status, body) = call(&functions_of(engine), ("order-service", ""), submit, event).await;
    assert_eq!(status, 202, "{body}");
    let message = event_message(engine, &event["feedbackId"]).await;
    let generator = engine.generator(engine.store.clone());
    let processed = generator.handle(queue::batch([message])).await;
    assert!(processed.batch_item_failures.is_empty());
}
