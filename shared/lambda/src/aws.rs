//! How AWS is reached: one builder of SDK configurations for every function, the machine-local
//! binary and the tests.
//!
//! It does not use `aws-config`: in Lambda, region and credentials stand in the environment, and
//! its default chain with the system's root certificates would be most of a cold start. The only
//! roots trusted are Amazon's own five (`roots/amazon.pem`); `docs/operations.md` says how they are
//! renewed.

use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_async::rt::sleep::{SharedAsyncSleep, TokioSleep};
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
use aws_smithy_runtime_api::client::connector_metadata::ConnectorMetadata;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use aws_types::SdkConfig;
use aws_types::region::Region;

/// The roots that sign the certificates of AWS endpoints.
const AMAZON_ROOTS: &[u8] = include_bytes!("../roots/amazon.pem");

/// The longest that one call may take, with all its tries. The SDK has no such limit by itself,
/// and a function would wait until Lambda ends it.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(8);
/// The longest that one try may take.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(3);
/// The longest that a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Tries, the first included.
const ATTEMPTS: u32 = 3;

/// A service whose endpoint may be set on its own, by the variable that AWS's own tools read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// `AWS_ENDPOINT_URL_BEDROCK_RUNTIME`.
    BedrockRuntime,
    /// `AWS_ENDPOINT_URL_DYNAMODB`, which also serves the streams.
    DynamoDb,
    /// `AWS_ENDPOINT_URL_S3`.
    S3,
    /// `AWS_ENDPOINT_URL_SQS`.
    Sqs,
}

impl Service {
    /// The variable that sets the endpoint of this service alone.
    #[must_use]
    pub fn endpoint_variable(self) -> &'static str {
        match self {
            Self::BedrockRuntime => "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
            Self::DynamoDb => "AWS_ENDPOINT_URL_DYNAMODB",
            Self::S3 => "AWS_ENDPOINT_URL_S3",
            Self::Sqs => "AWS_ENDPOINT_URL_SQS",
        }
    }
}

/// Where and as whom AWS is called.
#[derive(Debug, Clone)]
pub struct Aws {
    /// The region.
    pub region: String,
    /// Who calls.
    pub credentials: Credentials,
    /// Another endpoint than AWS's own.
    pub endpoint_url: Option<String>,
}

impl Aws {
    /// What the environment says: `AWS_REGION`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
    /// `AWS_SESSION_TOKEN`, and `AWS_ENDPOINT_URL` or the service's own.
    #[must_use]
    pub fn from_env(service: Service) -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            region: variable("AWS_REGION")
                .or_else(|| variable("AWS_DEFAULT_REGION"))
                .unwrap_or_else(|| "us-east-1".to_owned()),
            credentials: Credentials::new(
                variable("AWS_ACCESS_KEY_ID").unwrap_or_default(),
                variable("AWS_SECRET_ACCESS_KEY").unwrap_or_default(),
                variable("AWS_SESSION_TOKEN"),
                None,
                "environment",
            ),
            endpoint_url: variable(service.endpoint_variable())
                .or_else(|| variable("AWS_ENDPOINT_URL")),
        }
    }

    /// A machine-local endpoint, which checks no credentials.
    #[must_use]
    pub fn local(endpoint_url: impl Into<String>) -> Self {
        Self {
            region: "us-east-1".to_owned(),
            credentials: Credentials::new("local", "local", None, None, "local"),
            endpoint_url: Some(endpoint_url.into()),
        }
    }

    /// A configuration from which any SDK client is made.
    #[must_use]
    pub fn config(&self) -> SdkConfig {
        let mut config = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(self.region.clone()))
            .credentials_provider(SharedCredentialsProvider::new(self.credentials.clone()))
            .http_client(http_client(self.roots()))
            .sleep_impl(SharedAsyncSleep::new(TokioSleep::new()))
            .retry_config(RetryConfig::standard().with_max_attempts(ATTEMPTS))
            .timeout_config(
                TimeoutConfig::builder()
                    .connect_timeout(CONNECT_TIMEOUT)
                    .operation_attempt_timeout(ATTEMPT_TIMEOUT)
                    .operation_timeout(OPERATION_TIMEOUT)
                    .build(),
            );
        config.set_endpoint_url(self.endpoint_url.clone());
        config.build()
    }

    /// An endpoint of somebody else over TLS is trusted as the system trusts it.
    fn roots(&self) -> TrustStore {
        let foreign = self
            .endpoint_url
            .as_deref()
            .is_some_and(|url| url.starts_with("https://") && !url.contains(".amazonaws.com"));
        if foreign {
            TrustStore::default()
        } else {
            TrustStore::empty().with_pem_certificate(AMAZON_ROOTS)
        }
    }
}

fn http_client(roots: TrustStore) -> SharedHttpClient {
    let builder =
        aws_smithy_http_client::Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring));
    // The context fails to build only where a provider lacks a feature, and ring lacks none.
    let client = match TlsContext::builder().with_trust_store(roots).build() {
        Ok(context) => builder.tls_context(context).build_https(),
        Err(_) => builder.build_https(),
    };
    SharedHttpClient::new(OnFirstCall(client))
}

/// Makes nothing before the first call. By itself the client would make a connector, with all the
/// certificates, once for every SDK client just to throw it away, so that the system's
/// certificates are read at init; in Lambda there are none of those to read.
#[derive(Debug)]
struct OnFirstCall(SharedHttpClient);

impl HttpClient for OnFirstCall {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        self.0.http_connector(settings, components)
    }

    fn connector_metadata(&self) -> Option<ConnectorMetadata> {
        self.0.connector_metadata()
    }
}

/// The code of an SDK error, without the request that caused it: fit for a log.
pub fn error_code<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> &str {
    error.code().unwrap_or("service not reached")
}
