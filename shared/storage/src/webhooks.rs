//! Webhooks: one item each, in the partition of their tenant, with what the last calls found out.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use hearback_domain::identity::identifier::{TenantId, WebhookName};
use hearback_domain::views::webhook::Webhook;

use crate::attributes::CORE;
use crate::conditional::changed;
use crate::item::{self, Builder, Item};
use crate::table::{PK, SK};
use crate::{Error, Replaced, Store, Versioned, keys};

const WEBHOOK: &str = "webhook";

fn read(row: &Item) -> Result<Versioned<Webhook>, Error> {
    Versioned::of(row, WEBHOOK, |row| item::json(row, WEBHOOK, CORE))
}

impl Store {
    /// The webhooks of a tenant, by name. One that cannot be read is left out. Strongly consistent, so that a webhook
    /// receives everything that is published after it was put. One call, one read for each 4 KB.
    pub async fn webhooks(&self, tenant: &TenantId) -> Result<Vec<Versioned<Webhook>>, Error> {
        let (mut found, mut next) = (Vec::new(), None);
        loop {
            let page = self
                .client
                .query()
                .table_name(&self.table)
                .key_condition_expression("PK = :pk")
                .expression_attribute_values(":pk", AttributeValue::S(keys::webhooks(tenant)))
                .consistent_read(true)
                .set_exclusive_start_key(next.take())
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
                .await
                .map_err(|error| Error::unavailable("Query", &error))?;
            let rows = page.items().iter();
            found.extend(rows.filter_map(|row| item::readable(row, read(row))));
            next = page.last_evaluated_key;
            if next.is_none() {
                return Ok(found);
            }
        }
    }

    /// A webhook. Strongly consistent. One call, one read for each 4 KB.
    pub async fn webhook(
        &self,
        tenant: &TenantId,
        name: &WebhookName,
    ) -> Result<Option<Versioned<Webhook>>, Error> {
        let row = self
            .get(keys::webhooks(tenant), keys::webhook(name))
            .await?;
        row.item.as_ref().map(read).transpose()
    }

    /// Replaces the version of a webhook that was read, or inserts it. One call, one write for each KB.
    pub async fn replace_webhook(
        &self,
        tenant: &TenantId,
        webhook: &Webhook,
        current: Option<&Versioned<Webhook>>,
    ) -> Result<Replaced<Webhook>, Error> {
        let item = Builder::new(keys::webhooks(tenant), keys::webhook(&webhook.name))
            .json(WEBHOOK, CORE, webhook)?
            .build();
        self.replace(item, current, read).await
    }

    /// Removes a webhook; `false` if there is none. One call, one write for each KB.
    pub async fn delete_webhook(
        &self,
        tenant: &TenantId,
        name: &WebhookName,
    ) -> Result<bool, Error> {
        let deleted = self
            .client
            .delete_item()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(keys::webhooks(tenant)))
            .key(SK, AttributeValue::S(keys::webhook(name)))
            .condition_expression("attribute_exists(PK)")
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await;
        changed("DeleteItem", deleted)
    }
}
