//! Invalid values in an arm's description.

use super::{IDENTITY_DIGITS, MICRORADIANS_PER_TURN, PART_MAX_M, SERVO_ID_MAX};
use base::units::{JOINTS_MAX, OutOfRange, SERVOS_MAX};
use kin::KinError;

/// Reason that an arm's description is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ArmFault {
    #[error("the arm has {0} joints; 1 to {JOINTS_MAX} are possible")]
    JointCount(usize),
    #[error("`baud` is 0; it must be the speed of the servos' bus, such as 1000000")]
    NoBaud,
    #[error("`firmware`: {0:?} is not a version. Next: write two numbers, such as \"3.10\"")]
    Firmware(String),
    #[error("capsule `{capsule}`: there is no joint `{joint}`")]
    CapsuleJoint { capsule: String, joint: String },
    #[error("the name `{}` of {of} is empty or contains a control character. Next: write it in letters", name.escape_debug())]
    Name { of: &'static str, name: String },
    #[error(
        "no capsule moves with a joint, so body collisions cannot be checked. Next: describe each link in `[[capsules]]` with its `joint`"
    )]
    NoMovingCapsule,
    #[error("capsule `{capsule}`: `radius_m` is {radius_m}; it must be above 0")]
    NoRadius { capsule: String, radius_m: f64 },
    #[error(
        "capsule `{capsule}` is {length_m} m long; {PART_MAX_M} m is the limit. Lengths are in metres"
    )]
    TooLong { capsule: String, length_m: f64 },
    #[error("`may_touch`: there is no capsule `{name}`. Valid: {}", valid.join(", "))]
    MayTouch { name: String, valid: Vec<String> },
    #[error(
        "joint `{joint}`: its limits {lower_rad} to {upper_rad} rad leave no range after a margin of {margin_rad} rad at each end"
    )]
    NoRange {
        joint: String,
        lower_rad: f64,
        upper_rad: f64,
        margin_rad: f64,
    },
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    #[error("joint `{joint}` has {count} servos; 1 or 2 are possible")]
    JointServos { joint: String, count: usize },
    #[error("joint `{joint}`: servo id {id} is above {SERVO_ID_MAX}")]
    ServoId { joint: String, id: u8 },
    #[error("joint `{joint}`: sign {sign} is neither 1 nor -1")]
    ServoSign { joint: String, sign: i8 },
    #[error("joint `{joint}`: `ticks_per_turn` must be above 0")]
    NoTicks { joint: String },
    #[error("`identity`: this arm has no servo `{id}`; it has {}", ids.join(", "))]
    IdentityOfNone { id: String, ids: Vec<String> },
    #[error(
        "`identity`: `{text}` of servo {id} is not {IDENTITY_DIGITS} hexadecimal digits. Next: copy it from `steadyhand doctor PORT --arm {arm}`"
    )]
    Identity {
        id: String,
        text: String,
        arm: String,
    },
    #[error(
        "`identity`: servo {0} is missing. Next: write the identities of all servos, or of none"
    )]
    NoIdentity(String),
    #[error(
        "`held` names `{0}`, but a controller holds its joints itself. Next: remove the key `held`"
    )]
    HeldByController(String),
    #[error(
        "joint `{joint}`: family `firmware` needs `servos = [{{ id = {place}, sign = 1, zero_tick = 0, ticks_per_turn = {MICRORADIANS_PER_TURN} }}]`; `sign` and `zero_tick` may have other values"
    )]
    FirmwareServo { joint: String, place: u8 },
    #[error("the arm has {0} servos; at most {SERVOS_MAX} are possible")]
    ServoCount(usize),
    #[error("servo id {0:?} is used twice; every servo needs its own")]
    SameId([u8; 2]),
    #[error(
        "`first_id = {first}` makes the highest id {last}; {SERVO_ID_MAX} is the limit. Next: write a lower one"
    )]
    FirstId { first: u8, last: u16 },
    #[error(
        "`first_id` is for servos on a bus; on a controller an id is the joint's number in the chain. Next: remove the key"
    )]
    FirstIdOfController,
    #[error(
        "`simulation`: `backlash_deg` and `wear.play_deg` both set the play. Next: leave `backlash_deg` out"
    )]
    PlayTwice,
    #[error("`masses`: there is no joint `{0}`")]
    MassJoint(String),
    #[error(
        "`simulation`: `servo` and `wear` both set how far a servo yields. Next: leave `wear.sag_deg_per_n_m` and `wear.servo_friction` out"
    )]
    ServoTwice,
    #[error("`simulation.wear.masses_g`: there is no capsule `{0}`")]
    MassOfNone(String),
    #[error(
        "`compensation.{key}` has {count} angles; the arm has {joints} joints, and each needs one"
    )]
    CompensationJoints {
        key: &'static str,
        count: usize,
        joints: usize,
    },
    #[error("`like = \"{like}\"` names an arm with {joints} joints; this arm has {own_joints}")]
    StandIn {
        like: String,
        joints: usize,
        own_joints: usize,
    },
    #[error(transparent)]
    Chain(#[from] KinError),
}
