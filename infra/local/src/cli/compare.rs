//! `hearback compare`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use hearback_domain::identity::caller::Scope;
use hearback_domain::identity::identifier::ProjectId;

use super::api::ApiArgs;
use super::identifier;
use crate::compare::{self, Question};

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
    #[command(flatten)]
    api: ApiArgs,
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
        let scope = Scope::Report.as_str().to_owned();
        let (url, token) = self.api.access("hearback-compare", &self.project, scope)?;
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
