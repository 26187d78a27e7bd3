//! `hearback token`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use hearback_domain::identity::identifier::{ProjectId, TenantId, UserId};

use super::identifier;
use crate::files::TOKEN_KEY_FILE;
use crate::secrets::secret;
use crate::token::{Claims, Tokens};

#[derive(Args)]
pub(super) struct Token {
    /// User
    #[arg(long, value_parser = identifier::<UserId>)]
    sub: String,
    /// The tenant
    #[arg(long, value_parser = identifier::<TenantId>)]
    tenant: String,
    /// Comma-separated projects, the most recent first
    #[arg(long, value_delimiter = ',', value_parser = identifier::<ProjectId>)]
    projects: Vec<String>,
    /// Space-separated scopes
    #[arg(long, default_value = "")]
    scope: String,
    /// Data folder of the bundle that the token is for
    #[arg(long, default_value = ".hearback", value_name = "DIR")]
    data: PathBuf,
}

impl Token {
    pub(super) fn run(self) -> Result<()> {
        if !self.data.join(TOKEN_KEY_FILE).exists() {
            let shown = self.data.display();
            // Not an error: a bundle that is started on this folder later uses the key that is generated now.
            writeln!(
                std::io::stderr(),
                "note: no bundle was started on {shown} yet; the token is valid for one that is started there"
            )?;
        }
        let tokens = Tokens::new(&secret(&self.data, TOKEN_KEY_FILE)?);
        let token = tokens.sign(Claims {
            sub: self.sub,
            tenant: self.tenant,
            projects: self.projects,
            scope: self.scope,
        })?;
        writeln!(std::io::stdout(), "{token}")?;
        Ok(())
    }
}
