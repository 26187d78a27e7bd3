//! The stream that the messages need: whether it exists, and its creation.

use std::error::Error;
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::context::{
    GetStreamByNameError, GetStreamByNameErrorKind, RequestError, RequestErrorKind,
};
use async_nats::jetstream::stream::{Config, StorageType};
use hearback_domain::learning::publication::Subject;

use super::Nats;
use crate::relay::NotDelivered;

/// The name of the stream that [`Nats::set_up`] creates.
pub const STREAM: &str = "HEARBACK";
/// The duplicate window: as long as a message may wait in its queue.
const WINDOW: Duration = Duration::from_hours(14 * 24);

/// What the server has for the messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetUp {
    /// Every subject has a stream, whose duplicate window is long enough.
    Ready,
    /// The same, because [`Nats::set_up`] created the stream that was missing.
    Created,
    /// No stream has these subjects.
    Missing(Vec<String>),
    /// These streams ignore repeats for a shorter time than a message may wait.
    ShortWindow(Vec<(String, Duration)>),
}

impl Nats {
    /// Checks whether each subject has a stream.
    pub async fn check(&self) -> Result<SetUp, NotDelivered> {
        let context = self.connected().await?;
        let (mut missing, mut short) = (Vec::new(), Vec::new());
        for (_, subject) in Subject::NAMES {
            let subject = self.subject(*subject);
            let name = match context.stream_by_subject(subject.as_str()).await {
                Ok(name) => name,
                Err(error) if error.kind() == GetStreamByNameErrorKind::NotFound => {
                    missing.push(subject);
                    continue;
                }
                Err(error) => {
                    let text = if is_without_jetstream(&error) {
                        "the NATS server has no JetStream: start it with `--jetstream`, or enable JetStream for the \
                         account of the user"
                            .to_owned()
                    } else {
                        let kind = error.kind();
                        format!("JetStream does not say which streams it has: {kind}")
                    };
                    return Err(NotDelivered::Unavailable(text));
                }
            };
            let window = window(&context, &name).await?;
            if window < WINDOW && short.iter().all(|(known, _)| *known != name) {
                short.push((name, window));
            }
        }
        Ok(if !missing.is_empty() {
            SetUp::Missing(missing)
        } else if !short.is_empty() {
            SetUp::ShortWindow(short)
        } else {
            SetUp::Ready
        })
    }

    /// Creates a stream for the subjects, unless each of them has one. The stream keeps its messages in files, for ever;
    /// what it keeps is changed with NATS' own tools.
    pub async fn set_up(&self, stream: &str) -> Result<SetUp, NotDelivered> {
        let subjects = match self.check().await? {
            SetUp::Missing(subjects) => subjects,
            found => return Ok(found),
        };
        let config = Config {
            name: stream.to_owned(),
            subjects,
            storage: StorageType::File,
            duplicate_window: WINDOW,
            ..Config::default()
        };
        let created = self.connected().await?.create_stream(config).await;
        created.map_err(|error| {
            NotDelivered::Unavailable(format!("the stream cannot be created: {error}"))
        })?;
        Ok(match self.check().await? {
            SetUp::Ready => SetUp::Created,
            found => found,
        })
    }
}

/// Whether nobody answers requests of JetStream.
fn is_without_jetstream(error: &GetStreamByNameError) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        let request = error.downcast_ref::<RequestError>();
        if request.is_some_and(|request| request.kind() == RequestErrorKind::NoResponders) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The duplicate window of a stream.
async fn window(context: &Context, name: &str) -> Result<Duration, NotDelivered> {
    let stream = context.get_stream(name).await;
    let stream = stream.map_err(|error| {
        NotDelivered::Unavailable(format!("the stream {name} cannot be read: {error}"))
    })?;
    Ok(stream.cached_info().config.duplicate_window)
}
