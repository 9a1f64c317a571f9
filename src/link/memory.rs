//! A link whose far end is a device in this process, driven by the clock that it is given.

use std::collections::VecDeque;

use crate::{ByteLink, LinkError, LinkFuture};
use base::clock::{ClockAlarm, NodeClock};
use base::units::ClockInstant;

/// A device at the far end of a wire. It has no thread: the owner of the wire tells it the time.
pub trait FarEnd: Send {
    /// Bytes arrived at the device, the last of them at `at`.
    fn hear(&mut self, at: ClockInstant, bytes: &[u8]);

    /// Returns the time of the device's next byte on the wire, if nothing more arrives.
    fn next_due(&self) -> Option<ClockInstant>;

    /// Returns the time at which it will have said all that it says without a pause, if nothing more
    /// arrives. A reader that needs all of it wakes up once for it.
    fn next_pause(&self) -> Option<ClockInstant> {
        self.next_due()
    }

    /// Appends what the device has put on the wire up to `now`.
    fn speak(&mut self, now: ClockInstant, into: &mut Vec<u8>);

    /// The line's speed, where the wire has one: what comes at another speed is not understood.
    fn tune(&mut self, _baud: u32) {}

    /// Returns whether it is still there; a wire to a missing device reports that it was unplugged.
    fn is_plugged(&self) -> bool {
        true
    }
}

/// The near end of a wire to a [`FarEnd`].
pub struct MemoryLink<D> {
    device: D,
    clock: NodeClock,
    alarm: ClockAlarm,
    arrived: VecDeque<u8>,
    scratch: Vec<u8>,
    name: String,
}

impl<D: FarEnd> MemoryLink<D> {
    /// A wire to `device` that keeps time by `clock`.
    ///
    /// # Errors
    /// When the system gives no timer descriptor (real clock only).
    pub fn new(device: D, clock: &NodeClock, name: &str) -> std::io::Result<Self> {
        Ok(Self {
            device,
            alarm: clock.alarm()?,
            clock: clock.clone(),
            arrived: VecDeque::new(),
            scratch: Vec::new(),
            name: name.to_owned(),
        })
    }

    fn check_plug(&self) -> Result<(), LinkError> {
        if self.device.is_plugged() {
            Ok(())
        } else {
            Err(LinkError::Unplugged)
        }
    }

    fn collect(&mut self) {
        self.scratch.clear();
        self.device.speak(self.clock.now(), &mut self.scratch);
        self.arrived.extend(&self.scratch);
    }

    fn take(&mut self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.arrived.len());
        for (slot, byte) in into.iter_mut().zip(self.arrived.drain(..count)) {
            *slot = byte;
        }
        count
    }

    async fn receive_some(
        &mut self,
        into: &mut [u8],
        until: ClockInstant,
    ) -> Result<usize, LinkError> {
        loop {
            self.check_plug()?;
            self.collect();
            if !self.arrived.is_empty() {
                return Ok(self.take(into));
            }
            if self.clock.now() >= until {
                return Ok(0);
            }
            // As an adapter does, which passes on what came together: waking up for every reply would cost more than they do.
            let next = self.device.next_pause().map_or(until, |due| due.min(until));
            self.alarm.until(next).await.map_err(LinkError::Read)?;
        }
    }
}

impl<D: FarEnd> ByteLink for MemoryLink<D> {
    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> LinkFuture<'a, ()> {
        Box::pin(async move {
            self.check_plug()?;
            self.device.hear(self.clock.now(), bytes);
            Ok(())
        })
    }

    fn receive<'a>(&'a mut self, into: &'a mut [u8], until: ClockInstant) -> LinkFuture<'a, usize> {
        Box::pin(self.receive_some(into, until))
    }

    fn discard_input(&mut self) -> Result<(), LinkError> {
        self.check_plug()?;
        self.collect();
        self.arrived.clear();
        Ok(())
    }

    fn name(&self) -> &str {
        &self.name
    }
}
