//! The text of the node file, as commands change it; it is checked before it is written.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::{NodeOptions, files};
use base::disk;
use base::file_lock::FolderLock;
use config::NodeFile;
use node::open;

/// A change of the node file: from its reading until the new text takes its place, no other such command changes it.
pub(super) struct NodeFileEdit<'a> {
    node: &'a NodeOptions,
    /// The file.
    pub(super) path: &'a Path,
    /// Its text; that of a missing file is empty.
    pub(super) text: String,
    /// The file itself where `path` is a symbolic link.
    target: PathBuf,
    _lock: FolderLock,
}

impl<'a> NodeFileEdit<'a> {
    /// Waits for other changes to end, and reads the file.
    pub(super) fn begin(node: &'a NodeOptions) -> anyhow::Result<Self> {
        let Some(path) = node.config.as_deref() else {
            bail!("no node file is named. Next: add --config FILE");
        };
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let lock = FolderLock::for_change_of(&target)
            .with_context(|| format!("cannot change {}", path.display()))?;
        let text = files::read_if_there(path)?.unwrap_or_default();
        Ok(Self {
            node,
            path,
            text,
            target,
            _lock: lock,
        })
    }

    /// Writes the file atomically, and only if a node would start with it.
    pub(super) fn put(&self, text: &str) -> anyhow::Result<()> {
        check(self.node, self.path, text).context("nothing was written")?;
        disk::put(&self.target, text)
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

fn check(node: &NodeOptions, path: &Path, text: &str) -> anyhow::Result<()> {
    let file = NodeFile::read(&path.display().to_string(), text)?;
    let library = open::library(node, &file)?;
    open::declared(&file, &library)?;
    Ok(())
}
