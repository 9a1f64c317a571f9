//! `audit verify`: checks that an audit log is as its node wrote it. Needs no node.

use std::path::PathBuf;

use anyhow::Context;
use clap::Subcommand;

use super::{ExitStatus, terminal_output};
use base::plain_file;

#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    /// Check that every record of a log is as its node wrote it, or name the first that is not
    Verify {
        /// The log: `audit.log` in the node's state folder
        file: PathBuf,
        /// The node's public key, if you know it from another source: 64 hexadecimal digits
        #[arg(long)]
        key: Option<String>,
    },
}

pub(super) fn run(what: &AuditCommand) -> anyhow::Result<ExitStatus> {
    let AuditCommand::Verify { file, key } = what;
    let text = plain_file::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let text = String::from_utf8_lossy(&text);
    match job::verify(&text, key.as_deref()) {
        Ok(verified) => terminal_output::done(&format!(
            "{} records hold, signed by {}; the last one's hash is {}",
            verified.records, verified.key, verified.last
        )),
        Err(error) => terminal_output::refused(&format!("{}: {error}", file.display())),
    }
}
