//! `hearback check`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::check;

#[derive(Args)]
pub(super) struct Check {
    /// Data folder
    #[arg(long, default_value = ".hearback", value_name = "DIR")]
    data: PathBuf,
}

impl Check {
    /// Prints a line for each part; fails if a part is damaged.
    pub(super) fn run(self) -> Result<()> {
        anyhow::ensure!(
            self.data.is_dir(),
            "{} is not a folder; choose one with --data",
            self.data.display()
        );
        let results = check::check_folder(&self.data);
        let mut out = std::io::stdout().lock();
        for result in &results {
            writeln!(out, "{result}")?;
        }
        out.flush()?;
        let failed = results.iter().filter(|part| part.result.is_err()).count();
        anyhow::ensure!(
            failed == 0,
            "{} is damaged or incomplete",
            self.data.display()
        );
        Ok(())
    }
}
