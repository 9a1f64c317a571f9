//! Setpoints to frames and frames to measurements, one folder per device family.
//!
//! A driver owns no port and no thread: each of its calls borrows the link for as long as it runs
//! and must be awaited to its end, or a frame is cut. It knows nothing of plans or scenes. It
//! writes no memory that outlives the servos' power.

use std::time::Duration;

use arm::{Arm, Family};
use base::clock::Clock;
use base::units::{Instant, Measured};
use gate::{Setpoint, TorqueLimit};
use link::Link;
use map::Command;
use servo::dynamixel::Dynamixel;
use servo::feetech::Feetech;
use servos::Servos;

pub mod diagnose;
pub mod error;
pub mod firmware;

mod identity;
mod lead;
mod map;
mod plausible;
mod servos;
#[cfg(test)]
mod tests;

pub use error::{Ailment, BusError, DriverError, ServoName};
pub use identity::check as check_identity;
pub use servo::{BusCounts, Durations, Identity, ServoCounts};

/// The result of attaching to a bus.
#[derive(Clone, Debug, PartialEq)]
pub struct Attached {
    /// Position of every joint.
    pub measured: Measured,
    /// Every servo, in the servo map's order.
    pub servos: Vec<Identity>,
    /// Warnings for an operator that do not keep the arm from moving.
    pub warnings: Vec<String>,
    /// The slowest turn-round of a ping, adapter and return delay included.
    pub latency: Duration,
}

/// The result for every servo of switching torque off.
#[derive(Debug, Default)]
pub struct Released {
    /// Torque reads off.
    pub off: Vec<ServoName>,
    /// Torque may still be on, and why.
    pub failed: Vec<(ServoName, DriverError)>,
}

/// A driver for one arm.
pub struct Driver(Kind);

enum Kind {
    Feetech(Box<Servos<Feetech>>),
    Dynamixel(Box<Servos<Dynamixel>>),
    Firmware(Box<firmware::Firmware>),
}

/// The way in which an arm is brought to a stand, ahead of everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// Along its path; what is queued is dropped.
    Hold,
    /// As hard as it can; latched until the arm is energised again.
    Emergency,
}

/// The same for every family.
macro_rules! each {
    ($kind:expr, $driver:ident => $what:expr) => {
        match $kind {
            Kind::Feetech($driver) => $what,
            Kind::Dynamixel($driver) => $what,
            Kind::Firmware($driver) => $what,
        }
    };
}

impl Driver {
    /// A driver for the family that the arm's file names.
    #[must_use]
    pub fn new(arm: &Arm, clock: &Clock) -> Self {
        Self(match arm.file.family {
            Family::FeetechSts => Kind::Feetech(Box::new(Servos::new(arm, clock))),
            Family::Dynamixel2 => Kind::Dynamixel(Box::new(Servos::new(arm, clock))),
            Family::Firmware => Kind::Firmware(Box::new(firmware::Firmware::new(arm, clock))),
        })
    }

    /// Finds and checks every servo and reads where it stands. Moves nothing, leaves torque and
    /// settings as they are, and may be repeated at any time.
    ///
    /// # Errors
    /// The first servo that is missing, is set up otherwise than this arm needs, or cannot be
    /// believed.
    pub async fn attach(&mut self, link: &mut dyn Link) -> Result<Attached, DriverError> {
        each!(&mut self.0, driver => driver.attach(link).await)
    }

    /// Switches torque on where every servo stands: the goal becomes the present position and is
    /// read back before.
    ///
    /// # Errors
    /// When a servo does not take what is written or reports a fault; those that were limp before
    /// are then limp again.
    pub async fn energise(&mut self, link: &mut dyn Link) -> Result<Measured, DriverError> {
        each!(&mut self.0, driver => driver.energise(link).await)
    }

    /// Limits how hard every servo may push in the motion that follows, which is read back, and reads
    /// where it begins. Nothing moves yet: what is not answered is asked again more often than in a
    /// cycle, within a bound. A controller over `firmware-protocol` has no such register; its own
    /// limits hold.
    ///
    /// # Errors
    /// When a servo does not take the limit: some may have the one from before. When a servo cannot
    /// be read, or reports a fault.
    pub async fn begin(
        &mut self,
        link: &mut dyn Link,
        limit: TorqueLimit,
    ) -> Result<Measured, DriverError> {
        match &mut self.0 {
            Kind::Feetech(driver) => driver.begin(link, limit).await,
            Kind::Dynamixel(driver) => driver.begin(link, limit).await,
            Kind::Firmware(driver) => driver.read_start(link).await,
        }
    }

    /// Sends a setpoint to every servo, or the last one again, and reads every servo back. Before
    /// [`Self::energise`] it only reads.
    ///
    /// # Errors
    /// When a servo cannot be read before `deadline` or reports a fault. The goal was sent
    /// nevertheless, except with [`BusError::Write`], [`DriverError::Goal`] and
    /// [`DriverError::Limp`].
    pub async fn cycle(
        &mut self,
        link: &mut dyn Link,
        goal: Option<&Setpoint>,
        deadline: Instant,
    ) -> Result<Measured, DriverError> {
        let command = goal.map(|goal| Command {
            goal_rad: *goal.goal_rad(),
            velocity_cap_rad_s: *goal.velocity_cap_rad_s(),
        });
        self.follow(link, command.as_ref(), deadline).await
    }

    /// Sends the last setpoint again and reads every servo back.
    ///
    /// # Errors
    /// As [`Self::cycle`].
    pub async fn hold(
        &mut self,
        link: &mut dyn Link,
        deadline: Instant,
    ) -> Result<Measured, DriverError> {
        self.follow(link, None, deadline).await
    }

    pub(crate) async fn follow(
        &mut self,
        link: &mut dyn Link,
        command: Option<&Command>,
        deadline: Instant,
    ) -> Result<Measured, DriverError> {
        each!(&mut self.0, driver => driver.cycle(link, command, deadline).await)
    }

    /// Takes torque off every servo, even if others do not answer. The arm drops.
    ///
    /// # Errors
    /// Only if the link itself fails; the result for single servos is in [`TorqueOffReport`].
    pub async fn release(&mut self, link: &mut dyn Link) -> Result<Released, DriverError> {
        each!(&mut self.0, driver => driver.release(link).await)
    }

    /// Returns whether [`Self::energise`] succeeded and no servo was found to have lost its torque since.
    /// Attaching again resets it.
    #[must_use]
    pub fn is_energised(&self) -> bool {
        each!(&self.0, driver => driver.is_energised())
    }

    /// Restarts one servo, which clears what it has latched, and waits until it answers. Only while the
    /// arm is not energised: what it holds would drop.
    ///
    /// # Errors
    /// The arm is energised, has no such servo, or its family has no such request; or the servo does not
    /// come back.
    pub async fn reboot(&mut self, link: &mut dyn Link, id: u8) -> Result<(), DriverError> {
        match &mut self.0 {
            Kind::Feetech(driver) => driver.reboot(link, id).await,
            Kind::Dynamixel(driver) => driver.reboot(link, id).await,
            Kind::Firmware(_) => Err(BusError::NoReboot { id }.into()),
        }
    }

    /// From the next call of [`Self::cycle`] on, which sends it before anything else, the arm comes
    /// to a stand. Servos stand where their last goal said and need no word; a controller with a
    /// queue of its own drops it.
    pub fn halt(&mut self, halt: Halt) {
        if let Kind::Firmware(driver) = &mut self.0 {
            driver.halt(halt);
        }
    }

    /// Returns whether everything that was sent has been carried out or dropped, as far as the arm
    /// reports. Servos have no queue: for them it is always true.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        match &self.0 {
            Kind::Firmware(driver) => driver.is_settled(),
            _ => true,
        }
    }

    /// Returns whether a standing joint keeps holding its last goal. A controller that has halted holds
    /// none.
    pub fn stands_at_its_goal(&self) -> bool {
        !matches!(self.0, Kind::Firmware(_))
    }

    /// Returns whether a cycle sends goals: none go to servos that are known to have lost their torque.
    pub fn has_goals(&self) -> bool {
        match &self.0 {
            Kind::Feetech(driver) => driver.has_goals(),
            Kind::Dynamixel(driver) => driver.has_goals(),
            Kind::Firmware(_) => true,
        }
    }

    /// Returns the counters of this port.
    #[must_use]
    pub fn counts(&self) -> &BusCounts {
        each!(&self.0, driver => driver.counts())
    }
}
