//! Imports of files: a row for the file, and one for each of its pieces, in one partition.
//!
//! A redelivered message can process a piece twice. A worker replaces the row of a piece only if it
//! is unchanged, so that each line counts once. The file's row counts the completed pieces, in one
//! transaction with the piece itself.

use std::collections::HashMap;

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{
    AttributeValue, Put, ReturnConsumedCapacity, TransactWriteItem, Update,
};
use chrono::{DateTime, Utc};
use hearback_domain::events::import::{Counts, ImportReport, Packing, RejectedLine};
use hearback_domain::identity::identifier::TenantId;
use hearback_domain::text::digest::digest;
use serde::{Deserialize, Serialize};

use crate::attributes::CORE;
use crate::conditional::{ATTEMPT, Condition, changed, updated};
use crate::damage::{self, Damaged, Loss};
use crate::item::{self, Builder, Item};
use crate::table::{PK, SK};
use crate::transactions::{Transacted, invalid_request};
use crate::{Error, Replaced, Store, Versioned, WriteToken, Written, keys};

mod damaged;

const IMPORT: &str = "import";
const PIECE: &str = "piece of an import";
const PIECES: &str = "pieces";
const DAMAGE: &str = "damage";
const DONE: &str = "done";
/// Counters of the lines of completed pieces, in the order of [`Counts`].
const LINES: [&str; 4] = ["lines", "queued", "duplicates", "rejected"];
const REPORT: &str = "report";
/// Retention of the rows of an import, in days from its start.
const KEPT_DAYS: u16 = 30;

/// A file that is imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportCore {
    /// The tenant of its events.
    pub tenant: TenantId,
    /// Its key in the bucket.
    pub key: String,
    /// The `ETag` of its content.
    pub etag: String,
    /// Its version, if the bucket keeps versions.
    pub version: Option<String>,
    /// Its size, in bytes.
    pub size: u64,
    /// How it is packed.
    pub packing: Packing,
    /// When the import began.
    pub started_at: DateTime<Utc>,
}

impl ImportCore {
    /// The id of the import: the same content at the same key has the same id.
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

/// The message group of a tenant, by which fair queues share consumers among tenants. A digest, because a queue does
/// not accept every character of a name.
#[must_use]
pub fn message_group(tenant: &TenantId) -> String {
    let half = digest([tenant.as_str()]).into_iter().take(16);
    hex::encode(half.collect::<Vec<_>>())
}

/// Names an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportId {
    /// The tenant.
    pub tenant: TenantId,
    /// Its name.
    pub id: String,
}

/// An import with its progress.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportRow {
    /// The file.
    pub core: ImportCore,
    /// The number of pieces, once it is known.
    pub pieces: Option<u64>,
    /// Why the file could not be read to its end.
    pub damage: Option<String>,
    /// The number of completed pieces.
    pub done: u64,
    /// The outcomes of their lines.
    pub counts: Counts,
    /// The report, once the import is completed.
    pub report: Option<ImportReport>,
}

impl ImportRow {
    /// The progress of an import that begins.
    fn new(core: &ImportCore) -> Self {
        Self {
            core: core.clone(),
            pieces: None,
            damage: None,
            done: 0,
            counts: Counts::default(),
            report: None,
        }
    }
}

/// The progress of a piece.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PieceState {
    /// The outcomes of its lines so far.
    pub counts: Counts,
    /// Names of the files of its rejected lines.
    pub rejects: Vec<String>,
    /// The first rejected lines, each with its number within the piece.
    pub first_errors: Vec<RejectedLine>,
    /// Whether an event in it asks for anonymity.
    pub anonymous: bool,
    /// Whether it has a line that was too long to read.
    #[serde(default)]
    pub unread: bool,
    /// Bytes of the files of rejects.
    #[serde(default)]
    pub reject_bytes: u64,
    /// The number of rejected lines that are in no file, because the limit was reached before them.
    #[serde(default)]
    pub rejects_left_out: u64,
    /// The offset of the first unprocessed line; `None` if the piece is completed.
    pub next: Option<u64>,
}

impl Store {
    /// Registers an import, and returns its progress. If its row cannot be read, it begins again. One call and one write;
    /// one more call and read if it exists.
    pub async fn register_import(&self, core: &ImportCore) -> Result<ImportRow, Error> {
        let id = core.id();
        let row = Builder::new(keys::import(&id.tenant, &id.id), keys::IMPORT)
            .json(IMPORT, CORE, core)?
            .number(DONE, 0)
            .expires(core.started_at, KEPT_DAYS)
            .build();
        if self.insert(row).await? == Written::AlreadyExists {
            match self.import(&id).await {
                Ok(Some(existing)) => return Ok(existing),
                // It has expired meanwhile.
                Ok(None) => {}
                Err(error @ Error::Unreadable { .. }) => {
                    let message = "an import that cannot be read begins again";
                    damage::note(Loss::None, &Damaged::of(&id.tenant), &error, message);
                    return self.rebuild_import(core).await;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(ImportRow::new(core))
    }

    /// An import with its progress. One call, one read for each 4 KB.
    pub async fn import(&self, id: &ImportId) -> Result<Option<ImportRow>, Error> {
        let partition = keys::import(&id.tenant, &id.id);
        let item = self.get(partition, keys::IMPORT.to_owned()).await?.item;
        item.as_ref().map(import_row).transpose()
    }

    /// The progress of a piece; `None` if none is stored. One call, one
    /// read for each 4 KB.
    pub async fn import_piece(
        &self,
        id: &ImportId,
        number: u64,
    ) -> Result<Option<Versioned<PieceState>>, Error> {
        let partition = keys::import(&id.tenant, &id.id);
        let item = self.get(partition, keys::import_piece(number)).await?.item;
        item.as_ref().map(piece).transpose()
    }

    /// Stores the progress of an unfinished piece, if its row is unchanged. One call, one write.
    pub async fn put_import_piece(
        &self,
        import: &ImportCore,
        number: u64,
        state: &PieceState,
        seen: Option<&Versioned<PieceState>>,
    ) -> Result<Replaced<PieceState>, Error> {
        let item = piece_item(import, number, state)?;
        self.replace(item, seen, piece).await
    }

    /// Completes a piece, if its row is unchanged, and counts it. Returns `false` if another worker
    /// was faster. One call, four writes.
    pub async fn finish_import_piece(
        &self,
        import: &ImportCore,
        number: u64,
        state: &PieceState,
        seen: Option<&Versioned<PieceState>>,
    ) -> Result<bool, Error> {
        let mut item = piece_item(import, number, state)?;
        item.insert(ATTEMPT.to_owned(), WriteToken::random().number());
        let condition = seen.map_or(Condition::Free, Versioned::condition);
        let (condition, values) = condition.expression();
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(item))
            .condition_expression(condition)
            .set_expression_attribute_values(values);
        let id = import.id();
        let count = Update::builder()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(keys::import(&id.tenant, &id.id)))
            .key(SK, AttributeValue::S(keys::IMPORT.to_owned()))
            .update_expression(format!("ADD done :one, {}", added().join(", ")))
            .set_expression_attribute_names(Some(counters()))
            .condition_expression("attribute_exists(PK)")
            .set_expression_attribute_values(Some(counted(state.counts)));
        let put = put.build().map_err(invalid_request(PIECE))?;
        let put = TransactWriteItem::builder().put(put);
        let count = count.build().map_err(invalid_request(PIECE))?;
        let count = TransactWriteItem::builder().update(count);
        let written = self.transact(vec![put.build(), count.build()]).await?;
        Ok(written == Transacted::Committed)
    }

    /// Stores the number of pieces of a file, and the damage at which it ends. Idempotent. One
    /// call, one write.
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

    /// Stores the damage of a file. Idempotent. One call, one write.
    pub async fn note_import_damage(&self, id: &ImportId, damage: &str) -> Result<(), Error> {
        let update = self
            .update_import(id)
            .update_expression("SET damage = :damage")
            .expression_attribute_values(":damage", AttributeValue::S(damage.to_owned()));
        updated(update).await
    }

    /// Stores the report of an import, unless it has one, and returns the stored one. One call, one
    /// write for each KB; one more call and read if there was one.
    pub async fn note_import_report(
        &self,
        id: &ImportId,
        report: ImportReport,
    ) -> Result<ImportReport, Error> {
        let text =
            serde_json::to_string(&report).map_err(|error| Error::undecodable(REPORT, &error))?;
        let updated = self
            .update_import(id)
            .update_expression("SET report = :report")
            .condition_expression("attribute_exists(PK) AND attribute_not_exists(report)")
            .expression_attribute_values(":report", AttributeValue::S(text))
            .send()
            .await;
        if changed("UpdateItem", updated)? {
            return Ok(report);
        }
        let current = self.import(id).await?.and_then(|row| row.report);
        current.ok_or_else(|| Error::failed("UpdateItem", "the import does not exist"))
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

    /// The stored pieces of an import, in order; `None` for one that cannot be read. A call for each MB, one read for
    /// each 4 KB.
    pub async fn import_pieces(&self, id: &ImportId) -> Result<Vec<Option<PieceState>>, Error> {
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
            for item in page.items() {
                pieces.push(item::readable(item, item::json(item, PIECE, CORE)));
            }
            from = page.last_evaluated_key;
            if from.is_none() {
                return Ok(pieces);
            }
        }
    }
}

/// The `ADD` clauses of the counters of a piece.
fn added() -> [String; 4] {
    LINES.map(|name| format!("#{name} :{name}"))
}

/// The placeholders of [`added`]: `lines` is a reserved word.
fn counters() -> HashMap<String, String> {
    let names = LINES.into_iter();
    names
        .map(|name| (format!("#{name}"), name.to_owned()))
        .collect()
}

/// The values that a piece adds to the counters.
fn counted(counts: Counts) -> Item {
    let counters = by_counter(counts).into_iter().chain([("one", 1)]);
    counters
        .map(|(name, count)| (format!(":{name}"), AttributeValue::N(count.to_string())))
        .collect()
}

/// The counters of [`LINES`] with their values.
fn by_counter(counts: Counts) -> [(&'static str, u64); 4] {
    let Counts {
        lines,
        queued,
        duplicates,
        rejected,
    } = counts;
    let [a, b, c, d] = LINES;
    [(a, lines), (b, queued), (c, duplicates), (d, rejected)]
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

fn piece(item: &Item) -> Result<Versioned<PieceState>, Error> {
    Versioned::of(item, PIECE, |item| item::json(item, PIECE, CORE))
}

fn import_row(item: &Item) -> Result<ImportRow, Error> {
    let pieces = item.get(PIECES);
    let damage = item.get(DAMAGE).and_then(|damage| damage.as_s().ok());
    let report = item.get(REPORT);
    // Imports of an older version have no counters.
    let counter = |name| match item.get(name) {
        None => Ok(0),
        Some(_) => item::number(item, IMPORT, name),
    };
    let [lines, queued, duplicates, rejected] = LINES.map(counter);
    Ok(ImportRow {
        core: item::json(item, IMPORT, CORE)?,
        pieces: pieces
            .map(|_| item::number(item, IMPORT, PIECES))
            .transpose()?,
        damage: damage.cloned(),
        done: item::number(item, IMPORT, DONE)?,
        counts: Counts {
            lines: lines?,
            queued: queued?,
            duplicates: duplicates?,
            rejected: rejected?,
        },
        report: report
            .map(|_| item::json(item, IMPORT, REPORT))
            .transpose()?,
    })
}
