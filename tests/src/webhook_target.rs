//! A target of webhooks: an HTTP server that answers as a test wants, and keeps what it receives.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use crate::app::eventually;

/// A call that a target has received.
#[derive(Debug, Clone)]
pub struct Call {
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Value,
    /// The body as it was sent.
    pub bytes: Bytes,
}

impl Call {
    /// A header as text.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    /// The type of the message.
    #[must_use]
    pub fn event_type(&self) -> &str {
        self.body["eventType"].as_str().unwrap()
    }
}

/// What the target answers.
#[derive(Debug, Clone)]
pub enum Answer {
    /// This status.
    Status(u16),
    /// This status with this header.
    With(u16, &'static str, String),
    /// The bodies that contain this text are rejected with 400.
    Rejecting(&'static str),
    /// This status after this time.
    After(Duration, u16),
    /// Nothing, ever.
    Hanging,
}

#[derive(Debug, Default)]
struct Inner {
    calls: Vec<Call>,
    next: VecDeque<Answer>,
    then: Option<Answer>,
}

/// A running target.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where it listens.
    pub address: SocketAddr,
    inner: Arc<Mutex<Inner>>,
}

impl Target {
    /// Starts a target that answers 200.
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = Self {
            address: listener.local_addr().unwrap(),
            inner: Arc::default(),
        };
        let router = Router::new().fallback(receive).with_state(target.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        target
    }

    /// Its URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// From now on, it answers `next`, one each, and then always `then`.
    pub fn answers(&self, next: impl IntoIterator<Item = Answer>, then: Answer) {
        let mut inner = self.inner.lock().unwrap();
        inner.next = next.into_iter().collect();
        inner.then = Some(then);
    }

    /// The calls so far.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.inner.lock().unwrap().calls.clone()
    }

    /// Waits for this number of calls.
    pub async fn received(&self, number: usize) -> Vec<Call> {
        eventually(|| async {
            let calls = self.calls();
            (calls.len() >= number).then_some(calls)
        })
        .await
    }
}

async fn receive(State(target): State<Target>, headers: HeaderMap, bytes: Bytes) -> Response {
    let answer = {
        let mut inner = target.inner.lock().unwrap();
        inner.calls.push(Call {
            headers,
            body: serde_json::from_slice(&bytes).unwrap(),
            bytes: bytes.clone(),
        });
        let then = inner.then.clone();
        inner.next.pop_front().or(then)
    };
    let status = |status| StatusCode::from_u16(status).unwrap();
    match answer.unwrap_or(Answer::Status(200)) {
        Answer::Status(code) => status(code).into_response(),
        Answer::With(code, name, value) => (status(code), [(name, value)]).into_response(),
        Answer::Rejecting(text) if String::from_utf8_lossy(&bytes).contains(text) => {
            StatusCode::BAD_REQUEST.into_response()
        }
        Answer::Rejecting(_) => StatusCode::OK.into_response(),
        Answer::After(time, code) => {
            tokio::time::sleep(time).await;
            status(code).into_response()
        }
        Answer::Hanging => std::future::pending().await,
    }
}
