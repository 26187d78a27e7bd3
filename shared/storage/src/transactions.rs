//! Transactions: several writes that succeed or fail together.

use std::time::Duration;

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{ReturnConsumedCapacity, TransactWriteItem};
use backon::{BackoffBuilder, ExponentialBuilder};

use crate::{Error, Store};

/// The pauses before a transaction is retried after a conflict with another one.
const PAUSES: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(40))
    .with_max_times(7)
    .with_jitter();

/// The outcome of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Transacted {
    /// All writes are applied.
    Committed,
    /// No write is applied. For each write, whether its condition was true.
    Rejected(Vec<bool>),
}

/// The error of a write whose request could not be built.
pub(crate) fn invalid_request(what: &'static str) -> impl Fn(BuildError) -> Error {
    move |error| Error::unreadable(what, error.to_string())
}

impl Store {
    /// Executes a transaction. One call, and two writes for each item.
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
                return Ok(Transacted::Committed);
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
                let conditions = codes.iter().map(|code| !failed(*code));
                return Ok(Transacted::Rejected(conditions.collect()));
            }
            // The SDK does not retry a transaction that was canceled by a conflict.
            let conflict = codes.contains(&Some("TransactionConflict"));
            match pauses.next() {
                Some(pause) if conflict => tokio::time::sleep(pause).await,
                _ => return Err(Error::unavailable("TransactWriteItems", &error)),
            }
        }
    }
}
