//! Which API a command calls, and with which token.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use hearback_domain::identity::identifier::TenantId;
use reqwest::Url;

use super::{identifier, not_started};
use crate::api::Api;
use crate::atomic::read_json;
use crate::files::{GATEWAY_FILE, TOKEN_KEY_FILE};
use crate::secrets::secret;
use crate::token::{Claims, Tokens};

/// The environment variable with a token for `--url`.
const TOKEN: &str = "HEARBACK_TOKEN";

#[derive(Args)]
pub(super) struct ApiArgs {
    /// URL of a deployed API, with a token in `HEARBACK_TOKEN` [default: the running bundle]
    #[arg(long, value_name = "URL")]
    url: Option<Url>,
    /// The tenant
    #[arg(long, default_value = "acme", value_parser = identifier::<TenantId>)]
    pub(super) tenant: String,
    /// Data folder of the running bundle
    #[arg(long, default_value = ".hearback", value_name = "DIR")]
    pub(super) data: PathBuf,
}

impl ApiArgs {
    /// The API. A running bundle's token is signed for this command: for this user, with these scopes.
    pub(super) fn connect(&self, sub: &str, project: &str, scope: String) -> Result<Api> {
        if let Some(url) = &self.url {
            let token = std::env::var(TOKEN).with_context(|| format!("{TOKEN} is not set"))?;
            return Api::new(url.clone(), token);
        }
        let tokens = Tokens::new(&secret(&self.data, TOKEN_KEY_FILE)?);
        let token = tokens.sign(Claims {
            sub: sub.to_owned(),
            tenant: self.tenant.clone(),
            projects: vec![project.to_owned()],
            scope,
        })?;
        Api::new(running(&self.data)?, token)
    }
}

/// The URL of a running bundle.
fn running(data: &Path) -> Result<Url> {
    let address: Option<String> = read_json(&data.join(GATEWAY_FILE))?;
    let address = address.with_context(|| not_started(data))?;
    Ok(Url::parse(&format!("http://{address}"))?)
}
