//! The `steadyhand` command.

use std::process::ExitCode;

use clap::Parser;
use steadyhand::cli::{self, ExitStatus};

#[expect(
    clippy::print_stderr,
    reason = "the last word of a command that failed"
)]
fn main() -> ExitCode {
    match cli::run(cli::Cli::parse()) {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(error) => {
            eprintln!("steadyhand: {}", cli::harmless(&cli::why(&error)));
            ExitCode::from(ExitStatus::from_error(&error) as u8)
        }
    }
}
