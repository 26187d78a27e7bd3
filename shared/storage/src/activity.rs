//! Activity markers: in which conversations of a project somebody reacted, minute by minute.
//!
//! They have no counts that could drift: a report walks them backwards and reads the reactions
//! of each conversation that it meets. A marker may outlive what it marks; it never comes after, and never
//! expires before.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Timelike, Utc};
use hearback_domain::identifier::{ConversationId, ProjectId, TenantId, UserId};
use hearback_domain::reaction::ReactionCore;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::item::{self, Builder, Item};
use crate::table::{AUTHOR, SK};
use crate::turns::CORE;
use crate::{Error, Store, keys};

const MARKER: &str = "activity marker";
/// Shards of a project's day, unless the deployment says otherwise.
pub const DEFAULT_SHARDS: u32 = 4;
/// Markers that a process remembers to have written.
const REMEMBERED: usize = 20_000;

/// Who was active where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// The project.
    #[serde(rename = "project_id")]
    pub project: ProjectId,
    /// The conversation.
    #[serde(rename = "conversation_id")]
    pub conversation: ConversationId,
    /// Whose reaction it was.
    #[serde(rename = "user_id")]
    pub user: UserId,
}

/// A marker, with the minute that it is of.
pub type Marker = (NaiveTime, Activity);

/// Markers that this process wrote: they need not be written again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Remembered(Arc<Mutex<HashSet<[u8; 32]>>>);

impl Remembered {
    pub(crate) fn has(&self, marker: &[u8; 32]) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.contains(marker)
    }

    pub(crate) fn add(&self, marker: [u8; 32]) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
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

/// A project's day, as far as it is to be read.
#[derive(Debug, Clone, Copy)]
pub struct Day<'a> {
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

impl<'a> Day<'a> {
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

impl Store {
    /// Marks that somebody reacted, unless this process marked the same before, after the same erasure of
    /// the user's data, if there was one: that removed what was marked until then. One call and two
    /// writes, one of them into the index of authors, or none.
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

    /// Marks that somebody reacted, unless it is marked for as long already: reactions to several turns
    /// share a marker. One call and two writes, one of them into the index of authors; and one more call and
    /// write in a month that this process has not marked yet.
    pub async fn mark_activity(&self, reaction: &ReactionCore) -> Result<(), Error> {
        // First, so that no report passes over the month.
        self.mark_month_once(reaction).await?;
        let at = &reaction.at.within;
        let activity = Activity {
            project: at.project.clone(),
            conversation: at.conversation.clone(),
            user: reaction.user_id.clone(),
        };
        let (pk, sk) = self.marker_key(reaction);
        // By its author an erasure finds where somebody reacted.
        let author = keys::user(&at.tenant, &reaction.user_id);
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
        match put.send().await {
            Err(error)
                if !error
                    .as_service_error()
                    .is_some_and(PutItemError::is_conditional_check_failed_exception) =>
            {
                Err(Error::unavailable("PutItem", &error))
            }
            Ok(_) | Err(_) => Ok(()),
        }
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
        day: Day<'_>,
        shard: u32,
        limit: Option<i32>,
    ) -> Result<(Vec<Marker>, bool), Error> {
        let mut markers = Vec::new();
        let mut resume = None;
        loop {
            let found = self
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
            for item in found.items() {
                markers.push(marker(item)?);
            }
            resume = found.last_evaluated_key;
            if resume.is_none() || limit.is_some() {
                return Ok((markers, resume.is_some()));
            }
        }
    }

    /// The shard of what has this name.
    #[must_use]
    pub fn shard(&self, name: &str) -> u32 {
        let digest: [u8; 32] = Sha256::digest(name).into();
        let [a, b, c, d, ..] = digest;
        u32::from_be_bytes([a, b, c, d]) % self.shards.max(1)
    }
}

/// When the marker of a reaction expires: at the end of the day on which that does, so that few markers are
/// written again.
fn expiry(reaction: &ReactionCore) -> Option<DateTime<Utc>> {
    let day = reaction.expires_at?.date_naive() + TimeDelta::days(1);
    Some(day.and_time(NaiveTime::MIN).and_utc())
}

fn marker(found: &Item) -> Result<Marker, Error> {
    let sk = item::string(found, MARKER, SK)?;
    let minute = sk
        .get(..5)
        .and_then(|text| NaiveTime::parse_from_str(text, "%H:%M").ok())
        .ok_or_else(|| Error::unreadable(MARKER, "its key has no minute"))?;
    Ok((minute, item::json(found, MARKER, CORE)?))
}
