//! The webhooks of a tenant: what the API and the command line do with them.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use hearback_domain::identity::identifier::{ProjectId, TenantId, WebhookName};
use hearback_domain::views::webhook::{MAX_WEBHOOKS, Webhook, WebhookRequest, WebhookSecret};
use hearback_lambda::app::store_from_env;
use hearback_lambda::clock::Clock;
use hearback_lambda::{BadSetting, FromEnv};
use hearback_storage::{Attempt, Error, Store, Versioned, update};
use serde_json::json;
use uuid::Uuid;

use super::sender::Sender;
use super::sender_from_env;

/// How often a change is attempted while others change the webhook.
const ATTEMPTS: usize = 5;

/// Makes, changes and tests webhooks.
#[derive(Debug, Clone)]
pub struct WebhookRegistry {
    store: Store,
    sender: Sender,
    clock: Clock,
}

/// Why a webhook was not changed.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// The URL cannot be called.
    #[error("the URL {0}")]
    BadUrl(String),
    /// The tenant has as many webhooks as it may.
    #[error("a tenant may have {MAX_WEBHOOKS} webhooks")]
    TooMany,
    /// There is no webhook with this name.
    #[error("there is no webhook with this name")]
    NotFound,
    /// The table failed.
    #[error(transparent)]
    Storage(#[from] Error),
}

/// The outcome of a test call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tested {
    /// The status of the response, if the target has accepted the call.
    pub accepted: Option<u16>,
    /// Why it has not.
    pub failure: Option<String>,
}

impl FromEnv for WebhookRegistry {
    fn from_env() -> Result<Self, BadSetting> {
        Ok(Self::new(
            store_from_env()?,
            sender_from_env()?,
            Clock::system(),
        ))
    }
}

impl WebhookRegistry {
    /// The webhooks in this table.
    #[must_use]
    pub fn new(store: Store, sender: Sender, clock: Clock) -> Self {
        Self {
            store,
            sender,
            clock,
        }
    }

    /// Makes a webhook, or changes its target and its filter: what it has failed is forgotten then, and its secret stays.
    /// Returns whether it is new, too.
    pub async fn put(
        &self,
        tenant: &TenantId,
        name: &WebhookName,
        request: &WebhookRequest,
        token_projects: Option<Vec<ProjectId>>,
    ) -> Result<(Webhook, bool), RegisterError> {
        let target = self.sender.target(&request.url);
        target.map_err(|error| RegisterError::BadUrl(error.to_string()))?;
        let webhooks = Box::pin(self.store.webhooks(tenant)).await?;
        let is_full = webhooks.len() >= MAX_WEBHOOKS;
        let current = webhooks
            .into_iter()
            .find(|webhook| webhook.value.name == *name);
        if current.is_none() && is_full {
            return Err(RegisterError::TooMany);
        }
        let filter = request.filter(token_projects);
        let changed = |current: Option<&Webhook>| match current.cloned() {
            Some(current) => Webhook {
                url: request.url.to_string(),
                filter: filter.clone(),
                failing: None,
                ..current
            },
            None => Webhook {
                name: name.clone(),
                url: request.url.to_string(),
                filter: filter.clone(),
                secret: new_secret(),
                previous_secrets: Vec::new(),
                created_at: self.clock.now(),
                failing: None,
            },
        };
        self.change(tenant, current, |current| Ok(changed(current)))
            .await
    }

    /// Gives a webhook a new secret. The one before stays valid for a day.
    pub async fn rotate(
        &self,
        tenant: &TenantId,
        name: &WebhookName,
    ) -> Result<Webhook, RegisterError> {
        let current = Box::pin(self.store.webhook(tenant, name)).await?;
        let now = self.clock.now();
        let rotated = self.change(tenant, current, |current| {
            let current = current.ok_or(RegisterError::NotFound)?.clone();
            Ok(current.with_secret(new_secret(), now))
        });
        Ok(rotated.await?.0)
    }

    /// Stores what `change` makes of a webhook, again if another writer was faster.
    async fn change(
        &self,
        tenant: &TenantId,
        current: Option<Versioned<Webhook>>,
        change: impl Fn(Option<&Webhook>) -> Result<Webhook, RegisterError>,
    ) -> Result<(Webhook, bool), RegisterError> {
        let changed = update(ATTEMPTS, current, async |current| {
            let changed = change(current.as_ref().map(|current| &current.value))?;
            let replaced = self
                .store
                .replace_webhook(tenant, &changed, current.as_ref());
            let replaced = Box::pin(replaced).await?;
            Ok::<_, RegisterError>(Attempt::of(replaced, (changed, current.is_none())))
        });
        let contention = || Error::Unavailable {
            operation: "PutItem",
            code: "the webhook is being changed".to_owned(),
        };
        Ok(changed.await?.ok_or_else(contention)?)
    }

    /// The webhooks of a tenant, by name.
    pub async fn list(&self, tenant: &TenantId) -> Result<Vec<Webhook>, Error> {
        let webhooks = Box::pin(self.store.webhooks(tenant)).await?;
        Ok(webhooks.into_iter().map(|webhook| webhook.value).collect())
    }

    /// Removes a webhook. Messages that wait for it are not sent any more.
    pub async fn remove(&self, tenant: &TenantId, name: &WebhookName) -> Result<(), RegisterError> {
        if Box::pin(self.store.delete_webhook(tenant, name)).await? {
            Ok(())
        } else {
            Err(RegisterError::NotFound)
        }
    }

    /// Sends a test message now, even if the webhook is paused.
    pub async fn test(
        &self,
        tenant: &TenantId,
        name: &WebhookName,
    ) -> Result<Tested, RegisterError> {
        let webhook = Box::pin(self.store.webhook(tenant, name)).await?;
        let webhook = webhook.ok_or(RegisterError::NotFound)?.value;
        let (id, now) = (Uuid::new_v4(), self.clock.now());
        let message = test_message(tenant, id, now);
        Ok(match self.sender.send(&webhook, id, message, now).await {
            Ok(status) => Tested {
                accepted: Some(status.as_u16()),
                failure: None,
            },
            Err(failure) => Tested {
                accepted: None,
                failure: Some(failure.to_string()),
            },
        })
    }

    /// The current time, by which a status is told.
    pub(super) fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }
}

fn test_message(tenant: &TenantId, id: Uuid, now: DateTime<Utc>) -> Bytes {
    let message = json!({
        "id": id,
        "eventType": "webhook.test",
        "tenant": tenant,
        "publishedAt": now,
    });
    message.to_string().into()
}

/// A key of 244 random bits.
fn new_secret() -> WebhookSecret {
    let mut key = [0; 32];
    let (first, second) = key.split_at_mut(16);
    first.copy_from_slice(Uuid::new_v4().as_bytes());
    second.copy_from_slice(Uuid::new_v4().as_bytes());
    WebhookSecret::of(&key)
}
