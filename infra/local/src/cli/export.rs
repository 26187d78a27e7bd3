//! `hearback export`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use hearback_export::{Exporter, TrainingSet};
use hearback_lambda::clock::Clock;
use hearback_storage::{Blobs, Store};
use serde_json::{Map, Value, json};

use super::BundleArgs;
use crate::clients::Clients;
use crate::export;
use crate::names::Names;

#[derive(Args)]
pub(super) struct Export {
    /// The tenant
    #[arg(long, default_value = "acme")]
    tenant: String,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    training: TrainingArgs,
    #[command(flatten)]
    bundle: BundleArgs,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct Selection {
    /// Message signals on this trace
    #[arg(long, value_name = "ID")]
    trace: Option<String>,
    /// Message signals of this day in UTC; also written to the bucket
    #[arg(long, value_name = "DATE")]
    day: Option<String>,
    /// Training data: preference pairs, then labelled answers; also written to the bucket
    #[arg(long, requires = "project")]
    training: bool,
}

#[derive(Args)]
struct TrainingArgs {
    /// With --training: the project
    #[arg(long, value_name = "NAME", conflicts_with_all = ["trace", "day"])]
    project: Option<String>,
    /// With --training: the first day of the feedback in UTC [default: a year before the last]
    #[arg(long, value_name = "DATE", conflicts_with_all = ["trace", "day"])]
    from: Option<String>,
    /// With --training: the last day of the feedback [default: today]
    #[arg(long, value_name = "DATE", conflicts_with_all = ["trace", "day"])]
    to: Option<String>,
    /// With --training: write pairs.jsonl and labels.jsonl into this folder instead of printing them
    #[arg(long, value_name = "DIR", conflicts_with_all = ["trace", "day"])]
    out: Option<PathBuf>,
}

impl Export {
    pub(super) async fn run(self) -> Result<()> {
        let clients = self.bundle.clients()?;
        let names = Names::new(&self.bundle.stack);
        let exporter = Exporter::new(
            Store::new(clients.dynamodb.clone(), names.table()),
            Blobs::new(clients.s3.clone(), names.bucket()),
            Clock::system(),
        );
        let mut request = Map::from_iter([("tenant".to_owned(), self.tenant.into())]);
        if self.selection.training {
            request.insert("training".to_owned(), self.training.request());
            return self.training.run(&exporter, &clients, request).await;
        }
        request.insert("trace_id".to_owned(), self.selection.trace.into());
        request.insert("day".to_owned(), self.selection.day.into());
        let mut out = std::io::stdout().lock();
        let summary = export::export(&exporter, &clients.s3, request, &mut out).await?;
        writeln!(std::io::stderr(), "{summary}")?;
        Ok(())
    }
}

impl TrainingArgs {
    fn request(&self) -> Value {
        json!({"project": self.project, "from": self.from, "to": self.to})
    }

    async fn run(
        self,
        exporter: &Exporter,
        clients: &Clients,
        request: Map<String, Value>,
    ) -> Result<()> {
        let trained = export::training(exporter, request).await?;
        let (pairs, labels) = (&trained.pairs.files, &trained.labels.files);
        if let Some(folder) = &self.out {
            for (name, files) in [("pairs.jsonl", pairs), ("labels.jsonl", labels)] {
                let mut file = create(folder, name)?;
                export::copy(&clients.s3, files, &mut file).await?;
                file.flush()?;
            }
        } else {
            let mut out = std::io::stdout().lock();
            for files in [pairs, labels] {
                export::copy(&clients.s3, files, &mut out).await?;
            }
            out.flush()?;
        }
        writeln!(std::io::stderr(), "{}", summary(&trained))?;
        Ok(())
    }
}

fn create(folder: &Path, name: &str) -> Result<BufWriter<File>> {
    let path = folder.join(name);
    let shown = path.display();
    std::fs::create_dir_all(folder)
        .and_then(|()| File::create(&path))
        .map(BufWriter::new)
        .with_context(|| format!("cannot write {shown}"))
}

fn summary(trained: &TrainingSet) -> String {
    let TrainingSet {
        days,
        pairs,
        labels,
        left_out,
        manifest,
        resume: _,
    } = trained;
    format!(
        "{} pairs and {} labels from {} to {}; left out: {} excluded from training, {} contested, \
         {} without their turn, {} without text, {} unreadable; {}",
        pairs.rows,
        labels.rows,
        days.from,
        days.to,
        left_out.excluded,
        left_out.contested,
        left_out.without_turn,
        left_out.without_text,
        left_out.unreadable,
        manifest.as_deref().unwrap_or_default()
    )
}
