//! Errors of the protocol, one variant each.
//!
//! `Display` is the message on the wire, so it never exposes internals.

use thiserror::Error;

/// A failed request. Names and texts are those of Amazon SQS where it has one for the case.
#[derive(Debug, Error)]
pub(crate) enum Fault {
    #[error("The specified queue does not exist.")]
    QueueDoesNotExist,
    #[error("A queue already exists with the same name and a different value for attribute {0}")]
    QueueNameExists(String),
    #[error("Unknown Attribute {0}.")]
    InvalidAttributeName(String),
    #[error("The attribute {0} is not supported by this engine.")]
    UnsupportedAttribute(String),
    #[error("Invalid value for the parameter {0}.")]
    InvalidAttributeValue(String),
    #[error("{0}")]
    InvalidParameter(String),
    #[error("The request must contain the parameter {0}.")]
    MissingParameter(&'static str),
    #[error("The message contains characters outside the allowed set.")]
    InvalidMessageContents,
    #[error("The input receipt handle is invalid.")]
    ReceiptHandleIsInvalid,
    #[error("The specified message isn't in flight.")]
    MessageNotInflight,
    #[error("There should be at least one entry in the batch request.")]
    EmptyBatch,
    #[error("Maximum number of entries per request are 10. You have sent {0}.")]
    TooManyEntries(usize),
    #[error("Id {0} repeated.")]
    EntryIdsNotDistinct(String),
    #[error(
        "A batch entry id can only contain alphanumeric characters, hyphens and underscores. \
         It can be at most 80 letters long."
    )]
    InvalidEntryId,
    #[error("Batch requests cannot be longer than {limit} bytes. You have sent {sent} bytes.")]
    BatchTooLong { limit: usize, sent: usize },
    #[error("{0} is not supported by this engine.")]
    Unsupported(String),
    #[error("The operation {0} is not known.")]
    UnknownOperation(String),
    #[error("The request could not be read: {0}")]
    Malformed(String),
    #[error("The request could not be stored.")]
    Storage(#[from] rusqlite::Error),
    #[error("The request could not be stored.")]
    Corrupt(&'static str),
    #[error("The request could not be stored.")]
    NotCommitted,
}

/// An error's two names: its shape in the JSON protocol, and its code in the older query protocol, which SDKs still
/// match.
pub(crate) struct Code {
    pub(crate) shape: &'static str,
    pub(crate) query: &'static str,
}

impl Fault {
    /// Whether the caller is at fault: HTTP 400 and no retry, otherwise 500.
    pub(crate) fn is_client_error(&self) -> bool {
        !matches!(
            self,
            Self::Storage(_) | Self::Corrupt(_) | Self::NotCommitted
        )
    }

    /// Names from the service model of SQS (`aws.protocols#awsQueryError` gives the query code).
    pub(crate) fn code(&self) -> Code {
        let (shape, query) = match self {
            Self::QueueDoesNotExist => (
                "QueueDoesNotExist",
                "AWS.SimpleQueueService.NonExistentQueue",
            ),
            Self::QueueNameExists(_) => ("QueueNameExists", "QueueAlreadyExists"),
            Self::InvalidAttributeName(_) | Self::UnsupportedAttribute(_) => {
                ("InvalidAttributeName", "InvalidAttributeName")
            }
            Self::InvalidAttributeValue(_) => ("InvalidAttributeValue", "InvalidAttributeValue"),
            Self::InvalidParameter(_) => {
                ("InvalidParameterValueException", "InvalidParameterValue")
            }
            Self::MissingParameter(_) => ("MissingRequiredParameterException", "MissingParameter"),
            Self::InvalidMessageContents => ("InvalidMessageContents", "InvalidMessageContents"),
            Self::ReceiptHandleIsInvalid => ("ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid"),
            Self::MessageNotInflight => (
                "MessageNotInflight",
                "AWS.SimpleQueueService.MessageNotInflight",
            ),
            Self::EmptyBatch => (
                "EmptyBatchRequest",
                "AWS.SimpleQueueService.EmptyBatchRequest",
            ),
            Self::TooManyEntries(_) => (
                "TooManyEntriesInBatchRequest",
                "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
            ),
            Self::EntryIdsNotDistinct(_) => (
                "BatchEntryIdsNotDistinct",
                "AWS.SimpleQueueService.BatchEntryIdsNotDistinct",
            ),
            Self::InvalidEntryId => (
                "InvalidBatchEntryId",
                "AWS.SimpleQueueService.InvalidBatchEntryId",
            ),
            Self::BatchTooLong { .. } => (
                "BatchRequestTooLong",
                "AWS.SimpleQueueService.BatchRequestTooLong",
            ),
            Self::Unsupported(_) => (
                "UnsupportedOperation",
                "AWS.SimpleQueueService.UnsupportedOperation",
            ),
            Self::UnknownOperation(_) => ("UnknownOperationException", "InvalidAction"),
            Self::Malformed(_) => ("SerializationException", "MalformedInput"),
            Self::Storage(_) | Self::Corrupt(_) | Self::NotCommitted => {
                ("InternalFailure", "InternalFailure")
            }
        };
        Code { shape, query }
    }
}
