//! Imports of which a row cannot be read. Lost progress is repeated: events that were stored before are recognized, so
//! that each line still counts once.

use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem, Update};
use hearback_domain::events::import::Counts;

use super::{
    CORE, DONE, IMPORT, ImportCore, ImportRow, KEPT_DAYS, PIECE, PieceState, by_counter, piece_item,
};
use crate::conditional::{ATTEMPT, Condition};
use crate::item::{Builder, Item};
use crate::table::{PK, SK};
use crate::transactions::{Transacted, invalid_request};
use crate::{Error, Store, WriteToken, keys};

/// The row is not replaced, because it is not the one that was read.
const CHANGED: &str = "another worker changed the import";

/// The sums of the completed and readable pieces of an import, for the import's counters.
#[derive(Default)]
struct Completed {
    pieces: u64,
    counts: Counts,
}

impl Completed {
    fn of(pieces: &[Option<PieceState>]) -> Self {
        let mut completed = Self::default();
        let readable = pieces.iter().flatten();
        for piece in readable.filter(|piece| piece.next.is_none()) {
            completed.pieces += 1;
            completed.counts += piece.counts;
        }
        completed
    }

    /// The counters with their values.
    fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [(DONE, self.pieces)]
            .into_iter()
            .chain(by_counter(self.counts))
    }
}

impl Store {
    /// Replaces the unreadable row of an import with that of a new import, and counts the pieces that are already
    /// completed.
    pub(super) async fn rebuild_import(&self, core: &ImportCore) -> Result<ImportRow, Error> {
        let id = core.id();
        let partition = keys::import(&id.tenant, &id.id);
        // Read before the pieces: a piece that another worker completes afterwards changes this row.
        let existing = self.get(partition.clone(), keys::IMPORT.to_owned()).await?;
        let existing = existing.item.unwrap_or_default();
        let completed = Completed::of(&self.import_pieces(&id).await?);
        let row = Builder::new(partition, keys::IMPORT)
            .json(IMPORT, CORE, core)?
            .expires(core.started_at, KEPT_DAYS);
        let counters = completed.counters();
        let row = counters.fold(row, |row, (name, count)| row.number(name, count));
        let before = existing.get(DONE);
        if !self.replace_unchanged(row.build(), DONE, before).await? {
            return Err(Error::failed("PutItem", CHANGED));
        }
        Ok(ImportRow {
            done: completed.pieces,
            counts: completed.counts,
            ..ImportRow::new(core)
        })
    }

    /// Replaces the unreadable row of a piece with that of a new piece at this offset, and recounts the completed
    /// pieces: it may have been one of them. A call for each MB of pieces, and four writes.
    pub async fn restart_import_piece(
        &self,
        import: &ImportCore,
        number: u64,
        from: u64,
    ) -> Result<(), Error> {
        let id = import.id();
        let partition = keys::import(&id.tenant, &id.id);
        let key = keys::import_piece(number);
        let row = self.get(partition.clone(), keys::IMPORT.to_owned());
        let row = row.await?.item.unwrap_or_default();
        let damaged = self.get(partition.clone(), key).await?.item;
        let damaged = damaged.unwrap_or_default();
        let completed = Completed::of(&self.import_pieces(&id).await?);
        let state = PieceState {
            next: Some(from),
            ..PieceState::default()
        };
        let mut item = piece_item(import, number, &state)?;
        item.insert(ATTEMPT.to_owned(), WriteToken::random().number());
        let (unchanged, seen) = Condition::still(damaged.get(ATTEMPT)).expression();
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(item))
            .condition_expression(unchanged)
            .set_expression_attribute_values(seen)
            .build();
        let put = TransactWriteItem::builder().put(put.map_err(invalid_request(PIECE))?);
        let recount = self.recount(partition, &completed, row.get(DONE))?;
        let recount = TransactWriteItem::builder().update(recount);
        match self.transact(vec![put.build(), recount.build()]).await? {
            Transacted::Committed => Ok(()),
            Transacted::Rejected(_) => Err(Error::failed("TransactWriteItems", CHANGED)),
        }
    }

    fn recount(
        &self,
        partition: String,
        completed: &Completed,
        done_before: Option<&AttributeValue>,
    ) -> Result<Update, Error> {
        let (mut names, mut values, mut sets) = (Vec::new(), Item::new(), Vec::new());
        for (name, count) in completed.counters() {
            sets.push(format!("#{name} = :{name}"));
            names.push((format!("#{name}"), name.to_owned()));
            values.insert(format!(":{name}"), AttributeValue::N(count.to_string()));
        }
        let unchanged = match done_before {
            Some(before) => {
                values.insert(":before".to_owned(), before.clone());
                "#done = :before"
            }
            None => "attribute_exists(PK) AND attribute_not_exists(#done)",
        };
        Update::builder()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(partition))
            .key(SK, AttributeValue::S(keys::IMPORT.to_owned()))
            .update_expression(format!("SET {}", sets.join(", ")))
            .set_expression_attribute_names(Some(names.into_iter().collect()))
            .set_expression_attribute_values(Some(values))
            .condition_expression(unchanged)
            .build()
            .map_err(invalid_request(IMPORT))
    }
}
