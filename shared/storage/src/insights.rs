//! What insights count, in a sparse index by hour, and the counts of hours and days.
//!
//! The counts of an interval are several rows: one of the dimensions with few values, which is the head, and one for
//! each other dimension that the head lists. The head is replaced under the condition that it is unchanged since before
//! the events were counted; then the other rows, each unless it belongs to a later count. A writer that crashes in
//! between is repeated. The index is eventually consistent, so messages about an event wait longer than it lags.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use aws_sdk_dynamodb::types::{
    AttributeValue, ReturnConsumedCapacity, ReturnValue, ReturnValuesOnConditionCheckFailure,
};
use chrono::{DateTime, TimeDelta, Utc};
use futures::future::try_join_all;
use hearback_domain::identity::identifier::{ProjectId, TenantId};
use hearback_domain::learning::publication::{Outcome, Processed};
use hearback_domain::text::digest::digest;
use hearback_domain::turns::turn::{TurnCore, TurnRef};
use hearback_domain::views::insights::{
    AnswerFacts, Breakdown, Dimension, Facts, Interval, Rollup, TurnFeedback,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::activity::shard_of;
use crate::attributes::{CORE, FACTS, IS_EXPLICIT, IS_INFERRED, OUTCOME, RETRACTED};
use crate::conditional::{Replaced, Versioned, WriteOutcome, outcome};
use crate::item::{self, Builder, Item};
use crate::table::{BY_HOUR, HOUR, OCCURRED_AT, PK, SK};
use crate::{Error, Store, keys};

const ENTRY: &str = "facts";
const COUNTS: &str = "counts";
/// The number of a count. A later count has a greater number.
const NUMBER: &str = "number";

/// A project, whose events are counted.
#[derive(Debug, Clone, Copy)]
pub struct ProjectRef<'a> {
    /// The tenant.
    pub tenant: &'a TenantId,
    /// The project.
    pub project: &'a ProjectId,
}

/// Which entries of the index are wanted.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Events.
    pub events: BTreeSet<Uuid>,
    /// Turns, by their position.
    pub turns: BTreeSet<String>,
}

/// The events and turns of an hour, counted.
#[derive(Debug, Default)]
pub struct CountedHour {
    /// The counts, of all values.
    pub rollup: Rollup,
    /// Which of the wanted events are in the index, and whether as retracted.
    pub seen: BTreeMap<Uuid, bool>,
    /// Which of the wanted turns are in the index, and with what.
    pub turns: BTreeMap<String, TurnDigest>,
    /// When the last of them expires: `MAX_UTC` for never, `None` if there are none.
    pub expires_at: Option<DateTime<Utc>>,
}

/// A digest of what is counted of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TurnDigest(String);

impl TurnDigest {
    pub(crate) fn new(facts: &str, feedback: TurnFeedback) -> Self {
        let TurnFeedback {
            is_explicit,
            is_inferred,
        } = feedback;
        let flags = [is_explicit, is_inferred].map(|flag| if flag { "1" } else { "0" });
        let digest = digest([facts, flags[0], flags[1]]);
        let first = digest.first_chunk().copied().unwrap_or_default();
        Self(format!("{:016x}", u64::from_be_bytes(first)))
    }

    fn of(row: &Item) -> Result<Self, Error> {
        let facts = item::string(row, ENTRY, FACTS)?;
        Ok(Self::new(facts, turn_feedback(row)))
    }
}

/// Which feedback the row of a turn, or its entry in the index, has.
fn turn_feedback(row: &Item) -> TurnFeedback {
    let is_set = |name: &str| row.get(name) == Some(&AttributeValue::Bool(true));
    TurnFeedback {
        is_explicit: is_set(IS_EXPLICIT),
        is_inferred: is_set(IS_INFERRED),
    }
}

/// The effect of marking an event as retracted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Marked {
    /// The event is counted in this hour of this project.
    In(ProjectId, DateTime<Utc>),
    /// The event has no outcome, or one that is not counted: it names no project, or another event counts.
    Uncounted,
}

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

/// When an entry expires: `MAX_UTC` for never.
fn expiry(entry: &Item) -> DateTime<Utc> {
    item::expires_at(entry).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

impl CountedHour {
    fn add_turn(&mut self, entry: &Item, wanted: &Wanted, now: DateTime<Utc>) {
        let position = entry.get(OCCURRED_AT).and_then(|at| at.as_s().ok());
        let position = position.filter(|position| wanted.turns.contains(*position));
        if let Some((position, state)) = position.zip(TurnDigest::of(entry).ok()) {
            self.turns.insert(position.clone(), state);
        }
        if item::is_expired(entry, now) {
            return;
        }
        let answer = item::json::<AnswerFacts>(entry, ENTRY, FACTS);
        if let Some(answer) = item::readable(entry, answer) {
            self.rollup.add_turn(&answer, turn_feedback(entry));
            self.expires_at = self.expires_at.max(Some(expiry(entry)));
        }
    }
}

impl Store {
    /// Adds a turn to the hour of its project.
    pub(crate) fn with_hour_of_turn(
        &self,
        item: Builder,
        turn: &TurnCore,
    ) -> Result<Builder, Error> {
        let within = &turn.at.within;
        let position = keys::turn_occurred_at(turn.ts, &turn.at);
        let shard = shard_of(&position, self.feed_shards());
        let hour = keys::hour(&within.tenant, &within.project, turn.ts, shard);
        item.string(HOUR, hour).string(OCCURRED_AT, position).json(
            ENTRY,
            FACTS,
            &AnswerFacts::of_turn(turn),
        )
    }

    /// Adds the outcome of an event to the hour of its project, if it names one.
    pub(crate) fn with_hour(
        &self,
        item: Builder,
        tenant: &TenantId,
        event: &Processed,
    ) -> Result<Builder, Error> {
        let Some(project) = project_of(event) else {
            return Ok(item);
        };
        let (event_id, at) = (event.feedback_id(), event.occurred_at());
        let hour = keys::hour(tenant, &project, at, self.hour_shard(event_id));
        item.string(HOUR, hour)
            .string(OCCURRED_AT, keys::occurred_at(at, event_id))
            .json(ENTRY, FACTS, &Facts::of(event))
    }

    /// The shard of an event in its hour: of as many as a day of the feed has, because every event may be in it.
    #[must_use]
    pub fn hour_shard(&self, event: Uuid) -> u32 {
        self.feed_shard(event)
    }

    /// Marks an event as retracted, for the counts of its hour. One call; two writes if it is counted and was not
    /// marked.
    pub async fn mark_retracted(
        &self,
        tenant: &TenantId,
        feedback_id: Uuid,
    ) -> Result<Marked, Error> {
        let update = self
            .client
            .update_item()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(keys::event(tenant, feedback_id)))
            .key(SK, AttributeValue::S(keys::RESULT.to_owned()))
            .update_expression("SET #retracted = :yes")
            .condition_expression("attribute_exists(#hour)")
            .expression_attribute_names("#retracted", RETRACTED)
            .expression_attribute_names("#hour", HOUR)
            .expression_attribute_values(":yes", AttributeValue::Bool(true))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let sent = update.send().await;
        let new = sent.as_ref().ok().and_then(|sent| sent.attributes.clone());
        Ok(match outcome("UpdateItem", sent)? {
            WriteOutcome::Done => {
                let new = new.unwrap_or_default();
                let hour = keys::hour_of(item::string(&new, ENTRY, HOUR)?);
                let outcome = item::json(&new, ENTRY, OUTCOME)?;
                let project = match &outcome {
                    Outcome::Processed(event) => project_of(event),
                    Outcome::Deduplicated { .. } => None,
                };
                let place = project.zip(hour);
                let (project, hour) =
                    place.ok_or_else(|| Error::unreadable(ENTRY, "its hour is invalid"))?;
                Marked::In(project, hour)
            }
            WriteOutcome::Conflict(_) => Marked::Uncounted,
        })
    }

    /// Which of these events are retracted. Strongly consistent. One call for each hundred, one read each.
    pub async fn retracted(
        &self,
        events: &BTreeSet<(TenantId, Uuid)>,
    ) -> Result<BTreeSet<(TenantId, Uuid)>, Error> {
        let keys: Vec<_> = events
            .iter()
            .map(|(tenant, id)| (keys::event(tenant, *id), keys::RETRACTION.to_owned()))
            .collect();
        let rows = self.get_batch(&keys).await?;
        let retracted = events.iter().zip(rows).filter(|(_, row)| row.is_some());
        Ok(retracted.map(|(event, _)| event.clone()).collect())
    }

    /// Whether an event has an outcome that is counted. Strongly consistent. One call, one read for each 4 KB.
    pub async fn is_counted(&self, tenant: &TenantId, feedback_id: Uuid) -> Result<bool, Error> {
        let partition = keys::event(tenant, feedback_id);
        let response = self.get(partition, keys::RESULT.to_owned()).await?;
        Ok(response.item.is_some_and(|item| item.contains_key(HOUR)))
    }

    /// What insights count of these turns now, by position. Strongly consistent. One call for each hundred, one read for
    /// each 4 KB of each.
    pub async fn turn_digests(
        &self,
        turns: impl IntoIterator<Item = &TurnRef>,
    ) -> Result<BTreeMap<String, TurnDigest>, Error> {
        let key = |at: &TurnRef| (keys::conversation(&at.within), keys::turn(&at.turn));
        let keys: BTreeSet<_> = turns.into_iter().map(key).collect();
        let keys: Vec<_> = keys.into_iter().collect();
        let rows = self.get_batch(&keys).await?.into_iter().flatten();
        let digests = rows.filter_map(|row| {
            let position = row.get(OCCURRED_AT)?.as_s().ok()?.clone();
            Some((position, item::readable(&row, TurnDigest::of(&row))?))
        });
        Ok(digests.collect())
    }

    /// Counts the events and turns of an hour, and says which of `wanted` are among them. Eventually consistent. One call for
    /// each shard and megabyte, half a read each for each 4 KB.
    pub async fn count_hour(
        &self,
        ProjectRef { tenant, project }: ProjectRef<'_>,
        hour: DateTime<Utc>,
        wanted: &Wanted,
        now: DateTime<Utc>,
    ) -> Result<CountedHour, Error> {
        let shards = (0..self.feed_shards()).map(|shard| keys::hour(tenant, project, hour, shard));
        let counted = shards.map(|shard| self.count_shard(shard, wanted, now));
        let mut all = CountedHour::default();
        for CountedHour {
            rollup,
            seen,
            turns,
            expires_at,
        } in try_join_all(counted).await?
        {
            all.rollup += &rollup;
            all.seen.extend(seen);
            all.turns.extend(turns);
            all.expires_at = all.expires_at.max(expires_at);
        }
        Ok(all)
    }

    async fn count_shard(
        &self,
        shard: String,
        wanted: &Wanted,
        now: DateTime<Utc>,
    ) -> Result<CountedHour, Error> {
        let mut counted = CountedHour::default();
        let mut next = None;
        loop {
            let query = self
                .client
                .query()
                .table_name(&self.table)
                .index_name(BY_HOUR)
                .key_condition_expression("#hour = :value")
                .expression_attribute_names("#hour", HOUR)
                .expression_attribute_values(":value", AttributeValue::S(shard.clone()))
                .set_exclusive_start_key(next)
                .return_consumed_capacity(ReturnConsumedCapacity::Total);
            let page = query.send().await;
            let page = page.map_err(|error| Error::unavailable("Query", &error))?;
            for entry in page.items() {
                if item::string(entry, ENTRY, SK)?.starts_with(keys::TURN_PREFIX) {
                    counted.add_turn(entry, wanted, now);
                    continue;
                }
                let is_retracted = entry.contains_key(RETRACTED);
                let event = keys::event_at(item::string(entry, ENTRY, OCCURRED_AT)?);
                if let Some(event) = event.filter(|event| wanted.events.contains(event)) {
                    counted.seen.insert(event, is_retracted);
                }
                if item::is_expired(entry, now) {
                    continue;
                }
                let facts = item::json::<Facts>(entry, ENTRY, FACTS);
                if let Some(facts) = item::readable(entry, facts) {
                    counted.rollup.add(&facts, is_retracted);
                    counted.expires_at = counted.expires_at.max(Some(expiry(entry)));
                }
            }
            counted.rollup.trim();
            next = page.last_evaluated_key;
            if next.is_none() {
                return Ok(counted);
            }
        }
    }

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

/// The project of an event. An event names it by a label, which may be longer than the name of a project.
fn project_of(event: &Processed) -> Option<ProjectId> {
    let name = event.context().project_id.as_ref()?;
    ProjectId::try_from(name.as_str()).ok()
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
