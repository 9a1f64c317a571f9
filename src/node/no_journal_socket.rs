//! The journal on systems that have none.

use std::io;

/// A connection to the journal: there is none on this system.
pub(crate) enum JournalSocket {}

impl JournalSocket {
    pub(super) const fn open() -> Option<Self> {
        None
    }

    pub(super) fn send(&self, _line: &[u8]) -> io::Result<usize> {
        match *self {}
    }
}

pub(super) const fn is_journal() -> bool {
    false
}
