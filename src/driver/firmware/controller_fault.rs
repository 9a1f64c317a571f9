//! Faults of a controller, and what it did by itself; each with its fix.

use firmware_protocol::host::Mismatch;
use firmware_protocol::message::{Cause, CommandResult, Mode, SegmentAck, SegmentStatus};

use crate::ServoName;

/// Reason that a controller cannot be used, or no longer follows its commands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControllerFault {
    /// It sent nothing.
    #[error(
        "did not answer HELLO within {within_ms} ms: switch it on, check its cable and check that it runs at {baud} baud"
    )]
    Silent {
        /// The baud rate of the requests.
        baud: u32,
        /// Time waited.
        within_ms: u128,
    },
    /// It speaks another version of the protocol.
    #[error(
        "speaks version {theirs} of the protocol, but this node speaks {ours}: build both from the same `firmware-protocol`"
    )]
    Version {
        /// The controller's major version.
        theirs: u8,
        /// This node's.
        ours: u8,
    },
    /// Its message layouts differ from this node's.
    #[error(
        "has different message layouts (schema {theirs:08X}, this node has {ours:08X}): build both from the same `firmware-protocol`"
    )]
    Schema {
        /// The controller's hash.
        theirs: u32,
        /// This node's.
        ours: u32,
    },
    /// It drives another number of joints.
    #[error("drives {device} joints, but the arm's file has {arm}. Correct one of them")]
    Joints {
        /// As many as it drives.
        device: usize,
        /// As many as the arm has.
        arm: usize,
    },
    /// It did not come to rest when torque was switched on.
    #[error(
        "did not stand still within {within_ms} ms after its torque was switched on (mode {mode:?}): check what moves it, then `reset`"
    )]
    Busy {
        /// Its present mode.
        mode: Mode,
        /// Time waited.
        within_ms: u128,
    },
    /// One of its limits is narrower than what the arm is sent.
    #[error("has limits for {joint} that are narrower than the arm's: {what}")]
    Limit {
        /// The joint.
        joint: ServoName,
        /// The value, the value needed and the fix.
        what: String,
    },
    /// It does not know where its joints stand.
    #[error("does not know where its joints are: not all of its drives have reported a position")]
    NoPosition,
    /// It restarted.
    #[error(
        "restarted (boot number {after:08X}, before {before:08X}): its supply failed or its watchdog fired. Nothing moves until `reset`"
    )]
    Rebooted {
        /// The boot before.
        before: u32,
        /// The boot now.
        after: u32,
    },
    /// It stopped the motion by itself.
    #[error("stopped the motion: {}", stop_reason(*.0))]
    Stopped(Cause),
    /// An emergency stop or fault is latched.
    #[error("is latched ({}){}: {}, then `reset`", latch_name(*.mode), at_joints(.joints), remedy(*.cause))]
    Latched {
        /// Emergency stop or fault.
        mode: Mode,
        /// The cause.
        cause: Cause,
        /// The joints whose drives failed.
        joints: Vec<String>,
    },
    /// It refused a segment of the motion, and stopped.
    #[error("refused a part of the motion{}: {}", of_joint(.joint.as_ref()), refusal_reason(*.status))]
    Refused {
        /// Its reason.
        status: SegmentStatus,
        /// The joint that it names.
        joint: Option<ServoName>,
    },
    /// It did not obey a command.
    #[error("refused to {command}: it says {}", result_text(*.result))]
    Disobeyed {
        /// The command.
        command: &'static str,
        /// Its answer.
        result: CommandResult,
    },
    /// It never answered a command.
    #[error("did not answer the command to {0}: check its cable for noise")]
    Unanswered(&'static str),
    /// Torque is off although it was switched on.
    #[error("switched torque off by itself: nothing moves until `reset`")]
    Limp,
    /// More goals are waiting than are kept.
    #[error("was held too long and accepts no more motion: {0} goals already wait")]
    Behind(usize),
}

impl From<Mismatch> for ControllerFault {
    fn from(mismatch: Mismatch) -> Self {
        match mismatch {
            Mismatch::Version(theirs) => Self::Version {
                theirs,
                ours: firmware_protocol::PROTOCOL_MAJOR,
            },
            Mismatch::Schema(theirs) => Self::Schema {
                theirs,
                ours: firmware_protocol::schema::SCHEMA_HASH,
            },
        }
    }
}

impl ControllerFault {
    /// Creates a refusal with the name of its joint; `names` are those of the arm's joints.
    pub(super) fn refused<'a>(
        ack: &SegmentAck,
        mut names: impl Iterator<Item = &'a ServoName>,
    ) -> Self {
        let joint = match ack.joint {
            firmware_protocol::message::NO_JOINT => None,
            joint => Some(match names.nth(usize::from(joint)) {
                Some(name) => name.clone(),
                None => ServoName {
                    id: joint,
                    name: "no joint of this arm".to_owned(),
                },
            }),
        };
        Self::Refused {
            status: ack.status,
            joint,
        }
    }
}

fn at_joints(joints: &[String]) -> String {
    match joints {
        [] => String::new(),
        joints => format!(" at {}", joints.join(", ")),
    }
}

fn of_joint(joint: Option<&ServoName>) -> String {
    joint.map_or_else(String::new, |joint| format!(" of {joint}"))
}

const fn latch_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Estop => "emergency stop",
        _ => "fault",
    }
}

const fn stop_reason(cause: Cause) -> &'static str {
    match cause {
        Cause::Deadman => {
            "it received nothing from this node for 150 ms: the port or cable is broken, or this machine is too busy"
        }
        Cause::Underrun => {
            "its queue ran empty in motion: the port or cable is broken, or this machine is too busy"
        }
        Cause::Late => {
            "a part of the motion came too late: this machine is too busy, or the line is too slow"
        }
        Cause::Stalled => "its own control loop paused for more than 20 ms",
        Cause::Hello => "another program opened a session with it",
        Cause::Discontinuous => "the motion was not continuous",
        Cause::Limit => "the motion broke one of its limits",
        Cause::Drive => "a drive failed",
        Cause::Estop => "an emergency stop",
        Cause::None | Cause::Hold | Cause::Flush => "another program stopped it",
    }
}

const fn remedy(cause: Cause) -> &'static str {
    match cause {
        Cause::Drive => "repair or cool the drive",
        _ => "release the emergency stop",
    }
}

const fn refusal_reason(status: SegmentStatus) -> &'static str {
    match status {
        SegmentStatus::Late => {
            "it came too late: this machine is too busy, or the line is too slow"
        }
        SegmentStatus::Discontinuous => "it does not begin where the previous part ends",
        SegmentStatus::Position => "it leaves the joint's range",
        SegmentStatus::Velocity => "it is faster than the controller allows",
        SegmentStatus::Acceleration => "it accelerates harder than the controller allows",
        SegmentStatus::NoStop => "after it the arm could not stop inside its range",
        SegmentStatus::Shape => "it has a different number of joints",
        SegmentStatus::NotReady => "its present mode accepts no motion",
        _ => "it was not expected",
    }
}

const fn result_text(result: CommandResult) -> &'static str {
    match result {
        CommandResult::Done => "that it obeyed",
        CommandResult::WrongMode => "that its mode forbids it",
        CommandResult::WrongNonce => "that the nonce is wrong",
        CommandResult::Latched => "that it is latched",
        CommandResult::Moving => "that it is moving",
        CommandResult::NoPosition => {
            "that it does not know where its joints are, or that one is outside its range"
        }
        CommandResult::WrongVersion => "that it speaks a different version",
    }
}
