//! Dedupe claims: of several equal acts within an hour, the first to claim the key counts.
//!
//! A claim carries a *fence*: the number of the user's newest preference version that was seen
//! before the claim was made. Whatever version the event taught is newer than that, so an event
//! that is delivered again need only look there to know whether it was learned from. No clock
//! takes part in that.
//!
//! Claims lie in the partition of their user and live as long as their events, so that an erasure finds
//! by them, at no cost, every event but those that came second ([`erasures`](crate::erasures)).

use hearback_domain::event::{EventCore, First};
use uuid::Uuid;

use crate::item::{self, Builder, Item};
use crate::{Error, Store, keys};

const FEEDBACK_ID: &str = "feedbackId";
const FENCE: &str = "fence";

/// Days that a claim is kept at least. Longer than a message lives: 14 days in the queue, 14 among the
/// dead letters, and as long again each time it is moved back, which may happen twice.
pub(crate) const KEPT_DAYS: u16 = 90;

/// Who holds the key of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// This event, as of now: it was never worked on.
    Fresh,
    /// This event, from an earlier delivery: its work may have been done in part.
    Mine {
        /// Versions that it taught are newer than this one.
        fence: u64,
    },
    /// Another event, which was first.
    Theirs {
        /// That event.
        first: Uuid,
    },
}

impl Store {
    /// Claims the dedupe key of an event, or for the first of its batch that has the same. That one then
    /// finds the claim as its own. One call, one write.
    pub async fn claim(&self, event: &EventCore, fence: u64) -> Result<Claim, Error> {
        let first = event.second_to.unwrap_or_else(|| First::of(event));
        let item = Builder::new(
            keys::user(&event.tenant, &event.user_id),
            keys::claim(&event.dedupe_key()),
        )
        .string(FEEDBACK_ID, first.feedback_id.to_string())
        .number(FENCE, fence)
        .expires(event.received_at, first.retention_days.max(KEPT_DAYS))
        .build();
        match self.put_if_new(item).await? {
            None if first.feedback_id == event.feedback_id => Ok(Claim::Fresh),
            None => Ok(Claim::Theirs {
                first: first.feedback_id,
            }),
            Some(held) => holder(&held, event.feedback_id),
        }
    }
}

/// The event that holds a claim.
pub(crate) fn claimant(claim: &Item) -> Result<Uuid, Error> {
    item::string(claim, "claim", FEEDBACK_ID)?
        .parse()
        .map_err(|error: uuid::Error| Error::unreadable("claim", error.to_string()))
}

fn holder(claim: &Item, me: Uuid) -> Result<Claim, Error> {
    let first = claimant(claim)?;
    if first == me {
        Ok(Claim::Mine {
            fence: item::number(claim, "claim", FENCE)?,
        })
    } else {
        Ok(Claim::Theirs { first })
    }
}
