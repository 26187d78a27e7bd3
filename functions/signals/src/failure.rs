//! The failures of the signal generator.

use hearback_lambda::queue::{self, RetryLimit};
use hearback_storage::Error;

/// Why a message could not be processed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Storage(#[from] Error),
    #[error("too many concurrent writes")]
    Contended,
}

impl queue::MessageFailure for Failure {
    fn tries(&self) -> RetryLimit {
        match self {
            Self::Storage(error) => error.tries(),
            Self::Contended => RetryLimit::Many,
        }
    }
}
