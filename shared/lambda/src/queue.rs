//! What a function does that a queue triggers: it names the messages that must be delivered again, gives up
//! those that have failed for long enough, and counts how often work was handed on.
//!
//! A queue counts a receive although Lambda had no room for the function, which then never saw the message.
//! So receives say little of failures, and a message that may yet succeed is given up late.

use std::fmt::Display;

use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage};
use aws_sdk_sqs::error::BuildError;
use aws_sdk_sqs::types::MessageAttributeValue;
use tokio::task::JoinError;

use crate::dead_letters::DeadLetters;

/// Receives from which on a message is given up that fails by what it is ([`Tries::Few`]).
pub const MAX_RECEIVES: u32 = 5;
/// Receives from which on a message is given up that fails by what it meets ([`Tries::Many`]).
pub const LAST_RECEIVES: u32 = 90;
/// Receives after which the queue itself gives a message up: some more, for when the function dies or cannot
/// send to the dead letters.
pub const REDRIVE_RECEIVES: u32 = 100;
/// The message attribute that tells how often work was handed on until it came to this message.
pub const HOPS: &str = "hops";
/// How often work may be handed on. What is handed on in earnest was worked on for minutes, so that this is a
/// week; a loop that does nothing ends within minutes, and costs a thousand invocations.
pub const MAX_HOPS: u32 = 1_000;

/// How long a message is tried that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tries {
    /// It would fail however often it came.
    Once,
    /// It failed by what it is, most likely. Another version of the function might take it.
    Few,
    /// It failed by what it met, the table being away for example, and may succeed the next time.
    Many,
}

impl Tries {
    /// Whether a message that was received so often has been tried for long enough.
    #[must_use]
    pub fn are_over(self, receives: u32) -> bool {
        match self {
            Self::Once => true,
            Self::Few => receives >= MAX_RECEIVES,
            Self::Many => receives >= LAST_RECEIVES,
        }
    }
}

/// An error for which a message was not worked off.
pub trait Failure: Display {
    /// How long a message that fails so is tried.
    fn tries(&self) -> Tries;
}

impl Failure for hearback_storage::Error {
    fn tries(&self) -> Tries {
        match self {
            Self::Unavailable { .. } => Tries::Many,
            Self::Unreadable { .. } => Tries::Few,
            Self::TooLarge { .. } => Tries::Once,
        }
    }
}

/// Why a message was not worked off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// For a person. It quotes no data.
    pub text: String,
    /// How long the message is tried.
    pub tries: Tries,
}

impl<F: Failure> From<F> for Reason {
    fn from(failure: F) -> Self {
        Self {
            text: failure.to_string(),
            tries: failure.tries(),
        }
    }
}

/// How the task ended that worked on a message. A panic's message may quote data, so that it panicked is all
/// that is said.
pub fn ended<F: Failure>(ended: Result<Result<(), F>, JoinError>) -> Result<(), Reason> {
    match ended {
        Ok(result) => result.map_err(Reason::from),
        Err(_) => Err(Reason {
            text: "the function panicked".to_owned(),
            tries: Tries::Few,
        }),
    }
}

/// Works off messages one after the other, each in a task of its own: one that makes the code panic harms
/// no neighbour. Answers as [`report`] does.
pub async fn one_by_one<F, E>(
    dead_letters: &DeadLetters,
    batch: SqsEvent,
    work: impl Fn(SqsMessage) -> F,
) -> SqsBatchResponse
where
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: Failure + Send + 'static,
{
    let mut failed = Vec::new();
    for message in batch.records {
        if let Err(reason) = ended(tokio::spawn(work(message.clone())).await) {
            failed.push((message, reason));
        }
    }
    report(dead_letters, failed).await
}

/// Names the messages that must be delivered again. Those that were tried for long enough go to the dead
/// letters instead, each with its reason.
pub async fn report(
    dead_letters: &DeadLetters,
    failed: Vec<(SqsMessage, Reason)>,
) -> SqsBatchResponse {
    let mut response = SqsBatchResponse::default();
    for (message, reason) in failed {
        let message_id = message.message_id.clone().unwrap_or_default();
        let receives = receives(&message);
        tracing::warn!(
            message_id,
            receives,
            reason = reason.text,
            "message not worked off"
        );
        if !(reason.tries.are_over(receives) && give_up(dead_letters, &message, &reason).await) {
            response.batch_item_failures.push(again(message_id));
        }
    }
    response
}

/// Whether a message is among the dead letters now. If not, it fails once more, until its queue gives it up.
async fn give_up(dead_letters: &DeadLetters, message: &SqsMessage, reason: &Reason) -> bool {
    let body = message.body.as_deref().unwrap_or_default();
    // In a box: a call of the SDK is so deep a type that the compiler gives up on the size of what calls it.
    match Box::pin(dead_letters.bury(body, &reason.text)).await {
        Ok(()) => true,
        Err(error) => {
            tracing::error!(reason = %error, "dead letter not sent");
            false
        }
    }
}

/// The message that must be delivered again, if the task that worked on it failed.
#[must_use]
pub fn not_worked_off<F: Failure>(
    message_id: String,
    task: Result<Result<(), F>, JoinError>,
) -> Option<BatchItemFailure> {
    let reason = ended(task).err()?;
    tracing::warn!(message_id, reason = reason.text, "message not worked off");
    Some(again(message_id))
}

fn again(message_id: String) -> BatchItemFailure {
    let mut failure = BatchItemFailure::default();
    failure.item_identifier = message_id;
    failure
}

/// How often a message was received, this time included.
#[must_use]
pub fn receives(message: &SqsMessage) -> u32 {
    let receives = message.attributes.get("ApproximateReceiveCount");
    receives.and_then(|count| count.parse().ok()).unwrap_or(1)
}

/// How often work was handed on, by a function to its own queue, until it came to a message. Lambda would stop
/// such a function after 16 times if it were not told otherwise; this is what bounds it instead.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hops(u32);

/// Work was handed on as often as it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("handed on {MAX_HOPS} times without an end")]
pub struct Endless;

impl Failure for Endless {
    fn tries(&self) -> Tries {
        Tries::Once
    }
}

impl Hops {
    /// Those of what is sent because of this message.
    pub fn behind(message: &SqsMessage) -> Result<Self, Endless> {
        let attribute = message.message_attributes.get(HOPS);
        let hops = attribute.and_then(|hops| hops.string_value.as_deref()?.parse().ok());
        let hops: u32 = hops.unwrap_or_default();
        if hops < MAX_HOPS {
            Ok(Self(hops + 1))
        } else {
            Err(Endless)
        }
    }

    /// The attribute [`HOPS`] of what is sent.
    pub fn attribute(self) -> Result<MessageAttributeValue, BuildError> {
        let hops = MessageAttributeValue::builder().data_type("Number");
        hops.string_value(self.0.to_string()).build()
    }
}
