//! Fair queues: the messages of a queue whose sender names groups, a tenant each for example, are shared out among
//! the groups, so that one with a long backlog does not keep the others waiting.
//!
//! SQS delivers messages of quiet groups before those of noisy ones; a group is noisy by its share of the messages in
//! flight and of the consumers' time. This engine serves the group with the fewest messages in flight first, and of
//! several the one that was served least recently. A message without a group is a group of its own.

use std::collections::BTreeSet;

use rusqlite::params;

use super::{
    Unit,
    due::{Due, Redrive, due_rows},
    queues::Queue,
};
use crate::fault::Fault;

/// Added to the tables of the first version.
pub(super) const SCHEMA: &str = "
ALTER TABLE message ADD COLUMN group_name TEXT;

CREATE INDEX message_by_group ON message (queue, group_name, visible_at, number, receives)
WHERE group_name IS NOT NULL;

-- When the groups of a queue were served last, by a number that grows.
CREATE TABLE served (
    queue               INTEGER NOT NULL REFERENCES queue ON DELETE CASCADE,
    group_name          TEXT NOT NULL,
    at                  INTEGER NOT NULL,
    PRIMARY KEY (queue, group_name)
) STRICT, WITHOUT ROWID;
";

/// The groups that have messages in a queue, with one index lookup for each.
const GROUPS: &str = "
    WITH RECURSIVE groups(name) AS (
        SELECT min(group_name) FROM message WHERE queue = ?1 AND group_name IS NOT NULL
        UNION ALL
        SELECT (SELECT min(group_name) FROM message WHERE queue = ?1 AND group_name > groups.name)
        FROM groups WHERE groups.name IS NOT NULL
    )
    SELECT name,
           (SELECT count(*) FROM message
            WHERE queue = ?1 AND group_name = name AND visible_at > ?2 AND receives > 0) AS in_flight,
           coalesce((SELECT at FROM served WHERE queue = ?1 AND group_name = name), 0) AS served
    FROM groups WHERE name IS NOT NULL ORDER BY in_flight, served, name";

const DUE_WITHOUT_GROUP: &str = "
    SELECT number, receives FROM message
    WHERE queue = ?1 AND visible_at <= ?2 AND group_name IS NULL ORDER BY visible_at, number";

const DUE_OF_GROUP: &str = "
    SELECT number, receives FROM message
    WHERE queue = ?1 AND visible_at <= ?2 AND group_name = ?3 ORDER BY visible_at, number";

/// A group with messages that are due.
struct Group {
    name: String,
    in_flight: i64,
    served: i64,
    /// In reverse order, so that `pop` returns the next one.
    due: Vec<i64>,
}

/// Whether a queue has messages with a group.
pub(super) fn any(unit: &Unit<'_>, queue: &Queue) -> Result<bool, Fault> {
    let any = "SELECT EXISTS (SELECT 1 FROM message WHERE queue = ?1 AND group_name IS NOT NULL)";
    Ok(unit
        .database
        .prepare_cached(any)?
        .query_row([queue.number], |row| row.get(0))?)
}

/// The due messages of a queue with groups, in the order of delivery.
pub(super) fn due(
    unit: &Unit<'_>,
    queue: &Queue,
    redrive: Option<&Redrive>,
    most: usize,
) -> Result<Due, Fault> {
    let mut statement = unit.database.prepare_cached(DUE_WITHOUT_GROUP)?;
    let rows = statement.query([queue.number, unit.now])?;
    let mut due = due_rows(rows, redrive, most)?;
    let mut waiting = waiting(unit, queue, most)?;
    for group in &mut waiting {
        let mut statement = unit.database.prepare_cached(DUE_OF_GROUP)?;
        let rows = statement.query(params![queue.number, unit.now, group.name])?;
        let of_group = due_rows(rows, redrive, most)?;
        due.exhausted.extend(of_group.exhausted);
        group.due = of_group.receivable;
        group.due.reverse();
    }
    let mut served = BTreeSet::new();
    while due.receivable.len() < most
        && let Some(next) = (waiting.iter_mut())
            .filter(|group| !group.due.is_empty())
            .min_by_key(|group| (group.in_flight, group.served))
        && let Some(message) = next.due.pop()
    {
        next.in_flight += 1;
        due.receivable.push(message);
        served.insert(next.name.clone());
    }
    for name in served {
        serve(unit, queue, &name)?;
    }
    Ok(due)
}

/// The first groups with due messages, no more than can be served.
fn waiting(unit: &Unit<'_>, queue: &Queue, most: usize) -> Result<Vec<Group>, Fault> {
    let mut groups = unit.database.prepare_cached(GROUPS)?;
    let mut has_due = unit.database.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM message WHERE queue = ?1 AND group_name = ?3 AND visible_at <= ?2)",
    )?;
    let mut rows = groups.query([queue.number, unit.now])?;
    let mut waiting = Vec::new();
    while waiting.len() < most
        && let Some(row) = rows.next()?
    {
        let name: String = row.get("name")?;
        if has_due.query_row(params![queue.number, unit.now, name], |row| row.get(0))? {
            waiting.push(Group {
                name,
                in_flight: row.get("in_flight")?,
                served: row.get("served")?,
                due: Vec::new(),
            });
        }
    }
    Ok(waiting)
}

fn serve(unit: &Unit<'_>, queue: &Queue, name: &str) -> Result<(), Fault> {
    unit.database
        .prepare_cached(
            "INSERT INTO served (queue, group_name, at)
             VALUES (?1, ?2, (SELECT coalesce(max(at), 0) + 1 FROM served WHERE queue = ?1))
             ON CONFLICT DO UPDATE SET at = excluded.at",
        )?
        .execute(params![queue.number, name])?;
    Ok(())
}
