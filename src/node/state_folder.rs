//! The folder for state that must outlive a node: stops, journals, keys.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use super::{NodeOptions, left_practice};
use base::file_access::{self, HOME};
use base::{disk, plain_file};
use config::NodeFile;

/// File and state folder of the node that systemd's units start. Operator verbs find both by the same rule as the
/// control socket.
const SERVICE_FILE: &str = "/etc/steadyhand/node.toml";
const SERVICE_STATE: &str = "/var/lib/steadyhand";

/// Returns the folder for this node's lasting state, and creates it if needed, for its user alone (mode 0700). One that others may
/// write to is refused.
///
/// It is the first of: `--state`, the node file's `state`, systemd's `STATE_DIRECTORY`, the service's folder if the node file is
/// the service's, and `XDG_STATE_HOME/steadyhand/NAME` (or `~/.local/state/…`), where `NAME` is marked if another file has a node of
/// that name there. A node with only embedded simulated arms and
/// neither a node file nor `--state` is for practice: its state is in a temporary folder of this process.
pub fn folder(args: &NodeOptions, file: &NodeFile) -> anyhow::Result<PathBuf> {
    let folder = place(args, file)?;
    file_access::make_folders(&folder, 0o700)
        .with_context(|| format!("cannot make the state folder {}", folder.display()))?;
    check_unshared(&folder)?;
    if let Some(config) = &args.config {
        claim(&folder, config)?;
    }
    Ok(folder)
}

/// File in a state folder that names the node file whose state it is.
const OWNER: &str = "node-file";

/// Writes down whose state a folder holds.
fn claim(folder: &Path, config: &Path) -> anyhow::Result<()> {
    let config = resolved(config);
    if owner(folder).as_ref() != Some(&config) {
        let path = folder.join(OWNER);
        disk::put(&path, &config.display().to_string())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Returns the node file whose state a folder holds, as far as that is written down.
fn owner(folder: &Path) -> Option<PathBuf> {
    let path = plain_file::read_text(folder.join(OWNER)).ok()?;
    Some(PathBuf::from(path))
}

fn resolved(path: &Path) -> PathBuf {
    let absolute = || std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.canonicalize().unwrap_or_else(|_| absolute())
}

/// Returns the default folder of a node file: that of its node's name or, where another file that still exists has that, one whose
/// name is marked by the file's path. A file that is moved keeps its state.
fn of_file(config: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let named = usual(name)?;
    if unit_state().is_some() {
        return Ok(named);
    }
    let config = resolved(config);
    let mark = blake3::hash(config.as_os_str().as_encoded_bytes()).to_hex();
    let marked = named.with_file_name(format!("{name}-{}", &mark.as_str()[..8]));
    let is_anothers = owner(&named).is_some_and(|owner| owner != config && owner.exists());
    Ok(match is_anothers || marked.exists() {
        true => marked,
        false => named,
    })
}

/// Refuses a state folder in which another user may make, replace or remove files.
///
/// # Errors
/// It cannot be examined, others may write to it, or it is another user's; root may use everybody's.
pub fn check_unshared(folder: &Path) -> anyhow::Result<()> {
    let metadata = std::fs::metadata(folder)
        .with_context(|| format!("cannot use the state folder {}", folder.display()))?;
    let mode = file_access::mode(&metadata);
    let folder = folder.display();
    ensure!(
        mode & 0o022 == 0,
        "other users can write to the state folder {folder} (mode {mode:o}), so they could clear an emergency stop or make a token. Next: check it for files that are not yours, then `chmod 700 {folder}`, or name another folder with --state"
    );
    ensure!(
        file_access::is_root() || !file_access::is_of_another_user(&metadata),
        "the state folder {folder} belongs to another user, who could clear an emergency stop or make a token. Next: `chown` it to the node's user, or name another with --state"
    );
    Ok(())
}

/// Returns the absolute path of the folder that [`folder`] creates.
pub fn place(args: &NodeOptions, file: &NodeFile) -> anyhow::Result<PathBuf> {
    match args.state.clone().or_else(|| file.state.clone()) {
        // The paths of recordings in answers are read in other folders.
        Some(given) => {
            let folder = std::path::absolute(&given)
                .with_context(|| format!("cannot use the folder {}", given.display()))?;
            if let (None, Some(relative)) = (&args.state, file.source.relative_state()) {
                check_none_left(&folder, &std::path::absolute(relative)?)?;
            }
            Ok(folder)
        }
        None if is_practice(args, file) => {
            Ok(left_practice::state_in(&super::open::own_temporary()?))
        }
        None if is_service(args, SERVICE_FILE) && unit_state().is_none() => {
            Ok(PathBuf::from(SERVICE_STATE))
        }
        None => match &args.config {
            Some(config) => of_file(config, &file.name),
            None => usual(&file.name),
        },
    }
}

/// Refuses a folder that does not exist where the current folder holds state under the same relative path: an emergency stop that
/// is kept there would be lost.
fn check_none_left(folder: &Path, here: &Path) -> anyhow::Result<()> {
    ensure!(
        folder.exists() || !holds_state(here),
        "`state` in the node file names {}, which does not exist. The folder {} has a node's jobs or emergency stop. Next: move that folder to the place in the node file, or name it with --state",
        folder.display(),
        here.display()
    );
    Ok(())
}

fn holds_state(folder: &Path) -> bool {
    let mut entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.any(|entry| {
        let name = entry.file_name();
        name == "jobs" || is_emergency_stop(&name)
    })
}

/// Returns whether an emergency stop stands in a folder of state.
pub(crate) fn holds_emergency_stop(folder: &Path) -> bool {
    let mut entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.any(|entry| is_emergency_stop(&entry.file_name()))
}

fn is_emergency_stop(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with("emergency-stop-")
}

/// Selects the machine's service, if any, for a command that edits stored state and names no node or folder.
pub fn with_service_defaults(args: &NodeOptions) -> NodeOptions {
    with_service(args, SERVICE_FILE)
}

fn with_service(args: &NodeOptions, file: &str) -> NodeOptions {
    let names_nothing = args.config.is_none() && args.state.is_none();
    // Only an error other than "not found" shows that a file exists which this user may not see.
    let is_service = names_nothing && !is_absent(Path::new(file));
    NodeOptions {
        config: args.config.clone().or(is_service.then(|| file.into())),
        ..args.clone()
    }
}

fn is_absent(file: &Path) -> bool {
    let metadata = std::fs::metadata(file);
    metadata.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

fn is_service(args: &NodeOptions, file: &str) -> bool {
    let config = args.config.as_deref().map(Path::canonicalize);
    matches!((config, Path::new(file).canonicalize()), (Some(Ok(config)), Ok(file)) if config == file)
}

fn env(key: &str) -> Option<OsString> {
    std::env::var_os(key).filter(|value| !value.is_empty())
}

/// Returns the state folder of the unit that systemd started.
fn unit_state() -> Option<PathBuf> {
    file_access::unit_folder("STATE_DIRECTORY")
}

/// Returns whether this node is for practice and stores nothing.
pub fn is_practice(args: &NodeOptions, file: &NodeFile) -> bool {
    args.config.is_none()
        && args.state.is_none()
        && file.state.is_none()
        && file.arms.iter().all(config::ArmEntry::is_simulated)
}

/// Returns the default folder of a node of this name, which need not exist.
pub fn usual(name: &str) -> anyhow::Result<PathBuf> {
    if let Some(folder) = unit_state() {
        return Ok(folder);
    }
    let fallback = || env(HOME).map(|home| PathBuf::from(home).join(".local/state"));
    let home = file_access::xdg_folder("XDG_STATE_HOME").or_else(fallback);
    let home = home.with_context(|| {
        format!("{HOME} is not set, so there is no folder for the state. Next: add --state DIR")
    })?;
    Ok(home.join("steadyhand").join(name))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn state_at_the_current_folder_is_not_lost() {
        let bench = tempfile::tempdir().unwrap();
        let [folder, here] = ["file/state", "here/state"].map(|path| bench.path().join(path));
        let check = || check_none_left(&folder, &here).map_err(|error| error.to_string());
        check().unwrap();
        std::fs::create_dir_all(&here).unwrap();
        check().unwrap();
        std::fs::write(here.join("emergency-stop-arm.1"), "").unwrap();
        let error = check().unwrap_err();
        for path in [&folder, &here] {
            assert!(error.contains(path.to_str().unwrap()), "{error}");
        }
        std::fs::create_dir_all(&folder).unwrap();
        check().unwrap();
    }

    #[test]
    fn the_machines_service_is_the_default() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("node.toml");
        let file = file.to_str().unwrap();
        assert_eq!(with_service(&NodeOptions::default(), file).config, None);
        std::fs::write(file, "").unwrap();
        let selected = with_service(&NodeOptions::default(), file);
        assert_eq!(selected.config.as_deref(), Some(Path::new(file)));
        assert!(is_service(&selected, file));
        let config = NodeOptions {
            config: Some(PathBuf::from("/mine.toml")),
            ..NodeOptions::default()
        };
        let state = NodeOptions {
            state: Some(PathBuf::from("/mine")),
            ..NodeOptions::default()
        };
        for named in [config, state] {
            let kept = with_service(&named, file);
            assert_eq!(kept.config, named.config);
            assert!(!is_service(&kept, file));
        }
    }
}
