//! Receiving: which messages are due, which of them have been received too often, and the rest.

use std::collections::BTreeMap;

use rusqlite::Row;

use super::{
    Unit,
    due::{Due, Redrive, due_rows},
    groups,
    queues::{self, Queue},
};
use crate::{
    fault::Fault,
    message_attributes::{MessageAttributes, WireAttribute},
    name::QueueName,
    receipt::Receipt,
};

/// The index alone serves it, in its order, for any number of messages.
pub(super) const DUE: &str = "
    SELECT number, receives FROM message
    WHERE queue = ?1 AND visible_at <= ?2 ORDER BY visible_at, number";

/// The parameters of one receive.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) queue: QueueName,
    /// 1 to 10.
    pub(crate) most: usize,
    /// Seconds; `None` is the queue's own timeout.
    pub(crate) visibility_timeout: Option<i64>,
}

/// The result of one receive.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) messages: Vec<Received>,
    /// How long this queue's receives wait by default, in seconds.
    pub(crate) wait: i64,
    /// In how many milliseconds the next hidden message becomes visible; only asked when there
    /// were no messages.
    pub(crate) next_in: Option<i64>,
}

/// A message as received; times in milliseconds since 1970.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) receipt: Receipt,
    pub(crate) id: String,
    pub(crate) body: String,
    pub(crate) attributes: MessageAttributes,
    pub(crate) sent_at: i64,
    pub(crate) first_received_at: i64,
    pub(crate) receive_count: i64,
    pub(crate) moved_from: Option<String>,
    pub(crate) group: Option<String>,
}

/// Receives due messages, and moves those that were received too often to the DLQ.
pub(crate) fn look(unit: &mut Unit<'_>, order: &Order) -> Result<Look, Fault> {
    let queue = queues::find(unit, &order.queue)?;
    let cutoff = queues::cutoff(unit.now, queue.attributes.retention);
    queues::expire(unit.database, queue.number, cutoff)?;
    let redrive = Redrive::of(unit, &queue)?;
    // First read, then write: a message received with a timeout of zero is due again at once.
    let due = due(unit, &queue, redrive.as_ref(), order.most)?;
    if let Some(redrive) = &redrive
        && !due.exhausted.is_empty()
    {
        for message in due.exhausted {
            redrive.move_on(unit, message)?;
        }
        unit.changed.insert(redrive.target.name.clone());
    }
    let timeout = order
        .visibility_timeout
        .unwrap_or(queue.attributes.visibility_timeout);
    let messages = due
        .receivable
        .into_iter()
        .map(|message| receive(unit, &queue, message, timeout))
        .collect::<Result<Vec<_>, _>>()?;
    let next_in = if messages.is_empty() {
        next_in(unit, &queue)?
    } else {
        None
    };
    Ok(Look {
        messages,
        wait: queue.attributes.wait,
        next_in,
    })
}

/// Due messages, the longest due first, unless the queue has groups.
fn due(
    unit: &Unit<'_>,
    queue: &Queue,
    redrive: Option<&Redrive>,
    most: usize,
) -> Result<Due, Fault> {
    if groups::any(unit, queue)? {
        return groups::due(unit, queue, redrive, most);
    }
    let mut statement = unit.database.prepare_cached(DUE)?;
    due_rows(statement.query([queue.number, unit.now])?, redrive, most)
}

fn receive(unit: &Unit<'_>, queue: &Queue, message: i64, timeout: i64) -> Result<Received, Fault> {
    unit.database
        .prepare_cached(
            "UPDATE message SET visible_at = ?3, receives = receives + 1,
                    receive_count = receive_count + 1, last_received_at = ?2,
                    first_received_at = coalesce(first_received_at, ?2)
             WHERE number = ?1",
        )?
        .execute([message, unit.now, unit.now + timeout * 1_000])?;
    let (received, attributes) = unit
        .database
        .prepare_cached(
            "SELECT id, body, attributes, sent_at, first_received_at, receive_count, moved_from,
                    group_name FROM message JOIN content ON content.message = message.number WHERE number = ?1",
        )?
        .query_row([message], |row| read(row, queue.number, message))?;
    let attributes = attributes
        .as_deref()
        .map(stored_attributes)
        .transpose()?
        .unwrap_or_default();
    Ok(Received {
        attributes,
        ..received
    })
}

fn read(row: &Row<'_>, queue: i64, message: i64) -> rusqlite::Result<(Received, Option<String>)> {
    let receive_count = row.get("receive_count")?;
    let received = Received {
        receipt: Receipt {
            queue,
            message,
            receive: receive_count,
        },
        id: row.get("id")?,
        body: row.get("body")?,
        attributes: MessageAttributes::default(),
        sent_at: row.get("sent_at")?,
        first_received_at: row.get("first_received_at")?,
        receive_count,
        moved_from: row.get("moved_from")?,
        group: row.get("group_name")?,
    };
    Ok((received, row.get("attributes")?))
}

fn stored_attributes(json: &str) -> Result<MessageAttributes, Fault> {
    let wire: BTreeMap<String, WireAttribute> = serde_json::from_str(json)
        .map_err(|_| Fault::Corrupt("stored message attributes could not be read"))?;
    MessageAttributes::parse(wire)
        .map_err(|_| Fault::Corrupt("stored message attributes break today's rules"))
}

fn next_in(unit: &Unit<'_>, queue: &Queue) -> Result<Option<i64>, Fault> {
    let next: Option<i64> = unit
        .database
        .prepare_cached("SELECT min(visible_at) FROM message WHERE queue = ?1 AND visible_at > ?2")?
        .query_row([queue.number, unit.now], |row| row.get(0))?;
    Ok(next.map(|visible_at| visible_at - unit.now))
}
