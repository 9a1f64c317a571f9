//! Reasons that an arm's thread refuses a command.

use std::io;
use std::time::Duration;

use driver::{DriverError, ServoName};
use gate::{DepthTrimError, ExecutionError};
use link::LinkError;
use plan::PERIOD;

/// Reason that an arm is not attached, or a command to it is refused.
#[derive(Debug, thiserror::Error)]
pub enum MotionError {
    /// A thread, or the runtime on it, could not be started.
    #[error("cannot start the arm's {part}: {source}")]
    Start {
        /// The part that was to be started.
        part: &'static str,
        /// Cause.
        source: io::Error,
    },
    /// The thread ended before it had attached the arm.
    #[error("the arm's thread ended at once")]
    EndedAtOnce,
    /// The thread has ended.
    #[error("the arm's thread has ended. Next: restart the node")]
    Ended,
    /// There is no timer for the thread's ticks.
    #[error("the timer cannot be started: {0}")]
    NoTimer(#[source] io::Error),
    /// The port cannot be opened.
    #[error(transparent)]
    Port(#[from] LinkError),
    /// The arm behind the port cannot be used.
    #[error("{port}: {source}")]
    Attach {
        /// The port.
        port: String,
        /// Cause.
        source: DriverError,
    },
    /// The port came back with another arm behind it.
    #[error("{0} is not the same servo as before. Next: if you replaced the arm, restart the node")]
    OtherArm(ServoName),
    /// The port is closed.
    #[error("the arm is not connected. Next: check its cable and supply")]
    NotConnected,
    /// The arm's fault; its port is closed.
    #[error("{0}")]
    Fault(String),
    /// The driver failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The motion was planned and judged for another period than the arm is driven with.
    #[error(
        "the motion has a sample every {0:?}; this arm needs one every {PERIOD:?}. Next: plan it again"
    )]
    OtherPeriod(Duration),
    /// The proof cannot be spent, or the motion not resumed.
    #[error(transparent)]
    Execution(#[from] ExecutionError),
    /// The depth of the pen cannot be trimmed so.
    #[error(transparent)]
    DepthTrim(#[from] DepthTrimError),
    /// These servos are too hot to begin a drawing.
    #[error("{0}. Next: let it cool (`sense` shows it); `reset` still works")]
    TooHotToDraw(String),
    /// These servos are too hot to go on.
    #[error("{0}")]
    TooHot(String),
    /// Another motion is under way.
    #[error("the arm is busy with another motion. Next: wait (`sense` shows it), or `stop`")]
    Busy,
    /// The arm's description was changed.
    #[error(
        "the arm's zeros, limits or geometry were changed after the node started. Next: restart the node"
    )]
    OtherZeros,
    /// The node's own motions do not switch torque on.
    #[error("the arm's torque is off or was lost. Next: `reset`")]
    TorqueOff,
    /// A stop came after the motion was permitted, and before it "began" or "went on".
    #[error("a stop came before the motion {0}")]
    StoppedBefore(&'static str),
    /// A fault came after the motion was permitted, and before it "began" or "went on".
    #[error("a fault came before the motion {0}: {1}")]
    FaultedBefore(&'static str, String),
    /// No motion is under way.
    #[error("the arm is not moving, so there is nothing to hold")]
    NothingToHold,
    /// The motion is held.
    #[error(
        "the motion is already held. Next: `steadyhand continue` ends the hold, `steadyhand stop` ends the motion"
    )]
    HeldAlready,
    /// No motion is held.
    #[error("no motion is held, so there is nothing to continue")]
    NothingHeld,
    /// Torque stays on while the arm moves.
    #[error("the arm moves or is held. Next: `steadyhand stop` first")]
    Moves,
}

impl MotionError {
    pub(super) fn start(part: &'static str, source: io::Error) -> Self {
        Self::Start { part, source }
    }
}
