//! Feedback events and what came of them, in one partition for each event.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use chrono::{DateTime, Utc};
use hearback_domain::event::{EventCore, FeedbackEvent, FreeText, PrivacyFlags};
use hearback_domain::identifier::TenantId;
use hearback_domain::ledger::Retraction;
use hearback_domain::publication::Outcome;
use uuid::Uuid;

use crate::item::{self, Builder};
use crate::places::ATTEMPT;
use crate::table::{AUTHOR, PK, SK};
use crate::{Attempt, Error, Store, Written, keys};

/// The part of an event that streams and queues carry.
pub(crate) const CORE: &str = "core";
/// The part that stays in the table.
pub(crate) const TEXT: &str = "text";
/// What came of an event.
pub(crate) const OUTCOME: &str = "outcome";

/// That an event no longer holds, and why.
pub(crate) const RETRACTION: &str = "retraction";

/// An event and what came of it so far.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvent {
    /// What the rules read.
    pub core: EventCore,
    /// What the user wrote.
    pub text: FreeText,
    /// What came of it; `None` while it is queued.
    pub outcome: Option<Outcome>,
    /// That it no longer holds, and why.
    pub retraction: Option<Retraction>,
}

impl Store {
    /// Stores an event if its id is new. One call, one write.
    pub async fn put_event(&self, event: &FeedbackEvent) -> Result<Written, Error> {
        self.put_event_by(Attempt::drawn(), event).await
    }

    /// Stores an event if its id is new, or this attempt stored it already. One call, one write.
    pub async fn put_event_by(&self, by: Attempt, event: &FeedbackEvent) -> Result<Written, Error> {
        let core = &event.core;
        let mut item = Builder::new(keys::event(&core.tenant, core.feedback_id), keys::EVENT)
            .json("event", CORE, core)?
            .expires(core.received_at, core.privacy.retention_days);
        if !event.text.is_empty() {
            item = item.json("event", TEXT, &event.text)?;
        }
        self.put_once_by(by, item.build()).await
    }

    /// Whether this attempt stored the event of this id. One call, one read for each 4 KB.
    pub async fn has_event_by(
        &self,
        by: Attempt,
        (tenant, feedback_id): (&TenantId, Uuid),
    ) -> Result<bool, Error> {
        let partition = keys::event(tenant, feedback_id);
        let found = self.get(partition, keys::EVENT.to_owned()).await?;
        Ok(found
            .item
            .is_some_and(|event| event.get(ATTEMPT) == Some(&by.number())))
    }

    /// Stores what came of an event, if nothing did before. Expires with the event. One call,
    /// one write, and one more for a duplicate: it holds no claim by which its author's events are
    /// found, and is in the index of authors instead.
    pub async fn put_outcome(&self, core: &EventCore, outcome: &Outcome) -> Result<Written, Error> {
        let item = Builder::new(keys::event(&core.tenant, core.feedback_id), keys::RESULT)
            .json("outcome", OUTCOME, outcome)?
            .expires(core.received_at, core.privacy.retention_days);
        let item = match outcome {
            Outcome::Processed(_) => item,
            Outcome::Deduplicated { .. } => {
                item.string(AUTHOR, keys::user(&core.tenant, &core.user_id))
            }
        };
        self.put_once(item.build()).await
    }

    /// Stores that an event no longer holds, if nothing said so before. It may come before the
    /// event itself. One call and two writes, one of them into the index of authors: it may outlive the
    /// event, and its claim.
    pub async fn put_retraction(&self, retraction: &Retraction) -> Result<Written, Error> {
        let partition = keys::event(&retraction.tenant, retraction.feedback_id);
        let item = Builder::new(partition, keys::RETRACTION)
            .json(RETRACTION, RETRACTION, retraction)?
            .string(AUTHOR, keys::user(&retraction.tenant, &retraction.user_id))
            .expires(retraction.at, PrivacyFlags::DEFAULT_RETENTION_DAYS)
            .build();
        self.put_once(item).await
    }

    /// Whether something came of an event already. One call, half a read.
    pub async fn has_outcome(&self, core: &EventCore) -> Result<bool, Error> {
        let found = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("PK = :pk AND SK = :sk")
            .expression_attribute_values(
                ":pk",
                AttributeValue::S(keys::event(&core.tenant, core.feedback_id)),
            )
            .expression_attribute_values(":sk", AttributeValue::S(keys::RESULT.to_owned()))
            .projection_expression(PK)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| Error::unavailable("Query", &error))?;
        Ok(found.count > 0)
    }

    /// An event with what came of it, unless it expired; sees every write that was acknowledged. One
    /// call, one read for each 4 KB.
    pub async fn event(
        &self,
        tenant: &TenantId,
        feedback_id: Uuid,
        now: DateTime<Utc>,
    ) -> Result<Option<StoredEvent>, Error> {
        let found = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("PK = :pk")
            .expression_attribute_values(":pk", AttributeValue::S(keys::event(tenant, feedback_id)))
            .consistent_read(true)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| Error::unavailable("Query", &error))?;
        let of_kind = |kind: &str| {
            found.items().iter().find(|item| {
                item.get(SK)
                    .and_then(|sk| sk.as_s().ok())
                    .is_some_and(|sk| sk == kind)
            })
        };
        let event = of_kind(keys::EVENT).filter(|event| !item::is_expired(event, now));
        let Some(event) = event else {
            return Ok(None);
        };
        Ok(Some(StoredEvent {
            core: item::json(event, "event", CORE)?,
            text: if event.contains_key(TEXT) {
                item::json(event, "event", TEXT)?
            } else {
                FreeText::default()
            },
            outcome: of_kind(keys::RESULT)
                .map(|result| item::json(result, "outcome", OUTCOME))
                .transpose()?,
            retraction: of_kind(keys::RETRACTION)
                .map(|item| item::json(item, RETRACTION, RETRACTION))
                .transpose()?,
        }))
    }
}
