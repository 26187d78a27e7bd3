//! `hearback tail`: published messages.

use anyhow::Result;
use clap::Args;
use hearback_domain::learning::publication::Subject;

use super::{BundleArgs, shutdown};
use crate::names::Names;
use crate::queue_tools;

#[derive(Args)]
pub(super) struct Tail {
    /// Only this subject
    #[arg(long, value_parser = subject)]
    subject: Option<Subject>,
    /// Stop when the queues are empty
    #[arg(long)]
    drain: bool,
    #[command(flatten)]
    bundle: BundleArgs,
}

impl Tail {
    pub(super) async fn run(self) -> Result<()> {
        let names = Names::new(&self.bundle.stack);
        let subjects: Vec<Subject> = match self.subject {
            Some(subject) => vec![subject],
            None => Subject::NAMES.iter().map(|(_, subject)| *subject).collect(),
        };
        let sqs = self.bundle.clients()?.sqs;
        queue_tools::tail(&sqs, &names, &subjects, self.drain, &shutdown()?).await
    }
}

fn subject(name: &str) -> Result<Subject, String> {
    let found = Subject::NAMES.iter().find(|(known, _)| *known == name);
    found.map(|(_, subject)| *subject).ok_or_else(|| {
        let names: Vec<_> = Subject::NAMES.iter().map(|(name, _)| *name).collect();
        format!("the subjects are {}", names.join(", "))
    })
}
