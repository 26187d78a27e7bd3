//! The queues of a deployment, and the calls of SQS.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::operation::get_queue_attributes::GetQueueAttributesError;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName, QueueAttributeName};
use hearback_domain::learning::publication::Subject;
use hearback_lambda::aws::{Aws, Service, error_code};
use hearback_lambda::settings::setting;
use hearback_lambda::{BadSetting, FromEnv, Problem};

/// The beginning of the URL of every queue of the deployment, up to the stack's name and the hyphen after it.
pub const QUEUES_URL: &str = "HEARBACK_QUEUES_URL";

/// Messages of a receive, the most that SQS allows.
pub(crate) const BATCH: i32 = 10;
/// Wait time of a receive. Any time above 0 makes SQS query all of its servers.
const WAIT_SECONDS: i32 = 1;

/// A queue from which a function or subscribers take their work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkQueue {
    /// Its name, without the stack's name.
    pub name: String,
    /// What its messages are.
    pub holds: &'static str,
}

/// Every queue from which functions and subscribers take their work.
pub fn work_queues() -> impl Iterator<Item = WorkQueue> {
    let of_functions = [
        ("signals", "Feedback that waits for its signals"),
        (
            "signals-bulk",
            "Imported events that wait for their signals",
        ),
        ("ingest", "Events of back ends that are not stored yet"),
        ("imports", "Steps of imports"),
        ("erasures", "Passes of erasures"),
        ("insights", "Feedback that is not counted yet"),
        ("fanout", "News for connections to the live feed"),
        ("nats", "Published messages for NATS"),
        ("webhooks", "Published messages for webhooks"),
    ];
    let of_functions = of_functions.map(|(name, holds)| (name.to_owned(), holds));
    let of_subjects = Subject::NAMES.iter().map(|(_, subject)| *subject);
    let of_subjects =
        of_subjects.map(|subject| (subject.queue(), "Published messages for subscribers"));
    let all = of_functions.into_iter().chain(of_subjects);
    all.map(|(name, holds)| WorkQueue { name, holds })
}

/// The queues of a deployment by their names, without the stack's name.
#[derive(Debug, Clone)]
pub struct Queues {
    client: Client,
    beginning: String,
}

/// A call of SQS failed, with its name and its error code.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0} failed: {1}")]
pub struct Unavailable(&'static str, String);

impl From<Unavailable> for Problem {
    fn from(failed: Unavailable) -> Self {
        Self::contended("The queues could not be reached. Try again.").cause(failed.to_string())
    }
}

/// The messages of a queue. SQS counts them approximately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Depth {
    /// Those that can be received, now or after a delay.
    pub(crate) waiting: u32,
    /// Those that were received and not deleted yet.
    pub(crate) processing: u32,
}

impl Depth {
    pub(crate) fn all(self) -> u32 {
        self.waiting + self.processing
    }
}

impl Queues {
    /// The queues whose URLs begin with `beginning`.
    #[must_use]
    pub fn new(client: Client, beginning: impl Into<String>) -> Self {
        let beginning = beginning.into();
        Self { client, beginning }
    }

    /// The queues of the deployment whose signal generator has the queue at this URL.
    #[must_use]
    pub fn beside(client: Client, signals_url: &str) -> Self {
        let beginning = signals_url.strip_suffix("signals");
        Self::new(client, beginning.unwrap_or(signals_url))
    }

    fn url(&self, name: &str) -> String {
        format!("{}{name}", self.beginning)
    }

    /// The messages of a queue; `None` if the deployment does not have it.
    pub(crate) async fn depth(&self, name: &str) -> Result<Option<Depth>, Unavailable> {
        use QueueAttributeName::{
            ApproximateNumberOfMessages, ApproximateNumberOfMessagesDelayed,
            ApproximateNumberOfMessagesNotVisible,
        };
        let read = self
            .client
            .get_queue_attributes()
            .queue_url(self.url(name))
            .attribute_names(ApproximateNumberOfMessages)
            .attribute_names(ApproximateNumberOfMessagesDelayed)
            .attribute_names(ApproximateNumberOfMessagesNotVisible);
        match read.send().await {
            Ok(found) => {
                let counts = found.attributes.unwrap_or_default();
                let count = |name| counts.get(&name).and_then(|count| count.parse().ok());
                let count = |name| count(name).unwrap_or(0);
                Ok(Some(Depth {
                    waiting: count(ApproximateNumberOfMessages)
                        + count(ApproximateNumberOfMessagesDelayed),
                    processing: count(ApproximateNumberOfMessagesNotVisible),
                }))
            }
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(GetQueueAttributesError::is_queue_does_not_exist) =>
            {
                Ok(None)
            }
            Err(error) => Err(failed("GetQueueAttributes", &error)),
        }
    }

    /// Receives up to `most` messages, at most [`BATCH`], and hides them for a while; with `peek`, they stay visible.
    pub(crate) async fn receive(
        &self,
        name: &str,
        most: i32,
        peek: bool,
    ) -> Result<Vec<Message>, Unavailable> {
        let receive = self
            .client
            .receive_message()
            .queue_url(self.url(name))
            .max_number_of_messages(most)
            .wait_time_seconds(WAIT_SECONDS)
            .set_visibility_timeout(peek.then_some(0))
            .message_system_attribute_names(MessageSystemAttributeName::DeadLetterQueueSourceArn)
            .message_attribute_names("All");
        match receive.send().await {
            Ok(received) => Ok(received.messages.unwrap_or_default()),
            Err(error) => Err(failed("ReceiveMessage", &error)),
        }
    }

    /// Deletes the message of a receipt handle.
    pub(crate) async fn delete(&self, name: &str, receipt: &str) -> Result<(), Unavailable> {
        let delete = self.client.delete_message().queue_url(self.url(name));
        let deleted = delete.receipt_handle(receipt).send().await;
        deleted
            .map(drop)
            .map_err(|error| failed("DeleteMessage", &error))
    }

    /// Sends the body and the attributes of a message.
    pub(crate) async fn send(&self, name: &str, message: &Message) -> Result<(), Unavailable> {
        let attributes = message.message_attributes.clone();
        let sent = self
            .client
            .send_message()
            .queue_url(self.url(name))
            .message_body(message.body.as_deref().unwrap_or_default())
            .set_message_attributes(attributes.filter(|some| !some.is_empty()))
            .send()
            .await;
        sent.map(drop)
            .map_err(|error| failed("SendMessage", &error))
    }
}

fn failed<E: ProvideErrorMetadata, R>(call: &'static str, error: &SdkError<E, R>) -> Unavailable {
    Unavailable(call, error_code(error).to_owned())
}

impl FromEnv for Queues {
    fn from_env() -> Result<Self, BadSetting> {
        let client = Client::new(&Aws::from_env(Service::Sqs).config());
        Ok(Self::new(client, setting(QUEUES_URL)?))
    }
}
