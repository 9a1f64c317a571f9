//! The order of a stop and of the calls before it, where a node passes them on over several connections.

/// The stops that a node had heard when it passed a call on. A call with fewer than a stop of the same run was sent before that
/// stop, whichever arrives first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopOrder {
    /// Random number of the node's run, in which it counts.
    pub run: u64,
    /// The stops of any node that it had heard; a stop counts itself.
    pub stops: u64,
}

impl StopOrder {
    /// Reads `RUN STOPS`; `None` for anything else.
    #[must_use]
    pub fn read(fields: &str) -> Option<Self> {
        let (run, stops) = fields.split_once(' ')?;
        Some(Self {
            run: u64::from_str_radix(run, 16).ok()?,
            stops: stops.parse().ok()?,
        })
    }

    /// Returns the text that [`Self::read`] reads.
    #[must_use]
    pub fn words(&self) -> String {
        format!("{:x} {}", self.run, self.stops)
    }
}
