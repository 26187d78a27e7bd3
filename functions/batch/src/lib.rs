//! Many events at once: in one request, by the ingest queue ([`Ingest`]), or as files in the bucket
//! ([`Importer`]).
//!
//! However they come, each event goes into the table by itself (`intake.rs`), with one conditional write,
//! at a pace that the table bears (`pace.rs`). None is acknowledged before, and one that is refused
//! harms no other.

mod events;
mod imports;
mod ingest;
mod intake;
mod pace;

use aws_lambda_events::sqs::BatchItemFailure;
use tokio::task::JoinError;

pub use events::{MAX_BODY, MAX_EVENTS, routes};
pub use imports::{IMPORTS_URL, Importer, notification};
pub use ingest::{INGEST_DEAD_LETTERS_URL, Ingest, LAST_RECEIVES, TENANT};
pub use intake::Intake;

/// The message that must be delivered again, if the task that worked on it failed. A panic's message may
/// quote data, so that it panicked is all that is said.
fn not_worked_off<E: ToString>(
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
