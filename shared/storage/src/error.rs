//! What can go wrong between a request and the table.

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

use crate::item::LARGEST;

/// A call that failed. Neither form carries a key or a value: both may name a person.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The table could not be reached, was too busy, or refused. Worth another try.
    #[error("{operation} failed: {code}")]
    Unavailable {
        /// The call, for example `PutItem`.
        operation: &'static str,
        /// The service's error code, or the kind of failure on the way there.
        code: String,
    },
    /// An item is larger than the table keeps ([`LARGEST`]). No other try helps.
    #[error("an item of {measured} bytes is larger than the {LARGEST} that the table keeps")]
    TooLarge {
        /// Its bytes, as they would be stored.
        measured: usize,
    },
    /// An item is not as this version of the code wrote it.
    #[error("stored {item} cannot be read: {reason}")]
    Unreadable {
        /// Which kind of item.
        item: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

impl Error {
    /// Whether the table had too much to do, so that less should be asked of it at once.
    #[must_use]
    pub fn is_throttled(&self) -> bool {
        let Self::Unavailable { code, .. } = self else {
            return false;
        };
        matches!(
            code.as_str(),
            "ProvisionedThroughputExceededException"
                | "RequestLimitExceeded"
                | "ThrottlingException"
                | "SlowDown"
                | "timed out"
        )
    }

    /// An SDK error without the request that caused it.
    pub(crate) fn unavailable<E>(operation: &'static str, error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata,
    {
        let code = match error {
            SdkError::ConstructionFailure(_) => "request could not be built",
            SdkError::TimeoutError(_) => "timed out",
            SdkError::DispatchFailure(_) => "service not reached",
            SdkError::ResponseError(_) => "response not understood",
            SdkError::ServiceError(context) => context.err().code().unwrap_or("service error"),
            _ => "unknown failure",
        };
        Self::Unavailable {
            operation,
            code: code.to_owned(),
        }
    }

    pub(crate) fn unreadable(item: &'static str, reason: impl Into<String>) -> Self {
        Self::Unreadable {
            item,
            reason: reason.into(),
        }
    }

    /// JSON that is not as written. serde's own message may quote a value; where it stands says
    /// enough.
    pub(crate) fn undecodable(item: &'static str, error: &serde_json::Error) -> Self {
        Self::unreadable(
            item,
            format!("not as written, at column {}", error.column()),
        )
    }
}
