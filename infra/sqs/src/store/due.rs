//! Messages that are due, and those among them that were received too often.

use rusqlite::{Rows, params};

use super::{
    Unit,
    queues::{self, Queue},
};
use crate::fault::Fault;

/// A redrive policy whose target exists. Without one, a message can be received any number of times.
pub(super) struct Redrive {
    pub(super) target: Queue,
    max_receives: i64,
    source_arn: String,
}

impl Redrive {
    pub(super) fn of(unit: &Unit<'_>, queue: &Queue) -> Result<Option<Self>, Fault> {
        let Some(policy) = &queue.attributes.redrive else {
            return Ok(None);
        };
        Ok(queues::dead_letter_queue(unit, policy)?.map(|target| Self {
            target,
            max_receives: policy.max_receives,
            source_arn: queue.name.arn(unit.region),
        }))
    }

    /// Moves a message to the target. Keeps its id, sending time and total receive count, and resets the count that the
    /// target's own policy limits.
    pub(super) fn move_on(&self, unit: &Unit<'_>, message: i64) -> Result<(), Fault> {
        unit.database
            .prepare_cached(
                "UPDATE message SET queue = ?2, visible_at = ?3, receives = 0, moved_from = ?4
                 WHERE number = ?1",
            )?
            .execute(params![
                message,
                self.target.number,
                unit.now,
                self.source_arn
            ])?;
        Ok(())
    }
}

/// Numbers of messages that are due.
#[derive(Default)]
pub(super) struct Due {
    pub(super) receivable: Vec<i64>,
    pub(super) exhausted: Vec<i64>,
}

/// Reads the index until there are enough to receive.
pub(super) fn due_rows(
    mut rows: Rows<'_>,
    redrive: Option<&Redrive>,
    most: usize,
) -> Result<Due, Fault> {
    let mut due = Due::default();
    while due.receivable.len() < most
        && let Some(row) = rows.next()?
    {
        let (number, receives): (i64, i64) = (row.get(0)?, row.get(1)?);
        match redrive {
            Some(redrive) if receives >= redrive.max_receives => due.exhausted.push(number),
            Some(_) | None => due.receivable.push(number),
        }
    }
    Ok(due)
}
