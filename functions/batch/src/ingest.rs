//! The ingest queue: messages of a back end, each one event or `{"events": […]}`.
//!
//! A message is deleted once each of its events is in the table or among the dead letters. One whose
//! events could not all be stored comes again, whole: what was stored is recognised. After
//! [`queue::LAST_RECEIVES`] what could not be stored is a dead letter too, so that of an anonymous event
//! nothing gets there but its shape.

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use chrono::{DateTime, Utc};
use futures::future::{join_all, try_join_all};
use hearback_domain::caller::Caller;
use hearback_domain::identifier::{TenantId, UserId};
use hearback_domain::privacy::REMOVED;
use hearback_domain::refused::kept;
use hearback_domain::submission::Rejection;
use hearback_lambda::app::setting;
use hearback_lambda::aws::{Aws, Service};
use hearback_lambda::dead_letters::{DeadLetters, NotSent};
use hearback_lambda::queue::{self, Tries, not_worked_off, receives};
use hearback_lambda::{BadSetting, FromEnv};
use hearback_storage::Attempt;
use serde_json::Value;

use crate::intake::{Intake, Sender, back_end};

/// The message attribute that says whose events a message has.
pub const TENANT: &str = "tenant";
/// The setting that names the URL of the queue for what the ingest queue could not work off.
pub const INGEST_DEAD_LETTERS_URL: &str = "HEARBACK_INGEST_DEAD_LETTERS_URL";
/// The user that acts for the users of a tenant.
const BACK_END: &str = "ingest";

/// Works off messages of the ingest queue.
#[derive(Debug, Clone)]
pub struct Ingest {
    intake: Intake,
    dead_letters: DeadLetters,
}

/// Why a message has to come again.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Storage(#[from] hearback_storage::Error),
    #[error("a dead letter was not sent: {0}")]
    DeadLetter(#[from] NotSent),
}

impl queue::Failure for Failure {
    fn tries(&self) -> Tries {
        Tries::Many
    }
}

impl Ingest {
    /// Takes events into this table, and what it refuses into this queue.
    #[must_use]
    pub fn new(intake: Intake, dead_letters: DeadLetters) -> Self {
        Self {
            intake,
            dead_letters,
        }
    }

    /// Reads the settings and builds the clients.
    pub fn from_env() -> Result<Self, BadSetting> {
        let sqs = aws_sdk_sqs::Client::new(&Aws::from_env(Service::Sqs).config());
        let dead_letters = DeadLetters::new(sqs, setting(INGEST_DEAD_LETTERS_URL)?);
        Ok(Self::new(Intake::from_env()?, dead_letters))
    }

    /// Works off a batch of messages, and names those that must be delivered again.
    pub async fn handle(&self, batch: SqsEvent) -> SqsBatchResponse {
        let messages = batch.records.into_iter().map(|message| {
            let ingest = self.clone();
            let id = message.message_id.clone().unwrap_or_default();
            // A task of its own: a message that makes the code panic harms no neighbour.
            let work = tokio::spawn(async move { ingest.work_off(&message).await });
            async move { (id, work.await) }
        });
        let mut response = SqsBatchResponse::default();
        for (message_id, ended) in join_all(messages).await {
            let failure = not_worked_off(message_id, ended);
            response.batch_item_failures.extend(failure);
        }
        response
    }

    async fn work_off(&self, message: &SqsMessage) -> Result<(), Failure> {
        let text = message.body.as_deref().unwrap_or_default();
        let body = match serde_json::from_str::<Value>(text) {
            Ok(body) => body,
            Err(error) => {
                let (line, column) = (error.line(), error.column());
                let reason = format!("not JSON: line {line}, column {column}");
                // It may be an anonymous event, cut off before it says so.
                return self.bury(message, REMOVED, &reason).await;
            }
        };
        let caller = match caller(message) {
            Ok(caller) => caller,
            Err(reason) => return self.bury(message, &kept(&body).to_string(), &reason).await,
        };
        let events = match body.get("events").and_then(Value::as_array) {
            Some(events) => events.as_slice(),
            None => std::slice::from_ref(&body),
        };
        let id = message.message_id.as_deref().unwrap_or_default();
        let sent_at = sent_at(message).unwrap_or_else(|| self.intake.clock.now());
        let attempts = events.iter().enumerate().map(|(index, event)| {
            let by = Attempt::named(["ingest", id, &index.to_string()]);
            (by, event)
        });
        // All of them first: one that failed keeps no other from being stored.
        let taken = (self.intake)
            .take(Sender::BackEnd(&caller), attempts, sent_at)
            .await;
        let last = Tries::Many.are_over(receives(message));
        let mut letters = Vec::new();
        for (event, taken) in events.iter().zip(taken) {
            match taken {
                Ok(_) => {}
                Err(not_taken) => match not_taken.rejection() {
                    Ok(rejection) => letters.push((event, reason(rejection))),
                    Err(error) if last => letters.push((event, error.to_string())),
                    // The message comes again. What is rejected is rejected then too, and told once.
                    Err(error) => return Err(error.into()),
                },
            }
        }
        let letters = letters.iter().map(|(event, reason)| async {
            let body = kept(event).to_string();
            self.bury(message, &body, reason).await
        });
        try_join_all(letters).await?;
        Ok(())
    }

    /// Sends what cannot be taken of a message to the dead letters. With the message's tenant beside it, a letter
    /// may be moved back as it is.
    async fn bury(&self, message: &SqsMessage, body: &str, reason: &str) -> Result<(), Failure> {
        let tenant = tenant(message).map(|tenant| (TENANT, tenant));
        let letters = &self.dead_letters;
        Ok(letters.bury_with(body, reason, tenant.as_slice()).await?)
    }
}

/// The tenant that a message names.
fn tenant(message: &SqsMessage) -> Option<&str> {
    let attribute = message.message_attributes.get(TENANT)?;
    attribute.string_value.as_deref()
}

/// When a message was sent to the queue; one that was moved back, when that was.
fn sent_at(message: &SqsMessage) -> Option<DateTime<Utc>> {
    let sent = message.attributes.get("SentTimestamp")?;
    DateTime::from_timestamp_millis(sent.parse().ok()?)
}

/// Who sent a message.
fn caller(message: &SqsMessage) -> Result<Caller, String> {
    let tenant = tenant(message).ok_or("the message attribute tenant is missing")?;
    let tenant = TenantId::try_from(tenant);
    let tenant = tenant.map_err(|error| format!("the message attribute tenant {error}"))?;
    let user = UserId::try_from(BACK_END).map_err(|error| error.to_string())?;
    Ok(back_end(tenant, user))
}

/// What is wrong with an event, in one line.
fn reason(rejection: Rejection) -> String {
    let Rejection { error, errors } = rejection;
    let errors = errors.iter();
    let errors: Vec<_> = errors
        .map(|error| format!("{} {}", error.pointer, error.detail))
        .collect();
    format!("{error}: {}", errors.join("; "))
}
