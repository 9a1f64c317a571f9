//! Pseudo-terminals on systems where they are not supported.

use std::io;
use std::path::Path;

use crate::memory::FarEnd;
use base::clock::NodeClock;

/// The far side of a pseudo-terminal: not supported on this system.
#[derive(Debug)]
pub enum PseudoTerminal {}

impl PseudoTerminal {
    /// Refuses.
    ///
    /// # Errors
    /// Always.
    pub fn open() -> io::Result<Self> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this system has no pseudo-terminals. Next: practise with `port = \"simulator\"`",
        ))
    }

    /// Never called.
    #[must_use]
    pub fn path(&self) -> &Path {
        match *self {}
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn baud(&self) -> io::Result<u32> {
        match *self {}
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub async fn read(&self, _into: &mut [u8]) -> io::Result<usize> {
        match *self {}
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn write(&self, _bytes: &[u8]) -> io::Result<()> {
        match *self {}
    }
}

/// Refuses, as [`PseudoTerminal::open`] does.
///
/// # Errors
/// Always.
pub async fn serve(
    _device: impl FarEnd,
    _clock: &NodeClock,
    _on_open: impl FnOnce(&Path),
) -> io::Result<()> {
    PseudoTerminal::open().map(|never| match never {})
}
