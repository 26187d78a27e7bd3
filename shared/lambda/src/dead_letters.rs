//! Where messages go that cannot be worked off, each with its reason.

use aws_sdk_sqs::types::MessageAttributeValue;
use hearback_domain::carried;
use hearback_domain::privacy::REMOVED;

use crate::aws::error_code;

/// The message attribute that says why a message is a dead letter.
pub const REASON: &str = "reason";

/// Most bytes of a body and its reason, for which a queue has room with further attributes. A body as it came fits;
/// one that was written again may be longer.
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

    /// Sends a message's body here, with the reason beside.
    pub async fn bury(&self, body: &str, reason: &str) -> Result<(), NotSent> {
        self.bury_with(body, reason, &[]).await
    }

    /// Sends a message's body here, with the reason and these attributes beside, by name and value. The queue refuses
    /// none: characters that it does not carry are escaped, and a body that is too long is left out.
    pub async fn bury_with(
        &self,
        body: &str,
        reason: &str,
        attributes: &[(&str, &str)],
    ) -> Result<(), NotSent> {
        let mut send = self.client.send_message().queue_url(&self.queue_url);
        let body = carried::json(body);
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
                .string_value(carried::text(value))
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
