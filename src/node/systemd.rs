//! Protocol between systemd and a node: sockets that systemd opened, readiness, status, the watchdog of the arms'
//! threads, and stopping.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::bail;
use listenfd::ListenFd;

use super::control_socket::AdoptedSocket;
use super::running_nodes::activity;
use base::clock::NodeClock;
use permit::StopLatch;
use tools::{AttachedArm, Node};

/// Largest number of arms that the watchdog can cover.
const ARMS_MAX: usize = 64;

/// Interval between checks of the status text; an unchanged text is not sent.
const STATUS_EVERY: Duration = Duration::from_millis(500);

/// Sockets that systemd opened for this process.
#[derive(Debug, Default)]
pub struct ActivatedSockets {
    /// Socket for callers.
    pub http: Option<TcpListener>,
    /// Socket for operators of this machine.
    pub control: Option<AdoptedSocket>,
}

/// Takes the sockets that systemd opened, by their kind: one for HTTP, one for operators. It changes the environment, so
/// it must run before any thread is started.
///
/// # Errors
/// One of them is of another kind, or there are two of a kind.
pub fn sockets() -> anyhow::Result<ActivatedSockets> {
    let mut opened = ListenFd::from_env();
    let mut sockets = ActivatedSockets::default();
    for index in 0..opened.len() {
        if let Ok(Some(http)) = opened.take_tcp_listener(index) {
            if sockets.http.replace(http).is_some() {
                bail!("systemd opened two sockets for HTTP (at most one)");
            }
        } else if let Ok(Some(control)) = opened.take_unix_listener(index) {
            if sockets.control.replace(control).is_some() {
                bail!("systemd opened two sockets for operators (at most one)");
            }
        } else {
            bail!(
                "socket {index} from systemd is neither a TCP nor a UNIX stream socket. Next: correct the socket units"
            );
        }
    }
    Ok(sockets)
}

/// Sends systemd the node's status text whenever it changes, for as long as the process lives.
pub fn status(node: &Arc<Node>) {
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        return;
    }
    let node = Arc::clone(node);
    base::task::spawn(async move {
        let mut sent = String::new();
        loop {
            let text = status_text(&node);
            if text != sent {
                notify(&format!("STATUS={text}"));
                sent = text;
            }
            base::task::pause(STATUS_EVERY).await;
        }
    });
}

/// Describes what each arm is doing, and whether it may move.
pub fn status_text(node: &Node) -> String {
    let arms: Vec<String> = node.arms.iter().map(|seat| arm_text(node, seat)).collect();
    arms.join("; ")
}

fn arm_text(node: &Node, seat: &AttachedArm) -> String {
    let snapshot = seat.motion.snapshot();
    let latched = match seat.permits().latched() {
        Some(StopLatch::Emergency(_)) => ", emergency stop latched",
        Some(StopLatch::Stopped(_)) => ", stopped until reset",
        _ => "",
    };
    let enabled = if node.may_move(seat) {
        "motion enabled"
    } else {
        "motion not enabled"
    };
    let holder = seat.holder(node.lease_idle());
    let holder = holder.map_or_else(String::new, |by| format!(", used by {by}"));
    let (name, title, activity) = (&seat.name, seat.title(), activity(&snapshot));
    format!("{name} ({title}) {activity}{latched}, {enabled}{holder}")
}

/// Sends a state such as `READY=1`. Does nothing without a notify socket.
pub fn notify(state: &str) {
    let Ok(socket) = std::env::var("NOTIFY_SOCKET") else {
        return;
    };
    if let Err(error) = send(&socket, state) {
        tracing::warn!("cannot send {state:?} to systemd: {error}");
    }
}

fn send(socket: &str, state: &str) -> std::io::Result<()> {
    let address = match socket.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    let own = UnixDatagram::unbound()?;
    // No thread waits for systemd to read, least of all an arm's.
    own.set_nonblocking(true)?;
    own.send_to_addr(state.as_bytes(), &address)?;
    Ok(())
}

/// Makes the arms' threads, and nothing else, feed systemd's watchdog. When one of them hangs, the feeding stops and systemd
/// ends the process; the arm then moves no further than its leash.
pub fn watchdog(node: &Node) {
    let Some(timeout) = watchdog_timeout() else {
        return;
    };
    if node.arms.is_empty() || node.arms.len() > ARMS_MAX {
        return;
    }
    let feeder = WatchdogFeeder {
        clock: NodeClock::real(),
        every: timeout / 4,
        all: u64::MAX >> (ARMS_MAX - node.arms.len()),
        beaten: AtomicU64::new(0),
        fed_nanos: AtomicU64::new(0),
    };
    let feeder = Arc::new(feeder);
    for (arm, seat) in node.arms.iter().enumerate() {
        let feeder = Arc::clone(&feeder);
        seat.motion
            .set_heartbeat(Box::new(move || feeder.beat(1 << arm)));
    }
}

/// Returns systemd's watchdog timeout, if it watches this process.
fn watchdog_timeout() -> Option<Duration> {
    let micros: u64 = std::env::var("WATCHDOG_USEC").ok()?.parse().ok()?;
    let watched_pid = std::env::var("WATCHDOG_PID").ok();
    let ours = watched_pid.is_none_or(|pid| pid == std::process::id().to_string());
    (ours && micros > 0).then(|| Duration::from_micros(micros))
}

/// Feeds the watchdog once every arm's thread has ticked since the last time.
struct WatchdogFeeder {
    clock: NodeClock,
    every: Duration,
    /// A bit for each arm.
    all: u64,
    beaten: AtomicU64,
    fed_nanos: AtomicU64,
}

impl WatchdogFeeder {
    fn beat(&self, arm: u64) {
        let beaten = self.beaten.fetch_or(arm, Ordering::SeqCst) | arm;
        let now = self.clock.now().as_nanos();
        let last_fed = self.fed_nanos.load(Ordering::SeqCst);
        let is_due = u128::from(now.saturating_sub(last_fed)) >= self.every.as_nanos();
        if beaten == self.all && is_due {
            self.beaten.store(0, Ordering::SeqCst);
            self.fed_nanos.store(now, Ordering::SeqCst);
            notify("WATCHDOG=1");
        }
    }
}
