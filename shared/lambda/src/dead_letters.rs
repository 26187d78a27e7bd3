//! The DLQ: messages that cannot be processed, each with its reason.

use aws_sdk_sqs::types::MessageAttributeValue;
use hearback_domain::text::sqs_text;
use hearback_scrub::REMOVED;

use crate::aws::error_code;

/// The message attribute with the reason.
pub const REASON: &str = "reason";

/// Largest size of a body with its reason, in bytes; the rest of the limit is for other attributes.
/// A received body fits; one that was serialized again may be longer.
const LARGEST: usize = 1024 * 1024 - 4 * 1024;

/// A dead-letter queue.
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

    /// Sends the body of a message to the DLQ, with the reason as an attribute.
    pub async fn send(&self, body: &str, reason: &str) -> Result<(), NotSent> {
        self.send_with(body, reason, &[]).await
    }

    /// Sends the body of a message to the DLQ, with the reason and these attributes (name and
    /// value). Characters that SQS does not accept are escaped, and a body that is too long is left
    /// out.
    pub async fn send_with(
        &self,
        body: &str,
        reason: &str,
        attributes: &[(&str, &str)],
    ) -> Result<(), NotSent> {
        let mut send = self.client.send_message().queue_url(&self.queue_url);
        let body = sqs_text::escape_json(body);
        let left_out;
        let (body, reason) = if body.len() + reason.len() <= LARGEST {
            (body.as_ref(), reason)
        } else {
            left_out = format!("{reason}; a body of {} bytes is left out", body.len());
            (REMOVED, left_out.as_str())
        };
        send = send.message_body(body);
        for (name, value) in [(REASON, reason)].iter().chain(attributes) {
            let value = MessageAttributeValue::builder()
                .data_type("String")
                .string_value(sqs_text::replace_unsupported(value))
                .build()
                .map_err(|error| NotSent(error.to_string()))?;
            send = send.message_attributes(*name, value);
        }
        send.send()
            .await
            .map(|_| ())
            .map_err(|error| NotSent(error_code(&error).to_owned()))
    }
}
