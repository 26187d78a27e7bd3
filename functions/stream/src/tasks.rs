//! The messages that connections send themselves, through the queue of the fan-out.

use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use chrono::TimeDelta;
use hearback_lambda::MissingSetting;
use hearback_lambda::aws::{Aws, Service, error_code};
use hearback_lambda::settings::setting;
use serde::{Deserialize, Serialize};

/// The setting that names the URL of the fan-out's queue.
pub const FANOUT_URL: &str = "HEARBACK_FANOUT_URL";
/// The longest delay of a message.
const MAX_DELAY: TimeDelta = TimeDelta::minutes(15);

/// What is to be done for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Task {
    /// Send what is new in the feed.
    Deliver,
    /// Close it, if its time has come.
    End,
}

/// A task for a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConnectionTask {
    pub(crate) connection: String,
    pub(crate) task: Task,
}

/// The queue of the fan-out.
#[derive(Debug, Clone)]
pub struct Tasks {
    client: aws_sdk_sqs::Client,
    url: String,
}

/// A message could not be sent.
#[derive(Debug, thiserror::Error)]
#[error("SendMessageBatch failed: {0}")]
pub struct NotSent(String);

impl Tasks {
    /// The queue at this URL.
    #[must_use]
    pub fn new(client: aws_sdk_sqs::Client, url: impl Into<String>) -> Self {
        let url = url.into();
        Self { client, url }
    }

    /// Reads the setting and builds the client.
    pub fn from_env() -> Result<Self, MissingSetting> {
        let client = aws_sdk_sqs::Client::new(&Aws::from_env(Service::Sqs).config());
        Ok(Self::new(client, setting(FANOUT_URL)?))
    }

    /// The client of the queue.
    pub(crate) fn client(&self) -> aws_sdk_sqs::Client {
        self.client.clone()
    }

    /// Sends up to ten tasks for a connection, each to be delivered after a delay, which is cut at 15 minutes. One call.
    pub(crate) async fn send(
        &self,
        connection: &str,
        tasks: &[(Task, TimeDelta)],
    ) -> Result<(), NotSent> {
        if tasks.is_empty() {
            return Ok(());
        }
        let entries = tasks.iter().enumerate().map(|(index, (task, delay))| {
            let body = serde_json::to_string(&ConnectionTask {
                connection: connection.to_owned(),
                task: *task,
            });
            // Rounded up: what is delivered early would have to wait again.
            let delay = (*delay + TimeDelta::milliseconds(999)).clamp(TimeDelta::zero(), MAX_DELAY);
            SendMessageBatchRequestEntry::builder()
                .id(index.to_string())
                .message_body(body.map_err(|error| NotSent(error.to_string()))?)
                .delay_seconds(i32::try_from(delay.num_seconds()).unwrap_or_default())
                .build()
                .map_err(|error| NotSent(error.to_string()))
        });
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        let sent = self
            .client
            .send_message_batch()
            .queue_url(&self.url)
            .set_entries(Some(entries))
            .send()
            .await
            .map_err(|error| NotSent(error_code(&error).to_owned()))?;
        match sent.failed.first() {
            Some(failed) => Err(NotSent(failed.code.clone())),
            None => Ok(()),
        }
    }
}
