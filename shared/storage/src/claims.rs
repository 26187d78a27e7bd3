//! Dedupe claims: of several events with one dedupe key, the first that was received counts.
//!
//! The first to be processed claims the key. One that was received before it and is processed later takes the claim
//! over, and the claim then names the other, from which preferences may have learned already.
//!
//! A claim contains a *fence*: the number of the user's newest preference version before the claim
//! was made. A version that learned from the event is newer, so a redelivery reads only those
//! versions to know whether the event was learned from. No clock is involved.
//!
//! Once the event of a claim is withdrawn, the next event with its key takes the claim over. If the withdrawn event had
//! no outcome yet, the claim still names it: its next delivery continues where the one before stopped.
//!
//! Claims are in the partition of their user and expire with their events. An erasure finds all
//! events by them, except duplicates ([`erasures`](crate::erasures)).

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use hearback_domain::events::event::{EventCore, FirstEvent, Receipt};
use hearback_domain::events::retention::LEDGER_DAYS;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::damage::{self, Damaged, Loss};
use crate::item::{self, Builder, Item};
use crate::{Error, Store, keys};

const FEEDBACK_ID: &str = "feedbackId";
const FENCE: &str = "fence";
const RECEIPT: &str = "receipt";
const PRECEDED: &str = "preceded";
const RELEASED: &str = "released";

/// The event that holds a dedupe key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// This event, by this call: it was never processed.
    New,
    /// This event, by an earlier delivery, which may have processed it in part.
    Own(Held),
    /// Another event.
    Other {
        /// That event.
        holder: Uuid,
        /// When and where it was received; `None` in older claims.
        receipt: Option<Receipt>,
        /// Its part of the claim.
        held: Held,
    },
}

/// What a claim says about preferences.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// Versions that learned from the event, or from one that held the claim before it, are newer than this one.
    pub fence: u64,
    /// Events that held the claim before, although they were received later.
    pub preceded: Vec<Uuid>,
    /// Events that held the claim before, and were withdrawn before they had an outcome, each with those that it
    /// preceded.
    pub released: BTreeMap<Uuid, Vec<Uuid>>,
}

impl Store {
    /// Claims the dedupe key for an event, or for the first event of its batch with the same key,
    /// which then finds the claim as its own. One call, one write; to replace a claim that cannot be read, two.
    pub async fn claim(&self, event: &EventCore, fence: u64) -> Result<Claim, Error> {
        let first = event.second_to.unwrap_or_else(|| FirstEvent::of(event));
        let held = Held {
            fence,
            ..Held::default()
        };
        let item = claim_item(event, first, &held)?;
        let Some(existing) = self.insert_or_get(item).await? else {
            return Ok(if first.feedback_id == event.feedback_id {
                Claim::New
            } else {
                Claim::Other {
                    holder: first.feedback_id,
                    receipt: None,
                    held,
                }
            });
        };
        match claim_of(&existing, event.feedback_id) {
            Err(error @ Error::Unreadable { .. }) => {
                let message = "a claim that cannot be read is replaced";
                damage::note(Loss::None, &Damaged::of(&event.tenant), &error, message);
                self.replace_claim(event, first, &existing).await
            }
            claim => claim,
        }
    }

    /// Replaces a claim that cannot be read. Each version of the preferences may have learned from the event, so the
    /// fence is before all of them.
    async fn replace_claim(
        &self,
        event: &EventCore,
        first: FirstEvent,
        existing: &Item,
    ) -> Result<Claim, Error> {
        let item = claim_item(event, first, &Held::default())?;
        let claim = claim_of(&item, event.feedback_id);
        let before = existing.get(FEEDBACK_ID);
        if self.replace_unchanged(item, FEEDBACK_ID, before).await? {
            claim
        } else {
            Err(Error::failed("PutItem", "another event replaced the claim"))
        }
    }

    /// Takes a claim over from the event that holds it; `false` if another event has done so. The event takes it for
    /// itself: the first of its batch may have been found to be a duplicate before. One call, one write.
    pub async fn take_claim(
        &self,
        event: &EventCore,
        holder: Uuid,
        held: &Held,
    ) -> Result<bool, Error> {
        let first = FirstEvent::of(event);
        let item = claim_item(event, first, held)?;
        let holder = AttributeValue::S(holder.to_string());
        self.replace_unchanged(item, FEEDBACK_ID, Some(&holder))
            .await
    }
}

fn claim_item(event: &EventCore, first: FirstEvent, held: &Held) -> Result<Item, Error> {
    let owner = keys::user(event.owner());
    let mut item = Builder::new(owner, keys::claim(&event.dedupe_key()))
        .string(FEEDBACK_ID, first.feedback_id.to_string())
        .number(FENCE, held.fence)
        // The first of a batch was received with it.
        .json("claim", RECEIPT, &event.receipt())?
        .expires(event.received_at, first.retention_days.max(LEDGER_DAYS));
    if !held.preceded.is_empty() {
        item = item.json("claim", PRECEDED, &held.preceded)?;
    }
    if !held.released.is_empty() {
        item = item.json("claim", RELEASED, &held.released)?;
    }
    Ok(item.build())
}

/// The event that holds a claim.
pub(crate) fn claimant(claim: &Item) -> Result<Uuid, Error> {
    item::string(claim, "claim", FEEDBACK_ID)?
        .parse()
        .map_err(|error: uuid::Error| Error::unreadable("claim", error.to_string()))
}

fn claim_of(claim: &Item, event: Uuid) -> Result<Claim, Error> {
    let holder = claimant(claim)?;
    let held = Held {
        fence: item::number(claim, "claim", FENCE)?,
        preceded: optional(claim, PRECEDED)?.unwrap_or_default(),
        released: optional(claim, RELEASED)?.unwrap_or_default(),
    };
    if holder == event {
        return Ok(Claim::Own(held));
    }
    let receipt = optional(claim, RECEIPT)?;
    Ok(Claim::Other {
        holder,
        receipt,
        held,
    })
}

fn optional<T: DeserializeOwned>(claim: &Item, name: &str) -> Result<Option<T>, Error> {
    let stored = claim.contains_key(name);
    stored.then(|| item::json(claim, "claim", name)).transpose()
}
