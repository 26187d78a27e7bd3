//! The counts of hours and days.
//!
//! The counts of an interval are several rows: one of the dimensions with few values, which is the head, and one for
//! each other dimension that the head lists. The head is replaced under the condition that it is unchanged since before
//! the entries were counted; then the other rows, each unless it belongs to a later count. A writer that crashes in
//! between is repeated.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use chrono::{DateTime, TimeDelta, Utc};
use futures::future::try_join_all;
use hearback_domain::views::insights::{Breakdown, Dimension, Interval, Rollup};
use serde::{Deserialize, Serialize};

use super::ProjectRef;
use crate::attributes::CORE;
use crate::conditional::{Replaced, Versioned, outcome};
use crate::item::{self, Builder, Item};
use crate::table::SK;
use crate::{Error, Store, keys};

const COUNTS: &str = "counts";
/// The number of a count. A later count has a greater number.
const NUMBER: &str = "number";

/// The counts of the dimensions with few values, and which others have counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Overview {
    /// By dimension.
    pub by: BTreeMap<Dimension, Breakdown>,
    /// The other dimensions with an event, each with a row of its own. The row of a dimension that is not listed is that
    /// of an earlier count.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub others: BTreeSet<Dimension>,
    /// How many label keys are not counted.
    #[serde(default)]
    pub label_keys_left_out: usize,
    /// When its events were counted.
    pub counted_at: DateTime<Utc>,
    /// When the rows expire; `None` for never.
    #[serde(skip)]
    pub expires_at: Option<DateTime<Utc>>,
    #[serde(skip)]
    number: u64,
}

impl Store {
    /// The head of an interval's counts; `None` without one that can be read. One call, one read for each 4 KB.
    pub async fn overview(
        &self,
        project: ProjectRef<'_>,
        interval: Interval,
    ) -> Result<Option<Versioned<Overview>>, Error> {
        let response = self
            .get(partition(project, None), keys::counted(interval))
            .await?;
        let row = response.item;
        Ok(row.and_then(|row| item::readable(&row, versioned(&row))))
    }

    /// Replaces the counts of an interval, if its head is still `current`; `false` if not. Repeatable. One call for
    /// each dimension, one write for each KB.
    pub async fn put_counts(
        &self,
        project: ProjectRef<'_>,
        interval: Interval,
        rollup: Rollup,
        (current, now): (Option<&Versioned<Overview>>, DateTime<Utc>),
        expires_at: Option<DateTime<Utc>>,
    ) -> Result<bool, Error> {
        let before = current.map(|current| &current.value);
        // Rows without an entry only have to outlast the writers of earlier counts.
        let expires_at = expires_at.unwrap_or(now + TimeDelta::days(1));
        let expires_at = (expires_at != DateTime::<Utc>::MAX_UTC).then_some(expires_at);
        let (by, rows): (BTreeMap<_, _>, BTreeMap<_, _>) = rollup
            .breakdowns
            .into_iter()
            .partition(|(dimension, _)| dimension.is_closed());
        let number = u64::try_from(now.timestamp_micros()).unwrap_or_default();
        let head = Overview {
            by,
            others: rows.keys().cloned().collect(),
            label_keys_left_out: rollup.label_keys_left_out,
            counted_at: now,
            expires_at,
            // Greater than the last, whatever the clocks say.
            number: before.map_or(number, |before| number.max(before.number + 1)),
        };
        let item = |dimension: Option<&Dimension>| {
            Builder::new(partition(project, dimension), keys::counted(interval))
                .number(NUMBER, head.number)
                .expires_at(expires_at)
        };
        let row = item(None).json(COUNTS, CORE, &head)?.build();
        match self.replace_live(row, (current, now), versioned).await? {
            Replaced::Done => {}
            Replaced::Conflict(_) => return Ok(false),
        }
        let rows = rows.iter().map(|(dimension, counts)| {
            let row = item(Some(dimension)).json(COUNTS, CORE, counts);
            async move { self.put_if_newer(row?.build()).await }
        });
        try_join_all(rows).await?;
        Ok(true)
    }

    /// Puts a row unless the stored one has an equal or greater number.
    async fn put_if_newer(&self, row: Item) -> Result<(), Error> {
        let number = row.get(NUMBER).cloned();
        let number = number.ok_or_else(|| Error::unreadable(COUNTS, "number is missing"))?;
        item::check_size(&row)?;
        let put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(row))
            .condition_expression("attribute_not_exists(PK) OR #number < :number")
            .expression_attribute_names("#number", NUMBER)
            .expression_attribute_values(":number", number)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        outcome("PutItem", put.send().await).map(|_| ())
    }

    /// The heads of the counts from one interval to another, both inclusive. Strongly consistent. One call for each
    /// megabyte, one read for each 4 KB.
    pub async fn overviews(
        &self,
        project: ProjectRef<'_>,
        span: (Interval, Interval),
        now: DateTime<Utc>,
    ) -> Result<Vec<(Interval, Overview)>, Error> {
        let rows = self.counts(partition(project, None), span, now).await?;
        let rows = rows.into_iter().filter_map(|(interval, row)| {
            let read = item::readable(&row, versioned(&row))?;
            Some((interval, read.value))
        });
        Ok(rows.collect())
    }

    /// The counts by one dimension that has a row of its own. Otherwise like [`overviews`](Self::overviews).
    pub async fn breakdowns(
        &self,
        project: ProjectRef<'_>,
        dimension: &Dimension,
        span: (Interval, Interval),
        now: DateTime<Utc>,
    ) -> Result<Vec<(Interval, Breakdown)>, Error> {
        let partition = partition(project, Some(dimension));
        let rows = self.counts(partition, span, now).await?;
        let rows = rows.into_iter().filter_map(|(interval, row)| {
            let read = item::readable(&row, item::json(&row, COUNTS, CORE))?;
            Some((interval, read))
        });
        Ok(rows.collect())
    }

    async fn counts(
        &self,
        partition: String,
        (first, last): (Interval, Interval),
        now: DateTime<Utc>,
    ) -> Result<Vec<(Interval, Item)>, Error> {
        let mut rows = Vec::new();
        let mut next: Option<HashMap<_, _>> = None;
        loop {
            let query = self
                .client
                .query()
                .table_name(&self.table)
                .key_condition_expression("PK = :pk AND SK BETWEEN :first AND :last")
                .expression_attribute_values(":pk", AttributeValue::S(partition.clone()))
                .expression_attribute_values(":first", AttributeValue::S(keys::counted(first)))
                .expression_attribute_values(":last", AttributeValue::S(keys::counted(last)))
                .consistent_read(true)
                .set_exclusive_start_key(next)
                .return_consumed_capacity(ReturnConsumedCapacity::Total);
            let page = query.send().await;
            let page = page.map_err(|error| Error::unavailable("Query", &error))?;
            next = page.last_evaluated_key;
            let live = page.items.unwrap_or_default().into_iter();
            rows.extend(
                live.filter(|row| !item::is_expired(row, now))
                    .filter_map(|row| {
                        let key = row.get(SK)?.as_s().ok()?;
                        Some((keys::interval_of(key)?, row))
                    }),
            );
            if next.is_none() {
                return Ok(rows);
            }
        }
    }

    /// Counts a day from its hours. Repeatable. `false` if another writer replaced the counts meanwhile.
    pub async fn count_day(
        &self,
        project: ProjectRef<'_>,
        day: Interval,
        now: DateTime<Utc>,
    ) -> Result<bool, Error> {
        // Before the hours are read: see the module.
        let current = self.overview(project, day).await?;
        let last = day.end() - TimeDelta::hours(1);
        let hours = (Interval::Hour(day.begin()), Interval::Hour(last));
        let heads = self.overviews(project, hours, now).await?;
        let mut sum = Rollup::default();
        let mut others: BTreeMap<Dimension, BTreeSet<Interval>> = BTreeMap::new();
        let mut expires_at = None;
        for (hour, head) in heads {
            expires_at = expires_at.max(Some(head.expires_at.unwrap_or(DateTime::<Utc>::MAX_UTC)));
            for dimension in head.others {
                others.entry(dimension).or_default().insert(hour);
            }
            sum += &Rollup {
                breakdowns: head.by,
                label_keys_left_out: head.label_keys_left_out,
            };
        }
        let rows = others.iter().map(async |(dimension, listed)| {
            let rows = self.breakdowns(project, dimension, hours, now).await?;
            Ok::<_, Error>((dimension, listed, rows))
        });
        for (dimension, listed, rows) in try_join_all(rows).await? {
            for (_, row) in rows.iter().filter(|(hour, _)| listed.contains(hour)) {
                *sum.breakdowns.entry(dimension.clone()).or_default() += row;
            }
        }
        let current = (current.as_ref(), now);
        self.put_counts(project, day, sum.bounded(), current, expires_at)
            .await
    }
}

fn partition(
    ProjectRef { tenant, project }: ProjectRef<'_>,
    dimension: Option<&Dimension>,
) -> String {
    keys::insights(tenant, project, dimension)
}

fn versioned(row: &Item) -> Result<Versioned<Overview>, Error> {
    Versioned::of(row, COUNTS, |row| {
        Ok(Overview {
            expires_at: item::expires_at(row),
            number: item::number(row, COUNTS, NUMBER)?,
            ..item::json(row, COUNTS, CORE)?
        })
    })
}
