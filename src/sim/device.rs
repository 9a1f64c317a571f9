//! What every family of simulated servos does, whatever bytes it speaks.

use std::time::Duration;

use crate::body::Body;
use base::units::Instant;

/// A servo's answer on the wire, still to be sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) id: u8,
    /// Who else speaks within the same frame.
    pub(crate) with: Vec<u8>,
    /// After the wire was last in use.
    pub(crate) delay: Duration,
    pub(crate) bytes: Vec<u8>,
}

impl Answer {
    /// Everybody who speaks in it.
    pub(crate) fn speakers(&self) -> Vec<u8> {
        std::iter::once(self.id)
            .chain(self.with.iter().copied())
            .collect()
    }
}

/// All servos of one bus. Unknown ids are ignored everywhere: nobody is there to obey.
pub(crate) trait Device: Send {
    /// A byte arrived; what the servos answer to the request that it completes.
    fn hear(&mut self, byte: u8, body: &mut Body, at: Instant) -> Vec<Answer>;

    /// When a servo next does something by itself if nobody speaks.
    fn next_due(&self) -> Option<Instant>;

    /// Lets servos do by themselves what is due by `now`; what they say unasked.
    fn wake(&mut self, body: &mut Body, now: Instant) -> Vec<Answer>;

    /// Everything but what is kept over power cycles is lost.
    fn power_cycle(&mut self, id: u8, body: &mut Body, at: Instant);

    /// Sets a byte of memory as if it had always been there.
    fn poke(&mut self, id: u8, address: u16, value: u8);

    /// Sets the error bits that the servo reports.
    fn set_error(&mut self, id: u8, bits: u8, body: &mut Body);

    /// Makes a servo report this word as its position; `None` lets it tell the truth.
    fn force_position(&mut self, id: u8, word: Option<u16>);

    /// Makes a controller greet with this version and these layouts; servos greet nobody.
    fn claim(&mut self, _major: u8, _schema: u32) {}

    /// Where a servo stands on the bus, by its id.
    fn place(&self, id: u8) -> Option<usize>;

    /// Bytes that somebody tried to write into memory that outlives the power.
    fn kept_writes(&self) -> u64;
}
