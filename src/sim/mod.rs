//! Far end of a link: a simulated arm that moves, speaks its servos' protocol, draws, and can be
//! broken.
//!
//! It has no thread and no clock: the caller passes the time. The same bytes at the same moments give
//! the same arm. Its pens draw by the true joints, behind the play of the gears and before any
//! rounding to counts, because paper knows nothing of encoders.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arm::{Arm, Family};
use base::units::{Instant, Joints};
use kin::Chain;
use link::memory::FarEnd;
use vision::{Eye, Frame, FrameError};

mod body;
mod contact;
mod device;
mod dynamixel;
mod fault;
mod feetech;
mod firmware;
mod ink;
mod servos;
mod tags;
#[cfg(test)]
mod tests;
mod view;
mod wire;

pub use fault::Fault;
pub use ink::{Ink, Paper, SimPen};
pub use tags::PRINTED;
pub use view::{Blot, Held, Laid, Light, View};

use body::Body;
use device::{Answer, Device};
use fault::{Chance, Fate, Faults};
use ink::Desk;
use servos::Servos;
use wire::Wire;

/// Supply voltage of a simulated arm.
const SUPPLY_V: f64 = 12.0;

/// Seed of the random numbers.
const SEED: u64 = 0x5EED_0F1A_7E57;

/// A simulated arm; clones are the same arm.
#[derive(Clone)]
pub struct Simulator(Arc<Mutex<World>>);

struct World {
    chain: Chain,
    body: Body,
    servos: Box<dyn Device>,
    wire: Wire,
    desk: Desk,
    faults: Faults,
    chance: Chance,
    baud: u32,
    understood: bool,
    now: Instant,
}

impl Simulator {
    /// An arm that stands limp at `start_rad`.
    #[must_use]
    pub fn new(arm: &Arm, start_rad: &Joints) -> Self {
        let body = Body::new(arm, start_rad, SUPPLY_V);
        let return_delay = Duration::from_micros(u64::from(arm.file.simulation.return_delay_us));
        let servos: Box<dyn Device> = match arm.file.family {
            Family::FeetechSts => Box::new(Servos::<feetech::Sts>::new(&body, return_delay)),
            Family::Dynamixel2 => {
                Box::new(Servos::<dynamixel::DynamixelX>::new(&body, return_delay))
            }
            Family::Firmware => Box::new(firmware::Controller::new(arm, &body)),
        };
        Self(Arc::new(Mutex::new(World {
            chain: arm.chain.clone(),
            servos,
            body,
            wire: Wire::new(arm.file.baud),
            desk: Desk::default(),
            faults: Faults::default(),
            chance: Chance::new(SEED),
            baud: arm.file.baud,
            understood: true,
            now: Instant::ZERO,
        })))
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets whether bytes and return delays take time on the wire. Initially they do.
    pub fn pace(&self, paced: bool) {
        self.world().wire.pace(paced);
    }

    /// Lays a clean sheet before the arm and puts pens into its gripper.
    pub fn lay(&self, paper: Box<dyn Paper>, pens: Vec<SimPen>) {
        self.world().desk.lay(paper, pens);
    }

    /// Returns the ink drawn since the sheet was laid.
    #[must_use]
    pub fn ink(&self) -> Vec<Ink> {
        self.world().desk.ink().to_vec()
    }

    /// Renders a camera's view of a sheet, its ink and the pens, as of the last update of the arm.
    ///
    /// # Errors
    /// A lens with an invalid picture size.
    pub fn picture(&self, eye: &Eye, light: &Light, sheet: &Laid) -> Result<Frame, FrameError> {
        let (ink, pens, held) = {
            let world = self.world();
            let held = world.desk.held(&world.chain, &world.body.truth_rad());
            (world.desk.ink().to_vec(), world.desk.pens().to_vec(), held)
        };
        // The arm does not wait while it is painted.
        let view = View {
            eye,
            light,
            sheet: Some(sheet),
            ink: &ink,
            pens: &pens,
            held: &held,
        };
        view.render()
    }

    /// Returns the true joint positions, as of the last update.
    #[must_use]
    pub fn truth(&self) -> Joints {
        self.world().body.truth_rad()
    }

    /// Bytes that were written, with or without success, into memory that outlives the power.
    #[must_use]
    pub fn kept_writes(&self) -> u64 {
        self.world().servos.kept_writes()
    }

    /// Replies in which bits were flipped, ever.
    #[must_use]
    pub fn damaged_replies(&self) -> u64 {
        self.world().faults.damaged
    }

    /// Lets the arm move on to `now`. Speaking with it does so too.
    pub fn advance(&self, now: Instant) {
        self.world().advance(now);
    }

    /// A hand turns a joint to an angle; whether it could: a servo that holds is not turned.
    #[must_use]
    pub fn turn_by_hand(&self, joint: usize, to_rad: f64) -> bool {
        self.world().body.turn_by_hand(joint, to_rad)
    }

    /// Breaks something, or mends it.
    pub fn break_it(&self, fault: Fault) {
        self.world().break_it(fault);
    }
}

impl FarEnd for Simulator {
    fn hear(&mut self, at: Instant, bytes: &[u8]) {
        self.world().hear(at, bytes);
    }

    fn next_due(&self) -> Option<Instant> {
        self.world().wire.next_due()
    }

    fn pauses(&self) -> Option<Instant> {
        self.world().wire.pauses()
    }

    fn speak(&mut self, now: Instant, into: &mut Vec<u8>) {
        let mut world = self.world();
        world.advance(now);
        world.wire.take(now, into);
    }

    fn tune(&mut self, baud: u32) {
        let mut world = self.world();
        world.understood = baud == world.baud;
    }

    fn is_plugged(&self) -> bool {
        !self.world().faults.unplugged
    }
}

impl World {
    fn advance(&mut self, to: Instant) {
        // What servos do by themselves happens at its own moment, not at the next question.
        while let Some(due) = self.servos.next_due().filter(|due| *due <= to) {
            self.move_on(due);
            for answer in self.servos.wake(&mut self.body, due) {
                self.answer(due, answer);
            }
        }
        self.move_on(to);
    }

    fn move_on(&mut self, to: Instant) {
        let Self {
            body, desk, chain, ..
        } = self;
        body.advance(to, |joints_rad| desk.trace(chain, joints_rad));
        self.now = self.now.max(to);
    }

    fn hear(&mut self, at: Instant, bytes: &[u8]) {
        if self.faults.unplugged || !self.understood {
            return;
        }
        for byte in bytes {
            let arrived = self.wire.arrival(at);
            if self.faults.echo {
                self.wire.queue(arrived, vec![*byte]);
            }
            self.advance(arrived);
            for answer in self.servos.hear(*byte, &mut self.body, arrived) {
                self.answer(arrived, answer);
            }
        }
    }

    fn answer(&mut self, at: Instant, mut answer: Answer) {
        match self
            .faults
            .befall(&answer.speakers(), &mut answer.bytes, &mut self.chance)
        {
            Fate::Lost => {}
            Fate::Heard => {
                self.wire.say(at, answer.delay, answer.bytes);
            }
            Fate::Late(by) => self.wire.queue(at.after(answer.delay + by), answer.bytes),
        }
    }

    fn break_it(&mut self, fault: Fault) {
        let faults = &mut self.faults;
        match fault {
            Fault::DropReplies(share) => faults.drop = share,
            Fault::CorruptReplies { share, bits } => {
                (faults.corrupt, faults.corrupt_bits) = (share, bits);
            }
            Fault::LateReplies { share, by } => (faults.late, faults.late_by) = (share, by),
            Fault::Silence(id) => faults.silent.push(id),
            Fault::Speak(id) => faults.silent.retain(|silent| *silent != id),
            Fault::Duplicate(id) => faults.duplicate.push(id),
            Fault::Echo(on) => faults.echo = on,
            Fault::Noise(bytes) => self.wire.queue(self.now, bytes),
            Fault::Unplug => {
                faults.unplugged = true;
                self.wire.clear();
            }
            Fault::Plug => faults.unplugged = false,
            other => self.break_arm(&other),
        }
    }

    /// The faults of the arm itself, where [`Self::break_it`] has those of the wire.
    fn break_arm(&mut self, fault: &Fault) {
        match *fault {
            Fault::SupplyV(volts) => self.body.supply_v = volts,
            Fault::PowerCycle(id) => self.servos.power_cycle(id, &mut self.body, self.now),
            Fault::ErrorBits { id, bits } => self.servos.set_error(id, bits, &mut self.body),
            Fault::Block { joint, at_rad } => self.body.block(joint, at_rad),
            Fault::Heat { id, temperature_c } => {
                if let Some(place) = self.servos.place(id) {
                    self.body.heat(place, temperature_c);
                }
            }
            Fault::Register { id, address, value } => self.servos.poke(id, address, value),
            Fault::Position { id, word } => self.servos.force_position(id, word),
            Fault::OtherProtocol { major, schema } => self.servos.claim(major, schema),
            _ => {}
        }
    }
}
