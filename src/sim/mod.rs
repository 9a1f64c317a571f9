//! Far end of a link: a simulated arm that moves, speaks its servos' protocol, draws, and accepts
//! injected faults.
//!
//! It has no thread and no clock: the caller passes the time. The same bytes at the same times give
//! the same motion. Its pens follow the true joints, including the play of the gears and without
//! rounding to counts, because paper does not depend on encoders.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use arm::{ArmModel, ServoFamily};
use base::lock::MutexExt;
use base::units::{ClockInstant, JointVector};
use kin::KinematicChain;
use link::memory::FarEnd;
use vision::{FrameError, ImageFrame, PlacedCamera};

mod arm_dynamics;
mod bus_device;
mod camera_view;
mod dynamixel_servo;
mod fault_injection;
mod fault_words;
mod feetech_servo;
mod firmware_controller;
mod pen_ink;
mod posture_load;
mod printed_tags;
mod servo_bus;
mod servo_motor;
#[cfg(test)]
mod servo_motor_tests;
mod sheet_contact;
#[cfg(test)]
mod tests;
mod uart_timing;
mod worn_gears;
#[cfg(test)]
mod worn_gears_tests;

pub use camera_view::{PrintedBlot, SceneLight, SimulatedView, ViewedPen, ViewedSheet};
pub use fault_injection::SimulatedFault;
pub use fault_words::{FAULT_WORDS, FaultWordsError};
pub use pen_ink::{HeldPens, InkLine, PaperSurface, SimPen};
pub use printed_tags::PRINTED;

use arm_dynamics::ArmDynamics;
use bus_device::{BusDevice, ServoAnswer};
use fault_injection::{ActiveFaults, FaultRng, ReplyFate};
use pen_ink::PenWorkspace;
use servo_bus::SimulatedBus;
use uart_timing::UartTiming;

/// Seed of the random numbers.
const SEED: u64 = 0x5EED_0F1A_7E57;

/// A simulated arm; clones are the same arm.
#[derive(Clone)]
pub struct ArmSimulator(Arc<Mutex<SimulatedWorld>>);

struct SimulatedWorld {
    chain: KinematicChain,
    dynamics: ArmDynamics,
    servos: Box<dyn BusDevice>,
    wire: UartTiming,
    pens: PenWorkspace,
    faults: ActiveFaults,
    rng: FaultRng,
    baud: u32,
    is_baud_right: bool,
}

impl ArmSimulator {
    /// Creates an arm that stands limp at `start_rad`.
    #[must_use]
    pub fn new(arm: &ArmModel, start_rad: &JointVector) -> Self {
        let dynamics = ArmDynamics::new(arm, start_rad);
        let return_delay = Duration::from_micros(u64::from(arm.file.simulation.return_delay_us));
        let servos: Box<dyn BusDevice> = match arm.file.family {
            ServoFamily::FeetechSts => Box::new(SimulatedBus::<feetech_servo::Sts>::new(
                &dynamics,
                return_delay,
            )),
            ServoFamily::Dynamixel2 => Box::new(SimulatedBus::<dynamixel_servo::DynamixelX>::new(
                &dynamics,
                return_delay,
            )),
            ServoFamily::Firmware => Box::new(firmware_controller::SimulatedController::new(
                arm, &dynamics,
            )),
        };
        let mut servos = servos;
        servos.tune(arm.file.baud);
        servos.set_baud(arm.file.baud);
        for (id, model) in &arm.file.simulation.models {
            if let Ok(id) = id.parse() {
                servos.set_model(id, *model);
            }
        }
        Self(Arc::new(Mutex::new(SimulatedWorld {
            chain: arm.chain.clone(),
            servos,
            dynamics,
            wire: UartTiming::new(arm.file.baud),
            pens: PenWorkspace::default(),
            faults: ActiveFaults::default(),
            rng: FaultRng::new(SEED),
            baud: arm.file.baud,
            is_baud_right: true,
        })))
    }

    fn world(&self) -> MutexGuard<'_, SimulatedWorld> {
        self.0.locked()
    }

    /// Sets whether bytes and return delays take time on the wire. Initially they do.
    pub fn set_paced(&self, paced: bool) {
        self.world().wire.set_paced(paced);
    }

    /// Lays a clean sheet before the arm and puts pens into its gripper.
    pub fn place_sheet(&self, paper: Box<dyn PaperSurface>, pens: Vec<SimPen>) {
        self.world().pens.place_sheet(paper, pens);
    }

    /// Puts other pens into the holder, as a person would. The sheet and its ink stay.
    pub fn hold_pens(&self, held: HeldPens) {
        self.world().pens.hold(held);
    }

    /// Returns the ink drawn since the sheet was laid.
    #[must_use]
    pub fn ink(&self) -> Vec<InkLine> {
        self.world().pens.ink().to_vec()
    }

    /// Renders a camera's view of a sheet, its ink and the pens, as of the last update of the arm.
    ///
    /// # Errors
    /// A lens with an invalid picture size.
    pub fn picture(
        &self,
        eye: &PlacedCamera,
        light: &SceneLight,
        sheet: &ViewedSheet,
    ) -> Result<ImageFrame, FrameError> {
        let (ink, laid_pens, held) = {
            let world = self.world();
            let held = world.pens.held(&world.chain, &world.dynamics.truth_rad());
            (world.pens.ink().to_vec(), world.pens.pens().to_vec(), held)
        };
        // The arm is not locked while the picture is rendered.
        let view = SimulatedView {
            eye,
            light,
            sheet: Some(sheet),
            ink: &ink,
            pens: &laid_pens,
            held: &held,
        };
        view.render()
    }

    /// Returns the true joint positions, as of the last update.
    #[must_use]
    pub fn true_joints(&self) -> JointVector {
        self.world().dynamics.truth_rad()
    }

    /// Returns the play of a joint at an angle, from one side to the other.
    #[must_use]
    pub fn play_rad(&self, joint: usize, at_rad: f64) -> f64 {
        self.world().dynamics.play_rad(joint, at_rad)
    }

    /// Returns the number of bytes of attempted writes into memory that outlives the power.
    #[must_use]
    pub fn kept_writes(&self) -> u64 {
        self.world().servos.kept_writes()
    }

    /// Returns the number of replies in which bits were flipped so far.
    #[must_use]
    pub fn damaged_replies(&self) -> u64 {
        self.world().faults.damaged
    }

    /// Advances the arm to `now`, as sending to it does.
    pub fn advance(&self, now: ClockInstant) {
        self.world().advance(now);
    }

    /// Turns a joint to an angle by hand, and returns whether it turned: a servo that holds does not.
    #[must_use]
    pub fn turn_by_hand(&self, joint: usize, to_rad: f64) -> bool {
        self.world().dynamics.turn_by_hand(joint, to_rad)
    }

    /// Injects a fault, or removes it.
    pub fn break_it(&self, fault: SimulatedFault) {
        self.world().break_it(fault);
    }
}

impl FarEnd for ArmSimulator {
    fn hear(&mut self, at: ClockInstant, bytes: &[u8]) {
        self.world().hear(at, bytes);
    }

    fn next_due(&self) -> Option<ClockInstant> {
        self.world().wire.next_due()
    }

    fn next_pause(&self) -> Option<ClockInstant> {
        self.world().wire.burst_end()
    }

    fn speak(&mut self, now: ClockInstant, into: &mut Vec<u8>) {
        let mut world = self.world();
        world.advance(now);
        world.wire.take(now, into);
    }

    fn tune(&mut self, baud: u32) {
        let mut world = self.world();
        world.is_baud_right = world.servos.tune(baud) || baud == world.baud;
    }

    fn is_plugged(&self) -> bool {
        !self.world().faults.unplugged
    }
}

impl SimulatedWorld {
    fn advance(&mut self, to: ClockInstant) {
        // Actions of the servos themselves happen at their own times, not at the next request.
        while let Some(due) = self.servos.next_due().filter(|due| *due <= to) {
            self.advance_motion(due);
            for answer in self.servos.wake(&mut self.dynamics) {
                self.answer(due, answer);
            }
        }
        self.advance_motion(to);
    }

    fn advance_motion(&mut self, to: ClockInstant) {
        let Self {
            dynamics,
            pens,
            chain,
            ..
        } = self;
        dynamics.advance(to, |joints_rad| pens.trace(chain, joints_rad));
    }

    fn hear(&mut self, at: ClockInstant, bytes: &[u8]) {
        if self.faults.unplugged || !self.is_baud_right {
            return;
        }
        for byte in bytes {
            let arrived = self.wire.arrival(at);
            if self.faults.echo {
                self.wire.queue(arrived, vec![*byte]);
            }
            self.advance(arrived);
            for answer in self.servos.receive(*byte, &mut self.dynamics) {
                self.answer(arrived, answer);
            }
        }
    }

    fn answer(&mut self, at: ClockInstant, mut answer: ServoAnswer) {
        match self
            .faults
            .apply(&answer.speakers(), &mut answer.bytes, &mut self.rng)
        {
            ReplyFate::Lost => {}
            ReplyFate::Delivered => {
                self.wire.reply(at, answer.delay, answer.bytes);
            }
            ReplyFate::Late(extra) => self
                .wire
                .queue(at.after(answer.delay + extra), answer.bytes),
        }
    }

    fn break_it(&mut self, fault: SimulatedFault) {
        let faults = &mut self.faults;
        match fault {
            SimulatedFault::DropReplies(share) => faults.drop = share,
            SimulatedFault::CorruptReplies { share, bits } => {
                (faults.corrupt, faults.corrupt_bits) = (share, bits);
            }
            SimulatedFault::LateReplies { share, by } => {
                (faults.late, faults.late_by) = (share, by);
            }
            SimulatedFault::Silence(id) => faults.silent.push(id),
            SimulatedFault::Speak(id) => faults.silent.retain(|silent| *silent != id),
            SimulatedFault::Duplicate(id) => faults.duplicate.push(id),
            SimulatedFault::Echo(on) => faults.echo = on,
            SimulatedFault::Noise(bytes) => self.wire.queue(self.dynamics.at(), bytes),
            SimulatedFault::Unplug => {
                faults.unplugged = true;
                self.wire.clear();
            }
            SimulatedFault::Plug => faults.unplugged = false,
            other => self.break_arm(&other),
        }
    }

    /// Injects a fault of the arm itself; [`Self::break_it`] handles those of the wire.
    fn break_arm(&mut self, fault: &SimulatedFault) {
        match *fault {
            SimulatedFault::SupplyV(volts) => self.dynamics.supply_v = volts,
            SimulatedFault::PowerCycle(id) => self.servos.power_cycle(id, &mut self.dynamics),
            SimulatedFault::PowerOff(id) => self.servos.power_off(id, &mut self.dynamics),
            SimulatedFault::PowerOn(id) => self.servos.power_on(id, &mut self.dynamics),
            SimulatedFault::ErrorBits { id, bits } => {
                self.servos.set_error(id, bits, &mut self.dynamics);
            }
            SimulatedFault::Block { joint, at_rad } => self.dynamics.block(joint, at_rad),
            SimulatedFault::Limp { id, is_limp } => {
                if let Some(place) = self.servos.place(id) {
                    self.dynamics.break_motor(place, is_limp);
                }
            }
            SimulatedFault::Push { force_n } => self.dynamics.push(force_n),
            SimulatedFault::Heat { id, temperature_c } => {
                if let Some(place) = self.servos.place(id) {
                    self.dynamics.heat(place, temperature_c);
                }
            }
            SimulatedFault::Register { id, address, value } => self.servos.poke(id, address, value),
            SimulatedFault::ServoSupplyV { id, volts } => self.servos.force_supply(id, volts),
            SimulatedFault::Position { id, word } => self.servos.force_position(id, word),
            SimulatedFault::OtherProtocol { major, schema } => {
                self.servos.set_greeting(major, schema);
            }
            _ => {}
        }
    }
}
