//! Where messages go that cannot be worked off, each with its reason.

use aws_lambda_events::sqs::SqsMessage;
use aws_sdk_sqs::types::MessageAttributeValue;
use hearback_lambda::aws::error_code;

/// The message attribute that says why a message is a dead letter.
pub const REASON: &str = "reason";

/// The dead-letter queue.
#[derive(Debug, Clone)]
pub struct DeadLetters {
    client: aws_sdk_sqs::Client,
    queue_url: String,
}

/// A dead letter could not be sent.
#[derive(Debug, thiserror::Error)]
#[error("SendMessage failed: {0}")]
pub struct NotSent(String);

impl DeadLetters {
    /// The queue at this URL.
    #[must_use]
    pub fn new(client: aws_sdk_sqs::Client, queue_url: impl Into<String>) -> Self {
        Self {
            client,
            queue_url: queue_url.into(),
        }
    }

    /// Sends a message here as it is, with the reason beside.
    pub(crate) async fn bury(&self, message: &SqsMessage, reason: &str) -> Result<(), NotSent> {
        let reason = MessageAttributeValue::builder()
            .data_type("String")
            .string_value(reason)
            .build()
            .map_err(|error| NotSent(error.to_string()))?;
        self.client
            .send_message()
            .queue_url(&self.queue_url)
            .message_body(message.body.as_deref().unwrap_or_default())
            .message_attributes(REASON, reason)
            .send()
            .await
            .map(|_| ())
            .map_err(|error| NotSent(error_code(&error).to_owned()))
    }
}

/// How often a message was received, this time included.
pub(crate) fn receives(message: &SqsMessage) -> u32 {
    message
        .attributes
        .get("ApproximateReceiveCount")
        .and_then(|count| count.parse().ok())
        .unwrap_or(1)
}
