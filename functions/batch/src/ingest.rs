//! The ingest queue: messages of a back end, each one event or `{"events": […]}`.
//!
//! A message is deleted once each of its events is stored or a dead letter. If not all of its events could be stored,
//! it is delivered again, and those that were stored are recognized. After [`queue::LAST_RECEIVES`] the function itself
//! sends the rest to the DLQ, so that only the structure of an anonymous event is stored there.

use std::sync::Arc;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use futures::future::{join_all, try_join_all};
use hearback_domain::events::rejected_body::storable_body;
use hearback_domain::events::submission::RejectionReason;
use hearback_domain::identity::caller::Caller;
use hearback_domain::identity::identifier::{TenantId, UserId};
use hearback_lambda::aws::{Aws, Service};
use hearback_lambda::dead_letters::{DeadLetters, NotSent};
use hearback_lambda::queue::{
    self, RetryLimit, TENANT, item_failure_of_task, sent_at, tenant_attribute,
};
use hearback_lambda::settings::setting;
use hearback_lambda::{BadSetting, FromEnv};
use hearback_scrub::REMOVED;
use hearback_storage::WriteToken;
use serde_json::Value;

use crate::intake::{Intake, Sender, back_end};

/// The setting that names the URL of the queue for dead letters of the ingest queue.
pub const INGEST_DEAD_LETTERS_URL: &str = "HEARBACK_INGEST_DEAD_LETTERS_URL";
/// The user id of the sender.
const BACK_END: &str = "ingest";

/// Processes messages of the ingest queue.
#[derive(Debug, Clone)]
pub struct Ingest {
    intake: Intake,
    dead_letters: DeadLetters,
}

/// Why a message must be delivered again.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Storage(#[from] hearback_storage::Error),
    #[error("a dead letter was not sent: {0}")]
    DeadLetter(#[from] NotSent),
}

impl queue::MessageFailure for Failure {
    fn tries(&self) -> RetryLimit {
        RetryLimit::Many
    }
}

impl Ingest {
    /// Stores events in this table, and sends rejected ones to this queue.
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

    /// Processes a batch of messages, and returns those that must be delivered again.
    pub async fn handle(&self, batch: SqsEvent) -> SqsBatchResponse {
        let messages = batch.records.into_iter().map(|message| {
            let (ingest, message) = (self.clone(), Arc::new(message));
            let processed = message.clone();
            // A task of its own: a panic affects this message only.
            let task = tokio::spawn(async move { ingest.process(&processed).await });
            async move { (message, task.await) }
        });
        let mut response = SqsBatchResponse::default();
        for (message, ended) in join_all(messages).await {
            let failure = item_failure_of_task(&message, ended);
            response.batch_item_failures.extend(failure);
        }
        response
    }

    async fn process(&self, message: &SqsMessage) -> Result<(), Failure> {
        let text = message.body.as_deref().unwrap_or_default();
        let body = match serde_json::from_str::<Value>(text) {
            Ok(body) => body,
            Err(error) => {
                let (line, column) = (error.line(), error.column());
                let reason = format!("not JSON: line {line}, column {column}");
                // The text may be an anonymous event that was truncated before its flag.
                return self.send_to_dlq(message, REMOVED, &reason).await;
            }
        };
        let caller = match caller(message) {
            Ok(caller) => caller,
            Err(reason) => {
                return self
                    .send_to_dlq(message, &storable_body(&body).to_string(), &reason)
                    .await;
            }
        };
        let events = match body.get("events").and_then(Value::as_array) {
            Some(events) => events.as_slice(),
            None => std::slice::from_ref(&body),
        };
        let id = message.message_id.as_deref().unwrap_or_default();
        let sent_at = sent_at(message).unwrap_or_else(|| self.intake.clock.now());
        let attempts = events.iter().enumerate().map(|(index, event)| {
            let by = WriteToken::named(["ingest", id, &index.to_string()]);
            (by, event)
        });
        // All events are stored before a failure is returned.
        let outcomes = (self.intake)
            .put_all(Sender::BackEnd(&caller), attempts, sent_at)
            .await;
        let last = RetryLimit::Many.is_exhausted(message);
        let mut rejected = Vec::new();
        for (event, outcome) in events.iter().zip(outcomes) {
            match outcome {
                Ok(_) => {}
                Err(error) => match error.rejection() {
                    Ok(rejection) => rejected.push((event, reason(rejection))),
                    Err(error) if last => rejected.push((event, error.to_string())),
                    // The message is delivered again. Its rejected events become dead letters then.
                    Err(error) => return Err(error.into()),
                },
            }
        }
        let dead_letters = rejected.iter().map(|(event, reason)| async {
            let body = storable_body(event).to_string();
            self.send_to_dlq(message, &body, reason).await
        });
        try_join_all(dead_letters).await?;
        Ok(())
    }

    /// Sends a rejected part of a message to the DLQ, with the attribute `tenant`, so that it can be moved back
    /// unchanged.
    async fn send_to_dlq(
        &self,
        message: &SqsMessage,
        body: &str,
        reason: &str,
    ) -> Result<(), Failure> {
        let tenant = tenant_attribute(message).map(|tenant| (TENANT, tenant));
        let dead_letters = &self.dead_letters;
        Ok(dead_letters
            .send_with(body, reason, tenant.as_slice())
            .await?)
    }
}

fn caller(message: &SqsMessage) -> Result<Caller, String> {
    let tenant = tenant_attribute(message).ok_or("the message attribute tenant is missing")?;
    let tenant = TenantId::try_from(tenant);
    let tenant = tenant.map_err(|error| format!("the message attribute tenant {error}"))?;
    let user = UserId::try_from(BACK_END).map_err(|error| error.to_string())?;
    Ok(back_end(tenant, user))
}

/// The errors of an event, in one line.
fn reason(rejection: RejectionReason) -> String {
    let RejectionReason { error, errors } = rejection;
    let errors = errors.iter();
    let errors: Vec<_> = errors
        .map(|error| format!("{} {}", error.pointer, error.detail))
        .collect();
    format!("{error}: {}", errors.join("; "))
}
