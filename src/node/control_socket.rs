//! The control socket: how operators on the same machine reach a node, a stdio one too.
//!
//! One line of JSON each way. The socket is this user's alone, and the kernel says who calls.

use std::collections::VecDeque;
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
use base::lock::MutexExt;
use base::wording::duration;
use base::{disk, task};
use call::refusal;
use caller::CODE_VALID;
use tools::Node;

/// An open control socket; its file goes with it, where this process has made it.
pub struct ControlListener {
    listener: UnixListener,
    path: Option<PathBuf>,
}

impl Drop for ControlListener {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // A file that is gone already needs no removing.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Folder in which systemd's units put the socket of a node that is a service.
pub(super) const SERVICE_FOLDER: &str = "/run/steadyhand";

/// A socket that systemd opened.
pub type AdoptedSocket = std::os::unix::net::UnixListener;

/// Takes a socket that systemd opened; its file is systemd's.
pub fn adopt(listener: AdoptedSocket) -> anyhow::Result<ControlListener> {
    listener.set_nonblocking(true)?;
    Ok(ControlListener {
        listener: UnixListener::from_std(listener)?,
        path: None,
    })
}

/// Returns the folder for sockets: the unit's runtime directory, the user's, or a private folder of this user.
pub fn folder() -> PathBuf {
    let own = std::env::var_os("RUNTIME_DIRECTORY").map(PathBuf::from);
    let users =
        || std::env::var_os("XDG_RUNTIME_DIR").map(|dir| PathBuf::from(dir).join("steadyhand"));
    own.or_else(users).unwrap_or_else(users_temporary)
}

/// Opens the socket of a node.
pub fn open(path: Option<&Path>, node: &str) -> anyhow::Result<ControlListener> {
    let path = match path {
        Some(path) => path.to_path_buf(),
        None => in_folder(&folder(), node)?,
    };
    if is_answered(&path) {
        bail!(
            "a node answers at {} already; give this one another name in its node file, or another --socket",
            path.display()
        );
    }
    // Nobody answers there: a socket that is left is a dead node's. Another file is not ours.
    if std::fs::symlink_metadata(&path).is_ok_and(|found| found.file_type().is_socket()) {
        let _ = std::fs::remove_file(&path);
    }
    let listener = UnixListener::bind(&path)
        .with_context(|| format!("cannot open the control socket {}", path.display()))?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(ControlListener {
        listener,
        path: Some(path),
    })
}

/// Returns whether a node answers there.
pub(super) fn is_answered(path: &Path) -> bool {
    std::os::unix::net::UnixStream::connect(path).is_ok()
}

fn in_folder(folder: &Path, node: &str) -> anyhow::Result<PathBuf> {
    let made = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder);
    made.with_context(|| format!("cannot make the folder {}", folder.display()))?;
    check_owner(folder)?;
    Ok(folder.join(format!("{node}.sock")))
}

/// Another user may have made the folder, and would then answer in the node's name. Where anybody can make one, a link may
/// lead there as well.
pub(super) fn check_owner(folder: &Path) -> anyhow::Result<()> {
    if folder == users_temporary() {
        return Ok(disk::check_private(folder)?);
    }
    let owner = rustix::fs::stat(folder)?.st_uid;
    if owner != rustix::process::geteuid().as_raw() {
        bail!(
            "the folder {} belongs to another user; name a socket with --socket",
            folder.display()
        );
    }
    Ok(())
}

/// Answers operators until it is dropped. A system that has no descriptor left for a connection ends nothing: the longest
/// silent connection is closed for it, and the next is taken after a pause.
pub async fn serve(door: &ControlListener, node: &Arc<Node>) -> ! {
    let silent = Arc::new(SilentConnections::default());
    let at_work = Arc::new(Semaphore::new(AT_WORK_MAX));
    loop {
        let (stream, _) = match door.listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection to the control socket could not be taken");
                silent.close_longest();
                task::pause(EXHAUSTED_PAUSE).await;
                continue;
            }
        };
        let (node, at_work) = (Arc::clone(node), Arc::clone(&at_work));
        let evicted = silent.enter();
        task::spawn(async move {
            if let Err(error) = one(stream, node, evicted, at_work).await {
                tracing::warn!("control socket: {error:#}");
            }
        });
    }
}

/// Connections that have sent no request yet; one more takes the place of the one that has been silent longest.
const SILENT_MAX: usize = 64;

/// A connection has sent its request so soon, or is closed.
const REQUEST_MAX: Duration = Duration::from_secs(15);

/// Requests that are carried out at one time. A stop is one more.
const AT_WORK_MAX: usize = 64;

/// Pause after the system had no descriptor left for a connection.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// The connections that have sent no request yet, the longest silent one first. Each waits at the other end of its channel, whose
/// loss closes it.
#[derive(Default)]
struct SilentConnections(Mutex<VecDeque<oneshot::Sender<()>>>);

impl SilentConnections {
    fn enter(&self) -> oneshot::Receiver<()> {
        let (place, evicted) = oneshot::channel();
        let mut all = self.waiting();
        if all.len() >= SILENT_MAX {
            all.pop_front();
        }
        all.push_back(place);
        evicted
    }

    fn close_longest(&self) {
        self.waiting().pop_front();
    }

    /// Returns those that still wait.
    fn waiting(&self) -> MutexGuard<'_, VecDeque<oneshot::Sender<()>>> {
        let mut all = self.0.locked();
        all.retain(|place| !place.is_closed());
        all
    }
}

/// Carries out the request of one connection. `evicted` ends the wait for it.
async fn one(
    mut stream: UnixStream,
    node: Arc<Node>,
    evicted: oneshot::Receiver<()>,
    at_work: Arc<Semaphore>,
) -> anyhow::Result<()> {
    let caller = stream.peer_cred()?.uid();
    let (read, mut write) = stream.split();
    if caller != rustix::process::geteuid().as_raw() && caller != 0 {
        bail!("user {caller} was turned away");
    }
    let mut line = Vec::new();
    let mut reader = BufReader::new(read.take(VERB_BYTES_MAX as u64));
    let asked = tokio::time::timeout(REQUEST_MAX, reader.read_until(b'\n', &mut line));
    tokio::select! {
        asked = asked => match asked {
            Ok(read) => drop(read?),
            Err(_) => bail!("a connection was closed: its request was not here after {} s", REQUEST_MAX.as_secs()),
        },
        _ = evicted => bail!("a connection was closed: it had sent nothing, and others came"),
    }
    if line.is_empty() {
        // It only looked whether a node answers.
        return Ok(());
    }
    let who = format!("user {caller}");
    let verb = OperatorVerb::read_without_blocking(&node, line).await;
    let place = at_work.try_acquire();
    let is_full = place.is_err() && !verb.as_ref().is_ok_and(OperatorVerb::stops);
    let told = match verb {
        _ if is_full => VerbReply::failed(refusal!(
            "{AT_WORK_MAX} requests of operators are under way; try again when one of them is done (a stop is heard always)"
        )),
        Ok(OperatorVerb::PageLogin) => page_login(&node, &who),
        Ok(verb) => {
            let watch = ClientWatch::of(&node, Some(&verb));
            let mut told = std::pin::pin!(run_for_operator(&node, &who, verb));
            tokio::select! {
                biased;
                told = &mut told => {
                    watch.ends();
                    told
                }
                () = gone(&mut reader) => {
                    drop(watch);
                    // What came of it is noted, and told to one that has closed its own half alone.
                    told.await
                }
            }
        }
        Err(why) => VerbReply::failed(why),
    };
    let mut answer = serde_json::to_vec(&told)?;
    answer.push(b'\n');
    write.write_all(&answer).await?;
    Ok(())
}

/// Makes a code for the page. The audit log gets to know that there is one, and not which.
fn page_login(node: &Node, caller: &str) -> VerbReply {
    let now = node.clock.now();
    let told = match node.login_codes.make(caller, now) {
        Ok((address, code)) => VerbReply::done(format!(
            "open {address} and type {code} there; it opens once, within {}",
            duration(CODE_VALID)
        )),
        Err(error) => VerbReply::failed(error.to_string()),
    };
    let note = format!("{caller}: PageLogin: done {}", told.done);
    node.audit.note("operator", note);
    told
}

/// Until the other side closes; what it says meanwhile is nothing.
async fn gone(reader: &mut (impl tokio::io::AsyncRead + Unpin)) {
    let mut rest = [0; 64];
    while reader.read(&mut rest).await.is_ok_and(|count| count > 0) {}
}

/// Asks the node at a socket.
pub async fn ask(path: &Path, verb: &OperatorVerb) -> anyhow::Result<VerbReply> {
    let missing = || format!("no node answers at {}; is it running?", path.display());
    let mut stream = UnixStream::connect(path).await.with_context(missing)?;
    let mut line = serde_json::to_vec(verb)?;
    line.push(b'\n');
    // A node that goes away meanwhile is told of below.
    let _ = stream.write_all(&line).await;
    let mut answer = String::new();
    let read = BufReader::new(stream).read_line(&mut answer).await;
    if !read.is_ok_and(|bytes| bytes > 0) {
        bail!(
            "the node at {} went away before it answered: what it was asked may have been done. Look at the arm, then at the node's log; `steadyhand status` says how the arm is once a node runs again",
            path.display()
        );
    }
    serde_json::from_str(&answer)
        .with_context(|| format!("the node's answer cannot be read: {answer:?}"))
}
