//! Sends imported events to the signal generator, through a queue of their own. A line is settled after its message is
//! sent.
//!
//! If a worker crashes between the two, the next worker on the piece stores the event again with the same token, and
//! sends the message. So each event has at least one message, as it has from the table's stream.

use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use futures::future::{BoxFuture, FutureExt};
use hearback_domain::identity::identifier::TenantId;
use hearback_storage::imports::message_group;

use super::line::NumberedOutcome;
use super::{BATCH, Failure, Importer, not_sent};

/// The maximum size of the messages of one call, in bytes.
const MAX_BYTES: usize = 1024 * 1024;

/// Lines whose events are stored but not sent.
#[derive(Default)]
pub(super) struct Unsent {
    lines: Vec<NumberedOutcome>,
    messages: Vec<String>,
    bytes: usize,
}

impl Unsent {
    /// Whether the call has room for another message.
    pub(super) fn has_room(&self, message: &str) -> bool {
        self.lines.len() < BATCH && self.bytes + message.len() <= MAX_BYTES
    }

    pub(super) fn push(&mut self, line: NumberedOutcome, message: String) {
        self.bytes += message.len();
        self.lines.push(line);
        self.messages.push(message);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Sends the messages with one call, and returns their lines.
    pub(super) fn send<'a>(
        self,
        importer: &'a Importer,
        tenant: &TenantId,
    ) -> BoxFuture<'a, Result<Vec<NumberedOutcome>, Failure>> {
        let group = message_group(tenant);
        async move {
            let entries = self.messages.into_iter().enumerate().map(|(at, body)| {
                SendMessageBatchRequestEntry::builder()
                    .id(at.to_string())
                    .message_body(body)
                    .message_group_id(&group)
                    .build()
                    .map_err(|_| not_sent("no message"))
            });
            let entries = entries.collect::<Result<_, _>>()?;
            let queues = &importer.queues;
            queues.send(&queues.signals_bulk, entries).await?;
            Ok(self.lines)
        }
        .boxed()
    }
}
