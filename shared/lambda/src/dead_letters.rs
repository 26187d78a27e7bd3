//! Where messages go that cannot be worked off, each with its reason.

use aws_sdk_sqs::types::MessageAttributeValue;

use crate::aws::error_code;

/// The message attribute that says why a message is a dead letter.
pub const REASON: &str = "reason";

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

    /// Sends a message's body here, with the reason beside.
    pub async fn bury(&self, body: &str, reason: &str) -> Result<(), NotSent> {
        self.bury_with(body, reason, &[]).await
    }

    /// Sends a message's body here, with the reason and these attributes beside, by name and value.
    pub async fn bury_with(
        &self,
        body: &str,
        reason: &str,
        attributes: &[(&str, &str)],
    ) -> Result<(), NotSent> {
        let mut send = self
            .client
            .send_message()
            .queue_url(&self.queue_url)
            .message_body(body);
        for (name, value) in [(REASON, reason)].iter().chain(attributes) {
            let value = MessageAttributeValue::builder()
                .data_type("String")
                .string_value(*value)
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
