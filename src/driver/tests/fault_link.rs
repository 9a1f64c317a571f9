//! A bad cable around any link, a real one too: bytes are lost and damaged by a seed.
//!
//! What goes wrong inside an arm, the simulator breaks; this breaks what is between.

use base::units::ClockInstant;
use link::{ByteLink, LinkError, LinkFuture};

/// Faults of a cable. The default has none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CableFaults {
    /// Share of the bytes from the device that are lost, 0 to 1.
    pub(super) lost: f64,
    /// Share of the bytes from the device in which one bit is flipped, 0 to 1.
    pub(super) damaged: f64,
    /// `true` if the cable has come off.
    pub(super) unplugged: bool,
}

/// A link with a bad cable. Same seed and same bytes, same faults.
pub(super) struct FaultLink<L> {
    inner: L,
    badness: CableFaults,
    state: u64,
}

impl<L: ByteLink> FaultLink<L> {
    /// A cable around `inner`.
    pub(super) fn new(inner: L, badness: CableFaults, seed: u64) -> Self {
        Self {
            inner,
            badness,
            // Zero would stay zero for ever.
            state: seed | 1,
        }
    }

    /// From now on the cable is as bad as that.
    pub(super) fn set(&mut self, badness: CableFaults) {
        self.badness = badness;
    }

    fn check(&self) -> Result<(), LinkError> {
        if self.badness.unplugged {
            Err(LinkError::Unplugged)
        } else {
            Ok(())
        }
    }

    /// The next number of the seed's sequence (xorshift).
    fn draw(&mut self) -> u32 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let [_, _, _, _, bytes @ ..] = self.state.to_le_bytes();
        u32::from_le_bytes(bytes)
    }

    fn happens(&mut self, share: f64) -> bool {
        f64::from(self.draw()) < share * f64::from(u32::MAX)
    }

    /// Damages bytes in place; how many are left.
    fn spoil(&mut self, bytes: &mut [u8]) -> usize {
        let mut kept = 0;
        for at in 0..bytes.len() {
            if self.happens(self.badness.lost) {
                continue;
            }
            let mut byte = bytes.get(at).copied().unwrap_or(0);
            if self.happens(self.badness.damaged) {
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
                // Nothing left is not the same as nothing for the rest of the time.
                let kept = self.spoil(into.get_mut(..count).unwrap_or_default());
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
