//! Sends a message to a webhook: a POST, signed as Standard Webhooks describes (<https://www.standardwebhooks.com>).

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use hearback_domain::views::webhook::{CallFailure, Webhook};
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode, Url};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::networks::{AllowedAddresses, ForbiddenAddress, Networks, SystemNames};

/// How long a target may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a call may take.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// A target that rejects a message after a longer time is treated as one that is unavailable, so that its messages do
/// not occupy all workers.
const SLOW: Duration = Duration::from_secs(2);
/// A connection that was not used for longer is replaced. Many servers close it after five seconds, which a function
/// that Lambda has frozen meanwhile does not notice.
const MAX_IDLE: Duration = Duration::from_secs(4);
/// Connections to a host that are kept while they are not used.
const IDLE_CONNECTIONS: usize = 4;
/// Calls at the same time: a batch of ten messages may be for twenty webhooks, and a process may open some hundred files.
const CALLS: usize = 64;

/// Calls targets.
#[derive(Debug, Clone)]
pub struct Sender {
    encrypted: Client,
    /// Only to addresses inside of the networks.
    plain: Client,
    networks: Networks,
    calls: Arc<Semaphore>,
}

/// A URL to which nothing is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadTarget {
    #[error("must be an absolute URL")]
    NoUrl,
    #[error("must not have a user, a password or a fragment")]
    Credentials,
    #[error(
        "must begin with https://; http:// is possible for addresses of networks that the operator allows"
    )]
    Scheme,
    #[error("must not have a private address, unless the operator allows its network")]
    PrivateAddress,
}

impl Sender {
    /// A sender that may call private addresses of these networks.
    pub fn new(networks: Networks) -> Result<Self, reqwest::Error> {
        let names = Arc::new(SystemNames::default());
        let client = |is_encrypted| {
            let allowed = AllowedAddresses {
                names: names.clone(),
                networks: networks.clone(),
                is_encrypted,
            };
            Client::builder()
                .user_agent(concat!("hearback/", env!("CARGO_PKG_VERSION")))
                .redirect(Policy::none())
                .referer(false)
                .no_proxy()
                .https_only(is_encrypted)
                .dns_resolver(Arc::new(allowed))
                .connect_timeout(CONNECT_TIMEOUT)
                .timeout(CALL_TIMEOUT)
                .pool_idle_timeout(MAX_IDLE)
                .pool_max_idle_per_host(IDLE_CONNECTIONS)
                .build()
        };
        Ok(Self {
            encrypted: client(true)?,
            plain: client(false)?,
            networks,
            calls: Arc::new(Semaphore::new(CALLS)),
        })
    }

    /// Checks a URL. The addresses of its host are checked with each connection.
    pub(super) fn target(&self, url: &str) -> Result<Url, BadTarget> {
        let url = Url::parse(url).map_err(|_| BadTarget::NoUrl)?;
        let host = url.host_str().ok_or(BadTarget::NoUrl)?;
        if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
            return Err(BadTarget::Credentials);
        }
        let is_encrypted = match url.scheme() {
            "https" => true,
            "http" if !self.networks.is_empty() => false,
            _ => return Err(BadTarget::Scheme),
        };
        // The resolver is not asked for an address.
        let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
        match address {
            Some(address) if !self.networks.allow(address, is_encrypted) => {
                Err(BadTarget::PrivateAddress)
            }
            _ => Ok(url),
        }
    }

    /// Sends a message, and returns the status with which the target has accepted it.
    pub(super) async fn send(
        &self,
        webhook: &Webhook,
        id: Uuid,
        body: Bytes,
        now: DateTime<Utc>,
    ) -> Result<StatusCode, CallFailure> {
        let unavailable = |text: String| CallFailure::Unavailable(text, None);
        let url = self.target(&webhook.url);
        let url = url.map_err(|error| unavailable(format!("the URL {error}")))?;
        let client = if url.scheme() == "https" {
            &self.encrypted
        } else {
            &self.plain
        };
        let closed = |_| unavailable("the process stops".to_owned());
        let _call = self.calls.acquire().await.map_err(closed)?;
        let started = Instant::now();
        let response = client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", id.to_string())
            .header("webhook-timestamp", now.timestamp())
            .header("webhook-signature", webhook.signatures(id, now, &body))
            .body(body)
            .send()
            .await
            .map_err(|error| unavailable(reason(&error).to_owned()))?;
        let status = response.status();
        let answered = format!("the target answered {}", status.as_u16());
        if status.is_success() {
            return Ok(status);
        }
        Err(match status {
            StatusCode::GONE => CallFailure::Gone,
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS => {
                CallFailure::Unavailable(answered, retry_after(&response))
            }
            status if status.is_client_error() && started.elapsed() < SLOW => {
                CallFailure::Rejected(answered)
            }
            _ => CallFailure::Unavailable(answered, retry_after(&response)),
        })
    }
}

/// What the target says about when it wants to be called again, if it says so in seconds.
fn retry_after(response: &reqwest::Response) -> Option<TimeDelta> {
    let after = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    TimeDelta::try_seconds(after.trim().parse().ok()?)
}

/// Why a call failed. The texts of the client name the URL, which may contain a secret of the tenant.
fn reason(error: &reqwest::Error) -> &'static str {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.is::<ForbiddenAddress>() {
            return "the host of the URL has no address to which webhooks may be sent";
        }
        // The client of TLS is not a dependency of ours, and its error has no other sign.
        if error.to_string().contains("certificate") {
            return "the certificate of the target is not valid";
        }
        cause = error.source();
    }
    if error.is_timeout() {
        "the target did not answer in time"
    } else if error.is_connect() {
        "the target cannot be reached"
    } else {
        "the connection to the target failed"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_an_https_url_without_credentials_or_a_private_address() {
        let public = Sender::new(Networks::default()).unwrap();
        for (url, expected) in [
            ("https://example.com/a?b=c", Ok(())),
            ("https://example.com:8443/", Ok(())),
            ("https://93.184.215.14/", Ok(())),
            ("example.com", Err(BadTarget::NoUrl)),
            ("https://", Err(BadTarget::NoUrl)),
            ("file:///etc/passwd", Err(BadTarget::NoUrl)),
            ("ftp://example.com/", Err(BadTarget::Scheme)),
            ("http://example.com/", Err(BadTarget::Scheme)),
            ("https://u:p@example.com/", Err(BadTarget::Credentials)),
            ("https://example.com/#a", Err(BadTarget::Credentials)),
            ("https://127.0.0.1/", Err(BadTarget::PrivateAddress)),
            ("https://127.1/", Err(BadTarget::PrivateAddress)),
            ("https://0x7f000001/", Err(BadTarget::PrivateAddress)),
            ("https://2130706433/", Err(BadTarget::PrivateAddress)),
            ("https://0177.0.0.1/", Err(BadTarget::PrivateAddress)),
            ("https://[::1]/", Err(BadTarget::PrivateAddress)),
            (
                "https://[::ffff:169.254.169.254]/",
                Err(BadTarget::PrivateAddress),
            ),
        ] {
            assert_eq!(public.target(url).map(|_| ()), expected, "{url}");
        }
        let inside = Sender::new("127.0.0.0/8".parse().unwrap()).unwrap();
        for (url, is_allowed) in [
            ("http://127.0.0.1:9000/", true),
            ("http://localhost:9000/", true),
            ("http://10.0.0.1/", false),
            ("http://1.1.1.1/", false),
            ("https://1.1.1.1/", true),
        ] {
            assert_eq!(inside.target(url).is_ok(), is_allowed, "{url}");
        }
    }
}
