//! Imports of files: a row for the file, and one for each of its pieces, in one partition.
//!
//! Each piece is worked off by whoever gets its message, twice if need be; its row is written over the
//! version that was read, so that what it counts counts once. The file's row counts the pieces that
//! are done, in one transaction with the piece itself.

use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{
    AttributeValue, Put, ReturnConsumedCapacity, TransactWriteItem, Update,
};
use chrono::{DateTime, Utc};
use hearback_domain::digest::digest;
use hearback_domain::identifier::TenantId;
use hearback_domain::import::{Counts, Packing, RejectedLine, Report};
use serde::{Deserialize, Serialize};

use crate::events::CORE;
use crate::item::{self, Builder, Item};
use crate::places::{ATTEMPT, updated};
use crate::table::{PK, SK};
use crate::transactions::{Transacted, unbuilt};
use crate::{Attempt, Error, Replaced, Standing, Store, Written, keys};

const IMPORT: &str = "import";
const PIECE: &str = "piece of an import";
const PIECES: &str = "pieces";
const DAMAGE: &str = "damage";
const DONE: &str = "done";
const REPORT: &str = "report";
/// Days that the rows of an import are kept, from its start.
const KEPT_DAYS: u16 = 30;

/// A file that is imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportCore {
    /// Whose events they are.
    pub tenant: TenantId,
    /// Its key in the bucket.
    pub key: String,
    /// Which content it had, by the bucket.
    pub etag: String,
    /// Which version it is, if the bucket keeps versions.
    pub version: Option<String>,
    /// Its size, in bytes.
    pub size: u64,
    /// How it is packed.
    pub packing: Packing,
    /// When the import was begun.
    pub started_at: DateTime<Utc>,
}

impl ImportCore {
    /// The identity of the import: the same content in the same place is the same.
    #[must_use]
    pub fn id(&self) -> ImportId {
        let version = self.version.as_deref().unwrap_or_default();
        let names = [self.tenant.as_str(), &self.key, &self.etag, version];
        let half = digest(names).into_iter().take(16).collect::<Vec<_>>();
        ImportId {
            tenant: self.tenant.clone(),
            id: hex::encode(half),
        }
    }
}

/// Names an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportId {
    /// Whose it is.
    pub tenant: TenantId,
    /// Its name.
    pub id: String,
}

/// An import, and how far it is.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportRow {
    /// The file.
    pub core: ImportCore,
    /// How many pieces it has, once that is known.
    pub pieces: Option<u64>,
    /// What is wrong with the file, so that it could not be read to its end.
    pub damage: Option<String>,
    /// How many of them are done.
    pub done: u64,
    /// What it came to, once it is done.
    pub report: Option<Report>,
}

/// How far a piece is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PieceState {
    /// What became of its lines so far.
    pub counts: Counts,
    /// Names of the files of its lines that are no event.
    pub rejects: Vec<String>,
    /// The first of them, each with its number within the piece.
    pub first_errors: Vec<RejectedLine>,
    /// Whether an event in it asks for anonymity.
    pub anonymous: bool,
    /// Whether a line of it was too long to be read.
    #[serde(default)]
    pub unread: bool,
    /// Where the first line begins that was not worked off; `None` if the piece is done.
    pub next: Option<u64>,
}

impl Store {
    /// Enters an import, and answers how far it is. One call and one write, and a call and a read more
    /// if it is known.
    pub async fn enter_import(&self, core: &ImportCore) -> Result<ImportRow, Error> {
        let id = core.id();
        let row = Builder::new(keys::import(&id.tenant, &id.id), keys::IMPORT)
            .json(IMPORT, CORE, core)?
            .number(DONE, 0)
            .expires(core.started_at, KEPT_DAYS)
            .build();
        if self.put_once(row).await? == Written::Known
            && let Some(known) = self.import(&id).await?
        {
            return Ok(known);
        }
        Ok(ImportRow {
            core: core.clone(),
            pieces: None,
            damage: None,
            done: 0,
            report: None,
        })
    }

    /// An import, and how far it is. One call, one read for each 4 KB.
    pub async fn import(&self, id: &ImportId) -> Result<Option<ImportRow>, Error> {
        let partition = keys::import(&id.tenant, &id.id);
        let found = self.get(partition, keys::IMPORT.to_owned()).await?.item;
        found.as_ref().map(import_row).transpose()
    }

    /// How far a piece is; `None` if it was not begun, or nothing was written down of it. One call, one
    /// read for each 4 KB.
    pub async fn import_piece(
        &self,
        id: &ImportId,
        number: u64,
    ) -> Result<Option<Standing<PieceState>>, Error> {
        let partition = keys::import(&id.tenant, &id.id);
        let found = self.get(partition, keys::import_piece(number)).await?.item;
        found.as_ref().map(piece).transpose()
    }

    /// Writes down how far a piece is that is not done, over what was read. One call, one write.
    pub async fn put_import_piece(
        &self,
        import: &ImportCore,
        number: u64,
        state: &PieceState,
        seen: Option<&Standing<PieceState>>,
    ) -> Result<Replaced<PieceState>, Error> {
        let item = piece_item(import, number, state)?;
        self.put_over(item, seen, piece).await
    }

    /// Writes down that a piece is done, over what was read, and counts it. Answers `false` if somebody
    /// else was faster. One call, four writes.
    pub async fn finish_import_piece(
        &self,
        import: &ImportCore,
        number: u64,
        state: &PieceState,
        seen: Option<&Standing<PieceState>>,
    ) -> Result<bool, Error> {
        let mut item = piece_item(import, number, state)?;
        item.insert(ATTEMPT.to_owned(), Attempt::drawn().number());
        let put = Put::builder().table_name(&self.table).set_item(Some(item));
        let put = match seen {
            None => put.condition_expression("attribute_not_exists(PK)"),
            Some(seen) => put
                .condition_expression("attempt = :seen")
                .set_expression_attribute_values(
                    seen.version()
                        .map(|version| [(":seen".to_owned(), version.clone())].into()),
                ),
        };
        let id = import.id();
        let count = Update::builder()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(keys::import(&id.tenant, &id.id)))
            .key(SK, AttributeValue::S(keys::IMPORT.to_owned()))
            .update_expression("ADD done :one")
            .condition_expression("attribute_exists(PK)")
            .expression_attribute_values(":one", AttributeValue::N("1".to_owned()));
        let put = put.build().map_err(unbuilt(PIECE))?;
        let put = TransactWriteItem::builder().put(put);
        let count = count.build().map_err(unbuilt(PIECE))?;
        let count = TransactWriteItem::builder().update(count);
        let written = self.transact(vec![put.build(), count.build()]).await?;
        Ok(written == Transacted::Done)
    }

    /// Notes how many pieces a file has, and what damage ended it. May be repeated. One call, one write.
    pub async fn note_import_pieces(
        &self,
        id: &ImportId,
        pieces: u64,
        damage: Option<&str>,
    ) -> Result<(), Error> {
        let update = self
            .update_import(id)
            .expression_attribute_values(":pieces", AttributeValue::N(pieces.to_string()));
        let update = match damage {
            None => update.update_expression("SET pieces = :pieces"),
            Some(damage) => update
                .update_expression("SET pieces = :pieces, damage = :damage")
                .expression_attribute_values(":damage", AttributeValue::S(damage.to_owned())),
        };
        updated(update).await
    }

    /// Notes what is wrong with a file. May be repeated. One call, one write.
    pub async fn note_import_damage(&self, id: &ImportId, damage: &str) -> Result<(), Error> {
        let update = self
            .update_import(id)
            .update_expression("SET damage = :damage")
            .expression_attribute_values(":damage", AttributeValue::S(damage.to_owned()));
        updated(update).await
    }

    /// Notes what an import came to, and answers the report that stands: of several the first. One call,
    /// a write for each KB; and a call and a read more if one stands already.
    pub async fn note_import_report(&self, id: &ImportId, report: Report) -> Result<Report, Error> {
        let text =
            serde_json::to_string(&report).map_err(|error| Error::undecodable(REPORT, &error))?;
        let updated = self
            .update_import(id)
            .update_expression("SET report = :report")
            .condition_expression("attribute_exists(PK) AND attribute_not_exists(report)")
            .expression_attribute_values(":report", AttributeValue::S(text))
            .send()
            .await;
        let Err(error) = updated else {
            return Ok(report);
        };
        let refused = error.as_service_error();
        if refused.is_some_and(UpdateItemError::is_conditional_check_failed_exception)
            && let Some(row) = self.import(id).await?
            && let Some(stands) = row.report
        {
            return Ok(stands);
        }
        Err(Error::unavailable("UpdateItem", &error))
    }

    fn update_import(&self, id: &ImportId) -> UpdateItemFluentBuilder {
        self.client
            .update_item()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(keys::import(&id.tenant, &id.id)))
            .key(SK, AttributeValue::S(keys::IMPORT.to_owned()))
            .condition_expression("attribute_exists(PK)")
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
    }

    /// Every piece of an import that was written down, in order. A call for each MB, one read for each
    /// 4 KB.
    pub async fn import_pieces(&self, id: &ImportId) -> Result<Vec<PieceState>, Error> {
        let mut pieces = Vec::new();
        let mut from = None;
        loop {
            let page = self
                .client
                .query()
                .table_name(&self.table)
                .key_condition_expression("PK = :pk AND begins_with(SK, :piece)")
                .expression_attribute_values(
                    ":pk",
                    AttributeValue::S(keys::import(&id.tenant, &id.id)),
                )
                .expression_attribute_values(
                    ":piece",
                    AttributeValue::S(keys::PIECE_PREFIX.to_owned()),
                )
                .consistent_read(true)
                .set_exclusive_start_key(from)
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
                .await
                .map_err(|error| Error::unavailable("Query", &error))?;
            for found in page.items() {
                pieces.push(item::json(found, PIECE, CORE)?);
            }
            from = page.last_evaluated_key;
            if from.is_none() {
                return Ok(pieces);
            }
        }
    }
}

fn piece_item(import: &ImportCore, number: u64, state: &PieceState) -> Result<Item, Error> {
    let id = import.id();
    Ok(
        Builder::new(keys::import(&id.tenant, &id.id), keys::import_piece(number))
            .json(PIECE, CORE, state)?
            .expires(import.started_at, KEPT_DAYS)
            .build(),
    )
}

fn piece(found: &Item) -> Result<Standing<PieceState>, Error> {
    Standing::of(found, PIECE, |found| item::json(found, PIECE, CORE))
}

fn import_row(found: &Item) -> Result<ImportRow, Error> {
    let pieces = found.get(PIECES);
    let damage = found.get(DAMAGE).and_then(|damage| damage.as_s().ok());
    let report = found.get(REPORT);
    Ok(ImportRow {
        core: item::json(found, IMPORT, CORE)?,
        pieces: pieces
            .map(|_| item::number(found, IMPORT, PIECES))
            .transpose()?,
        damage: damage.cloned(),
        done: item::number(found, IMPORT, DONE)?,
        report: report
            .map(|_| item::json(found, IMPORT, REPORT))
            .transpose()?,
    })
}
