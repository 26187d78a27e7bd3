//! An HTTP connector under the SDK's clients that fails where it is told to: what the network, the service
//! and the machine do to a call.

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
    /// It is not sent in any of its tries, and the SDK gives up.
    Unreachable,
    /// It is done, and none of its tries is answered in time, until the SDK gives up.
    Unanswered,
    /// It is done, and with it ends the process that made it: no later call is made.
    Died,
}

impl Fault {
    /// Every one.
    pub const ALL: [Self; 7] = [
        Self::Refused,
        Self::Lost,
        Self::TimedOut,
        Self::Throttled,
        Self::Unreachable,
        Self::Unanswered,
        Self::Died,
    ];
}

/// A fault at one of the calls of a worker, counted over all its clients; tries of the SDK count.
#[derive(Debug, Clone)]
pub struct Faults(Arc<Mutex<Plan>>);

#[derive(Debug, Clone, Copy)]
struct Plan {
    fault: Fault,
    at: u32,
    calls: u32,
}

impl Faults {
    /// This fault at this call, counted from 1.
    #[must_use]
    pub fn at(at: u32, fault: Fault) -> Self {
        Self(Arc::new(Mutex::new(Plan {
            fault,
            at,
            calls: 0,
        })))
    }

    /// None at all; the calls are counted.
    #[must_use]
    pub fn none() -> Self {
        Self::at(u32::MAX, Fault::Refused)
    }

    /// Has the same clients fail anew: with this fault at this call, counted from now.
    pub fn plan(&self, at: u32, fault: Fault) {
        *self.0.lock().unwrap() = Plan {
            fault,
            at,
            calls: 0,
        };
    }

    /// How many calls were tried.
    #[must_use]
    pub fn calls(&self) -> u32 {
        self.0.lock().unwrap().calls
    }

    /// Whether the process that made the calls ended: then nobody was answered.
    #[must_use]
    pub fn died(&self) -> bool {
        let plan = *self.0.lock().unwrap();
        plan.fault == Fault::Died && plan.calls >= plan.at
    }

    /// Whether whoever made the calls ended or was told of an error, and may have left out what was to come.
    #[must_use]
    pub fn gave_up(&self) -> bool {
        let plan = *self.0.lock().unwrap();
        let gives_up = matches!(
            plan.fault,
            Fault::Died | Fault::Unreachable | Fault::Unanswered
        );
        gives_up && plan.calls >= plan.at
    }

    /// Has something done with this fault at each of its calls, one after the other, and once without any.
    /// Answers how many calls that are.
    pub async fn at_each_call(fault: Fault, mut act: impl AsyncFnMut(&Self)) -> u32 {
        let mut at = 1;
        loop {
            let faults = Self::at(at, fault);
            act(&faults).await;
            if faults.calls() < at {
                return at - 1;
            }
            at += 1;
        }
    }

    /// At which call something goes wrong.
    #[must_use]
    pub fn at_call(&self) -> u32 {
        self.0.lock().unwrap().at
    }

    /// Counts a call, and answers what is to become of it.
    fn next(&self) -> Fate {
        let mut plan = self.0.lock().unwrap();
        plan.calls += 1;
        match plan.calls.cmp(&plan.at) {
            Ordering::Less => Fate::Well,
            Ordering::Equal => Fate::Fails(plan.fault),
            // Nothing that died calls again.
            Ordering::Greater if plan.fault == Fault::Died => Fate::Dead,
            Ordering::Greater => Fate::Well,
        }
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

/// What becomes of a call.
enum Fate {
    Well,
    Fails(Fault),
    Dead,
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
            Fate::Well => return self.connector.call(request),
            Fate::Dead => {
                let died = ConnectorError::user("died".into());
                return HttpConnectorFuture::ready(Err(died));
            }
            Fate::Fails(fault) => fault,
        };
        let is_s3 = request.headers().get("x-amz-target").is_none();
        let connector = self.connector.clone();
        HttpConnectorFuture::new(async move {
            let broken = || ConnectorError::io("the connection broke".into());
            // An error of this kind is not tried again.
            let given_up = || ConnectorError::user("given up".into());
            match fault {
                Fault::Refused => Err(broken()),
                Fault::Unreachable => Err(given_up()),
                Fault::Throttled => Ok(throttled(is_s3)),
                Fault::Lost => connector.call(request).await.and(Err(broken())),
                Fault::TimedOut => {
                    let late = ConnectorError::timeout("no answer".into());
                    connector.call(request).await.and(Err(late))
                }
                Fault::Unanswered | Fault::Died => {
                    connector.call(request).await.and(Err(given_up()))
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
