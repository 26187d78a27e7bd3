//! What people corrected, by the time of the turn.
//!
//! A turn has its status in the index by status already, and its row only what is known now. So the last correction of
//! each turn is a row of its own, in the same index.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use chrono::{DateTime, Utc};
use hearback_domain::feedback::follow_up::UserFeedback;
use hearback_domain::identity::identifier::{ProjectId, TenantId};
use hearback_domain::turns::turn::TurnCore;

use crate::attributes::USER_FEEDBACK;
use crate::conditional::changed;
use crate::item::{self, Builder};
use crate::reads::Key;
use crate::table::{AUTHOR, STATUS, STATUS_AT};
use crate::turn_rows::{IndexRow, index_row};
use crate::turns_by_status::{TurnPosition, between};
use crate::{Error, Store, keys};

/// Names the kind of item in errors.
const CORRECTION: &str = "correction";
/// When it was corrected, in microseconds.
const NUMBER: &str = "number";

/// A correction.
#[derive(Debug, Clone)]
pub struct Correction {
    /// The turn whose inference was corrected.
    pub turn: IndexRow,
    /// What was known of it after the correction.
    pub feedback: UserFeedback,
}

/// A page of corrections with their positions.
#[derive(Debug, Clone, Default)]
pub struct CorrectionPage {
    /// The corrections, that of the latest turn first.
    pub rows: Vec<(TurnPosition, Correction)>,
    /// The position after which there may be more.
    pub next: Option<TurnPosition>,
}

/// A filter for the corrections of a project.
#[derive(Debug, Clone)]
pub struct CorrectionFilter<'a> {
    /// The tenant.
    pub tenant: &'a TenantId,
    /// The project.
    pub project: &'a ProjectId,
    /// The first and the last instant, both included.
    pub span: (DateTime<Utc>, DateTime<Utc>),
    /// The current time; expired turns are not listed.
    pub now: DateTime<Utc>,
}

impl Store {
    /// Stores the last correction of a turn, for as long as the turn is kept; an earlier one changes nothing. Idempotent.
    /// One call and three writes, two of them to indexes.
    pub async fn put_correction(
        &self,
        turn: &TurnCore,
        feedback: &UserFeedback,
    ) -> Result<(), Error> {
        let Some(corrected) = &feedback.corrected else {
            return Ok(());
        };
        let at = AttributeValue::N(corrected.at.timestamp_micros().to_string());
        let within = &turn.at.within;
        let shard = self.shard(within.conversation.as_str());
        let status = keys::corrections(&within.tenant, &within.project, shard);
        let row = Builder::new(keys::conversation(within), keys::correction(&turn.at.turn))
            .json(CORRECTION, USER_FEEDBACK, feedback)?
            .string(STATUS, status)
            .string(STATUS_AT, keys::turn_time(turn.ts, &turn.at))
            // An erasure finds it by the author.
            .string(AUTHOR, keys::user(turn.owner()))
            .expires_at(turn.expires_at);
        let mut row = row.build();
        row.insert(NUMBER.to_owned(), at.clone());
        let put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(row))
            .condition_expression("attribute_not_exists(PK) OR #number <= :at")
            .expression_attribute_names("#number", NUMBER)
            .expression_attribute_values(":at", at)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        changed("PutItem", put.send().await).map(|_| ())
    }

    /// A page of a project's corrections, that of the latest turn first, after a position. Eventually consistent. One call
    /// for each shard, half a read each for each 4 KB of keys; one for each fifty corrections, two reads each.
    pub async fn corrections(
        &self,
        listed: &CorrectionFilter<'_>,
        after: Option<&TurnPosition>,
        limit: usize,
    ) -> Result<CorrectionPage, Error> {
        let Some(span) = between(listed.span, after) else {
            return Ok(CorrectionPage::default());
        };
        let shard = |shard| keys::corrections(listed.tenant, listed.project, shard);
        let (entries, next) = self.latest_entries(shard, span, limit).await?;
        let keys = entries.iter().flat_map(|(_, (pk, sk))| {
            let turn = keys::turn_of_correction(sk);
            [(pk.clone(), sk.clone()), (pk.clone(), turn)]
        });
        let items = self.get_batch(&keys.collect::<Vec<Key>>()).await?;
        let rows = entries.into_iter().zip(items.chunks(2));
        let rows = rows.filter_map(|((position, _), items)| {
            let [Some(correction), Some(turn)] = items else {
                return None;
            };
            let live = [correction, turn]
                .into_iter()
                .all(|item| !item::is_expired(item, listed.now));
            let feedback = item::json(correction, CORRECTION, USER_FEEDBACK);
            let feedback = item::readable(correction, feedback).filter(|_| live)?;
            let turn = item::readable(turn, index_row(turn, listed.now))?;
            Some((position, Correction { turn, feedback }))
        });
        Ok(CorrectionPage {
            rows: rows.collect(),
            next,
        })
    }
}
