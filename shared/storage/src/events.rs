//! Feedback events and their outcomes, in one partition for each event.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use chrono::{DateTime, Utc};
use hearback_domain::events::event::{EventCore, FeedbackEvent, FreeText};
use hearback_domain::events::retention::LEDGER_DAYS;
use hearback_domain::identity::identifier::{TenantId, UserRef};
use hearback_domain::learning::ledger::Retraction;
use hearback_domain::learning::publication::Outcome;
use hearback_domain::views::feed::FeedPosition;
use uuid::Uuid;

use crate::attributes::{CORE, OUTCOME, RETRACTION, SENT, TEXT};
use crate::conditional::ATTEMPT;
use crate::item::{self, Builder};
use crate::stream::message_of;
use crate::table::{AUTHOR, PK, SK};
use crate::{Error, Store, WriteToken, Written, keys};

/// An event and its outcome so far.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvent {
    /// The part that rules read.
    pub core: EventCore,
    /// The free text.
    pub text: FreeText,
    /// Its outcome; `None` until it is processed.
    pub outcome: Option<Outcome>,
    /// Its retraction, if its act was replaced, cleared or withdrawn.
    pub retraction: Option<Retraction>,
}

fn event_item(event: &FeedbackEvent) -> Result<Builder, Error> {
    let core = &event.core;
    let item = Builder::new(keys::event(&core.tenant, core.feedback_id), keys::EVENT)
        .json("event", CORE, core)?
        .expires(core.received_at, core.privacy.retention_days);
    if event.text.is_empty() {
        return Ok(item);
    }
    item.json("event", TEXT, &event.text)
}

impl StoredEvent {
    /// The event with the same dedupe key that was received before it and processed after it, if there is one.
    #[must_use]
    pub fn preceded_by(&self) -> Option<Uuid> {
        let retraction = self.retraction.as_ref().filter(|_| !self.core.derived);
        retraction.and_then(|retraction| retraction.replaced_by)
    }
}

impl Store {
    /// Stores an event if its id is new. One call, one write.
    pub async fn put_event(&self, event: &FeedbackEvent) -> Result<Written, Error> {
        self.put_event_by(WriteToken::random(), event).await
    }

    /// Stores an event if its id is new or this token stored it before. One call, one write.
    pub async fn put_event_by(
        &self,
        token: WriteToken,
        event: &FeedbackEvent,
    ) -> Result<Written, Error> {
        self.insert_by(token, event_item(event)?.build()).await
    }

    /// Stores an event that the pipe skips, if its id is new or this token stored it before.
    /// Returns the message that the caller must send to the signal generator; `None` if another
    /// token stored the event, whose caller sends it. One call, one write.
    pub async fn put_sent_event_by(
        &self,
        token: WriteToken,
        event: &FeedbackEvent,
    ) -> Result<Option<String>, Error> {
        let item = event_item(event)?.string(SENT, "import".to_owned()).build();
        let message = message_of(&item);
        let written = self.insert_by(token, item).await?;
        Ok((written != Written::AlreadyExists).then_some(message))
    }

    /// Whether this token stored the event with this id. One call, one read for each 4 KB.
    pub async fn has_event_by(
        &self,
        token: WriteToken,
        tenant: &TenantId,
        feedback_id: Uuid,
    ) -> Result<bool, Error> {
        let partition = keys::event(tenant, feedback_id);
        let response = self.get(partition, keys::EVENT.to_owned()).await?;
        Ok(response
            .item
            .is_some_and(|event| event.get(ATTEMPT) == Some(&token.number())))
    }

    fn retraction_item(&self, retraction: &Retraction) -> Result<Builder, Error> {
        let Retraction {
            tenant, user_id, ..
        } = retraction;
        let owner = UserRef::new(tenant, user_id);
        let partition = keys::event(tenant, retraction.feedback_id);
        let item =
            Builder::new(partition, keys::RETRACTION).json(RETRACTION, RETRACTION, retraction)?;
        let item = item.string(AUTHOR, keys::user(owner));
        let position = FeedPosition::of_retraction(retraction);
        Ok(self.in_feed(item, owner, &position))
    }

    /// Stores the outcome of an event, if it has none. It expires with the event. One call and two writes for a
    /// duplicate: without a claim, an erasure finds it in the author index. Three writes for any other: it is in the
    /// feed of its tenant and of its user. One more if it names a project: insights find it by its hour.
    pub async fn put_outcome(&self, core: &EventCore, outcome: &Outcome) -> Result<Written, Error> {
        let item = Builder::new(keys::event(&core.tenant, core.feedback_id), keys::RESULT)
            .json("outcome", OUTCOME, outcome)?
            .expires(core.received_at, core.privacy.retention_days);
        let item = match outcome {
            Outcome::Processed(processed) => {
                let position = FeedPosition::of_processed(processed);
                let item = self.in_feed(item, core.owner(), &position);
                self.with_hour(item, &core.tenant, processed)?
            }
            Outcome::Deduplicated { .. } => item.string(AUTHOR, keys::user(core.owner())),
        };
        self.insert(item.build()).await
    }

    /// Stores the retraction of an event, if it has none. The event may be stored later. One call and four writes: to
    /// the author index, because the retraction may outlive the event and its claim, and to the feeds.
    pub async fn put_retraction(&self, retraction: &Retraction) -> Result<Written, Error> {
        let item = self
            .retraction_item(retraction)?
            .expires(retraction.at, LEDGER_DAYS);
        self.insert(item.build()).await
    }

    /// Stores the withdrawal of an event by its user, if it has no retraction: the retraction, with the event's core,
    /// which the pipe sends to the signal generator. One call, one write for each KB, and three to the indexes.
    pub async fn put_withdrawal(
        &self,
        retraction: &Retraction,
        event: &EventCore,
    ) -> Result<Written, Error> {
        // The erasure finds the event by it: a later event may take over its claim.
        let days = event.privacy.retention_days.max(LEDGER_DAYS);
        let item = self
            .retraction_item(retraction)?
            .json(RETRACTION, CORE, event)?
            .expires(retraction.at, days);
        self.insert(item.build()).await
    }

    /// The retraction of an event. One call and one read.
    pub async fn retraction(
        &self,
        tenant: &TenantId,
        feedback_id: Uuid,
    ) -> Result<Option<Retraction>, Error> {
        let partition = keys::event(tenant, feedback_id);
        let response = self.get(partition, keys::RETRACTION.to_owned()).await?;
        let item = response.item;
        item.map(|item| item::json(&item, RETRACTION, RETRACTION))
            .transpose()
    }

    /// Whether an event has an outcome. One call, half a read.
    pub async fn has_outcome(&self, tenant: &TenantId, feedback_id: Uuid) -> Result<bool, Error> {
        let response = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("PK = :pk AND SK = :sk")
            .expression_attribute_values(":pk", AttributeValue::S(keys::event(tenant, feedback_id)))
            .expression_attribute_values(":sk", AttributeValue::S(keys::RESULT.to_owned()))
            .projection_expression(PK)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| Error::unavailable("Query", &error))?;
        Ok(response.count > 0)
    }

    /// An event with its outcome, unless it has expired. Strongly consistent. One call, one read
    /// for each 4 KB.
    pub async fn event(
        &self,
        tenant: &TenantId,
        feedback_id: Uuid,
        now: DateTime<Utc>,
    ) -> Result<Option<StoredEvent>, Error> {
        let response = self
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
            response.items().iter().find(|item| {
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
