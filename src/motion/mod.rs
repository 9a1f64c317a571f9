//! One thread owns one port: it runs, holds and stops the arm, and publishes snapshots. Nothing
//! else touches the bus.
//!
//! It knows nothing of tools, MCP, JSON or plans in the making: it is handed proofs and asked to
//! stop. A stop request is an atomic and a wake-up, so it waits for no lock, queue or plan.

mod active_motion;
mod active_stop;
mod bus_health;
mod contact_detection;
mod finish;
mod frame_timestamps;
mod mailbox;
mod motion_commands;
mod motion_error;
mod motion_release;
mod realtime_priority;
mod recovery;
mod servo_health;
mod snapshot_publisher;
mod standstill;
mod stop_signal;
#[cfg(test)]
mod tests;
mod thread;
mod tick;
mod tick_queue;

use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Serialize, Serializer};
use tokio::sync::{oneshot, watch};

use arm::ArmModel;
use base::clock::NodeClock;
use base::units::{ArmMeasurement, ClockInstant, JointVector};
use driver::{ServoIdentity, TorqueOffReport};
use gate::{CheckedTrajectory, ExecutionProgress, HoldAt};
use link::{ByteLink, LinkError};
use permit::{ActorRank, MotionPermit, PermitRegistry, StopLatch};

pub use driver::{BusCounts, DurationHistogram, ServoCounts};
use mailbox::CommandMailbox;
pub use realtime_priority::set_realtime_priority;
pub use servo_health::{HealthAction, ServoHealth};
use snapshot_publisher::SnapshotPublisher;
use stop_signal::StopSignal;

pub use motion_error::MotionError;
pub use motion_release::MotionRelease;
pub use tick_queue::{MotionTick, TickQueue};

/// Opens the port, on the thread that will own it. Called again after the cable was unplugged.
pub type PortOpener = Box<dyn Fn(&NodeClock) -> Result<Box<dyn ByteLink>, LinkError> + Send>;

/// A callback that only an arm's thread makes, once a tick: while it is called, the loop lives. It
/// must not block.
pub type Heartbeat = Box<dyn Fn() + Send + Sync>;

/// A handle to an arm's thread. Dropping it stops the arm and ends the thread.
pub struct MotionHandle {
    shared: Arc<MotionShared>,
    snapshots: watch::Receiver<Snapshot>,
    thread: Option<JoinHandle<()>>,
}

/// Resources of an arm that its handle and its thread use.
struct MotionShared {
    arm: Arc<ArmModel>,
    clock: NodeClock,
    permits: Arc<PermitRegistry>,
    orders: CommandMailbox<MotionCommand>,
    stop: Arc<StopSignal>,
    heart: OnceLock<Heartbeat>,
    /// Copies for a recording.
    ticks: TickQueue,
}

/// The state of the arm's thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MotionState {
    /// The port is not open.
    #[default]
    Detached,
    /// Standing still.
    Holding,
    /// Carrying out a motion.
    Moving,
    /// In the middle of a motion, standing with the tip up until an operator resumes it.
    Held,
    /// Coming to a stop.
    Stopping,
    /// Stopped; `reset` comes next.
    Stopped,
    /// Something broke; the snapshot says what.
    Faulted,
}

impl MotionState {
    /// Returns whether a motion is under way, be it held or coming to a stop.
    #[must_use]
    pub const fn is_under_way(self) -> bool {
        matches!(self, Self::Moving | Self::Held | Self::Stopping)
    }
}

/// The arm's state as of its thread's last tick.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The state of the thread.
    pub state: MotionState,
    /// The last valid reading; `None` before the first.
    pub measured: Option<Arc<ArmMeasurement>>,
    /// Progress of the present motion.
    pub progress: Option<ExecutionProgress>,
    /// `true` if any torque is on, as far as it was read.
    pub energised: bool,
    /// The fault, if any.
    pub fault: Option<String>,
    /// Health of the servos.
    pub health: ServoHealth,
    /// Steps for an operator, in order, where a servo needs more than `reset`.
    pub recovery: &'static [&'static str],
    /// Each servo's model and firmware, since the port was opened.
    pub identity: Arc<Vec<ServoIdentity>>,
    /// Bus counters since the port was opened.
    pub counts: BusCounts,
    /// By how much ticks came too late while the arm moved.
    pub lateness: DurationHistogram,
    /// By how much of that the machine woke the sleeping thread too late; the rest are cycles that overran.
    pub woken_late: DurationHistogram,
    /// `true` if the arm's thread has a real-time priority.
    pub is_ahead: bool,
    /// Warnings for an operator that do not keep the arm from moving.
    pub warnings: Vec<String>,
    /// Number of stop requests that have been completed.
    pub stops_done: u64,
    /// The last stop.
    pub stop: Option<StopReport>,
}

/// Measurements of a completed stop.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StopReport {
    /// The kind of stop.
    pub kind: &'static str,
    /// The requester.
    pub by: ActorRank,
    /// `true` for an emergency stop: no lift, the arm stands where it is.
    pub emergency: bool,
    /// From the request to the first frame of the stop; `None` if the arm was not moving.
    #[serde(serialize_with = "to_a_thousandth")]
    pub first_frame_ms: Option<f64>,
    /// From the request to standstill as read back, with its lift.
    #[serde(serialize_with = "to_a_thousandth")]
    pub standstill_ms: Option<f64>,
    /// Part of that time in which the tip was lifted straight off the sheet; `None` without a lift.
    #[serde(serialize_with = "to_a_thousandth")]
    pub lift_ms: Option<f64>,
    /// The fastest joint at the end, from where the joints were read to be; `None` where they were
    /// not.
    #[serde(serialize_with = "to_a_thousandth")]
    pub speed_rad_s: Option<f64>,
    /// `true` if standstill was read back. Otherwise this stop is not a success.
    pub verified: bool,
    /// `true` if the tip was lifted on the way.
    pub lifted: bool,
    /// The reason why an emergency stop is not on the disk and lasts only as long as this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_kept: Option<String>,
}

/// Writes a measurement as people read it: more digits are noise.
fn to_a_thousandth<S: Serializer>(value: &Option<f64>, into: S) -> Result<S::Ok, S::Error> {
    value
        .map(|value| (value * 1e3).round() / 1e3)
        .serialize(into)
}

impl StopReport {
    /// From the request to standstill without the lift: braking along the path, and reading back
    /// that the arm stands. `None` where that could not be verified.
    #[must_use]
    pub fn braked_ms(&self) -> Option<f64> {
        let still_ms = self.standstill_ms?;
        Some(self.lift_ms.map_or(still_ms, |lift_ms| still_ms - lift_ms))
    }
}

/// The outcome of a motion.
#[derive(Debug)]
pub enum MotionOutcome {
    /// At its end, read back.
    Reached {
        /// The reading at each visited point, in order.
        visits: Vec<VisitReading>,
        /// The largest distance of a joint from its last goal.
        off_rad: f64,
    },
    /// A stop ended it.
    Stopped(StopReport),
    /// It did not begin, and nothing moved: the reason.
    Refused(MotionError),
    /// Something broke on the way: the reason. The arm holds.
    Faulted(String),
}

/// A reading at a visited point.
#[derive(Clone, Debug)]
pub struct VisitReading {
    /// Index of the point, as the plan counts them.
    pub item: usize,
    /// The arm's action there.
    pub kind: VisitKind,
    /// The measured joint angles.
    pub position_rad: JointVector,
}

/// An arm's action at a visited point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisitKind {
    /// It stood over the point.
    Dwell,
    /// Its tip came to touch, after it had moved freely.
    Contact,
    /// Its tip touched before it had moved freely: where the contact began is not known.
    EarlyContact,
}

/// Counts stops from another thread, without the handle.
#[derive(Clone, Debug)]
pub struct StopCounter(Arc<StopSignal>);

impl StopCounter {
    /// Returns the number of stops requested so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.count()
    }
}

/// A command to the arm's thread.
enum MotionCommand {
    Run {
        proof: Box<CheckedTrajectory>,
        seen_stops: u64,
        release: MotionRelease,
        done: oneshot::Sender<MotionOutcome>,
    },
    Hold {
        at: HoldAt,
        done: oneshot::Sender<Result<(), MotionError>>,
    },
    Resume {
        permit: MotionPermit,
        done: oneshot::Sender<Result<(), MotionError>>,
    },
    Release {
        done: oneshot::Sender<Result<TorqueOffReport, MotionError>>,
    },
    End,
}

/// Longest duration of a stop before it is reported as unverified; the lift of a needle is slow and
/// is added.
pub const STOP_LIMIT: Duration = Duration::from_secs(3);

/// A thread that has a stop to see to and says nothing for so long hangs.
const HANGS: Duration = Duration::from_secs(5);

impl MotionHandle {
    /// Starts an arm's thread and waits until the port is open and the servos have said who they
    /// are. Nothing moves and torque is not touched. What the thread logs is in the span that this is called in.
    ///
    /// # Errors
    /// Why the port could not be opened, or which servo is not what the arm's description says.
    pub fn start(
        arm: Arc<ArmModel>,
        clock: NodeClock,
        permits: Arc<PermitRegistry>,
        open: PortOpener,
    ) -> Result<Self, MotionError> {
        let (publish, snapshots) = watch::channel(Snapshot::default());
        let outbox = SnapshotPublisher::start(publish)
            .map_err(|error| MotionError::start("herald", error))?;
        let (attached, answer) = std::sync::mpsc::channel();
        let shared = Arc::new(MotionShared {
            arm,
            clock,
            permits,
            orders: CommandMailbox::new(),
            stop: Arc::default(),
            heart: OnceLock::new(),
            ticks: TickQueue::default(),
        });
        let (own, span) = (Arc::clone(&shared), tracing::Span::current());
        let thread = std::thread::Builder::new()
            .name(format!("arm {}", shared.arm.file.name))
            .spawn(move || span.in_scope(|| thread::main(&own, open, outbox, &attached)))
            .map_err(|error| MotionError::start("thread", error))?;
        let motion = Self {
            shared,
            snapshots,
            thread: Some(thread),
        };
        let attached = answer.recv();
        attached.map_err(|_| MotionError::EndedAtOnce)??;
        Ok(motion)
    }

    /// The arm.
    #[must_use]
    pub fn arm(&self) -> &Arc<ArmModel> {
        &self.shared.arm
    }

    /// The clock that the arm's thread keeps.
    #[must_use]
    pub fn clock(&self) -> &NodeClock {
        &self.shared.clock
    }

    /// Returns the permits of this arm.
    #[must_use]
    pub fn permits(&self) -> &Arc<PermitRegistry> {
        &self.shared.permits
    }

    /// Returns the latest snapshot.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.snapshots.borrow().clone()
    }

    /// Snapshots as they come.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Snapshot> {
        self.snapshots.clone()
    }

    /// The queue of copies of its ticks, for a recording.
    #[must_use]
    pub fn ticks(&self) -> &TickQueue {
        &self.shared.ticks
    }

    /// Returns the number of stops requested so far; [`MotionHandle::run`] takes the count from before
    /// the motion was planned.
    #[must_use]
    pub fn stops_requested(&self) -> u64 {
        self.shared.stop.count()
    }

    /// The same count for a thread that has no handle, such as a planner's.
    #[must_use]
    pub fn stop_counter(&self) -> StopCounter {
        StopCounter(Arc::clone(&self.shared.stop))
    }

    /// Spends a proof. It is refused if more than `seen_stops` stops were asked for: one came
    /// while the motion was planned. The answer comes when the motion has ended, however it
    /// ended; dropping the receiver does not stop the motion.
    pub fn run(
        &self,
        proof: CheckedTrajectory,
        seen_stops: u64,
    ) -> oneshot::Receiver<MotionOutcome> {
        self.run_released(proof, seen_stops, MotionRelease::whole())
    }

    /// As [`Motion::run`], no further than `release` says. Where it has not been released, real
    /// arms hold and simulated time stands still.
    pub fn run_released(
        &self,
        proof: CheckedTrajectory,
        seen_stops: u64,
        release: MotionRelease,
    ) -> oneshot::Receiver<MotionOutcome> {
        let (done, answer) = oneshot::channel();
        let order = MotionCommand::Run {
            proof: Box::new(proof),
            seen_stops,
            release,
            done,
        };
        if let Err(MotionCommand::Run { done, .. }) = self.shared.orders.put(order) {
            // The receiver is in our hands.
            let _ = done.send(MotionOutcome::Refused(MotionError::Ended));
        }
        self.shared.stop.wake();
        answer
    }

    /// Holds the motion under way: at the end of the stroke that is being drawn, or at once. The
    /// answer says whether there is something to hold; [`State::Held`] says when it stands.
    pub fn hold(&self, at: HoldAt) -> oneshot::Receiver<Result<(), MotionError>> {
        self.send_command(|done| MotionCommand::Hold { at, done })
    }

    /// Goes on with a motion that is held, if it is allowed now and the arm is where it was.
    pub fn resume(&self, permit: MotionPermit) -> oneshot::Receiver<Result<(), MotionError>> {
        self.send_command(|done| MotionCommand::Resume { permit, done })
    }

    /// Takes torque off every servo: **the arm drops**. Refused unless it stands with nothing under
    /// way. Motion needs an operator's reset afterwards.
    pub fn release(&self) -> oneshot::Receiver<Result<TorqueOffReport, MotionError>> {
        self.send_command(|done| MotionCommand::Release { done })
    }

    /// Sends a command. If the thread has ended, the command is dropped, and its answer with it.
    fn send_command<T>(
        &self,
        order: impl FnOnce(oneshot::Sender<T>) -> MotionCommand,
    ) -> oneshot::Receiver<T> {
        let (done, answer) = oneshot::channel();
        let _ = self.shared.orders.put(order(done));
        self.shared.stop.wake();
        answer
    }

    /// Has the arm's thread call this once a tick. The first one stays.
    pub fn set_heartbeat(&self, heart: Heartbeat) {
        let _ = self.shared.heart.set(heart);
    }

    /// Returns the number of deliberate stops: by a person, or by a planner with its tool.
    #[must_use]
    pub fn deliberate_stops(&self) -> u64 {
        self.shared.stop.deliberate_count()
    }

    /// Asks for a stop and returns at once; the ticket is for [`Motion::stopped`]. An emergency
    /// stop is latched by then, even if the arm's thread hears nothing any more.
    pub fn stop(&self, by: ActorRank, emergency: bool) -> u64 {
        let now = self.shared.clock.now();
        // The line first: the frame waits for no latch.
        let ticket = match by {
            ActorRank::Node => self.shared.stop.request(by, emergency, now),
            ActorRank::Planner | ActorRank::Operator => {
                self.shared.stop.request_deliberately(by, emergency, now)
            }
        };
        if emergency {
            self.shared.permits.latch(StopLatch::Emergency(by));
        }
        ticket
    }

    /// As [`MotionHandle::stop`] by a planner, for a caller that disconnected or cancelled its call: the
    /// arm stops, but parking it stays allowed.
    pub fn abandon(&self) -> u64 {
        self.shared
            .stop
            .request(ActorRank::Planner, false, self.shared.clock.now())
    }

    /// Waits until a stop has been seen to its end, an emergency stop until it is on the disk too.
    ///
    /// `None` when the arm's thread has ended or hangs, so that nothing was verified.
    pub async fn stopped(&self, ticket: u64) -> Option<StopReport> {
        let mut snapshots = self.snapshots.clone();
        let mut report = loop {
            let snapshot = snapshots.borrow_and_update().clone();
            if snapshot.stops_done >= ticket {
                break snapshot.stop;
            }
            let changed = tokio::time::timeout(HANGS, snapshots.changed());
            changed.await.ok()?.ok()?;
        };
        if let Some(report) = report.as_mut().filter(|report| report.emergency) {
            let kept = self.shared.permits.emergency_is_kept().await;
            report.not_kept = kept.err().map(|error| error.to_string());
        }
        report
    }
}

impl Drop for MotionHandle {
    fn drop(&mut self) {
        self.stop(ActorRank::Node, false);
        // A thread that has ended needs no order.
        let _ = self.shared.orders.put(MotionCommand::End);
        self.shared.stop.wake();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the arm's thread ended in a panic");
        }
    }
}

/// A moment's distance to an earlier one, for reports.
fn ms_since(now: ClockInstant, then: ClockInstant) -> f64 {
    now.seconds_since(then) * 1e3
}
