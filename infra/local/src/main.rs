//! The command `hearback`.

use std::process::ExitCode;

fn main() -> ExitCode {
    hearback_local::cli::run()
}
