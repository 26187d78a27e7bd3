//! Errors of calls to the table and the bucket.

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

use hearback_domain::identity::identifier::TenantId;

use crate::damage::{self, Damaged, Loss};
use crate::item::LARGEST;

/// A call that failed. Errors contain no keys and no values, because these may be personal data.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The service could not be reached, throttled the call or rejected it. The call can be
    /// retried.
    #[error("{operation} failed: {code}")]
    Unavailable {
        /// The call, for example `PutItem`.
        operation: &'static str,
        /// The service's error code, or the kind of connection failure.
        code: String,
    },
    /// An item exceeds the size limit ([`LARGEST`]). A retry fails too.
    #[error("an item of {measured} bytes exceeds the limit of {LARGEST} bytes")]
    TooLarge {
        /// Its size as stored, in bytes.
        measured: usize,
    },
    /// An item does not have the expected format.
    #[error("stored {item} cannot be read: {reason}")]
    Unreadable {
        /// The kind of item.
        item: &'static str,
        /// Why it cannot be read.
        reason: String,
    },
}

/// Turns an unreadable item into `None`, so that it does not fail the other reads of a request. Logs a warning with the
/// item's kind and its tenant.
pub fn if_readable<T>(read: Result<T, Error>, tenant: &TenantId) -> Result<Option<T>, Error> {
    match read {
        Err(error @ Error::Unreadable { .. }) => {
            let message = "an item that cannot be read is left out";
            damage::note(Loss::LeftOut, &Damaged::of(tenant), &error, message);
            Ok(None)
        }
        read => read.map(Some),
    }
}

/// [`if_readable`] for an item that may not exist.
pub fn unless_unreadable<T>(
    read: Result<Option<T>, Error>,
    tenant: &TenantId,
) -> Result<Option<T>, Error> {
    if_readable(read, tenant).map(Option::flatten)
}

impl Error {
    /// Whether the call was throttled, so that the caller should send fewer at once.
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

    /// Whether the service was reached and rejected the call for another reason than its load. This may last.
    #[must_use]
    pub fn is_rejection(&self) -> bool {
        let Self::Unavailable { code, .. } = self else {
            return false;
        };
        let passes = matches!(
            code.as_str(),
            "service not reached" | "response not understood" | "ServiceUnavailable"
        );
        !passes && !self.is_throttled()
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
        Self::failed(operation, code)
    }

    /// A call that failed with this code of the service, or for this reason, for example because other writers were
    /// faster.
    pub(crate) fn failed(operation: &'static str, code: &str) -> Self {
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

    /// JSON that cannot be decoded. serde's message may quote a value, so only the position is
    /// kept.
    pub(crate) fn undecodable(item: &'static str, error: &serde_json::Error) -> Self {
        Self::unreadable(
            item,
            format!("unexpected JSON at column {}", error.column()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreachable_and_overloaded_services_are_no_rejections() {
        let unavailable = |code: &str| Error::failed("DeleteObject", code);
        for code in [
            "AccessDenied",
            "NoSuchBucket",
            "InternalError",
            "service error",
        ] {
            assert!(unavailable(code).is_rejection(), "{code}");
        }
        for code in [
            "service not reached",
            "timed out",
            "SlowDown",
            "ServiceUnavailable",
        ] {
            assert!(!unavailable(code).is_rejection(), "{code}");
        }
        assert!(!Error::unreadable("turn", "no core").is_rejection());
    }
}
