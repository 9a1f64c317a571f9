//! Controllers that people build, over `firmware-protocol`: a stream of goals becomes timed
//! segments, which the controller carries out and watches over by itself.
//!
//! What a goal says is done 100 ms later, so that a line that jitters does not stop the arm.
//! A hold or an emergency stop waits for nothing: it goes ahead of everything, and what the
//! controller has queued is dropped. The controller holds by itself when it hears nothing of us.

use std::time::Duration;

use firmware_protocol::message::{HelloAck, JointLimits, JointState, Knot, Message, Mode, State};

use crate::error::{BusError, DriverError};
use crate::servo_map::{JointCommand, ServoMap};
use crate::{AttachReport, BusCounts, HaltMode, ServoIdentity, TorqueOffReport, identity};
use arm::{ArmFile, ArmModel, ServoFile};
use base::clock::NodeClock;
use base::units::{ArmMeasurement, ClockInstant, ServoState};
use link::ByteLink;

mod compatibility;
mod controller_fault;
mod controller_session;
mod goal_stream;
mod segment_scheduler;

pub use controller_fault::ControllerFault;

use controller_session::ControllerSession;
use goal_stream::GoalStream;

/// From one cycle to the next.
const PERIOD: Duration = Duration::from_millis(10);

/// Time that a cycle listens.
const LISTEN: Duration = Duration::from_millis(2);

/// A state older than this is no reading.
const STALE: Duration = Duration::from_millis(100);

/// Longest time for the cycle before a motion.
const BEGIN: Duration = Duration::from_millis(50);

/// Longest time for a controller to answer HELLO, and to show its clock and its joints.
const GREETING: Duration = Duration::from_millis(1500);

/// Longest time for an arm to come to rest.
const REST: Duration = Duration::from_millis(1500);

/// The state of the goal stream and the controller together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamPhase {
    /// Not energised, or found broken since.
    Limp,
    /// At rest: the next goal begins a motion.
    Resting,
    /// Segments are on their way.
    Running,
    /// Held along the path; `drop` says that nothing of it will be carried out.
    Holding { since: ClockInstant, drop: bool },
    /// Going on after a hold.
    Resuming,
    /// The queue is being dropped.
    Flushing,
    /// An emergency stop is latched in the controller, as it was asked to.
    Stopped,
}

/// A driver for one arm with a controller of its own.
pub struct FirmwareDriver {
    arm: ArmFile,
    map: ServoMap,
    session: ControllerSession,
    stream: GoalStream,
    limits: Vec<JointLimits>,
    baud: u32,
    phase: StreamPhase,
    halt: Option<HaltMode>,
    /// Positions of the joints when torque went on: perhaps beyond a limit.
    found_urad: Vec<i32>,
    /// End of the last segment sent, in path time.
    tail_us: u32,
}

impl FirmwareDriver {
    pub fn new(arm: &ArmModel, clock: &NodeClock) -> Self {
        let map = ServoMap::new(arm);
        Self {
            arm: arm.file.clone(),
            session: ControllerSession::new(clock, map.counts()),
            stream: GoalStream::default(),
            limits: Vec::new(),
            baud: arm.file.baud,
            phase: StreamPhase::Limp,
            halt: None,
            found_urad: Vec::new(),
            tail_us: 0,
            map,
        }
    }

    pub fn counts(&self) -> &BusCounts {
        &self.session.counts
    }

    pub fn is_energised(&self) -> bool {
        !matches!(self.phase, StreamPhase::Limp | StreamPhase::Stopped) && self.halt.is_none()
    }

    /// Returns whether everything that was sent has been carried out or dropped.
    pub fn is_settled(&self) -> bool {
        match self.phase {
            StreamPhase::Limp | StreamPhase::Stopped => {
                self.session.has(State::MOVING) != Some(true)
            }
            StreamPhase::Resting => !self.stream.has_goals(),
            _ => false,
        }
    }

    pub fn halt(&mut self, halt: HaltMode) {
        if self.halt != Some(HaltMode::Emergency) {
            self.halt = Some(halt);
        }
    }

    pub async fn attach(&mut self, link: &mut dyn ByteLink) -> Result<AttachReport, DriverError> {
        self.session.forget();
        self.phase = StreamPhase::Limp;
        self.halt = None;
        self.stream = GoalStream::default();
        link.discard_input().map_err(BusError::Read)?;
        let ack = self.greet(link).await?;
        self.check_joints(ack.limits.len())?;
        let mut warnings = compatibility::check(&self.map, ack.limits.as_slice())?;
        identity::check(&self.arm, &self.identities(&ack))?;
        self.limits = ack.limits.as_slice().to_vec();
        let known = |session: &ControllerSession| {
            let state = session.state();
            state.is_some_and(|(state, at)| at.is_some() && is_measured(state))
        };
        if !self.session.until(link, GREETING, known).await? {
            return Err(ControllerFault::NoPosition.into());
        }
        let round_us = self.session.host.clock().round_trip_us();
        let round_us = round_us.ok_or_else(|| self.silent(GREETING))?;
        warnings.extend(late(round_us));
        Ok(AttachReport {
            measured: self.measured()?,
            servos: self.identities(&ack),
            warnings,
            latency: Duration::from_micros(round_us),
        })
    }

    async fn greet(&mut self, link: &mut dyn ByteLink) -> Result<HelloAck, DriverError> {
        let answered = |session: &ControllerSession| {
            session.host.paired().is_some() || session.mismatch().is_some()
        };
        self.session.until(link, GREETING, answered).await?;
        if let Some(mismatch) = self.session.mismatch() {
            return Err(mismatch.into());
        }
        let paired = self.session.host.paired().copied();
        Ok(paired.ok_or_else(|| self.silent(GREETING))?)
    }

    fn silent(&self, within: Duration) -> ControllerFault {
        ControllerFault::Silent {
            baud: self.baud,
            within_ms: within.as_millis(),
        }
    }

    /// Refuses a HELLO_ACK or a STATE of another number of joints than this arm's: one that is left out stands nowhere.
    fn check_joints(&self, device: usize) -> Result<(), ControllerFault> {
        let arm = self.map.entries.len();
        if device == arm {
            Ok(())
        } else {
            Err(ControllerFault::Joints { device, arm })
        }
    }

    fn identities(&self, ack: &HelloAck) -> Vec<ServoIdentity> {
        let torque_on = self.torque_on();
        let entries = self.map.entries.iter().zip(&ack.limits);
        entries
            .map(|(entry, limits)| ServoIdentity {
                servo: entry.name.clone(),
                model: 0,
                firmware: (ack.major, ack.minor),
                return_delay: Duration::ZERO,
                position_min_ticks: limits.position_min_urad,
                position_max_ticks: limits.position_max_urad,
                homing_offset_ticks: 0,
                phase: 0,
                torque_on,
                error_bits: 0,
            })
            .collect()
    }

    pub async fn energise(
        &mut self,
        link: &mut dyn ByteLink,
    ) -> Result<ArmMeasurement, DriverError> {
        self.phase = StreamPhase::Limp;
        self.halt = None;
        self.stream = GoalStream::new(&self.limits);
        if self.session.host.paired().is_none() {
            self.greet(link).await?;
        }
        // What went wrong before has been reported, and reset since.
        self.session.clear_errors();
        self.quiet(link).await?;
        self.session.command(link, Message::Torque(true)).await?;
        let ready = |session: &ControllerSession| {
            let state = session.state();
            state.is_some_and(|(state, at)| at.is_some() && state.mode == Mode::Idle)
        };
        if !self.session.until(link, REST, ready).await? {
            let busy = ControllerFault::Busy {
                mode: self.session.mode(),
                within_ms: REST.as_millis(),
            };
            return Err(self.broken().unwrap_or(busy).into());
        }
        let measured = self.measured()?;
        let (state, _) = self.session.state().ok_or_else(|| self.silent(REST))?;
        let joints = state.joints.iter();
        self.found_urad = joints.map(|joint| joint.measured_urad).collect();
        self.phase = StreamPhase::Resting;
        Ok(measured)
    }

    /// Brings the controller to rest with nothing queued and nothing latched.
    async fn quiet(&mut self, link: &mut dyn ByteLink) -> Result<(), DriverError> {
        let fresh = |session: &ControllerSession| session.state().is_some();
        self.session.until(link, GREETING, fresh).await?;
        match self.session.mode() {
            Mode::Estop | Mode::Fault => self.clear(link).await,
            Mode::Unpaired | Mode::Disarmed | Mode::Idle => Ok(()),
            _ => self.flush(link).await,
        }
    }

    async fn clear(&mut self, link: &mut dyn ByteLink) -> Result<(), DriverError> {
        let at_rest = ControllerSession::is_at_rest;
        self.session.until(link, REST, at_rest).await?;
        let (state, _) = self.session.state().ok_or_else(|| self.silent(REST))?;
        if state.drive_faults != 0 {
            return Err(self.latched().into());
        }
        let nonce = state.nonce;
        self.session.command(link, Message::ClearFault(nonce)).await
    }

    async fn flush(&mut self, link: &mut dyn ByteLink) -> Result<(), DriverError> {
        self.session.command(link, Message::Flush).await?;
        let idle = |session: &ControllerSession| session.mode() == Mode::Idle;
        self.session.until(link, REST, idle).await.map(|_| ())
    }

    pub async fn release(
        &mut self,
        link: &mut dyn ByteLink,
    ) -> Result<TorqueOffReport, DriverError> {
        self.phase = StreamPhase::Limp;
        self.stream = GoalStream::default();
        let result = self.limp(link).await;
        let names = self.map.entries.iter().map(|entry| entry.name.clone());
        let mut released = TorqueOffReport::default();
        match result {
            Ok(()) => released.off = names.collect(),
            Err(error @ DriverError::Bus(_)) => return Err(error),
            Err(_) => {
                let why = || ControllerFault::Unanswered("switch torque off").into();
                released.failed = names.map(|name| (name, why())).collect();
            }
        }
        Ok(released)
    }

    async fn limp(&mut self, link: &mut dyn ByteLink) -> Result<(), DriverError> {
        if matches!(self.session.mode(), Mode::Running | Mode::Parking) {
            self.session.command(link, Message::Hold).await?;
        }
        let at_rest = ControllerSession::is_at_rest;
        self.session.until(link, REST, at_rest).await?;
        // A latched controller says so, and takes torque off nevertheless.
        let told = self.session.command(link, Message::Torque(false)).await;
        let off = |session: &ControllerSession| session.has(State::TORQUE) == Some(false);
        if self.session.until(link, REST, off).await? {
            return Ok(());
        }
        told.and(Err(ControllerFault::Unanswered("switch torque off").into()))
    }

    pub(crate) async fn cycle(
        &mut self,
        link: &mut dyn ByteLink,
        command: Option<&JointCommand>,
        deadline: ClockInstant,
    ) -> Result<ArmMeasurement, DriverError> {
        let (begun, worked) = (
            self.session.clock.now(),
            self.session.clock.thread_cpu_time(),
        );
        self.session.counts.cycles += 1;
        if self.halt == Some(HaltMode::Emergency) {
            // Ahead of everything, even of reading what has arrived.
            self.send_emergency_stop();
            self.session.send(link).await?;
        } else if let Some(command) = command {
            self.take(command)?;
        } else if self.phase != StreamPhase::Limp {
            self.stream.pause();
        }
        self.session.listen(link, begun, |_| false).await?;
        let steered = self.check_controller().and_then(|()| self.steer());
        self.session.send(link).await?;
        let until = begun.after(LISTEN).min(deadline);
        self.session.listen(link, until, |_| false).await?;
        steered?;
        self.check_controller()?;
        let measured = self.measured();
        if measured.is_err() {
            self.session.count_blind(PERIOD);
        }
        let measured = measured?;
        let took = self.session.clock.now().since(begun);
        let worked = self.session.clock.thread_cpu_time().saturating_sub(worked);
        self.session.counts.cycle_time.note(took);
        self.session.counts.cycle_work.note(worked);
        Ok(measured)
    }

    /// Reads where a motion begins.
    pub async fn read_start(
        &mut self,
        link: &mut dyn ByteLink,
    ) -> Result<ArmMeasurement, DriverError> {
        let until = self.session.clock.now().after(BEGIN);
        self.cycle(link, None, until).await
    }

    fn torque_on(&self) -> bool {
        self.session.has(State::TORQUE) == Some(true)
    }

    /// Returns the contents of the last STATE, with the time at which it was true.
    fn measured(&self) -> Result<ArmMeasurement, DriverError> {
        let silent = || self.silent(STALE);
        let (state, at) = self.session.state().ok_or_else(silent)?;
        let at = at.ok_or_else(silent)?;
        if self.session.clock.now().since(at) > STALE {
            return Err(silent().into());
        }
        self.check_joints(state.joints.len())?;
        if !is_measured(state) {
            return Err(ControllerFault::NoPosition.into());
        }
        let joint = |place: usize| state.joints.at(place);
        Ok(ArmMeasurement {
            at,
            position_rad: self
                .map
                .joints(|place, servo| servo.angle_rad(joint(place).measured_urad)),
            velocity_rad_s: self
                .map
                .joints(|place, servo| speed_rad_s(servo, joint(place).velocity_urad_s)),
            servos: self.servo_states(state),
        })
    }

    fn servo_states(&self, state: &State) -> Vec<ServoState> {
        let entries = self.map.entries.iter().zip(&state.joints).enumerate();
        entries
            .map(|(place, (entry, joint))| ServoState {
                id: entry.name.id,
                position_ticks: Some(joint.measured_urad),
                load_ratio: Some(push(joint)),
                error_bits: Some(u8::from(state.drive_faults >> place & 1 == 1)),
                torque_on: Some(state.flags & State::TORQUE != 0),
                ..ServoState::default()
            })
            .collect()
    }
}

/// A drive that is so far behind its set-point pushes with all it has: five degrees.
const ALL_IT_HAS_URAD: f64 = 87_266.0;

/// A controller does not say how hard its drives push. How far they are behind their set-points
/// stands for it, so that a joint that something holds is found here as with servos.
fn push(joint: &JointState) -> f64 {
    let behind_urad = f64::from(joint.commanded_urad) - f64::from(joint.measured_urad);
    (behind_urad / ALL_IT_HAS_URAD).clamp(-1.0, 1.0)
}

/// An answer that takes longer is held back on its way.
const LATE_US: u64 = 5_000;

fn late(round_us: u64) -> Option<String> {
    (round_us >= LATE_US).then(|| {
        format!(
            "what the arm's controller says comes {:.0} ms late: its queue bridges that, but where the arm is, and that it stands, is known so much later; on an FTDI adapter set its `latency_timer` to 1 ms",
            Duration::from_micros(round_us).as_secs_f64() * 1e3
        )
    })
}

fn is_measured(state: &State) -> bool {
    state.flags & State::MEASURED != 0
}

fn speed_rad_s(servo: ServoFile, speed_urad_s: i32) -> f64 {
    f64::from(servo.sign) * f64::from(speed_urad_s) / f64::from(servo.ticks_per_turn)
        * std::f64::consts::TAU
}

/// Returns the controller's present set-points, at rest.
fn rest_knots(state: &State) -> Vec<Knot> {
    let joints = state.joints.iter();
    joints
        .map(|joint| Knot {
            position_urad: joint.commanded_urad,
            velocity_urad_s: 0,
        })
        .collect()
}
