//! Tells a person who is not looking: a job is done, something waits for a person, an arm has a fault. It is sent to the address
//! and the program that the node file names. No arm and no call waits for it.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::Serialize;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;

use base::clock::calendar_ms;
use config::{NoticeKind, NoticesEntry};
use mcp::http_client;
use tools::{AttachedArm, Node, latch_text};

/// Interval between looks at the arms.
const LOOK: Duration = Duration::from_millis(500);

/// Time that an address or a program has for one notice.
const DELIVERY_MAX: Duration = Duration::from_secs(10);

/// Notices that wait for a slow address; more are dropped, and the log says so.
const WAITING_MAX: usize = 64;

/// A notice, as it is sent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct SentNotice {
    kind: NoticeKind,
    node: String,
    arm: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// All of it in words.
    text: String,
    time_ms: u64,
}

/// A state of affairs that a person is told of when it begins.
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
    base::task::spawn(look(Arc::downgrade(node), send));
}

async fn look(node: Weak<Node>, send: mpsc::Sender<SentNotice>) {
    let mut known: Option<BTreeSet<NoticeCause>> = None;
    loop {
        let Some(node) = node.upgrade() else {
            return;
        };
        let seen = causes(&node);
        for cause in begun(known.as_ref(), &seen) {
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
                tracing::warn!("a notice is dropped: {WAITING_MAX} wait to be sent: {text}");
            }
        }
        known = Some(seen);
        drop(node);
        // As long as a timer's time; nothing hangs on its grain.
        base::task::pause(LOOK).await;
    }
}

/// Returns the causes that were not there at the look before. What was there at the first look is no news.
fn begun<'a>(
    known: Option<&'a BTreeSet<NoticeCause>>,
    seen: &'a BTreeSet<NoticeCause>,
) -> Vec<&'a NoticeCause> {
    known.map_or_else(Vec::new, |known| seen.difference(known).collect())
}

/// Returns all that a person would be told of now.
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
    let done = seat.live_job().filter(|job| job.state == "reached");
    let done = done.map(|job| {
        let text = format!("{} on {}: {}", job.id, seat.name, job.words);
        cause(Some(job.id), NoticeKind::Done, text)
    });
    [latched, fault, done].into_iter().flatten().collect()
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
            report("the webhook", post(url.reveal(), body.clone()).await);
        }
        if let Some(command) = &entry.command {
            report("the command", run(command, &body).await);
        }
    }
}

/// Reason that a notice did not arrive. The address is not in it.
#[derive(Debug, thiserror::Error)]
enum UndeliveredNotice {
    #[error("no answer within {} s", DELIVERY_MAX.as_secs())]
    Late,
    #[error("it answered {0}")]
    Status(u16),
    #[error("it cannot be reached")]
    Unreachable,
    #[error("{0}")]
    Program(#[from] std::io::Error),
    #[error("it ended with {0}")]
    Ended(std::process::ExitStatus),
    #[error("it names no program")]
    NoProgram,
}

fn report(by: &str, sent: Result<(), UndeliveredNotice>) {
    if let Err(error) = sent {
        tracing::warn!("a notice did not arrive by {by} of the node file: {error}");
    }
}

async fn post(url: &str, body: Vec<u8>) -> Result<(), UndeliveredNotice> {
    let sending = http_client::json(url, None, Some(body));
    match tokio::time::timeout(DELIVERY_MAX, sending).await {
        Err(_) => Err(UndeliveredNotice::Late),
        Ok(Err(_)) => Err(UndeliveredNotice::Unreachable),
        Ok(Ok((200..=299, _))) => Ok(()),
        Ok(Ok((status, _))) => Err(UndeliveredNotice::Status(status)),
    }
}

/// Runs the program to its end, or to the end of its time, when it is killed.
async fn run(command: &[String], body: &[u8]) -> Result<(), UndeliveredNotice> {
    let (program, arguments) = command.split_first().ok_or(UndeliveredNotice::NoProgram)?;
    let mut child = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        // Standard output may be the protocol's.
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let input = child.stdin.take();
    let running = async {
        if let Some(mut input) = input {
            // A program that does not read its input is told all the same that it was called.
            let _ = input.write_all(body).await;
        }
        child.wait().await
    };
    let ended = tokio::time::timeout(DELIVERY_MAX, running).await;
    match ended.map_err(|_| UndeliveredNotice::Late)?? {
        status if status.success() => Ok(()),
        status => Err(UndeliveredNotice::Ended(status)),
    }
}
