//! Finds stored feedback that never reached the signal generator, to repair an outage of the pipe
//! that was longer than the retention of the stream.
//!
//! There is no index of unprocessed events, which would cost writes for every event. The whole
//! table is scanned instead, at half a read for each 4 KB.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use chrono::{DateTime, Utc};
use hearback_domain::feedback::counted;
use hearback_domain::feedback::message_signal::StoredSignal;
use hearback_domain::identity::identifier::TenantId;
use hearback_domain::learning::ledger::{
    event_of, event_of_signal, retraction_of, retraction_of_signal,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::attributes::{CORE, COUNTED};
use crate::item::{self, Item};
use crate::reactions::{ReactionRow, row};
use crate::reads::{Key, key_of};
use crate::stream::{SUBMITTED, Submitted, submitted};
use crate::table::{EXPIRES_AT, PK, SK};
use crate::{Error, Store, keys};

/// A segment of a parallel scan.
#[derive(Debug, Clone, Copy)]
pub struct Segment {
    /// Its number, from 0.
    pub number: i32,
    /// The number of segments.
    pub of: i32,
}

/// The time range in which the feedback was received.
#[derive(Debug, Clone, Copy)]
pub struct ReceivedWindow {
    /// The start, included.
    pub since: DateTime<Utc>,
    /// The end, not included.
    pub until: DateTime<Utc>,
}

/// The position at which a scan continues.
#[derive(Debug, Clone)]
pub struct ScanCursor(HashMap<String, AttributeValue>);

/// A kind of unprocessed feedback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueuedKind {
    /// An event without an outcome.
    Event,
    /// A reaction whose event is not in the ledger.
    Reaction,
    /// A message signal whose event is not in the ledger.
    Signal,
    /// A withdrawn event that still counts for its turn.
    Withdrawal,
}

/// Unprocessed feedback.
#[derive(Debug, Clone, PartialEq)]
pub struct Queued {
    /// Its kind.
    pub kind: QueuedKind,
    /// The message that the pipe would have sent.
    pub message: String,
}

/// A page of a scan.
#[derive(Debug, Default)]
pub struct QueuedPage {
    /// The unprocessed feedback.
    pub queued: Vec<Queued>,
    /// The number of scanned items of all kinds.
    pub scanned: u64,
    /// The number of items that cannot be read.
    pub unreadable: u64,
    /// The position of the next page; `None` at the end.
    pub next: Option<ScanCursor>,
}

/// Feedback that is unprocessed unless an item with the key `unless` exists; for a withdrawn event,
/// unless that item is its tombstone.
struct Candidate {
    queued: Queued,
    unless: Key,
}

impl Candidate {
    /// Whether it is processed after the outcome of an event, and from a row that may be expired.
    fn retracts(&self) -> bool {
        let (_, kind) = &self.unless;
        kind == keys::RETRACTION || self.queued.kind == QueuedKind::Withdrawal
    }
}

impl Store {
    /// The unprocessed feedback in a page of a segment of the table. One call for each MB of the
    /// table, and one for each hundred candidates; half a read for each 4 KB that is scanned, one
    /// for each candidate.
    pub async fn queued_page(
        &self,
        segment: Segment,
        window: ReceivedWindow,
        after: Option<ScanCursor>,
    ) -> Result<QueuedPage, Error> {
        let scan = self
            .client
            .scan()
            .table_name(&self.table)
            .segment(segment.number)
            .total_segments(segment.of)
            .filter_expression(
                "#sk IN (:event, :result, :retraction) OR begins_with(#sk, :reaction) OR begins_with(#sk, :signal)",
            )
            .projection_expression("#pk, #sk, #core, #expires")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#sk", SK)
            .expression_attribute_names("#core", CORE)
            .expression_attribute_names("#expires", EXPIRES_AT)
            .expression_attribute_values(":event", text(keys::EVENT))
            .expression_attribute_values(":result", text(keys::RESULT))
            .expression_attribute_values(":retraction", text(keys::RETRACTION))
            .expression_attribute_values(":reaction", text(keys::REACTION_PREFIX))
            .expression_attribute_values(":signal", text(keys::SIGNAL_PREFIX))
            .set_exclusive_start_key(after.map(|after| after.0))
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let response = scan
            .send()
            .await
            .map_err(|error| Error::unavailable("Scan", &error))?;
        let mut page = QueuedPage {
            scanned: u64::try_from(response.scanned_count).unwrap_or_default(),
            next: response.last_evaluated_key.clone().map(ScanCursor),
            ..QueuedPage::default()
        };
        // Most events have their outcome in the same page.
        let items = response.items();
        let with_outcome: BTreeSet<_> = items.iter().filter_map(processed_event).collect();
        let mut candidates = Vec::new();
        for item in items {
            match candidate(item, window) {
                Ok(Some(candidate))
                    if !candidate.retracts() && with_outcome.contains(&candidate.unless.0) => {}
                Ok(candidate) => candidates.extend(candidate),
                Err(_) => page.unreadable += 1,
            }
        }
        page.queued = self.unprocessed(candidates).await?;
        Ok(page)
    }

    /// The candidates without the item that processing creates. Strongly consistent.
    async fn unprocessed(&self, candidates: Vec<Candidate>) -> Result<Vec<Queued>, Error> {
        let keys: BTreeSet<_> = candidates
            .iter()
            .map(|candidate| candidate.unless.clone())
            .collect();
        let keys = Vec::from_iter(keys);
        let items = self.get_batch(&keys).await?;
        let existing = items.iter().flatten().filter(|item| !is_live_event(item));
        let existing: BTreeSet<_> = existing.filter_map(key_of).collect();
        let queued = candidates
            .into_iter()
            .filter(|candidate| !existing.contains(&candidate.unless));
        Ok(queued.map(|candidate| candidate.queued).collect())
    }
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

/// Whether an item is an event that counts for its turn, and is not withdrawn.
fn is_live_event(item: &Item) -> bool {
    item.contains_key(COUNTED)
        && matches!(row(item), ReactionRow::Counted(reaction) if !reaction.core.is_event_tombstone())
}

/// The partition of an event whose outcome this is.
fn processed_event(item: &Item) -> Option<String> {
    let (partition, sort_key) = key_of(item)?;
    (sort_key == keys::RESULT).then_some(partition)
}

/// The candidate of an item, if it was received in the window.
fn candidate(item: &Item, window: ReceivedWindow) -> Result<Option<Candidate>, Error> {
    let (Some((pk, sk)), true) = (key_of(item), item.contains_key(CORE)) else {
        return Ok(None);
    };
    let core = item::string(item, "stored item", CORE)?;
    let record = json!({
        // The signal generator treats insertions and replacements alike.
        "eventName": "INSERT",
        "dynamodb": {"Keys": {"PK": {"S": pk}, "SK": {"S": sk}}, "NewImage": {"core": {"S": core}}},
    });
    let message = SUBMITTED.message(&record);
    let Some((kind, unless)) = expected(&message, &record, window)? else {
        return Ok(None);
    };
    let queued = Queued { kind, message };
    let candidate = Candidate { queued, unless };
    // A tombstone expires at once, but its retraction must still be processed.
    let expired = !candidate.retracts() && item::is_expired(item, window.until);
    Ok((!expired).then_some(candidate))
}

/// The key of the item that processing a message creates, if the message is in the window: the
/// outcome of an event; the event of a reaction or message signal, or else the retraction of the
/// one before; the tombstone of a withdrawn event about a turn.
fn expected(
    message: &str,
    record: &Value,
    window: ReceivedWindow,
) -> Result<Option<(QueuedKind, Key)>, Error> {
    let now = window.until;
    let (kind, received_at, event, retraction) = match submitted(message)? {
        Submitted::Event(event) => {
            let partition = record
                .pointer("/dynamodb/Keys/PK/S")
                .and_then(Value::as_str);
            let key = partition.map(|pk| (pk.to_owned(), keys::RESULT.to_owned()));
            (QueuedKind::Event, event.received_at, key, None)
        }
        Submitted::Reaction(reaction) => {
            let event = event_of(&reaction, "").map(|event| event.core);
            let event = event.map(|core| ledger_key(&core.tenant, core.feedback_id, keys::EVENT));
            let retraction = retraction_of(&reaction, now);
            (
                QueuedKind::Reaction,
                reaction.received_at,
                event,
                retraction,
            )
        }
        Submitted::Signal(core) => {
            let signal = StoredSignal {
                core: *core,
                reason: None,
            };
            let event = event_of_signal(&signal, now).map(|event| event.core);
            let event = event.map(|core| ledger_key(&core.tenant, core.feedback_id, keys::EVENT));
            let retraction = retraction_of_signal(&signal.core, now);
            (
                QueuedKind::Signal,
                signal.core.updated_at,
                event,
                retraction,
            )
        }
        Submitted::Withdrawal(event) => {
            let turn = counted::turn_of(&event).filter(|_| counted::counts(&event));
            let tombstone = turn.map(|at| {
                let key = keys::counted_event(&at.turn, event.feedback_id);
                (keys::conversation(&at.within), key)
            });
            (QueuedKind::Withdrawal, event.received_at, tombstone, None)
        }
    };
    let retraction =
        retraction.map(|old| ledger_key(&old.tenant, old.feedback_id, keys::RETRACTION));
    let is_in_window = (window.since..window.until).contains(&received_at);
    Ok(event
        .or(retraction)
        .filter(|_| is_in_window)
        .map(|key| (kind, key)))
}

fn ledger_key(tenant: &TenantId, feedback_id: Uuid, sort_key: &str) -> Key {
    (keys::event(tenant, feedback_id), sort_key.to_owned())
}
