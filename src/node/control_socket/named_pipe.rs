//! The control socket on Windows: a named pipe, found by a file in a folder of this user that holds its name.
//!
//! The system lets only this user and administrators write to such a pipe, and none from another machine. The node keeps the file
//! open for writing, and the system removes it when the node ends, however it ends. A file that no process has open for writing (the
//! machine lost its power) leads to no node: another user could have made a pipe of that name since.

use std::convert::Infallible;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::windows::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::windows::named_pipe::{
    ClientOptions, NamedPipeClient, NamedPipeServer, ServerOptions,
};
use tokio::sync::Mutex;

use super::ControlListener;
use crate::open::users_temporary;
use base::{disk, file_access, plain_file, task};

/// Folder for the control sockets of services; this system has none.
pub(crate) const SERVICE_FOLDER: Option<&str> = None;

/// A socket that systemd opened: there is none on this system.
pub type AdoptedSocket = Infallible;

/// A connection, as its node sees it.
pub(super) type Connection = NamedPipeServer;

/// Accepts connections: the instance of the pipe that waits for the next one.
pub(super) struct Listener {
    pipe: String,
    waiting: Mutex<NamedPipeServer>,
}

/// A file with the pipe's name, which the system removes when it is closed.
pub(super) struct SocketName {
    _file: File,
}

/// Never called.
pub fn adopt(listener: AdoptedSocket) -> anyhow::Result<ControlListener> {
    match listener {}
}

/// Returns the folder for the files of sockets.
pub fn folder() -> PathBuf {
    users_temporary()
}

/// Returns the folders in which nodes of this user have their files.
pub(crate) fn folders() -> Vec<PathBuf> {
    vec![folder()]
}

/// Returns whether the environment names a folder for sockets.
pub(crate) const fn has_own_folder() -> bool {
    false
}

/// Makes the folder for files of sockets if needed, and checks whose it is.
pub(super) fn make_folder(folder: &Path) -> anyhow::Result<()> {
    Ok(disk::private_folder(folder)?)
}

/// Checks that the folder is no link.
pub(crate) fn check_owner(folder: &Path) -> anyhow::Result<()> {
    Ok(disk::check_private(folder)?)
}

/// Opens a pipe for a path at which no node answers.
pub(super) fn bind(path: &Path) -> io::Result<(Listener, SocketName)> {
    let pipe = pipe_name(path);
    let first = ServerOptions::new()
        .first_pipe_instance(true)
        .create(&pipe)?;
    let name = write_name(path, &pipe)?;
    let waiting = Mutex::new(first);
    Ok((Listener { pipe, waiting }, name))
}

/// Gives a socket a second name.
pub(super) fn link(socket: &Path, name: &Path) -> io::Result<SocketName> {
    write_name(name, &pipe_name(socket))
}

/// Returns the name of this process's pipe for a path.
fn pipe_name(path: &Path) -> String {
    let hash = blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex();
    let process = std::process::id();
    format!(r"\\.\pipe\steadyhand-{process}-{}", &hash.as_str()[..16])
}

/// Rights of other processes to a file that this one has open: <https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-createfilew>.
const SHARE_READ: u32 = 1;
const SHARE_DELETE: u32 = 4;

/// Has the system remove a file when it is closed.
const DELETE_ON_CLOSE: u32 = 0x0400_0000;

/// Error of opening a file against the rights that another process left.
const SHARING_VIOLATION: i32 = 32;

/// Error of connecting to a pipe all of whose instances are taken.
const PIPE_BUSY: i32 = 231;

/// Writes a pipe's name into a file that is there as long as this process.
fn write_name(path: &Path, pipe: &str) -> io::Result<SocketName> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true);
    let options = options
        .share_mode(SHARE_READ | SHARE_DELETE)
        .custom_flags(DELETE_ON_CLOSE);
    let mut file = options.open(path)?;
    file.write_all(pipe.as_bytes())?;
    Ok(SocketName { _file: file })
}

/// Returns whether a node answers at a socket: it has the file open for writing.
pub(crate) fn is_answered(path: &Path) -> bool {
    let mut options = OpenOptions::new();
    // Others may not write meanwhile, so a writer that has it open already is an error.
    let options = options.read(true).share_mode(SHARE_READ | SHARE_DELETE);
    let opened = options.open(path);
    opened.is_err_and(|error| error.raw_os_error() == Some(SHARING_VIOLATION))
}

/// Accepts the next connection.
pub(super) async fn accept(listener: &Listener) -> io::Result<Connection> {
    let mut waiting = listener.waiting.lock().await;
    waiting.connect().await?;
    // Without a next instance the client stays here: it is accepted by the next attempt.
    let next = ServerOptions::new().create(&listener.pipe)?;
    Ok(std::mem::replace(&mut *waiting, next))
}

/// Returns the caller's name for the audit log: the system let nobody else in.
#[expect(clippy::unnecessary_wraps, reason = "the same on each system")]
pub(super) fn caller(_connection: &Connection) -> anyhow::Result<String> {
    Ok(format!("user {}", file_access::user()))
}

/// Interval between two attempts to connect to a pipe that is busy: its node accepts one client after the other.
const BUSY_INTERVAL: Duration = Duration::from_millis(5);

/// Number of attempts.
const ATTEMPTS_MAX: usize = 400;

/// Connects to the node at a socket.
pub(super) async fn connect(path: &Path) -> io::Result<NamedPipeClient> {
    if !is_answered(path) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let pipe = plain_file::read_text(path)?;
    let mut attempt = 1;
    loop {
        match ClientOptions::new().open(&pipe) {
            Err(error) if error.raw_os_error() == Some(PIPE_BUSY) && attempt < ATTEMPTS_MAX => {
                attempt += 1;
                task::pause(BUSY_INTERVAL).await;
            }
            opened => return opened,
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_pipe_is_found_by_each_of_its_names_and_leaves_none() {
        let folder = tempfile::tempdir().unwrap();
        let [path, second] = ["a.sock", "b.sock"].map(|name| folder.path().join(name));
        let (listener, name) = bind(&path).unwrap();
        let link = link(&path, &second).unwrap();
        assert!(bind(&path).is_err());
        for found in [&path, &second] {
            assert!(is_answered(found));
            let mut client = connect(found).await.unwrap();
            client.write_all(b"ask\n").await.unwrap();
            let mut served = accept(&listener).await.unwrap();
            let mut asked = [0; 4];
            served.read_exact(&mut asked).await.unwrap();
            assert_eq!(&asked, b"ask\n");
            served.write_all(b"answer").await.unwrap();
            drop(served);
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).await.unwrap();
            assert_eq!(answer, b"answer");
        }
        drop((listener, name, link));
        for gone in [&path, &second] {
            assert!(!gone.exists() && !is_answered(gone));
            assert!(connect(gone).await.is_err());
        }
    }

    #[tokio::test]
    async fn a_file_that_a_lost_power_left_leads_to_no_node() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        std::fs::write(&path, pipe_name(&path)).unwrap();
        let squatter = ServerOptions::new().create(pipe_name(&path)).unwrap();
        assert!(!is_answered(&path));
        let error = connect(&path).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        drop(squatter);
        let _bound = bind(&path).unwrap();
        assert!(is_answered(&path));
    }

    #[tokio::test]
    async fn clients_that_come_at_once_are_accepted_one_after_the_other() {
        const CLIENTS: usize = 20;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let (listener, _name) = bind(&path).unwrap();
        let clients = (0..CLIENTS).map(|_| connect(&path));
        let accepting = async {
            let mut accepted = Vec::new();
            for _ in 0..CLIENTS {
                accepted.push(accept(&listener).await.unwrap());
            }
            accepted
        };
        let (connected, accepted) = tokio::join!(futures::future::join_all(clients), accepting);
        assert!(connected.iter().all(Result::is_ok));
        assert_eq!(accepted.len(), CLIENTS);
    }
}
