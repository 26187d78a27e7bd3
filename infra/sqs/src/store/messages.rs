//! Messages: sent, deleted, and hidden for longer or shorter.

use rusqlite::{OptionalExtension, params};
use uuid::Uuid;

use super::{Unit, queues::Queue};
use crate::{digest, fault::Fault, message::Draft, receipt::Receipt};

/// The longest a message may stay hidden after one receive, in milliseconds.
const MAX_HIDDEN: i64 = 43_200_000;

/// What the response to its sender contains of a stored message.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) id: Uuid,
    pub(crate) md5_of_body: String,
    pub(crate) md5_of_attributes: Option<String>,
}

/// Stores a message; it can be received once its delay is over.
pub(crate) fn send(unit: &mut Unit<'_>, queue: &Queue, draft: &Draft) -> Result<Sent, Fault> {
    let limit = queue.attributes.max_message_size;
    if i64::try_from(draft.size()).map_or(true, |size| size > limit) {
        return Err(Fault::InvalidParameter(format!(
            "One or more parameters are invalid. Reason: Message must be shorter than {limit} bytes."
        )));
    }
    let delay = draft.delay.unwrap_or(queue.attributes.delay);
    unit.database
        .prepare_cached(
            "INSERT INTO message (queue, sent_at, visible_at, group_name) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![
            queue.number,
            unit.now,
            unit.now + delay * 1_000,
            draft.group
        ])?;
    let id = insert_content(unit, unit.database.last_insert_rowid(), draft)?;
    unit.changed.insert(queue.name.clone());
    Ok(Sent {
        id,
        md5_of_body: digest::of_body(&draft.body),
        md5_of_attributes: digest::of_attributes(&draft.attributes),
    })
}

fn insert_content(unit: &Unit<'_>, message: i64, draft: &Draft) -> Result<Uuid, Fault> {
    let attributes = (!draft.attributes.is_empty())
        .then(|| serde_json::to_string(&draft.attributes.to_wire()))
        .transpose()
        .map_err(|_| Fault::Corrupt("message attributes could not be written"))?;
    let id = Uuid::new_v4();
    unit.database
        .prepare_cached(
            "INSERT INTO content (message, id, body, attributes) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![message, id.to_string(), draft.body, attributes])?;
    Ok(id)
}

/// Deletes a message by a handle of any of its receives from this queue. Does nothing if the message
/// was deleted or has moved to the dead-letter queue.
pub(crate) fn delete(unit: &Unit<'_>, queue: &Queue, handle: &str) -> Result<(), Fault> {
    let receipt = receipt(queue, handle)?;
    unit.database
        .prepare_cached("DELETE FROM message WHERE number = ?1 AND queue = ?2")?
        .execute([receipt.message, queue.number])?;
    Ok(())
}

/// Hides a message for `timeout` seconds from now. Only by the handle of its last receive and
/// while that is in flight: an earlier receiver must not shorten the current one's time.
pub(crate) fn change_visibility(
    unit: &mut Unit<'_>,
    queue: &Queue,
    handle: &str,
    timeout: i64,
) -> Result<(), Fault> {
    let receipt = receipt(queue, handle)?;
    let in_flight = unit
        .database
        .prepare_cached(
            "SELECT receive_count, visible_at, last_received_at FROM message
             WHERE number = ?1 AND queue = ?2",
        )?
        .query_row([receipt.message, queue.number], |row| {
            let (count, visible_at): (i64, i64) = (row.get(0)?, row.get(1)?);
            let received_at: Option<i64> = row.get(2)?;
            Ok(received_at.filter(|_| count == receipt.receive && visible_at > unit.now))
        })
        .optional()?
        .ok_or_else(|| {
            Fault::InvalidParameter(format!(
                "Value {handle} for parameter ReceiptHandle is invalid. Reason: Message does not \
                 exist or is not available for visibility timeout change."
            ))
        })?;
    let received_at = in_flight.ok_or(Fault::MessageNotInflight)?;
    let visible_at = unit.now + timeout * 1_000;
    if visible_at - received_at > MAX_HIDDEN {
        return Err(Fault::InvalidParameter(format!(
            "Value {timeout} for parameter VisibilityTimeout is invalid. Reason: Total \
             VisibilityTimeout for the message is beyond the limit [43200 seconds]."
        )));
    }
    unit.database
        .prepare_cached("UPDATE message SET visible_at = ?2 WHERE number = ?1")?
        .execute([receipt.message, visible_at])?;
    unit.changed.insert(queue.name.clone());
    Ok(())
}

/// A handle is only good for the queue it was received from.
fn receipt(queue: &Queue, handle: &str) -> Result<Receipt, Fault> {
    let receipt = Receipt::decode(handle)?;
    if receipt.queue == queue.number {
        Ok(receipt)
    } else {
        Err(Fault::ReceiptHandleIsInvalid)
    }
}
