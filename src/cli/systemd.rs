//! Says to systemd, where it asked, that the node is ready, that its arms' threads live, and that
//! it is stopping.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::Clock;
use crate::tools::Node;

/// Arms that can be minded.
const ARMS_MAX: usize = 64;

/// Sends a state such as `READY=1`. Without a notify socket there is nobody to tell.
pub(super) fn notify(state: &str) {
    let Ok(socket) = std::env::var("NOTIFY_SOCKET") else {
        return;
    };
    if let Err(error) = send(&socket, state) {
        tracing::warn!("systemd could not be told {state:?}: {error}");
    }
}

fn send(socket: &str, state: &str) -> std::io::Result<()> {
    let address = match socket.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    let own = UnixDatagram::unbound()?;
    // Nobody waits for systemd to read, an arm's thread least of all.
    own.set_nonblocking(true)?;
    own.send_to_addr(state.as_bytes(), &address)?;
    Ok(())
}

/// Has the arms' threads, and nothing else, feed systemd's watchdog. When one of them hangs, the
/// feeding ends and systemd ends the process; the arm then moves no further than its leash.
pub(super) fn watchdog(node: &Node) {
    let Some(every) = asked_every() else {
        return;
    };
    let (Some(first), true) = (node.seats.first(), node.seats.len() <= ARMS_MAX) else {
        return;
    };
    let feeder = Feeder {
        clock: first.motion.clock().clone(),
        every: every / 4,
        all: u64::MAX >> (ARMS_MAX - node.seats.len()),
        beaten: AtomicU64::new(0),
        fed_nanos: AtomicU64::new(0),
    };
    let feeder = Arc::new(feeder);
    for (arm, seat) in node.seats.iter().enumerate() {
        let feeder = Arc::clone(&feeder);
        seat.motion
            .set_heartbeat(Box::new(move || feeder.beat(1 << arm)));
    }
}

/// How long systemd waits at most, if it minds this process.
fn asked_every() -> Option<Duration> {
    let micros: u64 = std::env::var("WATCHDOG_USEC").ok()?.parse().ok()?;
    let meant = std::env::var("WATCHDOG_PID").ok();
    let ours = meant.is_none_or(|pid| pid == std::process::id().to_string());
    (ours && micros > 0).then(|| Duration::from_micros(micros))
}

/// Feeds the watchdog when every arm's thread has come round since the last time.
struct Feeder {
    clock: Clock,
    every: Duration,
    /// A bit for each arm.
    all: u64,
    beaten: AtomicU64,
    fed_nanos: AtomicU64,
}

impl Feeder {
    fn beat(&self, arm: u64) {
        let beaten = self.beaten.fetch_or(arm, Ordering::SeqCst) | arm;
        let now = self.clock.now().as_nanos();
        let before = self.fed_nanos.load(Ordering::SeqCst);
        let due = u128::from(now.saturating_sub(before)) >= self.every.as_nanos();
        if beaten == self.all && due {
            self.beaten.store(0, Ordering::SeqCst);
            self.fed_nanos.store(now, Ordering::SeqCst);
            notify("WATCHDOG=1");
        }
    }
}
