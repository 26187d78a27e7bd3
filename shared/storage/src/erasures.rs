//! Erasing a person: a row for each of their names. What is kept under them is found in `kept`, and
//! removed in `removal`.
//!
//! A person has two names, their own and a pseudonym. Their rows are opened in one transaction, and closed
//! in one: until when an erasure holds is the same for both.

mod kept;
mod removal;

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::builders::UpdateBuilder;
use aws_sdk_dynamodb::types::{
    AttributeValue, Put, ReturnConsumedCapacity, TransactWriteItem, Update,
};
use chrono::{DateTime, TimeDelta, Utc};
use hearback_domain::erasure::{Erasure, Kind, Removed, Traces};
use hearback_domain::identifier::{TenantId, UserId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::claims;
use crate::events::CORE;
use crate::item::{self, Builder, Item};
use crate::places::updated;
use crate::preferences::Freshness;
use crate::reads::Key;
use crate::table::{EXPIRES_AT, PK, SK};
use crate::transactions::{Transacted, unbuilt};
use crate::{Blobs, Error, Store, keys};

pub use kept::{Extent, Found, Listing, Next, Page, Reacted};
pub use removal::Unit;

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
