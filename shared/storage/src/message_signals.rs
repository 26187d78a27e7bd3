//! Signals on messages, in a partition for each user: what a caller can read is what is in its own.
//!
//! Two sparse indexes lead past the users, for the export alone: by the trace of the answer, and
//! by the day on which it was last written. They hold keys only; what a row says is read from the table, so that
//! nobody learns from what was taken back a moment ago.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use chrono::{DateTime, NaiveDate, Utc};
use hearback_domain::caller::Caller;
use hearback_domain::identifier::{ConversationId, Label, MessageId, ProjectId, TenantId, UserId};
use hearback_domain::message_signal::{MessageSignal, SignalCore, StoredSignal};
use hearback_domain::turn::ConversationRef;
use serde::{Deserialize, Serialize};

use crate::item::{self, Builder, Item};
use crate::reads::{self, Key};
use crate::table::{BY_DAY, BY_TRACE, DAY, PK, SK, TRACE};
use crate::turns::{CORE, DirectoryEntry};
use crate::{Error, Replaced, Standing, Store, keys};

const SIGNAL: &str = "message signal";
/// The reason. It does not travel.
const TEXT: &str = "text";

/// Which of a user's signals are wanted.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Of this message.
    pub message: Option<MessageId>,
    /// This one; only with a message it makes reading cheaper.
    pub signal: Option<MessageSignal>,
}

/// Where a row of signals is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place(Key);

/// Tells the message that a row of signals is about, as far as its place tells it: two projects may
/// have messages of one name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MessageKey(String);

impl MessageKey {
    /// The key of a message of this name.
    #[must_use]
    pub fn of(message: &MessageId) -> Self {
        Self(keys::message_signals(message))
    }
}

impl Place {
    /// The message that the row is about.
    #[must_use]
    pub fn message(&self) -> MessageKey {
        let Self((_, sk)) = self;
        let signal = sk.rfind('#').map_or(0, |at| at + 1);
        MessageKey(sk.get(..signal).unwrap_or_default().to_owned())
    }
}

impl Store {
    /// The turn of a message in the first of the caller's projects that has one of this name, and
    /// what stands where its signal would go. What that costs depends on the token alone. One call
    /// for each hundred projects; a read for each of them, and one.
    pub async fn message_and_signal(
        &self,
        caller: &Caller,
        message: &MessageId,
        (signal, now): (MessageSignal, DateTime<Utc>),
    ) -> Result<(Option<DirectoryEntry>, Option<Standing<StoredSignal>>), Error> {
        let mut wanted = vec![(
            keys::user(&caller.tenant, &caller.user),
            keys::message_signal(message, signal),
        )];
        for project in &caller.projects {
            let entry = (
                keys::message(&caller.tenant, project, message),
                keys::MESSAGE.to_owned(),
            );
            if !wanted.contains(&entry) {
                wanted.push(entry);
            }
        }
        let mut found = self.get_batch(&wanted).await?.into_iter();
        let standing = found.next().flatten().filter(|said| stands(said, now));
        let mut entries = found.flatten();
        let entry = entries.find(|entry| !item::is_expired(entry, now));
        let entry = entry.map(|entry| item::json(&entry, "message", CORE));
        Ok((
            entry.transpose()?,
            standing.as_ref().map(standing_signal).transpose()?,
        ))
    }

    /// What stands `now` where a user's signal on a message would go. One call, one read.
    pub async fn standing_signal(
        &self,
        (tenant, user): (&TenantId, &UserId),
        message: &MessageId,
        (signal, now): (MessageSignal, DateTime<Utc>),
    ) -> Result<Option<Standing<StoredSignal>>, Error> {
        let key = keys::message_signal(message, signal);
        let found = self.get(keys::user(tenant, user), key).await?;
        let found = found.item.filter(|said| stands(said, now));
        found.as_ref().map(standing_signal).transpose()
    }

    /// The signal that stands `now` where this one was put. One call, one read.
    pub async fn signal(
        &self,
        core: &SignalCore,
        now: DateTime<Utc>,
    ) -> Result<Option<StoredSignal>, Error> {
        let owner = (&core.at.within.tenant, &core.user_id);
        let standing = self.standing_signal(owner, &core.message_id, (core.signal, now));
        Ok(standing.await?.map(|standing| standing.held))
    }

    /// Puts a signal where `seen` stood, or nothing. A tombstone is out of the indexes, and
    /// expires at once: all it is for is the stream. One call; a write for each KB, and one for
    /// each index entry that changes.
    pub async fn put_signal(
        &self,
        said: &StoredSignal,
        seen: Option<&Standing<StoredSignal>>,
    ) -> Result<Replaced<StoredSignal>, Error> {
        let core = &said.core;
        let tenant = &core.at.within.tenant;
        let mut item = Builder::new(
            keys::user(tenant, &core.user_id),
            keys::message_signal(&core.message_id, core.signal),
        )
        .json(SIGNAL, CORE, core)?;
        if core.retracted {
            item = item.expires(core.ts, 0);
        } else {
            let shard = self.shard(core.user_id.as_str());
            let day = keys::signal_day(tenant, core.updated_at.date_naive(), shard);
            item = item.string(DAY, day).expires_at(core.expires_at);
            if let Some(trace) = &core.trace_id {
                item = item.string(TRACE, keys::trace(tenant, trace));
            }
        }
        if let Some(reason) = &said.reason {
            item = item.string(TEXT, reason.clone());
        }
        let seen = (seen, core.updated_at);
        self.put_over_live(item.build(), seen, standing_signal)
            .await
    }

    /// A page of a user's signals behind a sort key, by message and signal, tombstones and what has
    /// expired by `now` left out, and the sort key of the last row that was looked at if there may be
    /// more. One call, one read for each 4 KB.
    pub async fn signals_of(
        &self,
        (tenant, user): (&TenantId, &UserId),
        (wanted, now): (&Wanted, DateTime<Utc>),
        after: Option<&str>,
        limit: i32,
    ) -> Result<(Vec<StoredSignal>, Option<String>), Error> {
        let prefix = match (&wanted.message, wanted.signal) {
            (Some(message), Some(signal)) => keys::message_signal(message, signal),
            (Some(message), None) => keys::message_signals(message),
            (None, _) => keys::SIGNAL_PREFIX.to_owned(),
        };
        let pk = AttributeValue::S(keys::user(tenant, user));
        let resume = after.map(|after| {
            let sk = AttributeValue::S(after.to_owned());
            Item::from([(PK.to_owned(), pk.clone()), (SK.to_owned(), sk)])
        });
        let found = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("PK = :pk AND begins_with(SK, :prefix)")
            .expression_attribute_values(":pk", pk)
            .expression_attribute_values(":prefix", AttributeValue::S(prefix))
            .consistent_read(true)
            .limit(limit)
            .set_exclusive_start_key(resume)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| Error::unavailable("Query", &error))?;
        let mut signals = Vec::new();
        for item in found
            .items()
            .iter()
            .filter(|item| !item::is_expired(item, now))
        {
            let said = stored(item)?;
            if !said.core.retracted
                && wanted
                    .signal
                    .is_none_or(|signal| signal == said.core.signal)
            {
                signals.push(said);
            }
        }
        let last = found.last_evaluated_key.as_ref();
        let last = last.map(|last| item::string(last, SIGNAL, SK).map(ToOwned::to_owned));
        Ok((signals, last.transpose()?))
    }

    /// The first of these projects that has a conversation of this name. One call for each that
    /// is looked into, half a read or one.
    pub async fn project_of(
        &self,
        tenant: &TenantId,
        projects: &[ProjectId],
        conversation: &ConversationId,
    ) -> Result<Option<ProjectId>, Error> {
        for project in projects {
            let at = ConversationRef {
                tenant: tenant.clone(),
                project: project.clone(),
                conversation: conversation.clone(),
            };
            let found = self
                .client
                .query()
                .table_name(&self.table)
                .key_condition_expression("PK = :pk AND begins_with(SK, :turn)")
                .expression_attribute_values(":pk", AttributeValue::S(keys::conversation(&at)))
                .expression_attribute_values(
                    ":turn",
                    AttributeValue::S(keys::TURN_PREFIX.to_owned()),
                )
                .projection_expression(PK)
                .limit(1)
                .consistent_read(true)
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
                .await
                .map_err(|error| Error::unavailable("Query", &error))?;
            if found.count > 0 {
                return Ok(Some(project.clone()));
            }
        }
        Ok(None)
    }

    /// Where the signals on a trace are, over all users; may miss what was written a moment ago.
    /// One call for each MB of keys, half a read for each 4 KB.
    pub async fn signals_on_trace(
        &self,
        tenant: &TenantId,
        trace: &Label,
    ) -> Result<Vec<Place>, Error> {
        let mut places = Vec::new();
        let mut after = None;
        loop {
            let value = keys::trace(tenant, trace);
            let (page, next) = self.index_page((BY_TRACE, TRACE), value, after).await?;
            places.extend(page);
            after = next;
            if after.is_none() {
                places.sort();
                return Ok(places);
            }
        }
    }

    /// Where the signals of a tenant's day are, in one of the day's shards, behind a place of that
    /// shard: a page, and behind which place there may be more. As fresh and as cheap as
    /// [`signals_on_trace`](Self::signals_on_trace).
    pub async fn signals_of_day(
        &self,
        tenant: &TenantId,
        day: NaiveDate,
        shard: u32,
        after: Option<Place>,
    ) -> Result<(Vec<Place>, Option<Place>), Error> {
        let value = keys::signal_day(tenant, day, shard);
        let after = after.map(|Place((pk, sk))| {
            Item::from([
                (DAY.to_owned(), AttributeValue::S(value.clone())),
                (PK.to_owned(), AttributeValue::S(pk)),
                (SK.to_owned(), AttributeValue::S(sk)),
            ])
        });
        let (places, next) = self.index_page((BY_DAY, DAY), value, after).await?;
        Ok((places, next.as_ref().and_then(reads::key_of).map(Place)))
    }

    async fn index_page(
        &self,
        (index, attribute): (&str, &str),
        value: String,
        after: Option<Item>,
    ) -> Result<(Vec<Place>, Option<Item>), Error> {
        let found = self
            .client
            .query()
            .table_name(&self.table)
            .index_name(index)
            .key_condition_expression("#attribute = :value")
            .expression_attribute_names("#attribute", attribute)
            .expression_attribute_values(":value", AttributeValue::S(value))
            .set_exclusive_start_key(after)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| Error::unavailable("Query", &error))?;
        let places = found.items().iter().filter_map(reads::key_of).map(Place);
        Ok((places.collect(), found.last_evaluated_key))
    }

    /// The signals that stand at these places `now`. One call for each hundred, one read for each 4 KB
    /// of each.
    pub async fn signals_at(
        &self,
        places: &[Place],
        now: DateTime<Utc>,
    ) -> Result<Vec<StoredSignal>, Error> {
        let keys: Vec<Key> = places.iter().map(|Place(key)| key.clone()).collect();
        let found = self.get_batch(&keys).await?.into_iter().flatten();
        let found = found.filter(|item| !item::is_expired(item, now));
        let mut signals: Vec<StoredSignal> =
            found.map(|item| stored(&item)).collect::<Result<_, _>>()?;
        signals.retain(|said| !said.core.retracted);
        Ok(signals)
    }
}

/// Whether a row still stands: a tombstone does until the table deletes it.
fn stands(item: &Item, now: DateTime<Utc>) -> bool {
    !item::is_expired(item, now) || stored(item).is_ok_and(|said| said.core.retracted)
}

fn stored(item: &Item) -> Result<StoredSignal, Error> {
    let core: SignalCore = item::json(item, SIGNAL, CORE)?;
    Ok(StoredSignal {
        core: SignalCore {
            // What a tombstone has is its own.
            expires_at: item::expires_at(item).filter(|_| !core.retracted),
            ..core
        },
        reason: item
            .get(TEXT)
            .and_then(|text| text.as_s().ok())
            .map(ToOwned::to_owned),
    })
}

fn standing_signal(item: &Item) -> Result<Standing<StoredSignal>, Error> {
    Standing::of(item, SIGNAL, stored)
}
