//! The device side as a state machine: bytes, instants and measurements in, set-points and bytes out.
//!
//! Nothing here reads a clock, sleeps, allocates or uses floating point. A firmware calls
//! [`Device::receive`] with the bytes from its UART, [`Device::tick`] at a steady rate with the
//! measurements of its drives, and sends what [`Device::transmit`] returns.
//!
//! Whatever arrives, the machine guarantees: no set-point outside a joint's range; no speed above
//! its limit; acceleration along a path within `acceleration_max`, within twice that while a hold
//! takes effect or ends; an emergency stop brakes every joint at its `stop` rate from the next tick on.

mod brake;
mod command;
mod config;
mod curve;
mod limits;
mod path;
mod segment;

pub use config::{
    ACCELERATION_MAX_URAD_S2, ACCELERATION_MIN_URAD_S2, ConfigError, DeviceConfig,
    POSITION_MAX_URAD, STOP_TIME_MAX_S, TICK_MAX_US, TICK_MIN_US, VELOCITY_MAX_URAD_S,
};

use crate::frame::{Decoder, Received};
use crate::message::{
    Cause, CommandResult, Hello, HelloAck, JointLimits, JointState, Knot, Log, LostHost, Message,
    MessageError, Mode, State, TimeResp, kind,
};
use crate::ring::Ring;
use crate::{Joints, PROTOCOL_MAJOR, PROTOCOL_MINOR, QUEUE_DEPTH, schema};
use brake::Brake;
use path::{Path, Step};

/// Silence of the host after which the arm is held, in microseconds: three missed beats.
pub const DEADMAN_US: u32 = 150_000;

/// Silence of the host after which its [`LostHost`] policy is carried out, in microseconds.
pub const LOST_HOST_US: u32 = 1_000_000;

/// Interval between two BEAT messages of a device, in microseconds.
pub const BEAT_US: u32 = 50_000;

/// Least time between the arrival of a segment and its beginning, in microseconds.
pub const LEAD_US: u32 = 20_000;

/// Largest difference between a segment's stated beginning and the end of the previous one, in microseconds.
pub const JOIN_US: u32 = 1_000;

/// Longest time ahead that a motion may be anchored, in microseconds.
pub const AHEAD_MAX_US: u32 = 2_000_000;

/// Largest distance of an anchor from a joint's commanded position, in microradians.
pub const ANCHOR_URAD: u32 = 5_000;

/// Shortest segment, in microseconds; in a shorter one, rounding to microradians would look like acceleration.
pub const DURATION_MIN_US: u16 = 5_000;

/// Longest pause between ticks, in microseconds; after a longer one the arm is held rather than made to catch up.
pub const STALL_US: u32 = 20_000;

/// Microseconds in a second.
const SECOND_US: i64 = 1_000_000;

/// Number of bytes that can wait to be sent. A frame that does not fit is dropped: everything a device
/// sends is either repeated later or requested again.
const OUTBOX_BYTES: usize = 1024;

/// Readings of the drives, passed to every tick.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drives {
    /// Measured positions and speeds; `None` until all of them are known.
    pub measured: Option<Joints<Knot>>,
    /// One bit for each joint whose drive has failed.
    pub faults: u16,
}

/// Orders to the drives until the next tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setpoints {
    /// Set while the drives hold their joints.
    pub torque: bool,
    /// Position and speed of each joint. With torque off these follow the measurements, so that switching
    /// torque on never moves the arm.
    pub joints: Joints<Knot>,
}

/// Treatment of the queue after a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterStop {
    Keep,
    Drop,
}

/// The device side of one session after another.
#[derive(Debug, Clone)]
pub struct Device {
    config: DeviceConfig,
    decoder: Decoder,
    outbox: Ring<u8, OUTBOX_BYTES>,
    path: Path,
    brake: Brake,
    drives: Drives,
    mode: Mode,
    cause: Cause,
    after_stop: AfterStop,
    parking: bool,
    torque: bool,
    paired: bool,
    lost_host: LostHost,
    lost_host_handled: bool,
    boot_id: u32,
    clock_us: u32,
    silence_us: u32,
    since_beat_us: u32,
    since_state_us: u32,
    epoch: u16,
    next_index: u16,
    latches: u32,
    nonce: u32,
    ignored: u16,
    command: u8,
    result: CommandResult,
    sequence: u8,
}

impl Device {
    /// Creates a device that has just started: torque off, no session, queue empty.
    ///
    /// `boot_id` must differ from boot to boot; `now_us` is the device's clock.
    pub fn new(config: DeviceConfig, boot_id: u32, now_us: u32) -> Result<Self, ConfigError> {
        config.check()?;
        let joints = config.limits.len();
        Ok(Self {
            decoder: Decoder::new(),
            outbox: Ring::new(0),
            path: Path::new(joints, now_us),
            brake: Brake::default(),
            drives: Drives::default(),
            mode: Mode::Unpaired,
            cause: Cause::None,
            after_stop: AfterStop::Keep,
            parking: false,
            torque: false,
            paired: false,
            lost_host: LostHost::Hold,
            lost_host_handled: false,
            boot_id,
            clock_us: now_us,
            silence_us: 0,
            since_beat_us: 0,
            since_state_us: 0,
            epoch: low_half(boot_id),
            next_index: 0,
            latches: 0,
            nonce: 0,
            ignored: 0,
            command: 0,
            result: CommandResult::Done,
            sequence: 0,
            config,
        })
    }

    /// Takes bytes off the wire. An emergency stop in them takes effect before this returns.
    pub fn receive(&mut self, bytes: &[u8], now_us: u32) {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.decoder.take(&mut rest) {
                Received::Nothing => {}
                Received::Estop => self.emergency_stop(),
                Received::Frame(frame) => {
                    let (kind, sequence) = (frame.kind, frame.sequence);
                    match Message::decode(&frame) {
                        Ok(message) => self.dispatch(&message, sequence, now_us),
                        // A HELLO of another major version is answered, and refused.
                        Err(MessageError::Version(_)) if kind == kind::HELLO => {
                            self.hello(None, sequence);
                        }
                        Err(_) => self.ignored = self.ignored.wrapping_add(1),
                    }
                }
            }
        }
    }

    /// Advances time and returns the set-points until the next call. Call it every `tick_us` of the configuration;
    /// after a pause of more than [`STALL_US`] the arm is held, not made to catch up.
    pub fn tick(&mut self, now_us: u32, drives: &Drives) -> Setpoints {
        let elapsed_us = now_us.wrapping_sub(self.clock_us);
        self.clock_us = now_us;
        self.observe(drives);
        self.watch_host(elapsed_us);
        let step_us = self.watch_ticks(elapsed_us);
        self.advance(step_us);
        self.report(elapsed_us);
        self.setpoints()
    }

    /// Copies bytes that wait to be sent into `out` and returns their number.
    pub fn transmit(&mut self, out: &mut [u8]) -> usize {
        self.outbox.take(out)
    }

    /// Stops at once, as ESTOP does; for a switch wired to the controller.
    pub fn emergency_stop(&mut self) {
        self.latch(Mode::Estop, Cause::Estop);
    }

    /// Sends a line for people.
    pub fn log(&mut self, log: &Log) {
        self.send(&Message::Log(*log));
    }

    /// Returns the device's mode.
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the reason why the device last left normal running.
    pub const fn cause(&self) -> Cause {
        self.cause
    }

    /// Returns the set-points as of the last tick.
    pub fn setpoints(&self) -> Setpoints {
        let joints = if self.is_latched() {
            self.brake.now()
        } else {
            self.path.scaled()
        };
        Setpoints {
            torque: self.torque,
            joints,
        }
    }

    fn limits(&self) -> &Joints<JointLimits> {
        &self.config.limits
    }

    fn is_latched(&self) -> bool {
        matches!(self.mode, Mode::Estop | Mode::Fault)
    }

    fn is_moving(&self) -> bool {
        match self.mode {
            Mode::Running | Mode::Stopping | Mode::Parking => true,
            Mode::Estop | Mode::Fault => !self.brake.at_rest(),
            _ => false,
        }
    }

    fn dispatch(&mut self, message: &Message, sequence: u8, now_us: u32) {
        match message {
            Message::Hello(hello) => self.hello(Some(*hello), sequence),
            Message::Beat(_) => self.note_host(),
            Message::TimeReq(token) => {
                self.send(&Message::TimeResp(TimeResp {
                    token: *token,
                    received_us: now_us,
                    sent_us: now_us,
                }));
            }
            Message::Segment(segment) => {
                let ack = self.segment(segment);
                self.send(&Message::SegmentAck(ack));
            }
            Message::Estop => self.emergency_stop(),
            Message::Hold | Message::Resume | Message::Flush | Message::Park => {
                self.command(message, sequence);
            }
            Message::ClearFault(_) | Message::Torque(_) => self.command(message, sequence),
            _ => self.ignored = self.ignored.wrapping_add(1),
        }
    }

    /// Answers a HELLO: opens a session for a host of this version, and refuses to arm for any other.
    fn hello(&mut self, hello: Option<Hello>, sequence: u8) {
        let hello = hello.filter(|hello| hello.major == PROTOCOL_MAJOR);
        self.paired = hello.is_some();
        self.lost_host = hello.map_or(LostHost::Hold, |hello| hello.lost_host);
        self.command = sequence;
        self.result = if self.paired {
            CommandResult::Done
        } else {
            CommandResult::WrongVersion
        };
        self.note_host();
        self.new_epoch();
        self.stop(AfterStop::Drop, Cause::Hello);
        if matches!(self.mode, Mode::Unpaired | Mode::Disarmed) {
            self.mode = self.resting_mode();
        }
        let ack = self.hello_ack();
        self.send(&Message::HelloAck(ack));
    }

    fn hello_ack(&self) -> HelloAck {
        HelloAck {
            major: PROTOCOL_MAJOR,
            minor: PROTOCOL_MINOR,
            queue_depth: u8::try_from(QUEUE_DEPTH).unwrap_or(u8::MAX),
            schema: schema::SCHEMA_HASH,
            boot_id: self.boot_id,
            epoch: self.epoch,
            reset_cause: self.config.reset_cause,
            tick_us: self.config.tick_us,
            firmware: self.config.firmware,
            limits: self.config.limits,
        }
    }

    fn note_host(&mut self) {
        self.silence_us = 0;
        self.lost_host_handled = false;
    }

    /// Makes everything that is still on the wire stale.
    fn new_epoch(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        self.next_index = 0;
    }

    /// Returns the mode in which nothing moves and nothing is pending.
    fn resting_mode(&self) -> Mode {
        match (self.torque, self.paired) {
            (true, _) => Mode::Idle,
            (false, true) => Mode::Disarmed,
            (false, false) => Mode::Unpaired,
        }
    }

    /// Begins to decelerate along the path, or marks an arm at rest as stopped.
    fn stop(&mut self, after_stop: AfterStop, cause: Cause) {
        match (self.mode, after_stop) {
            (Mode::Running | Mode::Parking, _) => self.mode = Mode::Stopping,
            (Mode::Stopping, AfterStop::Drop) => {}
            (Mode::Idle, AfterStop::Keep) => self.mode = Mode::Held,
            (Mode::Held, AfterStop::Drop) => {
                self.path.drop_queue();
                self.mode = Mode::Stopped;
            }
            _ => return,
        }
        self.after_stop = after_stop;
        self.cause = cause;
    }

    /// Brakes every joint from its present state, and latches until CLEAR_FAULT.
    fn latch(&mut self, mode: Mode, cause: Cause) {
        if self.is_latched() {
            return;
        }
        self.brake = Brake::begin(&self.path.scaled(), &self.config.limits);
        self.path.drop_queue();
        self.mode = mode;
        self.cause = cause;
        self.parking = false;
        self.latches = self.latches.wrapping_add(1);
        self.nonce = nonce(self.boot_id, self.latches);
        self.new_epoch();
    }

    fn observe(&mut self, drives: &Drives) {
        let joints = self.config.limits.len();
        self.drives = *drives;
        self.drives.measured = drives.measured.filter(|measured| measured.len() == joints);
        if drives.faults != 0 && self.torque {
            self.latch(Mode::Fault, Cause::Drive);
        }
    }

    /// Acts as a dead-man's switch: holds the arm after three missed beats, and carries out the host's
    /// [`LostHost`] policy after a second.
    fn watch_host(&mut self, elapsed_us: u32) {
        self.silence_us = self.silence_us.saturating_add(elapsed_us);
        if !self.torque || self.is_latched() || self.lost_host_handled {
            return;
        }
        if self.silence_us > DEADMAN_US {
            self.stop(AfterStop::Keep, Cause::Deadman);
        }
        if self.silence_us > LOST_HOST_US && matches!(self.mode, Mode::Held | Mode::Stopped) {
            self.handle_lost_host();
        }
    }

    fn handle_lost_host(&mut self) {
        self.lost_host_handled = true;
        self.cause = Cause::Deadman;
        match self.lost_host {
            LostHost::Hold => {}
            LostHost::Park => self.begin_park(),
            LostHost::TorqueOff => self.torque_off(),
        }
    }

    /// Returns the time by which the path may advance. Holds the arm if the pause between ticks was too long.
    fn watch_ticks(&mut self, elapsed_us: u32) -> u32 {
        if elapsed_us <= STALL_US {
            return elapsed_us;
        }
        if self.is_moving() && !self.is_latched() {
            self.stop(AfterStop::Keep, Cause::Stalled);
        }
        u32::from(self.config.tick_us)
    }

    fn advance(&mut self, step_us: u32) {
        match self.mode {
            _ if !self.torque => self.follow_measured(),
            Mode::Running | Mode::Parking => {
                self.path.speed_up(&self.config.limits, step_us);
                self.advance_path(step_us);
            }
            Mode::Stopping => {
                if self.cause != Cause::Underrun || !self.path.at_full_rate() {
                    self.path.slow_down(&self.config.limits, step_us);
                }
                self.advance_path(step_us);
            }
            Mode::Estop | Mode::Fault => self.advance_brake(step_us),
            Mode::Held => {}
            _ => self.path.rest_at(self.clock_us),
        }
    }

    fn advance_path(&mut self, step_us: u32) {
        match self.path.advance(step_us, &self.config.limits) {
            Step::Underway => {}
            Step::RanDry => self.run_dry(),
            Step::Finished => {
                self.come_to_rest(true);
                return;
            }
        }
        if self.mode == Mode::Stopping && self.path.is_still() {
            self.come_to_rest(false);
        }
    }

    /// Handles a queue that ended in motion. A stop that drops the queue anyway keeps its cause.
    fn run_dry(&mut self) {
        if self.mode == Mode::Stopping && self.after_stop == AfterStop::Drop {
            return;
        }
        self.new_epoch();
        self.mode = Mode::Stopping;
        self.after_stop = AfterStop::Drop;
        self.cause = Cause::Underrun;
    }

    fn come_to_rest(&mut self, is_finished: bool) {
        if self.mode != Mode::Stopping {
            self.path.drop_queue();
            self.parking = false;
            self.mode = if self.lost_host_handled {
                Mode::Held
            } else {
                Mode::Idle
            };
        } else if self.after_stop == AfterStop::Keep {
            self.mode = Mode::Held;
        } else {
            self.path.drop_queue();
            self.parking = false;
            self.mode = if self.cause == Cause::Flush {
                Mode::Idle
            } else {
                Mode::Stopped
            };
        }
        if is_finished && self.mode == Mode::Held {
            self.path.drop_queue();
            self.parking = false;
        }
    }

    fn advance_brake(&mut self, step_us: u32) {
        self.brake.advance(step_us);
        self.path.place_at_rest(&self.brake.now());
        self.path.rest_at(self.clock_us);
    }

    fn follow_measured(&mut self) {
        if let Some(measured) = self.drives.measured {
            self.path.place_at_rest(&measured);
            if self.is_latched() {
                self.brake = Brake::begin(&self.path.scaled(), &self.config.limits);
            }
        }
        self.path.rest_at(self.clock_us);
    }

    /// Starts for the park pose on one smooth curve; the arm must be at rest.
    fn begin_park(&mut self) {
        self.new_epoch();
        self.path.drop_queue();
        self.path.rest_at(self.clock_us);
        self.path
            .travel_to(&self.config.park_urad, &self.config.limits);
        self.parking = true;
        self.mode = Mode::Parking;
    }

    fn torque_off(&mut self) {
        self.new_epoch();
        self.path.drop_queue();
        self.torque = false;
        self.parking = false;
        if !self.is_latched() {
            self.mode = self.resting_mode();
        }
    }

    fn report(&mut self, elapsed_us: u32) {
        self.since_beat_us = self.since_beat_us.saturating_add(elapsed_us);
        self.since_state_us = self.since_state_us.saturating_add(elapsed_us);
        if self.since_beat_us >= BEAT_US {
            self.since_beat_us = 0;
            self.send(&Message::Beat(self.clock_us));
        }
        if self.since_state_us >= self.config.state_period_us {
            self.since_state_us = 0;
            let state = self.state();
            self.send(&Message::State(state));
        }
    }

    /// Returns the STATE message as of the last tick.
    pub fn state(&self) -> State {
        State {
            clock_us: self.clock_us,
            boot_id: self.boot_id,
            shift_us: self.shift_us(),
            nonce: self.nonce,
            epoch: self.epoch,
            drive_faults: self.drives.faults,
            corrupt: low_half(self.decoder.counters().corrupt),
            ignored: self.ignored,
            mode: self.mode,
            cause: self.cause,
            flags: self.flags(),
            free: self.path.free(),
            command: self.command,
            result: self.result,
            joints: self.joint_states(),
        }
    }

    fn shift_us(&self) -> u32 {
        match self.mode {
            Mode::Running | Mode::Stopping | Mode::Held => {
                self.clock_us.wrapping_sub(self.path.now_us())
            }
            _ => 0,
        }
    }

    fn flags(&self) -> u8 {
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        flag(self.torque, State::TORQUE)
            | flag(self.is_moving(), State::MOVING)
            | flag(self.drives.measured.is_some(), State::MEASURED)
    }

    fn joint_states(&self) -> Joints<JointState> {
        let commanded = self.setpoints().joints;
        let measured = self.drives.measured.unwrap_or_default();
        let mut joints = Joints::empty();
        for (index, commanded) in commanded.iter().enumerate() {
            let measured = measured.at(index);
            joints.push(JointState {
                commanded_urad: commanded.position_urad,
                measured_urad: measured.position_urad,
                velocity_urad_s: measured.velocity_urad_s,
            });
        }
        joints
    }

    fn send(&mut self, message: &Message) {
        self.outbox.put(message.encode(self.sequence).as_slice());
        self.sequence = self.sequence.wrapping_add(1);
    }
}

fn low_half(word: u32) -> u16 {
    let [low, high, _, _] = word.to_le_bytes();
    u16::from_le_bytes([low, high])
}

/// Returns a number that is different for every latch, hard to enter by accident, and never 0.
fn nonce(boot_id: u32, latches: u32) -> u32 {
    boot_id.wrapping_add(latches.wrapping_mul(0x9E37_79B9)) | 1
}

/// Converts to `i32`, saturating.
fn saturate(value: i64) -> i32 {
    i32::try_from(value).unwrap_or(if value < 0 { i32::MIN } else { i32::MAX })
}
