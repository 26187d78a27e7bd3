//! `hearback demo`.

use std::io::Write;

use anyhow::Result;
use chrono::{Days, NaiveDate, Utc};
use clap::Args;
use hearback_domain::identity::caller::Scope;
use hearback_domain::identity::identifier::ProjectId;

use super::api::ApiArgs;
use super::identifier;
use crate::demo::month::{Month, NEW, OLD};
use crate::demo::{self, DemoTarget};

#[derive(Args)]
pub(super) struct Demo {
    /// The project, which should be empty
    #[arg(long, default_value = "demo", value_parser = identifier::<ProjectId>)]
    project: String,
    /// The last day of the month, such as 2026-11-20 [default: yesterday]
    #[arg(long, value_name = "DATE")]
    until: Option<NaiveDate>,
    #[command(flatten)]
    api: ApiArgs,
}

impl Demo {
    pub(super) async fn run(self) -> Result<()> {
        let yesterday = Utc::now().date_naive() - Days::new(1);
        let until = self.until.unwrap_or(yesterday);
        anyhow::ensure!(until <= yesterday, "the month must end before today");
        let project = self.project;
        let scope = format!("{} {}", Scope::OnBehalf.as_str(), Scope::Report.as_str());
        let api = self.api.connect("hearback-demo", &project, scope)?;
        let console = self.api.console(&project)?;
        let month = Month::until(until, &project);
        let (first, tuesday) = (month.first, month.tuesday);
        let target = DemoTarget {
            api,
            tenant: self.api.tenant,
            project: project.clone(),
        };
        let filled = demo::fill(month, &target).await?;
        let demo::DemoSummary {
            conversations,
            turns,
            given,
            inferred,
        } = filled;
        let console = console.map_or_else(String::new, |link| format!("\n\nLook at it: {link}"));
        writeln!(
            std::io::stdout(),
            "{project}: {conversations} conversations from {first} to {until}, {turns} turns;\n\
             {given} reactions, ratings and corrections, and {inferred} inferred from what users wrote next\n\
             \n\
             On {tuesday}, a Tuesday, half of the users got prompt version {NEW}. Is it better than {OLD}?\n\
             \n\
             hearback compare --project {project} --by label.prompt_version --a {OLD} --b {NEW} --from {tuesday}T00:00:00Z{console}"
        )?;
        Ok(())
    }
}
