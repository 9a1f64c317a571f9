//! The control socket on Unix: a socket in a folder of this user. Only this user can open it, and the kernel identifies the caller.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use tokio::net::{UnixListener, UnixStream};

use super::ControlListener;
use crate::open::users_temporary;
use base::disk;
use base::file_access::{self, redirected_home};

/// Folder in which systemd's units put the control socket of a service.
pub(crate) const SERVICE_FOLDER: Option<&str> = Some("/run/steadyhand");

/// A socket that systemd opened.
pub type AdoptedSocket = std::os::unix::net::UnixListener;

/// A connection, as its node sees it.
pub(super) type Connection = UnixStream;

/// Accepts connections.
pub(super) type Listener = UnixListener;

/// The name of a socket in a folder, which is removed with it.
pub(super) struct SocketName(PathBuf);

impl Drop for SocketName {
    fn drop(&mut self) {
        // The file may be gone already.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Takes a socket that systemd opened. Its file belongs to systemd.
pub fn adopt(listener: AdoptedSocket) -> anyhow::Result<ControlListener> {
    listener.set_nonblocking(true)?;
    Ok(ControlListener {
        listener: UnixListener::from_std(listener)?,
        names: Vec::new(),
    })
}

/// Returns the folder for sockets: the unit's runtime directory, the user's, or a private folder of this user, in which a `HOME` of
/// its own has one of its own.
pub fn folder() -> PathBuf {
    let own = file_access::unit_folder("RUNTIME_DIRECTORY");
    let named = || file_access::xdg_folder("XDG_RUNTIME_DIR");
    match (own, redirected_home(), named()) {
        (Some(own), ..) => own,
        // The runtime folder of the session belongs to the user's own home.
        (_, Some(home), None) => folder_of_home(&home),
        (_, Some(home), Some(named)) if is_sessions(&named) => folder_of_home(&home),
        (_, _, Some(named)) => named.join("steadyhand"),
        (_, None, None) => users_temporary(),
    }
}

/// Returns the private folder for the sockets of a home. Its path is short, as the paths of sockets must be.
fn folder_of_home(home: &Path) -> PathBuf {
    let hash = blake3::hash(home.as_os_str().as_bytes()).to_hex();
    users_temporary().join(format!("home-{}", &hash.as_str()[..16]))
}

/// Returns the folders in which nodes of this user may have their sockets, whatever the environment was that they were started in:
/// clients start nodes without `XDG_RUNTIME_DIR`. A `HOME` or `XDG_RUNTIME_DIR` that is set to a folder of its own is meant alone.
pub(crate) fn folders() -> Vec<PathBuf> {
    if has_own_folder() {
        return vec![folder()];
    }
    let user = file_access::user();
    let mut folders = vec![
        folder(),
        PathBuf::from(format!("/run/user/{user}/steadyhand")),
        users_temporary(),
        PathBuf::from(format!("/tmp/steadyhand-{user}")),
    ];
    // Each is looked through, and its sockets are called, once.
    folders.sort();
    folders.dedup();
    folders
}

/// Returns whether the environment keeps this process apart from the user's other nodes: it names a folder for sockets that is none
/// of the system's (`su` keeps that of another user), or a home that is not the user's.
pub(crate) fn has_own_folder() -> bool {
    let named = file_access::xdg_folder("XDG_RUNTIME_DIR");
    named.is_some_and(|named| !is_sessions(&named)) || redirected_home().is_some()
}

/// Returns whether a runtime folder is that of a user's session.
fn is_sessions(folder: &Path) -> bool {
    folder.parent() == Some(Path::new("/run/user"))
}

/// Makes the folder for sockets if needed, and checks whose it is.
pub(super) fn make_folder(folder: &Path) -> anyhow::Result<()> {
    let created = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder);
    created.with_context(|| format!("cannot make the folder {}", folder.display()))?;
    check_owner(folder)
}

/// Checks that the folder belongs to this user: another user who created it could answer in the node's name. In a temporary
/// directory, where every user can create one, it must not be a link either.
pub(crate) fn check_owner(folder: &Path) -> anyhow::Result<()> {
    let users = users_temporary();
    if folder.parent() == Some(&*users) {
        disk::check_private(&users)?;
    }
    let temporary = [std::env::temp_dir(), PathBuf::from("/tmp")];
    if temporary.iter().any(|outer| folder.parent() == Some(outer)) {
        return Ok(disk::check_private(folder)?);
    }
    let owner = rustix::fs::stat(folder)?.st_uid;
    if owner != rustix::process::geteuid().as_raw() {
        bail!(
            "the folder {} belongs to another user. Next: name a socket with --socket",
            folder.display()
        );
    }
    Ok(())
}

/// Opens a socket at a path at which no node answers.
pub(super) fn bind(path: &Path) -> io::Result<(Listener, SocketName)> {
    // A socket there was left by a node that died. Any other kind of file is not ours to remove.
    if std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket()) {
        let _ = std::fs::remove_file(path);
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok((listener, SocketName(path.to_owned())))
}

/// Gives a socket a second name.
pub(super) fn link(socket: &Path, name: &Path) -> io::Result<SocketName> {
    // That of a process which had the same number.
    let _ = std::fs::remove_file(name);
    std::os::unix::fs::symlink(std::path::absolute(socket)?, name)?;
    Ok(SocketName(name.to_owned()))
}

/// Returns whether a node answers at a socket.
pub(crate) fn is_answered(path: &Path) -> bool {
    std::os::unix::net::UnixStream::connect(path).is_ok()
}

/// Accepts the next connection.
pub(super) async fn accept(listener: &Listener) -> io::Result<Connection> {
    Ok(listener.accept().await?.0)
}

/// Returns the caller's name for the audit log.
pub(super) fn caller(connection: &Connection) -> anyhow::Result<String> {
    let caller = connection.peer_cred()?.uid();
    if caller != rustix::process::geteuid().as_raw() && caller != 0 {
        bail!("the user {caller} was refused");
    }
    Ok(format!("user {caller}"))
}

/// Connects to the node at a socket.
pub(super) async fn connect(path: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(path).await
}
