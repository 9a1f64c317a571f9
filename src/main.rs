//! The `steadyhand` command.

use std::process::ExitCode;

use steadyhand::cli::{self, ExitStatus};

fn main() -> ExitCode {
    match cli::run(cli::Cli::of_process()) {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(error) => {
            cli::note(&format!("steadyhand: {}", cli::describe_failure(&error)));
            ExitCode::from(ExitStatus::from_error(&error) as u8)
        }
    }
}
