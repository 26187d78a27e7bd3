//! Dedupe claims: of several events with one dedupe key, the first to claim it counts.
//!
//! A claim contains a *fence*: the number of the user's newest preference version before the claim
//! was made. A version that learned from the event is newer, so a redelivery reads only those
//! versions to know whether the event was learned from. No clock is involved.
//!
//! Claims are in the partition of their user and expire with their events. An erasure finds all
//! events by them, except duplicates ([`erasures`](crate::erasures)).

use hearback_domain::event::{EventCore, FirstEvent};
use hearback_domain::retention::LEDGER_DAYS;
use uuid::Uuid;

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
        let item = Builder::new(
            keys::user(&event.tenant, &event.user_id),
            keys::claim(&event.dedupe_key()),
        )
        .string(FEEDBACK_ID, first.feedback_id.to_string())
        .number(FENCE, fence)
        .expires(event.received_at, first.retention_days.max(LEDGER_DAYS))
        .build();
        match self.insert_or_get(item).await? {
            None if first.feedback_id == event.feedback_id => Ok(Claim::New),
            None => Ok(Claim::Other {
                first: first.feedback_id,
            }),
            Some(existing) => claim_of(&existing, event.feedback_id),
        }
    }
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
