//! Dead-letter queues: what they hold, why it failed, and where it goes back to.

use std::collections::BTreeMap;

use aws_sdk_sqs::types::{Message, MessageSystemAttributeName};
use futures::future::join_all;
use hearback_domain::learning::publication::Subject;
use hearback_lambda::dead_letters::REASON;
use hearback_lambda::queue::HOPS;
use hearback_wire::wire_names;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::queues::{BATCH, Queues, Unavailable};

/// A dead-letter queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeadLetterQueue {
    /// Feedback that the signal generator could not process.
    Signals,
    /// Messages of back ends that are not valid events.
    Ingest,
    /// Steps of imports.
    Imports,
    /// Passes of erasures.
    Erasures,
    /// Events and turns whose hours could not be counted.
    Insights,
    /// Published messages that NATS did not accept.
    Nats,
    /// Published messages that a webhook did not accept.
    Webhooks,
    /// Published messages that subscribers failed to process.
    Subjects,
    /// Published messages that the topic could not send to a queue; in deployed stacks only.
    Deliveries,
    /// Records of the table's stream that could not be delivered.
    Stream,
    /// News for connections to the live feed.
    Fanout,
}

wire_names!(DeadLetterQueue {
    Signals = "signals",
    Ingest = "ingest",
    Imports = "imports",
    Erasures = "erasures",
    Insights = "insights",
    Nats = "nats",
    Webhooks = "webhooks",
    Subjects = "subjects",
    Deliveries = "deliveries",
    Stream = "stream",
    Fanout = "fanout",
});

/// Why a dead letter was not moved.
#[derive(Debug, thiserror::Error)]
pub enum NotMoved {
    /// Nothing says from which queue a published message came.
    #[error("neither its subject nor its source queue is known")]
    UnknownOrigin,
    /// A call failed.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// The result of moving dead letters back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    /// Those that were moved.
    pub(crate) moved: u32,
    /// Those that could not be moved.
    pub(crate) failed: u32,
}

impl DeadLetterQueue {
    /// Every dead-letter queue.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::NAMES.iter().map(|(_, queue)| *queue)
    }

    /// The queue of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|queue| queue.as_str() == name)
    }

    /// What its dead letters are.
    #[must_use]
    pub fn holds(self) -> &'static str {
        match self {
            Self::Signals => "Feedback that the signal generator could not process",
            Self::Ingest => "Messages of back ends that are not valid events",
            Self::Imports => "Steps of imports",
            Self::Erasures => "Passes of erasures",
            Self::Insights => "Events and turns whose hours could not be counted",
            Self::Nats => "Published messages that NATS did not accept",
            Self::Webhooks => "Published messages that a webhook did not accept",
            Self::Subjects => "Published messages that subscribers failed to process",
            Self::Deliveries => {
                "Published messages that the topic could not send to a queue; in deployed stacks only"
            }
            Self::Stream => "Records of the table's stream that could not be delivered",
            Self::Fanout => "News for connections to the live feed",
        }
    }

    /// Whether its dead letters are messages of another queue, to which they can be sent again.
    #[must_use]
    pub fn is_redrivable(self) -> bool {
        match self {
            Self::Signals
            | Self::Ingest
            | Self::Imports
            | Self::Erasures
            | Self::Insights
            | Self::Nats
            | Self::Webhooks
            | Self::Subjects
            | Self::Deliveries => true,
            Self::Stream | Self::Fanout => false,
        }
    }

    /// The name of the queue, without the stack's name.
    #[must_use]
    pub fn queue(self) -> String {
        format!("{}-dead-letters", self.as_str())
    }

    /// The queues to which a dead letter goes back; none if nothing says from which it came.
    fn origins(self, dead_letter: &Message) -> Vec<String> {
        match self {
            Self::Stream | Self::Fanout => Vec::new(),
            Self::Subjects => {
                let subject = source(dead_letter).or_else(|| kind(dead_letter)?.subject());
                subject.map(Subject::queue).into_iter().collect()
            }
            Self::Deliveries => {
                let kind = kind(dead_letter);
                let subject = kind.and_then(Kind::subject).map(Subject::queue);
                let counted = kind.is_some_and(Kind::is_counted);
                let insights = counted.then(|| Self::Insights.as_str().to_owned());
                subject.into_iter().chain(insights).collect()
            }
            Self::Signals
            | Self::Ingest
            | Self::Imports
            | Self::Erasures
            | Self::Insights
            | Self::Nats
            | Self::Webhooks => vec![self.as_str().to_owned()],
        }
    }

    /// Why a dead letter failed. A function says so. SQS and SNS do not; what they moved may have attributes of its
    /// sender.
    fn reason(self, dead_letter: &Message) -> String {
        let attributes = dead_letter.message_attributes.as_ref();
        let given = attributes.and_then(|attributes| attributes.get(REASON)?.string_value.clone());
        let unknown = match self {
            Self::Subjects => "its subscriber did not delete it",
            Self::Deliveries => "the topic could not send it",
            Self::Signals => "the signal generator crashed",
            Self::Stream => "a pipe gave it up",
            Self::Nats | Self::Webhooks => "the topic could not send it, or the function crashed",
            Self::Ingest | Self::Imports | Self::Erasures | Self::Insights | Self::Fanout => {
                "the function crashed"
            }
        };
        given
            .filter(|_| source_arn(dead_letter).is_none())
            .unwrap_or_else(|| unknown.to_owned())
    }

    /// The same without content of the message: why an event is invalid names its members, which its sender has chosen.
    fn public_reason(self, dead_letter: &Message) -> String {
        let reason = self.reason(dead_letter);
        match reason.split_once(": ") {
            Some((code, _)) if self == Self::Ingest && !code.contains(' ') => code.to_owned(),
            _ => reason,
        }
    }
}

/// The queue from which SQS moved a dead letter; `None` for what a function or the topic sent to the DLQ.
fn source_arn(dead_letter: &Message) -> Option<&str> {
    let attributes = dead_letter.attributes.as_ref()?;
    let arn = attributes.get(&MessageSystemAttributeName::DeadLetterQueueSourceArn)?;
    Some(arn)
}

/// The subject from whose queue SQS moved a dead letter.
fn source(dead_letter: &Message) -> Option<Subject> {
    let (_, name) = source_arn(dead_letter)?.rsplit_once(':')?;
    let mut subjects = Subject::NAMES.iter().map(|(_, subject)| *subject);
    subjects.find(|subject| {
        let stack = name.strip_suffix(&subject.queue());
        stack.is_some_and(|stack| stack.ends_with('-'))
    })
}

/// What a published message is about, by which the topic filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// An event was processed or retracted: for subscribers, and counted.
    Feedback,
    /// A learning signal, for the subscribers of this subject.
    Signal(Subject),
    /// A turn changed, or an event was erased: only counted.
    Counted,
}

impl Kind {
    fn subject(self) -> Option<Subject> {
        match self {
            Self::Feedback => Some(Subject::FeedbackProcessed),
            Self::Signal(subject) => Some(subject),
            Self::Counted => None,
        }
    }

    fn is_counted(self) -> bool {
        matches!(self, Self::Feedback | Self::Counted)
    }
}

fn kind(dead_letter: &Message) -> Option<Kind> {
    let body: Value = serde_json::from_str(dead_letter.body.as_deref()?).ok()?;
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    match (text("signalType"), text("eventType")) {
        (Some("reward"), _) => Some(Kind::Signal(Subject::Reward)),
        (Some("policy_update"), _) => Some(Kind::Signal(Subject::Policy)),
        (Some("exploration_hint"), _) => Some(Kind::Signal(Subject::Exploration)),
        (None, Some("feedback.processed" | "feedback.retracted")) => Some(Kind::Feedback),
        (None, Some("feedback.erased" | "turn.changed")) => Some(Kind::Counted),
        _ => None,
    }
}

impl Queues {
    /// Sends a dead letter to where it came from, and deletes it. Returns why it had failed.
    ///
    /// Deleted after it was sent: between the two calls it is in both queues, never in none.
    pub async fn put_back(
        &self,
        queue: DeadLetterQueue,
        mut dead_letter: Message,
    ) -> Result<String, NotMoved> {
        let origins = queue.origins(&dead_letter);
        if origins.is_empty() {
            return Err(NotMoved::UnknownOrigin);
        }
        let reason = queue.reason(&dead_letter);
        let receipt = dead_letter.receipt_handle.take().unwrap_or_default();
        if let Some(attributes) = &mut dead_letter.message_attributes {
            attributes.remove(REASON);
            // Its hops are counted from 0 again.
            attributes.remove(HOPS);
        }
        for to in &origins {
            self.send(to, &dead_letter).await?;
        }
        self.delete(&queue.queue(), &receipt).await?;
        Ok(reason)
    }

    /// Why up to ten dead letters of a queue failed: each reason, and how many of them have it. They stay where they are.
    pub(crate) async fn reasons(
        &self,
        queue: DeadLetterQueue,
    ) -> Result<BTreeMap<String, u32>, Unavailable> {
        let mut reasons = BTreeMap::new();
        for dead_letter in self.receive(&queue.queue(), BATCH, true).await? {
            *reasons
                .entry(queue.public_reason(&dead_letter))
                .or_default() += 1;
        }
        Ok(reasons)
    }

    /// Moves up to `most` dead letters of a queue back, ten at a time.
    pub(crate) async fn redrive(
        &self,
        queue: DeadLetterQueue,
        most: u32,
    ) -> Result<Moved, Unavailable> {
        let mut all = Moved::default();
        while let left = most - all.moved - all.failed
            && left > 0
        {
            let batch = BATCH.min(left.try_into().unwrap_or(BATCH));
            let received = match self.receive(&queue.queue(), batch, false).await {
                Ok(received) => received,
                Err(error) if all == Moved::default() => return Err(error),
                // What was moved is told; the rest is moved by a repeat.
                Err(error) => {
                    tracing::warn!(queue = queue.as_str(), reason = %error, "redrive ended early");
                    break;
                }
            };
            if received.is_empty() {
                break;
            }
            let moves = received.into_iter();
            let moves = moves.map(|dead_letter| self.put_back(queue, dead_letter));
            for outcome in join_all(moves).await {
                match outcome {
                    Ok(_) => all.moved += 1,
                    Err(error) => {
                        all.failed += 1;
                        tracing::warn!(queue = queue.as_str(), reason = %error, "dead letter not moved");
                    }
                }
            }
        }
        Ok(all)
    }
}
