//! What all outlets have in common. A message leaves the queue once its target has acknowledged it. One that was not
//! delivered comes again, and one that its target rejects for good becomes a dead letter, with the reason.

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use hearback_lambda::dead_letters::DeadLetters;
use hearback_lambda::queue::{MessageFailure, Reason, RetryLimit, report};

use crate::backoff::Backoff;
use crate::published::Published;

/// A target of published messages.
pub trait Outlet: Send + Sync + 'static {
    /// Delivers messages; the result of each, in their order. A message may be delivered again.
    fn deliver(
        &self,
        messages: &[Published],
    ) -> impl Future<Output = Vec<Result<(), NotDelivered>>> + Send;
}

/// Why a message was not delivered. Texts contain no data of the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotDelivered {
    /// The target cannot be reached, or accepts nothing at present.
    #[error("{0}")]
    Unavailable(String),
    /// The target rejects this message.
    #[error("{0}")]
    Rejected(String),
    /// Its recipient wants no messages any more.
    #[error("{0}")]
    Unwanted(String),
    /// The message is none that is published.
    #[error("the message has an unknown format")]
    Unreadable,
}

impl MessageFailure for NotDelivered {
    fn tries(&self) -> RetryLimit {
        match self {
            Self::Unavailable(_) => RetryLimit::Day,
            Self::Rejected(_) => RetryLimit::Few,
            Self::Unwanted(_) | Self::Unreadable => RetryLimit::Once,
        }
    }
}

/// Processes the queue of an outlet.
#[derive(Debug)]
pub struct Relay<O> {
    outlet: O,
    backoff: Backoff,
    dead_letters: DeadLetters,
}

impl<O: Outlet> Relay<O> {
    /// A relay to an outlet, with its queue and its dead letters.
    #[must_use]
    pub fn new(outlet: O, backoff: Backoff, dead_letters: DeadLetters) -> Self {
        Self {
            outlet,
            backoff,
            dead_letters,
        }
    }

    /// Delivers the messages of a batch, and returns those that must come again.
    pub async fn handle(&self, batch: SqsEvent) -> SqsBatchResponse {
        let mut failed: Vec<(SqsMessage, Reason)> = Vec::new();
        let (mut sources, mut messages) = (Vec::new(), Vec::new());
        for source in batch.records {
            match Published::of(&source) {
                Some(message) => {
                    sources.push(source);
                    messages.push(message);
                }
                None => failed.push((source, NotDelivered::Unreadable.into())),
            }
        }
        if !messages.is_empty() {
            let results = self.outlet.deliver(&messages).await;
            let results = sources.into_iter().zip(results);
            failed.extend(
                results.filter_map(|(source, result)| Some((source, result.err()?.into()))),
            );
        }
        let unavailable = (failed.iter())
            .filter(|(_, reason)| reason.tries == RetryLimit::Day)
            .map(|(source, _)| source);
        self.backoff.postpone(unavailable).await;
        report(&self.dead_letters, failed).await
    }
}
