//! The control socket, by which operators on the same machine reach a node, including one that serves standard input and output.
//!
//! The request and the reply are one line of JSON each. Only this user can open the socket, and the kernel identifies the caller.

use std::collections::VecDeque;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, oneshot};

use super::client_watch::ClientWatch;
use super::open::users_temporary;
use super::operator_verb::{OperatorVerb, VERB_BYTES_MAX, VerbReply};
use super::verb_dispatch::run_for_operator;
use base::file_access::{self, redirected_home};
use base::file_lock::FolderLock;
use base::lock::MutexExt;
use base::wording::duration;
use base::{disk, task};
use call::refusal;
use caller::CODE_VALID;
use tools::Node;

/// An open control socket. What this process created for it is removed with it.
pub struct ControlListener {
    listener: UnixListener,
    created: Vec<PathBuf>,
}

impl Drop for ControlListener {
    fn drop(&mut self) {
        for path in &self.created {
            // The file may be gone already.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Folder in which systemd's units put the control socket of a service.
pub(super) const SERVICE_FOLDER: &str = "/run/steadyhand";

/// A socket that systemd opened.
pub type AdoptedSocket = std::os::unix::net::UnixListener;

/// Takes a socket that systemd opened. Its file belongs to systemd.
pub fn adopt(listener: AdoptedSocket) -> anyhow::Result<ControlListener> {
    listener.set_nonblocking(true)?;
    Ok(ControlListener {
        listener: UnixListener::from_std(listener)?,
        created: Vec::new(),
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
pub(super) fn folders() -> Vec<PathBuf> {
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
pub(super) fn has_own_folder() -> bool {
    let named = file_access::xdg_folder("XDG_RUNTIME_DIR");
    named.is_some_and(|named| !is_sessions(&named)) || redirected_home().is_some()
}

/// Returns whether a runtime folder is that of a user's session.
fn is_sessions(folder: &Path) -> bool {
    folder.parent() == Some(Path::new("/run/user"))
}

/// Opens the socket of a node: the one at this path, or one of its own in the user's folder.
pub fn open(path: Option<&Path>, node: &str) -> anyhow::Result<ControlListener> {
    let folder = folder();
    let Some(path) = path else {
        make_folder(&folder)?;
        let _lock = FolderLock::for_change_of(&folder.join(node))?;
        let path = folder.join(format!("{node}.sock"));
        return match is_answered(&path) {
            true => bind(&numbered(&folder, node)),
            false => bind(&path),
        };
    };
    let mut listener = bind(path)?;
    if path.parent() != Some(&*folder) {
        let link = make_folder(&folder).and_then(|()| link(path, &numbered(&folder, node)));
        match link {
            Ok(link) => listener.created.push(link),
            Err(error) => tracing::warn!(
                "`steadyhand stop` can find this node only with --socket {}: {error:#}",
                path.display()
            ),
        }
    }
    Ok(listener)
}

/// Returns a path that no other node has: of several with one name each is found and stopped.
fn numbered(folder: &Path, node: &str) -> PathBuf {
    folder.join(format!("{node}-{}.sock", std::process::id()))
}

fn link(socket: &Path, link: &Path) -> anyhow::Result<PathBuf> {
    // That of a process which had the same number.
    let _ = std::fs::remove_file(link);
    std::os::unix::fs::symlink(std::path::absolute(socket)?, link)?;
    Ok(link.to_owned())
}

fn bind(path: &Path) -> anyhow::Result<ControlListener> {
    if is_answered(path) {
        bail!(
            "another node already uses the socket {}. Next: start this one with a different --socket",
            path.display()
        );
    }
    // No node answers, so a socket there was left by a node that died. Any other kind of file is not ours to remove.
    if std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket()) {
        let _ = std::fs::remove_file(path);
    }
    let listener = UnixListener::bind(path)
        .with_context(|| format!("cannot open the control socket {}", path.display()))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(ControlListener {
        listener,
        created: vec![path.to_owned()],
    })
}

/// Returns whether a node answers at a socket.
pub(super) fn is_answered(path: &Path) -> bool {
    std::os::unix::net::UnixStream::connect(path).is_ok()
}

/// Makes the folder for sockets if needed, and checks whose it is.
fn make_folder(folder: &Path) -> anyhow::Result<()> {
    let created = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder);
    created.with_context(|| format!("cannot make the folder {}", folder.display()))?;
    check_owner(folder)
}

/// Checks that the folder belongs to this user: another user who created it could answer in the node's name. In a temporary
/// directory, where every user can create one, it must not be a link either.
pub(super) fn check_owner(folder: &Path) -> anyhow::Result<()> {
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

/// Answers operators until it is dropped. When the system has no descriptor left for a connection, the longest silent connection
/// is closed, and the next is accepted after a pause.
pub async fn serve(control: &ControlListener, node: &Arc<Node>) -> ! {
    let silent = Arc::new(SilentConnections::default());
    let working = Arc::new(Semaphore::new(WORKING_MAX));
    loop {
        let (stream, _) = match control.listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection to the control socket");
                silent.close_longest();
                task::pause(EXHAUSTED_PAUSE).await;
                continue;
            }
        };
        let (node, working) = (Arc::clone(node), Arc::clone(&working));
        let evicted = silent.enter();
        task::spawn(async move {
            if let Err(error) = serve_connection(stream, node, evicted, working).await {
                tracing::warn!("control socket: {error:#}");
            }
        });
    }
}

/// Number of connections that have sent no request yet; a further one replaces the one that has been silent longest.
const SILENT_MAX: usize = 64;

/// Time in which a connection must send its request, or is closed.
const REQUEST_WAIT_MAX: Duration = Duration::from_secs(15);

/// Number of requests that are carried out at the same time. Stops are not limited.
const WORKING_MAX: usize = 64;

/// Pause after the system has run out of descriptors.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// The connections that have sent no request yet, the longest silent one first. Dropping a sender closes its connection.
#[derive(Default)]
struct SilentConnections(Mutex<VecDeque<oneshot::Sender<()>>>);

impl SilentConnections {
    fn enter(&self) -> oneshot::Receiver<()> {
        let (sender, evicted) = oneshot::channel();
        let mut waiting = self.waiting();
        if waiting.len() >= SILENT_MAX {
            waiting.pop_front();
        }
        waiting.push_back(sender);
        evicted
    }

    fn close_longest(&self) {
        self.waiting().pop_front();
    }

    /// Returns the senders of the connections that still wait.
    fn waiting(&self) -> MutexGuard<'_, VecDeque<oneshot::Sender<()>>> {
        let mut waiting = self.0.locked();
        waiting.retain(|sender| !sender.is_closed());
        waiting
    }
}

/// Carries out the request of one connection. `evicted` ends the wait for it.
async fn serve_connection(
    mut stream: UnixStream,
    node: Arc<Node>,
    evicted: oneshot::Receiver<()>,
    working: Arc<Semaphore>,
) -> anyhow::Result<()> {
    let caller = stream.peer_cred()?.uid();
    let (read, mut write) = stream.split();
    if caller != rustix::process::geteuid().as_raw() && caller != 0 {
        bail!("the user {caller} was refused");
    }
    let mut line = Vec::new();
    let mut reader = BufReader::new(read.take(VERB_BYTES_MAX as u64));
    let request = tokio::time::timeout(REQUEST_WAIT_MAX, reader.read_until(b'\n', &mut line));
    let cut_reason = tokio::select! {
        // A request that is here is read before the connection is given up.
        biased;
        request = request => match request {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(format!("the connection failed: {error}")),
            Err(_) => Some(format!("its request did not arrive within {} s", REQUEST_WAIT_MAX.as_secs())),
        },
        _ = evicted => Some("it sent no request, and another connection needed its place".to_owned()),
    };
    match cut_reason {
        // A line that is not whole may still be a stop.
        Some(reason) if !names_stop(&node, &line) => bail!("a connection was closed: {reason}"),
        // The client only checked whether a node answers.
        None if line.is_empty() => return Ok(()),
        _ => {}
    }
    let caller_name = format!("user {caller}");
    let arrived = node.stamp_arrival();
    let verb = OperatorVerb::read_async(&node, line).await;
    let slot = working.try_acquire();
    let is_full = slot.is_err() && !verb.as_ref().is_ok_and(OperatorVerb::stops);
    let reply = match verb {
        _ if is_full => VerbReply::failed(refusal!(
            "{WORKING_MAX} operators' requests are in progress, which is the limit (a stop is always possible). Next: wait until one has ended, then send this again"
        )),
        Ok(OperatorVerb::PageLogin) => page_login(&node, &caller_name),
        Ok(verb) => {
            let watch = ClientWatch::of(&node, Some(&verb), &arrived);
            let mut reply = std::pin::pin!(run_for_operator(&node, &caller_name, verb, arrived));
            tokio::select! {
                biased;
                reply = &mut reply => {
                    watch.ends();
                    reply
                }
                () = wait_until_closed(&mut reader) => {
                    drop(watch);
                    // The outcome is recorded, and sent in case the client has closed only its own half.
                    reply.await
                }
            }
        }
        Err(error) => VerbReply::failed(error),
    };
    let mut answer = serde_json::to_vec(&reply)?;
    answer.push(b'\n');
    write.write_all(&answer).await?;
    Ok(())
}

/// Returns whether a line that is not whole is a stop.
fn names_stop(node: &Node, line: &[u8]) -> bool {
    // A stop is short.
    line.len() <= mcp::INLINE_BYTES_MAX
        && OperatorVerb::read(node, line).is_ok_and(|verb| verb.stops())
}

/// Makes a login code for the page. The audit log records that one was made, but not the code.
fn page_login(node: &Node, caller: &str) -> VerbReply {
    let now = node.clock.now();
    let reply = match node.login_codes.make(caller, now) {
        Ok((address, code)) => VerbReply::done(format!(
            "open {address} and type {code}. The code works once, within {}",
            duration(CODE_VALID)
        )),
        Err(error) => VerbReply::failed(error.to_string()),
    };
    let note = format!("{caller}: PageLogin: done {}", reply.done);
    node.audit.note("operator", note);
    reply
}

/// Waits until the other side closes, and ignores what it sends meanwhile.
async fn wait_until_closed(reader: &mut (impl tokio::io::AsyncRead + Unpin)) {
    let mut ignored = [0; 64];
    while reader.read(&mut ignored).await.is_ok_and(|count| count > 0) {}
}

/// Sends a verb to the node at a socket and returns its reply.
pub async fn ask(path: &Path, verb: &OperatorVerb) -> anyhow::Result<VerbReply> {
    let missing = || {
        format!(
            "no node answers at {}. Next: check that it runs",
            path.display()
        )
    };
    let mut stream = UnixStream::connect(path).await.with_context(missing)?;
    let mut line = serde_json::to_vec(verb)?;
    line.push(b'\n');
    // If the node has gone away, reading its reply fails below.
    let _ = stream.write_all(&line).await;
    let mut answer = String::new();
    let read = BufReader::new(stream).read_line(&mut answer).await;
    if !read.is_ok_and(|bytes| bytes > 0) {
        bail!(
            "the node at {} closed the connection before it answered, but may have carried out the command. Look at the arm and the node's log. Next: `steadyhand status`",
            path.display()
        );
    }
    serde_json::from_str(&answer)
        .with_context(|| format!("the node's answer cannot be read: {answer:?}"))
}
