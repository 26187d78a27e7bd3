//! Several writes, all of them or none.

use std::time::Duration;

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{ReturnConsumedCapacity, TransactWriteItem};
use backon::{BackoffBuilder, ExponentialBuilder};

use crate::{Error, Store};

/// The pauses before a transaction is tried again, when others touch the same rows at the same moment.
const PAUSES: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(40))
    .with_max_times(7)
    .with_jitter();

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
        let mut pauses = PAUSES.build();
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
            match pauses.next() {
                Some(pause) if conflict => tokio::time::sleep(pause).await,
                _ => return Err(Error::unavailable("TransactWriteItems", &error)),
            }
        }
    }
}
