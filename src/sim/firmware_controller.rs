//! Device side of a self-built controller: the protocol crate's own state machine, with the
//! simulated joints as its drives.

use std::time::Duration;

use firmware_protocol::device::{self, DeviceConfig, Drives};
use firmware_protocol::message::{JointLimits, Knot, Message, ResetCause};
use firmware_protocol::{Decoder, Joints, MAX_JOINTS, Received};

use crate::arm_dynamics::{ArmDynamics, ServoDrive};
use crate::bus_device::{BusDevice, ServoAnswer};
use crate::servo_motor::ServoRegulator;
use arm::ArmModel;
use base::units::ClockInstant;

/// Interval between set-points.
const TICK: Duration = Duration::from_millis(1);
const TICK_US: u16 = 1_000;

/// Interval between state reports, in microseconds.
const STATE_US: u32 = 10_000;

/// Id of the whole controller.
const ID: u8 = 1;

/// Factors by which the controller's limits exceed the arm's largest commands: speed, acceleration, and braking.
const LIMIT_FACTORS: (f64, f64, f64) = (1.5, 3.0, 6.0);

/// Controller's time when our clock starts, and the number of our microseconds in which its clock gains one.
const CLOCK_START_US: u32 = 0xFFF0_0000;
const CLOCK_GAIN_US: u64 = 25_000;

/// One controller with all its joints.
pub(crate) struct SimulatedController {
    device: Option<device::Device>,
    config: DeviceConfig,
    boots: u32,
    last_tick: ClockInstant,
    has_host: bool,
    faults: u16,
    hides_positions: bool,
    /// The version and the layouts that it announces, if they are not its own.
    announced: Option<(u8, u32)>,
}

impl SimulatedController {
    pub(crate) fn new(arm: &ArmModel, body: &ArmDynamics) -> Self {
        let config = configuration(arm, body);
        Self {
            device: device::Device::new(config, boot_id(1), clock_us(ClockInstant::ZERO)).ok(),
            config,
            boots: 1,
            last_tick: ClockInstant::ZERO,
            has_host: false,
            faults: 0,
            hides_positions: false,
            announced: None,
        }
    }

    fn drives(&self, body: &ArmDynamics) -> Drives {
        let mut measured = Joints::empty();
        for place in 0..self.config.limits.len() {
            if let Some(readings) = body.readings(place) {
                measured.push(Knot {
                    position_urad: rounded(readings.ticks),
                    velocity_urad_s: rounded(readings.speed_ticks_s),
                });
            }
        }
        Drives {
            measured: (!self.hides_positions).then_some(measured),
            faults: self.faults,
        }
    }

    /// Runs one iteration of the controller's loop.
    fn tick(&mut self, body: &mut ArmDynamics) {
        let now = body.at();
        self.last_tick = now;
        let drives = self.drives(body);
        let Some(device) = &mut self.device else {
            return;
        };
        let commands = device.tick(clock_us(now), &drives);
        for (place, knot) in commands.joints.iter().enumerate() {
            let drive = ServoDrive {
                torque_on: commands.torque,
                goal_ticks: f64::from(knot.position_urad),
                speed_ticks_s: f64::INFINITY,
                acceleration_ticks_s2: f64::INFINITY,
                torque_ratio: 1.0,
                regulator: ServoRegulator::UNKNOWN,
            };
            body.drive(place, drive);
        }
    }

    /// Returns the bytes to be sent, as one burst.
    fn take_output(&mut self) -> Vec<ServoAnswer> {
        let mut bytes = [0; 1024];
        let count = self
            .device
            .as_mut()
            .map_or(0, |device| device.transmit(&mut bytes));
        let output = bytes.get(..count).unwrap_or_default();
        let answer = (count > 0).then(|| ServoAnswer {
            id: ID,
            with: Vec::new(),
            delay: Duration::ZERO,
            bytes: self.announced.map_or_else(
                || output.to_vec(),
                |announced| with_announced(output, announced),
            ),
        });
        answer.into_iter().collect()
    }
}

/// Returns the same frames with another version and other layouts in each greeting.
fn with_announced(mut frames: &[u8], (major, schema): (u8, u32)) -> Vec<u8> {
    let (mut decoder, mut bytes) = (Decoder::new(), Vec::new());
    while !frames.is_empty() {
        let Received::Frame(frame) = decoder.take(&mut frames) else {
            continue;
        };
        let Ok(mut message) = Message::decode(&frame) else {
            continue;
        };
        if let Message::HelloAck(ack) = &mut message {
            (ack.major, ack.schema) = (major, schema);
        }
        bytes.extend_from_slice(message.encode(frame.sequence).as_slice());
    }
    bytes
}

impl BusDevice for SimulatedController {
    fn receive(&mut self, byte: u8, body: &mut ArmDynamics) -> Vec<ServoAnswer> {
        if !self.has_host {
            self.has_host = true;
            self.last_tick = body.at();
        }
        if let Some(device) = &mut self.device {
            device.receive(&[byte], clock_us(body.at()));
        }
        self.take_output()
    }

    fn next_due(&self) -> Option<ClockInstant> {
        self.has_host.then(|| self.last_tick.after(TICK))
    }

    fn wake(&mut self, body: &mut ArmDynamics) -> Vec<ServoAnswer> {
        self.tick(body);
        self.take_output()
    }

    fn power_cycle(&mut self, _id: u8, body: &mut ArmDynamics) {
        self.boots += 1;
        self.device =
            device::Device::new(self.config, boot_id(self.boots), clock_us(body.at())).ok();
        self.tick(body);
    }

    /// Marks a drive as failed if any bit is set.
    fn set_error(&mut self, id: u8, bits: u8, _body: &mut ArmDynamics) {
        let bit = 1_u16.checked_shl(u32::from(id).saturating_sub(1));
        let bit = bit.unwrap_or(0);
        if bits == 0 {
            self.faults &= !bit;
        } else {
            self.faults |= bit;
        }
    }

    /// Hides all positions if one is forced: the controller reports none until it has all.
    fn force_position(&mut self, _id: u8, word: Option<u16>) {
        self.hides_positions = word.is_some();
    }

    fn set_greeting(&mut self, major: u8, schema: u32) {
        self.announced = Some((major, schema));
    }

    fn place(&self, id: u8) -> Option<usize> {
        let place = usize::from(id).checked_sub(1)?;
        (place < self.config.limits.len()).then_some(place)
    }
}

fn configuration(arm: &ArmModel, body: &ArmDynamics) -> DeviceConfig {
    let (mut limits, mut park_urad) = (Joints::empty(), Joints::empty());
    let servos = body.servos().take(MAX_JOINTS);
    for (place, (joint, servo)) in arm.file.joints.iter().zip(servos).enumerate() {
        let ends = [joint.lower_rad.get(), joint.upper_rad.get()].map(|end| servo.ticks(end));
        let acceleration = urad(LIMIT_FACTORS.1 * joint.acceleration_max_rad_s2.get());
        limits.push(JointLimits {
            position_min_urad: ends[0].min(ends[1]),
            position_max_urad: ends[0].max(ends[1]),
            velocity_max_urad_s: urad(LIMIT_FACTORS.0 * joint.velocity_max_rad_s.get()),
            acceleration_max_urad_s2: acceleration,
            stop_urad_s2: urad(LIMIT_FACTORS.2 * joint.acceleration_max_rad_s2.get())
                .max(2 * acceleration),
        });
        park_urad.push(
            body.readings(place)
                .map_or(0, |readings| rounded(readings.ticks)),
        );
    }
    DeviceConfig {
        limits,
        park_urad,
        tick_us: TICK_US,
        state_period_us: STATE_US,
        firmware: *b"simulated\0\0\0",
        reset_cause: ResetCause::PowerOn,
    }
}

/// Returns the controller's time: its clock started earlier and runs 40 ppm fast.
fn clock_us(at: ClockInstant) -> u32 {
    let us = at.as_nanos() / 1_000;
    let [a, b, c, d, ..] = (us + us / CLOCK_GAIN_US).to_le_bytes();
    CLOCK_START_US.wrapping_add(u32::from_le_bytes([a, b, c, d]))
}

/// Returns a different id for every boot.
const fn boot_id(boots: u32) -> u32 {
    boots.wrapping_mul(0x9E37_79B9)
}

#[expect(clippy::cast_possible_truncation, reason = "`as` saturates")]
fn rounded(value: f64) -> i32 {
    value.round() as i32
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates"
)]
fn urad(rad: f64) -> u32 {
    (rad * 1e6).round() as u32
}
