//! Output for people: standard output and standard error.

use std::io::Write;
use std::path::Path;

use anyhow::bail;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{ExitStatus, NodeOptions};
pub use base::terminal::note;
pub(super) use base::terminal::{harmless, line, lost_output};
use catalogue::{CatalogueFormat, KnownNames};
use node::operator_verb::VerbReply;
use node::{job_list, open};

/// Writes a line for each text.
pub(super) fn lines<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) {
    texts.into_iter().for_each(|text| line(text.as_ref()));
}

/// Writes a value as indented JSON.
pub(super) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    line(&serde_json::to_string_pretty(value)?);
    Ok(())
}

/// Ends a command that was done, with its result.
pub(super) fn done(text: &str) -> anyhow::Result<ExitStatus> {
    line(text);
    Ok(ExitStatus::Done)
}

/// Ends a command that was refused, with the reason.
pub(super) fn refused(text: &str) -> anyhow::Result<ExitStatus> {
    line(text);
    Ok(ExitStatus::Refused)
}

/// Ends a command with a node's reply.
pub(super) fn reply(reply: &VerbReply) -> ExitStatus {
    line(&reply.text);
    ExitStatus::of(reply.done)
}

/// Clears the terminal at standard output.
pub(super) fn clear() {
    let _ = write!(std::io::stdout().lock(), "\x1b[H\x1b[J");
}

/// Prints the catalogue as a model sees it.
pub(super) fn tools(args: &NodeOptions, format: &str) -> anyhow::Result<ExitStatus> {
    let Some((_, format)) = CatalogueFormat::ALL
        .into_iter()
        .find(|(name, _)| *name == format)
    else {
        let names: Vec<&str> = CatalogueFormat::ALL.iter().map(|(name, _)| *name).collect();
        bail!("there is no format {format:?}. Valid: {}", names.join(", "));
    };
    done(format.render(&known_names(args)?).trim_end())
}

/// Returns the names that a node of this file knows, without opening its arms.
pub(super) fn known_names(args: &NodeOptions) -> anyhow::Result<KnownNames> {
    let file = open::file(args)?;
    let library = open::library(args, &file)?;
    let declared = open::declared(&file, &library)?;
    Ok(tools::known_names(&file, &library, &declared))
}

/// Prints one line per fact of a result.
pub(super) fn facts(structured: &Map<String, Value>) {
    for (label, words) in job_list::facts(structured) {
        line(&format!("{label:<24}{words}"));
    }
}

/// Prints one line per file of a result.
pub(super) fn result_files(structured: &Map<String, Value>) {
    let files = ["files", "captured_files"].map(|field| structured.get(field));
    let files = files.into_iter().flatten().filter_map(Value::as_array);
    for path in files.flatten().filter_map(Value::as_str) {
        let name = Path::new(path).file_name().unwrap_or(path.as_ref());
        line(&format!("{:<24}{path}", name.to_string_lossy()));
    }
}
