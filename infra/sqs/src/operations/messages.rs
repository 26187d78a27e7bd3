//! Operations on messages other than receiving them, alone and in batches.

use crate::{
    Sqs,
    fault::Fault,
    message::{Draft, MAX_SIZE},
    name::QueueName,
    store::{
        Unit,
        messages::{self, Sent},
        queues::{self, Queue},
    },
    wire::{
        request::{
            Batch, ChangeMessageVisibility, DeleteMessage, Deletion, Entry, Outgoing, SendMessage,
            VisibilityChange,
        },
        response::{self, Empty, Outcomes},
    },
};

/// The longest a message may be hidden, in seconds.
const MAX_TIMEOUT: i64 = 43_200;

impl Sqs {
    pub(crate) async fn send_message(&self, request: SendMessage) -> Result<response::Sent, Fault> {
        let name = QueueName::of_url(&request.queue_url);
        let draft = request.message.draft()?;
        let sent = self
            .writer
            .run(move |unit| {
                let queue = queues::find(unit, &name)?;
                messages::send(unit, &queue, &draft)
            })
            .await?;
        Ok(sent.into())
    }

    pub(crate) async fn send_message_batch(
        &self,
        request: Batch<Outgoing>,
    ) -> Result<Outcomes<response::Sent>, Fault> {
        let (queue, entries) = request.check()?;
        let drafts: Vec<Entry<_>> = entries
            .into_iter()
            .map(|Entry { id, item }| Entry {
                id,
                item: item.draft(),
            })
            .collect();
        let sent = drafts
            .iter()
            .filter_map(|entry| entry.item.as_ref().ok())
            .map(Draft::size)
            .sum();
        if sent > MAX_SIZE {
            return Err(Fault::BatchTooLong {
                limit: MAX_SIZE,
                sent,
            });
        }
        self.run_batch(queue, drafts, |unit, queue, draft| {
            messages::send(unit, queue, &draft?).map(Into::into)
        })
        .await
    }

    pub(crate) async fn delete_message(&self, request: DeleteMessage) -> Result<Empty, Fault> {
        let name = QueueName::of_url(&request.queue_url);
        self.writer
            .run(move |unit| {
                let queue = queues::find(unit, &name)?;
                delete(unit, &queue, &request.deletion)
            })
            .await
    }

    pub(crate) async fn delete_message_batch(
        &self,
        request: Batch<Deletion>,
    ) -> Result<Outcomes<Empty>, Fault> {
        let (queue, entries) = request.check()?;
        self.run_batch(queue, entries, |unit, queue, deletion| {
            delete(unit, queue, &deletion)
        })
        .await
    }

    pub(crate) async fn change_message_visibility(
        &self,
        request: ChangeMessageVisibility,
    ) -> Result<Empty, Fault> {
        let name = QueueName::of_url(&request.queue_url);
        self.writer
            .run(move |unit| {
                let queue = queues::find(unit, &name)?;
                change_visibility(unit, &queue, &request.change)
            })
            .await
    }

    pub(crate) async fn change_message_visibility_batch(
        &self,
        request: Batch<VisibilityChange>,
    ) -> Result<Outcomes<Empty>, Fault> {
        let (queue, entries) = request.check()?;
        self.run_batch(queue, entries, |unit, queue, change| {
            change_visibility(unit, queue, &change)
        })
        .await
    }
}

fn delete(unit: &mut Unit<'_>, queue: &Queue, deletion: &Deletion) -> Result<Empty, Fault> {
    messages::delete(unit, queue, &deletion.receipt_handle)?;
    Ok(Empty {})
}

fn change_visibility(
    unit: &mut Unit<'_>,
    queue: &Queue,
    change: &VisibilityChange,
) -> Result<Empty, Fault> {
    let timeout = change
        .visibility_timeout
        .ok_or(Fault::MissingParameter("VisibilityTimeout"))?;
    check_timeout(timeout)?;
    messages::change_visibility(unit, queue, &change.receipt_handle, timeout)?;
    Ok(Empty {})
}

/// Seconds for which a message may be hidden.
pub(super) fn check_timeout(timeout: i64) -> Result<(), Fault> {
    if (0..=MAX_TIMEOUT).contains(&timeout) {
        return Ok(());
    }
    Err(Fault::InvalidParameter(format!(
        "Value {timeout} for parameter VisibilityTimeout is invalid. \
         Reason: VisibilityTimeout must be an integer between 0 and {MAX_TIMEOUT}."
    )))
}

impl Outgoing {
    fn draft(self) -> Result<Draft, Fault> {
        if self.message_deduplication_id.is_some() {
            return Err(Fault::Unsupported(
                "MessageDeduplicationId, of FIFO queues,".to_owned(),
            ));
        }
        if self
            .message_system_attributes
            .is_some_and(|system| !system.is_empty())
        {
            return Err(Fault::Unsupported("A message system attribute".to_owned()));
        }
        let attributes = self.message_attributes.unwrap_or_default();
        Draft::parse(self.message_body, attributes, self.delay_seconds)?
            .of_group(self.message_group_id)
    }
}

impl From<Sent> for response::Sent {
    fn from(sent: Sent) -> Self {
        Self {
            message_id: sent.id.to_string(),
            md5_of_message_body: sent.md5_of_body,
            md5_of_message_attributes: sent.md5_of_attributes,
        }
    }
}
