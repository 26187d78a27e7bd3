//! What a function answers that a queue triggers.

use aws_lambda_events::sqs::BatchItemFailure;
use tokio::task::JoinError;

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
