//! Builds the SDK configurations of all functions, the local bundle and the tests.
//!
//! It does not use `aws-config`: in Lambda, region and credentials are in the environment, and the
//! default chain with the system's root certificates would take most of a cold start. Only Amazon's
//! five roots are trusted (`roots/amazon.pem`); `docs/how-to/renew-root-certificates.md` describes
//! how to renew them.

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
pub use aws_types::SdkConfig;
use aws_types::region::Region;

/// The roots that sign the certificates of AWS endpoints.
const AMAZON_ROOTS: &[u8] = include_bytes!("../roots/amazon.pem");

/// Timeout of a call with all its attempts. The SDK has no default, and a function would wait until
/// its own timeout.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(8);
/// Timeout of one attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(3);
/// Timeout for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Attempts, including the first.
const ATTEMPTS: u32 = 3;

/// A service whose endpoint can be set separately, by the environment variable that AWS tools read.
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

/// The region, credentials and endpoint of AWS calls.
#[derive(Debug, Clone)]
pub struct Aws {
    /// The region.
    pub region: String,
    /// The credentials.
    pub credentials: Credentials,
    /// A custom endpoint instead of AWS's own.
    pub endpoint_url: Option<String>,
}

impl Aws {
    /// Reads the environment: `AWS_REGION`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
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

    /// An endpoint on this machine, with these credentials.
    #[must_use]
    pub fn local(endpoint_url: impl Into<String>, credentials: Credentials) -> Self {
        Self {
            region: "us-east-1".to_owned(),
            credentials,
            endpoint_url: Some(endpoint_url.into()),
        }
    }

    /// The configuration for any SDK client.
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

    /// A custom endpoint is verified with the system's roots.
    fn roots(&self) -> TrustStore {
        let is_custom = self
            .endpoint_url
            .as_deref()
            .is_some_and(|url| url.starts_with("https://") && !url.contains(".amazonaws.com"));
        if is_custom {
            TrustStore::default()
        } else {
            TrustStore::empty().with_pem_certificate(AMAZON_ROOTS)
        }
    }
}

fn http_client(roots: TrustStore) -> SharedHttpClient {
    let builder =
        aws_smithy_http_client::Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring));
    // Building the context fails only if the provider lacks a feature, which ring does not.
    let client = match TlsContext::builder().with_trust_store(roots).build() {
        Ok(context) => builder.tls_context(context).build_https(),
        Err(_) => builder.build_https(),
    };
    SharedHttpClient::new(LazyHttpClient(client))
}

/// Creates no connector before the first call. Otherwise every SDK client would create one at init
/// and discard it, and each would parse all certificates.
#[derive(Debug)]
struct LazyHttpClient(SharedHttpClient);

impl HttpClient for LazyHttpClient {
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

/// The code of an SDK error, without the request, so that it can be logged.
pub fn error_code<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> &str {
    error.code().unwrap_or("service not reached")
}
