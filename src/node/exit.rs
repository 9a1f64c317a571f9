//! Exit codes of the process.

use crate::open::Absent;

/// What a command came to; the process's exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// The caller did not get what was asked; nothing broke.
    Refused = 1,
    /// Something broke, or the arm's standstill was not verified.
    Broken = 70,
    /// Told to end where an arm could not be brought to rest: it is still energised.
    Energised = 71,
    /// An arm's port is not there, or nobody answers on it as that arm: to be tried again later.
    Absent = 75,
}

impl Exit {
    /// What a command that failed for this comes to.
    #[must_use]
    pub fn of(error: &anyhow::Error) -> Self {
        if error.is::<Absent>() {
            Self::Absent
        } else {
            Self::Refused
        }
    }
}
