//! `hearback compare`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use hearback_domain::identity::caller::Scope;
use hearback_domain::identity::identifier::{ProjectId, TenantId};
use reqwest::Url;

use super::{identifier, not_started};
use crate::atomic::read_json;
use crate::compare::{self, Question};
use crate::files::{GATEWAY_FILE, TOKEN_KEY_FILE};
use crate::secrets::secret;
use crate::token::{Claims, Tokens};

/// The environment variable with a token for `--url`.
const TOKEN: &str = "HEARBACK_TOKEN";

#[derive(Args)]
pub(super) struct Compare {
    /// What to compare by: `label.` and a key, such as `label.prompt_version`, or `agentId`, `strategy`, `artifactType`
    /// or `taskType`
    #[arg(long, value_name = "DIMENSION")]
    by: String,
    /// The value to compare with
    #[arg(long, value_name = "VALUE")]
    a: String,
    /// The value that may be better or worse
    #[arg(long, value_name = "VALUE")]
    b: String,
    /// The project
    #[arg(long, value_parser = identifier::<ProjectId>)]
    project: String,
    /// Feedback that was given from this time on, for example 2026-11-20T08:00:00Z [default: 30 days ago]
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Feedback that was given before this time [default: now]
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// The difference that matters, in percentage points
    #[arg(long, default_value_t = 5, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(1..=50))]
    points: u8,
    /// URL of a deployed API, with a token in `HEARBACK_TOKEN` [default: the running bundle]
    #[arg(long, value_name = "URL")]
    url: Option<Url>,
    /// The tenant, for the running bundle
    #[arg(long, default_value = "acme", value_parser = identifier::<TenantId>)]
    tenant: String,
    /// Data folder of the running bundle
    #[arg(long, default_value = ".hearback", value_name = "DIR")]
    data: PathBuf,
}

impl Compare {
    /// Exits with 1 if B is worse, and with 2 if it cannot be asked.
    pub(super) async fn run(self) -> ExitCode {
        match self.compare().await {
            Ok(is_worse) => ExitCode::from(u8::from(is_worse)),
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "error: {error:#}");
                ExitCode::from(2)
            }
        }
    }

    async fn compare(self) -> Result<bool> {
        let (url, token) = if let Some(url) = self.url {
            let token = std::env::var(TOKEN);
            (url, token.with_context(|| format!("{TOKEN} is not set"))?)
        } else {
            let address: Option<String> = read_json(&self.data.join(GATEWAY_FILE))?;
            let address = address.with_context(|| not_started(&self.data))?;
            let tokens = Tokens::new(&secret(&self.data, TOKEN_KEY_FILE)?);
            let token = tokens.sign(Claims {
                sub: "hearback-compare".to_owned(),
                tenant: self.tenant,
                projects: vec![self.project.clone()],
                scope: Scope::Report.as_str().to_owned(),
            })?;
            (Url::parse(&format!("http://{address}"))?, token)
        };
        let question = Question {
            url,
            token,
            project: self.project,
            by: self.by,
            a: self.a,
            b: self.b,
            from: self.from,
            to: self.to,
            points: self.points,
        };
        let answer = compare::ask(&question).await?;
        writeln!(std::io::stdout(), "{answer}")?;
        Ok(answer.is_worse())
    }
}
