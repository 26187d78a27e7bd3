//! A running bundle, and a client that talks HTTP to it.

use std::path::PathBuf;
use std::time::Duration;

use chrono::TimeDelta;
use hearback_local::bundle::{Bundle, Options};
use hearback_local::gateway::Limits;
use hearback_local::token::Claims;
use reqwest::{Method, StatusCode};
use serde_json::Value;

/// A bundle for one test.
pub struct TestApp {
    /// The bundle.
    pub bundle: Bundle,
    http: reqwest::Client,
}

/// A response.
#[derive(Debug)]
pub struct TestResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: reqwest::header::HeaderMap,
    /// The body, as JSON.
    pub body: Value,
}

impl TestResponse {
    /// The body, with `[masked]` as the value of these members, which the body must have.
    pub fn masked(&self, members: &[&str]) -> Value {
        let mut body = self.body.clone();
        for member in members {
            *body.get_mut(member).expect(member) = "[masked]".into();
        }
        body
    }
}

impl TestApp {
    /// Starts a bundle in memory.
    pub async fn start() -> Self {
        Self::on(None).await
    }

    /// Starts a bundle on a folder.
    pub async fn on(data: Option<PathBuf>) -> Self {
        Self::with(data, Limits::default()).await
    }

    /// Starts a bundle in memory with these limits of the gateway.
    pub async fn within(limits: Limits) -> Self {
        Self::with(None, limits).await
    }

    async fn with(data: Option<PathBuf>, limits: Limits) -> Self {
        Self::with_options(Options {
            data,
            limits,
            ..Self::options()
        })
        .await
    }

    /// The options of a test's bundle: in memory, on any free port, with short delays.
    pub fn options() -> Options {
        Options {
            port: 0,
            data: None,
            visibility: Duration::from_secs(1),
            settle: TimeDelta::seconds(1),
            webhooks: "127.0.0.0/8".parse().ok(),
            ..Options::default()
        }
    }

    /// Starts a bundle with these options.
    pub async fn with_options(options: Options) -> Self {
        Self {
            bundle: Bundle::start(options).await.expect("the bundle starts"),
            http: reqwest::Client::new(),
        }
    }

    /// A token of a user of `acme`.
    pub fn token(&self, user: &str) -> String {
        self.token_of(user, "acme", "")
    }

    /// A token with scopes.
    pub fn token_of(&self, user: &str, tenant: &str, scope: &str) -> String {
        self.sign((user, tenant), &["order-service"], scope)
    }

    /// A token of a user of `acme` with other projects.
    pub fn token_in(&self, user: &str, projects: &[&str]) -> String {
        self.sign((user, "acme"), projects, "")
    }

    fn sign(&self, (user, tenant): (&str, &str), projects: &[&str], scope: &str) -> String {
        let claims = Claims {
            sub: user.to_owned(),
            tenant: tenant.to_owned(),
            projects: projects.iter().map(ToString::to_string).collect(),
            scope: scope.to_owned(),
        };
        self.bundle.tokens.sign(claims).expect("a token")
    }

    /// Creates a request with the bundle's address; [`Self::send`] sends it.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http
            .request(method, format!("http://{}{path}", self.bundle.address))
    }

    /// Sends a request.
    pub async fn send(&self, request: reqwest::RequestBuilder) -> TestResponse {
        let response = request.send().await.expect("a response");
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = response.bytes().await.expect("a body");
        TestResponse {
            status,
            headers,
            body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        }
    }

    /// GETs a path.
    pub async fn get(&self, token: &str, path: &str) -> TestResponse {
        self.send(self.request(Method::GET, path).bearer_auth(token))
            .await
    }

    /// POSTs JSON.
    pub async fn post(&self, token: &str, path: &str, body: &Value) -> TestResponse {
        let request = self.request(Method::POST, path).bearer_auth(token);
        self.send(request.json(body)).await
    }

    /// PUTs JSON.
    pub async fn put(&self, token: &str, path: &str, body: &Value) -> TestResponse {
        let request = self.request(Method::PUT, path).bearer_auth(token);
        self.send(request.json(body)).await
    }

    /// DELETEs a path.
    pub async fn delete(&self, token: &str, path: &str) -> TestResponse {
        self.send(self.request(Method::DELETE, path).bearer_auth(token))
            .await
    }

    /// Submits an event.
    pub async fn submit(&self, token: &str, event: &Value) -> TestResponse {
        self.post(token, "/v1/feedback/submit", event).await
    }

    /// Waits until an event is no longer queued, and returns its outcome.
    pub async fn outcome(&self, token: &str, feedback_id: &str) -> Value {
        let path = format!("/v1/feedback/{feedback_id}");
        eventually(|| async {
            let response = self.get(token, &path).await;
            (response.body["status"] != "queued" && response.status.is_success())
                .then_some(response.body)
        })
        .await
    }
}

/// Retries until `attempt` returns a value. Fails after 30 seconds.
pub async fn eventually<T, F: Future<Output = Option<T>>>(attempt: impl Fn() -> F) -> T {
    for _ in 0..600 {
        if let Some(found) = attempt().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no result within 30 seconds");
}
