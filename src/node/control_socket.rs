//! The control socket, by which operators on the same machine reach a node, including one that serves standard input and output.
//!
//! The request and the reply are one line of JSON each. Only this user can open the socket.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::{Semaphore, oneshot};

use super::client_watch::ClientWatch;
use super::operator_verb::{OperatorVerb, VERB_BYTES_MAX, VerbReply};
use super::verb_dispatch::run_for_operator;
use base::file_lock::FolderLock;
use base::lock::MutexExt;
use base::task;
use base::wording::duration;
use call::refusal;
use caller::CODE_VALID;
use tools::Node;
use transport::{Connection, Listener, SocketName};

#[cfg_attr(unix, path = "control_socket/unix_socket.rs")]
#[cfg_attr(not(unix), path = "control_socket/named_pipe.rs")]
mod transport;

pub use transport::{AdoptedSocket, adopt, folder};
pub(super) use transport::{SERVICE_FOLDER, check_owner, folders, has_own_folder, is_answered};

/// An open control socket. What this process created for it is removed with it.
pub struct ControlListener {
    listener: Listener,
    names: Vec<SocketName>,
}

/// Opens the socket of a node: the one at this path, or one of its own in the user's folder.
pub fn open(path: Option<&Path>, node: &str) -> anyhow::Result<ControlListener> {
    let folder = folder();
    let Some(path) = path else {
        transport::make_folder(&folder)?;
        let _lock = FolderLock::for_change_of(&folder.join(node))?;
        let path = folder.join(format!("{node}.sock"));
        return match is_answered(&path) {
            true => bind(&numbered(&folder, node)),
            false => bind(&path),
        };
    };
    let mut listener = bind(path)?;
    if path.parent() != Some(&*folder) {
        let second = numbered(&folder, node);
        let link =
            transport::make_folder(&folder).and_then(|()| Ok(transport::link(path, &second)?));
        match link {
            Ok(link) => listener.names.push(link),
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

fn bind(path: &Path) -> anyhow::Result<ControlListener> {
    if is_answered(path) {
        bail!(
            "another node already uses the socket {}. Next: start this one with a different --socket",
            path.display()
        );
    }
    let (listener, name) = transport::bind(path)
        .with_context(|| format!("cannot open the control socket {}", path.display()))?;
    Ok(ControlListener {
        listener,
        names: vec![name],
    })
}

/// Answers operators until it is dropped. When the system has no descriptor left for a connection, the longest silent connection
/// is closed, and the next is accepted after a pause.
pub async fn serve(control: &ControlListener, node: &Arc<Node>) -> ! {
    let silent = Arc::new(SilentConnections::default());
    let working = Arc::new(Semaphore::new(WORKING_MAX));
    loop {
        let stream = match transport::accept(&control.listener).await {
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
    stream: Connection,
    node: Arc<Node>,
    evicted: oneshot::Receiver<()>,
    working: Arc<Semaphore>,
) -> anyhow::Result<()> {
    let caller_name = transport::caller(&stream)?;
    let (read, mut write) = tokio::io::split(stream);
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
    let mut stream = transport::connect(path).await.with_context(missing)?;
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
