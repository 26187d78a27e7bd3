//! An HTTP connector under the SDK's clients that fails where it is told to: what the network, the service
//! and the machine do to a call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
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

/// What goes wrong with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is not sent: the connection is refused.
    Refused,
    /// It is done, and the connection breaks before the answer is there.
    Lost,
    /// It is done, and the answer takes too long.
    TimedOut,
    /// It is not done: the service has too much to do.
    Throttled,
    /// It is done, and with it ends the process that made it: no later call is made.
    Died,
}

impl Fault {
    /// Every one.
    pub const ALL: [Self; 5] = [
        Self::Refused,
        Self::Lost,
        Self::TimedOut,
        Self::Throttled,
        Self::Died,
    ];
}

/// A fault at one of the calls of a worker, counted over all its clients from 1; tries of the SDK count.
#[derive(Debug, Clone)]
pub struct Faults {
    fault: Fault,
    at: u32,
    calls: Arc<AtomicU32>,
}

impl Faults {
    /// This fault at this call.
    #[must_use]
    pub fn at(at: u32, fault: Fault) -> Self {
        Self {
            fault,
            at,
            calls: Arc::default(),
        }
    }

    /// None at all; the calls are counted.
    #[must_use]
    pub fn none() -> Self {
        Self::at(u32::MAX, Fault::Refused)
    }

    /// How many calls were tried.
    #[must_use]
    pub fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }

    /// Whether the process that made the calls ended: then nobody was answered.
    #[must_use]
    pub fn died(&self) -> bool {
        self.fault == Fault::Died && self.calls() >= self.at
    }

    /// A configuration whose clients fail so. What is tried again is tried at once.
    #[must_use]
    pub fn config(&self, config: &SdkConfig) -> SdkConfig {
        let client = config.http_client().expect("it has a client");
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
        let Faults { fault, at, calls } = &self.faults;
        let (fault, number) = (*fault, calls.fetch_add(1, Ordering::SeqCst) + 1);
        if number < *at || (number > *at && fault != Fault::Died) {
            return self.connector.call(request);
        }
        let dead = number > *at;
        let is_s3 = request.headers().get("x-amz-target").is_none();
        let connector = self.connector.clone();
        HttpConnectorFuture::new(async move {
            let broken = || ConnectorError::io("the connection broke".into());
            match fault {
                Fault::Refused => Err(broken()),
                Fault::Throttled => Ok(throttled(is_s3)),
                // Nothing that dies tries again, or tells anybody.
                Fault::Died if dead => Err(ConnectorError::user("died".into())),
                Fault::Lost | Fault::TimedOut | Fault::Died => {
                    connector.call(request).await?;
                    Err(match fault {
                        Fault::TimedOut => ConnectorError::timeout("no answer".into()),
                        Fault::Died => ConnectorError::user("died".into()),
                        Fault::Refused | Fault::Lost | Fault::Throttled => broken(),
                    })
                }
            }
        })
    }
}

/// What a service answers that has too much to do.
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
