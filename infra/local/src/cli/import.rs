//! `hearback import`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use hearback_domain::identity::identifier::TenantId;
use hearback_storage::{Blobs, Store};

use super::{BundleArgs, NOT_RUNNING};
use crate::import::{self, ImportTarget};
use crate::names::Names;

#[derive(Args)]
pub(super) struct Import {
    /// Events as JSON Lines
    file: PathBuf,
    /// The tenant
    #[arg(long, default_value = "acme", value_parser = tenant)]
    tenant: TenantId,
    #[command(flatten)]
    bundle: BundleArgs,
}

fn tenant(text: &str) -> Result<TenantId, String> {
    TenantId::try_from(text).map_err(|error| error.to_string())
}

impl Import {
    pub(super) async fn run(self) -> Result<()> {
        let clients = self.bundle.clients()?;
        let names = Names::new(&self.bundle.stack);
        let queue = clients.sqs.get_queue_url().queue_name(names.imports());
        let queue = queue.send().await.context(NOT_RUNNING)?.queue_url;
        let target = ImportTarget {
            store: Store::new(clients.dynamodb, names.table()),
            blobs: Blobs::new(clients.s3, names.bucket()),
            queue: (clients.sqs.clone(), queue.context(NOT_RUNNING)?),
            tenant: self.tenant,
        };
        let report = import::import(&self.file, &target).await?;
        let mut out = std::io::stdout().lock();
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
        let waiting = import::waiting(&clients.sqs, &names).await?;
        if waiting > 0 {
            let mut err = std::io::stderr().lock();
            writeln!(
                err,
                "every event is stored; about {waiting} imported events are waiting to be processed"
            )?;
        }
        anyhow::ensure!(
            report.damage.is_none(),
            "the file could not be read to its end"
        );
        Ok(())
    }
}
