//! `hearback relay`: publishes to NATS from a process of its own.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use futures::future::join_all;
use hearback_lambda::dead_letters::DeadLetters;
use hearback_relay::{Backoff, Nats, Relay, ServerUrls};

use super::nats::{NatsOptions, warn};
use super::{BundleArgs, shutdown};
use crate::event_source::{EventSource, OUTLET_MAX_WAIT};
use crate::health::Health;
use crate::load::Load;
use crate::names::Names;
use crate::queue_tools::url;

/// For how long a received message is hidden, which is extended while it is delivered. After a crash, it is delivered by
/// another worker so soon.
const VISIBILITY: Duration = Duration::from_secs(30);

#[derive(Args)]
pub(super) struct RelayCommand {
    /// The NATS server, for example `nats://127.0.0.1:4222`; several of a cluster with commas between them
    #[arg(long, value_name = "URL")]
    nats: ServerUrls,
    #[command(flatten)]
    options: NatsOptions,
    /// Batches of ten messages that are published concurrently
    #[arg(long, default_value_t = 4, value_name = "NUMBER",
        value_parser = clap::value_parser!(u8).range(1..=64))]
    workers: u8,
    #[command(flatten)]
    bundle: BundleArgs,
}

impl RelayCommand {
    pub(super) async fn run(self) -> Result<()> {
        let shutdown = shutdown()?;
        let settings = self.options.settings(self.nats)?;
        let (sqs, names) = (self.bundle.clients()?.sqs, Names::new(&self.bundle.stack));
        let queue = names.nats();
        let queue_url = url(&sqs, &queue).await;
        let queue_url = queue_url.with_context(|| format!("the queue {queue} cannot be used"))?;
        let dead_letters = url(&sqs, &names.nats_dead_letters()).await?;
        warn(&settings).await?;
        writeln!(
            std::io::stdout(),
            "Publishing to NATS what waits in the queue {queue}."
        )?;
        let (health, load) = (Health::default(), Load::new(1));
        let workers = (0..self.workers).map(|_| {
            let backoff = Backoff::new(sqs.clone(), &queue_url);
            let dead_letters = DeadLetters::new(sqs.clone(), &dead_letters);
            let source = EventSource {
                client: sqs.clone(),
                queue_url: queue_url.clone(),
                consumer: Relay::new(Nats::new(settings.clone()), backoff, dead_letters),
                visibility: VISIBILITY,
                max_wait: OUTLET_MAX_WAIT,
                load: load.clone(),
                status: health.register("nats"),
            };
            source.run(shutdown.clone())
        });
        join_all(workers).await;
        Ok(())
    }
}
