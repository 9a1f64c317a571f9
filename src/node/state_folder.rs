//! Folder for the state that must outlive a node: stops, journal, keys.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::NodeOptions;
use base::file_access;
use config::NodeFile;

/// File and state folder of the node that systemd's units start. Operator verbs find both by the same rule as the
/// control socket.
const SERVICE_FILE: &str = "/etc/steadyhand/node.toml";
const SERVICE_STATE: &str = "/var/lib/steadyhand";

/// The folder for this node's lasting state, made if need be, for its user alone (mode 0700).
///
/// `--state`, the node file's `state`, systemd's `STATE_DIRECTORY`, the service's folder where it is the service's file, then
/// `XDG_STATE_HOME/steadyhand/NAME` (or `~/.local/state/…`). A node with nothing but embedded
/// simulated arms and neither a node file nor `--state` is for trying out: its state is a
/// temporary folder of this process.
pub fn folder(args: &NodeOptions, file: &NodeFile) -> anyhow::Result<PathBuf> {
    let folder = place(args, file)?;
    file_access::make_folders(&folder, 0o700)
        .with_context(|| format!("cannot make the state folder {}", folder.display()))?;
    Ok(folder)
}

/// The folder that [`folder`] makes.
pub fn place(args: &NodeOptions, file: &NodeFile) -> anyhow::Result<PathBuf> {
    match args.state.clone().or_else(|| file.state.clone()) {
        Some(said) => Ok(said),
        None if is_practice(args, file) => Ok(super::open::own_temporary()?.join("state")),
        None if is_service(args, SERVICE_FILE) && set("STATE_DIRECTORY").is_none() => {
            Ok(PathBuf::from(SERVICE_STATE))
        }
        None => usual(&file.name),
    }
}

/// Selects the machine's service, if any, for a command that edits stored state and names no node or folder.
pub fn with_service_defaults(args: &NodeOptions) -> NodeOptions {
    of_service_at(args, SERVICE_FILE)
}

fn of_service_at(args: &NodeOptions, file: &str) -> NodeOptions {
    let says_nothing = args.config.is_none() && args.state.is_none();
    // A file that others may not even see is told apart from none by what comes of reading it.
    let there = says_nothing && !is_absent(Path::new(file));
    NodeOptions {
        config: args.config.clone().or(there.then(|| file.into())),
        ..args.clone()
    }
}

fn is_absent(file: &Path) -> bool {
    let found = std::fs::metadata(file);
    found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

fn is_service(args: &NodeOptions, file: &str) -> bool {
    let said = args.config.as_deref().map(Path::canonicalize);
    matches!((said, Path::new(file).canonicalize()), (Some(Ok(said)), Ok(file)) if said == file)
}

fn set(key: &str) -> Option<OsString> {
    std::env::var_os(key).filter(|value| !value.is_empty())
}

/// Returns whether this node is for practice and stores nothing.
pub fn is_practice(args: &NodeOptions, file: &NodeFile) -> bool {
    args.config.is_none()
        && args.state.is_none()
        && file.state.is_none()
        && file.arms.iter().all(config::ArmEntry::is_simulated)
}

/// The folder of a node of this name, where nothing else is said; it need not exist.
pub fn usual(name: &str) -> anyhow::Result<PathBuf> {
    if let Some(given) = set("STATE_DIRECTORY") {
        return Ok(PathBuf::from(given));
    }
    let users = || set("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let home = set("XDG_STATE_HOME").map(PathBuf::from).or_else(users);
    let home = home.context("there is no HOME to keep state in: say --state DIR")?;
    Ok(home.join("steadyhand").join(name))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_machines_service_is_meant_where_nothing_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("node.toml");
        let file = file.to_str().unwrap();
        assert_eq!(of_service_at(&NodeOptions::default(), file).config, None);
        std::fs::write(file, "").unwrap();
        let found = of_service_at(&NodeOptions::default(), file);
        assert_eq!(found.config.as_deref(), Some(Path::new(file)));
        assert!(is_service(&found, file));
        let config = NodeOptions {
            config: Some(PathBuf::from("/mine.toml")),
            ..NodeOptions::default()
        };
        let state = NodeOptions {
            state: Some(PathBuf::from("/mine")),
            ..NodeOptions::default()
        };
        for said in [config, state] {
            let mine = of_service_at(&said, file);
            assert_eq!(mine.config, said.config);
            assert!(!is_service(&mine, file));
        }
    }
}
