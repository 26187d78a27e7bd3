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
    /// The project
    #[arg(long, value_parser = identifier::<ProjectId>)]
    project: String,
    #[command(flatten)]
    question: Question,
    #[command(flatten)]
    api: ApiArgs,
}

impl Compare {
    /// The exit status of an error: 1 means that B is worse.
    pub(super) const FAILURE: u8 = 2;

    pub(super) async fn run(self) -> Result<ExitCode> {
        let scope = Scope::Report.as_str().to_owned();
        let api = self.api.connect("hearback-compare", &self.project, scope)?;
        let answer = compare::ask(&api, &self.project, &self.question).await?;
        writeln!(std::io::stdout(), "{answer}")?;
        Ok(ExitCode::from(u8::from(answer.is_worse())))
    }
}
