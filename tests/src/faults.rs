//! An HTTP connector for the SDK's clients that injects faults of the network, the service and the process.

use std::cmp::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_dynamodb::config::RuntimeComponents;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::retry::RetryConfig;
use aws_types::SdkConfig;

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection is refused; nothing is sent.
    Refused,
    /// The service processes the call, and the connection breaks before the response.
    Lost,
    /// The service processes the call, and the response times out.
    TimedOut,
    /// The service throttles the call.
    Throttled,
    /// Nothing is sent, and the SDK does not retry.
    Unreachable,
    /// The service processes the call, no response arrives, and the SDK does not retry.
    Unanswered,
    /// The service processes the call, and the process crashes: it makes no further call.
    Crashed,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 7] = [
        Self::Refused,
        Self::Lost,
        Self::TimedOut,
        Self::Throttled,
        Self::Unreachable,
        Self::Unanswered,
        Self::Crashed,
    ];
}

/// One fault at one of the calls of a worker. All its clients share the count, and retries of the SDK count.
#[derive(Debug, Clone)]
pub struct Faults(Arc<Mutex<Plan>>);

#[derive(Debug, Clone, Copy)]
struct Plan {
    fault: Fault,
    at: u32,
    calls: u32,
}

impl Faults {
    /// Injects this fault at this call, counted from 1.
    #[must_use]
    pub fn at(at: u32, fault: Fault) -> Self {
        Self(Arc::new(Mutex::new(Plan {
            fault,
            at,
            calls: 0,
        })))
    }

    /// Injects no fault, and counts calls.
    #[must_use]
    pub fn none() -> Self {
        Self::at(u32::MAX, Fault::Refused)
    }

    /// Plans another fault for the same clients, and counts from 1 again.
    pub fn plan(&self, at: u32, fault: Fault) {
        *self.0.lock().unwrap() = Plan {
            fault,
            at,
            calls: 0,
        };
    }

    /// The number of calls so far.
    #[must_use]
    pub fn calls(&self) -> u32 {
        self.0.lock().unwrap().calls
    }

    /// Whether the process crashed, so that no caller received a response.
    #[must_use]
    pub fn crashed(&self) -> bool {
        let plan = *self.0.lock().unwrap();
        plan.fault == Fault::Crashed && plan.calls >= plan.at
    }

    /// Whether the worker crashed or received an error, and may have skipped the rest of its work.
    #[must_use]
    pub fn gave_up(&self) -> bool {
        let plan = *self.0.lock().unwrap();
        let gives_up = matches!(
            plan.fault,
            Fault::Crashed | Fault::Unreachable | Fault::Unanswered
        );
        gives_up && plan.calls >= plan.at
    }

    /// Runs an operation with this fault at each of its calls in turn, and once without. Returns the number of calls.
    pub async fn at_each_call(fault: Fault, mut operation: impl AsyncFnMut(&Self)) -> u32 {
        let mut at = 1;
        loop {
            let faults = Self::at(at, fault);
            operation(&faults).await;
            if faults.calls() < at {
                return at - 1;
            }
            at += 1;
        }
    }

    /// The call at which the fault is injected.
    #[must_use]
    pub fn at_call(&self) -> u32 {
        self.0.lock().unwrap().at
    }

    /// Counts a call, and returns how it ends.
    fn next(&self) -> CallPlan {
        let mut plan = self.0.lock().unwrap();
        plan.calls += 1;
        match plan.calls.cmp(&plan.at) {
            Ordering::Less => CallPlan::Succeeds,
            Ordering::Equal => CallPlan::Fails(plan.fault),
            // A crashed process makes no call.
            Ordering::Greater if plan.fault == Fault::Crashed => CallPlan::Crashed,
            Ordering::Greater => CallPlan::Succeeds,
        }
    }

    /// A configuration whose clients fail as planned. The SDK retries without delay.
    #[must_use]
    pub fn config(&self, config: &SdkConfig) -> SdkConfig {
        let client = config
            .http_client()
            .expect("the configuration has a client");
        let faulty = Faulty {
            faults: self.clone(),
            client,
        };
        let retry = RetryConfig::standard()
            .with_max_attempts(3)
            .with_initial_backoff(Duration::from_millis(1))
            .with_max_backoff(Duration::from_millis(2));
        let mut builder = config.clone().into_builder();
        builder.set_http_client(Some(SharedHttpClient::new(faulty)));
        builder.set_retry_config(Some(retry));
        builder.build()
    }
}

/// How a call ends.
enum CallPlan {
    Succeeds,
    Fails(Fault),
    Crashed,
}

#[derive(Debug)]
struct Faulty {
    faults: Faults,
    client: SharedHttpClient,
}

impl HttpClient for Faulty {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(FaultyConnector {
            faults: self.faults.clone(),
            connector: self.client.http_connector(settings, components),
        })
    }
}

#[derive(Debug)]
struct FaultyConnector {
    faults: Faults,
    connector: SharedHttpConnector,
}

impl HttpConnector for FaultyConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let fault = match self.faults.next() {
            CallPlan::Succeeds => return self.connector.call(request),
            CallPlan::Crashed => {
                let crashed = ConnectorError::user("crashed".into());
                return HttpConnectorFuture::ready(Err(crashed));
            }
            CallPlan::Fails(fault) => fault,
        };
        let is_s3 = request.headers().get("x-amz-target").is_none();
        let connector = self.connector.clone();
        HttpConnectorFuture::new(async move {
            let broken = || ConnectorError::io("the connection broke".into());
            // The SDK does not retry a user error.
            let not_retried = || ConnectorError::user("not retried".into());
            match fault {
                Fault::Refused => Err(broken()),
                Fault::Unreachable => Err(not_retried()),
                Fault::Throttled => Ok(throttled(is_s3)),
                Fault::Lost => connector.call(request).await.and(Err(broken())),
                Fault::TimedOut => {
                    let timeout = ConnectorError::timeout("no response".into());
                    connector.call(request).await.and(Err(timeout))
                }
                Fault::Unanswered | Fault::Crashed => {
                    connector.call(request).await.and(Err(not_retried()))
                }
            }
        })
    }
}

/// The response of a throttling service.
fn throttled(is_s3: bool) -> HttpResponse {
    let (status, body) = if is_s3 {
        (503, "<Error><Code>SlowDown</Code></Error>")
    } else {
        (
            400,
            r#"{"__type": "ThrottlingException", "message": "slow down"}"#,
        )
    };
    let status = StatusCode::try_from(status).expect("a status");
    HttpResponse::new(status, SdkBody::from(body))
}
