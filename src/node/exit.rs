//! Exit codes of the process.

use crate::open::ArmUnavailable;

/// Result of a command; the process's exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// Done.
    Done = 0,
    /// The request was refused; nothing is broken.
    Refused = 1,
    /// Something broke, or the arm's standstill was not verified.
    Broken = 70,
    /// The node was asked to end, but an arm could not be brought to rest and is still energised, as far as it is known.
    Energised = 71,
    /// An arm's port does not exist, or the arm does not answer there. A later attempt may succeed.
    Absent = 75,
}

impl ExitStatus {
    /// Returns the status of a command that was done or refused.
    #[must_use]
    pub const fn of(done: bool) -> Self {
        if done { Self::Done } else { Self::Refused }
    }

    /// Returns the exit code for a failed command.
    #[must_use]
    pub fn from_error(error: &anyhow::Error) -> Self {
        if error.is::<ArmUnavailable>() {
            Self::Absent
        } else {
            Self::Refused
        }
    }
}
