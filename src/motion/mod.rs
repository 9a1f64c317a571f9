//! One thread owns one port: it runs, holds and stops the arms on it, and publishes their snapshots. Nothing
//! else touches the bus.
//!
//! It knows nothing of tools, MCP, JSON or planning: it receives proofs and stop requests. A stop
//! request is an atomic and a wake-up, so it waits for no lock, queue or plan.

mod active_motion;
mod active_stop;
mod bus_health;
mod bus_thread;
mod contact_detection;
mod drawing_deviation;
mod finish;
mod frame_timestamps;
mod held_pose;
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
mod touch_force;

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use serde::{Serialize, Serializer};
use tokio::sync::{oneshot, watch};

use arm::ArmModel;
use base::clock::NodeClock;
use base::units::{ArmMeasurement, ClockInstant, JointVector};
use driver::{ServoIdentity, TorqueOffReport};
use gate::{CheckedTrajectory, DepthTrimChange, ExecutionProgress, HoldAt};
use link::{ByteLink, LinkError};
use permit::{ActorRank, MotionPermit, PermitRegistry, StopLatch};

pub use bus_thread::BusThread;
pub use driver::{BusCounts, DurationHistogram, ServoCounts};
pub use gate::DepthTrim;
use mailbox::CommandMailbox;
pub use realtime_priority::set_realtime_priority;
pub use servo_health::{HealthAction, ServoHealth, TOO_HOT_C};
use stop_signal::StopSignal;

pub use drawing_deviation::DrawingDeviation;
pub use motion_error::MotionError;
pub use motion_release::MotionRelease;
pub use tick::STARVED;
pub use tick_queue::{MotionTick, TickQueue};

/// Opens the port, on the thread that will own it; called again after the cable was unplugged.
pub type PortOpener = Box<dyn Fn(&NodeClock) -> Result<Box<dyn ByteLink>, LinkError> + Send>;

/// A callback that the arm's thread calls once a tick, as long as its loop runs. It must not block.
pub type Heartbeat = Box<dyn Fn() + Send + Sync>;

/// A handle to an arm's loop on its thread. Dropping it stops the arm and ends the loop; the thread ends with its last one.
pub struct MotionHandle {
    shared: Arc<MotionShared>,
    snapshots: watch::Receiver<Snapshot>,
    /// Disconnected once the loop has ended and let go of the port.
    ended: Mutex<Receiver<()>>,
}

/// Resources of an arm that its handle and its thread share.
struct MotionShared {
    arm: Arc<ArmModel>,
    clock: NodeClock,
    permits: Arc<PermitRegistry>,
    commands: CommandMailbox<MotionCommand>,
    stop: Arc<StopSignal>,
    heartbeat: OnceLock<Heartbeat>,
    /// Copies of the ticks for a recording.
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
    /// Stopped; needs `reset`.
    Stopped,
    /// Something failed; the snapshot says what.
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
    /// How much deeper than planned the pen of the present drawing goes; `None` where its scene allows no trim.
    pub depth_trim: Option<DepthTrim>,
    /// `true` while it is held only because an arm that moves together with it is.
    pub is_held_with_other: bool,
    /// `true` if the torque of any servo is known to be on.
    pub energised: bool,
    /// `true` if no motion is under way and the arm was not seen to stand: a joint moves, or the last
    /// stop could not be read back.
    pub is_unsteady: bool,
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
    /// Lateness of ticks while the arm moved.
    pub lateness: DurationHistogram,
    /// Part of it by which the machine woke the sleeping thread late; the rest of the lateness is cycles that overran.
    pub woken_late: DurationHistogram,
    /// `true` if the arm's thread has a real-time priority.
    pub is_ahead: bool,
    /// Warnings for an operator that do not keep the arm from moving.
    pub warnings: Vec<String>,
    /// Number of stop requests that have been completed.
    pub stops_done: u64,
    /// The last stop.
    pub stop: Option<StopReport>,
    /// Number of the last request that it reports.
    pub stop_serial: u64,
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
    /// `true` if the arm stood, pen up, in the middle of a held motion, which the stop ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub was_held: bool,
    /// Time from the request to the first frame of the stop; `None` if the arm was not moving.
    #[serde(serialize_with = "round_to_thousandth")]
    pub first_frame_ms: Option<f64>,
    /// Time from the request to standstill as read back, including the lift.
    #[serde(serialize_with = "round_to_thousandth")]
    pub standstill_ms: Option<f64>,
    /// Part of that time in which the tip was lifted straight off the sheet; `None` without a lift.
    #[serde(serialize_with = "round_to_thousandth")]
    pub lift_ms: Option<f64>,
    /// Speed of the fastest joint at the end, from the joints' positions; `None` without readings.
    #[serde(serialize_with = "round_to_thousandth")]
    pub speed_rad_s: Option<f64>,
    /// `true` if standstill was read back. Otherwise this stop is not a success.
    pub verified: bool,
    /// `true` if the tip was lifted on the way.
    pub lifted: bool,
    /// The arm of the same scene whose stop or fault made this one stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbour: Option<String>,
    /// What an operator's stop lacks that could not be saved to disk, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_kept: Option<String>,
}

/// Serializes a measurement to three decimals: more digits are noise.
fn round_to_thousandth<S: Serializer>(value: &Option<f64>, into: S) -> Result<S::Ok, S::Error> {
    value
        .map(|value| (value * 1e3).round() / 1e3)
        .serialize(into)
}

impl StopReport {
    /// Returns the time from the request to standstill without the lift: braking along the path, and
    /// reading back that the arm stands. `None` where that could not be verified.
    #[must_use]
    pub fn braked_ms(&self) -> Option<f64> {
        Some(self.standstill_ms? - self.lift_ms.unwrap_or(0.0))
    }
}

/// The outcome of a motion.
#[derive(Debug)]
pub enum MotionOutcome {
    /// At its end, read back.
    Reached {
        /// The reading at each visited point, in order.
        visits: Vec<VisitReading>,
        /// Where the joints were read along the path, if [`MotionHandle::run_read`] ran it.
        readings: Vec<PathReading>,
        /// The largest distance of a joint from the end of its path.
        off_rad: f64,
        /// Joints that hang farther from it than they may otherwise, by no more than gravity explains.
        sags: Vec<JointSagging>,
        /// The greatest deviation of the joints from their goals while the tip drew; `None` if it drew nothing.
        deviation: Option<DrawingDeviation>,
    },
    /// A stop ended it.
    Stopped(StopReport),
    /// It did not begin, and nothing moved.
    Refused(MotionError),
    /// It failed on the way, for this reason. The arm holds.
    Faulted(String),
}

/// A joint that hangs from the end of its path with gravity.
#[derive(Clone, Debug, PartialEq)]
pub struct JointSagging {
    /// The joint.
    pub joint: String,
    /// By how much.
    pub rad: f64,
}

/// A reading while the arm moves along its path.
#[derive(Clone, Copy, Debug)]
pub struct PathReading {
    /// The sample that was sent last.
    pub sample: usize,
    /// The measured joint angles.
    pub position_rad: JointVector,
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
    /// Force for each millimetre by which the pen of a contact gave way, where the arm's loads tell it.
    pub give_n_per_mm: Option<f64>,
    /// The goals that were sent, without the lead that the servos' figures explain.
    pub goal_rad: JointVector,
}

/// An arm's action at a visited point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum VisitKind {
    /// The arm stood over the point.
    Dwell,
    /// The tip touched after it had moved freely.
    Contact,
    /// The tip touched before it had moved freely: where the contact began is not known.
    EarlyContact,
    /// The tip came down to the end of its probe and felt nothing.
    NoContact {
        /// Least force that it would have felt.
        least_n: f64,
    },
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
        /// Room for readings along the path.
        readings: Vec<PathReading>,
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
    Trim {
        change: DepthTrimChange,
        done: oneshot::Sender<Result<DepthTrim, MotionError>>,
    },
    Release {
        done: oneshot::Sender<Result<TorqueOffReport, MotionError>>,
    },
    End,
}

/// Longest duration of a stop before it is reported as unverified; the lift of a needle is slow and
/// is added.
pub const STOP_LIMIT: Duration = Duration::from_secs(3);

/// A thread that publishes nothing for this long during a stop counts as hung.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

impl MotionHandle {
    /// Starts a thread for an arm that has its port to itself; see [`BusThread::attach`].
    ///
    /// # Errors
    /// As [`BusThread::attach`].
    pub fn start(
        arm: Arc<ArmModel>,
        clock: NodeClock,
        permits: Arc<PermitRegistry>,
        open: PortOpener,
    ) -> Result<Self, MotionError> {
        let thread = BusThread::start(&arm.file.name)?;
        thread.attach(arm, clock, permits, open)
    }

    /// Returns the arm.
    #[must_use]
    pub fn arm(&self) -> &Arc<ArmModel> {
        &self.shared.arm
    }

    /// Returns the clock of the arm's thread.
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

    /// Returns a snapshot from now on: a simulated arm at rest is read only when something wakes it, so its last reading may
    /// be old where other arms share its clock. The latest one if the thread does not respond.
    pub async fn fresh_snapshot(&self) -> Snapshot {
        let mut snapshots = self.snapshots.clone();
        snapshots.mark_unchanged();
        self.shared.stop.wake();
        // Without a change there is nothing fresher to return.
        let _ = tokio::time::timeout(REPLY_TIMEOUT, snapshots.changed()).await;
        self.snapshot()
    }

    /// Returns a receiver of all further snapshots.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Snapshot> {
        self.snapshots.clone()
    }

    /// Returns the queue of copies of its ticks, for a recording.
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

    /// Returns the same count for a thread that has no handle, such as a planner's.
    #[must_use]
    pub fn stop_counter(&self) -> StopCounter {
        StopCounter(Arc::clone(&self.shared.stop))
    }

    /// Runs a motion and spends its proof. It is refused if more than `seen_stops` stops were
    /// requested, because one came while the motion was planned. The reply comes when the motion has
    /// ended, however it ended; dropping the receiver does not stop the motion.
    pub fn run(
        &self,
        proof: CheckedTrajectory,
        seen_stops: u64,
    ) -> oneshot::Receiver<MotionOutcome> {
        self.run_released(proof, seen_stops, MotionRelease::whole())
    }

    /// As [`MotionHandle::run`], but no further than `release` allows. At the end of the release real
    /// arms hold and simulated time stands still.
    pub fn run_released(
        &self,
        proof: CheckedTrajectory,
        seen_stops: u64,
        release: MotionRelease,
    ) -> oneshot::Receiver<MotionOutcome> {
        self.send_run(proof, seen_stops, release, Vec::new())
    }

    /// As [`MotionHandle::run_released`], and keeps a reading of the joints for each sample. The room for them is made here: the
    /// arm's thread allocates nothing.
    pub fn run_read(
        &self,
        proof: CheckedTrajectory,
        seen_stops: u64,
        release: MotionRelease,
    ) -> oneshot::Receiver<MotionOutcome> {
        let readings = Vec::with_capacity(proof.trajectory().samples.len());
        self.send_run(proof, seen_stops, release, readings)
    }

    fn send_run(
        &self,
        proof: CheckedTrajectory,
        seen_stops: u64,
        release: MotionRelease,
        readings: Vec<PathReading>,
    ) -> oneshot::Receiver<MotionOutcome> {
        let (done, reply) = oneshot::channel();
        let command = MotionCommand::Run {
            proof: Box::new(proof),
            seen_stops,
            release,
            readings,
            done,
        };
        if let Err(MotionCommand::Run { done, .. }) = self.shared.commands.put(command) {
            // This function still owns the receiver.
            let _ = done.send(MotionOutcome::Refused(MotionError::Ended));
        }
        self.shared.stop.wake();
        reply
    }

    /// Holds the motion under way: at the end of the current stroke, or at once. The reply says whether
    /// there is a motion to hold; [`MotionState::Held`] says when it stands.
    pub fn hold(&self, at: HoldAt) -> oneshot::Receiver<Result<(), MotionError>> {
        self.send_command(|done| MotionCommand::Hold { at, done })
    }

    /// Resumes a held motion, if it is allowed now and the arm is where it was.
    pub fn resume(&self, permit: MotionPermit) -> oneshot::Receiver<Result<(), MotionError>> {
        self.send_command(|done| MotionCommand::Resume { permit, done })
    }

    /// Takes torque off every servo: **the arm drops**. Refused unless the arm stands still with no
    /// motion under way. Motion needs an operator's reset afterwards.
    pub fn release(&self) -> oneshot::Receiver<Result<TorqueOffReport, MotionError>> {
        self.send_command(|done| MotionCommand::Release { done })
    }

    /// Changes how much deeper than planned the pen of the drawing under way goes. It stays so until the job ends.
    pub fn change_depth_trim(
        &self,
        change: DepthTrimChange,
    ) -> oneshot::Receiver<Result<DepthTrim, MotionError>> {
        self.send_command(|done| MotionCommand::Trim { change, done })
    }

    /// Sends a command. If the thread has ended, the command is dropped, and its reply with it.
    fn send_command<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> MotionCommand,
    ) -> oneshot::Receiver<T> {
        let (done, reply) = oneshot::channel();
        let _ = self.shared.commands.put(command(done));
        self.shared.stop.wake();
        reply
    }

    /// Sets the callback that the arm's thread calls once a tick. Only the first one is kept.
    pub fn set_heartbeat(&self, heartbeat: Heartbeat) {
        let _ = self.shared.heartbeat.set(heartbeat);
    }

    /// Returns the number of deliberate stops: by a person, or by a planner with its tool.
    #[must_use]
    pub fn deliberate_stops(&self) -> u64 {
        self.shared.stop.deliberate_count()
    }

    /// Requests a stop and returns at once; the ticket is for [`MotionHandle::stopped`]. An emergency
    /// stop is latched by then, even if the arm's thread no longer responds.
    pub fn stop(&self, by: ActorRank, emergency: bool) -> u64 {
        let now = self.shared.clock.now();
        // The signal first: the frame must not wait for a latch.
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
    /// arm stops, but may still be parked.
    pub fn abandon(&self) -> u64 {
        self.shared
            .stop
            .request(ActorRank::Planner, false, self.shared.clock.now())
    }

    /// Ends what moves for a call that can no longer be identified, and whatever arrived before this. An arm that stands needs no
    /// reset afterwards.
    pub fn cancel(&self) -> u64 {
        self.shared
            .stop
            .cancel(ActorRank::Planner, false, self.shared.clock.now())
    }

    /// Waits until a stop is completed, and an operator's until it is saved to disk too.
    ///
    /// `None` when the arm's thread has ended or hangs, so that nothing was verified.
    pub async fn stopped(&self, ticket: u64) -> Option<StopReport> {
        let mut snapshots = self.snapshots.clone();
        let mut report = loop {
            let snapshot = snapshots.borrow_and_update().clone();
            if snapshot.stops_done >= ticket {
                break snapshot.stop;
            }
            let changed = tokio::time::timeout(REPLY_TIMEOUT, snapshots.changed());
            changed.await.ok()?.ok()?;
        };
        let is_operators =
            |report: &&mut StopReport| report.emergency || report.by == ActorRank::Operator;
        if let Some(report) = report.as_mut().filter(is_operators) {
            let saved = self.shared.permits.orders_are_kept().await;
            report.not_kept = saved.err().map(|error| error.consequence());
        }
        report
    }
}

impl Drop for MotionHandle {
    fn drop(&mut self) {
        self.stop(ActorRank::Node, false);
        // A thread that has ended needs no command.
        let _ = self.shared.commands.put(MotionCommand::End);
        self.shared.stop.wake();
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        // An error is what is waited for: the loop sends nothing.
        let _ = ended.recv();
    }
}

/// Returns the milliseconds since an earlier instant, for reports.
fn ms_since(now: ClockInstant, earlier: ClockInstant) -> f64 {
    now.seconds_since(earlier) * 1e3
}
