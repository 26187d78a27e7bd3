//! The messages of the queue of erasures.

use aws_lambda_events::sqs::SqsMessage;
use chrono::TimeDelta;
use hearback_domain::identity::identifier::{TenantId, UserId};
use hearback_lambda::MissingSetting;
use hearback_lambda::aws::{Aws, Service, error_code};
use hearback_lambda::queue::{Endless, HOPS, Hops};
use hearback_lambda::settings::setting;
use hearback_storage::erasures::ErasureCursor;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::SETTLE;

/// The setting that names the URL of the queue of erasures.
pub const ERASURES_URL: &str = "HEARBACK_ERASURES_URL";
/// The setting that names the URL of the queue for dead letters of the queue of erasures.
pub const ERASURES_DEAD_LETTERS_URL: &str = "HEARBACK_ERASURES_DEAD_LETTERS_URL";
/// The longest delay of a message, in seconds.
const MAX_DELAY: i64 = 900;

/// The queue of erasures.
#[derive(Debug, Clone)]
pub struct Erasures {
    client: aws_sdk_sqs::Client,
    url: String,
    settle: TimeDelta,
    /// The number of hops of the messages that are sent.
    hops: Hops,
}

/// A message could not be sent.
#[derive(Debug, thiserror::Error)]
#[error("SendMessage failed: {0}")]
pub struct NotSent(String);

/// The task of a message: a pass over a user's data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) tenant: TenantId,
    pub(crate) user: UserId,
    /// The id of the erasure.
    pub(crate) id: Uuid,
    /// The progress of the pass.
    pub(crate) step: Step,
    /// Whether it has found anything.
    pub(crate) found: bool,
}

/// The progress of a pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Step {
    /// Collecting traces: the number of sources that are read, first under the user's id and then under the
    /// pseudonym, and the position in the next one.
    Traces(usize, Option<ErasureCursor>),
    /// Files in the bucket, after this key.
    Files(Option<String>),
    /// Rows of the table.
    Rows,
    /// The whole table, because a row that leads to data cannot be read: the number of the name, the user's id or the
    /// pseudonym, under which that row is, and the position.
    Search(usize, Option<ErasureCursor>),
}

impl Task {
    /// The first pass of an erasure.
    pub(crate) fn new(tenant: TenantId, user: UserId, id: Uuid) -> Self {
        Self {
            tenant,
            user,
            id,
            step: Step::Traces(0, None),
            found: false,
        }
    }

    /// Reads a message; `None` if it has an unknown format.
    pub(crate) fn read(body: &str) -> Option<Self> {
        serde_json::from_str(body).ok()
    }
}

impl Erasures {
    /// The queue at this URL. Erasures wait for `settle` before they begin, and between their passes.
    #[must_use]
    pub fn new(client: aws_sdk_sqs::Client, url: impl Into<String>, settle: TimeDelta) -> Self {
        Self {
            client,
            url: url.into(),
            settle,
            hops: Hops::default(),
        }
    }

    /// The queue for what is sent because of this message.
    pub(crate) fn after(self, message: &SqsMessage) -> Result<Self, Endless> {
        let hops = Hops::after(message)?;
        Ok(Self { hops, ..self })
    }

    /// Reads the settings and builds the client.
    pub fn from_env() -> Result<Self, MissingSetting> {
        let client = aws_sdk_sqs::Client::new(&Aws::from_env(Service::Sqs).config());
        Ok(Self::new(client, setting(ERASURES_URL)?, SETTLE))
    }

    pub(crate) fn settle(&self) -> TimeDelta {
        self.settle
    }

    /// Sends a message that is delivered after a delay.
    pub(crate) async fn send(&self, task: &Task, after: TimeDelta) -> Result<(), NotSent> {
        let body = serde_json::to_string(task).map_err(|error| NotSent(error.to_string()))?;
        let hops = self.hops.attribute();
        let hops = hops.map_err(|error| NotSent(error.to_string()))?;
        // Rounded up: a message that is delivered early would have to wait again.
        let seconds = (after + TimeDelta::milliseconds(999)).num_seconds();
        let seconds = i32::try_from(seconds.clamp(0, MAX_DELAY)).unwrap_or_default();
        self.client
            .send_message()
            .queue_url(&self.url)
            .message_body(body)
            .message_attributes(HOPS, hops)
            .delay_seconds(seconds)
            .send()
            .await
            .map(|_| ())
            .map_err(|error| NotSent(error_code(&error).to_owned()))
    }
}
