//! Webhooks: each message is sent to those of its tenant's webhooks that want it. See docs/reference/webhooks.md.
//!
//! A message of the topic is sent to all of them at once. For each that fails, a copy that names it waits in the queue
//! for the next attempt. While a target is unavailable, one message at a time tries it, so that a target that does not
//! answer occupies one worker and not all.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{MessageAttributeValue, SendMessageBatchRequestEntry};
use chrono::{DateTime, Utc};
use futures::future::join_all;
use hearback_domain::identity::identifier::{TenantId, WebhookName};
use hearback_domain::views::webhook::{
    CallFailure, MAX_WEBHOOKS, MessageFacts, Readiness, SHORTEST_PAUSE, Webhook,
};
use hearback_lambda::app::store_from_env;
use hearback_lambda::aws::{Aws, Service, error_code};
use hearback_lambda::clock::Clock;
use hearback_lambda::dead_letters::DeadLetters;
use hearback_lambda::queue::RECIPIENT;
use hearback_lambda::settings::{BadSetting, setting};
use hearback_lambda::visibility::LARGEST_CALL;
use hearback_storage::{Attempt, Error as StorageError, Replaced, Store, Versioned, update};

use crate::backoff::Backoff;
use crate::published::Published;
use crate::relay::{NotDelivered, Outlet, Relay};

mod api;
mod networks;
mod registry;
mod sender;

pub use api::{WebhookDocument, routes as webhook_routes};
pub use networks::{BadNetworks, Networks};
pub use registry::{RegisterError, Tested, WebhookRegistry};
pub use sender::Sender;

/// The setting that names the URL of the queue.
pub const WEBHOOKS_QUEUE_URL: &str = "HEARBACK_WEBHOOKS_QUEUE_URL";
/// The setting that names the URL of its dead-letter queue.
pub const WEBHOOKS_DEAD_LETTERS_URL: &str = "HEARBACK_WEBHOOKS_DEAD_LETTERS_URL";
/// The setting with the networks with private addresses to which webhooks may be sent; optional.
pub const WEBHOOK_NETWORKS: &str = "HEARBACK_WEBHOOK_NETWORKS";

/// How often the result of calls is stored while others change the webhook.
const ATTEMPTS: usize = 3;

/// Sends messages to webhooks.
#[derive(Debug)]
pub struct Webhooks {
    store: Store,
    sender: Sender,
    clock: Clock,
    sqs: Client,
    queue_url: String,
}

/// The webhooks of each tenant.
type ByTenant<'a> = BTreeMap<&'a TenantId, Result<Vec<Versioned<Webhook>>, StorageError>>;
/// The messages that each webhook receives, with their index in the batch.
type Deliveries<'a> = BTreeMap<
    (&'a TenantId, &'a WebhookName),
    (&'a Versioned<Webhook>, Vec<(usize, &'a Published)>),
>;

/// Reads [`WEBHOOK_NETWORKS`] and builds the sender.
fn sender_from_env() -> Result<Sender, BadSetting> {
    let unusable = |error: String| BadSetting::Unusable(WEBHOOK_NETWORKS, error);
    let networks = setting(WEBHOOK_NETWORKS).unwrap_or_default();
    let networks: Networks = networks
        .parse()
        .map_err(|error: BadNetworks| unusable(error.to_string()))?;
    Sender::new(networks).map_err(|error| unusable(error.to_string()))
}

impl Relay<Webhooks> {
    /// Reads the settings and builds the clients.
    pub fn from_env() -> Result<Self, BadSetting> {
        let sqs = Client::new(&Aws::from_env(Service::Sqs).config());
        let queue_url = setting(WEBHOOKS_QUEUE_URL)?;
        let dead_letters = DeadLetters::new(sqs.clone(), setting(WEBHOOKS_DEAD_LETTERS_URL)?);
        let store = store_from_env()?;
        let sender = sender_from_env()?;
        Ok(Self::to_webhooks(
            store,
            sender,
            Clock::system(),
            (sqs, queue_url),
            dead_letters,
        ))
    }

    /// A relay to webhooks, with its queue and its dead letters.
    #[must_use]
    pub fn to_webhooks(
        store: Store,
        sender: Sender,
        clock: Clock,
        (sqs, queue_url): (Client, String),
        dead_letters: DeadLetters,
    ) -> Self {
        let backoff = Backoff::new(sqs.clone(), &queue_url).from_the_first();
        let webhooks = Webhooks {
            store,
            sender,
            clock,
            sqs,
            queue_url,
        };
        Self::new(webhooks, backoff, dead_letters)
    }
}

impl Outlet for Webhooks {
    async fn deliver(&self, messages: &[Published]) -> Vec<Result<(), NotDelivered>> {
        let facts: Vec<Option<MessageFacts>> = messages
            .iter()
            .map(|message| serde_json::from_slice(&message.body).ok())
            .collect();
        let webhooks = self.webhooks_of(&facts).await;
        let now = self.clock.now();
        let mut results = Vec::new();
        let mut deliveries = Deliveries::new();
        for (index, (message, facts)) in messages.iter().zip(&facts).enumerate() {
            let recipients = recipients(message, facts.as_ref(), &webhooks, now);
            results.push(recipients.map(|recipients| {
                for (tenant, webhook) in recipients {
                    let delivery = deliveries.entry((tenant, &webhook.value.name));
                    let (_, messages) = delivery.or_insert((webhook, Vec::new()));
                    messages.push((index, message));
                }
            }));
        }
        for (index, (message, facts)) in messages.iter().zip(&facts).enumerate() {
            if let Err(failure) = self
                .check_recipient(message, facts.as_ref(), &webhooks)
                .await
            {
                fail(&mut results, index, failure);
            }
        }
        let delivered =
            deliveries
                .into_iter()
                .map(async |((tenant, name), (webhook, messages))| {
                    let outcomes = self.deliver_to(tenant, webhook, &messages).await;
                    (name, messages.into_iter().zip(outcomes))
                });
        let mut copies = Vec::new();
        for (name, outcomes) in join_all(delivered).await {
            for ((index, message), outcome) in outcomes {
                match outcome {
                    Ok(()) => {}
                    Err(_) if message.recipient.is_none() => copies.push((index, name, message)),
                    Err(failure) => fail(&mut results, index, failure),
                }
            }
        }
        for index in self.send_copies(&copies).await {
            let reason = "a copy for a webhook that failed was not sent".to_owned();
            fail(&mut results, index, NotDelivered::Unavailable(reason));
        }
        results
    }
}

fn fail(results: &mut [Result<(), NotDelivered>], index: usize, failure: NotDelivered) {
    if let Some(result) = results.get_mut(index) {
        *result = Err(failure);
    }
}

/// The webhooks to which a message is sent, each with its tenant.
fn recipients<'a>(
    message: &Published,
    facts: Option<&'a MessageFacts>,
    webhooks: &'a ByTenant<'a>,
    now: DateTime<Utc>,
) -> Result<Vec<(&'a TenantId, &'a Versioned<Webhook>)>, NotDelivered> {
    let facts = facts.ok_or(NotDelivered::Unreadable)?;
    let Some(tenant) = &facts.tenant else {
        return Ok(Vec::new());
    };
    let of_tenant = match webhooks.get(tenant) {
        // Concurrent requests may have made more.
        Some(Ok(of_tenant)) => of_tenant.iter().take(MAX_WEBHOOKS),
        Some(Err(error)) => return Err(NotDelivered::Unavailable(error.to_string())),
        None => return Ok(Vec::new()),
    };
    let is_paused =
        |webhook: &Versioned<Webhook>| webhook.value.readiness(now) == Readiness::Paused;
    let found = of_tenant.filter(|webhook| match &message.recipient {
        // One that was removed meanwhile is not found, and one that was put again may want something else.
        Some(recipient) => webhook.value.name.as_str() == recipient,
        None => !is_paused(webhook),
    });
    let found = found.filter(|webhook| webhook.value.filter.wants(message.subject, facts));
    let found: Vec<_> = found.map(|webhook| (tenant, webhook)).collect();
    if found.iter().any(|(_, webhook)| is_paused(webhook)) {
        return Err(NotDelivered::Unwanted("the webhook is paused".to_owned()));
    }
    Ok(found)
}

impl Webhooks {
    /// The webhooks of the tenants of these messages.
    async fn webhooks_of<'a>(&self, facts: &'a [Option<MessageFacts>]) -> ByTenant<'a> {
        let tenants = facts.iter().flatten();
        let tenants: BTreeSet<_> = tenants.filter_map(|facts| facts.tenant.as_ref()).collect();
        let webhooks = tenants.into_iter().map(async |tenant| {
            // Boxed: the type of an SDK call is so deep that the compiler cannot compute the layout of its caller.
            (tenant, Box::pin(self.store.webhooks(tenant)).await)
        });
        join_all(webhooks).await.into_iter().collect()
    }

    /// Fails if the recipient of a message is not among the webhooks because its row cannot be read: unlike one that was
    /// removed, it still has to receive the message.
    async fn check_recipient(
        &self,
        message: &Published,
        facts: Option<&MessageFacts>,
        webhooks: &ByTenant<'_>,
    ) -> Result<(), NotDelivered> {
        let recipient = message.recipient.as_deref();
        let recipient = recipient.and_then(|name| WebhookName::try_from(name).ok());
        let tenant = facts.and_then(|facts| facts.tenant.as_ref());
        let (Some(recipient), Some(tenant)) = (recipient, tenant) else {
            return Ok(());
        };
        let Some(Ok(of_tenant)) = webhooks.get(tenant) else {
            return Ok(());
        };
        if of_tenant
            .iter()
            .any(|webhook| webhook.value.name == recipient)
        {
            return Ok(());
        }
        let read = Box::pin(self.store.webhook(tenant, &recipient)).await;
        read.map(|_| ())
            .map_err(|error| NotDelivered::Unavailable(error.to_string()))
    }

    /// Sends messages to a webhook, unless its target is unavailable; the result of each.
    async fn deliver_to(
        &self,
        tenant: &TenantId,
        webhook: &Versioned<Webhook>,
        messages: &[(usize, &Published)],
    ) -> Vec<Result<(), NotDelivered>> {
        let now = self.clock.now();
        let waiting = || Err(NotDelivered::Unavailable(waiting_for(&webhook.value)));
        let probed;
        let (webhook, first) = match webhook.value.readiness(now) {
            Readiness::Ready => (webhook, messages.len()),
            Readiness::Probe => match self.claim(tenant, webhook, now).await {
                Ok(Some(claimed)) => {
                    probed = claimed;
                    (&probed, 1)
                }
                Ok(None) => return messages.iter().map(|_| waiting()).collect(),
                Err(error) => return messages.iter().map(|_| Err(error.clone())).collect(),
            },
            Readiness::Waiting | Readiness::Paused => {
                return messages.iter().map(|_| waiting()).collect();
            }
        };
        let (first, rest) = messages.split_at(first.min(messages.len()));
        let mut outcomes = self.call(&webhook.value, first, now).await;
        if outcomes.iter().any(Result::is_ok) {
            outcomes.extend(self.call(&webhook.value, rest, now).await);
        }
        self.remember(tenant, webhook, &outcomes).await;
        let outcomes = outcomes
            .into_iter()
            .map(|outcome| outcome.map_err(NotDelivered::from));
        let postponed = messages.iter().map(|_| waiting());
        let attempted = outcomes.len();
        outcomes.chain(postponed.skip(attempted)).collect()
    }

    /// Calls the target with each message.
    async fn call(
        &self,
        webhook: &Webhook,
        messages: &[(usize, &Published)],
        now: DateTime<Utc>,
    ) -> Vec<Result<(), CallFailure>> {
        let calls = messages.iter().map(async |(_, message)| {
            let sent = self
                .sender
                .send(webhook, message.id, message.body.clone(), now);
            sent.await.map(|_| ())
        });
        join_all(calls).await
    }

    /// Becomes the only worker that calls a target again; `None` if another one is.
    async fn claim(
        &self,
        tenant: &TenantId,
        webhook: &Versioned<Webhook>,
        now: DateTime<Utc>,
    ) -> Result<Option<Versioned<Webhook>>, NotDelivered> {
        let until = now + 2 * sender::CALL_TIMEOUT;
        let claimed = webhook.value.clone().probed(until);
        let replaced = Box::pin(self.store.replace_webhook(tenant, &claimed, Some(webhook))).await;
        let unavailable = |error: StorageError| NotDelivered::Unavailable(error.to_string());
        match replaced.map_err(unavailable)? {
            Replaced::Done => {
                let current = Box::pin(self.store.webhook(tenant, &claimed.name)).await;
                Ok(current
                    .map_err(unavailable)?
                    .filter(|current| current.value == claimed))
            }
            Replaced::Conflict(_) => Ok(None),
        }
    }

    /// Stores what calls have found out about a webhook.
    async fn remember(
        &self,
        tenant: &TenantId,
        webhook: &Versioned<Webhook>,
        outcomes: &[Result<(), CallFailure>],
    ) {
        let before = &webhook.value;
        let after = before.clone().after(outcomes, self.clock.now());
        if after == *before {
            return;
        }
        let since = before.failing.as_ref().map(|failing| failing.since);
        let stored = update(ATTEMPTS, Some(webhook.clone()), async |current| {
            // Another worker was faster, or the webhook was put again or removed. A success still ends this failing:
            // nothing may follow that says so. A failure is found out again.
            let is_same =
                |webhook: &Webhook| webhook.failing.as_ref().map(|failing| failing.since) == since;
            let current = current.filter(|current| {
                current.value == *before || (after.failing.is_none() && is_same(&current.value))
            });
            let Some(current) = current else {
                return Ok(Attempt::Finished(false));
            };
            let changed = Webhook {
                failing: after.failing.clone(),
                ..current.value.clone()
            };
            let replaced = self.store.replace_webhook(tenant, &changed, Some(&current));
            Ok::<_, StorageError>(Attempt::of(Box::pin(replaced).await?, true))
        });
        match stored.await {
            Ok(Some(true)) => {
                if let Some((_, reason)) = after.failing.as_ref().and_then(|failing| failing.paused)
                {
                    // The template's metric counts every line with `paused`.
                    tracing::error!(
                        tenant = tenant.as_str(),
                        webhook = after.name.as_str(),
                        reason = reason.as_str(),
                        paused = true,
                        "a webhook is paused"
                    );
                }
            }
            Ok(Some(false) | None) => {}
            Err(error) => tracing::warn!(%error, "what is known about a webhook was not stored"),
        }
    }

    /// Sends a copy of each message to the queue for a webhook that has not received it; the indices of those that
    /// were not sent.
    async fn send_copies(&self, copies: &[(usize, &WebhookName, &Published)]) -> Vec<usize> {
        let failed = copies.chunks(LARGEST_CALL).map(async |chunk| {
            let entries = chunk
                .iter()
                .enumerate()
                .filter_map(|(at, (_, name, message))| {
                    let recipient = MessageAttributeValue::builder()
                        .data_type("String")
                        .string_value(name.as_str());
                    SendMessageBatchRequestEntry::builder()
                        .id(at.to_string())
                        .message_body(String::from_utf8_lossy(&message.body))
                        .message_attributes(RECIPIENT, recipient.build().ok()?)
                        .delay_seconds(SHORTEST_PAUSE.num_seconds().try_into().ok()?)
                        .build()
                        .ok()
                });
            let sent = self
                .sqs
                .send_message_batch()
                .queue_url(&self.queue_url)
                .set_entries(Some(entries.collect()))
                .send();
            let sent = match Box::pin(sent).await {
                Ok(sent) => sent.successful.into_iter().map(|sent| sent.id).collect(),
                Err(error) => {
                    tracing::warn!(
                        error = error_code(&error),
                        "copies for webhooks were not sent"
                    );
                    BTreeSet::new()
                }
            };
            let unsent = chunk
                .iter()
                .enumerate()
                .filter(|(at, _)| !sent.contains(&at.to_string()));
            unsent.map(|(_, (index, ..))| *index).collect::<Vec<_>>()
        });
        join_all(failed).await.concat()
    }
}

fn waiting_for(webhook: &Webhook) -> String {
    let failing = webhook.failing.as_ref();
    let last = failing.map_or("another call has failed", |failing| failing.last.as_str());
    format!("the target is unavailable: {last}")
}

impl From<CallFailure> for NotDelivered {
    fn from(failure: CallFailure) -> Self {
        let text = failure.to_string();
        match failure {
            CallFailure::Unavailable(..) | CallFailure::Rejected(_) => Self::Unavailable(text),
            CallFailure::Gone => Self::Unwanted(text),
        }
    }
}
