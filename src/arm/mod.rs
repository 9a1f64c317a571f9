//! An arm's description: its chain, limits, body, servo map and how the simulator should move it.
//!
//! Described in TOML, one file an arm. It knows nothing of scenes or of the bytes on a bus.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use nalgebra::{Isometry3, Point3, Translation3, Unit, UnitQuaternion, Vector3};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use base::units::{Finite, JOINTS_MAX, JointVector, OutOfRange, SERVOS_MAX};
use kin::{KinematicChain, RevoluteJoint};

mod arm_fault;
mod base_frame;
mod bus_place;
mod gear_wear;
mod gravity_load;
mod joint_compensation;
mod link_mass;
mod parts_apart;
mod servo_figures;
mod shipped_arms;
mod simulated_servo;
pub mod urdf;

pub use arm_fault::ArmFault;
pub use base_frame::{BaseFrame, FrameBefore};
pub use bus_place::BusPlace;
pub use gear_wear::GearWear;
pub use gravity_load::{CarriedMass, GravityLoad};
pub use joint_compensation::{CompensationFile, GearModel, JointCompensation};
pub use link_mass::LinkMass;
pub use servo_figures::ServoFigures;
pub use shipped_arms::{SHIPPED_ARMS, arm_of_ids, ids_beside};
pub use simulated_servo::{SimulatedServo, StribeckFriction};

/// An arm as its file describes it.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArmFile {
    /// The arm's name, to which a scene's `arm` refers.
    pub name: String,
    /// One line for people.
    pub about: String,
    /// The name of an arm with the same joints, whose scenes this arm can draw as well. A file without `joints` is a variant of that
    /// arm: whatever it leaves out is as in that arm's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub like: Option<String>,
    /// Frame of its places. Absent: that of its maker's description, whose height over the table nobody has checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<BaseFrame>,
    /// Frame and zeros of its files that name no frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_before: Option<FrameBefore>,
    /// Which servos it has, and so which bytes they speak.
    pub family: ServoFamily,
    /// Bits a second on the bus.
    pub baud: u32,
    /// Voltage of the supply for its servos, 3 to 60: a servo that reads far from it is a fault. Absent, as where servos of
    /// several kinds have several supplies: those of one kind are compared with each other alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supply_v: Option<Finite>,
    /// Versions of the servos' firmware, such as `3.9`, that a person vouches for where they differ. Versions with another
    /// first number are refused all the same: their registers lie elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub firmware: Vec<String>,
    /// From the base outwards, 1 to 7.
    pub joints: Vec<JointFile>,
    /// Servos that turn no joint and only hold still, such as a gripper around the pen.
    #[serde(default)]
    pub held: Vec<HeldServo>,
    /// Identity of each servo when the zeros were measured, by its id: as `steadyhand doctor` prints it.
    /// Empty: accepts any servos that are set up as the family requires.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub identity: BTreeMap<String, String>,
    /// Tool mount, in the last joint's frame.
    pub tool_mount: FrameFile,
    /// The body as capsules, for clearance; each in the frame that its joint moves.
    #[serde(default)]
    pub capsules: Vec<CapsuleFile>,
    /// Pairs of capsules that may touch, by name; neighbours always may.
    #[serde(default)]
    pub may_touch: Vec<[String; 2]>,
    /// Masses of the links. Absent: the sag in `compensation` refers to capsules filled with water.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub masses: Vec<LinkMass>,
    /// Figures of the servos. Absent: how stiffly they hold is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servo: Option<ServoFigures>,
    /// Measured play and sag of the joints, which plans of drawings compensate for. Absent: not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compensation: Option<CompensationFile>,
    /// Motion of the simulated arm.
    #[serde(default)]
    pub simulation: SimulationParameters,
}

/// Which servos an arm has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ServoFamily {
    /// Feetech STS and SMS series on a half-duplex bus.
    FeetechSts,
    /// Robotis Dynamixel X series, protocol 2.0.
    Dynamixel2,
    /// A self-built controller, over `firmware-protocol`. It counts in microradians: each
    /// joint has one servo with `ticks_per_turn = 6283185`, whose id is the joint's place on the
    /// controller, counted from 1.
    Firmware,
}

/// A place and an orientation, relative to the frame before it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FrameFile {
    /// Metres along x, y and z.
    pub origin_m: [Finite; 3],
    /// Radians about the fixed x, then y, then z axis, as in URDF.
    pub rpy_rad: [Finite; 3],
}

/// One joint as the file describes it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JointFile {
    /// The joint's name.
    pub name: String,
    /// Metres, in the frame of the joint before.
    pub origin_m: [Finite; 3],
    /// Radians about the fixed x, then y, then z axis, as in URDF.
    pub rpy_rad: [Finite; 3],
    /// The axis it turns about, in its own frame; any length but zero.
    pub axis: [Finite; 3],
    /// Lowest angle.
    pub lower_rad: Finite,
    /// Highest angle.
    pub upper_rad: Finite,
    /// Margin that the arm always keeps from those limits.
    #[serde(default = "margin_rad_default")]
    pub margin_rad: Finite,
    /// Largest speed that it is ever commanded, limited further to 0.3 s of its acceleration, which is what a stop can brake.
    /// Motions are planned with a part of it ([`ArmLimits::cruise_rad_s`]).
    pub velocity_max_rad_s: Finite,
    /// Largest acceleration that it is ever commanded.
    pub acceleration_max_rad_s2: Finite,
    /// The servo that turns it; a second one where two are coupled.
    pub servos: Vec<ServoFile>,
}

fn margin_rad_default() -> Finite {
    Finite::literal(0.05)
}

/// Relation of a servo's count to its joint's angle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServoFile {
    /// Its id on the bus, 0 to 252.
    pub id: u8,
    /// 1 if the count rises with the angle, -1 if it falls.
    pub sign: i8,
    /// The count at angle zero.
    pub zero_tick: i32,
    /// Counts in one turn.
    #[serde(default = "ticks_per_turn_default")]
    pub ticks_per_turn: u32,
    /// By how many counts it may miss its goal without correcting. Goals lead by this much in the
    /// direction of travel, so that the joint arrives where it should be.
    #[serde(default)]
    pub dead_band_ticks: u8,
}

/// A servo that only holds the position in which it is found.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeldServo {
    /// Name of its function.
    pub name: String,
    /// Its id on the bus, 0 to 252.
    pub id: u8,
}

/// Counts per turn of a controller that counts in microradians.
const MICRORADIANS_PER_TURN: u32 = 6_283_185;

const fn ticks_per_turn_default() -> u32 {
    4096
}

/// A capsule of the body as the file describes it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CapsuleFile {
    /// Its name, for messages and for `may_touch`.
    pub name: String,
    /// The joint that moves it; absent for the base.
    #[serde(default)]
    pub joint: Option<String>,
    /// One end of its axis.
    pub from_m: [Finite; 3],
    /// The other end.
    pub to_m: [Finite; 3],
    /// Its radius.
    pub radius_m: Finite,
}

/// Deviations of the simulated servos and gears from their commands.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SimulationParameters {
    /// Time constant with which a servo follows its goal, where there is no `servo`.
    pub lag_s: Finite,
    /// Fastest that a servo turns.
    pub speed_max_rad_s: Finite,
    /// Goal errors up to this many ticks are not corrected.
    pub dead_band_ticks: u16,
    /// Play between servo and joint, total.
    pub backlash_deg: Finite,
    /// Time between a request's last byte and the reply's first.
    pub return_delay_us: u32,
    /// Models that the simulated servos report, by their ids; those of the family's usual one are left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, u16>,
    /// Wear of the servos; absent where they are as good as new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wear: Option<GearWear>,
    /// Figures of a measured servo, which then moves by its torque. Absent: a servo that follows its goal with a lag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servo: Option<SimulatedServo>,
}

impl Default for SimulationParameters {
    fn default() -> Self {
        Self {
            lag_s: Finite::literal(0.02),
            speed_max_rad_s: Finite::literal(5.5),
            dead_band_ticks: 1,
            backlash_deg: Finite::literal(0.0),
            return_delay_us: 20,
            models: BTreeMap::new(),
            wear: None,
            servo: None,
        }
    }
}

/// An arm that has been checked: the chain can be computed and the servo map is complete.
#[derive(Clone, Debug)]
pub struct ArmModel {
    /// As it was described, with the ids that its servos have on their bus.
    pub file: ArmFile,
    /// Its place on that bus.
    pub bus: BusPlace,
    /// The chain up to the tool mount.
    pub chain: KinematicChain,
    /// Limits of each joint in the chain's order, with the margin already subtracted.
    pub limits: ArmLimits,
    /// The body.
    pub capsules: Vec<Capsule>,
    /// The load of its masses, upright.
    pub load: GravityLoad,
    /// Play and sag that plans of drawings compensate for.
    pub compensation: Option<JointCompensation>,
}

/// Limits of all joints.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArmLimits {
    /// Lowest angles, with the margin subtracted.
    pub lower_rad: JointVector,
    /// Highest angles, with the margin subtracted.
    pub upper_rad: JointVector,
    /// Largest speed.
    pub velocity_rad_s: JointVector,
    /// Largest acceleration.
    pub acceleration_rad_s2: JointVector,
    /// Largest change of acceleration: from zero to the largest in [`RISE_S`].
    pub jerk_rad_s3: JointVector,
}

impl ArmLimits {
    /// Returns the largest speeds that motions are planned with, the same fraction of every limit.
    ///
    /// A goal waits for its joint where it would stop beyond the leash if it braked now. At these
    /// speeds it never has to wait for a joint that follows: of the leash, braking with half of the
    /// acceleration takes `v * t`, where `t` is the longest time in which a joint reaches its speed,
    /// a servo that brakes for the goal before it takes `v * t / 2`, and a reading's age `v` times
    /// [`READING_AGE`].
    #[must_use]
    pub fn cruise_rad_s(&self) -> JointVector {
        let (speeds, hardest) = (self.velocity_rad_s.iter(), self.acceleration_rad_s2.iter());
        let rise_s = speeds.zip(hardest).map(|(v, a)| v / a).fold(0.0, f64::max);
        let rises_s = 3.0 * rise_s;
        let age_s = READING_AGE.as_secs_f64();
        let root_s = age_s.hypot((2.0 * rises_s * LEASH.as_secs_f64()).sqrt());
        let fraction = ((root_s - age_s) / rises_s).min(1.0);
        self.velocity_rad_s.map(|_, v| v * fraction)
    }
}

/// Largest distance of a goal from its joint, its leash, as time at the joint's largest speed.
pub const LEASH: Duration = Duration::from_millis(150);

/// Age of a reading beyond which a motion waits.
pub const READING_AGE: Duration = Duration::from_millis(30);

/// Time in which a joint's acceleration reaches its largest speed. Half of that acceleration brakes a stop along the path,
/// for 0.6 s at most.
pub const STOPPABLE_S: f64 = 0.3;

/// Poses of which the largest load is taken, and numbers whose roots spread them.
const POSES: u16 = 500;
const PRIMES: [f64; JOINTS_MAX] = [2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0];

/// Shortest time in which a joint's acceleration rises from zero to its largest.
pub const RISE_S: f64 = 0.02;

/// A capsule of the body.
#[derive(Clone, Debug)]
pub struct Capsule {
    /// Its name.
    pub name: String,
    /// Number of joints that move it: 0 for the base, `n` for a part carried by the n-th joint.
    pub joints_before: usize,
    /// One end of its axis, in the frame of that joint.
    pub from_m: Point3<f64>,
    /// The other end.
    pub to_m: Point3<f64>,
    /// Its radius.
    pub radius_m: f64,
}

/// Error in an arm's description.
#[derive(Debug, thiserror::Error)]
pub enum ArmError {
    /// Not TOML, or an unknown key.
    #[error("{0}")]
    Text(String),
    /// A description that no arm can have.
    #[error("arm `{}`: {fault}", arm.escape_debug())]
    Wrong {
        /// The arm.
        arm: String,
        /// The value, the limit and the fix.
        fault: ArmFault,
    },
}

impl ArmModel {
    /// Checks a description and computes its chain.
    ///
    /// # Errors
    /// [`ArmError::Wrong`] names the joint, the value and the limit.
    pub fn new(file: ArmFile) -> Result<Self, ArmError> {
        let wrong = |fault| ArmError::Wrong {
            arm: file.name.clone(),
            fault,
        };
        check(&file).map_err(wrong)?;
        let joints = file.joints.iter().map(joint).collect();
        let FrameFile { origin_m, rpy_rad } = file.tool_mount;
        let chain = KinematicChain::new(joints, isometry(vector(origin_m), vector(rpy_rad)));
        let chain = chain.map_err(|error| wrong(error.into()))?;
        let limits = limits(&file);
        let capsules: Vec<Capsule> = file.capsules.iter().map(|c| capsule(&file, c)).collect();
        let load = link_mass::load(&file, &capsules);
        let measured = file.compensation.as_ref();
        let compensation = measured.map(JointCompensation::new);
        Ok(Self {
            chain,
            limits,
            capsules,
            load,
            compensation,
            bus: BusPlace::default(),
            file,
        })
    }

    /// Returns whether it has the same servos, zeros, limits, links and body as another arm of the same name, be its ids moved
    /// or not.
    #[must_use]
    pub fn has_same_mechanics(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.file_as_written(), other.file_as_written());
        ours.family == theirs.family
            && ours.joints == theirs.joints
            && ours.held == theirs.held
            && ours.tool_mount == theirs.tool_mount
            && ours.capsules == theirs.capsules
            && ours.may_touch == theirs.may_touch
    }

    /// Returns the number of joints.
    #[must_use]
    pub fn dof(&self) -> usize {
        self.file.joints.len()
    }

    /// Returns the angle by which each joint's servos yield to a newton metre, from their figures, the gain P that was read
    /// of each and their supply; 0 where they are not known.
    #[must_use]
    pub fn servo_yield_rad_per_n_m(
        &self,
        gain_p: impl Fn(u8) -> Option<u8>,
        supply_v: Option<f64>,
    ) -> JointVector {
        let mut stiffness_n_m_rad = JointVector::zeros(self.dof());
        let Some(figures) = &self.file.servo else {
            return stiffness_n_m_rad;
        };
        for (joint, servo) in self.servos() {
            let gain_p = gain_p(servo.id).unwrap_or(0);
            let stiffness = figures.stiffness_n_m_rad(gain_p, supply_v);
            stiffness_n_m_rad =
                stiffness_n_m_rad.map(|of, sum| if of == joint { sum + stiffness } else { sum });
        }
        stiffness_n_m_rad.map(|_, stiffness| {
            if stiffness > 0.0 {
                1.0 / stiffness
            } else {
                0.0
            }
        })
    }

    /// Returns the largest torque that gravity exerts on each joint, of poses all over its range.
    #[must_use]
    pub fn largest_load_n_m(&self) -> JointVector {
        let (lower, upper) = (&self.limits.lower_rad, &self.limits.upper_rad);
        let range = lower.zip(upper, |lower, upper| upper - lower);
        let mut largest = JointVector::zeros(self.dof());
        for look in 0..POSES {
            let fractions = range.map(|joint, range| {
                let prime = PRIMES.get(joint).copied().unwrap_or(2.0);
                range * (f64::from(look) * prime.sqrt()).fract()
            });
            let pose = lower.zip(&fractions, |lower, above| lower + above);
            let load = self.load.torque_n_m(&self.chain, &pose);
            largest = largest.zip(&load, |most, load| most.max(load.abs()));
        }
        largest
    }

    /// Returns the angle by which each joint yields to a newton metre beyond what its servos' figures say, as calibrated.
    #[must_use]
    pub fn calibrated_yield_rad_per_n_m(&self) -> JointVector {
        let calibrated = self.compensation.as_ref();
        calibrated.map_or_else(
            || JointVector::zeros(self.dof()),
            |found| found.yield_rad_per_n_m,
        )
    }

    /// Returns the largest distance of any point of the body from the base frame's origin over all poses, in metres:
    /// that of the stretched chain.
    #[must_use]
    pub fn reach_m(&self) -> f64 {
        let reach = |capsule: &Capsule| {
            let ends_m = [capsule.from_m, capsule.to_m].map(|end| end.coords.norm());
            self.max_distance_m(capsule.joints_before) + ends_m[0].max(ends_m[1]) + capsule.radius_m
        };
        let mount_m = self.max_distance_m(self.dof()) + self.chain.mount_m();
        self.capsules.iter().map(reach).fold(mount_m, f64::max)
    }

    /// Returns the largest distance from the base frame's origin of a point that is fixed to the tool mount, in metres.
    #[must_use]
    pub fn tool_reach_m(&self, in_mount_m: &Point3<f64>) -> f64 {
        self.max_distance_m(self.dof()) + self.chain.mount_m() + in_mount_m.coords.norm()
    }

    /// Returns the largest distance of the last of the first `joints` joints from the base frame's origin, in metres.
    fn max_distance_m(&self, joints: usize) -> f64 {
        let links = self.chain.joints().iter().take(joints);
        links
            .map(|joint| joint.origin.translation.vector.norm())
            .sum()
    }

    /// Returns a joint's name, or its number if there is no such joint.
    #[must_use]
    pub fn joint_name(&self, index: usize) -> String {
        let joint = self.file.joints.get(index);
        joint.map_or_else(|| index.to_string(), |joint| joint.name.clone())
    }

    /// Returns every servo with the index of the joint that it turns, in the servo map's order.
    pub fn servos(&self) -> impl Iterator<Item = (usize, ServoFile)> {
        let joints = self.file.joints.iter().enumerate();
        joints.flat_map(|(index, joint)| joint.servos.iter().map(move |servo| (index, *servo)))
    }

    /// Returns the number of servos that turn each joint.
    #[must_use]
    pub fn servos_per_joint(&self) -> JointVector {
        let joints = self.file.joints.iter();
        let counts: Vec<f64> = joints.map(|joint| joint.servos.len() as f64).collect();
        JointVector::from_slice(&counts)
    }

    /// Returns where the servos that turn a joint stand in the servo map's order.
    #[must_use]
    pub fn servo_places(&self, joint: usize) -> Vec<usize> {
        let servos = self.servos().enumerate();
        let of_joint = servos.filter(|(_, (index, _))| *index == joint);
        of_joint.map(|(place, _)| place).collect()
    }
}

impl ServoFile {
    /// Returns the count for an angle, rounded to the nearest.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "`as` saturates, and limits are checked"
    )]
    pub fn ticks(&self, angle_rad: f64) -> i32 {
        let turns = f64::from(self.sign) * angle_rad / std::f64::consts::TAU;
        self.zero_tick
            .saturating_add((turns * f64::from(self.ticks_per_turn)).round() as i32)
    }

    /// Returns the angle for a count.
    #[must_use]
    pub fn angle_rad(&self, ticks: i32) -> f64 {
        let turns =
            f64::from(ticks.saturating_sub(self.zero_tick)) / f64::from(self.ticks_per_turn);
        f64::from(self.sign) * turns * std::f64::consts::TAU
    }
}

/// Supplies of servos.
const SUPPLY_V: std::ops::RangeInclusive<f64> = 3.0..=60.0;

/// Returns whether a text is a version of firmware, such as `3.10`.
fn is_firmware(version: &str) -> bool {
    let numbers = version.split_once('.');
    numbers.is_some_and(|(major, minor)| major.parse::<u8>().is_ok() && minor.parse::<u8>().is_ok())
}

fn check(file: &ArmFile) -> Result<(), ArmFault> {
    let count = file.joints.len();
    if count == 0 || count > JOINTS_MAX {
        return Err(ArmFault::JointCount(count));
    }
    if file.baud == 0 {
        return Err(ArmFault::NoBaud);
    }
    if let Some(supply_v) = file.supply_v {
        OutOfRange::check(|| "supply_v".to_owned(), supply_v, &SUPPLY_V)?;
    }
    if let Some(version) = file.firmware.iter().find(|version| !is_firmware(version)) {
        return Err(ArmFault::Firmware(version.clone()));
    }
    check_names(file)?;
    file.joints.iter().try_for_each(check_joint)?;
    check_ids(file)?;
    check_identity(file)?;
    if file.family == ServoFamily::Firmware {
        check_controller_servos(file)?;
    }
    for capsule in &file.capsules {
        if let Some(name) = &capsule.joint
            && !file.joints.iter().any(|joint| joint.name == *name)
        {
            return Err(ArmFault::CapsuleJoint {
                capsule: capsule.name.clone(),
                joint: name.clone(),
            });
        }
        check_size(capsule)?;
    }
    // Without a description of the moving body, the arm would be kept off nothing, not even itself.
    if file.capsules.iter().all(|capsule| capsule.joint.is_none()) {
        return Err(ArmFault::NoMovingCapsule);
    }
    gear_wear::check(file)?;
    simulated_servo::check(file)?;
    joint_compensation::check(file)?;
    link_mass::check(file)?;
    servo_figures::check(file)?;
    check_may_touch(file)
}

/// Refuses names that contain control sequences for a terminal, or that would look like another line of a list.
fn check_names(file: &ArmFile) -> Result<(), ArmFault> {
    let joints = file.joints.iter().map(|joint| ("a joint", &joint.name));
    let capsules = file.capsules.iter().map(|part| ("a capsule", &part.name));
    let mut names = std::iter::once(("the arm", &file.name))
        .chain(joints)
        .chain(capsules);
    let is_bad = |name: &str| name.trim().is_empty() || name.chars().any(char::is_control);
    let bad_name = names.find(|(_, name)| is_bad(name));
    refuse(bad_name.map(|(of, name)| ArmFault::Name {
        of,
        name: name.clone(),
    }))
}

fn refuse(fault: Option<ArmFault>) -> Result<(), ArmFault> {
    fault.map_or(Ok(()), Err)
}

/// Longer than any part of an arm on a table.
const PART_MAX_M: f64 = 10.0;

/// Refuses a capsule without thickness, which would hide a part of the arm, or larger than any part of an arm. The message
/// warns that lengths are in metres, not millimetres.
fn check_size(capsule: &CapsuleFile) -> Result<(), ArmFault> {
    let radius_m = capsule.radius_m.get();
    if radius_m <= 0.0 {
        return Err(ArmFault::NoRadius {
            capsule: capsule.name.clone(),
            radius_m,
        });
    }
    let ends = capsule.from_m.iter().chain(&capsule.to_m);
    let mut lengths_m = ends.chain([&capsule.radius_m]).map(|length| length.get());
    let too_long = lengths_m.find(|length_m| length_m.abs() > PART_MAX_M);
    refuse(too_long.map(|length_m| ArmFault::TooLong {
        capsule: capsule.name.clone(),
        length_m,
    }))
}

fn check_may_touch(file: &ArmFile) -> Result<(), ArmFault> {
    let exists = |name: &String| file.capsules.iter().any(|capsule| capsule.name == *name);
    let unknown = file.may_touch.iter().flatten().find(|name| !exists(name));
    refuse(unknown.map(|name| ArmFault::MayTouch {
        name: name.clone(),
        valid: file.capsules.iter().map(|c| c.name.clone()).collect(),
    }))
}

/// Joint speeds of arms on a table: a goal is never further ahead than 150 ms of the fastest.
const VELOCITY_RANGE_RAD_S: RangeInclusive<f64> = 0.001..=40.0;

/// Joint accelerations of arms on a table.
const ACCELERATION_RANGE_RAD_S2: RangeInclusive<f64> = 0.001..=2_000.0;

fn check_joint(joint: &JointFile) -> Result<(), ArmFault> {
    let name = &joint.name;
    let (lower, upper) = (joint.lower_rad.get(), joint.upper_rad.get());
    let margin = joint.margin_rad.get();
    if margin < 0.0 || lower + margin >= upper - margin {
        return Err(ArmFault::NoRange {
            joint: name.clone(),
            lower_rad: lower,
            upper_rad: upper,
            margin_rad: margin,
        });
    }
    let (velocity, acceleration) = (joint.velocity_max_rad_s, joint.acceleration_max_rad_s2);
    for (what, value, range) in [
        ("velocity_max_rad_s", velocity, VELOCITY_RANGE_RAD_S),
        (
            "acceleration_max_rad_s2",
            acceleration,
            ACCELERATION_RANGE_RAD_S2,
        ),
    ] {
        OutOfRange::check(|| format!("joint `{name}`: {what}"), value, &range)?;
    }
    if joint.servos.is_empty() || joint.servos.len() > 2 {
        return Err(ArmFault::JointServos {
            joint: name.clone(),
            count: joint.servos.len(),
        });
    }
    let faults = joint.servos.iter().map(|servo| servo_fault(name, *servo));
    refuse(faults.flatten().next())
}

fn servo_fault(joint: &str, servo: ServoFile) -> Option<ArmFault> {
    let joint = joint.to_owned();
    match servo {
        ServoFile { id, .. } if id > SERVO_ID_MAX => Some(ArmFault::ServoId { joint, id }),
        ServoFile { sign, .. } if sign != 1 && sign != -1 => {
            Some(ArmFault::ServoSign { joint, sign })
        }
        ServoFile {
            ticks_per_turn: 0, ..
        } => Some(ArmFault::NoTicks { joint }),
        _ => None,
    }
}

/// Largest id of a servo on a bus.
const SERVO_ID_MAX: u8 = 252;

/// Digits of a servo's identity.
pub const IDENTITY_DIGITS: usize = 8;

/// Returns every servo's id, those of the held ones last.
fn servo_ids(file: &ArmFile) -> impl Iterator<Item = u8> {
    let turning = file.joints.iter().flat_map(|joint| &joint.servos);
    let held = file.held.iter().map(|held| held.id);
    turning.map(|servo| servo.id).chain(held)
}

/// Checks that either no servo has an identity, or each of the arm's has one.
fn check_identity(file: &ArmFile) -> Result<(), ArmFault> {
    let ids: Vec<String> = servo_ids(file).map(|id| id.to_string()).collect();
    if let Some(unknown) = file.identity.keys().find(|id| !ids.contains(id)) {
        let id = unknown.clone();
        return Err(ArmFault::IdentityOfNone { id, ids });
    }
    let is_identity = |text: &String| {
        text.len() == IDENTITY_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    if let Some((id, text)) = file.identity.iter().find(|(_, text)| !is_identity(text)) {
        return Err(ArmFault::Identity {
            id: id.clone(),
            text: text.clone(),
            arm: file.name.clone(),
        });
    }
    let mut missing = ids.iter().filter(|id| !file.identity.contains_key(*id));
    let first = missing.next().filter(|_| !file.identity.is_empty());
    refuse(first.map(|id| ArmFault::NoIdentity(id.clone())))
}

/// Checks that each joint has the servo that a controller expects: one by the joint's place, which counts microradians.
fn check_controller_servos(file: &ArmFile) -> Result<(), ArmFault> {
    if let Some(held) = file.held.first() {
        return Err(ArmFault::HeldByController(held.name.clone()));
    }
    for (joint, place) in file.joints.iter().zip(1_u8..) {
        let fits = matches!(joint.servos.as_slice(), [servo]
            if servo.id == place && servo.ticks_per_turn == MICRORADIANS_PER_TURN);
        if !fits {
            return Err(ArmFault::FirmwareServo {
                joint: joint.name.clone(),
                place,
            });
        }
    }
    Ok(())
}

fn check_ids(file: &ArmFile) -> Result<(), ArmFault> {
    let mut ids: Vec<u8> = servo_ids(file).collect();
    if ids.len() > SERVOS_MAX {
        return Err(ArmFault::ServoCount(ids.len()));
    }
    ids.sort_unstable();
    let mut neighbours = ids.iter().zip(ids.iter().skip(1));
    let duplicate = neighbours.find(|(one, other)| one == other);
    refuse(duplicate.map(|(one, other)| ArmFault::SameId([*one, *other])))
}

fn joint(file: &JointFile) -> RevoluteJoint {
    RevoluteJoint {
        origin: isometry(vector(file.origin_m), vector(file.rpy_rad)),
        axis: Unit::new_normalize(vector(file.axis)),
        lower_rad: file.lower_rad.get() + file.margin_rad.get(),
        upper_rad: file.upper_rad.get() - file.margin_rad.get(),
    }
}

fn limits(file: &ArmFile) -> ArmLimits {
    let each = |f: &dyn Fn(&JointFile) -> f64| {
        JointVector::from_slice(&file.joints.iter().map(f).collect::<Vec<_>>())
    };
    ArmLimits {
        lower_rad: each(&|j| j.lower_rad.get() + j.margin_rad.get()),
        upper_rad: each(&|j| j.upper_rad.get() - j.margin_rad.get()),
        velocity_rad_s: each(&|j| {
            let stoppable = j.acceleration_max_rad_s2.get() * STOPPABLE_S;
            j.velocity_max_rad_s.get().min(stoppable)
        }),
        acceleration_rad_s2: each(&|j| j.acceleration_max_rad_s2.get()),
        jerk_rad_s3: each(&|j| j.acceleration_max_rad_s2.get() / RISE_S),
    }
}

#[expect(
    clippy::expect_used,
    reason = "`check` refuses a joint that does not exist"
)]
fn capsule(file: &ArmFile, capsule: &CapsuleFile) -> Capsule {
    let joints_before = capsule.joint.as_ref().map_or(0, |name| {
        let index = file.joints.iter().position(|joint| joint.name == *name);
        index.expect("the capsule's joint") + 1
    });
    Capsule {
        name: capsule.name.clone(),
        joints_before,
        from_m: vector(capsule.from_m).into(),
        to_m: vector(capsule.to_m).into(),
        radius_m: capsule.radius_m.get(),
    }
}

fn vector(values: [Finite; 3]) -> Vector3<f64> {
    values.map(Finite::get).into()
}

/// Returns a frame's pose from its origin and roll, pitch and yaw, as URDF defines them.
#[must_use]
pub fn isometry(origin_m: Vector3<f64>, rpy_rad: Vector3<f64>) -> Isometry3<f64> {
    let rotation = UnitQuaternion::from_euler_angles(rpy_rad.x, rpy_rad.y, rpy_rad.z);
    Isometry3::from_parts(Translation3::from(origin_m), rotation)
}

#[cfg(test)]
mod tests;
