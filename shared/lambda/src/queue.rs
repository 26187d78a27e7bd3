//! What a function answers that a queue triggers.

use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage};
use tokio::task::JoinError;

/// Works off messages one after the other, each in a task of its own: one that makes the code panic harms
/// no neighbour. Names those that must be delivered again.
pub async fn one_by_one<F, E>(batch: SqsEvent, work: impl Fn(SqsMessage) -> F) -> SqsBatchResponse
where
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: ToString + Send + 'static,
{
    let mut response = SqsBatchResponse::default();
    for message in batch.records {
        let message_id = message.message_id.clone().unwrap_or_default();
        let ended = tokio::spawn(work(message)).await;
        let failure = not_worked_off(message_id, ended);
        response.batch_item_failures.extend(failure);
    }
    response
}

/// The message that must be delivered again, if the task that worked on it failed. A panic's message may
/// quote data, so that it panicked is all that is said.
#[must_use]
pub fn not_worked_off<E: ToString>(
    message_id: String,
    ended: Result<Result<(), E>, JoinError>,
) -> Option<BatchItemFailure> {
    let reason = match ended {
        Ok(Ok(())) => return None,
        Ok(Err(failure)) => failure.to_string(),
        Err(_) => "the function panicked".to_owned(),
    };
    tracing::warn!(message_id, reason, "message not worked off");
    let mut failure = BatchItemFailure::default();
    failure.item_identifier = message_id;
    Some(failure)
}
