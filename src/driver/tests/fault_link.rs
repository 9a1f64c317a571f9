//! Wraps any link, even a real one, in a bad cable: bytes are lost and damaged by a seed.
//!
//! The simulator injects faults inside an arm; this injects those of the cable.

use base::units::ClockInstant;
use link::{ByteLink, LinkError, LinkFuture};

/// Faults of a cable. The default has none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CableFaults {
    /// Fraction of the bytes from the device that are lost, 0 to 1.
    pub(super) lost: f64,
    /// Fraction of the bytes from the device in which one bit is flipped, 0 to 1.
    pub(super) damaged: f64,
    /// `true` if the cable has come off.
    pub(super) unplugged: bool,
}

/// A link with a bad cable. The same seed and bytes give the same faults.
pub(super) struct FaultLink<L> {
    inner: L,
    faults: CableFaults,
    state: u64,
}

impl<L: ByteLink> FaultLink<L> {
    /// Wraps a link.
    pub(super) fn new(inner: L, faults: CableFaults, seed: u64) -> Self {
        Self {
            inner,
            faults,
            // Zero would stay zero forever.
            state: seed | 1,
        }
    }

    /// Sets the faults from now on.
    pub(super) fn set(&mut self, faults: CableFaults) {
        self.faults = faults;
    }

    fn check(&self) -> Result<(), LinkError> {
        if self.faults.unplugged {
            Err(LinkError::Unplugged)
        } else {
            Ok(())
        }
    }

    /// Returns the next number of the seed's sequence (xorshift).
    fn draw(&mut self) -> u32 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let [_, _, _, _, bytes @ ..] = self.state.to_le_bytes();
        u32::from_le_bytes(bytes)
    }

    fn happens(&mut self, probability: f64) -> bool {
        f64::from(self.draw()) < probability * f64::from(u32::MAX)
    }

    /// Damages bytes in place and returns how many are left.
    fn corrupt(&mut self, bytes: &mut [u8]) -> usize {
        let mut kept = 0;
        for at in 0..bytes.len() {
            if self.happens(self.faults.lost) {
                continue;
            }
            let mut byte = bytes.get(at).copied().unwrap_or(0);
            if self.happens(self.faults.damaged) {
                byte ^= 1 << (self.draw() % 8);
            }
            if let Some(slot) = bytes.get_mut(kept) {
                *slot = byte;
            }
            kept += 1;
        }
        kept
    }
}

impl<L: ByteLink> ByteLink for FaultLink<L> {
    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> LinkFuture<'a, ()> {
        Box::pin(async move {
            self.check()?;
            self.inner.send(bytes).await
        })
    }

    fn receive<'a>(&'a mut self, into: &'a mut [u8], until: ClockInstant) -> LinkFuture<'a, usize> {
        Box::pin(async move {
            loop {
                self.check()?;
                let count = self.inner.receive(into, until).await?;
                if count == 0 {
                    return Ok(0);
                }
                // All bytes lost is not the same as none received until the deadline.
                let kept = self.corrupt(into.get_mut(..count).unwrap_or_default());
                if kept > 0 {
                    return Ok(kept);
                }
            }
        })
    }

    fn discard_input(&mut self) -> Result<(), LinkError> {
        self.check()?;
        self.inner.discard_input()
    }

    fn name(&self) -> &str {
        self.inner.name()
    }
}
