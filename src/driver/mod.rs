//! Turns setpoints into frames and frames into measurements, one folder per device family.
//!
//! A driver owns no port and no thread: each of its calls borrows the link for as long as it runs
//! and must be awaited to its end, or a frame is cut. It knows nothing of plans or scenes. It
//! writes no memory that outlives the servos' power.

use std::pin::Pin;
use std::time::Duration;

use arm::{ArmModel, ServoFamily};
use base::clock::NodeClock;
use base::units::{ArmMeasurement, ClockInstant};
use gate::{Setpoint, TorqueLimit};
use link::ByteLink;
use servo::dialect::Dialect as _;
use servo::dynamixel::DynamixelDialect;
use servo::feetech::FeetechDialect;
use servo_map::{JointCommand, ServoMap};
use servos::ServoDriver;

pub mod diagnose;
pub mod error;
pub mod firmware;

mod dead_band_lead;
mod identity;
mod position_filter;
mod servo_map;
mod servos;
#[cfg(test)]
mod tests;

pub use error::{BusError, DriverError, ServoFault, ServoName};
pub use identity::check as check_identity;
pub use servo::{BusCounts, DurationHistogram, ServoCounts, ServoIdentity};

/// The result of attaching to a bus.
#[derive(Clone, Debug, PartialEq)]
pub struct AttachReport {
    /// Position of every joint.
    pub measured: ArmMeasurement,
    /// Every servo, in the servo map's order.
    pub servos: Vec<ServoIdentity>,
    /// Warnings for an operator that do not keep the arm from moving.
    pub warnings: Vec<String>,
    /// The slowest round trip of a ping, adapter and return delay included.
    pub latency: Duration,
}

/// The result of switching torque off, for every servo.
#[derive(Debug, Default)]
pub struct TorqueOffReport {
    /// Torque reads off.
    pub off: Vec<ServoName>,
    /// Torque may still be on, and why.
    pub failed: Vec<(ServoName, DriverError)>,
}

/// Refuses an arm with a joint whose range leaves the one turn that its servo counts, as attaching to the arm would.
///
/// # Errors
/// [`DriverError::Setup`] names the first such servo.
pub fn check_ranges(arm: &ArmModel) -> Result<(), DriverError> {
    let turn = match arm.file.family {
        ServoFamily::FeetechSts => FeetechDialect::POSITIONS,
        ServoFamily::Dynamixel2 => DynamixelDialect::POSITIONS,
        // A controller counts as its firmware does.
        ServoFamily::Firmware => return Ok(()),
    };
    for entry in ServoMap::new(arm).entries {
        let fits = entry.check_turn(turn.clone());
        fits.map_err(|fault| DriverError::Setup {
            servo: entry.name,
            fault,
        })?;
    }
    Ok(())
}

/// The future of a driver's call, boxed so that it is compiled in this crate only.
pub type DriverFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, DriverError>> + Send + 'a>>;

/// A driver for one arm.
pub struct ArmDriver(DriverKind);

enum DriverKind {
    Feetech(Box<ServoDriver<FeetechDialect>>),
    Dynamixel(Box<ServoDriver<DynamixelDialect>>),
    Firmware(Box<firmware::FirmwareDriver>),
}

/// Way to bring an arm to rest, ahead of everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HaltMode {
    /// Along its path; the queue is dropped.
    Hold,
    /// As hard as it can; latched until the arm is energised again.
    Emergency,
}

/// Place of the goals among the frames of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentGoals {
    /// The cycle sent no goals.
    None,
    /// In the first frame.
    First,
    /// In the last frame.
    Last,
}

/// Makes the same call on the driver of any family.
macro_rules! dispatch {
    ($kind:expr, $driver:ident => $call:expr) => {
        match $kind {
            DriverKind::Feetech($driver) => $call,
            DriverKind::Dynamixel($driver) => $call,
            DriverKind::Firmware($driver) => $call,
        }
    };
}

impl ArmDriver {
    /// Creates the driver of the family that the arm's file names.
    #[must_use]
    pub fn new(arm: &ArmModel, clock: &NodeClock) -> Self {
        Self(match arm.file.family {
            ServoFamily::FeetechSts => DriverKind::Feetech(Box::new(ServoDriver::new(arm, clock))),
            ServoFamily::Dynamixel2 => {
                DriverKind::Dynamixel(Box::new(ServoDriver::new(arm, clock)))
            }
            ServoFamily::Firmware => {
                DriverKind::Firmware(Box::new(firmware::FirmwareDriver::new(arm, clock)))
            }
        })
    }

    /// Finds and checks every servo and reads where it stands. Moves nothing, leaves torque and
    /// settings as they are, and may be repeated at any time.
    ///
    /// # Errors
    /// The first servo that is missing, is not set up as this arm needs, or gives implausible readings.
    pub fn attach<'a>(&'a mut self, link: &'a mut dyn ByteLink) -> DriverFuture<'a, AttachReport> {
        dispatch!(&mut self.0, driver => Box::pin(driver.attach(link)))
    }

    /// Switches torque on where every servo stands: first the goal is set to the present position and
    /// read back.
    ///
    /// # Errors
    /// When a servo does not take a written value or reports a fault; those that were limp before
    /// are then limp again.
    pub fn energise<'a>(
        &'a mut self,
        link: &'a mut dyn ByteLink,
    ) -> DriverFuture<'a, ArmMeasurement> {
        dispatch!(&mut self.0, driver => Box::pin(driver.energise(link)))
    }

    /// Sets every servo's torque limit for the motion that follows, reads it back, and reads where the
    /// motion begins. Nothing moves yet, so requests without a reply are repeated more often than in a
    /// cycle, within a bound. A controller over `firmware-protocol` has no such register; its own
    /// limits hold.
    ///
    /// # Errors
    /// When a servo does not take the limit: some may still have the previous one. When a servo cannot
    /// be read, or reports a fault.
    pub async fn begin(
        &mut self,
        link: &mut dyn ByteLink,
        limit: TorqueLimit,
    ) -> Result<ArmMeasurement, DriverError> {
        match &mut self.0 {
            DriverKind::Feetech(driver) => driver.begin(link, limit).await,
            DriverKind::Dynamixel(driver) => driver.begin(link, limit).await,
            DriverKind::Firmware(driver) => driver.read_start(link).await,
        }
    }

    /// Sends a setpoint to every servo, or the last one again for some cycles, and reads every servo
    /// back. Before [`Self::energise`] it only reads. [`Self::sent_goals`] says whether goals were sent.
    ///
    /// # Errors
    /// A servo cannot be read before `deadline`, or reports a fault.
    pub async fn cycle(
        &mut self,
        link: &mut dyn ByteLink,
        goal: Option<&Setpoint>,
        deadline: ClockInstant,
    ) -> Result<ArmMeasurement, DriverError> {
        let command = goal.map(|goal| JointCommand {
            goal_rad: *goal.goal_rad(),
            velocity_cap_rad_s: *goal.velocity_cap_rad_s(),
        });
        self.follow(link, command.as_ref(), deadline).await
    }

    /// Reads every servo back, and sends the last setpoint again for some cycles.
    ///
    /// # Errors
    /// As [`Self::cycle`].
    pub async fn hold(
        &mut self,
        link: &mut dyn ByteLink,
        deadline: ClockInstant,
    ) -> Result<ArmMeasurement, DriverError> {
        self.follow(link, None, deadline).await
    }

    pub(crate) async fn follow(
        &mut self,
        link: &mut dyn ByteLink,
        command: Option<&JointCommand>,
        deadline: ClockInstant,
    ) -> Result<ArmMeasurement, DriverError> {
        dispatch!(&mut self.0, driver => driver.cycle(link, command, deadline).await)
    }

    /// Takes torque off every servo, even if others do not reply. The arm drops.
    ///
    /// # Errors
    /// Only if the link itself fails; the result for single servos is in [`TorqueOffReport`].
    pub async fn release(
        &mut self,
        link: &mut dyn ByteLink,
    ) -> Result<TorqueOffReport, DriverError> {
        dispatch!(&mut self.0, driver => driver.release(link).await)
    }

    /// Returns whether [`Self::energise`] succeeded and no servo was found to have lost its torque since.
    /// Attaching again resets it.
    #[must_use]
    pub fn is_energised(&self) -> bool {
        dispatch!(&self.0, driver => driver.is_energised())
    }

    /// Restarts one servo, which clears its latched errors, and waits until it replies. Only while the
    /// arm is not energised: whatever it holds would drop.
    ///
    /// # Errors
    /// When the arm is energised, has no such servo, or its family has no such request; or when the
    /// servo does not come back.
    pub async fn reboot(&mut self, link: &mut dyn ByteLink, id: u8) -> Result<(), DriverError> {
        match &mut self.0 {
            DriverKind::Feetech(driver) => driver.reboot(link, id).await,
            DriverKind::Dynamixel(driver) => driver.reboot(link, id).await,
            DriverKind::Firmware(_) => Err(BusError::NoReboot { id }.into()),
        }
    }

    /// Brings the arm to rest from the next call of [`Self::cycle`] on, which sends the halt before
    /// anything else. Servos hold their last goal and need no command; a controller drops its queue.
    pub fn halt(&mut self, halt: HaltMode) {
        if let DriverKind::Firmware(driver) = &mut self.0 {
            driver.halt(halt);
        }
    }

    /// Returns whether everything that was sent has been carried out or dropped, as far as the arm
    /// reports. Servos have no queue: for them it is always true.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        match &self.0 {
            DriverKind::Firmware(driver) => driver.is_settled(),
            _ => true,
        }
    }

    /// Returns whether a standing joint keeps holding its last goal. A controller that has halted holds
    /// none.
    pub fn stands_at_its_goal(&self) -> bool {
        !matches!(self.0, DriverKind::Firmware(_))
    }

    /// Returns whether the last cycle sent goals. None go to servos of which one was not read in the
    /// cycle before, unless all are read now and have their torque; none to servos that are known to
    /// have lost it; and none again that were sent often enough.
    #[must_use]
    pub fn sent_goals(&self) -> SentGoals {
        match &self.0 {
            DriverKind::Feetech(driver) => driver.sent_goals(),
            DriverKind::Dynamixel(driver) => driver.sent_goals(),
            DriverKind::Firmware(_) => SentGoals::First,
        }
    }

    /// Forgets the goals of servos that could not be read in the last cycle: they hold what they
    /// received, as far as they have power, and get no goal before they are energised again.
    pub fn forget_unread_goals(&mut self) {
        match &mut self.0 {
            DriverKind::Feetech(driver) => driver.forget_unread_goals(),
            DriverKind::Dynamixel(driver) => driver.forget_unread_goals(),
            DriverKind::Firmware(_) => {}
        }
    }

    /// Holds goals back until a reading shows that every servo has its torque: for a while none was read.
    pub fn doubt_torque(&mut self) {
        match &mut self.0 {
            DriverKind::Feetech(driver) => driver.doubt_torque(),
            DriverKind::Dynamixel(driver) => driver.doubt_torque(),
            DriverKind::Firmware(_) => {}
        }
    }

    /// Returns the counters of this port.
    #[must_use]
    pub fn counts(&self) -> &BusCounts {
        dispatch!(&self.0, driver => driver.counts())
    }
}
