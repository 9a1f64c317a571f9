//! Notes the time at which bytes were really handed to the port: a frame that was not sent stops
//! nothing.

use base::clock::NodeClock;
use base::units::ClockInstant;
use link::{ByteLink, LinkError, LinkFuture};

/// A link that notes when it first, and when it last, took all bytes of a send.
pub(super) struct TimestampedLink<'a> {
    link: &'a mut dyn ByteLink,
    clock: &'a NodeClock,
    pub(super) first: Option<ClockInstant>,
    pub(super) last: Option<ClockInstant>,
}

impl<'a> TimestampedLink<'a> {
    pub(super) fn new(link: &'a mut dyn ByteLink, clock: &'a NodeClock) -> Self {
        Self {
            link,
            clock,
            first: None,
            last: None,
        }
    }
}

impl ByteLink for TimestampedLink<'_> {
    fn claim(&mut self) -> LinkFuture<'_, ()> {
        self.link.claim()
    }

    fn release(&mut self) {
        self.link.release();
    }

    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> LinkFuture<'a, ()> {
        Box::pin(async move {
            self.link.send(bytes).await?;
            let now = self.clock.now();
            self.first.get_or_insert(now);
            self.last = Some(now);
            Ok(())
        })
    }

    fn receive<'a>(&'a mut self, into: &'a mut [u8], until: ClockInstant) -> LinkFuture<'a, usize> {
        self.link.receive(into, until)
    }

    fn discard_input(&mut self) -> Result<(), LinkError> {
        self.link.discard_input()
    }

    fn name(&self) -> &str {
        self.link.name()
    }
}
