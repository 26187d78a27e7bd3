//! Lists of turns by status: a project's from the index, which has the status that others see, and a user's own from
//! their vectors.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use chrono::{DateTime, Utc};
use futures::future::try_join_all;
use hearback_detection::FeedbackStatus;
use hearback_domain::identity::identifier::{ProjectId, TenantId, UserId, UserRef};
use hearback_domain::turns::turn::TurnRef;

use crate::item;
use crate::reads::{IndexRange, Key};
use crate::table::{BY_STATUS, SK, STATUS, STATUS_AT};
use crate::turn_rows::{IndexRow, TURN, index_row};
use crate::vectors::TurnMark;
use crate::{Error, Store, keys};

/// A filter for the turns of a project.
#[derive(Debug, Clone)]
pub struct TurnsByStatus<'a> {
    /// The tenant.
    pub tenant: &'a TenantId,
    /// The project.
    pub project: &'a ProjectId,
    /// The status; not neutral.
    pub status: FeedbackStatus,
    /// The first and the last instant, both included.
    pub span: (DateTime<Utc>, DateTime<Utc>),
    /// The current time; expired turns are not listed.
    pub now: DateTime<Utc>,
}

/// A position in a list of turns; the latest turn comes first.
pub type TurnPosition = String;

/// A page of turns with their positions.
#[derive(Debug, Clone, Default)]
pub struct TurnPage {
    /// The turns, the latest first.
    pub rows: Vec<(TurnPosition, IndexRow)>,
    /// The position after which there may be more.
    pub next: Option<TurnPosition>,
}

impl TurnsByStatus<'_> {
    fn matches(&self, row: &IndexRow) -> bool {
        let (from, to) = self.span;
        let status = row.status.status() == self.status;
        let kept = row.core.expires_at.is_none_or(|expires| expires > self.now);
        status
            && kept
            && row.core.at.within.project == *self.project
            && (from..=to).contains(&row.core.ts)
    }
}

/// The range of sort keys of the index after a position.
pub(crate) fn between(
    (from, to): (DateTime<Utc>, DateTime<Utc>),
    after: Option<&TurnPosition>,
) -> Option<(String, String)> {
    let from = keys::turn_times(from);
    // `$` follows the `#` after the last instant.
    let newest = keys::turn_times(to).replace('#', "$");
    let newest = match after {
        // The greatest key before a position: `turn_time` ends with a digit of a hexadecimal number.
        Some(after) => before(after).min(newest),
        None => newest,
    };
    (from <= newest).then_some((from, newest))
}

/// The greatest key before `position`: the last character is replaced by the one before it,
/// followed by `~`, which sorts after any suffix.
fn before(position: &str) -> String {
    let mut key = position.to_owned();
    let last = key.pop().map(u32::from).unwrap_or_default();
    let smaller = last.checked_sub(1).and_then(char::from_u32);
    key.extend(smaller);
    key.push('~');
    key
}

impl Store {
    /// A page of a project's turns with a status that all its readers see, the latest first, after a position. Eventually
    /// consistent. One call for each shard, half a read each for each 4 KB of keys; one for each
    /// hundred turns, a read each.
    pub async fn turns_by_status(
        &self,
        listed: &TurnsByStatus<'_>,
        after: Option<&TurnPosition>,
        limit: usize,
    ) -> Result<TurnPage, Error> {
        let Some(span) = between(listed.span, after) else {
            return Ok(TurnPage::default());
        };
        let shard = |shard| keys::turn_status(listed.tenant, listed.project, listed.status, shard);
        let (entries, next) = self.latest_entries(shard, span, limit).await?;
        let keys: Vec<Key> = entries.iter().map(|(_, key)| key.clone()).collect();
        let rows = self.get_batch(&keys).await?;
        let rows = entries
            .into_iter()
            .zip(rows)
            .filter_map(|((position, _), row)| {
                // The index may still have turns that were just changed or deleted.
                let item = row?;
                let row = item::readable(&item, index_row(&item, listed.now))?;
                let row = row.shared(listed.now);
                listed.matches(&row).then_some((position, row))
            });
        Ok(TurnPage {
            rows: rows.collect(),
            next,
        })
    }

    /// The latest entries of all shards of the index, and the position after which there may be more.
    pub(crate) async fn latest_entries(
        &self,
        shard: impl Fn(u32) -> String,
        (from, to): (String, String),
        limit: usize,
    ) -> Result<(Vec<(TurnPosition, Key)>, Option<TurnPosition>), Error> {
        let shards = (0..self.shards())
            .map(|number| self.status_keys(shard(number), (from.clone(), to.clone()), limit));
        let mut entries: Vec<(TurnPosition, Key)> = Vec::new();
        let mut more = false;
        for (keys, has_more) in try_join_all(shards).await? {
            entries.extend(keys);
            more |= has_more;
        }
        entries.sort_by(|(one, _), (other, _)| other.cmp(one));
        more |= entries.len() > limit;
        entries.truncate(limit);
        let next = entries
            .last()
            .filter(|_| more)
            .map(|(position, _)| position.clone());
        Ok((entries, next))
    }

    /// The latest entries of a shard of the index, and whether there are more.
    async fn status_keys(
        &self,
        key: String,
        (from, to): (String, String),
        limit: usize,
    ) -> Result<(Vec<(TurnPosition, Key)>, bool), Error> {
        let range = IndexRange {
            index: BY_STATUS,
            partition: (STATUS, key),
            sort: STATUS_AT,
            span: (from, to),
            latest_first: true,
        };
        self.index_keys(range, limit).await
    }

    /// A page of a user's own turns with a status, the latest first, after a position; at most
    /// `limit` are examined. Strongly consistent. One call, one read for each 4 KB of vectors; one
    /// for each hundred turns, a read each.
    pub async fn own_turns_by_status(
        &self,
        user: &UserId,
        listed: &TurnsByStatus<'_>,
        after: Option<&TurnPosition>,
        limit: usize,
    ) -> Result<TurnPage, Error> {
        let Some((from, to)) = between(listed.span, after) else {
            return Ok(TurnPage::default());
        };
        let key = |at: String| AttributeValue::S(format!("{}{at}", keys::VECTOR_PREFIX));
        let pk = keys::user(UserRef::new(listed.tenant, user));
        let response = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("PK = :pk AND SK BETWEEN :from AND :to")
            .expression_attribute_values(":pk", AttributeValue::S(pk))
            .expression_attribute_values(":from", key(from))
            .expression_attribute_values(":to", key(to))
            .scan_index_forward(false)
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .consistent_read(true)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| Error::unavailable("Query", &error))?;
        let more = response.last_evaluated_key().is_some();
        // The last one may be unreadable.
        let last = response.items().last().filter(|_| more);
        let last = last
            .map(|entry| item::string(entry, TURN, SK))
            .transpose()?;
        let next = last.and_then(|key| key.strip_prefix(keys::VECTOR_PREFIX));
        let next = next.map(str::to_owned);
        let marks = response.items().iter().filter_map(|entry| {
            let mark: TurnMark = item::readable(entry, item::json(entry, TURN, "core"))?;
            Some((keys::turn_time(mark.ts, &mark.at), mark))
        });
        let marks: Vec<(TurnPosition, TurnMark)> = marks
            .filter(|(_, mark)| mark.at.within.project == *listed.project)
            .collect();
        // A turn may have two vectors, one of which is valid.
        let mut turns: Vec<TurnRef> = marks.iter().map(|(_, mark)| mark.at.clone()).collect();
        turns.sort();
        turns.dedup();
        let rows = self.kept_turns(&turns, listed.now).await?;
        let rows: BTreeMap<_, _> = turns.into_iter().zip(rows).collect();
        let rows = marks.into_iter().filter_map(|(position, mark)| {
            let row = rows.get(&mark.at)?.as_ref();
            let row = row.filter(|row| row.is_marked(user, mark.ts) && listed.matches(row))?;
            Some((position, row.clone()))
        });
        Ok(TurnPage {
            rows: rows.collect(),
            next,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_begins_directly_after_a_position() {
        for (position, next) in [
            ("000000000000000005#0a", "000000000000000005#09"),
            ("000000000000000005#a0", "000000000000000005#9f"),
            ("000000000000000005#00", "000000000000000004#ff"),
        ] {
            let newest = before(position);
            assert!(
                next < newest.as_str() && newest.as_str() < position,
                "{newest}"
            );
        }
    }
}
