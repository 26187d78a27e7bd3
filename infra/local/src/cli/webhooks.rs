//! The options of webhooks, and `hearback webhooks`.

use std::io::Write;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use hearback_domain::identity::identifier::{TenantId, WebhookName};
use hearback_domain::views::webhook::WebhookRequest;
use hearback_lambda::clock::Clock;
use hearback_relay::{Networks, Sender, WebhookDocument, WebhookRegistry};
use hearback_wire::from_json;
use serde_json::{Map, Value, json};

use super::{BundleArgs, parsed};

/// Whether tenants may register webhooks.
#[derive(Args)]
pub(super) struct WebhookArgs {
    /// Send what is published to the webhooks that tenants register
    #[arg(long)]
    webhooks: bool,
    /// Comma-separated networks, such as 127.0.0.0/8, to whose addresses webhooks may be sent, also over http; to
    /// others only if they are public, over https
    #[arg(
        long,
        value_name = "LIST",
        default_value = "",
        hide_default_value = true,
        requires = "webhooks"
    )]
    webhook_networks: Networks,
}

impl WebhookArgs {
    /// The networks, if webhooks are sent.
    pub(super) fn networks(self) -> Option<Networks> {
        self.webhooks.then_some(self.webhook_networks)
    }
}

#[derive(Args)]
pub(super) struct WebhooksCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Add a webhook, and print its secret; or change its target and its filter, and call it again if it is paused
    Add(Add),
    /// Print the webhooks, as JSON Lines
    List(Of),
    /// Remove a webhook
    Remove(Named),
    /// Send a signed test message from this process
    Test(Test),
    /// Print a new secret. The one before signs for a day, too
    Secret(Named),
}

/// Whose webhooks.
#[derive(Args)]
struct Of {
    /// The tenant
    #[arg(long, default_value = "acme", value_parser = parsed::<TenantId>)]
    tenant: TenantId,
    /// Name of the table, if it is not the stack's name: the output `TableName` of a deployed stack
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    #[command(flatten)]
    bundle: BundleArgs,
}

#[derive(Args)]
struct Named {
    /// Its name
    #[arg(value_parser = parsed::<WebhookName>)]
    name: WebhookName,
    #[command(flatten)]
    of: Of,
}

/// Where it may be sent.
#[derive(Args)]
struct Allowed {
    /// Networks with private addresses to which it may be sent
    #[arg(
        long,
        value_name = "LIST",
        default_value = "",
        hide_default_value = true
    )]
    webhook_networks: Networks,
}

#[derive(Args)]
struct Test {
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    allowed: Allowed,
}

#[derive(Args)]
struct Add {
    #[command(flatten)]
    named: Named,
    /// The target
    #[arg(long, value_name = "URL")]
    url: String,
    /// Only messages with these subjects, such as feedback.processed; comma-separated
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    subjects: Vec<String>,
    /// Only feedback.processed, feedback.retracted or learning.signal.generated; comma-separated
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    event_types: Vec<String>,
    /// Only processed feedback with these outcomes, such as rejected, and retractions; comma-separated
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    outcomes: Vec<String>,
    /// Only feedback in these projects; comma-separated
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    projects: Vec<String>,
    #[command(flatten)]
    allowed: Allowed,
}

impl Of {
    fn registry(&self, networks: Networks) -> Result<WebhookRegistry> {
        let (_, _, store) = self.bundle.open(self.table.clone())?;
        let sender = Sender::new(networks)?;
        Ok(WebhookRegistry::new(store, sender, Clock::system()))
    }
}

impl Add {
    /// The request, with all errors of its parts at once.
    fn request(&self) -> Result<WebhookRequest> {
        let mut request = Map::from_iter([("url".to_owned(), self.url.clone().into())]);
        for (member, list) in [
            ("subjects", &self.subjects),
            ("eventTypes", &self.event_types),
            ("outcomes", &self.outcomes),
            ("projects", &self.projects),
        ] {
            if !list.is_empty() {
                request.insert(member.to_owned(), json!(list));
            }
        }
        from_json(&Value::from(request)).map_err(|errors| {
            let errors = errors
                .iter()
                .map(|error| format!("{} {}", error.pointer, error.detail));
            anyhow::Error::msg(errors.collect::<Vec<_>>().join("; "))
        })
    }
}

fn named(webhook: &WebhookName) -> String {
    format!("the webhook {webhook}")
}

impl WebhooksCommand {
    pub(super) async fn run(self) -> Result<()> {
        let mut out = std::io::stdout();
        match self.action {
            Action::Add(add) => {
                let request = add.request()?;
                let Named { name, of } = add.named;
                let registry = of.registry(add.allowed.webhook_networks)?;
                let (webhook, is_new) = registry.put(&of.tenant, &name, &request, None).await?;
                if is_new {
                    writeln!(out, "{}", webhook.secret.as_str())?;
                } else {
                    writeln!(out, "The webhook {name} is changed; its secret stays.")?;
                }
            }
            Action::List(of) => {
                let now = Clock::system().now();
                for webhook in of.registry(Networks::default())?.list(&of.tenant).await? {
                    let line = WebhookDocument::of(webhook, now, false);
                    writeln!(out, "{}", serde_json::to_string(&line)?)?;
                }
            }
            Action::Remove(Named { name, of }) => {
                let registry = of.registry(Networks::default())?;
                let removed = registry.remove(&of.tenant, &name).await;
                removed.with_context(|| named(&name))?;
            }
            Action::Secret(Named { name, of }) => {
                let registry = of.registry(Networks::default())?;
                let webhook = registry.rotate(&of.tenant, &name).await;
                let webhook = webhook.with_context(|| named(&name))?;
                writeln!(out, "{}", webhook.secret.as_str())?;
            }
            Action::Test(test) => {
                let Named { name, of } = test.named;
                let registry = of.registry(test.allowed.webhook_networks)?;
                let tested = registry.test(&of.tenant, &name).await;
                let tested = tested.with_context(|| named(&name))?;
                match (tested.accepted, tested.failure) {
                    (Some(status), _) => writeln!(out, "The target answered {status}.")?,
                    (None, failure) => bail!(failure.unwrap_or_default()),
                }
            }
        }
        Ok(())
    }
}
