//! `jobs audit verify`: checks that an audit log is as its node wrote it. Needs no node.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context;
use clap::Subcommand;
use serde_json::Value;

use super::{ExitStatus, terminal_output};
use base::plain_file;

#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    /// Check an audit log, and name its first invalid record
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
        Ok(verified) => {
            terminal_output::line(&left_over_text(&text));
            terminal_output::done(&format!(
                "{} records are intact, signed by {}; the hash of the last one is {}",
                verified.records, verified.key, verified.last
            ))
        }
        Err(error) => terminal_output::refused(&format!("{}: {error}", file.display())),
    }
}

/// Describes which keys of calls no parameter had and how often, with the line of the node file that makes them mean nothing.
fn left_over_text(log: &str) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let calls = log.lines().filter_map(|line| line.split('\t').nth(3));
    let parsed = |text: &str| serde_json::from_str::<Value>(&job::unescaped_record(text)).ok();
    for call in calls.filter_map(parsed) {
        let keys = call.get("not_understood").and_then(Value::as_array);
        for key in keys.into_iter().flatten().filter_map(Value::as_str) {
            *counts.entry(key.to_owned()).or_default() += 1;
        }
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    let names: Vec<&str> = counts.iter().map(|(key, _)| key.as_str()).collect();
    let words = counts.iter().map(|(key, count)| format!("{key} {count}"));
    match names.is_empty() {
        true => "every key of every call belongs to a parameter".to_owned(),
        false => format!(
            "these keys belong to no parameter: {}. Next: if a client adds them to every call, write {} into the node file",
            words.collect::<Vec<_>>().join(", "),
            config::ignore_line(&names)
        ),
    }
}
