//! Drives self-built controllers over `firmware-protocol`: a stream of goals becomes timed segments,
//! which the controller executes and supervises by itself.
//!
//! A goal is reached 100 ms after it was sent, so that jitter on the line does not stop the arm. A
//! hold or an emergency stop waits for nothing: it goes ahead of everything, and the controller's
//! queue is dropped. The controller holds by itself when it receives nothing from the node.

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

/// Duration of a cycle.
const PERIOD: Duration = Duration::from_millis(10);

/// Time for which a cycle listens.
const LISTEN_TIME: Duration = Duration::from_millis(2);

/// Largest age of a STATE that still counts as a reading.
const STATE_AGE_MAX: Duration = Duration::from_millis(100);

/// Longest time for the cycle before a motion.
const BEGIN_TIME: Duration = Duration::from_millis(50);

/// Longest time for a controller to reply to HELLO, and to report its clock and its joints.
const HELLO: Duration = Duration::from_millis(1500);

/// Longest time for an arm to come to rest.
const REST: Duration = Duration::from_millis(1500);

/// The state of the goal stream and the controller together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamPhase {
    /// Not energised, or faulty since.
    Limp,
    /// At rest: the next goal begins a motion.
    Resting,
    /// Segments are on their way.
    Running,
    /// Held along the path; `drop` if the rest of the path is to be dropped.
    Holding { since: ClockInstant, drop: bool },
    /// Going on after a hold.
    Resuming,
    /// The queue is being dropped.
    Flushing,
    /// An emergency stop is latched in the controller, as requested.
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
    /// Positions of the joints when torque was switched on; they may be beyond a limit.
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
        let has_position = |session: &ControllerSession| {
            let state = session.state();
            state.is_some_and(|(state, at)| at.is_some() && is_measured(state))
        };
        if !self.session.until(link, HELLO, has_position).await? {
            return Err(ControllerFault::NoPosition.into());
        }
        let round_us = self.session.host.clock().round_trip_us();
        let round_us = round_us.ok_or_else(|| self.silent(HELLO))?;
        warnings.extend(latency_warning(round_us));
        Ok(AttachReport {
            measured: self.measured()?,
            servos: self.identities(&ack),
            warnings,
            latency: Duration::from_micros(round_us),
        })
    }

    async fn greet(&mut self, link: &mut dyn ByteLink) -> Result<HelloAck, DriverError> {
        let has_replied = |session: &ControllerSession| {
            session.host.paired().is_some() || session.mismatch().is_some()
        };
        self.session.until(link, HELLO, has_replied).await?;
        if let Some(mismatch) = self.session.mismatch() {
            return Err(mismatch.into());
        }
        let paired = self.session.host.paired().copied();
        Ok(paired.ok_or_else(|| self.silent(HELLO))?)
    }

    fn silent(&self, within: Duration) -> ControllerFault {
        ControllerFault::Silent {
            baud: self.baud,
            within_ms: within.as_millis(),
        }
    }

    /// Refuses a HELLO_ACK or a STATE with another number of joints than this arm's: a missing joint
    /// would have no position.
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
                gain_p: None,
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
        // Earlier errors have been reported and reset.
        self.session.clear_errors();
        self.bring_to_rest(link).await?;
        self.session.command(link, Message::Torque(true)).await?;
        let is_ready = |session: &ControllerSession| {
            let state = session.state();
            state.is_some_and(|(state, at)| at.is_some() && state.mode == Mode::Idle)
        };
        if !self.session.until(link, REST, is_ready).await? {
            let busy = ControllerFault::Busy {
                mode: self.session.mode(),
                within_ms: REST.as_millis(),
            };
            return Err(self.find_fault().unwrap_or(busy).into());
        }
        let measured = self.measured()?;
        let (state, _) = self.session.state().ok_or_else(|| self.silent(REST))?;
        let joints = state.joints.iter();
        self.found_urad = joints.map(|joint| joint.measured_urad).collect();
        self.phase = StreamPhase::Resting;
        Ok(measured)
    }

    /// Brings the controller to rest with nothing queued and nothing latched.
    async fn bring_to_rest(&mut self, link: &mut dyn ByteLink) -> Result<(), DriverError> {
        let has_state = |session: &ControllerSession| session.state().is_some();
        self.session.until(link, HELLO, has_state).await?;
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
        let is_idle = |session: &ControllerSession| session.mode() == Mode::Idle;
        self.session.until(link, REST, is_idle).await.map(|_| ())
    }

    pub async fn release(
        &mut self,
        link: &mut dyn ByteLink,
    ) -> Result<TorqueOffReport, DriverError> {
        self.phase = StreamPhase::Limp;
        self.stream = GoalStream::default();
        let result = self.switch_torque_off(link).await;
        let names = self.map.entries.iter().map(|entry| entry.name.clone());
        let mut released = TorqueOffReport::default();
        match result {
            Ok(()) => released.off = names.collect(),
            Err(error @ DriverError::Bus(_)) => return Err(error),
            Err(_) => {
                let error = || ControllerFault::Unanswered("switch torque off").into();
                released.failed = names.map(|name| (name, error())).collect();
            }
        }
        Ok(released)
    }

    async fn switch_torque_off(&mut self, link: &mut dyn ByteLink) -> Result<(), DriverError> {
        if matches!(self.session.mode(), Mode::Running | Mode::Parking) {
            self.session.command(link, Message::Hold).await?;
        }
        let at_rest = ControllerSession::is_at_rest;
        self.session.until(link, REST, at_rest).await?;
        // A latched controller refuses the command, but takes torque off nevertheless.
        let result = self.session.command(link, Message::Torque(false)).await;
        let is_off = |session: &ControllerSession| session.has(State::TORQUE) == Some(false);
        if self.session.until(link, REST, is_off).await? {
            return Ok(());
        }
        result.and(Err(ControllerFault::Unanswered("switch torque off").into()))
    }

    pub(crate) async fn cycle(
        &mut self,
        link: &mut dyn ByteLink,
        command: Option<&JointCommand>,
        deadline: ClockInstant,
    ) -> Result<ArmMeasurement, DriverError> {
        let (began, cpu) = (
            self.session.clock.now(),
            self.session.clock.thread_cpu_time(),
        );
        self.session.counts.cycles += 1;
        if self.halt == Some(HaltMode::Emergency) {
            // Ahead of everything, even of reading what has been received.
            self.send_emergency_stop();
            self.session.send(link).await?;
        } else if let Some(command) = command {
            self.take(command)?;
        } else if self.phase != StreamPhase::Limp {
            self.stream.pause();
        }
        self.session.listen(link, began, |_| false).await?;
        let steer_result = self.check_controller().and_then(|()| self.steer());
        self.session.send(link).await?;
        let until = began.after(LISTEN_TIME).min(deadline);
        self.session.listen(link, until, |_| false).await?;
        steer_result?;
        self.check_controller()?;
        let measured = self.measured();
        if measured.is_err() {
            self.session.count_blind(PERIOD);
        }
        let measured = measured?;
        let elapsed = self.session.clock.now().since(began);
        let cpu = self.session.clock.thread_cpu_time().saturating_sub(cpu);
        self.session.counts.cycle_time.note(elapsed);
        self.session.counts.cycle_work.note(cpu);
        Ok(measured)
    }

    /// Reads where a motion begins.
    pub async fn read_start(
        &mut self,
        link: &mut dyn ByteLink,
    ) -> Result<ArmMeasurement, DriverError> {
        let until = self.session.clock.now().after(BEGIN_TIME);
        self.cycle(link, None, until).await
    }

    fn torque_on(&self) -> bool {
        self.session.has(State::TORQUE) == Some(true)
    }

    /// Returns the contents of the last STATE, with the time at which it was true.
    fn measured(&self) -> Result<ArmMeasurement, DriverError> {
        let silent = || self.silent(STATE_AGE_MAX);
        let (state, at) = self.session.state().ok_or_else(silent)?;
        let at = at.ok_or_else(silent)?;
        if self.session.clock.now().since(at) > STATE_AGE_MAX {
            return Err(silent().into());
        }
        self.check_joints(state.joints.len())?;
        if !is_measured(state) {
            return Err(ControllerFault::NoPosition.into());
        }
        let joint = |index: usize| state.joints.at(index);
        Ok(ArmMeasurement {
            at,
            position_rad: self
                .map
                .joints(|index, servo| servo.angle_rad(joint(index).measured_urad)),
            velocity_rad_s: self
                .map
                .joints(|index, servo| speed_rad_s(servo, joint(index).velocity_urad_s)),
            servos: self.servo_states(state),
        })
    }

    fn servo_states(&self, state: &State) -> Vec<ServoState> {
        let entries = self.map.entries.iter().zip(&state.joints).enumerate();
        entries
            .map(|(index, (entry, joint))| ServoState {
                id: entry.name.id,
                position_ticks: Some(joint.measured_urad),
                load_ratio: Some(estimate_load(joint)),
                error_bits: Some(u8::from(state.drive_faults >> index & 1 == 1)),
                torque_on: Some(state.flags & State::TORQUE != 0),
                ..ServoState::default()
            })
            .collect()
    }
}

/// Lag behind its set-point at which a drive pushes with its full torque: five degrees.
const FULL_LOAD_LAG_URAD: f64 = 87_266.0;

/// Estimates the load of a drive, which a controller does not report, from its lag behind the
/// set-point, so that a blocked joint is found as with servos.
fn estimate_load(joint: &JointState) -> f64 {
    let lag_urad = f64::from(joint.commanded_urad) - f64::from(joint.measured_urad);
    (lag_urad / FULL_LOAD_LAG_URAD).clamp(-1.0, 1.0)
}

/// Round trip from which the latency is warned of.
const LATENCY_WARN_US: u64 = 5_000;

fn latency_warning(round_us: u64) -> Option<String> {
    (round_us >= LATENCY_WARN_US).then(|| {
        format!(
            "messages from the arm's controller arrive {:.0} ms late. This does not affect motion, only how soon the arm's position is known. On an FTDI adapter, set `latency_timer` to 1 ms",
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
