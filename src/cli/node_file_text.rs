//! The text of the node file, as commands change it; it is checked before it is written.

use std::path::Path;

use anyhow::{Context, bail};

use super::{NodeOptions, files};
use base::disk;
use config::NodeFile;
use node::open;

/// Returns the node file's path and text; a missing file is empty.
pub(super) fn read(node: &NodeOptions) -> anyhow::Result<(&Path, String)> {
    let Some(path) = node.config.as_deref() else {
        bail!("say which node file to edit with --config FILE");
    };
    Ok((path, files::read_if_there(path)?.unwrap_or_default()))
}

/// Writes the file atomically, and only if a node would start with it.
pub(super) fn put(node: &NodeOptions, path: &Path, text: &str) -> anyhow::Result<()> {
    check(node, path, text).context("nothing was written")?;
    // Replace the target of a symbolic link, not the link.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    disk::put(&target, text).with_context(|| format!("cannot write {}", path.display()))
}

fn check(node: &NodeOptions, path: &Path, text: &str) -> anyhow::Result<()> {
    let file = NodeFile::read(&path.display().to_string(), text)?;
    let library = open::library(node, &file)?;
    open::declared(&file, &library)?;
    Ok(())
}
