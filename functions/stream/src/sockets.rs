//! Posts frames to connections.

use aws_sdk_apigatewaymanagement::Client;
use aws_sdk_apigatewaymanagement::config::retry::RetryConfig;
use aws_sdk_apigatewaymanagement::error::SdkError;
use aws_sdk_apigatewaymanagement::operation::delete_connection::DeleteConnectionError;
use aws_sdk_apigatewaymanagement::operation::post_to_connection::PostToConnectionError;
use aws_sdk_apigatewaymanagement::primitives::Blob;
use hearback_domain::views::live::ServerFrame;
use hearback_lambda::MissingSetting;
use hearback_lambda::aws::{Aws, SdkConfig, Service, error_code};
use hearback_lambda::settings::setting;

/// The setting that names the URL by which frames are posted.
pub const CONNECTIONS_URL: &str = "HEARBACK_CONNECTIONS_URL";

/// The open sockets.
#[derive(Debug, Clone)]
pub struct Sockets(Client);

/// The result of a post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Posted {
    /// It is on its way.
    Sent,
    /// It was rejected for now: the client does not read what was sent before, or the API cannot be reached.
    Busy,
    /// The connection is closed.
    Gone,
}

/// A frame could not be posted.
#[derive(Debug, thiserror::Error)]
#[error("{0} failed: {1}")]
pub struct NotPosted(&'static str, String);

impl Sockets {
    /// Posts through the API at the endpoint of this configuration.
    #[must_use]
    pub fn new(config: &SdkConfig) -> Self {
        // A rejected frame is posted later, by a message of the queue.
        let config = aws_sdk_apigatewaymanagement::config::Builder::from(config)
            .retry_config(RetryConfig::disabled());
        Self(Client::from_conf(config.build()))
    }

    /// Reads the setting and builds the client.
    pub fn from_env() -> Result<Self, MissingSetting> {
        let aws = Aws {
            endpoint_url: Some(setting(CONNECTIONS_URL)?),
            ..Aws::from_env(Service::DynamoDb)
        };
        Ok(Self::new(&aws.config()))
    }

    /// Posts a frame. One call.
    pub async fn post(&self, connection: &str, frame: &ServerFrame) -> Result<Posted, NotPosted> {
        let post = self.0.post_to_connection().connection_id(connection);
        let posted = post.data(Blob::new(frame.text())).send().await;
        let Err(error) = posted else {
            return Ok(Posted::Sent);
        };
        match error.as_service_error() {
            Some(PostToConnectionError::GoneException(_)) => Ok(Posted::Gone),
            Some(PostToConnectionError::LimitExceededException(_)) => Ok(Posted::Busy),
            _ if is_transient(&error) => {
                tracing::warn!(code = error_code(&error), "a frame was not posted");
                Ok(Posted::Busy)
            }
            _ => Err(NotPosted("PostToConnection", error_code(&error).to_owned())),
        }
    }

    /// Closes a connection. One call.
    pub async fn close(&self, connection: &str) -> Result<(), NotPosted> {
        let closed = self.0.delete_connection().connection_id(connection);
        let Err(error) = closed.send().await else {
            return Ok(());
        };
        match error.as_service_error() {
            Some(DeleteConnectionError::GoneException(_)) => Ok(()),
            _ => Err(NotPosted("DeleteConnection", error_code(&error).to_owned())),
        }
    }
}

/// Whether the same call may succeed in a moment: there was no response, or one of an overloaded server.
fn is_transient<E>(error: &SdkError<E>) -> bool {
    error.raw_response().is_none_or(|response| {
        let status = response.status();
        status.is_server_error() || status.as_u16() == 429
    })
}
