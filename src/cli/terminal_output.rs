//! Output for people: standard output, standard error, the log.

use std::io::Write;
use std::path::Path;

use anyhow::bail;
use serde_json::{Map, Value};

use super::{ExitStatus, NodeOptions};
pub use base::terminal::harmless;
pub(super) use base::terminal::{line, lost_output, note};
use catalogue::{CatalogueFormat, KnownNames};
use node::{job_list, open};

/// Empties the terminal at standard output; the next line is on its top.
pub(super) fn clear() {
    let _ = write!(std::io::stdout().lock(), "\x1b[H\x1b[J");
}

/// The catalogue, as a model sees it.
pub(super) fn tools(args: &NodeOptions, format: &str) -> anyhow::Result<ExitStatus> {
    let Some((_, format)) = CatalogueFormat::ALL
        .into_iter()
        .find(|(name, _)| *name == format)
    else {
        let names: Vec<&str> = CatalogueFormat::ALL.iter().map(|(name, _)| *name).collect();
        bail!("there is no format {format:?}; valid: {}", names.join(", "));
    };
    line(format.render(&known_names(args)?).trim_end());
    Ok(ExitStatus::Done)
}

/// Returns the names that a node of this file knows, without opening its arms.
pub(super) fn known_names(args: &NodeOptions) -> anyhow::Result<KnownNames> {
    let file = open::file(args)?;
    let library = open::library(args, &file)?;
    let declared = open::declared(&file, &library)?;
    Ok(tools::here(&file, &library, &declared))
}

/// One line per fact of a result.
pub(super) fn facts(structured: &Map<String, Value>) {
    for (label, words) in job_list::facts(structured) {
        line(&format!("{label:<24}{words}"));
    }
    for field in ["files", "captured_files"] {
        for path in structured
            .get(field)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            let name = Path::new(path).file_name().unwrap_or(path.as_ref());
            let name = name.to_string_lossy();
            line(&format!("{name:<24}{path}"));
        }
    }
}
