//! Device side of a self-built controller: the protocol crate's own state machine, and
//! drives that are the simulated joints.

use std::time::Duration;

use firmware_protocol::device::{self, DeviceConfig, Drives};
use firmware_protocol::message::{JointLimits, Knot, Message, ResetCause};
use firmware_protocol::{Decoder, Joints, MAX_JOINTS, Received};

use crate::arm_dynamics::{ArmDynamics, ServoDrive};
use crate::bus_device::{BusDevice, ServoAnswer};
use arm::ArmModel;
use base::units::ClockInstant;

/// Interval between set-points.
const TICK: Duration = Duration::from_millis(1);
const TICK_US: u16 = 1_000;

/// Interval between state reports, in microseconds.
const STATE_US: u32 = 10_000;

/// The whole controller answers under one id.
const ID: u8 = 1;

/// Factors by which the controller's limits exceed the arm's largest commands: speed, acceleration, and braking.
const ROOM: (f64, f64, f64) = (1.5, 3.0, 6.0);

/// Start of the controller's clock at our clock's start, and the number of our microseconds in which it gains one of
/// its own.
const CLOCK_BEGAN_US: u32 = 0xFFF0_0000;
const CLOCK_GAINS: u64 = 25_000;

/// One controller with all its joints.
pub(crate) struct SimulatedController {
    device: Option<device::Device>,
    config: DeviceConfig,
    boots: u32,
    ticked: ClockInstant,
    heard: bool,
    faults: u16,
    blind: bool,
    /// The version and the layouts that it greets with, if they are not its own.
    claims: Option<(u8, u32)>,
}

impl SimulatedController {
    pub(crate) fn new(arm: &ArmModel, body: &ArmDynamics) -> Self {
        let config = configuration(arm, body);
        Self {
            device: device::Device::new(config, boot_id(1), clock_us(ClockInstant::ZERO)).ok(),
            config,
            boots: 1,
            ticked: ClockInstant::ZERO,
            heard: false,
            faults: 0,
            blind: false,
            claims: None,
        }
    }

    fn drives(&self, body: &ArmDynamics) -> Drives {
        let mut measured = Joints::empty();
        for place in 0..self.config.limits.len() {
            if let Some(felt) = body.readings(place) {
                measured.push(Knot {
                    position_urad: whole(felt.ticks),
                    velocity_urad_s: whole(felt.speed_ticks_s),
                });
            }
        }
        Drives {
            measured: (!self.blind).then_some(measured),
            faults: self.faults,
        }
    }

    /// One turn of the controller's own loop.
    fn tick(&mut self, body: &mut ArmDynamics) {
        let now = body.at();
        self.ticked = now;
        let drives = self.drives(body);
        let Some(device) = &mut self.device else {
            return;
        };
        let told = device.tick(clock_us(now), &drives);
        for (place, knot) in told.joints.iter().enumerate() {
            let drive = ServoDrive {
                torque_on: told.torque,
                goal_ticks: f64::from(knot.position_urad),
                speed_ticks_s: f64::INFINITY,
                acceleration_ticks_s2: f64::INFINITY,
                torque_ratio: 1.0,
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
        let said = bytes.get(..count).unwrap_or_default();
        let answer = (count > 0).then(|| ServoAnswer {
            id: ID,
            with: Vec::new(),
            delay: Duration::ZERO,
            bytes: self
                .claims
                .map_or_else(|| said.to_vec(), |claims| claiming(said, claims)),
        });
        answer.into_iter().collect()
    }
}

/// The same frames, with another version and other layouts in each greeting.
fn claiming(mut said: &[u8], (major, schema): (u8, u32)) -> Vec<u8> {
    let (mut decoder, mut bytes) = (Decoder::new(), Vec::new());
    while !said.is_empty() {
        let Received::Frame(frame) = decoder.take(&mut said) else {
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
        if !self.heard {
            self.heard = true;
            self.ticked = body.at();
        }
        if let Some(device) = &mut self.device {
            device.receive(&[byte], clock_us(body.at()));
        }
        self.take_output()
    }

    fn next_due(&self) -> Option<ClockInstant> {
        self.heard.then(|| self.ticked.after(TICK))
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

    /// Any bit is a drive that failed.
    fn set_error(&mut self, id: u8, bits: u8, _body: &mut ArmDynamics) {
        let bit = 1_u16.checked_shl(u32::from(id).saturating_sub(1));
        let bit = bit.unwrap_or(0);
        if bits == 0 {
            self.faults &= !bit;
        } else {
            self.faults |= bit;
        }
    }

    /// A drive that reports no position: the controller knows of none until all do.
    fn force_position(&mut self, _id: u8, word: Option<u16>) {
        self.blind = word.is_some();
    }

    fn set_greeting(&mut self, major: u8, schema: u32) {
        self.claims = Some((major, schema));
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
        let acceleration = urad(ROOM.1 * joint.acceleration_max_rad_s2.get());
        limits.push(JointLimits {
            position_min_urad: ends[0].min(ends[1]),
            position_max_urad: ends[0].max(ends[1]),
            velocity_max_urad_s: urad(ROOM.0 * joint.velocity_max_rad_s.get()),
            acceleration_max_urad_s2: acceleration,
            stop_urad_s2: urad(ROOM.2 * joint.acceleration_max_rad_s2.get()).max(2 * acceleration),
        });
        let stands = body.readings(place).map_or(0, |felt| whole(felt.ticks));
        park_urad.push(stands);
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

/// The controller's own clock, which began elsewhere and runs 40 ppm fast.
fn clock_us(at: ClockInstant) -> u32 {
    let us = at.as_nanos() / 1_000;
    let [a, b, c, d, ..] = (us + us / CLOCK_GAINS).to_le_bytes();
    CLOCK_BEGAN_US.wrapping_add(u32::from_le_bytes([a, b, c, d]))
}

/// Another one after every boot.
const fn boot_id(boots: u32) -> u32 {
    boots.wrapping_mul(0x9E37_79B9)
}

#[expect(clippy::cast_possible_truncation, reason = "`as` saturates")]
fn whole(value: f64) -> i32 {
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
