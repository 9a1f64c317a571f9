//! Settings of servos that no arm can use: the register, its value, the value needed and the fix.

use std::ops::RangeInclusive;

/// Setting of a servo that an arm cannot use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupFault {
    /// A Dynamixel servo of a different series.
    #[error("model is {0}, not a Dynamixel X servo: its registers are different")]
    NoDynamixelX(u16),
    /// A Dynamixel servo whose speed caps are durations.
    #[error(
        "drive mode (register 10) is {drive}; its bit 0x04 turns speed limits into durations. Set it to {needed}"
    )]
    TimeBased {
        /// The drive mode.
        drive: u8,
        /// The same without the bit.
        needed: u8,
    },
    /// A Dynamixel servo that does not control its position within one turn.
    #[error(
        "operating mode (register 11) is {0} but must be 3 (position). In extended position mode a servo may move again after its watchdog has tripped"
    )]
    DynamixelMode(u8),
    /// A Dynamixel servo that also obeys another one's goals.
    #[error(
        "secondary id (register 12) is {0}, the id of another servo, so it would also follow that servo's goals: set it to 255"
    )]
    SecondaryId(u8),
    /// A Feetech servo of a different model.
    #[error(
        "model is {model}, but this arm needs 777 (STS3215) or 2825 (STS3250): replace the servo, or name the right family in the arm file"
    )]
    NoSts {
        /// The model.
        model: u16,
    },
    /// Two Feetech servos with one id.
    #[error(
        "a reply from id {requested} has id {id} (register 5), so two servos share one id: connect one alone and give it a different id"
    )]
    SharedId {
        /// The id in the reply.
        id: u8,
        /// The requested id.
        requested: u8,
    },
    /// A Feetech servo that replies to more than reads.
    #[error("response level (register 8) is {0} but must be 0 or 1: set it to 1")]
    ResponseLevel(u8),
    /// A Feetech servo that counts beyond one turn.
    #[error(
        "phase (register 18) is {phase}; its bit 0x10 makes positions count beyond one turn. Set it to {needed}"
    )]
    MultiTurn {
        /// The phase.
        phase: u8,
        /// The same without the bit.
        needed: u8,
    },
    /// A Feetech servo that does not control its position.
    #[error("operating mode (register 33) is {0} but must be 0 (position)")]
    FeetechMode(u8),
    /// Limits of a Feetech servo that do not rise, or reach beyond one turn.
    #[error(
        "position limits (registers 9 and 11) are {least} and {most}; the first must be lower, and {last} is the maximum. Set them to 0 and {last}"
    )]
    PositionLimits {
        /// The lower limit.
        least: u16,
        /// The upper limit.
        most: u16,
        /// The last position of a turn.
        last: u16,
    },
    /// A homing offset that does not fit into its register.
    #[error(
        "homing offset (register 31) is {0}; it must have eleven bits and a sign in bit 11. Calibrate the servo again"
    )]
    HomingOffset(u16),
    /// A servo whose position is not within one turn.
    #[error(
        "its position {0} is beyond one turn: it counts several turns, or its homing offset is wrong. Calibrate it again"
    )]
    BeyondTurn(i32),
    /// A joint whose range leaves the turn that its servo counts.
    #[error(
        "its joint's limits are {least} to {most} counts (one turn is {} to {}): {}", turn.start(), turn.end(), turn_fix(*least, *most, turn)
    )]
    LeavesTurn {
        /// Ticks of the joint's lower limit.
        least: i32,
        /// Ticks of the joint's upper limit.
        most: i32,
        /// Positions that the servo counts.
        turn: RangeInclusive<i32>,
    },
}

/// Returns what to do about a joint whose range leaves the turn that its servo counts.
fn turn_fix(least: i32, most: i32, turn: &RangeInclusive<i32>) -> &'static str {
    if most.saturating_sub(least) > turn.end().saturating_sub(*turn.start()) {
        "that is more than one turn: narrow the joint in the arm's file (its limits are in radians, not degrees)"
    } else {
        "set its homing offset so that the middle of the joint's range is near the middle of the turn, then calibrate it; or narrow the joint in the arm's file"
    }
}
