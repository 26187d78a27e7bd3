//! `hearback serve`: the whole bundle on this machine.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use hearback_domain::events::retention::Retention;
use rustix::fs::Mode;

use super::api::console_scopes;
use super::{nats, shutdown, webhooks};
use crate::bundle::{Bundle, Options};
use crate::demo_page;
use crate::engines::Access;
use crate::hosts::{Host, Hosts};
use crate::log_limit::{self, Limiter};
use crate::manifest::FolderPart;
use crate::names::{DEFAULT_STACK, Names};
use crate::open_files;
use crate::token::Claims;

#[derive(Args)]
pub(super) struct Serve {
    /// Port of the gateway; the engines use the three ports that follow
    #[arg(long, default_value_t = 3000)]
    port: u16,
    /// Data folder
    #[arg(long, default_value = ".hearback", value_name = "DIR")]
    data: PathBuf,
    /// Keep all data in memory instead
    #[arg(long, conflicts_with = "data")]
    memory: bool,
    /// Use an AWS-compatible endpoint instead of the embedded engines, or `aws` for AWS itself. Missing
    /// resources are created there; region and credentials come from the environment
    #[arg(long, value_name = "URL")]
    endpoint_url: Option<String>,
    /// Stack whose resources to use
    #[arg(long, default_value = DEFAULT_STACK, value_name = "NAME")]
    stack: String,
    /// Projects whose reactions are mirrored into turn logs unless a request says otherwise, as a
    /// comma-separated list of tenant/project
    #[arg(long, default_value = "", value_name = "LIST")]
    mirror: String,
    /// Days for which turns are kept, with their reactions and signals; 0 keeps them forever
    #[arg(long, default_value_t = Retention::DEFAULT_DAYS, value_name = "DAYS",
        value_parser = clap::value_parser!(u16).range(..=Retention::MAX_DAYS))]
    turn_retention_days: u16,
    /// Folder of phrase files (<language>.toml) to add to the built-in ones
    #[arg(long, value_name = "DIR")]
    phrases: Option<PathBuf>,
    /// An additional host name or address under which the gateway is reached, without a port, for example
    /// that of a reverse proxy. May be given more than once. Requests for hosts other than these and the
    /// loopback names are rejected
    #[arg(long, value_name = "HOST")]
    allowed_host: Vec<Host>,
    /// Start although this part of the data folder (dynamodb.sqlite, sqs.sqlite, s3, pseudonym.key, token.key,
    /// credentials.json, manifest.json) is missing or belongs to another folder. Its content is lost for good;
    /// pass the option for one start only. May be given more than once
    #[arg(long, value_name = "PART")]
    accept: Vec<FolderPart>,
    #[command(flatten)]
    nats: nats::NatsArgs,
    #[command(flatten)]
    webhooks: webhooks::WebhookArgs,
}

impl Serve {
    pub(super) async fn run(self, limiter: Arc<Limiter>) -> Result<()> {
        open_files::raise_limit();
        // Files that libraries create from now on are private to the user.
        rustix::process::umask(Mode::RWXG | Mode::RWXO);
        let shutdown = shutdown()?;
        let nats = self.nats.settings()?;
        let bundle = Bundle::start(Options {
            nats: nats.clone(),
            webhooks: self.webhooks.networks(),
            port: self.port,
            data: (!self.memory).then_some(self.data),
            endpoint_url: self.endpoint_url,
            names: Names::new(self.stack),
            mirror: self.mirror,
            retention: Retention::days(self.turn_retention_days),
            phrases: self.phrases,
            hosts: Hosts::with(self.allowed_host),
            accept: self.accept,
            ..Options::default()
        })
        .await?;
        print_welcome(&bundle)?;
        if let Some(nats) = nats {
            tokio::spawn(async move { nats::warn(&nats).await });
        }
        let minute = || tokio::time::sleep(log_limit::INTERVAL);
        while shutdown.run_until_cancelled(minute()).await.is_some() {
            log_limit::report(&limiter);
        }
        bundle.stop().await;
        Ok(())
    }
}

/// Prints addresses, a token and example calls.
fn print_welcome(bundle: &Bundle) -> Result<()> {
    let sign = |sub: &str, projects: &[&str], scope: &str| {
        bundle.tokens.sign(Claims {
            sub: sub.to_owned(),
            tenant: "acme".to_owned(),
            projects: projects.iter().map(|&project| project.to_owned()).collect(),
            scope: scope.to_owned(),
        })
    };
    let token = sign("user-123", &["order-service", demo_page::PROJECT], "")?;
    let operator = sign(
        "operator",
        &["order-service", demo_page::PROJECT, "demo"],
        &console_scopes(),
    )?;
    let address = bundle.address;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "Hearback is listening on http://{address} (API at http://{address}/docs)\n\n\
         Try it in a browser: http://{address}/demo#token={token}\n\n\
         See what users think: http://{address}/console#token={operator}\n"
    )?;
    writeln!(
        out,
        "A token for user-123 of the tenant acme:\n\n  export TOKEN={token}\n"
    )?;
    writeln!(
        out,
        r#"Submit feedback, and read what was learned from it:

  curl -sw '\n' http://{address}/v1/feedback/submit -H "Authorization: Bearer $TOKEN" -d '{{
    "feedbackId": "f47ac10b-58cc-4372-a567-0e02b2c3d479",
    "userId": "user-123", "sessionId": "session-abc", "artifactId": "artifact-456",
    "feedbackChannel": "explicit", "feedbackType": "artifact-acceptance",
    "data": {{"accepted": true, "rating": 4, "comment": "Very helpful checklist",
             "modifiedElements": ["checkbox-1", "text-field-2"], "timeSpent": 45}},
    "context": {{"taskType": "code-review", "projectId": "order-service",
                "artifactType": "checklist"}}}}'

  curl -sw '\n' http://{address}/v1/feedback/f47ac10b-58cc-4372-a567-0e02b2c3d479 -H "Authorization: Bearer $TOKEN"
"#
    )?;
    if let Some(Access { endpoints, keys }) = &bundle.access {
        writeln!(
            out,
            "AWS tools reach the table, queues and bucket with these settings (version 2 of the AWS CLI; version 1\n\
             ignores AWS_ENDPOINT_URL_SQS and would call AWS: pass it --endpoint-url):\n\n  \
             export AWS_ENDPOINT_URL_DYNAMODB={} AWS_ENDPOINT_URL_SQS={} AWS_ENDPOINT_URL_S3={}\n  \
             export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1\n  \
             export AWS_ACCESS_KEY_ID={} AWS_SECRET_ACCESS_KEY={}\n",
            endpoints.dynamodb,
            endpoints.sqs,
            endpoints.s3,
            keys.access_key_id,
            keys.secret_access_key
        )?;
    }
    writeln!(out, "Press Ctrl-C to stop.")?;
    out.flush()?;
    Ok(())
}
