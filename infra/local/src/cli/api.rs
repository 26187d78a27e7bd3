//! Which API a command calls, and with which token.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use hearback_domain::identity::caller::Scope;
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
        let token = self.token(sub, project, scope)?;
        Api::new(running(&self.data)?, token)
    }

    /// A link to the console of the running bundle, with a token for the project; none of a deployed API.
    pub(super) fn console(&self, project: &str) -> Result<Option<Url>> {
        if self.url.is_some() {
            return Ok(None);
        }
        let token = self.token("operator", project, console_scopes())?;
        let mut link = running(&self.data)?.join("/console/overview")?;
        link.query_pairs_mut().append_pair("project", project);
        link.set_fragment(Some(&format!("token={token}")));
        Ok(Some(link))
    }

    fn token(&self, sub: &str, project: &str, scope: String) -> Result<String> {
        let tokens = Tokens::new(&secret(&self.data, TOKEN_KEY_FILE)?);
        tokens.sign(Claims {
            sub: sub.to_owned(),
            tenant: self.tenant.clone(),
            projects: vec![project.to_owned()],
            scope,
        })
    }
}

/// The scopes of the views of the console. Who runs a bundle may do everything with it.
pub(super) fn console_scopes() -> String {
    [Scope::Report, Scope::OnBehalf, Scope::Admin, Scope::Operate]
        .map(Scope::as_str)
        .join(" ")
}

/// The URL of a running bundle.
fn running(data: &Path) -> Result<Url> {
    let address: Option<String> = read_json(&data.join(GATEWAY_FILE))?;
    let address = address.with_context(|| not_started(data))?;
    Ok(Url::parse(&format!("http://{address}"))?)
}
