//! The node file as a command changes it: its text, checked before it is written.

use std::path::Path;

use anyhow::{Context, bail};

use super::{NodeOptions, files};
use base::disk;
use config::NodeFile;
use node::open;

/// The node file and its text; a file that does not exist yet is empty.
pub(super) fn read(node: &NodeOptions) -> anyhow::Result<(&Path, String)> {
    let Some(path) = node.config.as_deref() else {
        bail!("say which node file to edit with --config FILE");
    };
    Ok((path, files::read_if_there(path)?.unwrap_or_default()))
}

/// Writes the file only if a node would start with it, and then whole or not at all.
pub(super) fn put(node: &NodeOptions, path: &Path, text: &str) -> anyhow::Result<()> {
    check(node, path, text).context("nothing was written")?;
    // Behind a link, the file that it leads to is replaced, not the link.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    disk::put(&target, text).with_context(|| format!("cannot write {}", path.display()))
}

fn check(node: &NodeOptions, path: &Path, text: &str) -> anyhow::Result<()> {
    let file = NodeFile::read(&path.display().to_string(), text)?;
    let library = open::library(node, &file)?;
    open::declared(&file, &library)?;
    Ok(())
}
