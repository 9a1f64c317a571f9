//! Notifies a person when a job is done, when something waits for a person, and when an arm has a fault. Notices are sent to the
//! address and the program that the node file names. No arm and no call waits for them.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::Serialize;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;

use base::clock::calendar_ms;
use config::{NoticeKind, NoticesEntry};
use job::DEVIATED;
use mcp::http_client;
use tools::{AttachedArm, Node, latch_text};

/// Interval between checks of the arms.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Time limit for an address or a program to take one notice.
const DELIVERY_MAX: Duration = Duration::from_secs(10);

/// Number of notices that wait for a slow receiver; more are dropped, and the log says so.
const WAITING_MAX: usize = 64;

/// A notice, as it is sent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct SentNotice {
    kind: NoticeKind,
    node: String,
    arm: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// Complete text for people.
    text: String,
    time_ms: u64,
}

/// A condition that a person is notified of when it begins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NoticeCause {
    arm: String,
    job: Option<String>,
    kind: NoticeKind,
    text: String,
}

/// Watches a node as long as it lives, if its file says where notices go. Must be called on a runtime.
pub(super) fn watch(node: &Arc<Node>) {
    let entry = node.file.notices.clone();
    if !entry.is_on() {
        return;
    }
    let (send, receive) = mpsc::channel(WAITING_MAX);
    base::task::spawn(deliver(entry, receive));
    base::task::spawn(check_arms(Arc::downgrade(node), send));
}

async fn check_arms(node: Weak<Node>, send: mpsc::Sender<SentNotice>) {
    let mut previous: Option<BTreeSet<NoticeCause>> = None;
    loop {
        let Some(node) = node.upgrade() else {
            return;
        };
        let current = causes(&node);
        for cause in new_causes(previous.as_ref(), &current) {
            let notice = SentNotice {
                kind: cause.kind,
                node: node.file.name.clone(),
                arm: cause.arm.clone(),
                job: cause.job.clone(),
                text: cause.text.clone(),
                time_ms: calendar_ms(),
            };
            if send.try_send(notice).is_err() {
                let text = &cause.text;
                tracing::warn!(
                    "a notice was dropped, because {WAITING_MAX} others wait to be sent: {text}"
                );
            }
        }
        previous = Some(current);
        drop(node);
        // The timer's coarse resolution does not matter here.
        base::task::pause(CHECK_INTERVAL).await;
    }
}

/// Returns the causes that the previous check did not find; none after the first check.
fn new_causes<'a>(
    previous: Option<&'a BTreeSet<NoticeCause>>,
    current: &'a BTreeSet<NoticeCause>,
) -> Vec<&'a NoticeCause> {
    previous.map_or_else(Vec::new, |previous| current.difference(previous).collect())
}

/// Returns all causes that exist now.
fn causes(node: &Node) -> BTreeSet<NoticeCause> {
    let pens = node.awaited_pens().into_iter().map(|pen| NoticeCause {
        text: format!("{} on {} waits for {}", pen.job, pen.arm, pen.words),
        arm: pen.arm,
        job: Some(pen.job),
        kind: NoticeKind::NeedsYou,
    });
    let plans = node.pending().into_iter().map(|plan| NoticeCause {
        arm: String::new(),
        text: format!("the plan of {} waits for a person's yes or no", plan.job),
        job: Some(plan.job),
        kind: NoticeKind::NeedsYou,
    });
    let arms = node.arms.iter().flat_map(|seat| arm_causes(seat));
    pens.chain(plans).chain(arms).collect()
}

fn arm_causes(seat: &AttachedArm) -> Vec<NoticeCause> {
    let cause = |job: Option<String>, kind, text| NoticeCause {
        arm: seat.name.clone(),
        job,
        kind,
        text,
    };
    let latched = seat.permits().latched();
    let latched = latched.as_ref().map(|latch| {
        let text = format!("{}: {}", seat.name, latch_text(latch));
        cause(None, NoticeKind::NeedsYou, text)
    });
    let fault = seat.motion.snapshot().fault;
    let fault =
        fault.map(|fault| cause(None, NoticeKind::Fault, format!("{}: {fault}", seat.name)));
    let ended = seat.live_job().and_then(|job| {
        let kind = match job.state {
            "reached" => NoticeKind::Done,
            DEVIATED => NoticeKind::Fault,
            _ => return None,
        };
        let text = format!("{} on {}: {}", job.id, seat.name, job.words);
        Some(cause(Some(job.id), kind, text))
    });
    [latched, fault, ended].into_iter().flatten().collect()
}

async fn deliver(entry: NoticesEntry, mut receive: mpsc::Receiver<SentNotice>) {
    while let Some(notice) = receive.recv().await {
        if !entry.sends(notice.kind) {
            continue;
        }
        let Ok(body) = serde_json::to_vec(&notice) else {
            continue;
        };
        if let Some(url) = &entry.webhook {
            log_failure("the webhook", post(url.reveal(), body.clone()).await);
        }
        if let Some(command) = &entry.command {
            log_failure("the command", run(command, &body).await);
        }
    }
}

/// Reason why a notice did not arrive. It does not contain the address.
#[derive(Debug, thiserror::Error)]
enum UndeliveredNotice {
    #[error("no answer within {} s", DELIVERY_MAX.as_secs())]
    Timeout,
    #[error("it answered {0}")]
    Status(u16),
    #[error("it cannot be reached")]
    Unreachable,
    #[error("{0}")]
    Program(#[from] std::io::Error),
    #[error("it ended with {0}")]
    Ended(std::process::ExitStatus),
    #[error("the command names no program")]
    NoProgram,
}

fn log_failure(route: &str, sent: Result<(), UndeliveredNotice>) {
    if let Err(error) = sent {
        tracing::warn!("a notice to `{route}` of the node file did not arrive: {error}");
    }
}

async fn post(url: &str, body: Vec<u8>) -> Result<(), UndeliveredNotice> {
    let sending = http_client::json(url, None, Some(body));
    match tokio::time::timeout(DELIVERY_MAX, sending).await {
        Err(_) => Err(UndeliveredNotice::Timeout),
        Ok(Err(_)) => Err(UndeliveredNotice::Unreachable),
        Ok(Ok((200..=299, _))) => Ok(()),
        Ok(Ok((status, _))) => Err(UndeliveredNotice::Status(status)),
    }
}

/// Runs the program until it ends, or kills it at the time limit.
async fn run(command: &[String], body: &[u8]) -> Result<(), UndeliveredNotice> {
    let (program, arguments) = command.split_first().ok_or(UndeliveredNotice::NoProgram)?;
    let mut command = tokio::process::Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        // Standard output may belong to MCP.
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    // The program's file may be on a disk that does not answer, and this thread hears stops.
    let spawning = tokio::task::spawn_blocking(move || command.spawn());
    let mut child = spawning.await.map_err(std::io::Error::from)??;
    let input = child.stdin.take();
    let running = async {
        if let Some(mut input) = input {
            // A program need not read its input: being run is a notice in itself.
            let _ = input.write_all(body).await;
        }
        child.wait().await
    };
    let ended = tokio::time::timeout(DELIVERY_MAX, running).await;
    match ended.map_err(|_| UndeliveredNotice::Timeout)?? {
        status if status.success() => Ok(()),
        status => Err(UndeliveredNotice::Ended(status)),
    }
}
