//! Keys of webhooks.

use hearback_domain::identity::identifier::{TenantId, WebhookName};

use super::parts::{part, sort_part};

/// The partition of a tenant's webhooks.
#[must_use]
pub fn webhooks(tenant: &TenantId) -> String {
    format!("WEBHOOKS#{}", part(tenant.as_str()))
}

/// The sort key of a webhook.
#[must_use]
pub fn webhook(name: &WebhookName) -> String {
    format!("WEBHOOK#{}", sort_part(name.as_str()))
}
