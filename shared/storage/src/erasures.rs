//! Erasing a person: a row for each of their names, and how what is kept under it is found and removed.
//!
//! A person has two names, their own and a pseudonym. Their rows are opened in one transaction, and closed
//! in one: until when an erasure holds is the same for both.
//!
//! | what | is found by | which lies |
//! |---|---|---|
//! | events that were worked off | their claims | with the user |
//! | events that came second, or were withdrawn | their outcomes, their retractions | in the index of authors |
//! | reactions, and markers of activity | the markers | in the index of authors |
//! | turns, their logs and messages | the turn vectors | with the user |
//! | signals on messages | themselves | with the user |
//! | preference versions | themselves | in a partition of the user's |
//!
//! An event that was not worked off yet is found by nothing: whoever works it off removes it instead.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::builders::UpdateBuilder;
use aws_sdk_dynamodb::types::{
    AttributeValue, Delete, Put, ReturnConsumedCapacity, TransactWriteItem, Update,
};
use chrono::{DateTime, TimeDelta, Utc};
use hearback_domain::erasure::{Erasure, Kind, Removed, Traces};
use hearback_domain::event::EventCore;
use hearback_domain::identifier::{TenantId, UserId};
use hearback_domain::message_signal::SignalCore;
use hearback_domain::turn::{ConversationRef, TurnCore, TurnRef};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::activity::Activity;
use crate::claims::{self, claimant};
use crate::events::CORE;
use crate::item::{self, Builder, Item};
use crate::places::updated;
use crate::preferences::Freshness;
use crate::reactions::{Row, row};
use crate::reads::{self, Key};
use crate::table::{AUTHOR, BY_AUTHOR, EXPIRES_AT, PK, SK};
use crate::transactions::{Transacted, unbuilt};
use crate::vectors::Mark;
use crate::versions::Listed;
use crate::{Blobs, Error, Store, keys};

const ERASURE: &str = "erasure";
const TRACES: &str = "traces of an erasure";
/// Adds to the count of a kind.
const COUNTING: &str = "ADD #count :count";
/// When it was done, in microseconds.
const UNTIL: &str = "until";
/// When something was found last, in microseconds.
const FOUND: &str = "found_at";
/// Days that a row is kept that is done: as long as a message may still bring what is to be erased.
const KEPT_DAYS: u16 = claims::KEPT_DAYS;
/// Things that are removed in one transaction. It takes 100 rows and 4 MB at most; one of these has up
/// to four rows, and 400 KB.
const UNITS: usize = 8;
/// Rows of a page that is removed.
const PAGE: i32 = 25;

/// A user of a tenant.
pub type Owner<'a> = (&'a TenantId, &'a UserId);

/// What the row says besides its counts.
#[derive(Serialize, Deserialize)]
struct Core {
    id: Uuid,
    requested_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pseudonym: Option<UserId>,
}

impl Core {
    fn of(erasure: &Erasure) -> Self {
        Self {
            id: erasure.id,
            requested_at: erasure.requested_at,
            pseudonym: erasure.pseudonym.clone(),
        }
    }

    fn attribute(&self) -> Result<AttributeValue, Error> {
        let json = serde_json::to_string(self);
        let json = json.map_err(|error| Error::undecodable(ERASURE, &error))?;
        Ok(AttributeValue::S(json))
    }
}

/// Rows that go together, and count as one thing if the first of them is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    first: Key,
    others: Vec<Key>,
    /// What the first must say to be meant.
    core: Option<String>,
}

/// Something of a user's, as it is found.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// An event.
    Event {
        /// Its name.
        id: Uuid,
        /// Its rows.
        unit: Unit,
        /// The claim that led to it, if one did.
        claim: Option<Unit>,
    },
    /// That the user reacted in a conversation, or the machine in their name.
    Active {
        /// The conversation.
        within: ConversationRef,
        /// The marker.
        marker: Unit,
    },
    /// A turn; there may be none, if its registration died.
    Turn {
        /// The turn.
        at: TurnRef,
        /// The row that leads to it.
        vector: Unit,
    },
    /// A signal on a message.
    Signal {
        /// The event of what was said.
        act: Uuid,
        /// Its row.
        unit: Unit,
    },
    /// A version of preferences.
    Version(Unit),
    /// What led to something that is not there any more, or is another's by now.
    Trail(Unit),
}

/// Where something is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// With the user: claims.
    Claims,
    /// In the index of authors.
    Authored,
    /// With the user: turn vectors.
    Vectors,
    /// With the user: signals on messages.
    Signals,
    /// Preference versions.
    Versions,
}

/// A page of what is found, and where the next one begins.
#[derive(Debug, Default)]
pub struct Page {
    /// What is found.
    pub found: Vec<Found>,
    /// Behind which row there may be more.
    pub next: Option<Next>,
}

/// Behind which row a page begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Next(Key);

/// How much of a listing is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// As much as is removed at once.
    Few,
    /// As much as one call reads.
    Many,
}

impl Unit {
    /// These rows, of which the first tells whether it is there.
    fn of(first: Key, others: impl IntoIterator<Item = Key>) -> Self {
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

    fn event_in(partition: &str, claim: Option<Key>) -> Self {
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
    /// The erasure of a user's data, if one was asked for. One call, one read or half.
    pub async fn erasure(
        &self,
        owner: Owner<'_>,
        freshness: Freshness,
    ) -> Result<Option<Erasure>, Error> {
        let found = self.get_as_fresh(place(owner), freshness).await?;
        found.item.as_ref().map(erasure).transpose()
    }

    /// Opens an erasure of a user, and of what is kept under their pseudonym, unless one of either is open:
    /// then `None`. One call, twice a write for each.
    pub async fn open_erasure(
        &self,
        (tenant, user): Owner<'_>,
        pseudonym: &UserId,
        id: Uuid,
        now: DateTime<Utc>,
    ) -> Result<Option<Erasure>, Error> {
        let row = |user: &UserId, pseudonym: Option<&UserId>| {
            let core = Core {
                id,
                requested_at: now,
                pseudonym: pseudonym.cloned(),
            };
            let row = Builder::new(keys::user(tenant, user), keys::ERASURE);
            Ok::<_, Error>(row.json(ERASURE, CORE, &core)?.build())
        };
        let own = row(user, Some(pseudonym))?;
        let opened = erasure(&own)?;
        let puts = [own, row(pseudonym, None)?].map(|row| {
            let put = Put::builder()
                .table_name(&self.table)
                .set_item(Some(row))
                .condition_expression("attribute_not_exists(PK) OR attribute_exists(#until)")
                .expression_attribute_names("#until", UNTIL)
                .build()
                .map_err(unbuilt(ERASURE))?;
            Ok(TransactWriteItem::builder().put(put).build())
        });
        let puts = puts.into_iter().collect::<Result<_, Error>>()?;
        let done = self.transact(puts).await? == Transacted::Done;
        Ok(done.then_some(opened))
    }

    /// Notes that something was found: an erasure is not done before a while after. One call, one write.
    pub async fn note_found(&self, owner: Owner<'_>, at: DateTime<Utc>) -> Result<(), Error> {
        let noted = self
            .update_erasure(owner)
            .update_expression("SET #found = :found")
            .condition_expression("attribute_exists(PK)")
            .expression_attribute_names("#found", FOUND)
            .expression_attribute_values(":found", number(at.timestamp_micros()));
        updated(noted).await
    }

    fn update_erasure(&self, owner: Owner<'_>) -> UpdateItemFluentBuilder {
        let (pk, sk) = place(owner);
        self.client
            .update_item()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(pk))
            .key(SK, AttributeValue::S(sk))
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
    }

    /// Notes that an erasure is done `now`, under both names, if it is the one that is open and nothing was
    /// found since `quiet`. Answers whether it is this call that closed it. One call, twice a write for each.
    pub async fn close_erasure(
        &self,
        owner: Owner<'_>,
        open: &Erasure,
        (quiet, now): (DateTime<Utc>, DateTime<Utc>),
    ) -> Result<bool, Error> {
        let expires = (now + TimeDelta::days(KEPT_DAYS.into())).timestamp();
        let core = Core::of(open);
        let open_core = core.attribute()?;
        let done = Core {
            pseudonym: None,
            ..core
        };
        let done = done.attribute()?;
        let closing = |user: &UserId| {
            self.updating((owner.0, user))
                .update_expression("SET core = :done, #until = :until, #expires = :expires")
                .expression_attribute_names("#until", UNTIL)
                .expression_attribute_names("#expires", EXPIRES_AT)
                .expression_attribute_values(":done", done.clone())
                .expression_attribute_values(":until", number(now.timestamp_micros()))
                .expression_attribute_values(":expires", number(expires))
        };
        let own = closing(owner.1)
            .condition_expression(
                "core = :core AND attribute_not_exists(#until) \
                 AND (attribute_not_exists(#found) OR #found <= :quiet)",
            )
            .expression_attribute_names("#found", FOUND)
            .expression_attribute_values(":core", open_core)
            .expression_attribute_values(":quiet", number(quiet.timestamp_micros()));
        // While the user's own row is open, nobody else opens or closes the other.
        let other = open.pseudonym.as_ref().map(closing);
        let updates = std::iter::once(own).chain(other).map(|update| {
            let update = update.build().map_err(unbuilt(ERASURE))?;
            Ok(TransactWriteItem::builder().update(update).build())
        });
        let updates = updates.collect::<Result<_, Error>>()?;
        Ok(self.transact(updates).await? == Transacted::Done)
    }

    /// A page of what is kept of a user. Of the index it may miss what was written a moment ago. One call,
    /// another for each hundred rows of the index, and another for the events of claims that are few.
    pub async fn kept_of(
        &self,
        owner: Owner<'_>,
        (listing, extent): (Listing, Extent),
        from: Option<&Next>,
    ) -> Result<Page, Error> {
        let (tenant, user) = owner;
        let partition = keys::user(tenant, user);
        let query = match listing {
            Listing::Claims => self.rows(partition.clone(), keys::CLAIM_PREFIX),
            Listing::Vectors => self.rows(partition.clone(), keys::VECTOR_PREFIX),
            Listing::Signals => self.rows(partition.clone(), keys::SIGNAL_PREFIX),
            Listing::Versions => self.rows(keys::preferences(tenant, user), keys::VERSION_PREFIX),
            Listing::Authored => self
                .client
                .query()
                .index_name(BY_AUTHOR)
                .key_condition_expression("#author = :author")
                .expression_attribute_names("#author", AUTHOR)
                .expression_attribute_values(":author", AttributeValue::S(partition.clone())),
        };
        let from = from.map(|Next((pk, sk))| {
            let text = |text: &String| AttributeValue::S(text.clone());
            let mut row = Item::from([(PK.to_owned(), text(pk)), (SK.to_owned(), text(sk))]);
            if listing == Listing::Authored {
                row.insert(AUTHOR.to_owned(), text(&partition));
            }
            row
        });
        let answer = query
            .table_name(&self.table)
            .set_limit((extent == Extent::Few).then_some(PAGE))
            .set_exclusive_start_key(from)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| Error::unavailable("Query", &error))?;
        let next = answer.last_evaluated_key.as_ref();
        let next = next.and_then(reads::key_of).map(Next);
        let rows = answer.items.unwrap_or_default();
        let rows = if listing == Listing::Authored {
            let places: Vec<Key> = rows.iter().filter_map(reads::key_of).collect();
            // What is gone is still in the index for a moment.
            let rows = self.get_batch(&places).await?;
            rows.into_iter().flatten().collect()
        } else {
            rows
        };
        let found = rows.iter().map(|row| found(tenant, listing, row));
        let found = found.collect::<Result<_, _>>()?;
        let found = if listing == Listing::Claims && extent == Extent::Few {
            self.own_events(user, found).await?
        } else {
            found
        };
        Ok(Page { found, next })
    }

    /// What claims lead to, as far as it is the user's: once an event has expired, its name is free for
    /// anybody's.
    async fn own_events(&self, user: &UserId, found: Vec<Found>) -> Result<Vec<Found>, Error> {
        let first = |found: &Found| match found {
            Found::Event { unit, .. } => Some(unit.first.clone()),
            _ => None,
        };
        let mut places: Vec<Key> = found.iter().filter_map(first).collect();
        places.sort();
        places.dedup();
        let rows = self.get_batch(&places).await?;
        let mut others = BTreeSet::new();
        for (place, row) in places.into_iter().zip(rows) {
            if let Some(row) = row {
                let core: EventCore = item::json(&row, "event", CORE)?;
                if core.user_id != *user {
                    others.insert(place);
                }
            }
        }
        let found = found.into_iter().map(|found| match found {
            Found::Event { unit, claim, .. } if others.contains(&unit.first) => {
                Found::Trail(claim.unwrap_or(unit))
            }
            found => found,
        });
        Ok(found.collect())
    }

    fn rows(&self, partition: String, prefix: &str) -> QueryFluentBuilder {
        self.client
            .query()
            .key_condition_expression("PK = :pk AND begins_with(SK, :prefix)")
            .expression_attribute_values(":pk", AttributeValue::S(partition))
            .expression_attribute_values(":prefix", AttributeValue::S(prefix.to_owned()))
            .consistent_read(true)
    }

    /// A user's reactions in a conversation, the machine's in their name too. A call for each MB.
    pub async fn reactions_by(
        &self,
        user: &UserId,
        within: &ConversationRef,
    ) -> Result<Vec<(TurnRef, Uuid, Unit)>, Error> {
        let mut own = Vec::new();
        let mut from = None;
        loop {
            let span = crate::reactions::Span::from(None);
            let (page, next) = self.reaction_page(within, &span, from).await?;
            for item in &page {
                if let (Row::Reaction(reaction), Some(key)) = (row(item), reads::key_of(item))
                    && reaction.core.user_id == *user
                {
                    own.push((reaction.core.at, reaction.core.id, Unit::of(key, [])));
                }
            }
            from = next;
            if from.is_none() {
                return Ok(own);
            }
        }
    }

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

    /// A change of the row of an erasure, in a transaction.
    fn updating(&self, owner: Owner<'_>) -> UpdateBuilder {
        let (pk, sk) = place(owner);
        Update::builder()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(pk))
            .key(SK, AttributeValue::S(sk))
    }

    /// Counts in the row of an erasure, if it stands.
    fn counted(&self, owner: Owner<'_>, open: Option<&Erasure>) -> Result<UpdateBuilder, Error> {
        let update = self.updating(owner).update_expression(COUNTING);
        Ok(match open {
            None => update.condition_expression("attribute_exists(PK)"),
            Some(open) => update
                .condition_expression("core = :core AND attribute_not_exists(#until)")
                .expression_attribute_names("#until", UNTIL)
                .expression_attribute_values(":core", Core::of(open).attribute()?),
        })
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

    /// Counts what was removed elsewhere. One call, one write.
    pub async fn count_erased(
        &self,
        owner: Owner<'_>,
        kind: Kind,
        count: u64,
    ) -> Result<(), Error> {
        let counted = self
            .update_erasure(owner)
            .update_expression(COUNTING)
            .condition_expression("attribute_exists(PK)")
            .expression_attribute_names("#count", kind.as_str())
            .expression_attribute_values(":count", number(count));
        updated(counted).await
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
    /// By what the lines of somebody's are told that an erasure found before. One call.
    pub async fn traces(&self, tenant: &TenantId, id: Uuid) -> Result<Option<Traces>, Error> {
        self.json(TRACES, &keys::erasure_traces(tenant, id)).await
    }

    /// Remembers that. One call.
    pub async fn put_traces(
        &self,
        tenant: &TenantId,
        id: Uuid,
        traces: &Traces,
    ) -> Result<(), Error> {
        let json =
            serde_json::to_vec(traces).map_err(|error| Error::undecodable(TRACES, &error))?;
        let key = keys::erasure_traces(tenant, id);
        self.put(key, "application/json", json).await
    }

    /// Forgets that, for good. Calls as for deleting versions.
    pub async fn delete_traces(&self, tenant: &TenantId, id: Uuid) -> Result<(), Error> {
        let key = keys::erasure_traces(tenant, id);
        self.delete_versions(&key, |_| false).await.map(|_| ())
    }

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

/// What a row of a listing is.
fn found(tenant: &TenantId, listing: Listing, row: &Item) -> Result<Found, Error> {
    let key = reads::key_of(row).ok_or_else(|| Error::unreadable(ERASURE, "a row has no key"))?;
    Ok(match listing {
        Listing::Claims => {
            let id = claimant(row)?;
            let unit = Unit::event_in(&keys::event(tenant, id), Some(key.clone()));
            let claim = Some(Unit::of(key, []));
            Found::Event { id, unit, claim }
        }
        Listing::Authored => authored(tenant, key, row)?,
        Listing::Vectors => {
            let Mark { at, .. } = item::json(row, "turn vector", CORE)?;
            let vector = Unit::of(key, []);
            Found::Turn { at, vector }
        }
        Listing::Signals => {
            let core: SignalCore = item::json(row, "message signal", CORE)?;
            let (act, unit) = (core.act, Unit::of(key, []));
            if core.retracted {
                Found::Trail(unit)
            } else {
                Found::Signal { act, unit }
            }
        }
        Listing::Versions => Found::Version(Unit::of(key, [])),
    })
}

/// What a row is to which the index of authors leads: one of an event, or a marker of activity.
fn authored(tenant: &TenantId, (pk, sk): Key, row: &Item) -> Result<Found, Error> {
    if sk == keys::RESULT || sk == keys::RETRACTION {
        let id = pk.rsplit('#').next().and_then(|id| id.parse().ok());
        return Ok(Found::Event {
            id: id.ok_or_else(|| Error::unreadable(ERASURE, "an event has no name"))?,
            unit: Unit::event_in(&pk, None),
            claim: None,
        });
    }
    let activity: Activity = item::json(row, "activity marker", CORE)?;
    let within = ConversationRef {
        tenant: tenant.clone(),
        project: activity.project,
        conversation: activity.conversation,
    };
    let marker = Unit::of((pk, sk), []);
    Ok(Found::Active { within, marker })
}

/// Where the row of an erasure is.
fn place((tenant, user): Owner<'_>) -> Key {
    (keys::user(tenant, user), keys::ERASURE.to_owned())
}

fn number(value: impl Into<serde_json::Number>) -> AttributeValue {
    AttributeValue::N(value.into().to_string())
}

fn erasure(row: &Item) -> Result<Erasure, Error> {
    let core: Core = item::json(row, ERASURE, CORE)?;
    let mut removed = Removed::default();
    for kind in Kind::ALL {
        if row.contains_key(kind.as_str()) {
            *removed.of(kind) = item::number(row, ERASURE, kind.as_str())?;
        }
    }
    let until = if row.contains_key(UNTIL) {
        let micros = i64::try_from(item::number(row, ERASURE, UNTIL)?).ok();
        micros.and_then(DateTime::from_timestamp_micros)
    } else {
        None
    };
    Ok(Erasure {
        id: core.id,
        requested_at: core.requested_at,
        pseudonym: core.pseudonym,
        until,
        removed,
    })
}
