//! `hearback replay`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use hearback_domain::identity::caller::Scope;
use hearback_domain::identity::identifier::{ProjectId, TenantId, UserId};

use super::{identifier, not_started};
use crate::atomic::read_json;
use crate::files::{GATEWAY_FILE, TOKEN_KEY_FILE};
use crate::replay::{self, ReplayTarget};
use crate::secrets::secret;
use crate::token::{Claims, Tokens};

const MAX_REJECTED_SHOWN: usize = 20;

#[derive(Args)]
pub(super) struct Replay {
    /// Conversations with their turns, as JSON Lines
    file: PathBuf,
    /// The project
    #[arg(long, value_parser = identifier::<ProjectId>)]
    project: String,
    /// The tenant
    #[arg(long, default_value = "acme", value_parser = identifier::<TenantId>)]
    tenant: String,
    /// User that owns the turns
    #[arg(long, default_value = "replay", value_parser = identifier::<UserId>)]
    sub: String,
    /// Data folder of the running bundle
    #[arg(long, default_value = ".hearback", value_name = "DIR")]
    data: PathBuf,
}

impl Replay {
    pub(super) async fn run(self) -> Result<()> {
        let file = self.data.join(GATEWAY_FILE);
        let address: String = read_json(&file)?.with_context(|| not_started(&self.data))?;
        let tokens = Tokens::new(&secret(&self.data, TOKEN_KEY_FILE)?);
        let target = ReplayTarget {
            address,
            token: tokens.sign(Claims {
                sub: self.sub,
                tenant: self.tenant.clone(),
                projects: vec![self.project.clone()],
                scope: Scope::OnBehalf.as_str().to_owned(),
            })?,
            tenant: self.tenant,
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
