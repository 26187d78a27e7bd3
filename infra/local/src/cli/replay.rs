//! `hearback replay`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use hearback_domain::identity::caller::Scope;
use hearback_domain::identity::identifier::{ProjectId, UserId};

use super::api::ApiArgs;
use super::identifier;
use crate::replay::{self, ReplayTarget};

const MAX_REJECTED_SHOWN: usize = 20;

#[derive(Args)]
pub(super) struct Replay {
    /// Conversations with their turns, as JSON Lines
    file: PathBuf,
    /// The project
    #[arg(long, value_parser = identifier::<ProjectId>)]
    project: String,
    /// User that owns the turns; with `--url`, that of the token does
    #[arg(long, default_value = "replay", value_parser = identifier::<UserId>, conflicts_with = "url")]
    sub: String,
    #[command(flatten)]
    api: ApiArgs,
}

impl Replay {
    pub(super) async fn run(self) -> Result<()> {
        let scope = Scope::OnBehalf.as_str().to_owned();
        let target = ReplayTarget {
            api: self.api.connect(&self.sub, &self.project, scope)?,
            tenant: self.api.tenant,
            project: self.project,
        };
        let summary = replay::replay(&self.file, &target).await?;
        for rejected in summary.rejected.iter().take(MAX_REJECTED_SHOWN) {
            writeln!(std::io::stderr(), "rejected: {rejected}")?;
        }
        writeln!(std::io::stdout(), "{summary}")?;
        anyhow::ensure!(summary.rejected.is_empty(), "some turns were rejected");
        Ok(())
    }
}
