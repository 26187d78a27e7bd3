//! NATS JetStream: each message under its subject, with its id as `Nats-Msg-Id`, so that a stream ignores a repeat
//! within its duplicate window. See docs/how-to/publish-to-nats.md.

use std::time::{Duration, Instant};

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, Context, ErrorCode};
use async_nats::{ConnectError, ConnectOptions};
use aws_sdk_sqs::Client;
use futures::future::join_all;
use hearback_domain::learning::publication::Subject;
use hearback_lambda::aws::{Aws, Service};
use hearback_lambda::dead_letters::DeadLetters;
use hearback_lambda::settings::{BadSetting, setting};
use tokio::sync::Mutex;

use crate::backoff::Backoff;
use crate::published::Published;
use crate::relay::{NotDelivered, Outlet, Relay};

mod settings;
mod setup;

pub use settings::{
    BadCredentials, BadServerUrls, BadSubjectPrefix, Credentials, NATS_CREDENTIALS,
    NATS_DEAD_LETTERS_URL, NATS_PREFIX, NATS_QUEUE_URL, NATS_URL, NatsSettings, ServerUrls,
    SubjectPrefix,
};
pub use setup::{STREAM, SetUp};

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the server may take to acknowledge a message.
const ACK_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection that was not used for longer is replaced: while Lambda freezes the function, the server may have ended
/// it, and what is written to it then is lost until the acknowledgement times out.
const MAX_IDLE: Duration = Duration::from_secs(30);

/// Publishes to JetStream.
#[derive(Debug)]
pub struct Nats {
    settings: NatsSettings,
    connection: Mutex<Option<Connection>>,
}

#[derive(Debug)]
struct Connection {
    context: Context,
    used_at: Instant,
}

impl Relay<Nats> {
    /// Reads the settings and builds the clients.
    pub fn from_env() -> Result<Self, BadSetting> {
        let sqs = Client::new(&Aws::from_env(Service::Sqs).config());
        let backoff = Backoff::new(sqs.clone(), setting(NATS_QUEUE_URL)?);
        let dead_letters = DeadLetters::new(sqs, setting(NATS_DEAD_LETTERS_URL)?);
        let nats = Nats::new(NatsSettings::from_env()?);
        Ok(Self::new(nats, backoff, dead_letters))
    }
}

impl Nats {
    /// Publishes to the server of these settings. It connects with the first message.
    #[must_use]
    pub fn new(settings: NatsSettings) -> Self {
        Self {
            settings,
            connection: Mutex::default(),
        }
    }

    fn subject(&self, subject: Subject) -> String {
        self.settings.subject(subject)
    }

    /// The connection, or a new one.
    async fn connected(&self) -> Result<Context, NotDelivered> {
        let mut connection = self.connection.lock().await;
        let used = connection.take();
        let used = used.filter(|connection| connection.used_at.elapsed() < MAX_IDLE);
        let context = match used {
            Some(used) => used.context,
            None => self.connect().await.map_err(|error| {
                NotDelivered::Unavailable(format!("NATS cannot be reached: {}", error.kind()))
            })?,
        };
        *connection = Some(Connection {
            context: context.clone(),
            used_at: Instant::now(),
        });
        Ok(context)
    }

    async fn connect(&self) -> Result<Context, ConnectError> {
        let options = ConnectOptions::new()
            .name("hearback")
            .connection_timeout(CONNECT_TIMEOUT)
            .request_timeout(Some(ACK_TIMEOUT));
        let options = self.settings.authenticate(options)?;
        let client = options.connect(&self.settings.servers.0).await?;
        let context = jetstream::context::ContextBuilder::new();
        Ok(context
            .timeout(ACK_TIMEOUT)
            .ack_timeout(ACK_TIMEOUT)
            .build(client))
    }

    async fn publish(&self, context: &Context, message: &Published) -> Result<(), NotDelivered> {
        let subject = self.subject(message.subject);
        let publish = PublishMessage::build()
            .payload(message.body.clone())
            .message_id(message.id.to_string());
        let published = match context.send_publish(subject.clone(), publish).await {
            Ok(acknowledged) => acknowledged.await.map(|_| ()),
            Err(error) => Err(error),
        };
        published.map_err(|error| not_delivered(&error, &subject))
    }
}

impl Outlet for Nats {
    async fn deliver(&self, messages: &[Published]) -> Vec<Result<(), NotDelivered>> {
        let context = match self.connected().await {
            Ok(context) => context,
            Err(error) => return messages.iter().map(|_| Err(error.clone())).collect(),
        };
        // All are sent, in their order, before the first is awaited.
        let published = messages
            .iter()
            .map(|message| self.publish(&context, message));
        let results = join_all(published).await;
        let is_lost = |result: &Result<(), _>| matches!(result, Err(NotDelivered::Unavailable(_)));
        if results.iter().any(is_lost) {
            // The next batch connects again.
            self.connection.lock().await.take();
        }
        results
    }
}

/// Why the server did not take a message. The texts of the client library are left out where they may quote it.
fn not_delivered(error: &PublishError, subject: &str) -> NotDelivered {
    match error.kind() {
        PublishErrorKind::StreamNotFound => NotDelivered::Unavailable(format!(
            "no stream of NATS has the subject {subject}: create one with `hearback nats setup`"
        )),
        PublishErrorKind::MaxPayloadExceeded => {
            NotDelivered::Rejected("the message is larger than NATS accepts".to_owned())
        }
        kind => match rejection(error) {
            // Other errors are about the stream or the account, such as their limits, and pass.
            Some(rejected)
                if rejected.error_code() == ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM =>
            {
                NotDelivered::Rejected(format!("NATS rejected the message: {rejected}"))
            }
            Some(rejected) => NotDelivered::Unavailable(format!("NATS failed: {rejected}")),
            None => NotDelivered::Unavailable(format!("NATS did not acknowledge: {kind}")),
        },
    }
}

/// The error with which JetStream answered, if it did.
fn rejection(error: &PublishError) -> Option<&jetstream::Error> {
    std::error::Error::source(error)?.downcast_ref()
}
