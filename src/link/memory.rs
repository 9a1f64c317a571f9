//! A link to a device in this process, driven by the link's clock.

use std::collections::VecDeque;

use crate::{ByteLink, LinkError, LinkFuture};
use base::clock::{ClockAlarm, NodeClock};
use base::units::ClockInstant;

/// A device at the far end of a wire. It has no thread of its own: the owner of the wire passes it the time.
pub trait FarEnd: Send {
    /// Receives bytes, the last of which arrived at `at`.
    fn hear(&mut self, at: ClockInstant, bytes: &[u8]);

    /// Returns the time of the device's next byte on the wire, if nothing more arrives.
    fn next_due(&self) -> Option<ClockInstant>;

    /// Returns the time at which the device will have sent all that it sends without a pause, if nothing more
    /// arrives. A reader that needs all of it wakes up only once.
    fn next_pause(&self) -> Option<ClockInstant> {
        self.next_due()
    }

    /// Appends what the device has put on the wire up to `now`.
    fn speak(&mut self, now: ClockInstant, into: &mut Vec<u8>);

    /// Sets the line's speed, if the wire has one: a device does not understand bytes at another speed.
    fn tune(&mut self, _baud: u32) {}

    /// Returns whether the device is still there; otherwise the wire reports that it was unplugged.
    fn is_plugged(&self) -> bool {
        true
    }
}

/// Devices on one wire: each hears all that is sent, and is unplugged with the others.
impl<D: FarEnd> FarEnd for Vec<D> {
    fn hear(&mut self, at: ClockInstant, bytes: &[u8]) {
        self.iter_mut().for_each(|device| device.hear(at, bytes));
    }

    fn next_due(&self) -> Option<ClockInstant> {
        self.iter().filter_map(FarEnd::next_due).min()
    }

    fn next_pause(&self) -> Option<ClockInstant> {
        self.iter().filter_map(FarEnd::next_pause).min()
    }

    fn speak(&mut self, now: ClockInstant, into: &mut Vec<u8>) {
        self.iter_mut().for_each(|device| device.speak(now, into));
    }

    fn tune(&mut self, baud: u32) {
        self.iter_mut().for_each(|device| device.tune(baud));
    }

    fn is_plugged(&self) -> bool {
        self.iter().all(FarEnd::is_plugged)
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
    /// Connects to `device` by a wire that keeps time by `clock`.
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

    fn check_plugged(&self) -> Result<(), LinkError> {
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
            self.check_plugged()?;
            self.collect();
            if !self.arrived.is_empty() {
                return Ok(self.take(into));
            }
            if self.clock.now() >= until {
                return Ok(0);
            }
            // An adapter, too, passes on several replies together: waking up for each would cost more than the reply itself.
            let next = self.device.next_pause().map_or(until, |due| due.min(until));
            self.alarm.until(next).await.map_err(LinkError::Read)?;
        }
    }
}

impl<D: FarEnd> ByteLink for MemoryLink<D> {
    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> LinkFuture<'a, ()> {
        Box::pin(async move {
            self.check_plugged()?;
            self.device.hear(self.clock.now(), bytes);
            Ok(())
        })
    }

    fn receive<'a>(&'a mut self, into: &'a mut [u8], until: ClockInstant) -> LinkFuture<'a, usize> {
        Box::pin(self.receive_some(into, until))
    }

    fn discard_input(&mut self) -> Result<(), LinkError> {
        self.check_plugged()?;
        self.collect();
        self.arrived.clear();
        Ok(())
    }

    fn name(&self) -> &str {
        &self.name
    }
}
