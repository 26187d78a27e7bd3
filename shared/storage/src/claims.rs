//! Dedupe claims: of several events with one dedupe key, the first to claim it counts.
//!
//! A claim contains a *fence*: the number of the user's newest preference version before the claim
//! was made. A version that learned from the event is newer, so a redelivery reads only those
//! versions to know whether the event was learned from. No clock is involved.
//!
//! Once the event of a claim is withdrawn, the next event with its key takes the claim over.
//!
//! Claims are in the partition of their user and expire with their events. An erasure finds all
//! events by them, except duplicates ([`erasures`](crate::erasures)).

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use hearback_domain::event::{EventCore, FirstEvent};
use hearback_domain::retention::LEDGER_DAYS;
use uuid::Uuid;

use crate::conditional::changed;
use crate::item::{self, Builder, Item};
use crate::{Error, Store, keys};

const FEEDBACK_ID: &str = "feedbackId";
const FENCE: &str = "fence";

/// The event that holds a dedupe key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// This event, by this call: it was never processed.
    New,
    /// This event, by an earlier delivery, which may have processed it in part.
    Own {
        /// Versions that learned from it are newer than this one.
        fence: u64,
    },
    /// Another event, which was first.
    Other {
        /// That event.
        first: Uuid,
    },
}

impl Store {
    /// Claims the dedupe key for an event, or for the first event of its batch with the same key,
    /// which then finds the claim as its own. One call, one write.
    pub async fn claim(&self, event: &EventCore, fence: u64) -> Result<Claim, Error> {
        let first = event.second_to.unwrap_or_else(|| FirstEvent::of(event));
        match self.insert_or_get(claim_item(event, first, fence)).await? {
            None if first.feedback_id == event.feedback_id => Ok(Claim::New),
            None => Ok(Claim::Other {
                first: first.feedback_id,
            }),
            Some(existing) => claim_of(&existing, event.feedback_id),
        }
    }

    /// Takes over the claim of a withdrawn event; `false` if another event has done so. The event takes it for itself:
    /// the first of its batch may have been found to be a duplicate before the withdrawal. One call, one write.
    pub async fn take_claim(
        &self,
        event: &EventCore,
        (withdrawn, fence): (Uuid, u64),
    ) -> Result<bool, Error> {
        let first = FirstEvent::of(event);
        let taken = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(claim_item(event, first, fence)))
            .condition_expression("#holder = :withdrawn")
            .expression_attribute_names("#holder", FEEDBACK_ID)
            .expression_attribute_values(":withdrawn", AttributeValue::S(withdrawn.to_string()))
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await;
        changed("PutItem", taken)
    }
}

fn claim_item(event: &EventCore, first: FirstEvent, fence: u64) -> Item {
    let owner = keys::user(&event.tenant, &event.user_id);
    Builder::new(owner, keys::claim(&event.dedupe_key()))
        .string(FEEDBACK_ID, first.feedback_id.to_string())
        .number(FENCE, fence)
        .expires(event.received_at, first.retention_days.max(LEDGER_DAYS))
        .build()
}

/// The event that holds a claim.
pub(crate) fn claimant(claim: &Item) -> Result<Uuid, Error> {
    item::string(claim, "claim", FEEDBACK_ID)?
        .parse()
        .map_err(|error: uuid::Error| Error::unreadable("claim", error.to_string()))
}

fn claim_of(claim: &Item, event: Uuid) -> Result<Claim, Error> {
    let first = claimant(claim)?;
    if first == event {
        Ok(Claim::Own {
            fence: item::number(claim, "claim", FENCE)?,
        })
    } else {
        Ok(Claim::Other { first })
    }
}
