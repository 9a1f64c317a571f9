//! Serial ports on systems where they are not supported.

use crate::{ByteLink, LinkError, LinkFuture};
use base::clock::NodeClock;
use base::units::ClockInstant;

/// An open serial port: not supported on this system.
#[derive(Debug)]
pub enum SerialLink {}

impl SerialLink {
    /// Refuses.
    ///
    /// # Errors
    /// [`LinkError::OtherSystem`], always.
    pub fn open(path: &str, _baud: u32, _clock: &NodeClock) -> Result<Self, LinkError> {
        Err(LinkError::OtherSystem {
            path: path.to_owned(),
        })
    }
}

impl ByteLink for SerialLink {
    fn send<'a>(&'a mut self, _bytes: &'a [u8]) -> LinkFuture<'a, ()> {
        match *self {}
    }

    fn receive<'a>(
        &'a mut self,
        _into: &'a mut [u8],
        _until: ClockInstant,
    ) -> LinkFuture<'a, usize> {
        match *self {}
    }

    fn discard_input(&mut self) -> Result<(), LinkError> {
        match *self {}
    }

    fn name(&self) -> &str {
        match *self {}
    }
}
