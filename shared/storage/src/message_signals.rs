//! Message signals, in their user's partition: a caller can read only its own.
//!
//! Two sparse indexes over all users serve the export: by the trace of the answer, and by the day
//! of the last write. They contain keys only; the rows are read from the table, so that a signal
//! that was just withdrawn is not returned.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use chrono::{DateTime, NaiveDate, Utc};
use hearback_domain::feedback::message_signal::{MessageSignal, SignalCore, StoredSignal};
use hearback_domain::identity::caller::Caller;
use hearback_domain::identity::identifier::{
    ConversationId, Label, MessageId, ProjectId, TenantId, UserRef,
};
use hearback_domain::turns::turn::ConversationRef;
use serde::{Deserialize, Serialize};

use crate::attributes::{CORE, TEXT};
use crate::item::{self, Builder, Item};
use crate::reads::{self, Key};
use crate::table::{BY_DAY, BY_TRACE, DAY, PK, SK, TRACE};
use crate::turns::DirectoryEntry;
use crate::{Error, Replaced, Store, Versioned, keys};

const SIGNAL: &str = "message signal";

/// Selects a user's signals.
#[derive(Debug, Clone, Default)]
pub struct SignalFilter {
    /// Only signals on this message.
    pub message: Option<MessageId>,
    /// Only this signal. Reduces the cost only together with `message`.
    pub signal: Option<MessageSignal>,
}

/// The key of the row of a message signal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SignalPosition(Key);

/// The message id of a signal's row, as its sort key contains it; two projects may have messages
/// with the same id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MessageKey(String);

impl MessageKey {
    /// The key of a message id.
    #[must_use]
    pub fn of(message: &MessageId) -> Self {
        Self(keys::message_signals(message))
    }
}

impl SignalPosition {
    /// The message that the row is about.
    #[must_use]
    pub fn message(&self) -> MessageKey {
        let Self((_, sk)) = self;
        let signal = sk.rfind('#').map_or(0, |at| at + 1);
        MessageKey(sk.get(..signal).unwrap_or_default().to_owned())
    }
}

/// The sort key of a signal, after which [`Store::signals_of`] can continue.
#[must_use]
pub fn signal_sort_key(signal: &SignalCore) -> String {
    keys::message_signal(&signal.message_id, signal.signal)
}

impl Store {
    /// The turn of a message in the first of the caller's projects that has this message id, and
    /// the caller's current signal on it, of rows that can be read. The cost depends only on the number of projects: one call
    /// for each hundred, one read for each, and one more read.
    pub async fn message_and_signal(
        &self,
        caller: &Caller,
        message: &MessageId,
        signal: MessageSignal,
        now: DateTime<Utc>,
    ) -> Result<(Option<DirectoryEntry>, Option<Versioned<StoredSignal>>), Error> {
        let mut wanted = vec![(
            keys::user(caller.user_ref()),
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
        let mut items = self.get_batch(&wanted).await?.into_iter();
        let current = items.next().flatten().filter(|row| is_current(row, now));
        let current = current.and_then(|row| item::readable(&row, current_signal(&row)));
        let mut entries = items
            .flatten()
            .filter(|entry| !item::is_expired(entry, now));
        let entry =
            entries.find_map(|entry| item::readable(&entry, item::json(&entry, "message", CORE)));
        Ok((entry, current))
    }

    /// The current signal of a user on a message. One call, one read.
    pub async fn current_signal(
        &self,
        owner: UserRef<'_>,
        message: &MessageId,
        signal: MessageSignal,
        now: DateTime<Utc>,
    ) -> Result<Option<Versioned<StoredSignal>>, Error> {
        let key = keys::message_signal(message, signal);
        let response = self.get(keys::user(owner), key).await?;
        let item = response.item.filter(|row| is_current(row, now));
        item.as_ref().map(current_signal).transpose()
    }

    /// The current signal at the key of this one. One call, one read.
    pub async fn signal(
        &self,
        core: &SignalCore,
        now: DateTime<Utc>,
    ) -> Result<Option<StoredSignal>, Error> {
        let owner = core.owner();
        let current = self.current_signal(owner, &core.message_id, core.signal, now);
        Ok(current.await?.map(|current| current.value))
    }

    /// Replaces the signal that was read or cannot be read, or inserts one. A tombstone is not in the indexes and
    /// expires at once: it exists only for the stream. One call; a write for each KB, and one for
    /// each index entry that changes.
    pub async fn put_signal(
        &self,
        signal: &StoredSignal,
        seen: Option<&Versioned<StoredSignal>>,
    ) -> Result<Replaced<StoredSignal>, Error> {
        let core = &signal.core;
        let tenant = &core.at.within.tenant;
        let mut item = Builder::new(
            keys::user(core.owner()),
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
        if let Some(reason) = &signal.reason {
            item = item.string(TEXT, reason.clone());
        }
        let seen = (seen, core.updated_at);
        self.replace_live(item.build(), seen, current_signal).await
    }

    /// A page of a user's signals after a sort key, by message and signal, without tombstones and
    /// signals that have expired by `now`; and the sort key of the last row that was read, if there
    /// may be more. One call, one read for each 4 KB.
    pub async fn signals_of(
        &self,
        owner: UserRef<'_>,
        wanted: &SignalFilter,
        now: DateTime<Utc>,
        after: Option<&str>,
        limit: i32,
    ) -> Result<(Vec<StoredSignal>, Option<String>), Error> {
        let prefix = match (&wanted.message, wanted.signal) {
            (Some(message), Some(signal)) => keys::message_signal(message, signal),
            (Some(message), None) => keys::message_signals(message),
            (None, _) => keys::SIGNAL_PREFIX.to_owned(),
        };
        let pk = AttributeValue::S(keys::user(owner));
        let resume = after.map(|after| {
            let sk = AttributeValue::S(after.to_owned());
            Item::from([(PK.to_owned(), pk.clone()), (SK.to_owned(), sk)])
        });
        let response = self
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
        for item in response
            .items()
            .iter()
            .filter(|item| !item::is_expired(item, now))
        {
            let Some(stored) = item::readable(item, stored(item)) else {
                continue;
            };
            if !stored.core.retracted
                && wanted
                    .signal
                    .is_none_or(|signal| signal == stored.core.signal)
            {
                signals.push(stored);
            }
        }
        let last = response.last_evaluated_key.as_ref();
        let last = last.map(|last| item::string(last, SIGNAL, SK).map(ToOwned::to_owned));
        Ok((signals, last.transpose()?))
    }

    /// The first of these projects that has this conversation. One call for each project that is
    /// searched, half a read or one.
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
            let response = self
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
            if response.count > 0 {
                return Ok(Some(project.clone()));
            }
        }
        Ok(None)
    }

    /// The keys of the signals on a trace, of all users. Eventually consistent. One call for each
    /// MB of keys, half a read for each 4 KB.
    pub async fn signals_on_trace(
        &self,
        tenant: &TenantId,
        trace: &Label,
    ) -> Result<Vec<SignalPosition>, Error> {
        let mut positions = Vec::new();
        let mut after = None;
        loop {
            let value = keys::trace(tenant, trace);
            let (page, next) = self.index_page(BY_TRACE, TRACE, value, after).await?;
            positions.extend(page);
            after = next;
            if after.is_none() {
                positions.sort();
                return Ok(positions);
            }
        }
    }

    /// A page of the keys of the signals in one shard of a tenant's day, after a position of that
    /// shard; and the position after which there may be more. Consistency and cost as for
    /// [`signals_on_trace`](Self::signals_on_trace).
    pub async fn signals_of_day(
        &self,
        tenant: &TenantId,
        day: NaiveDate,
        shard: u32,
        after: Option<SignalPosition>,
    ) -> Result<(Vec<SignalPosition>, Option<SignalPosition>), Error> {
        let value = keys::signal_day(tenant, day, shard);
        let after = after.map(|SignalPosition((pk, sk))| {
            Item::from([
                (DAY.to_owned(), AttributeValue::S(value.clone())),
                (PK.to_owned(), AttributeValue::S(pk)),
                (SK.to_owned(), AttributeValue::S(sk)),
            ])
        });
        let (positions, next) = self.index_page(BY_DAY, DAY, value, after).await?;
        Ok((
            positions,
            next.as_ref().and_then(reads::key_of).map(SignalPosition),
        ))
    }

    async fn index_page(
        &self,
        index: &str,
        attribute: &str,
        value: String,
        after: Option<Item>,
    ) -> Result<(Vec<SignalPosition>, Option<Item>), Error> {
        let response = self
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
        let positions = response
            .items()
            .iter()
            .filter_map(reads::key_of)
            .map(SignalPosition);
        Ok((positions.collect(), response.last_evaluated_key))
    }

    /// The current signals at these positions. One call for each hundred, one read for each 4 KB
    /// of each.
    pub async fn signals_at(
        &self,
        positions: &[SignalPosition],
        now: DateTime<Utc>,
    ) -> Result<Vec<StoredSignal>, Error> {
        let keys: Vec<Key> = positions
            .iter()
            .map(|SignalPosition(key)| key.clone())
            .collect();
        let items = self.get_batch(&keys).await?.into_iter().flatten();
        let items = items.filter(|item| !item::is_expired(item, now));
        let signals = items.filter_map(|item| item::readable(&item, stored(&item)));
        let mut signals: Vec<StoredSignal> = signals.collect();
        signals.retain(|signal| !signal.core.retracted);
        Ok(signals)
    }
}

/// Whether a row has not expired. A tombstone expires at once, but stays current until the table
/// deletes it.
fn is_current(item: &Item, now: DateTime<Utc>) -> bool {
    !item::is_expired(item, now) || stored(item).is_ok_and(|signal| signal.core.retracted)
}

fn stored(item: &Item) -> Result<StoredSignal, Error> {
    let core: SignalCore = item::json(item, SIGNAL, CORE)?;
    Ok(StoredSignal {
        core: SignalCore {
            // The expiry of a tombstone is not that of the signal.
            expires_at: item::expires_at(item).filter(|_| !core.retracted),
            ..core
        },
        reason: item
            .get(TEXT)
            .and_then(|text| text.as_s().ok())
            .map(ToOwned::to_owned),
    })
}

fn current_signal(item: &Item) -> Result<Versioned<StoredSignal>, Error> {
    Versioned::of(item, SIGNAL, stored)
}
