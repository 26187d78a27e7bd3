//! Queues: create, find, configure, count, purge and delete.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::Unit;
use crate::{
    fault::Fault,
    name::QueueName,
    queue_attributes::{QueueAttributes, RedrivePolicy},
};

/// A stored queue; times in milliseconds since 1970.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) number: i64,
    pub(crate) name: QueueName,
    pub(crate) created_at: i64,
    pub(crate) modified_at: i64,
    pub(crate) attributes: QueueAttributes,
}

/// The numbers of a queue's messages by state, exact at the time of counting.
#[derive(Debug)]
pub(crate) struct Counts {
    pub(crate) visible: i64,
    pub(crate) in_flight: i64,
    pub(crate) delayed: i64,
}

/// The queue of this name, or [`Fault::QueueDoesNotExist`].
pub(crate) fn find(unit: &Unit<'_>, name: &QueueName) -> Result<Queue, Fault> {
    look_up(unit, name)?.ok_or(Fault::QueueDoesNotExist)
}

/// The queue of this name if there is one.
pub(crate) fn look_up(unit: &Unit<'_>, name: &QueueName) -> Result<Option<Queue>, Fault> {
    unit.database
        .prepare_cached(
            "SELECT number, created_at, modified_at, visibility_timeout, retention, delay, wait,
                    max_message_size, redrive_policy
             FROM queue WHERE name = ?1",
        )?
        .query_row([name.as_str()], |row| Ok(read(row, name)))
        .optional()?
        .transpose()
}

fn read(row: &Row<'_>, name: &QueueName) -> Result<Queue, Fault> {
    let policy: Option<String> = row.get("redrive_policy")?;
    let attributes = QueueAttributes {
        visibility_timeout: row.get("visibility_timeout")?,
        retention: row.get("retention")?,
        delay: row.get("delay")?,
        wait: row.get("wait")?,
        max_message_size: row.get("max_message_size")?,
        redrive: policy.as_deref().map(RedrivePolicy::parse).transpose()?,
    };
    Ok(Queue {
        number: row.get("number")?,
        name: name.clone(),
        created_at: row.get("created_at")?,
        modified_at: row.get("modified_at")?,
        attributes,
    })
}

/// Creates a queue, or does nothing if one with all of these settings exists.
pub(crate) fn create(
    unit: &Unit<'_>,
    name: &QueueName,
    settings: &BTreeMap<String, String>,
) -> Result<(), Fault> {
    if let Some(queue) = look_up(unit, name)? {
        return agree(&queue.attributes, settings);
    }
    let attributes = QueueAttributes::default().with_all(settings)?;
    check_target(unit, &attributes)?;
    unit.database.execute(
        "INSERT INTO queue (name, created_at, modified_at, visibility_timeout, retention, delay,
                            wait, max_message_size, redrive_policy)
         VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            name.as_str(),
            unit.now,
            attributes.visibility_timeout,
            attributes.retention,
            attributes.delay,
            attributes.wait,
            attributes.max_message_size,
            attributes.redrive.as_ref().map(RedrivePolicy::to_json),
        ],
    )?;
    Ok(())
}

fn agree(stored: &QueueAttributes, settings: &BTreeMap<String, String>) -> Result<(), Fault> {
    for (name, value) in settings {
        if stored.clone().with(name, value)? != *stored {
            return Err(Fault::QueueNameExists(name.clone()));
        }
    }
    Ok(())
}

/// Changes settings of an existing queue; messages already sent keep their delay.
pub(crate) fn configure(
    unit: &Unit<'_>,
    name: &QueueName,
    settings: &BTreeMap<String, String>,
) -> Result<(), Fault> {
    let queue = find(unit, name)?;
    let attributes = queue.attributes.with_all(settings)?;
    if settings.contains_key("RedrivePolicy") {
        check_target(unit, &attributes)?;
    }
    unit.database.execute(
        "UPDATE queue SET modified_at = ?2, visibility_timeout = ?3, retention = ?4, delay = ?5,
                          wait = ?6, max_message_size = ?7, redrive_policy = ?8
         WHERE number = ?1",
        params![
            queue.number,
            unit.now,
            attributes.visibility_timeout,
            attributes.retention,
            attributes.delay,
            attributes.wait,
            attributes.max_message_size,
            attributes.redrive.as_ref().map(RedrivePolicy::to_json),
        ],
    )?;
    Ok(())
}

/// A dead-letter queue must exist when a policy names it, and may be deleted later.
fn check_target(unit: &Unit<'_>, attributes: &QueueAttributes) -> Result<(), Fault> {
    let Some(policy) = &attributes.redrive else {
        return Ok(());
    };
    match dead_letter_queue(unit, policy)? {
        Some(_) => Ok(()),
        None => Err(Fault::InvalidParameter(format!(
            "Value {} for parameter RedrivePolicy is invalid. \
             Reason: Dead letter target does not exist.",
            policy.to_json()
        ))),
    }
}

/// The queue a policy points to, if it exists.
pub(crate) fn dead_letter_queue(
    unit: &Unit<'_>,
    policy: &RedrivePolicy,
) -> Result<Option<Queue>, Fault> {
    match QueueName::of_arn(&policy.target, unit.region) {
        Some(name) => look_up(unit, &name),
        None => Ok(None),
    }
}

/// Names that begin with `prefix` and come after `after`, in order, at most `limit`.
pub(crate) fn list(
    unit: &Unit<'_>,
    prefix: &str,
    after: &str,
    limit: i64,
) -> Result<Vec<QueueName>, Fault> {
    let mut statement = unit.database.prepare_cached(
        "SELECT name FROM queue
         WHERE name > ?2 AND substr(name, 1, length(?1)) = ?1 ORDER BY name LIMIT ?3",
    )?;
    let names = statement.query_map(params![prefix, after, limit], |row| row.get(0))?;
    Ok(names
        .map(|name| name.map(QueueName::stored))
        .collect::<Result<_, _>>()?)
}

/// Counts a queue's messages. Takes time in proportion to their number, by index alone.
pub(crate) fn count(unit: &Unit<'_>, queue: &Queue) -> Result<Counts, Fault> {
    expire(
        unit.database,
        queue.number,
        cutoff(unit.now, queue.attributes.retention),
    )?;
    let mut statement = unit.database.prepare_cached(
        "SELECT count(*) FILTER (WHERE visible_at <= ?2),
                count(*) FILTER (WHERE visible_at > ?2 AND receives > 0),
                count(*) FILTER (WHERE visible_at > ?2 AND receives = 0)
         FROM message WHERE queue = ?1",
    )?;
    Ok(statement.query_row([queue.number, unit.now], |row| {
        Ok(Counts {
            visible: row.get(0)?,
            in_flight: row.get(1)?,
            delayed: row.get(2)?,
        })
    })?)
}

/// Removes all messages of a queue.
pub(crate) fn purge(unit: &Unit<'_>, name: &QueueName) -> Result<(), Fault> {
    let queue = find(unit, name)?;
    unit.database
        .execute("DELETE FROM message WHERE queue = ?1", [queue.number])?;
    Ok(())
}

/// Deletes a queue and its messages.
pub(crate) fn delete(unit: &mut Unit<'_>, name: &QueueName) -> Result<(), Fault> {
    let queue = find(unit, name)?;
    unit.database
        .execute("DELETE FROM queue WHERE number = ?1", [queue.number])?;
    unit.changed.insert(queue.name);
    Ok(())
}

/// Removes a queue's messages that were sent at or before `cutoff`.
pub(super) fn expire(database: &Connection, queue: i64, cutoff: i64) -> rusqlite::Result<usize> {
    database
        .prepare_cached("DELETE FROM message WHERE queue = ?1 AND sent_at <= ?2")?
        .execute([queue, cutoff])
}

/// The sending time at or before which messages are past a retention in seconds.
pub(super) fn cutoff(now: i64, retention: i64) -> i64 {
    now.saturating_sub(retention.saturating_mul(1_000))
}

/// Removes messages past their retention from all queues.
pub(crate) fn sweep(database: &Connection, now: i64) -> rusqlite::Result<()> {
    let mut statement = database.prepare_cached("SELECT number, retention FROM queue")?;
    let queues = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (queue, retention) in queues.collect::<Result<Vec<_>, _>>()? {
        expire(database, queue, cutoff(now, retention))?;
    }
    Ok(())
}
