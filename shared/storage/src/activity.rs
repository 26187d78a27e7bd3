//! Activity markers: the conversations of a project with reactions, minute by minute.
//!
//! Markers hold no counts that could drift: a report reads them from the newest to the oldest, and
//! then the reactions of each conversation. A marker is written before its reaction and may outlive
//! it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Timelike, Utc};
use hearback_domain::feedback::reaction::ReactionCore;
use hearback_domain::identity::identifier::{ConversationId, ProjectId, TenantId, UserId, UserRef};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::attributes::CORE;
use crate::conditional::changed;
use crate::item::{self, Builder, Item};
use crate::reads::{self, Key};
use crate::table::{AUTHOR, BY_AUTHOR, SK};
use crate::{Error, Store, keys};

const MARKER: &str = "activity marker";
/// Shards of a project's day, unless the deployment sets another number.
pub const DEFAULT_SHARDS: u32 = 4;
/// Markers of a user that are read at once: as many as one call gets.
const OWN_PAGE: i32 = 100;
/// How many written markers a process remembers.
const CACHED_MARKERS: usize = 20_000;

/// A user who reacted in a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// The project.
    #[serde(rename = "project_id")]
    pub project: ProjectId,
    /// The conversation.
    #[serde(rename = "conversation_id")]
    pub conversation: ConversationId,
    /// The author of the reaction.
    #[serde(rename = "user_id")]
    pub user: UserId,
}

/// A marker with its minute.
pub type Marker = (NaiveTime, Activity);

/// Markers that this process wrote, so that it does not write them again.
#[derive(Debug, Clone, Default)]
pub(crate) struct MarkerCache(Arc<Mutex<HashSet<[u8; 32]>>>);

impl MarkerCache {
    pub(crate) fn has(&self, marker: &[u8; 32]) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.contains(marker)
    }

    pub(crate) fn add(&self, marker: [u8; 32]) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= CACHED_MARKERS {
            known.clear();
        }
        known.insert(marker);
    }
}

/// The minute of a time of day.
#[must_use]
pub fn minute(time: DateTime<Utc>) -> NaiveTime {
    let time = time.time();
    time.with_second(0)
        .and_then(|time| time.with_nanosecond(0))
        .unwrap_or(time)
}

/// The part of a project's day to read.
#[derive(Debug, Clone, Copy)]
pub struct ActivityDay<'a> {
    /// The tenant.
    pub tenant: &'a TenantId,
    /// The project.
    pub project: &'a ProjectId,
    /// The day.
    pub date: NaiveDate,
    /// From this minute on.
    pub from: NaiveTime,
    /// To the end of this minute.
    pub until: NaiveTime,
}

impl<'a> ActivityDay<'a> {
    /// The whole day.
    #[must_use]
    pub fn whole(tenant: &'a TenantId, project: &'a ProjectId, date: NaiveDate) -> Self {
        Self {
            tenant,
            project,
            date,
            from: NaiveTime::MIN,
            // The last second of the day is within its last minute.
            until: NaiveTime::MIN - TimeDelta::seconds(1),
        }
    }
}

/// Days of a user in a project.
#[derive(Debug, Clone, Copy)]
pub struct UserDays<'a> {
    /// The tenant.
    pub tenant: &'a TenantId,
    /// The project.
    pub project: &'a ProjectId,
    /// The user.
    pub user: &'a UserId,
    /// The first day and the last one.
    pub days: (NaiveDate, NaiveDate),
}

/// Markers of a user, each with its day.
#[derive(Debug, Default)]
pub struct UserActivityPage {
    /// Minutes and conversations with their day, the latest day first, in no order within a day.
    pub markers: Vec<(NaiveDate, (NaiveTime, ConversationId))>,
    /// Where the next page starts, if there may be more.
    pub next: Option<ActivityCursor>,
}

/// A row of the author index.
#[derive(Debug)]
pub struct ActivityCursor(Item);

impl Store {
    /// Writes the marker of a reaction, unless this process has written it since the user's last
    /// erasure, which removed the markers until then. No call, or one call and two writes, one of
    /// them to the author index.
    pub async fn mark_activity_once(
        &self,
        reaction: &ReactionCore,
        erased: Option<Uuid>,
    ) -> Result<(), Error> {
        let (pk, sk) = self.marker_key(reaction);
        let erased = erased.unwrap_or_default();
        let until = expiry(reaction).map(|until| until.timestamp());
        let marker = format!("{pk}\n{sk}\n{erased}\n{}", until.unwrap_or(i64::MAX));
        let digest: [u8; 32] = Sha256::digest(marker).into();
        if !self.marked.has(&digest) {
            self.mark_activity(reaction).await?;
            self.marked.add(digest);
        }
        Ok(())
    }

    /// Writes the marker of a reaction, unless the existing one expires no earlier: reactions to
    /// several turns share a marker. One call and two writes, one of them to the author index; one
    /// more call and write in a month that this process has not marked yet.
    pub async fn mark_activity(&self, reaction: &ReactionCore) -> Result<(), Error> {
        // First, so that no report skips the month.
        self.mark_month_once(reaction).await?;
        let at = &reaction.at.within;
        let activity = Activity {
            project: at.project.clone(),
            conversation: at.conversation.clone(),
            user: reaction.user_id.clone(),
        };
        let (pk, sk) = self.marker_key(reaction);
        // An erasure finds a user's reactions by the author.
        let author = keys::user(reaction.owner());
        let until = expiry(reaction);
        let item = Builder::new(pk, sk)
            .json(MARKER, CORE, &activity)?
            .string(AUTHOR, author)
            .expires_at(until);
        let put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(item.build()))
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let put = match until {
            Some(until) => put
                .condition_expression("attribute_not_exists(PK) OR expires_at < :until")
                .expression_attribute_values(
                    ":until",
                    AttributeValue::N(until.timestamp().to_string()),
                ),
            None => {
                put.condition_expression("attribute_not_exists(PK) OR attribute_exists(expires_at)")
            }
        };
        changed("PutItem", put.send().await).map(|_| ())
    }

    fn marker_key(&self, reaction: &ReactionCore) -> (String, String) {
        let at = &reaction.at.within;
        let shard = self.shard(at.conversation.as_str());
        let day = reaction.ts.date_naive();
        (
            keys::day(&at.tenant, &at.project, day, shard),
            keys::activity(minute(reaction.ts), &at.conversation, &reaction.user_id),
        )
    }

    /// How many shards a project's day has.
    #[must_use]
    pub fn shards(&self) -> u32 {
        self.shards
    }

    /// Up to `limit` markers of a shard, the newest first, and whether there are more.
    pub async fn activity(
        &self,
        day: ActivityDay<'_>,
        shard: u32,
        limit: Option<i32>,
    ) -> Result<(Vec<Marker>, bool), Error> {
        let mut markers = Vec::new();
        let mut resume = None;
        loop {
            let response = self
                .client
                .query()
                .table_name(&self.table)
                .key_condition_expression("PK = :pk AND SK BETWEEN :from AND :until")
                .expression_attribute_values(
                    ":pk",
                    AttributeValue::S(keys::day(day.tenant, day.project, day.date, shard)),
                )
                .expression_attribute_values(
                    ":from",
                    AttributeValue::S(day.from.format("%H:%M").to_string()),
                )
                .expression_attribute_values(
                    ":until",
                    // `$` follows the `#` that ends the minute.
                    AttributeValue::S(format!("{}$", day.until.format("%H:%M"))),
                )
                .scan_index_forward(false)
                .set_limit(limit)
                .consistent_read(true)
                .set_exclusive_start_key(resume)
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
                .await
                .map_err(|error| Error::unavailable("Query", &error))?;
            for item in response.items() {
                markers.extend(item::readable(item, marker(item)));
            }
            resume = response.last_evaluated_key;
            if resume.is_none() || limit.is_some() {
                return Ok((markers, resume.is_some()));
            }
        }
    }

    /// Up to a hundred markers of a user from the author index, whose cost does not depend on other
    /// users' markers. Eventually consistent. One call, half a read for each 4 KB of keys; another
    /// call for hashed names, one read for each.
    pub async fn user_activity(
        &self,
        of: UserDays<'_>,
        after: Option<ActivityCursor>,
    ) -> Result<UserActivityPage, Error> {
        let (from, to) = keys::days(of.tenant, of.project, of.days);
        let response = self
            .client
            .query()
            .table_name(&self.table)
            .index_name(BY_AUTHOR)
            .key_condition_expression("#author = :author AND PK BETWEEN :from AND :to")
            .expression_attribute_names("#author", AUTHOR)
            .expression_attribute_values(
                ":author",
                AttributeValue::S(keys::user(UserRef::new(of.tenant, of.user))),
            )
            .expression_attribute_values(":from", AttributeValue::S(from))
            .expression_attribute_values(":to", AttributeValue::S(to))
            .scan_index_forward(false)
            .limit(OWN_PAGE)
            .set_exclusive_start_key(after.map(|ActivityCursor(row)| row))
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| Error::unavailable("Query", &error))?;
        let found_keys: Vec<Key> = response.items().iter().filter_map(reads::key_of).collect();
        let is_hashed = |(_, sk): &&Key| keys::active_in(sk).is_none();
        let hashed: Vec<Key> = found_keys.iter().filter(is_hashed).cloned().collect();
        let rows = self.get_batch(&hashed).await?;
        let rows: HashMap<Key, Item> = (hashed.into_iter().zip(rows))
            .filter_map(|(key, row)| Some((key, row?)))
            .collect();
        let mut markers = Vec::with_capacity(found_keys.len());
        for key in &found_keys {
            let active = match (keys::active_in(&key.1), rows.get(key)) {
                (Some(active), _) => active,
                (None, Some(row)) => match item::readable(row, marker(row)) {
                    Some((minute, of)) => (minute, of.conversation),
                    None => continue,
                },
                // The index still has rows that were just deleted.
                (None, None) => continue,
            };
            markers.extend(keys::date_of(&key.0).map(|date| (date, active)));
        }
        Ok(UserActivityPage {
            markers,
            next: response.last_evaluated_key.map(ActivityCursor),
        })
    }

    /// The shard of a name.
    #[must_use]
    pub fn shard(&self, name: &str) -> u32 {
        shard_of(name, self.shards)
    }
}

/// The shard of a name, of `shards` shards.
pub(crate) fn shard_of(name: &str, shards: u32) -> u32 {
    let digest: [u8; 32] = Sha256::digest(name).into();
    let [a, b, c, d, ..] = digest;
    u32::from_be_bytes([a, b, c, d]) % shards.max(1)
}

/// The expiry of a marker: the end of the day on which its reaction expires, so that few markers
/// are written twice.
fn expiry(reaction: &ReactionCore) -> Option<DateTime<Utc>> {
    let day = reaction.expires_at?.date_naive() + TimeDelta::days(1);
    Some(day.and_time(NaiveTime::MIN).and_utc())
}

fn marker(item: &Item) -> Result<Marker, Error> {
    let sk = item::string(item, MARKER, SK)?;
    let minute = sk
        .get(..5)
        .and_then(|text| NaiveTime::parse_from_str(text, "%H:%M").ok())
        .ok_or_else(|| Error::unreadable(MARKER, "its key has no minute"))?;
    Ok((minute, item::json(item, MARKER, CORE)?))
}
