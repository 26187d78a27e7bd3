//! What insights count: a sparse index by hour.
//!
//! It is eventually consistent, so messages about an event or a turn wait longer than it lags.

mod counts;

pub use counts::Overview;

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::{
    AttributeValue, ReturnConsumedCapacity, ReturnValue, ReturnValuesOnConditionCheckFailure,
};
use chrono::{DateTime, Utc};
use futures::future::try_join_all;
use hearback_domain::identity::identifier::{ProjectId, TenantId};
use hearback_domain::learning::publication::{Outcome, Processed};
use hearback_domain::text::digest::digest;
use hearback_domain::turns::turn::{TurnCore, TurnRef};
use hearback_domain::views::insights::{AnswerFacts, Facts, Rollup, TurnFeedback};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::activity::shard_of;
use crate::attributes::{FACTS, IS_EXPLICIT, IS_INFERRED, OUTCOME, RETRACTED};
use crate::conditional::{WriteOutcome, outcome};
use crate::item::{self, Builder, Item};
use crate::table::{BY_HOUR, HOUR, OCCURRED_AT, PK, SK};
use crate::{Error, Store, keys};

const ENTRY: &str = "facts";

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

/// When an entry expires: `MAX_UTC` for never.
fn expiry(entry: &Item) -> DateTime<Utc> {
    item::expires_at(entry).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

impl CountedHour {
    fn add_turn(&mut self, entry: &Item, wanted: &Wanted, now: DateTime<Utc>) {
        let position = entry.get(OCCURRED_AT).and_then(|at| at.as_s().ok());
        let position = position.filter(|position| wanted.turns.contains(*position));
        let state = position.and_then(|position| Some((position, TurnDigest::of(entry).ok()?)));
        if let Some((position, state)) = state {
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
}

/// The project of an event. An event names it by a label, which may be longer than the name of a project.
fn project_of(event: &Processed) -> Option<ProjectId> {
    let name = event.context().project_id.as_ref()?;
    ProjectId::try_from(name.as_str()).ok()
}
