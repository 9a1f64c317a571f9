//! Where a node keeps what must outlive it: stops, journal, keys.

use std::path::PathBuf;

use anyhow::{Context, bail};

use super::NodeArgs;
use crate::config::NodeFile;

/// The folder for this node's lasting state, made if need be, for its user alone (mode 0700).
///
/// `--state`, the node file's `state`, systemd's `STATE_DIRECTORY`, then
/// `XDG_STATE_HOME/steadyhand/NAME` (or `~/.local/state/…`). A node with nothing but embedded
/// simulated arms and neither a node file nor `--state` is for trying out: its state is a
/// temporary folder of this process.
pub(super) fn folder(args: &NodeArgs, file: &NodeFile) -> anyhow::Result<PathBuf> {
    let folder = place(args, file)?;
    make(&folder).with_context(|| format!("cannot make the state folder {}", folder.display()))?;
    Ok(folder)
}

/// The folder that [`folder`] makes.
pub(super) fn place(args: &NodeArgs, file: &NodeFile) -> anyhow::Result<PathBuf> {
    match args.state.clone().or_else(|| file.state.clone()) {
        Some(said) => Ok(said),
        None if is_practice(args, file) => Ok(super::open::own_temporary().join("state")),
        None => usual(&file.name),
    }
}

/// Whether this node is for trying out, and keeps nothing.
pub(super) fn is_practice(args: &NodeArgs, file: &NodeFile) -> bool {
    args.config.is_none()
        && args.state.is_none()
        && file.state.is_none()
        && file.arms.iter().all(crate::config::ArmEntry::is_simulated)
}

/// The folder of a node of this name, where nothing else is said; it need not exist.
pub(super) fn usual(name: &str) -> anyhow::Result<PathBuf> {
    let set = |key: &str| std::env::var_os(key).filter(|value| !value.is_empty());
    if let Some(given) = set("STATE_DIRECTORY") {
        return Ok(PathBuf::from(given));
    }
    let home = set("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".local/state")));
    match home {
        Some(home) => Ok(home.join("steadyhand").join(name)),
        None => bail!("there is no HOME to keep state in: say --state DIR"),
    }
}

fn make(folder: &std::path::Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}
