//! Erasure of a user's data: one row for the user id and one for the pseudonym. `kept` finds the
//! data, `search` what is not found because of a damaged row; `removal` removes it.
//!
//! Both rows are opened in one transaction and closed in one, so that the erasure covers the same
//! time for both.

mod attribution;
mod kept;
mod reacted;
mod removal;
mod search;

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::builders::UpdateBuilder;
use aws_sdk_dynamodb::types::{
    AttributeValue, Put, ReturnConsumedCapacity, TransactWriteItem, Update,
};
use chrono::{DateTime, TimeDelta, Utc};
use hearback_domain::events::retention::LEDGER_DAYS;
use hearback_domain::export::erasure::{Erasure, ErasureIds, RemovedCounts, RemovedKind};
use hearback_domain::identity::identifier::{TenantId, UserId, UserRef};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::attributes::CORE;
use crate::conditional::updated;
use crate::damage::{self, Damaged, Loss};
use crate::item::{self, Builder, Item};
use crate::preferences::Freshness;
use crate::reads::Key;
use crate::table::{EXPIRES_AT, PK, SK};
use crate::transactions::{Transacted, invalid_request};
use crate::{Blobs, Error, Store, keys};

pub use kept::{DataSource, ErasableTurn, ErasureCursor, PageSize, PersonalData, PersonalDataPage};
pub use reacted::{UserReaction, UserReactions};
pub use removal::RowGroup;
pub use search::DamagedVectors;

const ERASURE: &str = "erasure";
const TRACES: &str = "traces of an erasure";
/// The update expression that adds to the count of a kind.
const ADD_COUNT: &str = "ADD #count :count";
/// When the erasure was completed, in microseconds since 1970.
const UNTIL: &str = "until";
/// When data was last found, in microseconds since 1970.
const FOUND_AT: &str = "found_at";

/// The row without its counts.
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
        item::text_of(ERASURE, self)
    }
}

impl Store {
    /// The erasure of a user's data, if one was requested. A row that cannot be read counts as an open erasure, or as a
    /// done one if its end can be read ([`Erasure::unreadable`]). One call, one read or half.
    pub async fn erasure(
        &self,
        owner: UserRef<'_>,
        freshness: Freshness,
    ) -> Result<Option<Erasure>, Error> {
        let row = self.get_with(row_key(owner), freshness).await?;
        Ok(row.item.as_ref().map(erasure_or_unreadable))
    }

    /// Opens an erasure of a user and of their pseudonym. Returns `None` if either has an open one; a row that cannot
    /// be read is replaced. One call, two writes for each row; if a row cannot be read, two reads and another call.
    pub async fn open_erasure(
        &self,
        UserRef { tenant, user }: UserRef<'_>,
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
            let row = Builder::new(keys::user(UserRef { tenant, user }), keys::ERASURE);
            Ok::<_, Error>(row.json(ERASURE, CORE, &core)?.build())
        };
        let own = row(user, Some(pseudonym))?;
        let opened = erasure(&own)?;
        let rows = [own, row(pseudonym, None)?];
        if self.put_erasures(&rows, &[None, None]).await? {
            return Ok(Some(opened));
        }
        let mut replaced = [None, None];
        for (user, replaced) in [user, pseudonym].into_iter().zip(&mut replaced) {
            let (pk, sk) = row_key(UserRef { tenant, user });
            let current = self.get(pk, sk).await?.item;
            *replaced = current.filter(|row| erasure(row).is_err());
        }
        if replaced.iter().all(Option::is_none) {
            return Ok(None);
        }
        tracing::warn!(%tenant, "the row of an erasure cannot be read and is replaced");
        let committed = self.put_erasures(&rows, &replaced).await?;
        Ok(committed.then_some(opened))
    }

    /// Puts rows of erasures, each if there is no open erasure, or if the row is still the one to be replaced.
    async fn put_erasures(
        &self,
        rows: &[Item; 2],
        replaced: &[Option<Item>; 2],
    ) -> Result<bool, Error> {
        let puts = rows.iter().zip(replaced).map(|(row, replaced)| {
            let put = Put::builder()
                .table_name(&self.table)
                .set_item(Some(row.clone()))
                .expression_attribute_names("#until", UNTIL);
            let free = "attribute_not_exists(PK) OR attribute_exists(#until)";
            let put = match replaced.as_ref().map(|replaced| replaced.get(CORE)) {
                None => put.condition_expression(free),
                Some(None) => put
                    .condition_expression(format!("{free} OR attribute_not_exists(#core)"))
                    .expression_attribute_names("#core", CORE),
                Some(Some(core)) => put
                    .condition_expression(format!("{free} OR #core = :core"))
                    .expression_attribute_names("#core", CORE)
                    .expression_attribute_values(":core", core.clone()),
            };
            let put = put.build().map_err(invalid_request(ERASURE))?;
            Ok(TransactWriteItem::builder().put(put).build())
        });
        let puts = puts.collect::<Result<_, Error>>()?;
        Ok(self.transact(puts).await? == Transacted::Committed)
    }

    /// Stores when data was last found: an erasure is completed only after a quiet period. One
    /// call, one write.
    pub async fn note_found(&self, owner: UserRef<'_>, at: DateTime<Utc>) -> Result<(), Error> {
        let noted = self
            .update_erasure(owner)
            .update_expression("SET #found = :found")
            .condition_expression("attribute_exists(PK)")
            .expression_attribute_names("#found", FOUND_AT)
            .expression_attribute_values(":found", number(at.timestamp_micros()));
        updated(noted).await
    }

    fn update_erasure(&self, owner: UserRef<'_>) -> UpdateItemFluentBuilder {
        let (pk, sk) = row_key(owner);
        self.client
            .update_item()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(pk))
            .key(SK, AttributeValue::S(sk))
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
    }

    /// Completes an erasure `now`, in both rows, if it is the open one and no data was found since
    /// `quiet`. A time far after `now` is ignored: the clock was set back since. Returns whether
    /// this call completed it. One call, two writes for each row.
    pub async fn close_erasure(
        &self,
        owner: UserRef<'_>,
        open: &Erasure,
        quiet: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<bool, Error> {
        // Covers everything before the request, even if the clock was set back since.
        let until = now.max(open.requested_at);
        let expires = (until + TimeDelta::days(LEDGER_DAYS.into())).timestamp();
        // A tolerance for workers whose clocks differ slightly.
        let ahead = now + (now - quiet) + TimeDelta::minutes(1);
        let core = Core::of(open);
        let open_core = core.attribute()?;
        let done = Core {
            pseudonym: None,
            ..core
        };
        let done = done.attribute()?;
        let closing = |user: &UserId| {
            let tenant = owner.tenant;
            self.row_update(UserRef { tenant, user })
                .update_expression("SET core = :done, #until = :until, #expires = :expires")
                .expression_attribute_names("#until", UNTIL)
                .expression_attribute_names("#expires", EXPIRES_AT)
                .expression_attribute_values(":done", done.clone())
                .expression_attribute_values(":until", number(until.timestamp_micros()))
                .expression_attribute_values(":expires", number(expires))
        };
        let own = closing(owner.user)
            .condition_expression(
                "core = :core AND attribute_not_exists(#until) \
                 AND (attribute_not_exists(#found) OR #found <= :quiet OR #found > :ahead)",
            )
            .expression_attribute_names("#found", FOUND_AT)
            .expression_attribute_values(":core", open_core)
            .expression_attribute_values(":quiet", number(quiet.timestamp_micros()))
            .expression_attribute_values(":ahead", number(ahead.timestamp_micros()));
        // While the user's own row is open, no other request opens or closes the pseudonym's.
        let other = open.pseudonym.as_ref().map(closing);
        let updates = std::iter::once(own).chain(other).map(|update| {
            let update = update.build().map_err(invalid_request(ERASURE))?;
            Ok(TransactWriteItem::builder().update(update).build())
        });
        let updates = updates.collect::<Result<_, Error>>()?;
        Ok(self.transact(updates).await? == Transacted::Committed)
    }

    /// Counts data that was removed outside the table. One call, one write.
    pub async fn count_erased(
        &self,
        owner: UserRef<'_>,
        kind: RemovedKind,
        count: u64,
    ) -> Result<(), Error> {
        let counted = self
            .update_erasure(owner)
            .update_expression(ADD_COUNT)
            .condition_expression("attribute_exists(PK)")
            .expression_attribute_names("#count", kind.as_str())
            .expression_attribute_values(":count", number(count));
        updated(counted).await
    }

    /// An update of the row of an erasure, for a transaction.
    fn row_update(&self, owner: UserRef<'_>) -> UpdateBuilder {
        let (pk, sk) = row_key(owner);
        Update::builder()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(pk))
            .key(SK, AttributeValue::S(sk))
    }

    /// An update that counts in the row of an erasure; its condition is that the row exists.
    fn count_update(
        &self,
        owner: UserRef<'_>,
        open: Option<&Erasure>,
    ) -> Result<UpdateBuilder, Error> {
        let update = self.row_update(owner).update_expression(ADD_COUNT);
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
    /// The traces of a user's lines that an earlier pass of an erasure found. Traces that cannot be read count as
    /// none: a pass finds in the table again what it has not removed yet. One call.
    pub async fn traces(&self, tenant: &TenantId, id: Uuid) -> Result<Option<ErasureIds>, Error> {
        match self.json(TRACES, &keys::erasure_traces(tenant, id)).await {
            Err(error @ Error::Unreadable { .. }) => {
                tracing::warn!(%tenant, %error, "an erasure continues without its traces");
                Ok(None)
            }
            traces => traces,
        }
    }

    /// Stores the traces for later passes. One call.
    pub async fn put_traces(
        &self,
        tenant: &TenantId,
        id: Uuid,
        traces: &ErasureIds,
    ) -> Result<(), Error> {
        let json =
            serde_json::to_vec(traces).map_err(|error| Error::undecodable(TRACES, &error))?;
        let key = keys::erasure_traces(tenant, id);
        self.put(key, "application/json", json).await
    }

    /// Deletes the traces permanently. Calls as for deleting versions.
    pub async fn delete_traces(&self, tenant: &TenantId, id: Uuid) -> Result<(), Error> {
        let key = keys::erasure_traces(tenant, id);
        self.delete_versions(&key, |_| false).await.map(|_| ())
    }
}

/// The key of the row of an erasure.
fn row_key(owner: UserRef<'_>) -> Key {
    (keys::user(owner), keys::ERASURE.to_owned())
}

fn number(value: impl Into<serde_json::Number>) -> AttributeValue {
    AttributeValue::N(value.into().to_string())
}

/// The erasure of a row. If the row cannot be read, it is unknown whether the user's data is being erased: data that is
/// written now might have to be removed, and the removal of received events was promised. So the erasure counts as open
/// until another request replaces it.
fn erasure_or_unreadable(row: &Item) -> Erasure {
    erasure(row).unwrap_or_else(|error| {
        let message = "the row of an erasure cannot be read";
        damage::note(Loss::None, &Damaged::default(), &error, message);
        Erasure::unreadable(until(row).ok().flatten())
    })
}

/// When an erasure was done.
fn until(row: &Item) -> Result<Option<DateTime<Utc>>, Error> {
    if !row.contains_key(UNTIL) {
        return Ok(None);
    }
    let micros = i64::try_from(item::number(row, ERASURE, UNTIL)?).ok();
    let until = micros.and_then(DateTime::from_timestamp_micros);
    until
        .map(Some)
        .ok_or_else(|| Error::unreadable(ERASURE, "its end is no time"))
}

fn erasure(row: &Item) -> Result<Erasure, Error> {
    let core: Core = item::json(row, ERASURE, CORE)?;
    let mut removed = RemovedCounts::default();
    for kind in RemovedKind::ALL {
        if row.contains_key(kind.as_str()) {
            *removed.of(kind) = item::number(row, ERASURE, kind.as_str())?;
        }
    }
    Ok(Erasure {
        id: core.id,
        requested_at: core.requested_at,
        pseudonym: core.pseudonym,
        until: until(row)?,
        removed,
    })
}
