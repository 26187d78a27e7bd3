//! Several writes, all of them or none.

use std::time::Duration;

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{ReturnConsumedCapacity, TransactWriteItem};
use uuid::Uuid;

use crate::{Error, Store};

/// How often a transaction is tried when others touch the same rows at the same moment.
const CONFLICTS: u32 = 8;
/// The pause after the first of these, at most; it doubles with each.
const PAUSE: Duration = Duration::from_millis(40);

/// What became of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Transacted {
    /// All of it stands.
    Done,
    /// None of it does; for each write whether its condition held.
    Refused(Vec<bool>),
}

/// What to say of a write that lacks something.
pub(crate) fn unbuilt(what: &'static str) -> impl Fn(BuildError) -> Error {
    move |error| Error::unreadable(what, error.to_string())
}

impl Store {
    /// Writes all or nothing. One call, and twice the writes.
    pub(crate) async fn transact(
        &self,
        items: Vec<TransactWriteItem>,
    ) -> Result<Transacted, Error> {
        let mut tried = 0;
        loop {
            let written = self
                .client
                .transact_write_items()
                .set_transact_items(Some(items.clone()))
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
                .await;
            let Err(error) = written else {
                return Ok(Transacted::Done);
            };
            tried += 1;
            let cancelled = match error.as_service_error() {
                Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => {
                    cancelled.cancellation_reasons()
                }
                _ => &[],
            };
            let codes: Vec<_> = cancelled.iter().map(|reason| reason.code()).collect();
            let failed = |code: Option<&str>| code == Some("ConditionalCheckFailed");
            if codes.iter().any(|code| failed(*code)) {
                let held = codes.iter().map(|code| !failed(*code));
                return Ok(Transacted::Refused(held.collect()));
            }
            // Writers that meet get in each other's way, and the SDK does not try again what was cancelled.
            let conflict = codes.contains(&Some("TransactionConflict"));
            if !conflict || tried == CONFLICTS {
                return Err(Error::unavailable("TransactWriteItems", &error));
            }
            let (chance, ..) = Uuid::new_v4().as_fields();
            tokio::time::sleep(PAUSE * (1 << tried) * (64 + chance % 64) / 128).await;
        }
    }
}
