//! Removing what was found of a person, so that each thing is counted once.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_sdk_dynamodb::types::builders::UpdateBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, Delete, ReturnConsumedCapacity, TransactWriteItem};
use chrono::{DateTime, Utc};
use hearback_domain::erasure::{Erasure, Kind};
use hearback_domain::event::EventCore;
use hearback_domain::turn::{TurnCore, TurnRef};

use super::{ERASURE, Owner, number};
use crate::reads::Key;
use crate::table::{PK, SK};
use crate::transactions::{Transacted, unbuilt};
use crate::versions::Listed;
use crate::{Blobs, Error, Store, keys};

/// Things that are removed in one transaction. It takes 100 rows and 4 MB at most; one of these has up
/// to four rows, and 400 KB.
const UNITS: usize = 8;

/// Rows that go together, and count as one thing if the first of them is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    pub(super) first: Key,
    others: Vec<Key>,
    /// What the first must say to be meant.
    core: Option<String>,
}

impl Unit {
    /// These rows, of which the first tells whether it is there.
    pub(super) fn of(first: Key, others: impl IntoIterator<Item = Key>) -> Self {
        Self {
            first,
            others: others.into_iter().collect(),
            core: None,
        }
    }

    /// A turn's own row, as long as it is of this registration.
    pub fn turn(turn: &TurnCore) -> Result<Self, Error> {
        let core =
            serde_json::to_string(turn).map_err(|error| Error::undecodable("turn", &error))?;
        let at = &turn.at;
        let row = (keys::conversation(&at.within), keys::turn(&at.turn));
        Ok(Self {
            core: Some(core),
            ..Self::of(row, [])
        })
    }

    /// An event that was not worked off, as long as it is the one that was received then: its user may have
    /// sent it again since.
    pub fn event(event: &EventCore) -> Result<Self, Error> {
        let core =
            serde_json::to_string(event).map_err(|error| Error::undecodable("event", &error))?;
        let partition = keys::event(&event.tenant, event.feedback_id);
        Ok(Self {
            core: Some(core),
            ..Self::event_in(&partition, None)
        })
    }

    pub(super) fn event_in(partition: &str, claim: Option<Key>) -> Self {
        let row = |kind: &str| (partition.to_owned(), kind.to_owned());
        let others = [row(keys::RESULT), row(keys::RETRACTION)];
        Self::of(row(keys::EVENT), others.into_iter().chain(claim))
    }

    fn rows(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Units of which no two have a first row in common: a transaction takes no row twice.
    fn merged(units: Vec<Self>) -> Vec<Self> {
        let mut merged: BTreeMap<Key, Self> = BTreeMap::new();
        for unit in units {
            match merged.entry(unit.first.clone()) {
                Entry::Vacant(free) => _ = free.insert(unit),
                Entry::Occupied(mut known) => {
                    let others = &mut known.get_mut().others;
                    others.extend(unit.others);
                    others.sort();
                    others.dedup();
                }
            }
        }
        merged.into_values().collect()
    }
}

impl Store {
    /// Removes things and counts those that are there, a few in one transaction, so that each counts once
    /// however often this is repeated. Answers how many there were. The erasure must be there, and if one is
    /// given be that one, and open: what came after it is nobody's to remove.
    pub async fn erase(
        &self,
        owner: Owner<'_>,
        open: Option<&Erasure>,
        kind: Kind,
        units: Vec<Unit>,
    ) -> Result<u64, Error> {
        let counted = self.counted(owner, open)?;
        let units = Unit::merged(units);
        let mut removed = 0;
        for some in units.chunks(UNITS) {
            let mut there = some.to_vec();
            while !there.is_empty() {
                match self
                    .transact(self.removal(counted.clone(), kind, &there)?)
                    .await?
                {
                    Transacted::Done => {
                        removed += u64::try_from(there.len()).unwrap_or(u64::MAX);
                        break;
                    }
                    // In the order of the rows, of which each unit's first has a condition.
                    Transacted::Refused(held) => {
                        let mut at = 0;
                        let missing: Vec<_> = there
                            .extract_if(.., |unit| {
                                let first = at;
                                at += unit.rows().count();
                                held.get(first).is_some_and(|held| !held)
                            })
                            .collect();
                        if missing.is_empty() {
                            return Err(Error::unreadable(ERASURE, "it is not there, or done"));
                        }
                        // Who must say something to be meant, and does not, is not.
                        let missing = missing.into_iter();
                        let missing = missing.filter(|unit| unit.core.is_none());
                        self.remove(missing.collect()).await?;
                    }
                }
            }
        }
        Ok(removed)
    }

    fn removal(
        &self,
        counted: UpdateBuilder,
        kind: Kind,
        units: &[Unit],
    ) -> Result<Vec<TransactWriteItem>, Error> {
        let mut items = Vec::new();
        for unit in units {
            for (at, (pk, sk)) in unit.rows().enumerate() {
                let delete = Delete::builder()
                    .table_name(&self.table)
                    .key(PK, AttributeValue::S(pk.clone()))
                    .key(SK, AttributeValue::S(sk.clone()));
                let delete = match &unit.core {
                    _ if at > 0 => delete,
                    None => delete.condition_expression("attribute_exists(PK)"),
                    Some(core) => delete
                        .condition_expression("core = :core")
                        .expression_attribute_values(":core", AttributeValue::S(core.clone())),
                };
                let delete = delete.build().map_err(unbuilt(ERASURE))?;
                items.push(TransactWriteItem::builder().delete(delete).build());
            }
        }
        let count = counted
            .expression_attribute_names("#count", kind.as_str())
            .expression_attribute_values(":count", number(units.len()));
        let count = count.build().map_err(unbuilt(ERASURE))?;
        items.push(TransactWriteItem::builder().update(count).build());
        Ok(items)
    }

    /// Removes rows, whether or not they are there. A call for each, and a write for each KB.
    pub async fn remove(&self, units: Vec<Unit>) -> Result<(), Error> {
        for (pk, sk) in units.iter().flat_map(Unit::rows) {
            self.client
                .delete_item()
                .table_name(&self.table)
                .key(PK, AttributeValue::S(pk.clone()))
                .key(SK, AttributeValue::S(sk.clone()))
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
                .await
                .map_err(|error| Error::unavailable("DeleteItem", &error))?;
        }
        Ok(())
    }
}

impl Blobs {
    /// Deletes for good the versions of a turn's log that were stored up to an instant, and what was
    /// deleted before, but not the one that counts, if any does. Answers whether anything younger is left,
    /// which may be on its way into the turn's row.
    pub async fn delete_old_turn_logs(
        &self,
        at: &TurnRef,
        until: DateTime<Utc>,
        current: Option<&str>,
    ) -> Result<bool, Error> {
        let logs = keys::turn_logs(at);
        self.delete_older_versions(&logs, |_| false).await?;
        let left = AtomicBool::new(false);
        let spare = |log: &Listed| {
            let counts = current.is_some_and(|current| self.uri(&log.key) == current);
            let young = !counts && log.modified > until;
            left.fetch_or(young, Ordering::Relaxed);
            counts || young
        };
        self.delete_versions(&logs, spare).await?;
        Ok(left.into_inner())
    }
}
