//! Counts of events on one port, and of each servo on it.

use std::time::Duration;

use crate::duration_histogram::DurationHistogram;

/// Counts of events on one port since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BusCounts {
    /// Cycles begun.
    pub cycles: u64,
    /// Requests sent.
    pub transactions: u64,
    /// Replies dropped for a wrong checksum; with a controller, frames that either side dropped so.
    pub corrupt: u64,
    /// Requests that were sent again: to servos that did not reply, or segments that a controller did
    /// not acknowledge.
    pub resent: u64,
    /// Frames that a controller and the node accepted from each other; 0 with servos, which only send
    /// requested replies.
    pub frames: u64,
    /// Replies to no request, including late ones.
    pub foreign: u64,
    /// Transactions whose own bytes were echoed.
    pub echoes: u64,
    /// Duration of cycles with all readings, from the first byte sent to the last one used.
    pub cycle_time: DurationHistogram,
    /// Processor time of this thread for each of them, without other work of the machine. Zero on a
    /// simulated clock.
    pub cycle_work: DurationHistogram,
    /// Each servo, in the servo map's order.
    pub servos: Vec<ServoCounts>,
}

/// Counts of events of one servo since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServoCounts {
    /// Its id.
    pub id: u8,
    /// Number of retries.
    pub retries: u64,
    /// Cycles that ended without a reading of it.
    pub blind: u64,
    /// Total duration of those cycles.
    pub blind_time: Duration,
    /// Readings that no movement explains.
    pub jumps: u64,
}
