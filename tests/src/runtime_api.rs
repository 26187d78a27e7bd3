//! Lambda's Runtime API, to run a `bootstrap` as Lambda does.

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Path as UrlPath, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::sync::{Mutex, mpsc};

/// A function that runs as a process and receives invocations.
pub struct Function {
    process: Child,
    started: Instant,
    events: mpsc::UnboundedSender<Value>,
    results: Mutex<mpsc::UnboundedReceiver<Result<Value, Value>>>,
}

#[derive(Clone)]
struct Runtime {
    events: Arc<Mutex<mpsc::UnboundedReceiver<Value>>>,
    results: mpsc::UnboundedSender<Result<Value, Value>>,
}

impl Function {
    /// Starts a `bootstrap` with these variables, and none of the tests' own.
    pub async fn start(bootstrap: &Path, variables: &HashMap<String, String>) -> Self {
        let (events, pending) = mpsc::unbounded_channel();
        let (results_sender, results) = mpsc::unbounded_channel();
        let runtime = Runtime {
            events: Arc::new(Mutex::new(pending)),
            results: results_sender,
        };
        let router = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route(
                "/2018-06-01/runtime/invocation/{id}/response",
                post(response),
            )
            .route("/2018-06-01/runtime/invocation/{id}/error", post(error))
            .with_state(runtime);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        let started = Instant::now();
        let process = Command::new(bootstrap)
            .env_clear()
            .env("AWS_LAMBDA_RUNTIME_API", address.to_string())
            .env("AWS_LAMBDA_FUNCTION_NAME", "under-test")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "1")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "under-test")
            .env("AWS_SECRET_ACCESS_KEY", "under-test")
            .envs(variables)
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self {
            process,
            started,
            events,
            results: Mutex::new(results),
        }
    }

    /// Invokes the function, and returns its response, or the error that it reported.
    pub async fn invoke(&self, event: &Value) -> Result<Value, Value> {
        self.events.send(event.clone()).unwrap();
        let mut results = self.results.lock().await;
        tokio::time::timeout(Duration::from_secs(30), results.recv())
            .await
            .expect("the function responds")
            .expect("the function runs")
    }

    /// Kills the process and waits for its end.
    pub async fn stop(mut self) {
        self.process.kill().await.unwrap();
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id().expect("the function runs")
    }

    /// The time since the start of the process.
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }
}

async fn next(State(runtime): State<Runtime>) -> Response {
    let Some(event) = runtime.events.lock().await.recv().await else {
        return StatusCode::GONE.into_response();
    };
    let headers = [
        (
            "lambda-runtime-aws-request-id",
            "8476a536-e9f4-11e8-9739-2dfe598c3fcd",
        ),
        ("lambda-runtime-deadline-ms", "4102444800000"),
        (
            "lambda-runtime-invoked-function-arn",
            "arn:aws:lambda:us-east-1:000000000000:function:under-test",
        ),
    ];
    (headers, event.to_string()).into_response()
}

async fn response(
    State(runtime): State<Runtime>,
    UrlPath(_): UrlPath<String>,
    body: String,
) -> StatusCode {
    let _ = runtime
        .results
        .send(Ok(serde_json::from_str(&body).unwrap_or_default()));
    StatusCode::ACCEPTED
}

async fn error(
    State(runtime): State<Runtime>,
    UrlPath(_): UrlPath<String>,
    body: String,
) -> StatusCode {
    let _ = runtime
        .results
        .send(Err(serde_json::from_str(&body).unwrap_or_default()));
    StatusCode::ACCEPTED
}
