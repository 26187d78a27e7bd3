//! Removes a user's data, and counts each item once.

use hearback_domain::identity::identifier::UserRef;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_sdk_dynamodb::types::builders::UpdateBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, Delete, ReturnConsumedCapacity, TransactWriteItem};
use chrono::{DateTime, Utc};
use hearback_domain::events::event::EventCore;
use hearback_domain::export::erasure::{Erasure, RemovedKind};
use hearback_domain::turns::turn::TurnRef;

use super::{ERASURE, number};
use crate::reads::Key;
use crate::table::{PK, SK};
use crate::transactions::{Transacted, invalid_request};
use crate::versions::ListedObject;
use crate::{Blobs, Error, Store, keys};

/// Groups that one transaction removes. A transaction has at most 100 rows and 4 MB; a group has at most four
/// rows, and 400 KB.
const GROUPS: usize = 8;

/// Rows that are removed together and count as one, if the first of them exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowGroup {
    pub(super) first: Key,
    others: Vec<Key>,
    /// If set, the first row is removed only if it has this core.
    core: Option<String>,
}

impl RowGroup {
    /// A group of rows, which exists if its first row does.
    pub(super) fn of(first: Key, others: impl IntoIterator<Item = Key>) -> Self {
        Self {
            first,
            others: others.into_iter().collect(),
            core: None,
        }
    }

    /// A turn's own row, if it still has this core.
    pub(super) fn turn(row: Key, core: Option<String>) -> Self {
        Self {
            core,
            ..Self::of(row, [])
        }
    }

    /// An unprocessed event, unless its user has sent another one with its id since.
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

    /// Merges groups with the same first row: a transaction cannot contain a row twice.
    fn merged(groups: Vec<Self>) -> Vec<Self> {
        let mut merged: BTreeMap<Key, Self> = BTreeMap::new();
        for group in groups {
            match merged.entry(group.first.clone()) {
                Entry::Vacant(free) => _ = free.insert(group),
                Entry::Occupied(mut existing) => {
                    let others = &mut existing.get_mut().others;
                    others.extend(group.others);
                    others.sort();
                    others.dedup();
                }
            }
        }
        merged.into_values().collect()
    }
}

impl Store {
    /// Removes groups and returns how many existed. Each transaction also updates the count, so
    /// that repeated calls count a group once. The erasure must exist; if `open` is given, it must
    /// be that one and not completed, because later data is not removed.
    pub async fn erase(
        &self,
        owner: UserRef<'_>,
        open: Option<&Erasure>,
        kind: RemovedKind,
        groups: Vec<RowGroup>,
    ) -> Result<u64, Error> {
        let count = self.count_update(owner, open)?;
        let groups = RowGroup::merged(groups);
        let mut removed = 0;
        for chunk in groups.chunks(GROUPS) {
            let mut existing = chunk.to_vec();
            while !existing.is_empty() {
                match self
                    .transact(self.removal(count.clone(), kind, &existing)?)
                    .await?
                {
                    Transacted::Committed => {
                        removed += u64::try_from(existing.len()).unwrap_or(u64::MAX);
                        break;
                    }
                    // In the order of the rows; the first row of each group has a condition.
                    Transacted::Rejected(conditions) => {
                        let mut at = 0;
                        let missing: Vec<_> = existing
                            .extract_if(.., |group| {
                                let first = at;
                                at += group.rows().count();
                                conditions.get(first).is_some_and(|held| !held)
                            })
                            .collect();
                        if missing.is_empty() {
                            return Err(Error::unreadable(
                                ERASURE,
                                "it does not exist, or is done",
                            ));
                        }
                        // A row with another core was replaced since, and stays.
                        let missing = missing.into_iter();
                        let missing = missing.filter(|group| group.core.is_none());
                        self.remove(missing.collect()).await?;
                    }
                }
            }
        }
        Ok(removed)
    }

    fn removal(
        &self,
        count: UpdateBuilder,
        kind: RemovedKind,
        groups: &[RowGroup],
    ) -> Result<Vec<TransactWriteItem>, Error> {
        let mut items = Vec::new();
        for group in groups {
            for (at, (pk, sk)) in group.rows().enumerate() {
                let delete = Delete::builder()
                    .table_name(&self.table)
                    .key(PK, AttributeValue::S(pk.clone()))
                    .key(SK, AttributeValue::S(sk.clone()));
                let delete = match &group.core {
                    _ if at > 0 => delete,
                    None => delete.condition_expression("attribute_exists(PK)"),
                    Some(core) => delete
                        .condition_expression("core = :core")
                        .expression_attribute_values(":core", AttributeValue::S(core.clone())),
                };
                let delete = delete.build().map_err(invalid_request(ERASURE))?;
                items.push(TransactWriteItem::builder().delete(delete).build());
            }
        }
        let count = count
            .expression_attribute_names("#count", kind.as_str())
            .expression_attribute_values(":count", number(groups.len()));
        let count = count.build().map_err(invalid_request(ERASURE))?;
        items.push(TransactWriteItem::builder().update(count).build());
        Ok(items)
    }

    /// Removes rows, whether or not they exist. A call for each, and a write for each KB.
    pub async fn remove(&self, groups: Vec<RowGroup>) -> Result<(), Error> {
        for (pk, sk) in groups.iter().flat_map(RowGroup::rows) {
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
    /// Permanently deletes the versions of a turn's log that were stored until an instant, except
    /// the current one, and all delete markers. Returns whether a newer version is left, to which
    /// the turn's row may be about to point.
    pub async fn delete_old_turn_logs(
        &self,
        at: &TurnRef,
        until: DateTime<Utc>,
        current: Option<&str>,
    ) -> Result<bool, Error> {
        let logs = keys::turn_logs(at);
        self.delete_older_versions(&logs, |_| false).await?;
        let newer_left = AtomicBool::new(false);
        let keep = |log: &ListedObject| {
            let is_current = current.is_some_and(|current| self.uri(&log.key) == current);
            let is_newer = !is_current && log.modified > until;
            newer_left.fetch_or(is_newer, Ordering::Relaxed);
            is_current || is_newer
        };
        self.delete_versions(&logs, keep).await?;
        Ok(newer_left.into_inner())
    }
}
