//! The thread of a port. It runs the loop of each arm on the port, which take turns on the bus for one request each: while
//! one waits for its replies or its next tick, the others work.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock};

use futures::future::{FutureExt, LocalBoxFuture};
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tracing::{Instrument as _, Span};

use super::mailbox::CommandMailbox;
use super::snapshot_publisher::SnapshotPublisher;
use super::tick_queue::TickQueue;
use super::{MotionError, MotionHandle, MotionShared, PortOpener, Snapshot, thread};
use arm::ArmModel;
use base::clock::NodeClock;
use permit::PermitRegistry;

/// Begins an arm's loop, on the thread.
type ArmLoop = Box<dyn FnOnce() -> LocalBoxFuture<'static, ()> + Send>;

/// A thread for the arms of one port; clones are the same thread. It ends once all of them are dropped and the loop of its
/// last arm has ended.
#[derive(Clone)]
pub struct BusThread(UnboundedSender<ArmLoop>);

impl BusThread {
    /// Starts a thread without arms, of this name.
    ///
    /// # Errors
    /// When the system gives no thread or no resources for it.
    pub fn start(name: &str) -> Result<Self, MotionError> {
        let runtime = base::clock::alarm_runtime();
        let runtime = runtime.map_err(|error| MotionError::start("runtime", error))?;
        let (join, joining) = unbounded_channel();
        std::thread::Builder::new()
            .name(format!("arm {name}"))
            .spawn(move || runtime.block_on(run_arms(joining)))
            .map_err(|error| MotionError::start("thread", error))?;
        Ok(Self(join))
    }

    /// Starts an arm's loop and waits until the port is open and the servos are identified. Nothing moves and torque is not
    /// touched. The loop logs in the caller's tracing span.
    ///
    /// # Errors
    /// When the port cannot be opened, or a servo does not match the arm's description.
    pub fn attach(
        &self,
        arm: Arc<ArmModel>,
        clock: NodeClock,
        permits: Arc<PermitRegistry>,
        open: PortOpener,
    ) -> Result<MotionHandle, MotionError> {
        let (publish, snapshots) = watch::channel(Snapshot::default());
        let publisher = SnapshotPublisher::start(publish)
            .map_err(|error| MotionError::start("publisher", error))?;
        let shared = Arc::new(MotionShared {
            arm,
            clock,
            permits,
            commands: CommandMailbox::new(),
            stop: Arc::default(),
            heartbeat: OnceLock::new(),
            ticks: TickQueue::default(),
        });
        let ((attached, reply), (running, ended)) = (channel(), channel());
        let (own, span) = (Arc::clone(&shared), Span::current());
        let begin: ArmLoop = Box::new(move || {
            let run = async move {
                thread::run_arm(own, open, publisher, attached).await;
                drop(running);
            };
            run.instrument(span).boxed_local()
        });
        let motion = MotionHandle {
            shared,
            snapshots,
            ended: Mutex::new(ended),
        };
        // A thread that has ended drops the loop, and with it the sender of the reply.
        let _ = self.0.send(begin);
        let attached = reply.recv();
        attached.map_err(|_| MotionError::EndedAtOnce)??;
        Ok(motion)
    }
}

/// Runs the loops of the arms that join, until the last has ended and none can join any more.
async fn run_arms(mut joining: UnboundedReceiver<ArmLoop>) {
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(()) = running.next() => {}
            Some(begin) = joining.recv() => running.push(begin()),
            else => return,
        }
    }
}
